"""The command ``check``: whether plan files are well-formed, and what they mean."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import Final

import click

import hockeystick as hs
from hockeystick.cli.as_json import dumped
from hockeystick.cli.flags import completing, options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.results.checked import Checked
from hockeystick.cli.wording import on_one_line

_BROKEN: Final = 1
_WIDEST: Final = 100
_UNBOUNDED: Final = 1_000_000
_HELP: Final = """Say whether plan files are well-formed and what they mean; nothing is computed.

PLAN is a plan file, a grid file, - for standard input, or a plan as it is in Python. Of a broken
file each table says what is wrong first.

With --schema, print the JSON schema of plan files, by which editors complete and check them (Taplo,
Even Better TOML): the first line of a file is then #:schema ./plan.schema.json.

Exit status 0: all are well-formed. 1: some are not.
"""


@click.command(cls=Once, help=_HELP, short_help="Say whether plan files are well-formed.")
@click.argument("plans", metavar="[PLAN]...", nargs=-1, shell_complete=completing.files)
@click.option("--schema", is_flag=True, help="Print the JSON schema of plan files.")
@options.json_flag
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
