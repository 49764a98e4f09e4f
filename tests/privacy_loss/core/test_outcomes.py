"""Distributions over a few outcomes, alone and together: inside what rational enumeration says."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import pytest
from mpmath import mp

import hockeystick as hs
from hockeystick.notions import FDP
from hockeystick.tradeoffs import PiecewiseLinearTradeOff, discrete_tradeoff
from tests.oracles.outcomes import decimals, delta, knots, runs

Pair = tuple[Sequence[float], Sequence[float]]
ISSUE: Final[Pair] = ([0.2, 0.2, 0.6, 0.0], [0.5, 0.2, 0.0, 0.3])
PAIRS: Final[tuple[Pair, ...]] = (
    ISSUE,
    ([0.5, 0.5], [0.5, 0.5]),
    ([0.25, 0.25, 0.5], [0.25, 0.25, 0.5]),
    ([0.5, 0.5, 0.0], [0.5, 0.0, 0.5]),
    ([0.0, 1.0], [1.0, 0.0]),
    ([0.0, 1.0], [0.5, 0.5]),
    ([1.0, 0.0], [0.999, 0.001]),
    ([0.25, 0.75], [0.75, 0.25]),
    ([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]),
    ([0.999999, 0.000001], [0.9999, 0.0001]),
    ([0.5, 0.4999, 0.0001], [0.5, 0.5, 0.0]),
    ([0.3, 0.3, 0.4, 0.0], [0.3000001, 0.2999999, 0.39, 0.01]),
)
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=str)


def holds_delta(plan: hs.Mechanism, truth: Sequence[Any], epsilon: float, width: float) -> None:
    """Check delta at one epsilon: it holds the truth, and is narrow."""
    found, exact = hs.delta(plan, epsilon), delta(truth, mp.mpf(epsilon))
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower <= width * exact + 1e-12


def holds_epsilon(plan: hs.Mechanism, truth: Sequence[Any], goal: float) -> None:
    """Check epsilon at one delta, by the exact delta on either side."""
    found, asked = hs.epsilon(plan, goal), mp.mpf(repr(goal))
    close = mp.mpf(2) ** -52
    if found.upper < math.inf:
        assert delta(truth, mp.mpf(found.upper)) <= asked * (1 + close)
    if found.lower > 0.0:
        below = mp.inf if found.lower == math.inf else mp.mpf(found.lower) * (1 - mp.mpf(2) ** -60)
        assert delta(truth, below) >= asked * (1 - close)


@each_pair
@pytest.mark.parametrize("count", [1, 3, 5])
def test_delta_of_runs_is_what_enumeration_says(pair: Pair, count: int) -> None:
    with mp.workdps(60):
        truth = runs([decimals(side) for side in pair], count)
        plan = FDP(discrete_tradeoff(*pair)) ** count
        losses = [float(one) for one in knots(truth)]
        for epsilon in {
            0.0,
            0.1,
            1.0,
            3.0,
            20.0,
            *losses[:: max(len(losses) // 6, 1)],
            *losses[-1:],
        }:
            holds_delta(plan, truth, epsilon, 1e-4)


@each_pair
@pytest.mark.parametrize("count", [1, 3])
def test_epsilon_of_runs_is_what_enumeration_says(pair: Pair, count: int) -> None:
    with mp.workdps(60):
        truth = runs([decimals(side) for side in pair], count)
        plan = FDP(discrete_tradeoff(*pair)) ** count
        for goal in (0.0, 1e-9, 0.05, 0.55):
            holds_epsilon(plan, truth, goal)
        for loss in knots(truth)[-3:]:
            holds_epsilon(plan, truth, float(delta(truth, loss)))


def test_corners_of_a_polygon_are_outcomes_too() -> None:
    f = PiecewiseLinearTradeOff([0.25], [0.25])
    assert f.outcomes is not None
    with mp.workdps(60):
        truth = runs([decimals(side) for side in ((0.25, 0.75), (0.75, 0.25))], 3)
        for epsilon in (0.0, 0.5, 2.0, 3.0):
            holds_delta(FDP(f) ** 3, truth, epsilon, 1e-9)


def test_numbers_far_from_a_sum_of_one_are_taken_over_it() -> None:
    third = [1 / 3] * 3
    f = discrete_tradeoff(third, [0.5, 0.25, 0.25])
    with mp.workdps(60):
        truth = runs(([Fraction(1, 3)] * 3, [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]), 4)
        for epsilon in (0.0, 0.5, 1.0):
            found, exact = hs.delta(FDP(f) ** 4, epsilon), delta(truth, mp.mpf(epsilon))
            assert found.lower * (1 - 1e-14) <= exact <= found.upper * (1 + 1e-14)
