"""Sums of few values, windows, and tails apart from the bulk, against the same sums in full."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.prv.discretise import TiltedMasses, _coarsen, window
from hockeystick.accountants.prv.lattice import Bulk
from hockeystick.accountants.prv.sums import (
    PointMasses,
    SplitMasses,
    combinations,
    composed_masses,
    convolved,
    split_masses_of,
    tail_absolute_error,
)
from hockeystick.privacy_loss import CellLoss, RandomizedResponsePairLoss, dominating_pair


def loss_of(plan: hs.Mechanism) -> CellLoss:
    loss = dominating_pair(plan).removing
    assert isinstance(loss, CellLoss)
    return loss


@pytest.mark.parametrize(
    ("plan", "runs", "most"),
    [
        (hs.DiscreteGaussian(2.5), 7, 1000),
        (hs.mechanisms.Skellam(4.0), 3, 10_000),
        (hs.Laplace(2.0), 3, 10_000),
    ],
)
def test_many_or_uneven_values_are_not_listed(plan: hs.Mechanism, runs: int, most: int) -> None:
    assert convolved(loss_of(plan), runs, 1.0, most=most) is None


def test_what_comes_near_underflow_is_left_out_and_counted() -> None:
    found = convolved(loss_of(hs.DiscreteGaussian(0.7)), 6, 1.0, most=3000)
    assert found is not None
    assert found.mass[found.mass > 0.0].min() > 1e-296
    assert found.mass[0] == 0.0
    assert found.omitted_mass > 0.0


THREE = {1.0: math.exp(1.0), 0.0: 1.0, -1.0: 1.0}
TOTAL = sum(THREE.values())


def by_sequences(count: int, rest: tuple[float, float], epsilon: float) -> float:
    """Return delta of ternary response and one binary one, over every sequence of outcomes."""
    own, win = rest
    delta = 0.0
    for outcomes in itertools.product(THREE, repeat=count):
        p = math.prod(THREE[one] / TOTAL for one in outcomes)
        for loss, q in ((own, win), (-own, 1.0 - win)):
            delta += p * q * max(-math.expm1(epsilon - sum(outcomes) - loss), 0.0)
    return delta


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 1.7, 3.2])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_combinations_are_what_every_sequence_adds_up_to(count: int, epsilon: float) -> None:
    plan = hs.RandomizedResponse(1.0, 3) ** count @ hs.PureDP(0.3)
    exact = by_sequences(count, (0.3, 1.0 / (1.0 + math.exp(-0.3))), epsilon)
    found = hs.delta(plan, epsilon, accountant="prv")
    assert found.lower <= exact * (1.0 + 1e-12)
    assert exact * (1.0 - 1e-12) <= found.upper
    assert found.relative_width <= 1e-11


def test_far_from_where_it_is_tilted_to_the_upper_end_is_loose_not_wrong() -> None:
    terms: list[tuple[CellLoss, int]] = [
        (RandomizedResponsePairLoss(0.5), 2),
        (RandomizedResponsePairLoss(0.3), 1),
    ]
    steep = combinations(terms, 1e6)
    assert steep is not None
    assert steep.upper(0.0) >= 0.0
    assert steep.lower(0.0) == -math.inf


def rough(points: int, seed: int) -> TiltedMasses:
    rng = np.random.default_rng(seed)
    weight = rng.random(points) ** 8 * (rng.random(points) < 0.7)
    weight[points // 2] += 1.0
    return TiltedMasses(0.1, -points // 3, weight / weight.sum(), 0.0, 0.0, np.zeros(0), 0.0, 0.0)


@pytest.mark.parametrize("points", [1, 3, 256, 257, 4097])
def test_knots_keep_the_mass_and_the_mean_and_widen(points: int) -> None:
    one, step = rough(points, points), 0.01
    at, weight = _coarsen(one, step, 256)
    own = one.offset + step * (one.first + np.arange(points))
    assert weight.sum() == pytest.approx(1.0, rel=1e-13)
    assert (weight * at).sum() == pytest.approx((one.weight * own).sum(), rel=1e-12, abs=1e-14)
    for s in (-8.0, -1.0, 2.0, 10.0):
        assert (weight * np.exp(s * at)).sum() >= (one.weight * np.exp(s * own)).sum() * (1 - 1e-13)


def test_short_losses_in_groups_are_off_by_no_more_than_is_said() -> None:
    parts = [rough(points, points) for points in range(3, 63, 2)]
    found = composed_masses([(one, 1) for one in parts], 4096, 0)
    assert isinstance(found, PointMasses)
    exact = reduce(np.convolve, (one.weight.astype(np.longdouble) for one in parts))
    truth = np.roll(np.pad(exact, (0, 4096 - exact.size)), sum(one.first for one in parts))
    assert float(np.linalg.norm(found.mass - truth)) < found.round_off < 1e-12


@pytest.mark.parametrize("count", [1, 4, 40])
@pytest.mark.parametrize("log_outside", [-2.0, -12.0])
@pytest.mark.parametrize(("offset", "step"), [(0.1, 0.01), (1000.0, 1e-7)])
def test_no_more_than_asked_lies_outside(
    count: int, log_outside: float, offset: float, step: float
) -> None:
    one, other = (replace(rough(*two), offset=offset) for two in ((90, 1), (1500, 2)))
    found = window([(one, count), (other, 2)], step, log_outside)
    total = np.ones(1)
    for weights, times in ((one, count), (other, 2)):
        for _ in range(times):
            total = np.convolve(total, weights.weight)
    first = count * one.first + 2 * other.first
    at = (count + 2) * offset + step * (first + np.arange(total.size))
    outside = total[(at < found.low - 1e-9) | (at > found.high + 1e-9)].sum()
    assert outside <= found.outside * (1 + 1e-9) + 1e-15
    assert found.outside <= 2.0 * math.exp(log_outside) * (1.0 + 1e-5)


def test_rare_large_losses_need_no_wider_window_than_a_few_of_them() -> None:
    weight = np.zeros(50_001)
    weight[[1, -1]] = 1e-6, 1e-11
    weight[0] = 1.0 - weight.sum()
    one = replace(rough(90, 1), offset=0.0, first=0, weight=weight)
    found = window([(one, 36_000)], 1e-4, -31.5)
    assert 5.0 <= found.high <= 20.0


SPACING = 0.01
# What falls on points from here on is large.
LARGE = 30


def weights(seed: int, rarity: float, off: float = 0.0) -> TiltedMasses:
    """Return rough masses on some points, of which those from LARGE on are rare."""
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 1.5, 60) * np.where(np.arange(60) < LARGE, 1.0, rarity)
    weight[LARGE:] *= np.exp(-0.2 * np.arange(60 - LARGE))
    weight /= weight.sum()
    # A loss that starts below 0, so that the threshold is a loss of 25 steps.
    offs = np.full(60, off) if off else np.zeros(0)
    return TiltedMasses(0.0, -5, weight, 0.0, 1e-15, offs, 0.0, 0.0)


THRESHOLD = (LARGE - 5 - 0.5) * SPACING


def split_masses(terms: Sequence[tuple[TiltedMasses, int]]) -> list[SplitMasses]:
    return split_masses_of(terms, SPACING, THRESHOLD)


def outcomes(parts: Sequence[SplitMasses]) -> tuple[Any, Any]:
    """Return all outcomes of a composition, and those without a large loss, as fractions."""

    def exact(weight: Any) -> Any:
        return np.array([Fraction(one) for one in weight.tolist()], dtype=object)

    runs = [(small, large) for small, large, count in parts for _ in range(count)]
    everything = [exact(small.weight + large.weight) for small, large in runs]
    return reduce(np.convolve, everything), reduce(np.convolve, [exact(s.weight) for s, _ in runs])


def contribution(parts: Sequence[SplitMasses], tilt: float, epsilon: float) -> float:
    """Return what outcomes without a large loss contribute to delta."""
    without = outcomes(parts)[1].astype(float)
    at = SPACING * (np.arange(without.size) - 5 * sum(part.runs for part in parts))
    above = at > epsilon
    mass = without[above] * np.exp(-tilt * at[above])
    return float((mass * -np.expm1(epsilon - at[above])).sum())


def test_every_mass_is_on_one_side_of_the_threshold() -> None:
    one = weights(4, 0.1, 1e-9)
    low, high = one.split(SPACING, THRESHOLD)
    assert np.array_equal(low.weight + high.weight, one.weight)
    assert np.array_equal(low.absolute_errors + high.absolute_errors, one.absolute_errors)
    assert np.flatnonzero(low.weight).max() == LARGE - 1
    assert np.flatnonzero(high.weight).min() == LARGE


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("part", [slice(None, LARGE), slice(LARGE, None)], ids=["bulk", "tail"])
def test_errors_of_either_part_change_the_mass_by_no_more_than_is_said(
    part: slice, side: float
) -> None:
    runs, off = 7, 1e-4
    one = weights(1, 0.2)
    offs = np.zeros(60)
    offs[part] = off
    moved = replace(one, weight=one.weight + side * offs)
    masses = [
        float(each.weight.sum()) ** runs - float(each.weight[:LARGE].sum()) ** runs
        for each in (one, moved)
    ]
    allowed = tail_absolute_error(split_masses([(replace(one, absolute_errors=offs), runs)]))
    assert 0.1 * allowed < abs(masses[1] - masses[0]) <= allowed


def test_what_cannot_be_composed_is_bounded_by_chernoff_alone() -> None:
    parts = split_masses([(weights(3, 1e-3), 4)])
    bulk = Bulk(parts, SPACING, 2.0, lambda masses, order: None)
    assert bulk.upper(0.3, -math.inf) >= math.log(contribution(parts, 2.0, 0.3))
    assert bulk.lower(0.3, -math.inf) == -math.inf
