"""The command ``init``: a plan file to begin with."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import Any, Final, final

import click

import hockeystick as hs
from hockeystick._suggest import same_name
from hockeystick.answers import Caution, in_words, steps_rules, suggested_delta, units_of
from hockeystick.answers.cautions import caution_of_question
from hockeystick.cli import command, flags
from hockeystick.cli.as_json import dumped
from hockeystick.cli.out_file import force_flag, out_path, write_whole
from hockeystick.cli.plans import STDIN, name_of, source
from hockeystick.cli.refusal import on_one_line
from hockeystick.cli.sweep import GridFile, load_grid, problems_in_grid
from hockeystick.errors import HockeystickError
from hockeystick.io.call_text import is_call_text
from hockeystick.io.plan_file import PlanFile, problems_in
from hockeystick.io.templates import template_of, template_of_plan, training_template
from hockeystick.io.vocabulary import RELEASES
from hockeystick.mechanisms import index
from hockeystick.mechanisms.listing import first_sentence
from hockeystick.notions import NOTIONS
from hockeystick.numerics.numerals import jsonable, plain

_ENDING: Final = ".toml"
_NO_FILE: Final = " In Python only."
_INIT: Final = """Write a plan file to begin with, every key with a comment.

FILE is a new .toml file, plan.toml by default, or - for standard output. It is for DP-SGD; with
--like for another mechanism or notion by its name in Python, or a copy of another plan: of a plan
file, or of the answer or solution that --json printed. --list says which mechanisms and
notions there are.
"""


@click.command(cls=command.Command, help=_INIT, short_help="Write a plan file to begin with.")
@click.argument("file", metavar="[FILE]", required=False)
@click.option(
    "--like",
    metavar="NAME",
    help="What to begin with: a mechanism or notion, a plan file, what --json printed, or a plan "
    "as it is in Python.",
)
@click.option("--list", "listed", is_flag=True, help="Only list all mechanisms and notions.")
@force_flag
def init(file: str | None, like: str | None, listed: bool, force: bool) -> None:
    """Write a plan file to begin with."""
    if listed:
        if (file, like, force) != (None, None, False):
            raise click.UsageError("--list lists mechanisms and notions, and takes nothing else")
        click.echo(_listed())
        return
    file = file or f"plan{_ENDING}"
    if file in RELEASES and like is None:
        raise click.UsageError(f"A mechanism's name goes to --like: hockeystick init --like {file}")
    path = None if file == STDIN else out_path(file, (_ENDING,), force, "FILE")
    name = f"plan{_ENDING}" if path is None else file
    text = _like(like, name)
    if path is None:
        click.echo(text, nl=False)
        return
    write_whole(path, text, force)
    click.echo(f"{path} is written; hockeystick check {path} says what it means")


def _listed() -> str:
    """Return every mechanism and notion, and what each is."""
    notions = [
        f"  {name}: {first_sentence(kind)}{'' if name in RELEASES else _NO_FILE}"
        for name, kind in NOTIONS.items()
    ]
    stated = "\n".join(["Guarantees, of which no mechanism is known", *notions])
    return f"{index()}\n\n{stated}"


def _like(like: str | None, name: str) -> str:
    """Return the text to begin with."""
    if like is None:
        return training_template(name)
    mechanism = str(same_name(like, RELEASES))
    if mechanism in RELEASES:
        return template_of(mechanism, name)
    given = source(like)
    plan = given.plan_file().plan
    if given.content is not None:
        return given.content.decode("utf-8-sig")
    units = units_of(plan)
    text = template_of_plan(plan, name)
    return text if units is None else _filled(text, "delta", plain(suggested_delta(units)))


def _filled(text: str, key: str, value: str) -> str:
    """Return a template with another value for a key."""
    line = f"{key} = {value}"
    return re.sub(rf"(?m)^{key} = \S+ *", lambda found: line.ljust(len(found[0])), text, count=1)


_BROKEN: Final = 1
_WIDEST: Final = 100
_UNBOUNDED: Final = 1_000_000
_CHECK: Final = """Say whether plan files are well-formed and what they mean; nothing is computed.

PLAN is a plan file, a grid file, - for standard input, or a plan as it is in Python. Of a broken
file each table says what is wrong first.

With --schema, print the JSON schema of plan files, by which editors complete and check them (Taplo,
Even Better TOML): the first line of a file is then #:schema ./plan.schema.json.

Exit status 0: all are well-formed. 1: some are not.
"""


@click.command(
    cls=command.Command, help=_CHECK, short_help="Say whether plan files are well-formed."
)
@click.argument("plans", metavar="[PLAN]...", nargs=-1)
@click.option("--schema", is_flag=True, help="Print the JSON schema of plan files.")
@flags.json_flag
def check(plans: tuple[str, ...], schema: bool, as_json: bool) -> None:
    """Say whether plan files are well-formed and what they mean."""
    if schema == bool(plans):
        raise click.UsageError("Give plan files, or --schema alone")
    if schema:
        from hockeystick.io.schema import plan_schema

        click.echo(dumped(plan_schema()))
        return
    found = [Checked.of(plan) for plan in plans]
    if as_json:
        told = {"version": hs.__version__, "files": [one.as_dict() for one in found]}
        click.echo(dumped(told))
    else:
        for one in found:
            _print(one)
    if any(one.problems for one in found):
        click.get_current_context().exit(_BROKEN)


def _width() -> int:
    """Return how wide a line may be: as wide as it is where no terminal shows it."""
    is_seen = sys.stdout.isatty() or "COLUMNS" in os.environ
    return min(shutil.get_terminal_size().columns, _WIDEST) if is_seen else _UNBOUNDED


def _print(one: Checked) -> None:
    """Print what is to be said of one file."""
    many = len(one.problems)
    fine = "well-formed" if one.left_out is None else "well-formed for solve"
    problems = "1 problem" if many == 1 else f"{many} problems"
    hidden = " (more may show once mended)" if one.is_there else ""
    verdict = f"{problems}{hidden}" if many else fine
    colour = "red" if many else "green"
    click.echo(f"{on_one_line(one.name)}: {click.style(verdict, fg=colour)}")
    width = _width()
    cautions = [f"caution: {caution.text}" for caution in one.cautions]
    for line in one.problems or [*one.meaning, *cautions]:
        shown = textwrap.wrap(
            on_one_line(line),
            max(20, width - 1),
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
        click.echo("\n".join(shown))


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
