"""Distributions over a few outcomes, alone and together: inside what rational enumeration says."""

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import pytest
from mpmath import mp

import hockeystick as hs
from hockeystick.notions import FDP, ApproxDP
from hockeystick.tradeoffs import PiecewiseLinearTradeOff, discrete_tradeoff
from tests.oracles.outcomes import decimals, delta, knots, runs, together

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


def drawn(seed: int) -> Pair:
    """Two distributions over a few outcomes, in tenths to millionths, some of them impossible."""
    draw = random.Random(seed)
    size, parts = draw.randint(2, 5), 10 ** draw.randint(1, 6)

    def one() -> list[float]:
        cuts = sorted(draw.choice((0, draw.randint(0, parts))) for _ in range(size - 1))
        return [(b - a) / parts for a, b in zip([0, *cuts], [*cuts, parts], strict=True)]

    return one(), one()


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


@pytest.mark.parametrize("seed", range(24))
def test_any_two_distributions_together_with_another_guarantee(seed: int) -> None:
    pair, draw = drawn(seed), random.Random(seed)
    with mp.workdps(60):
        count = draw.randint(1, 4)
        truth = runs([decimals(side) for side in pair], count)
        plan: hs.Mechanism = FDP(discrete_tradeoff(*pair)) ** count
        if seed % 3 == 1:
            other = drawn(1000 + seed)
            truth = together(truth, runs([decimals(side) for side in other], 1))
            plan = plan @ FDP(discrete_tradeoff(*other))
        if seed % 3 == 2:
            fail, kept = mp.mpf("0.25"), mp.mpf("0.75") / (1 + mp.e)
            response = [(fail, 0), (0, fail), (kept * mp.e, kept), (kept, kept * mp.e)]
            truth = together(
                [
                    (mp.mpf(p.numerator) / p.denominator, mp.mpf(q.numerator) / q.denominator)
                    for p, q in truth
                ],
                response,
            )
            plan = plan @ ApproxDP(1.0, 0.25)
        for epsilon in (0.0, 0.03, 0.7, 2.5):
            holds_delta(plan, truth, epsilon, 1e-4)
        for goal in (1e-6, 0.1, 0.5):
            holds_epsilon(plan, truth, goal)


def test_a_hundred_runs_are_no_longer_known_by_a_bound_alone() -> None:
    found = hs.delta(
        FDP(discrete_tradeoff([0.5, 0.4999, 0.0001], [0.4, 0.5999, 0.0001])) ** 100, 1.0
    )
    assert found.upper - found.lower <= 1e-4 * found.upper


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


@pytest.mark.parametrize("accountant", ["closed-form", "contour", "prv", "rdp"])
@each_pair
def test_every_accountant_holds_the_truth(pair: Pair, accountant: str) -> None:
    with mp.workdps(60):
        truth = runs([decimals(side) for side in pair], 2)
        plan = FDP(discrete_tradeoff(*pair)) ** 2
        for epsilon in (0.0, 0.4, 2.0):
            try:
                found = hs.delta(plan, epsilon, accountant=accountant)
            except hs.errors.UnsupportedError:
                continue
            assert isinstance(found, hs.Certified)
            assert found.lower <= delta(truth, mp.mpf(epsilon)) <= found.upper
