"""What a report says besides its numbers: what its template lays out, as words and rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from hockeystick._tables import cells_of
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.accountants.comparison import Truth, quoted
from hockeystick.answers import (
    Decision,
    Units,
    in_words,
    protected,
    sources,
    steps_rules,
    titled,
    units_of,
)
from hockeystick.answers.cautions import reservation
from hockeystick.mechanisms import assumptions_of
from hockeystick.mechanisms.scope import unit_of
from hockeystick.numerics.numerals import at_least, at_most, formatted_up, interval, nearest, plain
from hockeystick.reports.audit import audit_told
from hockeystick.reports.figures import is_wide
from hockeystick.reports.findings import Findings, Group, Point
from hockeystick.reports.ledger import entries_told, rooms_of, status_facts
from hockeystick.tradeoffs.reading import is_promise, percent_at_most, reading

_SMALLEST_PLAIN: Final = -5
_SHOWN_ENTRIES: Final = 200
_FEW_DIGITS: Final = 4
_LARGEST_POWER: Final = 700.0
_READABLE: Final = 1e7


class RowTold(NamedTuple):
    """What one accountant says, and how far that is from what is proven."""

    accountant: str
    kind: str
    number: str
    detail: str
    verdict: str = ""
    is_below: bool = False


def page_values(findings: Findings) -> dict[str, Any]:
    """Return what the template of a report asks for by name."""
    subject, answer, attack = findings.subject, findings.answer, findings.attack
    ends, delta, described = (answer.lower, answer.upper), subject.delta, subject.described
    units, budget = units_of(described), subject.budget
    known = ACCOUNTANTS.get(answer.accountant)
    ledger = subject.ledger
    content, verdict = subject.file_content, findings.verdict
    return {
        "infinity": math.inf,
        "title": subject.title or titled(described),
        "plan": in_words(subject.plan),
        "steps": [rule.removeprefix("steps = ") for rule in steps_rules(described)],
        "protected": protected(described),
        "is_of_clients": unit_of(described) == "client",
        "delta": plain(delta),
        "epsilon": at_most(answer.upper),
        "is_bounded": answer.upper < math.inf,
        "headline": _headline(answer.upper, delta),
        "claim": _claimed(*ends, delta),
        "proven": _proven(*ends),
        "meaning": _meaning(*ends, delta),
        "budget": ""
        if budget is None or findings.decision is None
        else _within_budget(findings.decision, budget, delta, units),
        "is_met": findings.decision is Decision.MEETS and not reservation(delta, units),
        "powers": [
            one
            for one in findings.by_delta
            if one.at == delta or f"{one.at:e}".startswith("1.000000e")
        ],
        "reading": None if attack is None else reading(*attack.headline),
        "promises": attack is not None and is_promise(attack.headline[1]),
        "summary": "" if known is None else known.summary,
        "sources": [f"{one.of}: {one.text}" for one in sources(subject.plan, answer.accountant)],
        "rows": _rows(findings),
        "checks": [
            (one.claim, one.ball, "yes" if one.holds else "no")
            for one in (() if verdict is None else verdict.checks)
        ],
        "assumptions": assumptions_of(described),
        "audit": None if findings.audited is None else audit_told(findings.audited),
        "ledger": ledger,
        "facts": []
        if ledger is None
        else [
            *status_facts(ledger.status, delta, rooms_of(ledger.entries, delta)),
            ("this plan", ledger.cost_of(subject.plan, delta)),
        ],
        "entries": ([], 0)
        if ledger is None
        else (
            entries_told(ledger.entries[-_SHOWN_ENTRIES:], ledger.terms, delta),
            max(len(ledger.entries) - _SHOWN_ENTRIES, 0),
        ),
        "file_text": None if content is None else content.decode("utf-8-sig", "replace"),
    }


def _headline(upper: float, delta: float) -> str:
    """Return the number to quote, with its delta."""
    bound = "has no bound" if upper == math.inf else f"≤ {at_most(upper)}"
    return f"epsilon {bound} at delta = {plain(delta)}"


def _claimed(lower: float, upper: float, delta: float) -> str:
    """Return both proven ends as the end of a sentence."""
    low, high = interval(lower, upper)
    least = "and exactly that" if low == high else f"and at least {low}"
    return f"epsilon is at most {at_most(upper)} at delta = {plain(delta)}, {least}"


def _proven(lower: float, upper: float) -> str:
    """Return the interval in full digits."""
    low, high = interval(lower, upper)
    return f"exactly {high}" if low == high else f"from {low} to {high}"


def _meaning(lower: float, upper: float, delta: float) -> str:
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


def _within_budget(decision: Decision, budget: float, delta: float, units: Units | None) -> str:
    """Return whether the headline is within a budget, and why that says little, as a sentence."""
    limit = f"epsilon at most {plain(budget)} at delta = {plain(delta)}"
    but = reservation(delta, units)
    return {
        Decision.MEETS: f"Meets the budget: {limit}{but and f', but {but}'}.",
        Decision.MISSES: f"Misses the budget: {limit}.",
        Decision.UNDECIDED: f"Not proven to meet the budget: {limit} lies between the proven ends.",
    }[decision]


def per_cent(number: str) -> str:
    """Return a number in per cent, with the digits that it has."""
    shifted = Decimal(number).scaleb(2).normalize()
    is_plain = shifted == 0 or shifted.adjusted() >= _SMALLEST_PLAIN
    return f"{shifted:f} %" if is_plain else f"{shifted:e} %"


def lines(points: Iterable[Point]) -> list[tuple[str, str, str]]:
    """Return points as lines of a table."""
    return [(plain(one.at), at_least(one.lower), at_most(one.upper)) for one in points]


def rates(line: tuple[float, float, float]) -> tuple[str, str, str]:
    """Return what an attack finds and misses at a rate, as a line of a table."""
    rate, found, missed = line
    return per_cent(plain(rate)), percent_at_most(found), per_cent(at_least(missed))


def of_group(group: Group) -> tuple[str, str, str]:
    """Return what a plan costs somebody with several examples, as a line of a table."""
    examples = f"{group.examples} examples"
    if group.answer is None:
        return examples, "not known", group.reason
    return examples, at_least(group.answer.lower), at_most(group.answer.upper)


_FILTERS = (at_least, at_most, nearest, plain, percent_at_most, per_cent, is_wide, lines, rates)
FILTERS: Final = {one.__name__: one for one in (*_FILTERS, of_group)}


def _rows(findings: Findings) -> list[RowTold]:
    """Return what each accountant says, beside what all certified answers together prove.

    Those without an answer come last.
    """
    truth, told = Truth.of(findings.rows), []
    for row in sorted(findings.rows, key=lambda row: row.answer is None):
        number, detail = cells_of(row.answer, row.reason)
        beside = "" if row.answer is None else truth.beside(row.answer)
        is_below = row.answer is not None and truth.is_above(quoted(row.answer))
        told.append(RowTold(row.accountant, row.kind, number or "none", detail, beside, is_below))
    return told
