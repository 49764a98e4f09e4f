"""The command ``verify``: what a second program says of an answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.calibration.sweeps.table import WRITERS
from hockeystick.cli.flags import asking, of_group, options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.source import load
from hockeystick.cli.terminal.progress import bar
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.cli.terminal.workers import WORKERS, processes
from hockeystick.io import parse
from hockeystick.io.call_text import is_call_text

if TYPE_CHECKING:
    from hockeystick.verifier import Verdict

_STDIN: Final = "-"
_PLAN: Final = ".toml"
_COUNTS: Final = {
    "sample": Domain(symbol="n", low=1, high=10**8, typical=(10, 1000), whole=True),
    "workers": WORKERS,
}

_HELP: Final = """Have an answer verified by a second program, and print what it says.

FILE is what epsilon, delta or solve printed with --json, a report, or - for standard input. Of a
plan, PLAN.toml or 'Laplace(2)**3', the answer to its question is computed first. Rows of a sweep,
.csv or .parquet, go with the grid file that was swept, --grid GRID.toml. The second program
has its own definitions, shares no code with the first, and computes in rigorous ball arithmetic
(extra verify). Of a report, the answer inside it is verified, and its visible text is not looked
at. A PDF of it holds no answer.

Exit status 0: verified. 1: refuted. 3: not covered, which says nothing about the answer. 2: FILE
holds no answer. Of rows, it is 1 where one is refuted, else 3 where one is not covered, such as an
approximation, and 0 where each one that was looked at is verified; with --sample, these are N
answers that the contents of FILE draw.
"""


@click.command(cls=Once, help=_HELP)
@click.argument("file", metavar="FILE")
@of_group.group_flag
@options.question("delta")
@options.question("epsilon")
@click.option("--grid", metavar="GRID.toml", help="The grid file, if FILE holds a sweep's rows.")
@click.option("--sample", metavar="N", help="Verify N of the rows' answers; by default all.")
@click.option("--workers", metavar="N", help="Verify rows in N processes; by default in this one.")
@options.json_flag
def verify(
    file: str,
    group: str | None,
    delta: str | None,
    epsilon: str | None,
    grid: str | None,
    sample: str | None,
    workers: str | None,
    as_json: bool,
) -> None:
    """Have an answer verified by a second program, and print what it says."""
    hs.answers.require_verifier()
    asked = {"delta": delta, "epsilon": epsilon, of_group.NAME: group}
    if file.lower().endswith(tuple(WRITERS)):
        _refuse_flags(file, asked)
        _verify_rows(file, grid, _count("sample", sample), _count("workers", workers), as_json)
    else:
        for name, given in (("grid", grid), ("sample", sample), ("workers", workers)):
            if given is not None:
                told = f"--{name} is for the rows of a sweep, {' or '.join(WRITERS)}"
                raise click.UsageError(told)
        _verify_answer(file, asked, as_json)


def _verify_answer(file: str, asked: dict[str, str | None], as_json: bool) -> None:
    """Print what the verifier says of one answer, and end with its exit status."""
    text = _computed(file, asked) if _is_plan(file) else _given(file, asked)
    verdict = verdict_of(text)
    if as_json:
        from hockeystick.cli import as_json as programs

        told = {"version": hs.__version__, "file": file, **programs.said(verdict)}
        click.echo(programs.dumped(told))
    else:
        from hockeystick.cli.panels import verdict_table

        verdict_table.print_answer(file, json.loads(text), inside=not _is_plan(file))
    end_with(verdict, as_json)


def _count(name: str, given: str | None) -> int | None:
    """Return how many rows or processes are meant, or raise."""
    return None if given is None else _validate.count(name, cast(Any, parse(given)), _COUNTS[name])


def _verify_rows(
    file: str, grid: str | None, sample: int | None, workers: int | None, as_json: bool
) -> None:
    """Print what the verifier says of each row of a sweep, and end with the exit status of all."""
    if grid is None:
        said = "holds rows of a sweep, which do not say of which plan: give the file that was swept"
        raise click.UsageError(f"{file} {said}, --grid GRID.toml")
    from hockeystick.cli.flags.grid_file import load_grid
    from hockeystick.cli.results.verified_rows import verified_rows

    swept = load_grid(grid)
    with bar("verifying") as tell, processes(workers or 1) as executor:
        done = verified_rows(file, grid, swept, tell, executor, sample)
    if as_json:
        from hockeystick.cli import as_json as programs

        click.echo(programs.verified_rows(done, hs.__version__))
    else:
        from hockeystick.cli.panels import render, verified_panel

        render.print_plainly(verified_panel.panel(done))
    click.get_current_context().exit(done.exit_status)


def verdict_of(answer: Any, *plan: hs.Mechanism, **asked: Any) -> Verdict:
    """Return what the verifier says of an answer, with a sign of life while it computes."""
    with waiting("verifying"):
        return hs.verify(answer, *plan, **asked)


def end_with(verdict: Verdict | None, as_json: bool, otherwise: int = 0) -> None:
    """Print a verdict, for people alone, and end the command with its exit status, or another."""
    if verdict is None:
        click.get_current_context().exit(otherwise)
    if not as_json:
        from hockeystick.cli.panels import verdict_table

        verdict_table.print_verdict(verdict)
    click.get_current_context().exit(verdict.exit_status or otherwise)


def _is_plan(file: str) -> bool:
    """Return whether it is a plan that is given, and not an answer."""
    return file.lower().endswith(_PLAN) or is_call_text(file)


def _computed(path: str, asked: dict[str, str | None]) -> str:
    """Return the answer to the question about a plan, as a document."""
    questions = {name: text for name, text in asked.items() if name != of_group.NAME}
    file = of_group.for_group(load(path), asked[of_group.NAME])
    at = asking.one_question(questions, file)
    ask: Any = hs.epsilon if at.quantity == "epsilon" else hs.delta
    with waiting(f"computing {at.quantity}"):
        answer = ask(file.plan, **{at.name: at.value})
    asking.refuse_infinite(at, answer)
    from hockeystick.cli import as_json as programs

    return programs.answer(file, at, answer, hs.__version__)


def _given(file: str, asked: dict[str, str | None]) -> str:
    """Return the document that a file holds, or standard input."""
    _refuse_flags(file, asked)
    piped = b"" if sys.stdin is None or file != _STDIN else sys.stdin.buffer.read()
    return hs.answers.load_answer(piped if file == _STDIN else Path(file))


def _refuse_flags(file: str, asked: dict[str, str | None]) -> None:
    """Raise where it is said where to ask, or for whom, of what says so itself."""
    for name, text in asked.items():
        if text is not None:
            says = "for whom it is" if name == of_group.NAME else "where it was asked"
            raise click.UsageError(f"--{name} is for plan files: {file} says {says}")
