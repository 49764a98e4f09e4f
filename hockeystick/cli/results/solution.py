"""The value of one parameter, and what it is an answer to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.calibration import Calibrated
from hockeystick.calibration.solve.constraints import Target
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import assumptions_of


@final
@dataclass(frozen=True, slots=True)
class Solution:
    """One answer, and what it is an answer to.

    Args:
        file: The plan that was given.
        parameter: What was solved for, as it was given.
        target: What had to be met.
        spent: What ran before on the same data, None for nothing.
        found: The answer.
    """

    file: PlanFile
    parameter: str
    target: Target
    spent: PlanFile | None
    found: Calibrated

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the answer to apply."""
        before = () if self.spent is None else assumptions_of(self.spent.plan)
        return tuple(dict.fromkeys((*assumptions_of(self.found.plan), *before)))
