"""What the scores of an attack prove, in words and in numbers rounded to their safe side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick.audit import Consistent, LowerBound, OperatingPoint, Refuted
from hockeystick.numerics.numerals import at_least, at_most, plain
from hockeystick.reports.audited import Audited

_DIGITS: Final = 4
_NOTHING: Final = "This attack found nothing, which does not show that there is nothing to find."
_AT_LEAST: Final = "What ran has at least this epsilon; how much more, an attack cannot show."
_REFUTED: Final = (
    "The scores contradict the plan. The plan, its implementation, the neighbouring data of the "
    "trials or an assumption below is wrong; which, they do not say."
)
_CONSISTENT: Final = (
    "The scores do not contradict the plan. This is no proof of privacy: a stronger attack, or "
    "more trials, may."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTold:
    """What the scores of an attack prove, in words.

    Args:
        is_refuted: Whether they contradict the plan.
        verdict: "refuted", "consistent" or nothing.
        sure: At which confidence.
        facts: What was found and claimed, and by what, each with a label.
        meaning: What this means, and what it does not.
        assumptions: What must hold of the trials, as sentences.
    """

    is_refuted: bool
    verdict: str
    sure: str
    facts: tuple[tuple[str, str], ...]
    meaning: str
    assumptions: tuple[str, ...]


def audit_told(audited: Audited) -> AuditTold:
    """Return what the scores of an attack prove, in words."""
    said, verdict = audited.said, audited.verdict
    return AuditTold(
        is_refuted=audited.is_refuted,
        verdict="" if verdict is None else "refuted" if audited.is_refuted else "consistent",
        sure=f"{'with' if audited.is_refuted else 'at'} confidence {plain(said.confidence)}",
        facts=tuple(_facts(audited)),
        meaning=_meaning(audited),
        assumptions=said.assumptions,
    )


def _facts(audited: Audited) -> list[tuple[str, str]]:
    """Return what was found and claimed, the test that decides, and the scores."""
    bound, verdict, point = audited.bound, audited.verdict, audited.said.point
    facts = [] if bound is None else [("found", _found(bound))]
    if verdict is not None and verdict.claimed_epsilon is not None:
        most = at_most(verdict.claimed_epsilon.upper)
        facts += [("claimed", f"epsilon at most {most}, proven of the plan")]
    if point is not None:
        facts += [("test", _counts(point)), ("rates", _rates(point, verdict))]
    scores = audited.audit.scores
    sizes = f"{scores.scores_in.size:,} in, {scores.scores_out.size:,} out"
    facts += [("scores", f"{audited.audit.name}: {sizes}"), ("theorem", audited.said.theorem)]
    return facts


def _found(bound: LowerBound) -> str:
    """Return the lower bound on epsilon."""
    at = "" if bound.delta is None else f" at delta = {plain(bound.delta)}"
    return (
        f"epsilon at least {at_least(bound.value)}{at}, with confidence {plain(bound.confidence)}"
    )


def _counts(point: OperatingPoint) -> str:
    """Return whom the test that decides calls members."""
    return (
        f"{point.rule}: {point.true_positives:,} of {point.in_trials:,} in, "
        f"{point.false_positives:,} of {point.out_trials:,} out called members"
    )


def _rates(point: OperatingPoint, verdict: Refuted | Consistent | None) -> str:
    """Return the rates of the test that decides, and what the plan allows there."""
    rates = (
        f"TPR at least {at_least(point.tpr, _DIGITS)} at FPR at most {at_most(point.fpr, _DIGITS)}"
    )
    if verdict is None or verdict.claimed_tpr is None:
        return rates
    return f"{rates}; the plan allows a TPR of {at_most(verdict.claimed_tpr, _DIGITS)}"


def _meaning(audited: Audited) -> str:
    """Return what the result means, and what it does not."""
    if audited.verdict is not None:
        return _REFUTED if audited.is_refuted else _CONSISTENT
    return _AT_LEAST if audited.bound is not None and audited.bound.value > 0.0 else _NOTHING
