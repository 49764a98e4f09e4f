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
from tests.release.bits import seeded

SIZE = 50
SILENT = hs.Gaussian(0)
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
def test_an_example_moves_the_sums_by_what_the_noise_is_for(rows: Any, norm: Any) -> None:
    """The sum by the norm, bits by half, directions by one, and all by no more."""
    length = float(np.linalg.norm(rows[0]))
    for clipping in (by_quantile(norm), online(norm)):
        pair = [clipping.step(one, expected=SIZE) for one in (rows, rows[1:])]
        moved = float(np.linalg.norm(pair[0][0] - pair[1][0])) * SIZE
        assert moved <= norm * (1 + 1e-12)
        assert moved == pytest.approx(min(length, norm), abs=1e-5 * norm)
        if isinstance(clipping, QuantileClipping):
            shares = [share_of(clipping, after) * SIZE for _, after in pair]
            assert abs(shares[0] - shares[1]) == pytest.approx(0.5, abs=1e-9)
        else:
            directions = [after._before[1] * SIZE for _, after in pair]
            turned = float(np.linalg.norm(directions[0] - directions[1]))
            assert turned <= 1
            assert turned == pytest.approx(float(length > norm), abs=1e-5)
    kept = [
        randomly_pruned_sum(SILENT, one, norm=norm, keep=0.5, bits=seeded(3))
        for one in (rows, rows[1:])
    ]
    assert float(np.linalg.norm(kept[0] - kept[1])) <= norm * (1 + 1e-12)


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


def noises() -> list[Any]:
    """Return the noise of each sum that has 4000 entries, over what is charged for it."""
    none = np.zeros((0, 4000))
    pruned: dict[str, Any] = {"norm": 0.5, "keep": 1.0}
    quantile, descending = by_quantile(noise=3, bit_noise=4), online(noise=3, direction_noise=21)
    assert quantile.mechanism == JointGaussian((3, 8))
    assert descending.mechanism == JointGaussian((3, 21))
    gradient, after = descending.step(none, expected=SIZE, bits=seeded(2))
    scaled = CoordinateClipping(4000, 5.0)
    layers = layered_sum(JointGaussian((2, 6)), [none, none], norms=[0.5, 3], bits=seeded(4))
    return [
        quantile.step(none, expected=SIZE, bits=seeded(1))[0] * SIZE / (3 * 2),
        gradient * SIZE / (3 * 2),
        after._before[1] * SIZE / 21,
        scaled.step(none, expected=SIZE, bits=seeded(3))[0] * SIZE / scaled.scale / 5,
        randomly_pruned_sum(hs.Gaussian(3), none, bits=seeded(2), **pruned) / 1.5,
        selective_sum(hs.Gaussian(3), none, bits=seeded(2), **pruned) / 1.5,
        layers[0] / (2 * 0.5),
        layers[1] / (6 * 3),
    ]


def test_the_noise_of_the_sums_is_what_the_mechanisms_say() -> None:
    for noise in noises():
        assert usual((noise**2).sum(), 4000)


def test_the_noise_of_the_bits_is_what_the_mechanism_says() -> None:
    clipping = by_quantile(noise=3, bit_noise=4)
    rows = np.zeros((20, 1))  # all within the norm, so that the sum of bits is 10
    shares = [
        share_of(clipping, clipping.step(rows, expected=SIZE, bits=seeded(k))[1])
        for k in range(400)
    ]
    bits = (np.array(shares) - 0.5) * SIZE - 10
    # in halves, the noise of 8 is rounded to integers, which adds 1/12
    assert usual((bits**2).sum() * 4 / (64 + 1 / 12), 400)


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


def test_layers_move_together_and_each_by_its_norm() -> None:
    rows = [np.array([[9.0, 9.0]]), np.array([[0.0, -7.0]])]
    none = [np.zeros((0, 2)), np.zeros((0, 2))]
    clean = JointGaussian((0, 0))
    pair = [layered_sum(clean, one, norms=[0.5, 3]) for one in (rows, none)]
    moved = [float(np.linalg.norm(a - b)) for a, b in zip(*pair, strict=True)]
    assert moved == pytest.approx([0.5, 3], rel=1e-5)
    assert moved[0] <= 0.5
    assert moved[1] <= 3


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
]


@pytest.mark.parametrize(("wrong", "name"), WRONG)
def test_bad_input_is_refused(wrong: Any, name: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}"):
        wrong()


def test_the_coordinates_are_those_of_the_bits_whatever_the_gradients_are() -> None:
    rows = [np.ones((3, 20)), np.random.default_rng(1).normal(size=(5, 20)), np.ones((1, 20))]
    kept = {
        tuple(np.flatnonzero(randomly_pruned_sum(SILENT, one, norm=1, keep=0.25, bits=seeded(4))))
        for one in rows
    }
    assert len(kept) == 1


def test_the_largest_of_the_noisy_sum_are_kept() -> None:
    rows = np.random.default_rng(3).normal(size=(6, 50))
    whole = selective_sum(hs.Gaussian(1), rows, norm=1, keep=1.0, bits=seeded(5))
    found = selective_sum(hs.Gaussian(1), rows, norm=1, keep=0.1, bits=seeded(5))
    kept = found != 0
    assert kept.sum() == 5
    assert np.array_equal(found[kept], whole[kept])
    assert np.abs(whole[~kept]).max() <= np.abs(whole[kept]).min()
