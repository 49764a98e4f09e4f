"""The command ``init``: a plan file to begin with."""

from __future__ import annotations

import re
from typing import Final

import click

from hockeystick._suggest import same_name
from hockeystick.answers import suggested_delta, units_of
from hockeystick.cli import command
from hockeystick.cli.out_file import force_flag, out_path, write_whole
from hockeystick.cli.plans import STDIN, source
from hockeystick.io.templates import template_of, template_of_plan, training_template
from hockeystick.io.vocabulary import RELEASES
from hockeystick.mechanisms import index
from hockeystick.mechanisms.listing import first_sentence
from hockeystick.notions import NOTIONS
from hockeystick.numerics.numerals import plain

_ENDING: Final = ".toml"
_NO_FILE: Final = " In Python only."
_HELP: Final = """Write a plan file to begin with, every key with a comment.

FILE is a new .toml file, plan.toml by default, or - for standard output. It is for DP-SGD; with
--like for another mechanism or notion by its name in Python, or a copy of another plan: of a plan
file, or of the answer or solution that --json printed. --list says which mechanisms and
notions there are.
"""


@click.command(cls=command.Command, help=_HELP, short_help="Write a plan file to begin with.")
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
