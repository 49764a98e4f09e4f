"""Pruned sums: random coordinates that no gradient decides, and the largest of a noisy sum."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, ParameterError
from hockeystick.release import randomly_pruned_sum, selective_sum
from tests.release.bits import none_left, seeded

BOTH = [randomly_pruned_sum, selective_sum]
NONE = hs.Gaussian(0)
ROWS = st.lists(st.lists(st.floats(-20, 20), min_size=4, max_size=4), min_size=1, max_size=4).map(
    np.array
)


@settings(max_examples=100)
@given(rows=ROWS, norm=st.floats(1e-2, 1e2), seed=st.integers(0, 9))
def test_an_example_moves_a_randomly_pruned_sum_by_at_most_the_norm(
    rows: Any, norm: Any, seed: Any
) -> None:
    pair = [
        randomly_pruned_sum(NONE, one, norm=norm, keep=0.5, bits=seeded(seed))
        for one in (rows, rows[1:])
    ]
    assert float(np.linalg.norm(pair[0] - pair[1])) <= norm * (1 + 1e-12)


def test_a_long_example_moves_it_by_the_norm_wherever_it_is_kept() -> None:
    for seed in range(20):
        found = randomly_pruned_sum(NONE, np.full((1, 9), 5.0), norm=2, keep=0.3, bits=seeded(seed))
        assert np.count_nonzero(found) == 3
        assert float(np.linalg.norm(found)) == pytest.approx(2, abs=1e-5)


def test_the_coordinates_are_those_of_the_bits_whatever_the_gradients_are() -> None:
    rows = [np.ones((3, 20)), np.random.default_rng(1).normal(size=(5, 20)), np.ones((1, 20))]
    kept = {
        tuple(np.flatnonzero(randomly_pruned_sum(NONE, one, norm=1, keep=0.25, bits=seeded(4))))
        for one in rows
    }
    assert len(kept) == 1
    counts = np.zeros(20)
    for seed in range(1000):
        found = randomly_pruned_sum(NONE, rows[0], norm=1, keep=0.25, bits=seeded(seed))
        counts += found != 0
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("release", BOTH)
def test_the_noise_is_the_mechanisms(release: Any) -> None:
    drawn = release(hs.Gaussian(3), np.zeros((0, 3000)), norm=0.5, keep=1.0, bits=seeded(2))
    assert 1e-6 < stats.chi2.sf(float(((drawn / 1.5) ** 2).sum()), 3000) < 1 - 1e-6


def test_the_largest_of_the_noisy_sum_are_kept() -> None:
    rows = np.random.default_rng(3).normal(size=(6, 50))
    whole = selective_sum(hs.Gaussian(1), rows, norm=1, keep=1.0, bits=seeded(5))
    found = selective_sum(hs.Gaussian(1), rows, norm=1, keep=0.1, bits=seeded(5))
    kept = found != 0
    assert kept.sum() == 5
    assert np.array_equal(found[kept], whole[kept])
    assert np.abs(whole[~kept]).max() <= np.abs(whole[kept]).min()


def test_what_is_chosen_by_the_gradients_themselves_shows_one_example() -> None:
    """Without noise, as published, the chosen set is a function of the data."""
    rows = np.array([[0.5, 0.4], [0.0, 0.3]])
    chosen = [
        np.flatnonzero(selective_sum(NONE, one, norm=1, keep=0.5)).tolist()
        for one in (rows, rows[:1])
    ]
    assert chosen == [[1], [0]]
    hidden = {
        int(
            np.flatnonzero(selective_sum(hs.Gaussian(2), rows, norm=1, keep=0.5, bits=seeded(k)))[0]
        )
        for k in range(30)
    }
    assert hidden == {0, 1}


@pytest.mark.parametrize("release", BOTH)
def test_the_mechanism_is_charged_once_and_may_be_refused(release: Any) -> None:
    account = hs.Accountant()
    release(hs.Gaussian(2), [[1.0, 2.0]], norm=1, keep=0.5, charge=account)
    assert str(account.plan) == "Gaussian (noise multiplier 2)"
    budget = hs.calibration.Filter(hs.ApproxDP(epsilon=0.1, delta=1e-6))
    with pytest.raises(BudgetExhausted):
        release(hs.Gaussian(2), [[1.0]], norm=1, keep=1, charge=budget, bits=none_left)


WRONG: Any = [
    (hs.Laplace(1), {}, "mechanism"),
    (hs.Gaussian(math.inf), {}, "mechanism"),
    (NONE, {"gradients": [1.0]}, "gradients"),
    (NONE, {"norm": 0}, "norm"),
    (NONE, {"keep": 0}, "keep"),
    (NONE, {"keep": 1.5}, "keep"),
]


@pytest.mark.parametrize("release", BOTH)
@pytest.mark.parametrize(("mechanism", "given", "name"), WRONG)
def test_bad_input_is_refused_before_anything_is_charged(
    release: Any, mechanism: Any, given: Any, name: Any
) -> None:
    account, good = hs.Accountant(), {"gradients": [[1.0]], "norm": 1, "keep": 0.5}
    with pytest.raises(ParameterError, match=rf"^{name}"):
        release(mechanism, **(good | {"charge": account, "bits": none_left} | given))
    assert account.plan == hs.Accountant().plan


@pytest.mark.parametrize("release", BOTH)
@pytest.mark.parametrize(
    "rows", [[[1.0], [1.0, 2.0]], np.ma.masked_array(np.ones((3, 2)), mask=True)]
)
def test_ragged_and_masked_rows_are_told_before_a_charge(release: Any, rows: Any) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError, match="gradients must be real numbers, a row for each"):
        release(hs.Gaussian(1), rows, norm=1, keep=0.5, charge=account)
    assert account.plan == hs.Accountant().plan
