"""The commands ``init`` and ``check``: plan files to begin with, and what is wrong with one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, final

import click

import hockeystick as hs
from hockeystick._suggest import same_name
from hockeystick.answers import Caution, in_words, steps_rules, suggested_delta, units_of
from hockeystick.answers.cautions import caution_of_question
from hockeystick.cli import command, options
from hockeystick.cli.out_file import out_path, write_whole
from hockeystick.cli.plans import STDIN, Source
from hockeystick.cli.refusal import on_one_line
from hockeystick.cli.show import listed, print_json
from hockeystick.cli.sweep import GridFile, grid_file
from hockeystick.errors import HockeystickError
from hockeystick.io import PlanFile
from hockeystick.io.plan_file import plan_text, problems_in
from hockeystick.io.templates import template_of, template_of_plan, training_template
from hockeystick.io.vocabulary import RELEASES
from hockeystick.mechanisms import index
from hockeystick.mechanisms.listing import first_sentence
from hockeystick.notions import NOTIONS
from hockeystick.numerics.numerals import jsonable, plain

_ENDING: Final = ".toml"
_BROKEN: Final = 1


@click.command(
    cls=command.Command,
    examples=(
        "hockeystick init --list",
        "hockeystick init my-plan.toml",
        "hockeystick init laplace.toml Laplace",
        "hockeystick init - 'Laplace(2)**3 @ Gaussian(4)'",
    ),
)
@click.argument("file", default=f"plan{_ENDING}", metavar="[FILE]")
@click.argument("like", metavar="[LIKE]", required=False)
@click.option("--list", "list_all", is_flag=True, help="Only list all mechanisms and notions.")
@options.options("force")
def init(file: str, like: str | None, list_all: bool, force: bool) -> None:
    """Write a plan file to begin with, every key with a comment.

    FILE is a new .toml file, plan.toml by default, or - for standard output. LIKE is a mechanism or
    notion by its name in Python, DPSGD by default; or a plan to copy: a file, what --json printed,
    or a plan as it is in Python.
    """
    if list_all:
        notions = [
            f"  {name}: {first_sentence(kind)}{'' if name in RELEASES else ' In Python only.'}"
            for name, kind in NOTIONS.items()
        ]
        stated = ["Guarantees, of which no mechanism is known", *notions]
        click.echo("\n".join([index(), "", *stated]))
        return
    path = None if file == STDIN else out_path(file, (_ENDING,), force, "FILE")
    text = _text(like, f"plan{_ENDING}" if path is None else file)
    if path is None:
        click.echo(text, nl=False)
    else:
        write_whole(path, text, force)
        click.echo(f"{path} is written; hockeystick check {path} says what it means")


def _text(like: str | None, name: str) -> str:
    """Return the text to begin with."""
    if like is None:
        return training_template(name)
    mechanism = str(same_name(like, RELEASES))
    if mechanism in RELEASES:
        return template_of(mechanism, name)
    given = Source.of(like)
    held = given.file()
    if given.content is not None:
        text = given.content.decode("utf-8-sig")
        return plan_text(held) if text.lstrip().startswith("{") else text
    text, units = template_of_plan(held.plan, name), units_of(held.plan)
    if units is None:
        return text
    line = f"delta = {plain(suggested_delta(units))}"
    return re.sub(r"(?m)^delta = \S+ *", lambda found: line.ljust(len(found[0])), text, count=1)


@click.command(
    cls=command.Command,
    examples=("hockeystick check plan.toml", "hockeystick check --schema > plan.schema.json"),
)
@click.argument("plans", metavar="[PLAN]...", nargs=-1)
@click.option("--schema", is_flag=True, help="Print the JSON schema of plan files, for editors.")
@options.options("json")
def check(plans: tuple[str, ...], schema: bool, as_json: bool) -> None:
    """Say whether plan files are well-formed and what they mean; nothing is computed.

    PLAN is a plan file, a grid file, - for standard input, or a plan as it is in Python. Of a
    broken file each table says what is wrong first.

    Exit status 0: all are well-formed. 1: some are not.
    """
    if schema == bool(plans):
        raise click.UsageError("Give plan files, or --schema alone")
    if schema:
        from hockeystick.io.schema import plan_schema

        print_json(plan_schema())
        return
    found = [_Checked.of(plan) for plan in plans]
    if as_json:
        print_json({"version": hs.__version__, "files": [one.as_dict() for one in found]})
    else:
        for one in found:
            many = f"{len(one.problems)} problem{'s' * (len(one.problems) > 1)}"
            verdict = (
                click.style(many, "red") if one.problems else click.style("well-formed", "green")
            )
            click.echo(f"{on_one_line(one.name)}: {verdict}")
            cautions = [f"caution: {caution.text}" for caution in one.cautions]
            for line in one.problems or [*one.meaning, *cautions]:
                click.echo(f"  {on_one_line(line)}")
    if any(one.problems for one in found):
        click.get_current_context().exit(_BROKEN)


# How a problem says where it is.
_LINE: Final = re.compile(r"\(at line (\d+), |\bline (\d+)\b")


@final
@dataclass(frozen=True, slots=True)
class _Checked:
    """A plan, and what is wrong with it.

    Args:
        name: What was given for it.
        problems: What is wrong, nothing where it is well-formed.
        file: The plan, None where something is wrong or it is a grid of plans.
        grid: The grid, where it is one.
        left_out: The one number that the plan leaves out, to be solved for.
    """

    name: str
    problems: tuple[str, ...] = ()
    file: PlanFile | None = None
    grid: GridFile | None = None
    left_out: str | None = None

    @classmethod
    def of(cls, text: str) -> _Checked:
        """Return what is to be said of a plan file, of - for standard input, or of a text."""
        name = text
        try:
            given = Source.of(text)
            name = given.name
            content = given.content or b""
            if re.search(rb"(?m)^\s*\[grid[\].]", content):
                return cls(name, grid=grid_file(content))
            problems = [] if given.content is None else problems_in(content)
            left_out = given.left_out() if problems else None
            if left_out is not None:
                return cls(name, left_out=left_out)
            return cls(name, tuple(problems), None if problems else given.file())
        except HockeystickError as error:
            return cls(name, (str(error).removeprefix(f"{name}: "),))

    @property
    def meaning(self) -> list[str]:
        """What it means, in a few lines."""
        if self.left_out is not None:
            needs = f"epsilon needs {self.left_out}"
            return [f"{self.left_out} is left out: hockeystick solve finds it; {needs}"]
        if self.file is not None:
            return _plan(self.file)
        if self.grid is None:
            return []
        sizes = [f"{len(values)} of {name}" for name, values in self.grid.grid.items()]
        finds = f"finds {self.grid.question.find}"
        return [f"a grid for hockeystick sweep: {', '.join(sizes)}", finds]

    @property
    def cautions(self) -> list[Caution]:
        """What whoever decides should know of where it is asked."""
        found = self.file and caution_of_question(self.file.plan, self.file.delta)
        return [found] if found else []

    def as_dict(self) -> dict[str, Any]:
        """Return the same, ready for JSON."""
        lines = [found and int(found[1] or found[2]) for found in map(_LINE.search, self.problems)]
        at = {} if self.file is None else {n: getattr(self.file, n) for n in ("delta", "epsilon")}
        return {
            "file": self.name,
            "well_formed": not self.problems,
            "problems": list(self.problems),
            "lines": lines,
            "meaning": self.meaning,
            "cautions": listed(self.cautions),
            **{name: None if value is None else jsonable(value) for name, value in at.items()},
        }


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
