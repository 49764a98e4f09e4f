"""What an audit found: bounds that hold with a stated confidence, and whether a claim survives.

None of these is a proof of privacy: an attack that finds nothing may be a weak attack.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, asdict, dataclass, fields
from typing import Any, Final, Literal, final

from hockeystick.numerics.numerals import at_least, jsonable, nearest, plain
from hockeystick.results import Certified

AuditQuantity = Literal["epsilon", "mu"]

NO_PROOF: Final = "consistent is not a proof of privacy"


@final
@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A test of who took part, and the point of its confidence region that decides.

    ``rule`` says when the test says "in". ``fpr``, the false positive rate of the deciding point,
    is rounded up, ``tpr`` down; at most ``false_positives`` of ``out_trials`` and at least
    ``true_positives`` of ``in_trials`` count as such.
    """

    rule: str
    threshold: float
    fpr: float
    tpr: float
    _: KW_ONLY
    false_positives: int
    out_trials: int
    true_positives: int
    in_trials: int

    def as_dict(self) -> dict[str, Any]:
        """Return the point ready for JSON."""
        told = str(self.threshold) if math.isinf(self.threshold) else self.threshold
        return asdict(self) | {"threshold": told}


@final
@dataclass(frozen=True, slots=True)
class LowerBound:
    """An epsilon or a mu that the mechanism has at least, with a stated confidence.

    Guarantees:
        Whatever the attack, with probability at least ``confidence`` over the trials the true
        value is at least ``value``. It says nothing of how large the truth may be: 0 means that
        this attack found nothing, not that there is nothing.

    Args:
        value: The lower bound, rounded down; 0 is the vacuous one.
        quantity: "epsilon" or "mu".
        confidence: The probability with which the bound holds.
        theorem: What proves it, and what was fixed in advance.
        method: The method that was used.
        delta: The delta of the epsilon; None for mu.
        point: The test that decides; None for an audit in one run.
        trials: How many scores were given, of both kinds.
        assumptions: What must hold of the trials, as sentences.

    Example:
        >>> from hockeystick import audit
        >>> found = audit.lower_epsilon([1.0] * 300, [0.0] * 300, delta=1e-5, threshold=0.5)
        >>> print(found)
        epsilon >= 4.73... at delta 1e-05, with confidence 0.95 (600 trials, combined); ...
    """

    value: float
    quantity: AuditQuantity
    confidence: float
    theorem: str
    _: KW_ONLY
    method: str
    delta: float | None = None
    point: OperatingPoint | None = None
    trials: int = 0
    assumptions: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the bound ready for JSON."""
        return {**_told(self, "lower bound"), "value": jsonable(self.value)}

    def __str__(self) -> str:
        at = "" if self.delta is None else f" at delta {self.delta:g}"
        how = f"{self.trials} trials, {self.method}"
        return (
            f"{self.quantity} >= {at_least(self.value)}{at}, with confidence "
            f"{plain(self.confidence)} ({how}); a lower bound is not a proof of privacy"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the trials say of a claim; what ``LowerBound`` has too is the same.

    Args:
        claim: What was claimed, in words.
        point: The test that decides, or came nearest; None for an audit in one run.
        claimed_tpr: The largest true positive rate that the claim allows at ``point.fpr``,
            rounded up; None for an audit in one run.
        epsilon: A lower bound from the same trials, where a delta was given.
        claimed_epsilon: What the plan has at that delta, proven.
    """

    claim: str
    confidence: float
    theorem: str
    _: KW_ONLY
    method: str
    point: OperatingPoint | None = None
    claimed_tpr: float | None = None
    epsilon: LowerBound | None = None
    claimed_epsilon: Certified | None = None
    trials: int = 0
    assumptions: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict ready for JSON."""
        return _told(self, type(self).__name__.lower())


@final
class Refuted(Verdict):
    """The trials contradict what was claimed: with probability at least ``confidence`` it is false.

    The plan, its implementation, the adjacency of the trials or an assumption about them is wrong;
    which one, the trials do not say.
    """

    __slots__ = ()

    def __str__(self) -> str:
        told = (
            f"refuted with confidence {plain(self.confidence)}: {self.claim} ({self.trials} "
            f"trials, {self.method})"
        )
        if self.point is None or self.claimed_tpr is None:
            return told
        return (
            f"{told}. At a false positive rate of {nearest(self.point.fpr, 3)} it allows a true "
            f"positive rate of at most {nearest(self.claimed_tpr, 3)}, and the attack has at least "
            f"{nearest(self.point.tpr, 3)}"
        )


@final
class Consistent(Verdict):
    """The trials do not contradict what was claimed; a stronger attack, or more, may do so."""

    __slots__ = ()

    def __str__(self) -> str:
        return (
            f"not refuted at confidence {plain(self.confidence)}: {self.claim} "
            f"({self.trials} trials, {self.method}); {NO_PROOF}"
        )


def _told(one: LowerBound | Verdict, kind: str) -> dict[str, Any]:
    told = {field.name: getattr(one, field.name) for field in fields(one)}
    parts = {name: value.as_dict() for name, value in told.items() if hasattr(value, "as_dict")}
    return {**told, **parts, "kind": kind, "assumptions": list(one.assumptions)}
