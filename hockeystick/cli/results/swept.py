"""What became of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.cli.flags.grid_file import GridFile


@final
@dataclass(frozen=True, slots=True)
class Swept:
    """What became of a sweep.

    Args:
        file: The grid and the question.
        out: The file that was written.
        rows: How many rows it has.
        errors: How many of them have no answer.
        first_error: Why the first of these has none.
        cautions: How many answers come with a caution.
        first_caution: The first of these.
        resumed: How many were answered before.
        seconds: What the others took.
    """

    file: GridFile
    out: str
    rows: int
    errors: int
    first_error: str | None
    cautions: int
    first_caution: str | None
    resumed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return (self.rows - self.resumed) / self.seconds
