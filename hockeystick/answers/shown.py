"""What a page shows of an answer, and whether it is the answer that it holds."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any, Final

from hockeystick.answers.decisions import Decision
from hockeystick.answers.wording import in_words
from hockeystick.calibration import read_description
from hockeystick.errors import HockeystickError
from hockeystick.numerics.numerals import at_most, formatted_up, interval, plain

# The attribute that marks what the answer alone determines, and the name of the meta element with
# the digest of the page's text.
_MARK: Final = "data-shown"
_DIGEST: Final = "hockeystick-text"
_UNSET: Final = f'<meta name="{_DIGEST}" content="">'
_UNSEEN: Final = frozenset({"script", "style", "noscript", "template"})
_FEW_DIGITS: Final = 4
_LARGEST_POWER: Final = 700.0
_READABLE: Final = 1e7
_LIMIT: Final = re.compile(r"epsilon at most (\S+) at delta")
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


def within_budget(decision: Decision, budget: float, delta: float) -> str:
    """Return whether the headline is within a budget, as a sentence."""
    limit = f"epsilon at most {plain(budget)} at delta = {plain(delta)}"
    return {
        Decision.MEETS: f"Meets the budget: {limit}.",
        Decision.MISSES: f"Misses the budget: {limit}.",
        Decision.UNDECIDED: f"Not proven to meet the budget: {limit} lies between the proven ends.",
    }[decision]


def sealed(page: str) -> str:
    """Return a page with the digest of its text in the empty meta element that it has for it."""
    return page.replace(_UNSET, _UNSET.replace('content=""', f'content="{_digest(page)}"'), 1)


def altered(page: str, answer: str) -> tuple[str, ...]:
    """Return what a page shows that is not the answer that it holds; nothing where all agrees.

    What the answer determines is made again and compared: the headline, both ends, what they mean,
    the plan's words, and whether a budget is met. All other text is compared with a digest.

    Guarantees:
        None against whoever means to deceive: styles and scripts can hide what is compared, and a
        digest can be made anew. What it finds is altered indeed, or of another version.

    Args:
        page: A report, as HTML.
        answer: The document that it holds, as text in JSON.
    """
    seen = _Seen(page)
    try:
        wanted = _wanted(json.loads(answer))
    except (KeyError, TypeError, ValueError, HockeystickError):
        return ("the answer inside is not an epsilon of a plan, as a report has it",)
    if not seen.marked:
        return (_NO_MARKS,)
    found = [_difference(name, seen.of(name), texts) for name, texts in wanted.items()]
    found.append(_difference_of_budget(seen.of("budget"), json.loads(answer)))
    reasons = tuple(one for one in found if one)
    if not reasons and seen.digest != _digest(page):
        reasons = ("the text of the page is not what was written: some of it was altered",)
    return reasons


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
    if shown == [_spaced(one) for one in wanted]:
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
    return _difference(
        "budget", shown, [within_budget(decision, budget, float(answer["at"]["delta"]))]
    )


def _spaced(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def _digest(page: str) -> str:
    """Return the SHA-256 of a page's text without its white space."""
    text = "".join("".join(_Seen(page).texts).split())
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class _Seen(HTMLParser):
    """What a reader sees of a page: its text, and what is marked in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.marked: list[tuple[str, list[str]]] = []
        self.digest = ""
        self._unseen = 0
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def of(self, name: str) -> list[str]:
        """Return the texts under a mark."""
        return [_spaced("".join(parts)) for mark, parts in self.marked if mark == name]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._unseen += tag in _UNSEEN
        if tag == "meta" and given.get("name") == _DIGEST:
            self.digest = given.get("content") or ""
        # Marks are never nested; one is open until its own kind of element ends.
        if given.get(_MARK):
            self._open = [tag]
            self.marked.append((str(given[_MARK]), []))
        elif tag in self._open:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN and self._unseen > 0
        if tag in self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        self.texts.append(data)
        if self._open:
            self.marked[-1][1].append(data)
