"""What the scores of an attack prove of a plan: asked once, and told in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick.audit import Consistent, LowerBound, OperatingPoint, Refuted, Scores
from hockeystick.audit.bounds import falsify, lower_curve, lower_epsilon
from hockeystick.audit.one_run import falsify_one_run, one_run
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.numerals import at_least, at_most, plain

_NOTHING: Final = "This attack found nothing, which does not show that there is nothing to find."
_AT_LEAST: Final = "What ran has at least this epsilon; how much more, an attack cannot show."
_REFUTED: Final = "The plan, its implementation, the trials' data or an assumption below is wrong."
_CONSISTENT: Final = "The scores do not contradict the plan. This is no proof of privacy."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What is asked of the scores of an attack, of which ``name`` is their file's.

    The threshold was fixed before the scores were seen; None for all that they prove. In one run,
    who took part was decided by fair coins.

    Example:
        >>> import numpy as np
        >>> from hockeystick.audit import Scores
        >>> from hockeystick.reports import Audit
        >>> scores = Scores(np.array([0.9, 0.2, 0.7]), np.array([True, False, True]))
        >>> Audit(name="attack.csv", scores=scores).confidence
        0.95
    """

    name: str
    scores: Scores
    confidence: float = 0.95
    threshold: float | None = None
    in_one_run: bool = False


@final
@dataclass(frozen=True, slots=True)
class Audited:
    """What the scores of an attack prove; in words, rounded to the safe side.

    A lower bound on epsilon where a delta is known, a verdict where a plan was given, and points
    that the attack's curve passes above, but for an audit in one run.
    """

    audit: Audit
    bound: LowerBound | None
    verdict: Refuted | Consistent | None
    points: tuple[OperatingPoint, ...]

    @property
    def is_refuted(self) -> bool:
        """Whether the scores contradict the plan."""
        return isinstance(self.verdict, Refuted)

    @property
    def said(self) -> LowerBound | Refuted | Consistent:
        """What says most: the verdict, or else the bound."""
        said = self.verdict or self.bound
        assert said is not None
        return said

    @property
    def word(self) -> str:
        """The verdict in a word, or nothing."""
        if self.verdict is None:
            return ""
        return "refuted" if self.is_refuted else "consistent"

    @property
    def sure(self) -> str:
        """At which confidence."""
        return f"{'with' if self.is_refuted else 'at'} confidence {plain(self.said.confidence)}"

    @property
    def meaning(self) -> str:
        """What this means, and what it does not."""
        if self.verdict is not None:
            return _REFUTED if self.is_refuted else _CONSISTENT
        return _AT_LEAST if self.bound is not None and self.bound.value > 0.0 else _NOTHING

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What was found and claimed, the test that decides, and the scores."""
        bound, verdict, point, facts = self.bound, self.verdict, self.said.point, []
        if bound is not None:
            at = "" if bound.delta is None else f" at delta = {plain(bound.delta)}"
            sure = f"with confidence {plain(bound.confidence)}"
            facts.append(("found", f"epsilon at least {at_least(bound.value)}{at}, {sure}"))
        if verdict is not None and verdict.claimed_epsilon is not None:
            most = at_most(verdict.claimed_epsilon.upper)
            facts.append(("claimed", f"epsilon at most {most}, proven of the plan"))
        if point is not None:
            found = f"{point.true_positives:,} of {point.in_trials:,} in"
            called = f"{found}, {point.false_positives:,} of {point.out_trials:,} out"
            rates = f"TPR at least {at_least(point.tpr, 4)} at FPR at most {at_most(point.fpr, 4)}"
            if verdict is not None and verdict.claimed_tpr is not None:
                rates += f"; the plan allows a TPR of {at_most(verdict.claimed_tpr, 4)}"
            facts += [("test", f"{point.rule}: {called} called members"), ("rates", rates)]
        scores = self.audit.scores
        sizes = f"{scores.scores_in.size:,} in, {scores.scores_out.size:,} out"
        scored = ("scores", f"{self.audit.name}: {sizes}")
        return [*facts, scored, ("theorem", self.said.theorem)]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        scores = self.audit.scores
        return {
            "scores": self.audit.name,
            "in": scores.scores_in.size,
            "out": scores.scores_out.size,
            "in_one_run": self.audit.in_one_run,
            "epsilon": None if self.bound is None else self.bound.as_dict(),
            "verdict": None if self.verdict is None else self.verdict.as_dict(),
            "curve": [one.as_dict() for one in self.points],
        }


def audited(audit: Audit, *, plan: Mechanism | None = None, delta: float | None = None) -> Audited:
    """Return what the scores of an attack prove: a bound at a delta, a verdict on a plan, or both.

    Each is wrong with probability at most ``1 - confidence``; those of many runs hold together.
    """
    if plan is None and delta is None:
        raise ParameterError("delta", delta, "given where no plan is")
    scores, sure = audit.scores, audit.confidence
    if audit.in_one_run:
        if audit.threshold is not None:
            raise ParameterError("threshold", audit.threshold, "left out for an audit in one run")
        run = scores.scores, scores.included
        bound = None if delta is None else one_run(*run, delta=delta, confidence=sure)
        verdict = None if plan is None else falsify_one_run(plan, *run, confidence=sure)
        return Audited(audit, bound, verdict, ())
    both = scores.scores_in, scores.scores_out
    points = lower_curve(*both, confidence=sure)
    if plan is not None:
        found = falsify(plan, *both, confidence=sure, delta=delta, threshold=audit.threshold)
        return Audited(audit, found.epsilon, found, points)
    assert delta is not None
    least = lower_epsilon(*both, delta=delta, confidence=sure, threshold=audit.threshold)
    return Audited(audit, least, None, points)
