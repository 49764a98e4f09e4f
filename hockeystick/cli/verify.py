"""The command ``verify``: what a second program says of an answer, or of the rows of a sweep."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from concurrent.futures import Executor
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.calibration.sweeps.questions import ACCOUNTANT
from hockeystick.calibration.sweeps.sweep import (
    ANSWERED_BY,
    ENDINGS,
    ERROR,
    cells_of,
    grid_of,
    read_rows,
    scalar,
)
from hockeystick.cli import options, plans
from hockeystick.cli.command import command
from hockeystick.cli.progress import WORKERS, Progress, processes, progress
from hockeystick.cli.show import Sheet, heading, one_line, show, table, verdict_fields
from hockeystick.errors import AnswerError, HockeystickError
from hockeystick.io.call_text import is_call_text
from hockeystick.numerics.numerals import at_most, jsonable

if TYPE_CHECKING:
    from hockeystick.cli.sweep import FileQuestion, GridFile
    from hockeystick.verifier import Verdict

_NO_ANSWER: Final = "no answer"
_STYLES: Final = {"verified": "bold green", "refuted": "bold red", "not covered": "bold yellow"}
_STATUSES: Final = {"verified": 0, "refuted": 1, "not covered": 3}
_MEANINGS: Final = {
    "verified": "a second program finds that its numbers hold; text is not looked at",
    "refuted": "do not rely on it: it was edited, or is a bug to report",
    "not covered": "the second program says nothing about this answer",
}
# So many rows of each status are named.
_NAMED: Final = 5


@command(
    "hockeystick epsilon 'Gaussian(4)' --delta 1e-6 --json > answer.json",
    "hockeystick verify answer.json",
    "hockeystick verify plan.toml",
    takes="FILE SWEPT workers json verbose",
)
def verify(file: str, grid: str | None, workers: Any) -> None:
    """Have an answer verified by a second program.

    FILE is what epsilon, delta or solve printed with --json, a report, or - for standard input. Of
    a plan the answer is computed first. Rows of a sweep go with the grid file that was swept. The
    second program has its own definitions, shares no code with the first, and computes in ball
    arithmetic (extra verify). Of a report, its visible text is not looked at.

    Exit status 0: verified. 1: refuted. 3: not covered, which says nothing about the answer.
    """
    hs.answers.require_verifier()
    if file.lower().endswith(ENDINGS):
        _verify_rows(file, grid, workers)
        return
    if grid is not None:
        raise click.UsageError(f"GRID.toml is for the rows of a sweep, {' or '.join(ENDINGS)}")
    is_plan = file.lower().endswith(".toml") or is_call_text(file)
    text = _computed(file) if is_plan else _given(file)
    verdict = verdict_of(text)
    sheet = Sheet()
    sheet.fact("file", file)
    sheet.fact("answer" if is_plan else "answer inside", _claim(json.loads(text)))
    if file.lower().endswith((".html", ".htm")):
        sheet.fact("page", "its visible text is not looked at")
    about = {"version": hs.__version__, "file": file}
    show(lambda: {**about, **verdict_fields(verdict)}, lambda: sheet)
    end_with(verdict)


def verdict_of(answer: Any, *plan: hs.Mechanism, **asked: Any) -> Verdict:
    """Return what the verifier says of an answer, with a sign of life while it computes."""
    with progress("verifying"):
        return hs.verify(answer, *plan, **asked)


def end_with(verdict: Verdict | None, otherwise: int = 0) -> None:
    """Print a verdict, for people alone, and end the command with its exit status, or another."""
    if verdict is None:
        click.get_current_context().exit(otherwise)
    if not options.is_given("json"):
        _verdict_sheet(verdict).show()
    click.get_current_context().exit(verdict.exit_status or otherwise)


def _verdict_sheet(verdict: Verdict) -> Sheet:
    """Return the verdict; with -v what became of each claim."""
    sheet = Sheet()
    if verdict.checks and sheet.is_verbose:
        claims = table("claim", "ball", "holds")
        for one in verdict.checks:
            holds = Text("yes", "green") if one.holds else Text("no", "bold red")
            claims.add_row(one_line(one.claim), one_line(one.ball), holds)
        sheet.block(claims)
    meaning = _MEANINGS[verdict.status]
    sheet.fact("verdict", Text.assemble((verdict.status, _STYLES[verdict.status]), f": {meaning}"))
    if verdict.reason:
        sheet.fact("reason", verdict.reason)
    return sheet


def _computed(path: str) -> str:
    """Return the answer to the question of a plan, as a document."""
    file = plans.Source.of(path).file()
    at = options.question(file, delta=None, epsilon=None)
    ask: Any = hs.epsilon if at.quantity == "epsilon" else hs.delta
    with progress(f"computing {at.quantity}"):
        answer = ask(file.plan, **at.asked)
    options.refuse_infinite(at, answer)
    told = hs.answers.document(answer, file.plan, **at.asked)
    return json.dumps({**heading(file), **told}, allow_nan=False)


def _given(file: str) -> str:
    """Return the document that a file holds, or standard input."""
    if file != plans.STDIN:
        return hs.answers.load_answer(Path(file))
    return hs.answers.load_answer(b"" if sys.stdin is None else sys.stdin.buffer.read())


def _claim(told: dict[str, Any]) -> str:
    """Return in words what an answer claims, with the numbers as it has them."""
    if "parameter" in told:
        return f"{told['parameter']} = {told.get('value')} meets {told.get('target')}"
    asked = ", ".join(f"{name} = {value}" for name, value in told.get("at", {}).items())
    upper = told.get("upper")
    try:
        most = at_most(float(cast(Any, upper)))
    except (TypeError, ValueError):
        most = str(upper)
    ends = f"proven from {told.get('lower')} to {upper}"
    return f"{told.get('quantity')} at most {most} at {asked}, {ends}"


Row = Mapping[str, str]


def _verify_rows(out: str, grid: str | None, workers: Any) -> None:
    """Print what the verifier says of each row of a sweep, and end with the exit status of all."""
    if grid is None:
        raise click.UsageError(
            f"{out} holds rows of a sweep: give the grid file that was swept too"
        )
    from hockeystick.cli.sweep import load_grid

    swept, count = load_grid(grid), _validate.count("workers", workers, WORKERS)
    with progress("verifying") as tell, processes(count) as executor:
        rows = _verified_rows(out, grid, swept, tell, executor)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in (*_STATUSES, _NO_ANSWER)}
    for one in rows:
        found[one["status"]].append(one)
    order = ("refuted", "not covered", "verified")
    status = next((name for name in order if found[name]), "not covered")
    sheet = Sheet(swept.title)
    sheet.fact("file", f"{out}, {len(rows):,} rows of {grid}")
    for name, of_status in found.items():
        if of_status or name == "verified":
            sheet.fact(name, Text(f"{len(of_status):,}", _STYLES.get(name, "")))
        for one in of_status[:_NAMED] if name != "verified" else ():
            cell = ", ".join(f"{key} = {value}" for key, value in one["parameters"].items())
            sheet.fact("", f"row {one['row']} ({cell}): {one['reason']}")
    sheet.fact("verdict", Text(status, _STYLES[status]))
    about = {"version": hs.__version__, "file": out, "grid": grid, "title": swept.title}
    show(lambda: {**about, "status": status, "rows": rows}, lambda: sheet)
    click.get_current_context().exit(_STATUSES[status])


def _verified_rows(
    out: str, grid: str, file: GridFile, tell: Progress, executor: Executor | None
) -> list[dict[str, Any]]:
    """Return what the verifier says of each row of a file, ready for JSON.

    Raises:
        AnswerError: If the file cannot be read, or its rows are not those of the grid.
    """
    cells, rows = list(cells_of(grid_of(file.grid))), read_rows(Path(out))
    if len(rows) != len(cells):
        needed = f"as many rows as {grid} has cells, {len(cells):,}; it has {len(rows):,}"
        raise AnswerError(f"{out} must have {needed}")
    verdicts: list[dict[str, Any]] = []
    asked: list[tuple[str, FileQuestion, Mapping[str, Any], Row]] = []
    for number, (cell, row) in enumerate(zip(cells, rows, strict=True), 1):
        where = f"{out}, row {number}"
        _check_row(where, row, cell, grid)
        listed: Any = {name: scalar(value) for name, value in cell.items()}
        about = {"row": number, "parameters": {n: jsonable(x) for n, x in listed.items()}}
        verdicts.append({**about, "status": _NO_ANSWER, "reason": row[ERROR]})
        if not row[ERROR]:
            _check_row(where, row, file.question.about(cell), grid, asked=True)
            asked.append((where, file.question, cell, row))
    run: Any = map if executor is None else executor.map
    answered = [one for one in verdicts if not one["reason"]]
    found = zip(answered, run(_judged, *zip(*asked, strict=True)) if asked else (), strict=True)
    for done, (verdict, (status, reason)) in enumerate(found, 1):
        verdict |= {"status": status, "reason": reason or None}
        tell(done, len(asked))
    return verdicts


def _check_row(
    where: str, row: Row, expected: Mapping[str, object], grid: str, *, asked: bool = False
) -> None:
    """Raise unless a row has the parameters of its cell; what was asked older files do not say."""
    for name, value in expected.items():
        found = row.get(name)
        if found is None and not asked:
            raise AnswerError(f"{where} has no column {name}: these are not the rows of {grid}")
        wanted = "" if value is None else str(scalar(value))
        is_left_out = asked and (not found or name == "version")
        if not is_left_out and not _same(str(found), wanted):
            raise AnswerError(f"{where} has {name} = {found}, but {grid} has {value} there")


def _same(one: str, other: str) -> bool:
    """Return whether two texts are the same, or the same number."""
    try:
        return one == other or Decimal(one) == Decimal(other)
    except InvalidOperation:
        return False


def _judged(
    where: str, question: FileQuestion, cell: Mapping[str, Any], row: Row
) -> tuple[str, str]:
    """Return what the verifier says of the ends in a row, asked of its cell's plan; and why."""
    if row.get("approximation"):
        return "not covered", "an approximation claims nothing that could be verified"
    at, solved = question.at(cell), question.find not in ("epsilon", "delta")
    names = ("achieved_lower", "achieved_upper") if solved else ("lower", "upper")
    misnamed = "" if solved else _misnamed(question, cell, row)
    if misnamed:
        return "refuted", misnamed
    try:
        plan = question.plan({**cell, question.find: _number(row, "value")} if solved else cell)
        lower, upper = (_number(row, name) for name in names)
        if lower > upper:
            ends = f"they are {lower} and {upper}"
            raise AnswerError(f"{names[0]} must be at most {names[1]}; {ends}")
        if solved and upper > at["epsilon"]:
            return "refuted", f"achieved_upper is above the target, epsilon = {at['epsilon']}"
        quantity: Any = "epsilon" if solved else question.find
        about: Any = {"accountant": "sweep", "adjacency": plan.adjacency}
        answer = hs.Certified(lower, lower, upper, quantity=quantity, **about)
        place: Any = {question.needed[0]: at[question.needed[0]]}
        verdict = hs.verify(answer, plan, **place)
        is_inside = solved or lower <= _number(row, "estimate") <= upper
    except HockeystickError as error:
        raise AnswerError(f"{where}: {error}") from None
    if verdict.status == "verified" and not is_inside:
        return "refuted", "estimate is not from lower to upper"
    return verdict.status, verdict.reason


def _misnamed(question: FileQuestion, cell: Mapping[str, Any], row: Row) -> str:
    """Return why the accountant that a row names cannot have proven it; nothing where it can."""
    column = ANSWERED_BY if ACCOUNTANT in cell else ACCOUNTANT
    named = row.get(column, "")
    asked = question.asked_at(cell).get(ACCOUNTANT, "auto")
    if named not in ACCOUNTANTS or named == "auto":
        return f"{column} = {named!r} is no accountant's name"
    if ACCOUNTANTS[named].kind == "approximation":
        return f"{column} = {named!r} proves nothing, so no row with ends is its"
    return "" if asked in ("auto", named) else f"{column} = {named!r}, but {asked} was asked"


def _number(row: Row, name: str) -> float:
    """Return the number in a column, exactly, or raise."""
    text = row.get(name, "")
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise AnswerError(f"{name} must be a number; it is {text!r}") from None
