"""One question asked of a plan at every combination of the values of its flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from hockeystick.answers import cautions
from hockeystick.answers.cautions import caution_of_notes
from hockeystick.cli.describe import Question
from hockeystick.cli.flags.deciding import MISSED, Decided
from hockeystick.cli.flags.several import Several
from hockeystick.io.plan_file import PlanFile
from hockeystick.results import Approximate, Certified


@final
@dataclass(frozen=True, slots=True)
class Row:
    """The answer at one combination, or why there is none.

    Args:
        values: The values by what they are of, as they were written.
        told: The same, ready for JSON.
        file: The plan with them; None where they make none.
        at: Where it was asked.
        answer: What came of it; None where nothing did.
        decided: Whether it is within the budget, where there is one.
        error: Why there is no answer.
    """

    values: Mapping[str, str]
    told: Mapping[str, Any]
    file: PlanFile | None = None
    at: Question | None = None
    answer: Certified | Approximate | None = None
    decided: Decided | None = None
    error: str | None = None

    @property
    def cautions(self) -> tuple[str, ...]:
        """What whoever decides by the answer should know besides."""
        if self.answer is None or self.file is None or self.at is None:
            return ()
        at = {self.at.name: self.at.value}
        doubt = None if self.decided is None else caution_of_notes(self.file.plan, self.file.notes)
        found = cautions(self.answer, self.file.plan, **at)
        return tuple(one.text for one in (*([] if doubt is None else [doubt]), *found))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the answer rests on."""
        return () if self.answer is None else tuple(self.answer.assumptions)


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """The answers at all combinations.

    Args:
        several: What has several values.
        quantity: What was asked for.
        rows: The answers, at least one of which there is.
        at_most: The budget, if there is one.
    """

    several: Sequence[Several]
    quantity: str
    rows: Sequence[Row]
    at_most: float | None = None

    @property
    def answered(self) -> list[Row]:
        """The rows that have an answer."""
        return [one for one in self.rows if one.answer is not None]

    @property
    def title(self) -> str | None:
        """What the plan is called."""
        file = self.answered[0].file
        return None if file is None else file.title

    @property
    def exit_status(self) -> int:
        """1 where there is a budget that a row does not meet, be it that it has no answer."""
        met = all(one.decided is not None and one.decided.meets for one in self.rows)
        return 0 if self.at_most is None or met else MISSED
