"""Private means: how far one record moves them, the noise, what is divided by, and the charge."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.mechanisms import JointGaussian
from hockeystick.release import mean
from hockeystick.release.statistics import clipped
from hockeystick.release.statistics.clipped import UNITS, clipped_integers
from tests.release.bits import none_left, seeded

ROWS = st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=6).map(
    np.array
)
MOVES = {"add-remove": 1, "zero-out": 1, "replace-one": 2}


@settings(max_examples=200)
@given(rows=ROWS, other=ROWS, bound=st.floats(1e-3, 1e3))
def test_a_record_moves_the_exact_sum_by_at_most_the_bound(
    rows: Any, other: Any, bound: Any
) -> None:
    own, new = clipped_integers(rows, bound), clipped_integers(other[:1], bound)

    def square(steps: Any) -> int:
        return sum(int(step) ** 2 for step in steps)

    assert square(own[0]) <= UNITS**2
    assert square(own.sum(axis=0) - own[1:].sum(axis=0)) <= UNITS**2
    assert square(own[0] - new[0]) <= (2 * UNITS) ** 2


def _near_halves(steps: int) -> Any:
    """Return a row of which 150 entries, clipped, are next to half a unit, by so many floats."""
    row = np.r_[np.ones(150), np.random.default_rng(0).uniform(-8, 8, 50)]
    room = (1 - 2.0**-40) * UNITS - math.sqrt(200) / 2
    length = room / (np.floor(room / np.linalg.norm(row)) + 0.5)
    row[-1] = math.sqrt(length**2 - np.square(row[:-1]).sum())
    row[-1] += steps * math.ulp(row[-1])
    return row


def test_a_row_is_rounded_alone_as_beside_another_however_they_are_stored() -> None:
    """Columns stored together, as a data frame's are; each would move 150 entries by one."""
    other = np.r_[np.ones(150), np.zeros(50)]
    for steps in range(-40, 40):
        pair = np.asfortranarray([_near_halves(steps), other])
        both, first = clipped_integers(pair, 1.0), clipped_integers(pair[:1].copy("F"), 1.0)
        assert np.array_equal(both[0], first[0])
        assert int(np.square(both.sum(axis=0) - first[0]).sum()) <= UNITS**2


def test_a_row_that_is_scaled_too_long_is_scaled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As round-off might: whatever the first scale was, no row is longer than the units."""
    monkeypatch.setattr(clipped, "_ROOM", 1.001)
    found = clipped_integers(np.array([[3.0, 4.0], [0.1, 0.0]]), 1.0)
    assert sum(int(step) ** 2 for step in found[0]) <= UNITS**2
    assert found[1, 0] == round(UNITS / 10)


@pytest.mark.parametrize(("adjacency", "most"), MOVES.items())
def test_neighbours_reach_the_sensitivity_that_the_noise_is_in_units_of(
    adjacency: Any, most: Any
) -> None:
    row = np.array([[3.0, 4.0]])
    other = {"add-remove": np.zeros((0, 2)), "zero-out": 0 * row, "replace-one": -row}[adjacency]
    first, second = (
        mean(hs.Gaussian(0), one, bound=2, size=1, adjacency=adjacency) for one in (row, other)
    )
    distance = float(np.linalg.norm(first - second))
    assert 2 * most * (1 - 1e-6) < distance <= 2 * most


@pytest.mark.parametrize(("adjacency", "most"), MOVES.items())
def test_the_noise_of_the_sum_has_the_deviation_that_is_charged(adjacency: Any, most: Any) -> None:
    rows, noise = np.full((10, 4000), 0.01), hs.Gaussian(3)
    clean = mean(hs.Gaussian(0), rows, bound=1, size=10, adjacency=adjacency)
    drawn = mean(noise, rows, bound=1, size=10, adjacency=adjacency, bits=seeded(3))
    scaled = (drawn - clean) * 10 / (3 * most)
    square = float((scaled**2).sum())
    assert 1e-6 < stats.chi2.sf(square, 4000) < 1 - 1e-6


def test_the_same_bits_double_the_noise_where_a_record_is_replaced() -> None:
    zeros = np.zeros((4, 6))
    added, replaced = (
        mean(hs.Gaussian(5), zeros, bound=1, size=4, adjacency=one, bits=seeded(9))
        for one in ("add-remove", "replace-one")
    )
    assert np.abs(replaced - 2 * added).max() <= 4 / UNITS


def test_without_clipping_it_is_the_mean_about_the_center() -> None:
    rows = np.array([10, 0, -5]) + np.random.default_rng(1).normal(size=(500, 3))
    found = mean(hs.Gaussian(0), rows, bound=10, center=[10, 0, -5], adjacency="zero-out")
    assert np.allclose(found, rows.mean(axis=0), atol=1e-5)


def test_a_private_count_is_released_and_charged_with_the_sum() -> None:
    account, both = hs.Accountant(), JointGaussian((0, 0))
    rows = np.full((40, 2), 0.25)
    assert mean(both, rows, bound=1, charge=account) == pytest.approx(0.25, abs=1e-5)
    assert str(account.plan) == "joint Gaussian (noise multipliers 0 and 0)"
    counts = [
        0.25 * 40 / float(mean(JointGaussian((0, 6)), rows, bound=1, bits=seeded(k))[0])
        for k in range(400)
    ]
    assert 1e-6 < stats.chi2.sf(((np.array(counts) - 40) ** 2 / 36).sum(), 400) < 1 - 1e-6


def test_no_count_below_one_is_divided_by() -> None:
    found = mean(JointGaussian((0, 0)), np.zeros((0, 2)), bound=1)
    assert found.tolist() == [0, 0]


NOISE = hs.Gaussian(1)
GOOD: Any = {"rows": [[0.5]], "bound": 1.0, "size": 1}
WRONG: Any = [
    (hs.Laplace(1), {}, "mechanism"),
    (JointGaussian((1, 1, 1)), {}, "mechanism"),
    (hs.Gaussian(float("inf")), {}, "mechanism"),
    (hs.Gaussian(2.0**30), {}, "mechanism"),
    (NOISE, {"rows": [[float("nan")]]}, "rows"),
    (NOISE, {"rows": [0.5, 1.0]}, "rows"),
    (NOISE, {"rows": np.zeros((3, 0))}, "rows"),
    (NOISE, {"bound": 0}, "bound"),
    (NOISE, {"size": 0}, "size"),
    (NOISE, {"center": [1, 2]}, "center"),
    (NOISE, {"adjacency": "swap"}, "adjacency"),
    (NOISE, {"rows": np.zeros((0, 2)), "size": None, "adjacency": "replace-one"}, "rows"),
    (NOISE, {"charge": 3}, "charge"),
]


@pytest.mark.parametrize(("mechanism", "given", "name"), WRONG)
def test_bad_input_is_refused_before_anything_is_charged(
    mechanism: Any, given: Any, name: Any
) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError, match=f"^{name}"):
        mean(mechanism, **(GOOD | {"charge": account, "bits": none_left} | given))
    assert account.plan == hs.Accountant().plan


@pytest.mark.parametrize(
    ("mechanism", "given"),
    [
        (NOISE, {"size": None}),
        (JointGaussian((1, 1)), {}),
        (JointGaussian((1, 1)), {"size": None, "adjacency": "replace-one"}),
    ],
)
def test_what_is_divided_by_is_said_once(mechanism: Any, given: Any) -> None:
    with pytest.raises(IncompatibleError):
        mean(mechanism, **(GOOD | {"bits": none_left} | given))


def test_a_filter_that_refuses_leaves_nothing_released() -> None:
    budget = hs.calibration.Filter(hs.ApproxDP(epsilon=0.1, delta=1e-6))
    with pytest.raises(BudgetExhausted):
        mean(NOISE, [[0.5]], bound=1, size=1, charge=budget, bits=none_left)


def test_values_on_the_grid_are_released_exactly() -> None:
    found = mean(hs.Gaussian(0), [[0.75], [0.5]], bound=2, size=1)
    assert Fraction(float(found[0])) == Fraction(5, 4)
