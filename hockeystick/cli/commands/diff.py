"""The command ``diff``: what differs between two plans, and which of them costs less."""

from __future__ import annotations

import math
from typing import Any, Final

import click

import hockeystick as hs
from hockeystick.cli.as_json import dumped
from hockeystick.cli.describe import Question
from hockeystick.cli.flags import asking, completing, options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.source import load
from hockeystick.cli.results.difference import Difference
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.io.plan_file import PlanFile
from hockeystick.numerics.numerals import plain

_HELP: Final = """Print what differs between two plans, and whether one provably costs less.

A and B are plan files or plans as they are in Python, asked for epsilon at the same delta: the
files' own, or --delta.
"""


@click.command(cls=Once, help=_HELP, short_help="Print what differs between two plans.")
@click.argument("first", metavar="A", shell_complete=completing.files)
@click.argument("second", metavar="B", shell_complete=completing.files)
@options.question("delta")
@options.json_flag
def diff(first: str, second: str, delta: str | None, as_json: bool) -> None:
    """Print what differs between two plans, and whether one provably costs less."""
    files = load(first), load(second)
    at = _delta(delta, files, (first, second))
    with waiting("computing both"):
        one, other = (_epsilon(file, at) for file in files)
    found = Difference((first, second), files, at.value, (one, other))
    if as_json:
        click.echo(_json(found))
    else:
        from hockeystick.cli.panels import difference_panel, render

        render.print_plainly(difference_panel.panel(found))


def _delta(given: str | None, files: tuple[PlanFile, PlanFile], names: tuple[str, str]) -> Question:
    """Return the one delta of both."""
    own = [file.delta for file in files if file.delta is not None]
    if given is None and len(set(own)) > 1:
        asked = " and ".join(
            f"{name} at {plain(delta)}" for name, delta in zip(names, own, strict=True)
        )
        raise click.UsageError(f"The two ask at different deltas, {asked}; give --delta")
    known = next((file for file in files if file.delta is not None), files[0])
    return asking.question("delta", given, known)


def _epsilon(file: PlanFile, at: Question) -> hs.Certified:
    """Return the proven epsilon of one."""
    answer: Any = hs.epsilon(file.plan, at.value)
    asking.refuse_infinite(at, answer)
    proven: hs.Certified = answer
    return proven


def _json(found: Difference) -> str:
    """Return the same as strict JSON in ASCII."""
    sides = zip(found.names, found.files, found.answers, strict=True)
    told = {
        "version": hs.__version__,
        "at": {"delta": found.delta},
        "plans": [
            {"name": name, "title": file.title, "answer": answer.as_dict()}
            for name, file, answer in sides
        ],
        "changed": {path: list(pair) for path, pair in found.changed.items()},
        "second_less_first": [end if math.isfinite(end) else str(end) for end in found.ends],
        "second_costs": found.sign,
        "caution": found.caution,
    }
    return dumped(told)
