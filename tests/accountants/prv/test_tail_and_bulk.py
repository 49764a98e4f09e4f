"""Tail and bulk: sums right to round-off of their own mass, and a bound on all others."""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from hockeystick.accountants.prv._discretise import TiltedMasses
from hockeystick.accountants.prv._tail_and_bulk import (
    Bulk,
    SplitMasses,
    absolute_error_of_large,
    mass_of_large,
    masses_with_large_loss,
    split_masses_of,
)
from hockeystick.accountants.prv._window import Truncation
from hockeystick.accountants.prv.accountant import split_tail
from hockeystick.accountants.prv.lattice import Lattice, LatticeTarget, _composed
from hockeystick.privacy_loss import CellLoss, GaussianLoss, SampledGaussianLoss

STEP = 0.01
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


THRESHOLD = (LARGE - 5 - 0.5) * STEP


def split_masses(terms: Sequence[tuple[TiltedMasses, int]]) -> list[SplitMasses]:
    return split_masses_of(terms, STEP, THRESHOLD)


def power(values: Sequence[Decimal], count: int) -> list[Decimal]:
    result = [Decimal(1)]
    for _ in range(count):
        result = product(result, values)
    return result


def product(a: Sequence[Decimal], b: Sequence[Decimal]) -> list[Decimal]:
    found = [Decimal(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] += x * y
    return found


def outcomes(parts: Sequence[SplitMasses]) -> tuple[list[Decimal], list[Decimal]]:
    """Return all outcomes of a composition, and those without a large loss."""
    everything, without = [Decimal(1)], [Decimal(1)]
    for small, large, count in parts:
        low = [Decimal(float(x)) for x in small.weight]
        both = [Decimal(float(x + y)) for x, y in zip(small.weight, large.weight, strict=True)]
        everything = product(everything, power(both, count))
        without = product(without, power(low, count))
    return everything, without


@pytest.mark.parametrize("rarity", [1e-3, 1e-12, 1e-40, 1e-200])
@pytest.mark.parametrize("counts", [(1,), (2,), (5,), (2, 3)])
def test_outcomes_with_a_large_loss_are_right_to_round_off_of_their_own_mass(
    counts: tuple[int, ...], rarity: float
) -> None:
    parts = split_masses([(weights(seed, rarity), count) for seed, count in enumerate(counts)])
    size = 512
    found = masses_with_large_loss(parts, size, (-5 * sum(counts)) % size)
    with localcontext() as context:
        context.prec = 260
        everything, without = outcomes(parts)
        truth = [float(a - b) for a, b in zip(everything, without, strict=True)]
    off = found.mass[: len(truth)] - truth
    assert math.hypot(*off, *found.mass[len(truth) :]) <= found.round_off
    assert found.round_off < 1e-10 * mass_of_large(parts)
    assert sum(truth) <= mass_of_large(parts)


def contribution(parts: Sequence[SplitMasses], tilt: float, epsilon: float) -> float:
    """Return what outcomes without a large loss contribute to delta."""
    with localcontext() as context:
        context.prec = 60
        without = np.array([float(x) for x in outcomes(parts)[1]])
    at = STEP * (np.arange(without.size) - 5 * sum(part.runs for part in parts))
    above = at > epsilon
    mass = without[above] * np.exp(-tilt * at[above])
    return float((mass * -np.expm1(epsilon - at[above])).sum())


def composed(weights: Sequence[tuple[TiltedMasses, int]], tilt: float) -> Lattice | None:
    """Return a composition on a lattice, without a split."""
    return _composed(weights, STEP, tilt, -60.0, None)


@pytest.mark.parametrize("tilt", [0.5, 5.0])
@pytest.mark.parametrize("off", [0.0, 1e-6])
def test_outcomes_without_a_large_loss_contribute_what_is_said(tilt: float, off: float) -> None:
    parts = split_masses([(weights(1, 1e-6, off), 3), (weights(2, 1e-6, off), 2)])
    bulk = Bulk(parts, STEP, tilt, composed)
    alone = Bulk(parts, STEP, tilt, lambda *_: None)
    most = [part._replace(small=_all_of(part.small)) for part in parts]
    slack = 1e-9 + 1e4 * off
    for epsilon in (0.1, 0.3, 0.6, 0.9):
        least, largest = (contribution(some, tilt, epsilon) for some in (parts, most))
        upper, lower = (math.exp(end(epsilon, -1000.0)) for end in (bulk.upper, bulk.lower))
        assert largest <= upper <= largest * (1.0 + slack)
        assert least * (1.0 - slack) <= lower <= largest
        assert largest <= math.exp(alone.upper(epsilon, -1000.0))
        assert alone.lower(epsilon, -1000.0) == -math.inf


@pytest.mark.parametrize("tilt", [-20.0, 0.1, 30.0])
def test_masses_of_another_tilt_are_the_same_losses(tilt: float) -> None:
    one = weights(6, 1e-3, 1e-9)
    at = STEP * (np.arange(60) - 5)
    found = one.retilted(STEP, 0.5, tilt)
    for mass, before in ((found.weight, one.weight), (found.absolute_errors, one.absolute_errors)):
        back = mass * np.exp(found.log_total - (tilt - 0.5) * at)
        assert back == pytest.approx(before, rel=1e-12)
    assert found.weight.sum() == pytest.approx(1.0)
    assert found.relative_error >= one.relative_error


def _all_of(one: TiltedMasses) -> TiltedMasses:
    more = one.absolute_errors if one.absolute_errors.size else np.zeros(one.weight.size)
    return TiltedMasses(one.offset, one.first, one.weight + more, 0.0, 0.0, np.zeros(0), 0.0, 0.0)


def test_every_mass_is_on_one_side_of_the_threshold() -> None:
    one = weights(4, 0.1, 1e-9)
    low, high = one.split(STEP, THRESHOLD)
    assert np.array_equal(low.weight + high.weight, one.weight)
    assert np.array_equal(low.absolute_errors + high.absolute_errors, one.absolute_errors)
    assert np.flatnonzero(low.weight).max() == LARGE - 1
    assert np.flatnonzero(high.weight).min() == LARGE


def test_what_may_be_off_by_anything_is_so_on_its_own_side_only() -> None:
    one = weights(5, 0.1, 1e-9)
    one.absolute_errors[0] = math.inf
    low, high = one.split(STEP, THRESHOLD)
    assert low.absolute_error == math.inf
    assert high.absolute_error < 1.0


def target(loss: CellLoss, count: int, delta: float, *, for_delta: bool = False) -> LatticeTarget:
    """Return a question as the accountant would ask it."""
    asked = (math.log(delta), 1.0, 1e-4, None, for_delta, Truncation(-math.inf))
    return LatticeTarget([(loss, count)], [(loss, count)], 1.0, *asked)


def test_nothing_is_split_where_no_loss_is_rare() -> None:
    often = target(SampledGaussianLoss(0.01, 1.0, removing=True), 1000, 0.01)
    usual = target(GaussianLoss(1.0), 10, 1e-3)
    assert split_tail(often, None) is None
    assert split_tail(usual, None) is None


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
    allowed = absolute_error_of_large(split_masses([(replace(one, absolute_errors=offs), runs)]))
    assert 0.1 * allowed < abs(masses[1] - masses[0]) <= allowed


def test_what_cannot_be_composed_is_bounded_by_chernoff_alone() -> None:
    parts = split_masses([(weights(3, 1e-3), 4)])
    bulk = Bulk(parts, STEP, 2.0, lambda masses, order: None)
    assert bulk.upper(0.3, -math.inf) >= math.log(contribution(parts, 2.0, 0.3))
    assert bulk.lower(0.3, -math.inf) == -math.inf
