"""The value of one parameter, and what it is an answer to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, final

from hockeystick.answers import Caution, Decision, cautions
from hockeystick.calibration import Calibrated
from hockeystick.calibration.solve.fields import locate, value_at
from hockeystick.calibration.solve.targets import Achieved, Target, constraint_of
from hockeystick.errors import HockeystickError
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import Composed, Mechanism, assumptions_of
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import jsonable
from hockeystick.results import Certified


@final
@dataclass(frozen=True, slots=True)
class AsPlanned:
    """The value that a plan gives itself, and what the plan has with it.

    Args:
        value: That of the parameter.
        achieved: What the plan has, what was spent before included.
        decision: Whether that meets the target, by proof.
    """

    value: float
    achieved: Achieved
    decision: Decision

    @classmethod
    def of(
        cls, plan: Mechanism, parameter: str, target: Target, spent: Mechanism | None, by: str
    ) -> AsPlanned | None:
        """Return what a plan has as it is, None where no accountant says.

        Args:
            plan: The plan.
            parameter: A number in it.
            target: What is to be met.
            spent: What ran before, None for nothing.
            by: The name of the accountant.
        """
        constraint = constraint_of(target, by)
        with suppress(HockeystickError):
            found = constraint.evaluate(plan if spent is None else Composed((spent, plan)))
            if constraint.meets(found):
                decision = Decision.MEETS
            else:
                missed = constraint.violates(found)
                decision = Decision.MISSES if missed else Decision.UNDECIDED
            return cls(value_at(plan, locate(plan, parameter)), found, decision)
        return None

    def as_dict(self) -> dict[str, Any]:
        """Return the same, ready for JSON."""
        found = self.achieved
        ends = {"lower": jsonable(found.lower), "upper": jsonable(found.upper)}
        achieved = {"quantity": found.quantity, **ends}
        told = {"value": jsonable(self.value), "achieved": achieved}
        return {**told, "decision": str(self.decision)}


@final
@dataclass(frozen=True, slots=True)
class Solution:
    """One answer, and what it is an answer to.

    Args:
        file: The plan that was given.
        parameter: What was solved for, as it was given.
        target: What had to be met.
        spent: What ran before on the same data, None for nothing.
        spent_as: What was given for it.
        as_planned: What the plan has with the value that it gives itself, None where it gives none.
        found: The answer.
        out: The file into which the solved plan goes, None for none.
    """

    file: PlanFile
    parameter: str
    target: Target
    spent: PlanFile | None
    found: Calibrated
    out: str | None = None
    spent_as: str | None = None
    as_planned: AsPlanned | None = None

    @property
    def solved(self) -> PlanFile:
        """The plan with the value in place, to be asked at the target's delta."""
        delta = self.target.delta if isinstance(self.target, ApproxDP) else self.file.delta
        return replace(self.file, plan=self.found.plan, delta=delta, notes=self._notes)

    @property
    def _notes(self) -> str | None:
        """What a reader of the solved plan should know: of what ran before it, too."""
        if self.spent is None:
            return self.file.notes
        before = f"solved beside what was spent before, {self.spent_as}"
        told = f"{before}: both together meet {self.target}, this plan alone is less"
        return told if self.file.notes is None else f"{self.file.notes} ({told})"

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What whoever decides by it should know besides, of an epsilon at a delta."""
        achieved = self.found.achieved
        if not isinstance(self.target, ApproxDP) or not isinstance(achieved, Certified):
            return ()
        plan = self.found.plan if self.spent is None else self.spent.plan @ self.found.plan
        return cautions(achieved, plan, delta=self.target.delta)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the answer to apply."""
        before = () if self.spent is None else assumptions_of(self.spent.plan)
        return tuple(dict.fromkeys((*assumptions_of(self.found.plan), *before)))
