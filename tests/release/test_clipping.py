"""Sums of clipped gradients: what one example moves, the noise, what is computed from them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import JointGaussian
from hockeystick.release import (
    CoordinateClipping,
    OnlineClipping,
    QuantileClipping,
    layered_sum,
    randomly_pruned_sum,
    selective_sum,
)
from hockeystick.release.noise.clipped_sum import UNITS
from tests.release.bits import none_left, seeded

SIZE = 50
BATCH = st.lists(st.lists(st.floats(-20, 20), min_size=3, max_size=3), min_size=1, max_size=5).map(
    np.array
)


def by_quantile(norm: Any = 2.0, noise: Any = 0, bit_noise: Any = 0, step_size: Any = 1.0) -> Any:
    return QuantileClipping(norm, 0.3, noise, bit_noise, step_size)


def online(norm: Any = 2.0, noise: Any = 0, direction_noise: Any = 0) -> Any:
    return OnlineClipping(norm, 0.5, noise, direction_noise, 0.1, 0.05)


def usual(square: Any, count: Any) -> Any:
    """Return whether a sum of squares of standard normal numbers is no miracle."""
    return 1e-6 < stats.chi2.sf(float(square), count) < 1 - 1e-6


def share_of(clipping: Any, after: Any) -> Any:
    """Return the noisy share of gradients within the norm, by how the norm moved."""
    return clipping.quantile - math.log(after.norm / clipping.norm) / clipping.step_size


@settings(max_examples=100)
@given(rows=BATCH, norm=st.floats(1e-3, 1e2))
def test_an_example_moves_the_sum_by_the_norm_and_the_bits_by_half(rows: Any, norm: Any) -> None:
    clipping = by_quantile(norm)
    pair = [clipping.step(one, expected=SIZE) for one in (rows, rows[1:])]
    moved = float(np.linalg.norm(pair[0][0] - pair[1][0])) * SIZE
    assert moved <= norm * (1 + 1e-12)
    shares = [share_of(clipping, after) * SIZE for _, after in pair]
    assert abs(shares[0] - shares[1]) == pytest.approx(0.5, abs=1e-9)


@settings(max_examples=100)
@given(rows=BATCH, norm=st.floats(1e-3, 1e2))
def test_an_example_moves_both_of_the_online_sums_by_one_unit(rows: Any, norm: Any) -> None:
    pair = [online(norm).step(one, expected=SIZE) for one in (rows, rows[1:])]
    moved = float(np.linalg.norm(pair[0][0] - pair[1][0])) * SIZE
    assert moved <= norm * (1 + 1e-12)
    directions = [after._before[1] * SIZE for _, after in pair]
    turned = float(np.linalg.norm(directions[0] - directions[1]))
    length = float(np.linalg.norm(rows[0]))
    assert turned <= 1
    assert turned == pytest.approx(float(length > norm), abs=1e-5)
    assert moved == pytest.approx(min(length, norm), abs=1e-5 * norm)


@settings(max_examples=100)
@given(rows=BATCH, seed=st.integers(0, 99))
def test_an_example_moves_the_scaled_sum_by_one_whatever_the_scales_are(
    rows: Any, seed: Any
) -> None:
    clipping = CoordinateClipping(3, 1.0)
    for step in range(3):
        drawn = np.random.default_rng(seed + step).normal(size=(SIZE, 3)) * [1e-3, 1, 30]
        clipping = clipping.step(drawn, expected=SIZE, bits=seeded(seed))[1]
    pair = [clipping.step(one, expected=SIZE, bits=seeded(1))[0] for one in (rows, rows[1:])]
    moved = (pair[0] - pair[1]) * SIZE / clipping.scale
    assert float(np.linalg.norm(moved)) <= 1 + 1e-9


def test_a_long_gradient_moves_the_scaled_sum_by_one() -> None:
    clipping = CoordinateClipping(2, 0.0)
    pair = [clipping.step(one, expected=1)[0] for one in ([[1e9, 1e9]], np.zeros((0, 2)))]
    moved = (pair[0] - pair[1]) / clipping.scale
    assert float(np.linalg.norm(moved)) == pytest.approx(1, abs=1e-5)


def test_the_noise_of_a_sum_by_quantile_is_what_the_mechanism_says() -> None:
    clipping = by_quantile(noise=3, bit_noise=4)
    assert clipping.mechanism == JointGaussian((3, 8))
    gradient, _ = clipping.step(np.zeros((0, 4000)), expected=SIZE, bits=seeded(1))
    assert usual(((gradient * SIZE / (3 * 2)) ** 2).sum(), 4000)
    rows = np.zeros((20, 1))  # all within the norm, so that the sum of bits is 10
    shares = [
        share_of(clipping, clipping.step(rows, expected=SIZE, bits=seeded(k))[1])
        for k in range(400)
    ]
    bits = (np.array(shares) - 0.5) * SIZE - 10
    # in halves, the noise of 8 is rounded to integers, which adds 1/12
    assert usual((bits**2).sum() * 4 / (64 + 1 / 12), 400)


def test_the_noise_of_the_online_sums_is_what_the_mechanism_says() -> None:
    clipping = online(noise=3, direction_noise=21)
    assert clipping.mechanism == JointGaussian((3, 21))
    gradient, after = clipping.step(np.zeros((0, 4000)), expected=SIZE, bits=seeded(2))
    assert usual(((gradient * SIZE / (3 * 2)) ** 2).sum(), 4000)
    assert usual(((after._before[1] * SIZE / 21) ** 2).sum(), 4000)


def test_the_noise_of_the_scaled_sum_is_what_the_mechanism_says() -> None:
    clipping = CoordinateClipping(4000, 5.0)
    assert clipping.mechanism == hs.Gaussian(5)
    gradient, _ = clipping.step(np.zeros((0, 4000)), expected=SIZE, bits=seeded(3))
    assert usual(((gradient * SIZE / clipping.scale / 5) ** 2).sum(), 4000)


def test_a_norm_finds_its_quantile() -> None:
    rows = np.random.default_rng(1).normal(size=(1000, 1)) * 5
    clipping = by_quantile(norm=0.1, step_size=0.5)
    for _ in range(200):
        clipping = clipping.step(rows, expected=1000)[1]
    assert clipping.norm == pytest.approx(np.quantile(np.abs(rows), 0.3), rel=0.05)


def test_online_steps_are_those_of_the_algorithm() -> None:
    """Lines 6 to 15 of the thesis's algorithm 3, in floats and without noise."""
    signs = np.array([1, 1, -1, -1, 1, -1, 1, 1, -1])[:, None, None]
    drawn = np.random.default_rng(2).normal(size=(9, 30, 4)) + signs * np.array([3.0, 0, 0, 0])
    clipping, norm, rate, before = online(), 2.0, 0.5, (np.zeros(4), np.zeros(4))
    for rows in drawn:
        assert (clipping.norm, clipping.learning_rate) == pytest.approx((norm, rate))
        lengths = np.linalg.norm(rows, axis=1)[:, None]
        mean = (rows / np.maximum(1, lengths / norm)).sum(axis=0) / SIZE
        direction = np.where(lengths > norm, rows / lengths, 0).sum(axis=0) / SIZE
        norm *= math.exp(0.1 * np.sign(mean @ before[1]))
        rate *= math.exp(0.05 * np.sign(mean @ before[0]))
        before = mean, direction
        gradient, clipping = clipping.step(rows, expected=SIZE)
        assert np.allclose(gradient, mean, atol=1e-5)


def test_what_is_done_to_a_returned_gradient_does_not_change_the_next_step() -> None:
    first, clipping = online().step(np.ones((5, 2)), expected=SIZE)
    first *= -1.0
    assert clipping.step(np.ones((5, 2)), expected=SIZE)[1].learning_rate > 0.5


def test_scales_follow_the_released_gradients_alone() -> None:
    """The same noisy gradients, of other examples, leave the same center and variance."""
    clipping = CoordinateClipping(2, 0.0, variances=(1e-6, 1e6))
    rows = np.array([[0.5, -0.25], [0.25, 0.5]])
    first, second = (clipping.step(one, expected=2)[1] for one in (rows, rows[::-1]))
    assert np.array_equal(first.scale, second.scale)
    gradient = clipping.step(rows, expected=2)[0]
    assert gradient == pytest.approx(rows.mean(axis=0), abs=1e-5)
    assert np.allclose(first.center, 0.01 * gradient)
    assert np.allclose(first.variance, 0.9 * clipping.variance + 0.1 * gradient**2)


def test_the_noises_own_variance_is_taken_off() -> None:
    clipping = CoordinateClipping(40, 2.0, decays=(0.5, 0.25), variances=(1e-6, 1e6))
    gradient, after = clipping.step(np.zeros((0, 40)), expected=4, bits=seeded(6))
    own = gradient**2 - (clipping.scale * 2 / 4) ** 2
    assert (own < 0).any()
    assert (own > 0).any()
    assert after.variance == pytest.approx(0.25 * clipping.variance + 0.75 * np.maximum(own, 1e-6))
    assert after.center == pytest.approx(0.5 * gradient)


def test_scales_give_quiet_entries_less_noise() -> None:
    clipping, random = CoordinateClipping(2, 1.0, variances=(1e-4, 1e4)), np.random.default_rng(4)
    for step in range(100):
        rows = np.tile(random.choice([-1, 1]) * np.array([1.0, 1e-3]), (200, 1))
        clipping = clipping.step(rows, expected=200, bits=seeded(step))[1]
    assert clipping.scale == pytest.approx([1.0, 0.1], rel=0.3)


@pytest.mark.parametrize("nu", [0.7, 1.0, 4.0])
def test_steps_cost_no_more_than_the_plan_that_they_are_for(nu: Any) -> None:
    split = hs.calibration.joint_noise(nu, inflation=1.01)
    noise = hs.calibration.clipping_noise(nu, bit_noise=10 * nu)
    for clipping in (by_quantile(1, noise, 10 * nu), online(1, split.gradient, split.query)):
        spent = hs.epsilon(hs.PoissonSubsampled(clipping.mechanism, 0.02) ** 50, 1e-5)
        plan = hs.epsilon(hs.DPSGD(rate=0.02, steps=50, noise_multiplier=nu), 1e-5)
        assert plan.lower * (1 - 1e-9) <= spent.upper <= plan.upper * (1 + 1e-9)


def test_noise_of_the_bits_as_of_their_sum_in_zeros_and_ones_would_cost_more() -> None:
    """With bits 0 and 1 the sensitivity is 1: noise of s is then half as much."""
    own = by_quantile(1, 1.0, 0.6).mechanism
    assert hs.epsilon(own, 1e-5).upper < hs.epsilon(JointGaussian((1.0, 0.6)), 1e-5).lower


def test_layers_move_together_and_each_has_the_noise_of_its_norm() -> None:
    rows = [np.array([[9.0, 9.0]]), np.array([[0.0, -7.0]])]
    none = [np.zeros((0, 2)), np.zeros((0, 2))]
    clean = JointGaussian((0, 0))
    pair = [layered_sum(clean, one, norms=[0.5, 3]) for one in (rows, none)]
    moved = [float(np.linalg.norm(a - b)) for a, b in zip(*pair, strict=True)]
    assert moved == pytest.approx([0.5, 3], rel=1e-5)
    assert moved[0] <= 0.5
    assert moved[1] <= 3
    wide = [np.zeros((3, 3000)), np.zeros((3, 2000))]
    drawn = layered_sum(JointGaussian((2, 6)), wide, norms=[0.5, 3], bits=seeded(4))
    assert usual(((drawn[0] / (2 * 0.5)) ** 2).sum(), 3000)
    assert usual(((drawn[1] / (6 * 3)) ** 2).sum(), 2000)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_without_a_length_counts_as_nothing(bad: Any) -> None:
    rows = np.array([[0.5, 0.25], [bad, 1.0]])
    assert np.array_equal(
        online().step(rows, expected=1)[0], online().step(rows[:1], expected=1)[0]
    )
    gradient, after = by_quantile().step(rows, expected=1)
    assert gradient == pytest.approx([0.5, 0.25], abs=1e-5)
    assert share_of(by_quantile(), after) == pytest.approx(0.5)
    still = CoordinateClipping(2, 0.0).step(rows[1:], expected=1)[0]
    assert still.tolist() == [0, 0]


def test_a_norm_stays_one_that_can_be_clipped_to() -> None:
    clipping = by_quantile(norm=1e-24, step_size=10.0)
    assert clipping.step(np.zeros((9, 1)), expected=1)[1].norm == pytest.approx(1e-24)
    assert clipping.step(np.zeros((9, 1)), expected=1)[0].tolist() == [0]


ONE: Any = (1,)
WRONG: Any = [
    (lambda: QuantileClipping(0, 0.5, 1, 1), "norm"),
    (lambda: QuantileClipping(1, 1.5, 1, 1), "quantile"),
    (lambda: QuantileClipping(1, 0.5, -1, 1), "gradient_noise"),
    (lambda: QuantileClipping(1, 0.5, 1, math.inf), "bit_noise"),
    (lambda: QuantileClipping(1, 0.5, 1, 1, 11), "step_size"),
    (lambda: OnlineClipping(1, 0, 1, 1), "learning_rate"),
    (lambda: OnlineClipping(1, 1, 1, math.nan), "direction_noise"),
    (lambda: CoordinateClipping(0, 1), "dimension"),
    (lambda: CoordinateClipping(2, 1, variances=(1, 0.5)), "variances"),
    (lambda: CoordinateClipping(2, 1, decays=ONE), "decays"),
    (lambda: by_quantile().step([1.0], expected=1), "gradients"),
    (lambda: by_quantile().step([[1.0]], expected=0), "expected"),
    (lambda: by_quantile(step_size=0).step([[1.0]], expected=1e-310), "expected"),
    (lambda: online().step([[1.0]], expected=1)[1].step([[1.0, 2.0]], expected=1), "gradients"),
    (lambda: CoordinateClipping(2, 1).step([[1.0]], expected=1), "gradients"),
    (lambda: layered_sum(JointGaussian((1, 1)), [[[1.0]]], norms=[1, 1]), "layers"),
    (lambda: layered_sum(JointGaussian((1, 1)), [[[1.0]], [[1.0]] * 2], norms=[1, 1]), "layers"),
    (lambda: layered_sum(JointGaussian((1,)), [[[1.0]]], norms=[1, 1]), "norms"),
    (
        lambda: layered_sum(JointGaussian((math.inf,)), [[[1.0]]], norms=[1], bits=none_left),
        "mechanism",
    ),
]


@pytest.mark.parametrize(("wrong", "name"), WRONG)
def test_bad_input_is_refused(wrong: Any, name: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}"):
        wrong()


def test_released_sums_are_multiples_of_a_unit_that_knows_no_data() -> None:
    gradient, _ = by_quantile(noise=1.5).step([[0.1, 1 / 3]], expected=1)
    steps = gradient * UNITS / 2.0
    assert np.array_equal(steps, np.rint(steps))


PRUNED = [randomly_pruned_sum, selective_sum]
SILENT = hs.Gaussian(0)
ROWS = st.lists(st.lists(st.floats(-20, 20), min_size=4, max_size=4), min_size=1, max_size=4).map(
    np.array
)


@settings(max_examples=100)
@given(rows=ROWS, norm=st.floats(1e-2, 1e2), seed=st.integers(0, 9))
def test_an_example_moves_a_randomly_pruned_sum_by_at_most_the_norm(
    rows: Any, norm: Any, seed: Any
) -> None:
    pair = [
        randomly_pruned_sum(SILENT, one, norm=norm, keep=0.5, bits=seeded(seed))
        for one in (rows, rows[1:])
    ]
    assert float(np.linalg.norm(pair[0] - pair[1])) <= norm * (1 + 1e-12)


def test_a_long_example_moves_it_by_the_norm_wherever_it_is_kept() -> None:
    for seed in range(20):
        found = randomly_pruned_sum(
            SILENT, np.full((1, 9), 5.0), norm=2, keep=0.3, bits=seeded(seed)
        )
        assert np.count_nonzero(found) == 3
        assert float(np.linalg.norm(found)) == pytest.approx(2, abs=1e-5)


def test_the_coordinates_are_those_of_the_bits_whatever_the_gradients_are() -> None:
    rows = [np.ones((3, 20)), np.random.default_rng(1).normal(size=(5, 20)), np.ones((1, 20))]
    kept = {
        tuple(np.flatnonzero(randomly_pruned_sum(SILENT, one, norm=1, keep=0.25, bits=seeded(4))))
        for one in rows
    }
    assert len(kept) == 1
    counts = np.zeros(20)
    for seed in range(1000):
        found = randomly_pruned_sum(SILENT, rows[0], norm=1, keep=0.25, bits=seeded(seed))
        counts += found != 0
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("release", PRUNED)
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
        np.flatnonzero(selective_sum(SILENT, one, norm=1, keep=0.5)).tolist()
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
