"""What pages show of an answer, in words."""

from __future__ import annotations

import math
from typing import Final

from hockeystick.answers.cautions import Units, reservation
from hockeystick.answers.decisions import Decision
from hockeystick.numerics.numerals import at_most, formatted_up, interval, plain

_FEW_DIGITS: Final = 4
_LARGEST_POWER: Final = 700.0
_READABLE: Final = 1e7


def headline(upper: float, delta: float) -> str:
    """Return the number to quote, with its delta."""
    bound = "has no bound" if upper == math.inf else f"≤ {at_most(upper)}"
    return f"epsilon {bound} at delta = {plain(delta)}"


def claimed(lower: float, upper: float, delta: float) -> str:
    """Return both proven ends as the end of a sentence."""
    low, high = interval(lower, upper)
    least = "and exactly that" if low == high else f"and at least {low}"
    return f"epsilon is at most {at_most(upper)} at delta = {plain(delta)}, {least}"


def proven(lower: float, upper: float) -> str:
    """Return the interval in full digits."""
    low, high = interval(lower, upper)
    return f"exactly {high}" if low == high else f"from {low} to {high}"


def meaning(lower: float, upper: float, delta: float) -> str:
    """Return what the headline bounds."""
    if lower == math.inf:
        return "No epsilon is enough at this delta."
    if upper == math.inf:
        return "No finite epsilon is proven to be enough at this delta."
    if upper > _LARGEST_POWER:
        return "With e^epsilon above 10^300, this is no protection that anyone could measure."
    power = math.exp(upper) * (1.0 + 2.0**-40) if upper else 1.0
    factor = at_most(power, _FEW_DIGITS) if power < _READABLE else formatted_up(power, ".2e")
    besides = f", plus {plain(delta)}" if delta else ""
    return (
        f"Any outcome of the release has on one data set at most {factor} (= e^epsilon) times the "
        f"probability that it has on a neighbouring one{besides}."
    )


def within_budget(decision: Decision, budget: float, delta: float, units: Units | None) -> str:
    """Return whether the headline is within a budget, and why that says little, as a sentence."""
    limit = f"epsilon at most {plain(budget)} at delta = {plain(delta)}"
    but = reservation(delta, units)
    return {
        Decision.MEETS: f"Meets the budget: {limit}{but and f', but {but}'}.",
        Decision.MISSES: f"Misses the budget: {limit}.",
        Decision.UNDECIDED: f"Not proven to meet the budget: {limit} lies between the proven ends.",
    }[decision]
