"""The command ``verify``: what a second program says of an answer."""

from __future__ import annotations

import json
import sys
import textwrap
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.calibration.sweeps.sweep import ENDINGS
from hockeystick.cli import as_json as programs
from hockeystick.cli import command, flags, layout, plans, questions
from hockeystick.cli.layout import Sheet
from hockeystick.cli.progress import WORKERS, bar, processes, waiting
from hockeystick.io import parse
from hockeystick.io.call_text import is_call_text
from hockeystick.numerics.numerals import at_most

if TYPE_CHECKING:
    from hockeystick.verifier import Verdict

_STDIN: Final = "-"
_PLAN: Final = ".toml"
_COUNTS: Final = {
    "sample": Domain(symbol="n", low=1, high=10**8, typical=(10, 1000), whole=True),
    "workers": WORKERS,
}

_HELP: Final = """Have an answer verified by a second program.

FILE is what epsilon, delta or solve printed with --json, a report, or - for standard input. Of a
plan the answer is computed first. Rows of a sweep go with the grid file, --grid GRID.toml. The
second program has its own definitions, shares no code with the first, and computes in ball
arithmetic (extra verify).

Exit status 0: verified. 1: refuted. 3: not covered, which says nothing about the answer. 2: FILE
holds no answer.
"""


_LONGEST: Final = 600
_PAGE: Final = (
    "it shows the answer inside, and its text fits its own digest; what its figures draw is not "
    "looked at"
)
_STYLES: Final = {"verified": "bold green", "refuted": "bold red", "not covered": "bold yellow"}
_MEANINGS: Final = {
    "verified": "a second program finds that every claim holds",
    "refuted": "do not rely on this answer; please report it",
    "altered": "do not rely on this page: it does not show what was written for its answer",
    "not covered": "the second program says nothing about this answer",
}


@final
@dataclass(frozen=True, slots=True)
class _Given:
    """What is to be verified.

    Args:
        text: The document, in JSON.
        altered: What a page shows that is not the answer inside it.
        filled: What people wrote into its blanks.
        is_page: Whether it is in a page.
    """

    text: str
    altered: tuple[str, ...] = ()
    filled: Mapping[str, str] = field(default_factory=dict)
    is_page: bool = False


@click.command(cls=command.Command, help=_HELP)
@click.argument("file", metavar="FILE")
@click.option("--grid", metavar="GRID.toml", help="The grid file, if FILE holds a sweep's rows.")
@click.option("--sample", metavar="N", help="Verify N of the rows' answers; by default all.")
@click.option("--workers", metavar="N", help="Verify rows in N processes; by default in this one.")
@flags.json_flag
@flags.verbose_flag
def verify(
    file: str, grid: str | None, sample: str | None, workers: str | None, as_json: bool
) -> None:
    """Have an answer verified by a second program."""
    hs.answers.require_verifier()
    if file.lower().endswith(ENDINGS):
        _verify_rows(file, grid, _count("sample", sample), _count("workers", workers), as_json)
    else:
        for name, given in (("grid", grid), ("sample", sample), ("workers", workers)):
            if given is not None:
                told = f"--{name} is for the rows of a sweep, {' or '.join(ENDINGS)}"
                raise click.UsageError(told)
        _verify_answer(file, as_json)


def _verify_answer(file: str, as_json: bool) -> None:
    """Print what the verifier says of one answer, and end with its exit status."""
    given = _Given(_computed(file)) if _is_plan(file) else _given(file)
    altered = given.altered
    verdict = hs.answers.refuted_page(altered) if altered else verdict_of(given.text)
    if as_json:
        told = {"version": hs.__version__, "file": file, **programs.said(verdict)}
        click.echo(programs.dumped(told))
    else:
        sheet = _sheet(
            file,
            json.loads(given.text),
            inside=not _is_plan(file),
            filled=given.filled,
            agrees=given.is_page and not altered,
        )
        sheet.show()
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
    from hockeystick.cli.grid_file import load_grid
    from hockeystick.cli.verify_rows import sheet_of_rows, verified_rows

    swept = load_grid(grid)
    with bar("verifying") as tell, processes(workers or 1) as executor:
        done = verified_rows(file, grid, swept, tell, executor, sample)
    if as_json:
        click.echo(programs.verified_rows(done, hs.__version__))
    else:
        sheet_of_rows(done).show()
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
        _verdict_sheet(verdict).show()
    click.get_current_context().exit(verdict.exit_status or otherwise)


def _is_plan(file: str) -> bool:
    """Return whether it is a plan that is given, and not an answer."""
    return file.lower().endswith(_PLAN) or is_call_text(file)


def _computed(path: str) -> str:
    """Return the answer to the question of a plan file, as a document."""
    file = plans.load(path)
    at = questions.one_question({"delta": None, "epsilon": None}, file)
    ask: Any = hs.epsilon if at.quantity == "epsilon" else hs.delta
    with waiting(f"computing {at.quantity}"):
        answer = ask(file.plan, **{at.name: at.value})
    questions.refuse_infinite(at, answer)
    return programs.answer(file, at, answer, hs.__version__)


def _given(file: str) -> _Given:
    """Return what a file holds, or standard input."""
    piped = b"" if sys.stdin is None or file != _STDIN else sys.stdin.buffer.read()
    held = piped if file == _STDIN else Path(file)
    answers = hs.answers
    text = answers.load_answer(held)
    content = piped if file == _STDIN else Path(file).read_bytes()
    is_page = content.removeprefix(BOM_UTF8).lstrip().startswith(b"<")
    return _Given(text, answers.altered_in(held), answers.filled_in(held), is_page)


def _sheet(
    name: str, told: dict[str, Any], *, inside: bool, filled: Mapping[str, str], agrees: bool
) -> Sheet:
    """Return what is about to be judged, and of a page what is in its blanks and if it agrees."""
    sheet = Sheet()
    sheet.fact("file", name)
    plan = spelled(told.get("description"))
    sheet.more("plan", textwrap.shorten(plan, _LONGEST, placeholder=" ..."))
    sheet.fact("answer inside" if inside else "answer", _claim(told))
    if agrees:
        sheet.fact("page", _PAGE)
    if filled:
        written = "; ".join(f"{blank}: {text}" for blank, text in filled.items())
        sheet.fact("written in", f"{written} (not judged)")
    return sheet


def spelled(description: Any) -> str:
    """Return a description as the call that it stands for, without the fields that are left out."""
    if isinstance(description, list):
        return f"[{', '.join(map(spelled, description))}]"
    if not isinstance(description, dict):
        return str(description)
    given = {name: part for name, part in description.items() if part is not None}
    kind = given.pop("type", "")
    return f"{kind}({', '.join(f'{name}={spelled(part)}' for name, part in given.items())})"


def _claim(told: dict[str, Any]) -> str:
    """Return in words what an answer claims, with the numbers as it has them."""
    if "parameter" in told:
        return f"{told['parameter']} = {told.get('value')} meets {told.get('target')}"
    asked = ", ".join(f"{name} = {value}" for name, value in told.get("at", {}).items())
    ends = f"proven from {told.get('lower')} to {told.get('upper')}"
    return f"{told.get('quantity')} at most {_at_most(told.get('upper'))} at {asked}, {ends}"


def _at_most(upper: Any) -> str:
    """Return an upper end in a few digits, or as it is where it is no number."""
    try:
        return at_most(float(upper))
    except (TypeError, ValueError):
        return str(upper)


def _verdict_sheet(verdict: Verdict) -> Sheet:
    """Return the verdict; with -v what became of each claim."""
    sheet = Sheet()
    if verdict.checks and sheet.is_verbose:
        claims = layout.table("claim", "ball", "holds")
        for one in verdict.checks:
            holds = Text("yes", "green") if one.holds else Text("no", "bold red")
            claims.add_row(layout.one_line(one.claim), layout.one_line(one.ball), holds)
        sheet.block(claims, Text())
    of_page = verdict.status == "refuted" and not verdict.checks
    meaning = _MEANINGS["altered" if of_page else verdict.status]
    sheet.fact("verdict", Text.assemble((verdict.status, _STYLES[verdict.status]), f": {meaning}"))
    if verdict.reason:
        sheet.fact("reason", verdict.reason)
    return sheet
