"""What the scores of an attack prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from hockeystick.audit import Consistent, LowerBound, Refuted
from hockeystick.cli.describe import fields
from hockeystick.io.plan_file import PlanFile

if TYPE_CHECKING:
    from hockeystick.audit import Scores


@final
@dataclass(frozen=True, slots=True)
class Audited:
    """What the scores in a file prove.

    Args:
        name: The file's name.
        scores: What it holds.
        bound: A lower bound on epsilon; None where no delta is known.
        file: The plan that is said to have run; None where none was given.
        verdict: Whether the scores contradict it.
    """

    name: str
    scores: Scores
    bound: LowerBound | None
    file: PlanFile | None = None
    verdict: Refuted | Consistent | None = None

    @property
    def is_refuted(self) -> bool:
        """Whether the scores contradict the plan."""
        return isinstance(self.verdict, Refuted)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        file = self.file
        return {
            "scores": self.name,
            "in": self.scores.scores_in.size,
            "out": self.scores.scores_out.size,
            "title": None if file is None else file.title,
            "plan": None if file is None else fields(file.plan),
            "epsilon": None if self.bound is None else self.bound.as_dict(),
            "verdict": None if self.verdict is None else self.verdict.as_dict(),
        }
