"""What a second program says of the rows of a sweep.

A row has the parameters of its cell and an answer, but not the plan: that is the grid file's, with
these parameters in place. A row of a proven epsilon or delta claims what such an answer does; one
of a value that was solved for claims that the plan with this value meets the target, by an epsilon
between ``achieved_lower`` and ``achieved_upper``, not that it is the least or the most that does.
A row also claims which accountant answered: one that there is, that proves what the row says is
proven, and the one that was asked, where one was.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, cast, final

from rich.text import Text

import hockeystick as hs
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.calibration.sweeps.questions import ACCOUNTANT
from hockeystick.calibration.sweeps.sweep import ANSWERED_BY, ERROR, Grid, read_rows, scalar
from hockeystick.cli.grid_file import FileQuestion, GridFile
from hockeystick.cli.layout import Sheet
from hockeystick.errors import AnswerError, HockeystickError
from hockeystick.results import Answered

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
_STYLES: Final = {"verified": "bold green", "refuted": "bold red", "not covered": "bold yellow"}


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
