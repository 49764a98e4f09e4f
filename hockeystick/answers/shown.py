"""What a page shows of an answer, and whether it is the answer that it holds."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from hockeystick.answers.cautions import Units, reservation, units_of
from hockeystick.answers.decisions import Decision
from hockeystick.answers.page_text import Seen, spaced
from hockeystick.answers.wording import in_words
from hockeystick.calibration import read_description
from hockeystick.errors import HockeystickError
from hockeystick.numerics.numerals import at_most, formatted_up, interval, plain

_FEW_DIGITS: Final = 4
_LARGEST_POWER: Final = 700.0
_READABLE: Final = 1e7
_LIMIT: Final = re.compile(r"epsilon at most (\S+) at delta")
_COUNT: Final = re.compile(r"not below 1 / (\d[\d,]*)\.")
_NO_MARKS: Final = (
    "the page does not mark what it shows of its answer: it was altered, or written by another "
    "version; write it again"
)


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


def filled(page: str) -> dict[str, str]:
    """Return what people wrote into the blanks of a page, by their names; empty ones are left out.

    Example:
        >>> from hockeystick.answers.shown import filled
        >>> filled('<p data-blank="Date">31 <b>May</b></p><p data-blank="Comment"></p>')
        {'Date': '31 May'}
    """
    return Seen(page).filled


def altered(page: str, answer: str) -> tuple[str, ...]:
    """Return what a page shows that is not the answer that it holds; nothing where all agrees.

    What the answer determines is made again and compared: the headline, both ends, what they mean,
    the plan's words, and whether a budget is met. All other text is compared with a digest, but for
    what people wrote into the page's blanks, such as who approves it.

    Guarantees:
        None against whoever means to deceive: styles and scripts can hide what is compared, and a
        digest can be made anew. What it finds is altered indeed, or of another version.

    Args:
        page: A report, as HTML.
        answer: The document that it holds, as text in JSON.
    """
    seen = Seen(page)
    try:
        wanted = _wanted(json.loads(answer))
    except (KeyError, TypeError, ValueError, HockeystickError):
        return ("the answer inside is not an epsilon of a plan, as a report has it",)
    if not seen.marked:
        return (_NO_MARKS,)
    found = [_difference(name, seen.of(name), texts) for name, texts in wanted.items()]
    found.append(_difference_of_budget(seen.of("budget"), json.loads(answer)))
    reasons = tuple(one for one in found if one)
    return reasons or tuple(filter(None, [seen.alteration]))


def _wanted(answer: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what a page has to show under each mark."""
    lower, upper = float(answer["lower"]), float(answer["upper"])
    delta = float(answer["at"]["delta"])
    bounded = {"claim": [claimed(lower, upper, delta)]} if upper < math.inf else {}
    return {
        "headline": [headline(upper, delta)],
        **bounded,
        "meaning": [meaning(lower, upper, delta)],
        "interval": [proven(lower, upper)],
        "plan": list(in_words(read_description(answer["description"]))),
    }


def _difference(name: str, shown: list[str], wanted: list[str]) -> str:
    """Return how what is shown under a mark differs from the answer; nothing where it does not."""
    if shown == [spaced(one) for one in wanted]:
        return ""
    says = "; ".join(shown) or "nothing"
    return f"as its {name} the page shows {says!r}; the answer inside says {'; '.join(wanted)!r}"


def _difference_of_budget(shown: list[str], answer: Mapping[str, Any]) -> str:
    """Return how the verdict on a budget differs from the answer; nothing where it does not."""
    if not shown:
        return ""
    limit = _LIMIT.search(" ".join(shown))
    try:
        budget = float(limit[1]) if limit else math.nan
    except ValueError:
        budget = math.nan
    lower, upper = float(answer["lower"]), float(answer["upper"])
    decision = Decision.MEETS if upper <= budget else Decision.UNDECIDED
    decision = Decision.MISSES if lower > budget else decision
    delta, units = float(answer["at"]["delta"]), _units(" ".join(shown), answer)
    return _difference("budget", shown, [within_budget(decision, budget, delta, units)])


def _units(shown: str, answer: Mapping[str, Any]) -> Units | None:
    """Return how many are protected: as the plan says it, or else, as of a group's, the page."""
    stated = _COUNT.search(shown)
    known = units_of(read_description(answer["description"]))
    return known or (Units(int(stated[1].replace(",", "")), "records") if stated else None)
