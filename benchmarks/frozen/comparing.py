"""What a change did to an answer: nothing, something that it may, or something that it must not."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from benchmarks.frozen.answers import Frozen

# A question to whichever accountant: all who answer it speak of the same number.
_ACCOUNTANT: Final = re.compile(r", (accountant='[^']*'|tolerance=1e-08|digits=20)(?=\)$)")
Ends = tuple[Decimal, Decimal]


def difference(before: Frozen, after: str, slack: Decimal, truth: Ends | None) -> tuple[bool, str]:
    """Return whether an answer is as it was or better, and in words what changed, "" for nothing.

    Better is an interval inside the one before that still meets the truth: the intersection of all
    that the table says of the same number.
    """
    if before.answer == after:
        return True, ""
    if before.answer.startswith("!") and after.startswith("!"):
        kept = before.answer.split(":")[0] == after.split(":")[0]
        return kept, "other words" if kept else "another error"
    old, new = before.answer.split(), after.split()
    if len(old) != len(new):
        return False, "another answer"
    told = [_word(*pair, slack) for pair in zip(old, new, strict=True)]
    if truth is not None and "narrower" in told and not _meets(new[0], truth):
        return False, "beside what others prove"
    wrong = [one for one in told if one not in ("", "narrower", "within the slack")]
    return not wrong, (wrong or [one for one in told if one] or [""])[0]


def _word(old: str, new: str, slack: Decimal) -> str:
    """Return what became of one word of an answer."""
    if old == new:
        return ""
    before, after = _numbers(old), _numbers(new)
    if before is None or after is None or len(before) != len(after):
        return "another word"
    if list(after) != sorted(after):
        return "ends out of order"
    if all(_is_near(*ends, slack) for ends in zip(after, before, strict=True)):
        return "within the slack"
    if len(after) > 1 and before[0] <= after[0] and after[-1] <= before[-1]:
        return "narrower"
    return "moved"


def _is_near(end: Decimal, before: Decimal, slack: Decimal) -> bool:
    """Return whether an end is where it was; of two different ends an infinite one is never."""
    if end == before:
        return True
    return end.is_finite() and before.is_finite() and abs(end - before) <= slack * abs(before)


def _numbers(word: str) -> tuple[Decimal, ...] | None:
    """Return the numbers of an interval or the only one; None for a name."""
    try:
        return tuple(map(Decimal, word.split("<")))
    except InvalidOperation:
        return None


def _meets(word: str, truth: Ends) -> bool:
    numbers = _numbers(word)
    return numbers is None or (numbers[0] <= truth[1] and truth[0] <= numbers[-1])


def same_number(question: str) -> str:
    """Return a question without who is asked, and how closely."""
    return _ACCOUNTANT.sub("", question)


def truths(table: Iterable[Frozen]) -> Mapping[str, Ends]:
    """Return, for each number that is asked for, what all proven intervals have in common."""
    found: dict[str, list[Ends]] = defaultdict(list)
    for one in table:
        first = one.answer.split()[0]
        numbers = _numbers(first)
        if "<" in first and numbers is not None and one.kind.startswith(("epsilon", "delta")):
            found[same_number(one.question)].append((numbers[0], numbers[-1]))
    return {
        question: (max(low for low, _ in ends), min(high for _, high in ends))
        for question, ends in found.items()
    }
