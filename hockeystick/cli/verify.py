"""The command ``verify``: what a second program says of an answer."""

from __future__ import annotations

import hashlib
import json
import random
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.calibration.sweeps.questions import ACCOUNTANT
from hockeystick.calibration.sweeps.sweep import (
    ANSWERED_BY,
    ENDINGS,
    ERROR,
    Grid,
    read_rows,
    scalar,
)
from hockeystick.cli import as_json as programs
from hockeystick.cli import command, flags, layout, plans
from hockeystick.cli.layout import Sheet
from hockeystick.cli.progress import WORKERS, bar, processes, waiting
from hockeystick.cli.sweep import FileQuestion, GridFile
from hockeystick.errors import AnswerError, HockeystickError
from hockeystick.io import parse
from hockeystick.io.call_text import is_call_text
from hockeystick.numerics.numerals import at_most, jsonable
from hockeystick.results import Answered

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
arithmetic (extra verify). Of a report, the answer inside it is verified; its visible text is not
looked at.

Exit status 0: verified. 1: refuted. 3: not covered, which says nothing about the answer. 2: FILE
holds no answer.
"""


_LONGEST: Final = 600
_PAGES: Final = (".html", ".htm")
_STYLES: Final = {"verified": "bold green", "refuted": "bold red", "not covered": "bold yellow"}
_MEANINGS: Final = {
    "verified": "a second program finds that every claim holds",
    "refuted": "do not rely on this answer; please report it",
    "not covered": "the second program says nothing about this answer",
}


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
    text = _computed(file) if _is_plan(file) else _given(file)
    verdict = verdict_of(text)
    if as_json:
        told = {"version": hs.__version__, "file": file, **programs.said(verdict)}
        click.echo(programs.dumped(told))
    else:
        _sheet(file, json.loads(text), inside=not _is_plan(file)).show()
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
    from hockeystick.cli.sweep import load_grid

    swept = load_grid(grid)
    with bar("verifying") as tell, processes(workers or 1) as executor:
        done = verified_rows(file, grid, swept, tell, executor, sample)
    if as_json:
        click.echo(_rows_as_json(done, hs.__version__))
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
    at = flags.one_question({"delta": None, "epsilon": None}, file)
    ask: Any = hs.epsilon if at.quantity == "epsilon" else hs.delta
    with waiting(f"computing {at.quantity}"):
        answer = ask(file.plan, **{at.name: at.value})
    flags.refuse_infinite(at, answer)
    return programs.answer(file, at, answer, hs.__version__)


def _given(file: str) -> str:
    """Return the document that a file holds, or standard input."""
    piped = b"" if sys.stdin is None or file != _STDIN else sys.stdin.buffer.read()
    return hs.answers.load_answer(piped if file == _STDIN else Path(file))


def _sheet(name: str, told: dict[str, Any], *, inside: bool) -> Sheet:
    """Return what is about to be judged."""
    sheet = Sheet()
    sheet.fact("file", name)
    plan = spelled(told.get("description"))
    sheet.more("plan", textwrap.shorten(plan, _LONGEST, placeholder=" ..."))
    sheet.fact("answer inside" if inside else "answer", _claim(told))
    if name.lower().endswith(_PAGES):
        sheet.fact("page", "its visible text is not looked at")
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
    meaning = _MEANINGS[verdict.status]
    sheet.fact("verdict", Text.assemble((verdict.status, _STYLES[verdict.status]), f": {meaning}"))
    if verdict.reason:
        sheet.fact("reason", verdict.reason)
    return sheet


Row = Mapping[str, str]
Progress = Callable[[int, int], None]
_Asked = tuple[FileQuestion, Mapping[str, Any], Row]

NO_ANSWER: Final = "no answer"
NOT_DRAWN: Final = "not drawn"
_NOT_COVERED: Final = "not covered"
_APPROXIMATION: Final = "approximation"
_AUTO: Final = "auto"
_VERSION: Final = "version"
_ASKED_AT: Final = {"epsilon": "delta", "delta": "epsilon"}


@final
@dataclass(frozen=True, slots=True)
class RowVerdict:
    """What is said of one row.

    Args:
        row: Its number, from 1 on, the heading not counted.
        parameters: Those of its cell.
        status: "verified", "refuted", "not covered", "no answer" where the row has none, or
            "not drawn" where it is none of the sample.
        reason: Why it is not verified.
    """

    row: int
    parameters: Mapping[str, Any]
    status: str
    reason: str = ""


@final
@dataclass(frozen=True, slots=True)
class VerifiedRows:
    """What is said of the rows of a sweep.

    Args:
        out: The file with the rows.
        grid: The grid file that was swept.
        title: What the grid file calls it.
        rows: The verdicts, in the order of the file.
    """

    out: str
    grid: str
    title: str | None
    rows: tuple[RowVerdict, ...]

    def of(self, status: str) -> list[RowVerdict]:
        """Return the rows of one status."""
        return [one for one in self.rows if one.status == status]

    @property
    def status(self) -> str:
        """The verdict on all: verified where no row with an answer is anything else."""
        for status in ("refuted", _NOT_COVERED):
            if self.of(status):
                return status
        return "verified" if self.of("verified") else _NOT_COVERED

    @property
    def answers(self) -> int:
        """How many answers were looked at."""
        return sum(len(self.of(one)) for one in ("verified", "refuted", _NOT_COVERED))

    @property
    def exit_status(self) -> int:
        """0, 1 or 3, as of one answer."""
        return {"verified": 0, "refuted": 1, _NOT_COVERED: 3}[self.status]


def verified_rows(
    out: str,
    grid: str,
    file: GridFile,
    progress: Progress,
    executor: Executor | None = None,
    sample: int | None = None,
) -> VerifiedRows:
    """Return what the verifier says of each row of a file.

    Args:
        out: The file.
        grid: The file of its grid.
        file: What that holds.
        progress: Told how many of how many answers are looked at.
        executor: Where to verify; here by default.
        sample: How many of the answers to look at, which the file's contents draw; all by default.

    Raises:
        AnswerError: If the file cannot be read, or its rows are not those of the grid.
    """
    cells, rows = Grid.of(file.grid), read_rows(Path(out))
    if len(rows) != len(cells):
        needed = f"as many rows as {grid} has cells, {len(cells):,}; it has {len(rows):,}"
        raise AnswerError(f"{out} must have {needed}")
    told = [
        {name: scalar(value) for name, value in cells.cell(index).items()}
        for index in range(len(cells))
    ]
    for number, (row, expected) in enumerate(zip(rows, told, strict=True), 1):
        where = f"{out}, row {number}"
        _check_cell(where, row, expected, grid)
        if not row[ERROR]:
            _check_asked(where, row, file.question.about(expected), grid)
    found = [(NO_ANSWER, row[ERROR]) if row[ERROR] else (NOT_DRAWN, "") for row in rows]
    drawn = _drawn([index for index, row in enumerate(rows) if not row[ERROR]], rows, sample)
    asked = {index: (file.question, cells.cell(index), rows[index]) for index in drawn}
    progress(0, len(drawn))
    for done, (index, verdict) in enumerate(_verdicts(asked, out, executor), 1):
        found[index] = verdict
        progress(done, len(drawn))
    verdicts = (
        RowVerdict(index + 1, told[index], status, reason)
        for index, (status, reason) in enumerate(found)
    )
    return VerifiedRows(out, grid, file.title, tuple(verdicts))


def _drawn(answers: Sequence[int], rows: Sequence[Row], sample: int | None) -> Sequence[int]:
    """Return the rows to look at: all, or so many, which the file's contents draw."""
    if sample is None or sample >= len(answers):
        return answers
    contents = hashlib.sha256(repr([list(row.items()) for row in rows]).encode()).digest()
    return sorted(random.Random(contents).sample(answers, sample))


def _verdicts(
    asked: Mapping[int, _Asked], out: str, executor: Executor | None
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the verdict on each row with its index, in whatever order they come."""
    if executor is None:
        yield from ((index, _at_row(out, index, *one)) for index, one in asked.items())
        return
    running = {executor.submit(_at_row, out, index, *one): index for index, one in asked.items()}
    try:
        for future in as_completed(running):
            yield running[future], future.result()
    finally:
        for future in running:
            future.cancel()


def _at_row(
    out: str, index: int, question: FileQuestion, cell: Mapping[str, Any], row: Row
) -> tuple[str, str]:
    """Return the verdict on one row, and the reason; an error says which row it is."""
    try:
        return _judged(question, cell, row)
    except HockeystickError as error:
        raise AnswerError(f"{out}, row {index + 1}: {error}") from None


def _check_cell(where: str, row: Row, expected: Mapping[str, object], grid: str) -> None:
    """Raise unless a row has the parameters of its cell."""
    for name, value in expected.items():
        found = row.get(name)
        if found is None:
            raise AnswerError(f"{where} has no column {name}: these are not the rows of {grid}")
        if not _same(found, "" if value is None else str(value)):
            raise AnswerError(f"{where} has {name} = {found}, but {grid} has {value} there")


def _check_asked(where: str, row: Row, expected: Mapping[str, object], grid: str) -> None:
    """Raise where a row says that something else was asked; older files do not say it."""
    for name, value in expected.items():
        found = row.get(name, "")
        if name != _VERSION and found and not _same(found, str(value)):
            raise AnswerError(f"{where} has {name} = {found}, but {grid} has {value} there")


def _same(one: str, other: str) -> bool:
    """Return whether two texts are the same, or the same number."""
    try:
        return one == other or Decimal(one) == Decimal(other)
    except InvalidOperation:
        return False


def _judged(question: FileQuestion, parameters: Mapping[str, Any], row: Row) -> tuple[str, str]:
    """Return the verdict on one row, and the reason."""
    if row.get(_APPROXIMATION):
        return _NOT_COVERED, "an approximation claims nothing that could be verified"
    at = question.where(parameters)
    if question.find in _ASKED_AT:
        misnamed = _misnamed(question, parameters, row)
        if misnamed:
            return "refuted", misnamed
        plan, ends = question.plan(parameters), ("lower", "upper")
        answer = _certified(row, ends, question.find, plan)
        status, reason = _verified(answer, plan, at)
        if status == "verified" and not answer.lower <= _number(row, "estimate") <= answer.upper:
            return "refuted", "estimate is not from lower to upper"
        return status, reason
    plan = question.plan({**parameters, question.find: _number(row, "value")})
    achieved = _certified(row, ("achieved_lower", "achieved_upper"), "epsilon", plan)
    if achieved.upper > at["epsilon"]:
        return "refuted", f"achieved_upper is above the target, epsilon = {at['epsilon']}"
    return _verified(achieved, plan, at)


def _misnamed(question: FileQuestion, parameters: Mapping[str, Any], row: Row) -> str:
    """Return why the accountant that a row names cannot have proven it; nothing where it can."""
    column = ANSWERED_BY if ACCOUNTANT in parameters else ACCOUNTANT
    named = row.get(column, "")
    asked = parameters.get(ACCOUNTANT, question.how.get(ACCOUNTANT, _AUTO))
    if named not in ACCOUNTANTS or named == _AUTO:
        return f"{column} = {named!r} is no accountant's name"
    if ACCOUNTANTS[named].kind == _APPROXIMATION:
        return f"{column} = {named!r} proves nothing, so no row with ends is its"
    return "" if asked in (_AUTO, named) else f"{column} = {named!r}, but {asked} was asked"


def _certified(row: Row, ends: tuple[str, str], quantity: str, plan: hs.Mechanism) -> hs.Certified:
    """Return what a row proves, as an answer."""
    lower, upper = (_number(row, name) for name in ends)
    if lower > upper:
        raise AnswerError(f"{ends[0]} must be at most {ends[1]}; they are {lower} and {upper}")
    return hs.Certified(
        lower,
        lower,
        upper,
        quantity=cast(Answered, quantity),
        accountant="sweep",
        adjacency=plan.adjacency,
    )


def _number(row: Row, name: str) -> float:
    """Return the number in a column, exactly, or raise."""
    text = row.get(name, "")
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise AnswerError(f"{name} must be a number; it is {text!r}") from None


def _verified(answer: hs.Certified, plan: hs.Mechanism, at: Mapping[str, float]) -> tuple[str, str]:
    """Return what the verifier says of an answer."""
    asked = _ASKED_AT[answer.quantity]
    verdict = hs.verify(answer, plan, **{asked: at[asked]})
    return verdict.status, verdict.reason


# So many rows of each status are named.
_NAMED: Final = 5


def sheet_of_rows(done: VerifiedRows) -> Sheet:
    """Return how many rows are of each status, which, and the verdict on all."""
    sheet = Sheet(done.title)
    sheet.fact("file", f"{done.out}, {len(done.rows):,} rows of {done.grid}")
    for status in ("verified", "refuted", "not covered", NO_ANSWER, NOT_DRAWN):
        found = done.of(status)
        if found or status == "verified":
            sheet.fact(status, Text(f"{len(found):,}", _STYLES.get(status, "")))
        for one in found[:_NAMED] if status not in ("verified", NOT_DRAWN) else ():
            sheet.fact("", _named(one))
    said = Text.assemble((done.status, _STYLES[done.status]))
    sheet.fact("verdict", Text.assemble(said, f": {_meaning(done)}"))
    return sheet


def _meaning(done: VerifiedRows) -> str:
    """Return what the verdict on all says, in words and numbers."""
    many = f"{done.answers:,}" + (" answers drawn" if done.of(NOT_DRAWN) else " answers")
    if not done.answers:
        return "no row has an answer"
    if done.status == "refuted":
        return (
            f"{len(done.of('refuted')):,} of {many} do not hold: rely on none of these, unless the "
            "grid file is another one than was swept"
        )
    if done.status == "verified":
        return f"a second program finds that each of {many} holds"
    unsaid = len(done.of("not covered"))
    return f"{len(done.of('verified')):,} of {many} hold, and of {unsaid:,} nothing is said"


def _named(one: RowVerdict) -> str:
    """Return which row it is, and why it is not verified."""
    cell = ", ".join(f"{name} = {value}" for name, value in one.parameters.items())
    return f"row {one.row} ({cell}): {one.reason}"


def _rows_as_json(done: VerifiedRows, version: str) -> str:
    """Return the verdicts on the rows of a sweep as JSON."""
    listed = [
        {
            "row": one.row,
            "parameters": {name: jsonable(value) for name, value in one.parameters.items()},
            "status": one.status,
            "reason": one.reason or None,
        }
        for one in done.rows
    ]
    heading = {"version": version, "file": done.out, "grid": done.grid, "title": done.title}
    return programs.dumped({**heading, "status": done.status, "rows": listed})
