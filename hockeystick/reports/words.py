"""What a report says, in words and in numbers that are rounded to their safe side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

from hockeystick.accountants.comparison import Row
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.accountants.summary import GaussianSummary
from hockeystick.answers import (
    Caution,
    Decision,
    in_words,
    protected,
    shown,
    sources,
    steps_rules,
    titled,
    units_of,
)
from hockeystick.answers.cautions import reservation
from hockeystick.mechanisms import assumptions_of
from hockeystick.mechanisms.scope import unit_of
from hockeystick.numerics.numerals import at_least, at_most, interval, nearest, plain
from hockeystick.reports.audit_words import AuditTold, audit_told
from hockeystick.reports.findings import Attack, Findings, Group, Point, Subject
from hockeystick.reports.ledger_words import LedgerTold, ledger_told
from hockeystick.results import Certified
from hockeystick.tradeoffs.reading import is_promise, percent_at_most, reading

# How the sentences begin that say what neighbouring data sets are.
_FEW_DIGITS: Final = 4
_SAME: Final = 1.00005
_SMALLEST_PLAIN: Final = -5
_VERIFIED: Final = "each of these claims holds"
_KINDS: Final = {
    "exact": "exact: proven, and as narrow as floating point allows",
    "bound": "bound: proven, but loose",
    "approximation": "approximation: no guarantee",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A report in words: what its template lays out."""

    title: str
    plan: tuple[str, ...]
    steps: tuple[str, ...]
    source: str | None
    notes: str | None
    adjacency: str
    protected: str
    whose: WhoseTold
    delta: str
    epsilon: str
    is_bounded: bool
    headline: str
    claim: str
    proven: str
    meaning: str
    budget: str
    is_met: bool
    remedies: tuple[str, ...]
    cautions: tuple[Caution, ...]
    groups: tuple[tuple[str, str, str], ...]
    by_delta: tuple[tuple[str, str, str], ...]
    by_epsilon: tuple[tuple[str, str, str], ...]
    reading: str | None
    promises: bool
    attack: tuple[tuple[str, str, str], ...]
    advantage: str
    bayes_error: str
    gaussian: GaussianTold | None
    no_attack: str
    unit: str
    besides: str
    spent: tuple[tuple[str, str, str], ...]
    halfway: str
    accountant: str
    summary: str
    sources: tuple[str, ...]
    width: str
    rows: tuple[RowTold, ...]
    kinds: tuple[str, ...]
    verdict: str
    verified: str
    checks: tuple[tuple[str, str, str], ...]
    assumptions: tuple[str, ...]
    audit: AuditTold | None
    ledger: LedgerTold | None
    file_name: str | None
    file_text: str | None
    commands: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class GaussianTold:
    """The mu that sums a plan up, in words."""

    mu: str
    regret: str
    least_rate: str


@final
@dataclass(frozen=True, slots=True)
class WhoseTold:
    """Of whom an attacker guesses whether they were used: one, several that were not, others."""

    one: str
    not_used: str
    used: str


_WHOSE: Final = {
    "record": WhoseTold("a certain record was", "records that were not", "those that were"),
    "client": WhoseTold(
        "the data of a certain client were", "clients whose data were not", "the other clients"
    ),
}


@final
@dataclass(frozen=True, slots=True)
class RowTold:
    """What one accountant says, in words."""

    accountant: str
    kind: str
    number: str
    detail: str
    verdict: str
    is_below: bool


def _gaussian(summary: GaussianSummary) -> GaussianTold | None:
    """Return the mu that sums a plan up; nothing where none does."""
    if summary.mu.upper == math.inf:
        return None
    mu, regret = at_most(summary.mu.upper), at_most(summary.regret.upper, _FEW_DIGITS)
    return GaussianTold(mu, regret, plain(summary.least_rate))


def told(findings: Findings) -> Told:
    """Return a report in words."""
    subject, answer, attack = findings.subject, findings.answer, findings.attack
    course = findings.course
    return Told(
        title=subject.title or titled(subject.described),
        plan=in_words(subject.plan),
        steps=tuple(rule.removeprefix("steps = ") for rule in steps_rules(subject.described)),
        source=_paragraph(subject.source),
        notes=_paragraph(subject.notes),
        adjacency=str(subject.plan.adjacency or ""),
        protected=protected(subject.described),
        whose=_WHOSE[unit_of(subject.described)],
        delta=plain(subject.delta),
        epsilon=at_most(answer.upper),
        is_bounded=answer.upper < math.inf,
        headline=shown.headline(answer.upper, subject.delta),
        claim=shown.claimed(answer.lower, answer.upper, subject.delta),
        proven=shown.proven(answer.lower, answer.upper),
        meaning=shown.meaning(answer.lower, answer.upper, subject.delta),
        budget=_budget(findings),
        remedies=findings.remedies,
        is_met=findings.decision is Decision.MEETS and not _reservation(findings),
        cautions=findings.cautions,
        groups=tuple(_group(one) for one in findings.groups),
        by_delta=_lines(_some(findings.by_delta, subject.delta)),
        by_epsilon=_lines(findings.by_epsilon),
        reading=None if attack is None else reading(*attack.headline),
        promises=attack is not None and is_promise(attack.headline[1]),
        attack=() if attack is None else _rates(attack),
        advantage="" if attack is None else percent_at_most(attack.advantage),
        bayes_error="" if attack is None else per_cent(at_least(attack.bayes_error, _FEW_DIGITS)),
        gaussian=None if attack is None else _gaussian(attack.gaussian),
        no_attack=findings.no_attack,
        unit="" if course is None else course.unit,
        besides="" if course is None else course.besides,
        spent=_lines(findings.spent),
        halfway=_halfway(findings),
        accountant=answer.accountant,
        summary=_summary(answer.accountant),
        sources=tuple(f"{one.of}: {one.text}" for one in sources(subject.plan, answer.accountant)),
        width=nearest(answer.relative_width, 2)
        if answer.relative_width < math.inf
        else "unbounded",
        rows=_rows(findings),
        kinds=tuple(_KINDS.values()),
        verdict="not checked" if findings.verdict is None else findings.verdict.status,
        verified=_verified(findings),
        checks=_checks(findings),
        assumptions=assumptions_of(subject.described),
        audit=None if findings.audited is None else audit_told(findings.audited),
        ledger=None
        if subject.ledger is None
        else ledger_told(subject.ledger, subject.plan, subject.delta),
        file_name=subject.file_name,
        file_text=_text(subject.file_content),
        commands=subject.commands,
    )


def _ledger(subject: Subject) -> LedgerTold | None:
    """Return the ledger in words, if there is one, at the delta of the page."""
    if subject.ledger is None:
        return None
    delta = subject.delta if 0.0 < subject.delta < 1.0 else None
    return ledger_told(subject.ledger, subject.plan, delta)


def per_cent(number: str) -> str:
    """Return a number in per cent, with the digits that it has."""
    shifted = Decimal(number).scaleb(2).normalize()
    return (
        f"{shifted:f} %"
        if shifted == 0 or shifted.adjusted() >= _SMALLEST_PLAIN
        else f"{shifted:e} %"
    )


def _budget(findings: Findings) -> str:
    """Return whether the headline is within the budget; nothing where there is none."""
    budget, decision = findings.subject.budget, findings.decision
    if budget is None or decision is None:
        return ""
    units = units_of(findings.subject.described)
    return shown.within_budget(decision, budget, findings.subject.delta, units)


def _reservation(findings: Findings) -> str:
    """Return why a budget that is met promises little; nothing where it does not."""
    return reservation(findings.subject.delta, units_of(findings.subject.described))


def _group(group: Group) -> tuple[str, str, str]:
    """Return what a plan costs somebody with several examples, as a line of a table."""
    examples = f"{group.examples} examples"
    if group.answer is None:
        return examples, "not known", group.reason
    return examples, at_least(group.answer.lower), at_most(group.answer.upper)


def _lines(points: Iterable[Point]) -> tuple[tuple[str, str, str], ...]:
    """Return points as lines of a table."""
    return tuple((plain(one.at), at_least(one.lower), at_most(one.upper)) for one in points)


def _some(points: Sequence[Point], asked: float) -> list[Point]:
    """Return the points at powers of ten, and the one that is asked at."""
    return [one for one in points if one.at == asked or f"{one.at:e}".startswith("1.000000e")]


def _rates(attack: Attack) -> tuple[tuple[str, str, str], ...]:
    """Return what an attack finds and misses at a few rates."""
    return tuple(
        (per_cent(plain(rate)), percent_at_most(found), per_cent(at_least(missed)))
        for rate, found, missed in attack.table
    )


def _halfway(findings: Findings) -> str:
    """Return what is spent after about half of the stages."""
    if findings.course is None:
        return ""
    middle = findings.spent[(len(findings.spent) - 1) // 2]
    after = f"After {plain(middle.at)} {findings.course.unit}"
    return f"{after}, epsilon is at most {at_most(middle.upper)}"


def _summary(accountant: str) -> str:
    """Return how an accountant works."""
    known = ACCOUNTANTS.get(accountant)
    return "" if known is None else known.summary


def _rows(findings: Findings) -> tuple[RowTold, ...]:
    """Return what each accountant says, beside what all certified answers together prove.

    Those without an answer come last.
    """
    answers = [row.answer for row in findings.rows if isinstance(row.answer, Certified)]
    proven = [findings.answer, *answers]
    lower = max(one.lower for one in proven)
    upper = min(one.upper for one in proven)
    rows = sorted(findings.rows, key=lambda row: row.answer is None)
    return tuple(_row(row, lower, upper) for row in rows)


def _row(row: Row, lower: float, upper: float) -> RowTold:
    """Return what one accountant says, and how far that is from what is proven."""
    if row.answer is None:
        return RowTold(row.accountant, row.kind, "none", row.reason, "", False)
    if isinstance(row.answer, Certified):
        ends = interval(row.answer.lower, row.answer.upper)
        value, number = float(row.answer), at_most(row.answer.upper)
        detail = f"from {ends[0]} to {ends[1]}" if ends[0] != ends[1] else f"exactly {ends[0]}"
    else:
        value = float(row.answer.value)
        number, detail = f"about {nearest(value)}", "nothing is proven"
    below = value < lower
    best = "best proven" if isinstance(row.answer, Certified) else "between the proven ends"
    verdict = _verdict(value, upper, below, best)
    return RowTold(row.accountant, row.kind, number, detail, verdict, below)


def _verdict(value: float, upper: float, below: bool, best: str) -> str:
    """Return how a number compares with the best that is proven."""
    ratio = f"{value / upper:.4g} times" if 0.0 < upper < math.inf else ""
    if below:
        return f"{ratio}: too small".removeprefix(": ")
    if value <= upper:
        return best
    if value <= upper * _SAME:
        return "the same to 4 digits"
    return "no bound" if value == math.inf else ratio


def _verified(findings: Findings) -> str:
    """Return what the verifier says, or why it was not asked, as the end of a sentence."""
    verdict = findings.verdict
    if verdict is None:
        return findings.not_verified
    return verdict.reason or _VERIFIED


def _checks(findings: Findings) -> tuple[tuple[str, str, str], ...]:
    """Return each claim, the ball that the verifier computed, and whether the claim holds."""
    checks = () if findings.verdict is None else findings.verdict.checks
    return tuple((one.claim, one.ball, "yes" if one.holds else "no") for one in checks)


def _paragraph(text: str | None) -> str | None:
    """Return a text of a plan file on one line."""
    return " ".join(text.split()) if text else None


def _text(content: bytes | None) -> str | None:
    """Return what a plan file holds, as text."""
    return None if content is None else content.decode("utf-8-sig", "replace")
