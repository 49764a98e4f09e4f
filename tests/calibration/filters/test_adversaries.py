"""The best adaptive adversary of finite mechanisms, by enumeration: no filter lets it overspend.

Nothing here uses the library's accounting but what a filter charges and covers: losses of outcomes
are written down, and delta is the largest mean of ``(1 - e^(eps - L))_+`` over all strategies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Final

import pytest

import hockeystick as hs

Outcomes = tuple[tuple[float, float], ...]
# Each strategy is a sum of some thousand products of floats.
ROUNDING: Final = 1 + 1e-11


def answers(epsilon: float, rate: float = 1.0) -> Outcomes:
    """Return the outcomes ``(P, Q)`` of a sampled randomized response, its record removed."""
    high = 1.0 / (1.0 + math.exp(-epsilon))
    without = (1.0 - high, high)
    return tuple(
        ((1.0 - rate) * q + rate * p, q) for p, q in zip((high, 1.0 - high), without, strict=True)
    )


def reversed_order(outcomes: Outcomes) -> Outcomes:
    """Return the outcomes with the record added."""
    return tuple((q, p) for p, q in outcomes)


MENU: Final[tuple[tuple[hs.Mechanism, Outcomes], ...]] = (
    (hs.PureDP(0.25), answers(0.25)),
    (hs.PureDP(1.0), answers(1.0)),
    (hs.PoissonSubsampled(hs.RandomizedResponse(2.0), rate=0.2), answers(2.0, 0.2)),
    (hs.ApproxDP(0.5, 0.004), ((0.004, 0.0), *((0.996 * p, q) for p, q in answers(0.5)))),
)


def best_delta(
    spending: hs.calibration.Filter, menu: Sequence[tuple[hs.Mechanism, Outcomes]], epsilon: float
) -> tuple[float, int]:
    """Return the delta of the best strategy that a filter admits, and how long that may run."""
    measure = spending._measure
    costs = [measure.cost(mechanism) for mechanism, _ in menu]
    losses = [
        [(p, math.log(p / q) if q else math.inf) for p, q in outcomes if p] for _, outcomes in menu
    ]
    longest = 0

    @cache
    def value(runs: tuple[int, ...], seen: tuple[tuple[int, ...], ...]) -> float:
        """Return the largest mean from here; ``seen`` counts each mechanism's outcomes."""
        nonlocal longest
        longest = max(longest, sum(runs))
        pairs = zip(seen, losses, strict=True)
        total = math.fsum(
            count * loss
            for counts, one in pairs
            for count, (_, loss) in zip(counts, one, strict=True)
            if count
        )
        if total == math.inf:
            return 1.0
        best = max(-math.expm1(epsilon - total), 0.0)
        for k, outcomes in enumerate(losses):
            after = tuple(n + (j == k) for j, n in enumerate(runs))
            spent = tuple(
                sum((n * cost[i] for n, cost in zip(after, costs, strict=True)), Fraction(0))
                for i in range(len(costs[0]))
            )
            if measure.covers(spent):
                mean = math.fsum(
                    p * value(after, plus_one(seen, k, outcome))
                    for outcome, (p, _) in enumerate(outcomes)
                )
                best = max(best, mean)
        return best

    nothing = tuple((0,) * len(one) for one in losses)
    return value((0,) * len(menu), nothing), longest


def plus_one(
    seen: tuple[tuple[int, ...], ...], k: int, outcome: int
) -> tuple[tuple[int, ...], ...]:
    """Return the counts with one outcome more of the k-th mechanism."""
    counts = tuple(n + (j == outcome) for j, n in enumerate(seen[k]))
    return (*seen[:k], counts, *seen[k + 1 :])


EXPECTED: Final = MENU[2][0] ** 10
FILTERS: Final[tuple[Callable[[], hs.calibration.Filter], ...]] = (
    lambda: hs.calibration.Filter(hs.ApproxDP(1.5, 0.05), expected=EXPECTED),
    lambda: hs.calibration.Filter(hs.ApproxDP(1.5, 0.05), expected=EXPECTED, slack=0.03),
    lambda: hs.calibration.Filter(hs.ApproxDP(3.0, 0.02), expected=MENU[1][0] ** 3, slack=0.015),
    lambda: hs.calibration.Filter(hs.ApproxDP(1.5, 0.05)),
    lambda: hs.calibration.Filter(hs.ApproxDP(2.5, 0.05), slack=0.046, rule="whitehouse"),
)


@pytest.mark.parametrize("adding", [False, True])
@pytest.mark.parametrize("number", range(len(FILTERS)))
def test_no_strategy_that_a_filter_admits_exceeds_its_budget(number: int, adding: bool) -> None:
    spending = FILTERS[number]()
    budget: Any = spending.budget
    menu = [(one, reversed_order(pairs) if adding else pairs) for one, pairs in MENU]
    found, longest = best_delta(spending, menu, budget.epsilon)
    assert longest >= 3
    assert budget.delta / 100 < found <= budget.delta * ROUNDING


ODOMETERS: Final[tuple[Callable[[], hs.calibration.Odometer], ...]] = (
    lambda: hs.calibration.Odometer(0.2),
    lambda: hs.calibration.Odometer(0.2, expected=EXPECTED),
    lambda: hs.calibration.Odometer(0.05, expected=MENU[2][0] ** 40),
)


@pytest.mark.parametrize("adding", [False, True])
@pytest.mark.parametrize("number", range(len(ODOMETERS)))
def test_no_strategy_passes_an_odometer_more_often_than_delta(number: int, adding: bool) -> None:
    """The largest probability that the loss is ever above the bound, within some steps."""
    odometer, steps = ODOMETERS[number](), 9
    menu = [(one, reversed_order(pairs) if adding else pairs) for one, pairs in MENU[1:3]]
    costs = [odometer._lines.cost(mechanism) for mechanism, _ in menu]
    losses = [[(p, math.log(p / q)) for p, q in outcomes] for _, outcomes in menu]

    @cache
    def bound(runs: tuple[int, ...]) -> float:
        numbers = zip(*costs, strict=True)
        spent = tuple(
            sum((n * c for n, c in zip(runs, one, strict=True)), Fraction(0)) for one in numbers
        )
        # The sum of the largest losses is never passed: leave the mixture alone to be attacked.
        return odometer._lines.bound((spent[0], spent[1] + 1, *spent[2:]), odometer.delta)

    @cache
    def value(runs: tuple[int, ...], seen: tuple[tuple[int, ...], ...]) -> float:
        total = math.fsum(
            n * loss
            for counts, one in zip(seen, losses, strict=True)
            for n, (_, loss) in zip(counts, one, strict=True)
        )
        if total > bound(runs):
            return 1.0
        if sum(runs) == steps:
            return 0.0
        return max(
            math.fsum(
                p * value(tuple(n + (j == k) for j, n in enumerate(runs)), plus_one(seen, k, o))
                for o, (p, _) in enumerate(outcomes)
            )
            for k, outcomes in enumerate(losses)
        )

    found = value((0,) * len(menu), tuple((0,) * len(one) for one in losses))
    assert found <= odometer.delta * ROUNDING
    assert number != 1 or found > 0.7 * odometer.delta
