"""The command ``init``: a plan file to begin with."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, Final

import click

from hockeystick._suggest import same_name
from hockeystick._validate import PARAMETERS, real
from hockeystick.answers import suggested_delta, units_of
from hockeystick.cli.flags import completing
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.out_file import force_flag, out_path, write_whole
from hockeystick.cli.flags.source import STDIN, source
from hockeystick.errors import ParameterError
from hockeystick.io import parse
from hockeystick.io.templates import template_of, template_of_plan, training_template
from hockeystick.io.vocabulary import RELEASES
from hockeystick.mechanisms import DPSGD, index
from hockeystick.mechanisms.listing import first_sentence
from hockeystick.notions import NOTIONS
from hockeystick.numerics.numerals import plain

_ENDING: Final = ".toml"
_LEFT_OUT: Final = ""
_NO_FILE: Final = " In Python only."
_QUESTIONS: Final = {
    "examples": ("How many examples has the training set?", "60000"),
    "batch_size": ("How many of them are in a batch, on average?", "256"),
    "epochs": ("How many passes over the data?", "60"),
    "noise_multiplier": ("Noise over clipping norm? Nothing, to have it solved for", _LEFT_OUT),
}
_HELP: Final = """Write a plan file to begin with, every key with a comment.

FILE is a new .toml file, plan.toml by default, or - for standard output. It is for DP-SGD; with
--like for another mechanism or notion by its name in Python, or a copy of another plan: of a plan
file, or of the answer or solution that --json printed. With --ask, a few questions fill it in.
--list says which mechanisms and notions there are.
"""


@click.command(cls=Once, help=_HELP, short_help="Write a plan file to begin with.")
@click.argument("file", metavar="[FILE]", required=False, shell_complete=completing.files)
@click.option("-o", "--out", metavar="FILE", help="The same as FILE.")
@click.option(
    "--like",
    metavar="NAME",
    help="What to begin with: a mechanism or notion, a plan file, what --json printed, or a plan "
    "as it is in Python.",
    shell_complete=completing.among(RELEASES),
)
@click.option("--list", "listed", is_flag=True, help="Only list all mechanisms and notions.")
@click.option("--ask", is_flag=True, help="Ask for the numbers of DP-SGD, on a terminal.")
@force_flag
def init(
    file: str | None, out: str | None, like: str | None, listed: bool, ask: bool, force: bool
) -> None:
    """Write a plan file to begin with."""
    if listed:
        if (file, out, like, ask, force) != (None, None, None, False, False):
            raise click.UsageError("--list lists mechanisms and notions, and takes nothing else")
        click.echo(_listed())
        return
    if ask and like is not None:
        raise click.UsageError("--ask is for DP-SGD: leave out --like")
    if file is not None and out is not None:
        raise click.UsageError("FILE is given twice; give it once")
    file = file or out or f"plan{_ENDING}"
    if file in RELEASES and like is None:
        raise click.UsageError(f"A mechanism's name goes to --like: hockeystick init --like {file}")
    path = None if file == STDIN else out_path(file, (_ENDING,), force, "FILE")
    name = f"plan{_ENDING}" if path is None else file
    text = _asked(name) if ask else _like(like, name)
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


def _asked(name: str) -> str:
    """Return the template, with what somebody answered."""
    if not sys.stdin.isatty():
        raise click.UsageError("--ask needs a terminal to ask on")
    given = {key: _answer(key, *question) for key, question in _QUESTIONS.items()}
    make: Any = DPSGD
    numbers = {key: parse(text) for key, text in given.items() if text != _LEFT_OUT}
    units = units_of(make(**{"noise_multiplier": 1} | numbers))
    sensible = "1e-5" if units is None else plain(suggested_delta(units))
    given["delta"] = _answer("delta", "At which delta?", sensible)
    text = training_template(name)
    for key, value in given.items():
        text = _filled(text, key, value)
    return text


def _answer(key: str, question: str, default: str) -> str:
    """Return what somebody answers, once it can be."""
    return str(click.prompt(question, default, value_proc=_checking(key), err=True))


def _checking(key: str) -> Callable[[str], str]:
    """Return what refuses an answer that cannot be."""

    def checked(text: str) -> str:
        if text == _LEFT_OUT:
            return text
        given: Any = parse(text)
        try:
            real(key, given, PARAMETERS[key])
        except ParameterError as error:
            raise click.UsageError(str(error)) from None
        return text

    return checked


def _filled(text: str, key: str, value: str) -> str:
    """Return a template with another value for a key, or without one."""
    line = f"# {key} = ..." if value == _LEFT_OUT else f"{key} = {value}"
    return re.sub(rf"(?m)^{key} = \S+ *", lambda found: line.ljust(len(found[0])), text, count=1)
