"""Answers held against what is known: an end on the wrong side of the truth is a violation."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.judge.profiles import gaussian, mp
from tests.judge.truths import Truth

# What a float's reading as a decimal, and the last place of a float, may change.
CLOSE = 1e-13
# Fifty digits cancel to no less than this.
NOTHING = 1e-44
EPSILONS = (0.0, 0.0625, 0.25, 0.5, 1.0, 1.75, 3.0, 5.0, 8.0, 20.0)
ORDERS = (1.001, 1.125, 1.5, 1.96875, 2.0, 3.0, 4.0, 7.0, 8.0, 16.0, 31.0, 100.0)
RATES = (1e-6, 0.001, 0.0625, 0.25, 0.5, 0.75, 0.96875)


@dataclass
class Verdict:
    """Which ends of a question's answer were judged, and what was wrong with them."""

    line: str = ""
    refused: bool = False
    upper: bool = False
    lower: bool = False
    faults: list[str] = field(default_factory=list)

    def never_below(self, claimed: Any, truth: Any, what: str) -> None:
        """An upper end and a number that the truth is not below."""
        self.upper = True
        if math.isnan(claimed) or claimed < truth * (1 - CLOSE) - NOTHING:
            self.faults.append(f"{what}: upper end {_shown(claimed)}, truth >= {_shown(truth)}")

    def never_above(self, claimed: Any, truth: Any, what: str) -> None:
        """A lower end and a number that the truth is not above."""
        self.lower = True
        if math.isnan(claimed) or claimed > truth * (1 + CLOSE) + NOTHING:
            self.faults.append(f"{what}: lower end {_shown(claimed)}, truth <= {_shown(truth)}")

    def ordered(self, lower: Any, upper: Any, what: str) -> None:
        if not lower <= upper:
            self.faults.append(f"{what}: lower end {_shown(lower)} above upper end {_shown(upper)}")


def _shown(value: Any) -> str:
    return str(mp.nstr(value, 17)) if isinstance(value, mp.mpf) else repr(float(value))


Curve = Callable[[float], Any]


def delta(verdict: Verdict, what: Truth, epsilon: float, ends: tuple[Any, Any]) -> None:
    lower, upper = ends
    verdict.ordered(lower, upper, f"delta({epsilon!r})")
    verdict.never_below(upper, what.lower(epsilon), f"delta({epsilon!r})")
    if what.bounded:
        verdict.never_above(lower, what.upper(epsilon), f"delta({epsilon!r})")


def epsilon(verdict: Verdict, what: Truth, goal: float, ends: tuple[Any, Any]) -> None:
    """An interval of epsilon at a delta: delta falls, so that delta there tells on which side."""
    lower, upper = ends
    verdict.ordered(lower, upper, f"epsilon({goal!r})")
    verdict.upper = True
    if math.isnan(upper) or upper < math.inf:
        there = what.lower(float(upper) * (1 + CLOSE))
        if not there <= goal * (1 + CLOSE) + NOTHING:
            verdict.faults.append(
                f"epsilon({goal!r}): upper end {_shown(upper)}, where delta >= {_shown(there)}"
            )
    if what.bounded:
        verdict.lower = True
        below = min(float(lower) * (1 - CLOSE), 1e6)
        if lower > 0 and what.upper(below) <= goal * (1 - CLOSE) - NOTHING * (goal > 0):
            verdict.faults.append(
                f"epsilon({goal!r}): lower end {_shown(lower)}, "
                f"where delta <= {_shown(what.upper(below))}"
            )


def _golden(value: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The least value of a convex function on an interval, nearly, and where."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    a, b = low, high
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    at_c, at_d = value(c), value(d)
    for _ in range(44):
        if at_c <= at_d:
            b, d, at_d = d, c, at_c
            c = b - ratio * (b - a)
            at_c = value(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + ratio * (b - a)
            at_d = value(d)
    return min((at_c, c), (at_d, d))


def power(curve: Curve, alpha: float) -> float:
    """The most true positives at a rate of false ones that delta allows, in either order.

    The least of ``delta(eps) + e^eps alpha`` over real eps, of which those below 0 are mirrored:
    ``1 - e^-eps (1 - alpha - delta(eps))``; either is convex in e^eps, or e^-eps.
    """

    def steep(x: float) -> float:
        return float(curve(x)) + math.exp(x) * alpha

    def flat(x: float) -> float:
        return 1.0 - math.exp(-x) * (1.0 - alpha - float(curve(x)))

    best = 1.0
    for one in (steep, flat):
        grid = [0.0, 0.03, 0.1, 0.3, 1.0, 2.0, 3.0, 4.5, 6.0, 9.0, 13.0, 18.0, 25.0, 40.0, 80.0]
        grid += [160.0, 320.0, 640.0]
        values = [one(x) for x in grid]
        place = values.index(min(values))
        low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
        best = min(best, *values, _golden(one, low, high)[0])
    return best


def tests(
    verdict: Verdict, what: Truth, alpha: float, ends: tuple[float, float], name: str
) -> None:
    """An interval of the misses f at a rate alpha. The least of a curve is found to 1e-9."""
    lower, upper = ends
    verdict.ordered(lower, upper, f"{name}({alpha!r})")
    most = power(what.lower, alpha)
    verdict.upper = True
    if math.isnan(lower) or 1.0 - lower < most * (1 - 1e-7) - 1e-9:
        verdict.faults.append(f"{name}({alpha!r}): f >= {lower!r}, truth <= {1.0 - most!r}")
    if what.bounded:
        verdict.lower = True
        least = power(what.upper, alpha)
        if math.isnan(upper) or 1.0 - upper > least * (1 + 1e-7) + 1e-9:
            verdict.faults.append(f"{name}({alpha!r}): f <= {upper!r}, truth >= {1.0 - least!r}")


def notion(verdict: Verdict, what: Truth, found: Any) -> None:
    """A guarantee by its definition: no attack exceeds it."""
    name = type(found).__name__
    judged = {"PureDP": _pure, "ApproxDP": _approximate, "GDP": _gaussian, "FDP": _function}
    judged.get(name, _divergences)(verdict, what, found)


def _pure(verdict: Verdict, what: Truth, found: Any) -> None:
    if found.epsilon < math.inf:
        reached = what.lower(found.epsilon * (1 + CLOSE))
        verdict.never_below(0.0, max(reached - 1e-40, 0), repr(found))


def _approximate(verdict: Verdict, what: Truth, found: Any) -> None:
    if found.epsilon < math.inf:
        verdict.never_below(found.delta, what.lower(found.epsilon * (1 + CLOSE)), repr(found))


def _gaussian(verdict: Verdict, what: Truth, found: Any) -> None:
    curve = gaussian(mp.mpf(found.mu) ** 2 * (1 + mp.mpf(CLOSE)))
    for e in EPSILONS:
        verdict.never_below(curve.delta(mp.mpf(e)), what.lower(e), f"{found!r} at {e}")


def _function(verdict: Verdict, what: Truth, found: Any) -> None:
    # Of an asymmetric f the inverse is for the other order.
    function = found.tradeoff.symmetrize()
    for e in EPSILONS[::2]:
        verdict.never_below(function.delta(e).upper, what.lower(e), f"FDP delta({e})")
    alphas = RATES[::2]
    for a, lower in zip(alphas, function(alphas), strict=True):
        tests(verdict, what, a, (float(lower), 1.0), "FDP f")


def _divergences(verdict: Verdict, what: Truth, found: Any) -> None:
    for order, limit in _limits(found):
        allowed = limit * (1 + 1e-9) + 1e-12
        verdict.never_below(allowed, what.renyi(order), f"{found!r} at order {order}")


def _limits(found: Any) -> list[tuple[float, float]]:
    """What a guarantee by Renyi divergences allows at some orders."""
    if hasattr(found, "divergences"):
        return list(found.divergences)
    omega = getattr(found, "omega", math.inf)
    return [(a, found.rho * a) for a in ORDERS if a < omega]


def least(verdict: Verdict, what: Truth, found: Any) -> None:
    """A conversion that is said to be exact: nothing smaller holds, so the truth reaches it."""
    if not what.bounded or found.origin is None or found.origin.kind != "exact":
        return
    name = type(found).__name__
    if name == "ApproxDP" and 0.0 < found.epsilon < math.inf:
        claimed = found.delta * (1 - 1e-6) - 1e-12
        verdict.never_above(claimed, what.upper(found.epsilon * (1 - 1e-6)), f"exact {found!r}")
    if name == "PureDP" and 0.0 < found.epsilon < math.inf:
        verdict.lower = True
        if what.upper(found.epsilon * (1 - 1e-6)) == 0:
            verdict.faults.append(f"{found!r} is said to be exact, and less holds")
    if name == "GDP" and found.mu > 1e-3:
        verdict.lower = True
        curve = gaussian(mp.mpf(found.mu * (1 - 1e-4)) ** 2)
        if all(what.upper(e) < curve.delta(mp.mpf(e)) for e in EPSILONS[:8]):
            verdict.faults.append(f"{found!r} is said to be exact, and less holds")
