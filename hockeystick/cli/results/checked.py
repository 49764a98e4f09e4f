"""What is to be said of a plan file before anything is computed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick.answers import Caution, in_words, steps_rules
from hockeystick.answers.cautions import caution_of_question
from hockeystick.cli.flags.grid_file import GridFile, load_grid, problems_in_grid
from hockeystick.cli.flags.source import STDIN, name_of, source
from hockeystick.errors import HockeystickError
from hockeystick.io.call_text import is_call_text
from hockeystick.io.plan_file import PlanFile, problems_in
from hockeystick.numerics.numerals import jsonable, plain

_A_GRID: Final = re.compile(rb"(?m)^\s*\[grid[\].]")
# How a problem says where it is.
_LINE: Final = re.compile(r"^line (\d+): |\(at line (\d+), |\(line (\d+)\)|\bon line (\d+)\b")


@final
@dataclass(frozen=True, slots=True)
class Checked:
    """A plan, and what is wrong with it.

    Args:
        name: What was given for it.
        problems: What is wrong, nothing where it is well-formed.
        file: The plan, None where something is wrong or it is a grid of plans.
        grid: The grid, where it is one.
        left_out: The one number that the plan leaves out, to be solved for.
        is_there: Whether there is anything that could be looked at.
    """

    name: str
    problems: tuple[str, ...] = ()
    file: PlanFile | None = None
    grid: GridFile | None = None
    left_out: str | None = None
    is_there: bool = True

    @classmethod
    def of(cls, text: str) -> Checked:
        """Return what is to be said of a plan file, of - for standard input, or of a text."""
        try:
            given = source(text)
            if given.content is not None and _A_GRID.search(given.content):
                told = tuple(problems_in_grid(given.content))
                return cls(given.name, told, grid=None if told else load_grid(text))
            problems = [] if given.content is None else problems_in(given.content)
            left_out = given.left_out() if problems else None
            if left_out is not None:
                return cls(given.name, left_out=left_out)
            return cls(given.name, tuple(problems), None if problems else given.plan_file())
        except HockeystickError as error:
            is_there = text == STDIN or is_call_text(text) or os.path.isfile(text)
            return cls(text, (_without_name(str(error), text),), is_there=is_there)

    @property
    def meaning(self) -> list[str]:
        """What it means, in a few lines."""
        if self.left_out is not None:
            asks = f"; epsilon needs {self.left_out}"
            return [f"{self.left_out} is left out: hockeystick solve finds it{asks}"]
        if self.file is not None:
            return _plan(self.file)
        return [] if self.grid is None else _grid(self.grid)

    @property
    def cautions(self) -> list[Caution]:
        """What whoever decides should know of where it is asked."""
        if self.file is None:
            return []
        found = caution_of_question(self.file.plan, self.file.delta)
        return [] if found is None else [found]

    def as_dict(self) -> dict[str, Any]:
        """Return the same, ready for JSON."""
        asked = (
            {} if self.file is None else {"delta": self.file.delta, "epsilon": self.file.epsilon}
        )
        return {
            "file": self.name,
            "well_formed": not self.problems,
            "problems": list(self.problems),
            "lines": [_line_in(one) for one in self.problems],
            "meaning": self.meaning,
            "cautions": [{"about": one.about, "text": one.text} for one in self.cautions],
            **{name: None if x is None else jsonable(x) for name, x in asked.items()},
        }


def _line_in(problem: str) -> int | None:
    """Return the line that a problem names; of several the first, None where it names none."""
    found = _LINE.search(problem)
    return None if found is None else int(next(filter(None, found.groups())))


def _without_name(said: str, text: str) -> str:
    """Return an error without the name of its file, its line in words."""
    at_line = re.sub(rf"^{re.escape(name_of(text))}:(\d+): ", r"line \1: ", said)
    return at_line.removeprefix(f"{name_of(text)}: ")


def _plan(file: PlanFile) -> list[str]:
    """Return a plan in words, its neighbours, and where it is asked."""
    asked = {"epsilon": ("delta", file.delta), "delta": ("epsilon", file.epsilon)}
    found = [
        f"asks for {what} at {name} = {plain(value)}"
        for what, (name, value) in asked.items()
        if value is not None
    ]
    neighbours = [] if file.plan.adjacency is None else [f"neighbours: {file.plan.adjacency}"]
    found = found or ["no delta: give --delta"]
    return [*in_words(file.plan), *steps_rules(file.plan), *neighbours, *found]


def _grid(grid: GridFile) -> list[str]:
    """Return a grid in words."""
    sizes = [f"{len(values)} of {name}" for name, values in grid.grid.items()]
    return [f"a grid for hockeystick sweep: {', '.join(sizes)}", f"finds {grid.question.find}"]
