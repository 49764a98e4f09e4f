"""What a change did to an answer: nothing, something that it may, or something that it must not."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from benchmarks.frozen.answers import Frozen

# A question to whichever accountant: all who answer it speak of the same number.
_ACCOUNTANT: Final = re.compile(r", (accountant='[^']*'|tolerance=1e-08|digits=20)(?=\)$)")
# A number of a question, and how closely it asks.
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\d.]*(?:e[+-]?\d+)?(?![\w.])")
_CLOSELY: Final = re.compile(r"digits=|tolerance=(\S+?)[,)]")
_RIGHT: Final = ("", "narrower", "within the slack", "a little wider")
_NONE: Final = Decimal(0)
Ends = tuple[Decimal, Decimal]


def difference(
    before: Frozen, after: str, slack: Decimal, truth: Ends | None, wider: Decimal = _NONE
) -> tuple[bool, str]:
    """Return whether an answer is as it was or better, and in words what changed, "" for nothing.

    Better is an interval inside the one before that still meets the truth: the intersection of all
    that the table says of the same number. An interval may be wider by a given part of its value
    where nobody asked for one that is closer, unless it then reaches 0, 1 or a number that the
    question names, such as a budget.
    """
    if before.answer == after:
        return True, ""
    old, new = before.answer.split(), after.split()
    if len(old) != len(new) or "!" in (old[0], new[0]):
        return False, "another answer"
    limits = [Decimal(one) for one in ("0", "1", *_NUMBER.findall(before.question))]
    leave = _NONE if _is_asked_closely(before.question, wider) else wider
    told = [_word(*pair, slack, leave, limits) for pair in zip(old, new, strict=True)]
    if truth is not None and "narrower" in told and not _meets(new[0], truth):
        return False, "beside what others prove"
    wrong = [one for one in told if one not in _RIGHT]
    return not wrong, (wrong or [one for one in told if one] or [""])[0]


def _word(old: str, new: str, slack: Decimal, wider: Decimal, limits: Iterable[Decimal]) -> str:
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
    return "a little wider" if _is_little_wider(before, after, wider, limits) else "moved"


def _is_asked_closely(question: str, wider: Decimal) -> bool:
    found = _CLOSELY.search(question)
    return found is not None and Decimal(found[1] or 0) < wider


def _is_little_wider(
    before: Sequence[Decimal], after: Sequence[Decimal], wider: Decimal, limits: Iterable[Decimal]
) -> bool:
    old, new = (before[0], before[-1]), (after[0], after[-1])
    if not all(end.is_finite() for end in (*old, *new)):
        return False
    width = new[1] - new[0] if len(after) > 1 else abs(new[0] - old[0])
    meets = len(after) == 1 or (new[0] <= old[1] and old[0] <= new[1])
    crosses = any(new[0] < one <= old[0] or old[1] <= one < new[1] for one in limits)
    return meets and not crosses and width <= wider * max(map(abs, new))


def _is_near(end: Decimal, before: Decimal, slack: Decimal) -> bool:
    if end == before:
        return True
    return end.is_finite() and before.is_finite() and abs(end - before) <= slack * abs(before)


def _numbers(word: str) -> tuple[Decimal, ...] | None:
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
