"""Sweeps: one question at every cell of a grid, on as many workers as there are, into a file."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import numbers
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from inspect import isfunction, signature
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, final
from uuid import uuid4

from hockeystick import _files
from hockeystick._validate import Domain, count
from hockeystick._version import __version__
from hockeystick.calibration.solve.calibrate import Calibrated
from hockeystick.calibration.sweeps.questions import ACCOUNTANT, Question
from hockeystick.errors import AnswerError, HockeystickError, ParameterError
from hockeystick.numerics.numerals import at_least, at_most, digits_held, is_mpf, nearest
from hockeystick.results import Approximate, Certified

Scalar: TypeAlias = bool | int | float | str | None
Columns: TypeAlias = dict[str, Scalar]
Ask: TypeAlias = Callable[..., object]

ERROR: Final = "error"
CAUTION: Final = "caution"
# What a row calls the accountant of its answer where the grid says which one to ask.
ANSWERED_BY: Final = "answered_by"
ENDINGS: Final = (".csv", ".jsonl")
_MOST_CELLS: Final = 10**7
_IN_FLIGHT: Final = Domain(symbol="w", low=1, high=10**6, typical=(2, 64), whole=True)
_CHUNKS_PER_CORE: Final = 4
# Long enough that what a task costs on top does not count, short enough to lose.
_SECONDS_PER_CHUNK: Final = 0.25
_MOST_CELLS_PER_CHUNK: Final = 1024
_SECONDS_BETWEEN_SYNCS: Final = 1.0
_MARK: Final = "hockeystick sweep"
_A_GRID: Final = "a mapping from names of parameters to sequences of at least one value"
_A_QUESTION: Final = (
    "a function of the grid's parameters, such as hockeystick.calibration.AskEpsilon(plan, "
    "delta=1e-5), of AskDelta(plan, epsilon=1), or Solve(plan, parameter, target)"
)
_NO_RESULT: Final = "a function that returns a number, an answer, or a mapping of those"
_RECOGNISED: Final = (
    "a function with a name, or what says in its repr what it is, not where it lies in memory: a "
    "sweep that is taken up again must know what it is of"
)


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """The product of ranges of parameters, the last of which changes fastest."""

    names: tuple[str, ...]
    values: tuple[tuple[object, ...], ...]

    @classmethod
    def of(cls, grid: object) -> Self:
        """Return the grid that a mapping describes, or raise."""
        if not isinstance(grid, Mapping) or not all(isinstance(name, str) for name in grid):
            raise ParameterError("grid", grid, _A_GRID)
        if ERROR in grid:
            raise ParameterError("grid", grid, f"without {ERROR!r}, which is a column of its own")
        values = []
        for name, given in grid.items():
            found: tuple[object, ...] = ()
            if not isinstance(given, str | bytes | Mapping):
                with suppress(TypeError):
                    found = tuple(given)
            if not found:
                raise ParameterError(name, given, "a sequence of at least one value")
            values.append(found)
        made = cls(tuple(grid), tuple(values))
        if len(made) > _MOST_CELLS:
            raise ParameterError("grid", grid, f"of at most 10^7 cells; these are {len(made):,}")
        return made

    def __len__(self) -> int:
        return math.prod(len(one) for one in self.values)

    def cell(self, index: int) -> dict[str, Any]:
        """Return the parameters of one cell."""
        found = []
        for one in reversed(self.values):
            index, place = divmod(index, len(one))
            found.append(one[place])
        return dict(zip(self.names, reversed(found), strict=True))

    def row(self, index: int, columns: Columns) -> Columns:
        """Return one cell's row: its parameters, its answer, and why there is none if so."""
        labels = {name: scalar(value) for name, value in self.cell(index).items()}
        return {**labels, **columns, ERROR: columns.get(ERROR)}

    @property
    def identity(self) -> str:
        """What tells this grid from others, the same in every process."""
        listed = [[scalar(value) for value in one] for one in self.values]
        return _digest("grid", json.dumps([self.names, listed]))


def sweep(
    grid: Mapping[str, Iterable[object]],
    ask: Ask,
    executor: Executor | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    in_flight: int | None = None,
    replace: bool = False,
) -> Iterator[Columns]:
    """Ask one question at every cell of a grid, and yield the rows in the grid's order.

    The grid is the product of the parameters' values, the last of which changes fastest. A row has
    the parameters, the columns of the answer, and ``error``: None, or why there is no answer. A
    ``Certified`` has ``lower``, ``estimate``, ``upper`` and ``accountant`` (which is
    ``answered_by`` where the grid has ``accountant``); an ``Approximate``, which proves nothing,
    has ``estimate`` and ``approximation``; a ``Calibrated`` has ``value``, ``achieved_lower``,
    ``achieved_upper`` and ``status``; a number is ``value``; a mapping is its own columns.

    Guarantees:
        With ``out``, each answer (of an executor: of each chunk of about a quarter of a second) is
        in ``out`` + ".journal" before the next one is asked for; the file itself appears at once
        with the last answer. The same call takes up a sweep that was killed: what is in the journal
        is not computed again, and the file is that of a sweep that nobody interrupted. Computed
        twice is at most one cell, or ``in_flight`` chunks; lost with the machine's power, what was
        written in the last second.

    Edge cases:
        Nothing is asked before the iterator is. A cell that the library refuses, or whose
        arithmetic fails (``HockeystickError``, ``ValueError``, ``ArithmeticError``), is a row with
        an ``error``; any other exception ends the sweep, which can be taken up again. A function is
        known by its name, its parameters and what it holds, not by what it does.

    Args:
        grid: Parameters and their values: numbers, texts, or descriptions with a repr.
        ask: What is called with the parameters as keywords, such as ``AskEpsilon(plan, delta)``.
            An executor of other processes needs one that can be pickled.
        executor: Any ``concurrent.futures.Executor``, by default none: here. It is not shut down.
        out: A file name that ends in .csv or .jsonl (a JSON object in each line).
        progress: Called with the number of answered cells and that of all cells, at the beginning
            and whenever there are more.
        in_flight: The most chunks that the executor has at a time, an integer from 1 to 1000000;
            by default four for each core of this machine.
        replace: Whether a file that is there already may go, when the new one is whole, and, at
            once, the journal of another grid, question or version. One of this sweep is taken up.

    Raises:
        ParameterError: If an argument is outside its domain, a parameter of the grid is none of the
            plan's that is asked about, or ``out`` belongs to another sweep.
        OSError: If ``out`` cannot be written.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(noise_multiplier=1, examples=60_000, batch_size=256, epochs=1)
        >>> grid = {"epochs": [1, 2], "noise_multiplier": [1.0, -1.0]}
        >>> for row in hs.sweep(grid, hs.calibration.AskEpsilon(plan, delta=1e-5)):
        ...     print(row["epochs"], row.get("upper", row["error"]))
        1 0.3934...
        1 noise_multiplier must be a number >= 0 or inf; got -1.0
        2 0.5191...
        2 noise_multiplier must be a number >= 0 or inf; got -1.0
    """
    cells = Grid.of(grid)
    if not callable(ask):
        raise ParameterError("ask", ask, _A_QUESTION)
    if executor is not None and not isinstance(executor, Executor):
        raise ParameterError("executor", executor, "a concurrent.futures.Executor")
    most = _CHUNKS_PER_CORE * (os.cpu_count() or 1)
    chunks = most if in_flight is None else count("in_flight", in_flight, _IN_FLIGHT)
    target, heading = None, {}
    if out is not None:
        target, identity = _target(out), _digest("ask", _described(ask))
        heading = {"version": __version__, "grid": cells.identity, "ask": identity}
    if isinstance(ask, Question):
        ask.refuse_unknown(cells.cell(0))
    kept = _Kept(cells, target, heading, replace)
    return _rows(kept, partial(_asked, cells, ask, executor, chunks), progress or (lambda *_: None))


def _target(out: str | os.PathLike[str]) -> Path:
    """Return where a file goes, or raise before anything takes its time."""
    try:
        target = Path(os.fsdecode(out)).absolute()
    except TypeError:
        raise ParameterError("out", out, "the name of a file") from None
    if target.suffix.lower() not in ENDINGS or "\0" in str(target):
        allowed = f"a file name that ends in {' or '.join(ENDINGS)}"
        raise ParameterError("out", str(target), allowed)
    _files.check_path(target, "out")
    return target


def _rows(
    kept: _Kept, asked: Callable[[Iterator[int]], Any], progress: Callable[[int, int], None]
) -> Iterator[Columns]:
    """Yield all rows in the grid's order, and make the file before the last one."""
    cells, answers = len(kept.grid), kept.answers
    pending = (index for index in range(cells) if index not in answers)
    with kept, closing(asked(pending)) as more:
        progress(len(answers), cells)
        for index in range(cells):
            while index not in answers:
                kept.add(next(more))
                progress(len(answers), cells)
            if index == cells - 1:
                kept.finish()
            yield kept.grid.row(index, answers[index])


def _asked(
    grid: Grid, ask: Ask, executor: Executor | None, in_flight: int, pending: Iterator[int]
) -> Iterator[dict[int, Columns]]:
    """Yield the answers of this process one at a time, or of an executor by chunks of a time."""
    if executor is None:
        for index in pending:
            yield {index: _answer(ask, grid.cell(index))}
        return
    running: deque[tuple[list[int], Future[tuple[list[Columns], float]]]] = deque()
    # Engines such as dask know a task by its arguments: without a stamp, one would be the task of
    # an earlier sweep that is just being cancelled, and be cancelled with it.
    seconds_per_cell, stamp = _SECONDS_PER_CHUNK, uuid4().hex
    try:
        while True:
            size = max(1, min(_MOST_CELLS_PER_CHUNK, int(_SECONDS_PER_CHUNK / seconds_per_cell)))
            while len(running) < in_flight and (some := list(islice(pending, size))):
                cells = [grid.cell(one) for one in some]
                running.append((some, executor.submit(_timed, ask, cells, stamp)))
            if not running:
                return
            some, first = running[0]
            columns, seconds = first.result()
            running.popleft()
            seconds_per_cell = max((seconds_per_cell + seconds / len(some)) / 2, 1e-9)
            yield dict(zip(some, columns, strict=True))
    finally:
        for _, future in running:
            future.cancel()


def _timed(
    ask: Ask, cells: Iterable[Mapping[str, object]], stamp: str
) -> tuple[list[Columns], float]:
    start = time.perf_counter()
    return [_answer(ask, cell) for cell in cells], time.perf_counter() - start


def _answer(ask: Any, parameters: Mapping[str, Any]) -> Columns:
    """Return the columns of one cell: an answer, or why there is none."""
    try:
        found = ask(**parameters)
    except HockeystickError as error:
        return {ERROR: " ".join(str(error).split())}
    except (ArithmeticError, ValueError) as error:
        return {ERROR: " ".join(f"{type(error).__name__}: {error}".split())}
    fields = _columns(found)
    if ACCOUNTANT in parameters and isinstance(found, Certified | Approximate):
        fields = {ANSWERED_BY if name == ACCOUNTANT else name: one for name, one in fields.items()}
    if hasattr(ask, "about"):  # a question whose rows say of themselves what they are of
        fields |= {**ask.about(parameters), CAUTION: ask.caution(parameters, found)}
    taken = [name for name in fields if name in parameters or name == ERROR]
    if taken:
        allowed = f"a function whose answer has no column named {taken[0]!r}, as the grid has"
        raise TypeError(str(ParameterError("ask", ask, allowed)))
    return fields


def _columns(found: object) -> Columns:
    if isinstance(found, Certified):
        return {
            "lower": _end(found.lower, at_least),
            "estimate": _end(found.estimate, nearest),
            "upper": _end(found.upper, at_most),
            ACCOUNTANT: found.accountant,
        }
    if isinstance(found, Approximate):
        value = _end(found.value, nearest)
        ends: Columns = {"lower": None, "estimate": value, "upper": None}
        return {**ends, "approximation": value, ACCOUNTANT: found.accountant}
    if isinstance(found, Calibrated):
        return {
            "value": scalar(found.value),
            "achieved_lower": float(found.achieved.lower),
            "achieved_upper": float(found.achieved.upper),
            "status": str(found.status),
        }
    if isinstance(found, numbers.Real):
        return {"value": scalar(found)}
    if isinstance(found, Mapping):
        return {str(name): scalar(value) for name, value in found.items()}
    raise TypeError(str(ParameterError("ask", found, _NO_RESULT)))


def _end(value: float, rounded: Callable[[float, int], str]) -> Scalar:
    """Return a float as it is, and more digits as a text that is rounded to the safe side."""
    return rounded(value, digits_held(value)) if is_mpf(value) else value


def scalar(value: object) -> Scalar:
    """Return a value as a file can hold it: what is no number and no text as its repr."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else repr(value)


def _described(ask: Any) -> str:
    """Return a question in words: a function by name, parameters and what it holds, else the repr.

    What it does is not read: whoever changes that asks for another file.
    """
    if isinstance(ask, partial):
        return f"{_described(ask.func)} of {ask.args!r} and {sorted(ask.keywords.items())!r}"
    if not isfunction(ask):
        return repr(ask)
    if ask.__name__ == "<lambda>":
        raise ParameterError("ask", ask, _RECOGNISED)
    held = [repr(cell.cell_contents) for cell in ask.__closure__ or ()]
    return f"{ask.__module__}.{ask.__qualname__}{signature(ask)} {held}"


def _digest(name: str, text: str) -> str:
    """Return a short text that differs where this one does, or raise if no other process has it."""
    if " at 0x" in text:
        raise ParameterError(name, text, _RECOGNISED)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def journal_of(target: Path) -> Path:
    """Return where the answers of a sweep are until its file is whole."""
    return target.with_name(target.name + ".journal")


def kept_for(target: Path) -> int | None:
    """Return how many answers the journal of a file has; None where there is no journal."""
    try:
        return max(0, journal_of(target).read_bytes().count(b"\n") - 1)
    except FileNotFoundError:
        return None


@final
class _Kept:
    """Answers until their turn, and in a journal too where a file is to be made of them.

    That has a line for each answer, in the order in which they come; the first line says what the
    sweep is of, and a last one that was cut off is dropped. What is written leaves the process at
    once: when it is killed, all of that stays. The disk is made to catch up about once a second, so
    a machine that loses power loses about as much.
    """

    def __init__(
        self, grid: Grid, target: Path | None, heading: Mapping[str, str], replace: bool
    ) -> None:
        self.grid, self.target, self.replace = grid, target, replace
        self.heading = _line({_MARK: {**heading, "cells": str(len(grid))}})
        self.answers: dict[int, Columns] = {}
        self.synced = time.monotonic()
        self.file: FileIO | None = None

    def __enter__(self) -> Self:
        if self.target is not None:
            if not journal_of(self.target).exists():
                self._refuse_finished(self.target)
            self.file = _files.locked(journal_of(self.target), "out")
            try:
                self._take_up(self.file, self.target)
            except BaseException:
                self.file.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the file; what is written stays."""
        if self.file is not None and not self.file.closed:
            _files.force(self.file.fileno())
            self.file.close()

    def add(self, answers: Mapping[int, Columns]) -> None:
        """Keep answers."""
        self.answers |= answers
        if self.file is None:
            return
        _write(self.file, b"".join(_line([index, one]) for index, one in answers.items()))
        if time.monotonic() - self.synced > _SECONDS_BETWEEN_SYNCS:
            _files.force(self.file.fileno())
            self.synced = time.monotonic()

    def finish(self) -> None:
        """Make the file, all at once, and remove the journal."""
        if self.target is None or self.file is None:
            return
        _files.force(self.file.fileno())
        rows = [self.grid.row(index, self.answers[index]) for index in range(len(self.grid))]
        with (
            _files.replacing(self.target) as part,
            open(part, "w", encoding="utf-8", newline="") as file,
        ):
            write = _write_csv if self.target.suffix.lower() == ".csv" else _write_json_lines
            write(file, rows)
        if sys.platform == "win32":  # which removes no file that is open
            self.file.close()
        journal_of(self.target).unlink()
        self.file.close()

    def _take_up(self, file: FileIO, target: Path) -> None:
        """Find what is answered already, or begin."""
        first, *lines = file.readall().splitlines(keepends=True) or [b""]
        is_journal = first.startswith(_line({_MARK: {}})[: -len(b"}}\n")])
        whole = len(first)
        if first == self.heading:
            for line in lines:
                index, columns = _answer_in(line, len(self.grid))
                if columns is None:
                    break
                self.answers[index] = columns
                whole += len(line)
            file.truncate(whole)
            file.seek(whole)
        elif self.heading.startswith(first) or (self.replace and is_journal):
            file.truncate(0)
            file.seek(0)
            _write(file, self.heading)
            _files.force(file.fileno())
        else:
            kind = "of another grid, question or version" if is_journal else "no journal of a sweep"
            name = journal_of(target).name
            allowed = (
                f"the file of the sweep that was begun there; {name} beside it is {kind}: finish "
                "that sweep, give replace=True to begin anew, or choose another file"
            )
            raise ParameterError("out", str(target), allowed)
        if len(self.answers) < len(self.grid):
            self._refuse_finished(target)

    def _refuse_finished(self, target: Path) -> None:
        """Raise where there is a file, which a sweep would replace, and nobody said it may."""
        if target.exists() and not self.replace:
            allowed = "a file that is not there yet, unless replace=True"
            raise ParameterError("out", str(target), allowed)


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _write(file: FileIO, text: bytes) -> None:
    """Write all of a text, or raise: a disk that is nearly full takes a part and says so."""
    while text:
        text = text[file.write(text) :]


def _answer_in(line: bytes, cells: int) -> tuple[int, Columns | None]:
    """Return the cell that a line answers and its columns, None where it is no whole line."""
    try:
        index, columns = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return 0, None
    whole = line.endswith(b"\n") and type(index) is int and isinstance(columns, dict)
    return (index, columns) if whole and 0 <= index < cells else (0, None)


def _write_csv(file: Any, rows: Iterable[Columns]) -> None:
    """Write rows as CSV: every float with all its digits, an empty cell where there is nothing."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    columns.sort(key=lambda name: (name == ERROR, name == CAUTION))
    table = csv.DictWriter(file, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)


def _write_json_lines(file: Any, rows: Iterable[Columns]) -> None:
    """Write rows as objects in JSON, one in each line; a number that JSON lacks is a text."""
    for row in rows:
        fields = {
            name: repr(one) if isinstance(one, float) and not math.isfinite(one) else one
            for name, one in row.items()
        }
        file.write(_line(fields).decode())


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a sweep's file, each value as a text, "" where there is none."""
    rows: list[Any]
    try:
        with open(path, newline="", encoding="utf-8") as file:
            if path.suffix.lower() == ".csv":
                rows = list(csv.DictReader(file, strict=True))
            else:
                fields = [dict(json.loads(line)) for line in file]
                rows = [{k: "" if x is None else str(x) for k, x in row.items()} for row in fields]
    except OSError as error:
        raise AnswerError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, TypeError, RecursionError, csv.Error) as error:
        raise AnswerError(f"cannot read {path}: {' '.join(str(error).split())}") from None
    if not rows or any(ERROR not in row or None in (*row, *row.values()) for row in rows):
        raise AnswerError(f"{path} holds no rows of a sweep, each with as many columns")
    return rows
