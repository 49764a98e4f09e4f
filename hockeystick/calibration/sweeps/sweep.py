"""Sweeps: one question at every cell of a grid, on as many workers as there are, into a file."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import numbers
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from inspect import isfunction, signature
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias, final
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
_Answers: TypeAlias = list[tuple[int, Columns]]

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
    "made of functions with names, and of what says in its repr what it is, not where it lies in "
    "memory: a sweep that is taken up again must know what it is of"
)


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """The product of ranges of parameters, the last of which changes fastest."""

    names: tuple[str, ...]
    values: tuple[tuple[object, ...], ...]

    @classmethod
    def of(cls, grid: object) -> Grid:
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
        """Return the number of cells."""
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
    the parameters, then the columns of the answer, then ``error``: None, or why this cell has no
    answer. A ``Certified`` has ``lower``, ``estimate``, ``upper`` and ``accountant`` (which is
    ``answered_by`` where the grid has ``accountant``); an ``Approximate``, which proves nothing,
    its number as ``estimate`` and as ``approximation``; a ``Calibrated`` has ``value``,
    ``achieved_lower``, ``achieved_upper`` and ``status``; a number is ``value``; a mapping is its
    own columns.

    Guarantees:
        With ``out``, each answer (of an executor: of each chunk of about a quarter of a second) is
        on its way to the disk, in ``out`` + ".journal", before the next one is asked for; the file
        itself appears at once when the last answer is there. The same call takes up a sweep that
        was killed: what is in the journal is not computed again, and the file is, row for row, that
        of a sweep that nobody interrupted. Computed twice is at most what was under way: one cell,
        or ``in_flight`` chunks. A machine that loses power can lose the last second besides.

    Edge cases:
        Nothing is asked before the iterator is; a file is made only when it is exhausted. A cell
        that the library refuses, or whose arithmetic fails (``HockeystickError``, ``ValueError``,
        ``ArithmeticError``), is a row with an ``error``; any other exception ends the sweep, which
        can be taken up again. A function is known by its name, its parameters and what it holds,
        not by what it does: whoever changes that says ``replace``.

    Args:
        grid: Parameters and their values: numbers, texts, or descriptions with a repr.
        ask: What is called with the parameters as keywords, such as ``AskEpsilon(plan, delta)``.
            An executor of other processes needs one that can be pickled.
        executor: Where to ask: any ``concurrent.futures.Executor``, such as
            ``distributed.Client().get_executor()`` or ``adapters.ray.RayExecutor()``; by default
            here. It is not shut down.
        out: A file name that ends in .csv or .jsonl (a JSON object in each line).
        progress: Called with the number of cells that are answered and that of all cells: once at
            the beginning, then whenever there are more.
        in_flight: The most chunks that the executor has at a time, an integer from 1 to 1000000;
            by default four for each core of this machine.
        replace: Whether a file that is there already may go, when the new one is whole, and, at
            once, the journal of another grid, question or version, which are refused otherwise. One
            of this sweep is taken up all the same.

    Returns:
        An iterator of rows.

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
    return _rows(
        lambda: _Kept(cells, target, heading, replace),
        lambda pending: _asked(cells, ask, executor, chunks, pending),
        progress or (lambda answered, cells: None),
    )


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
    opened: Callable[[], _Kept],
    asked: Callable[[Iterator[int]], Any],
    progress: Callable[[int, int], None],
) -> Iterator[Columns]:
    """Yield all rows in the grid's order, and make the file before the last one."""
    kept = opened()
    cells = len(kept.grid)
    pending = (index for index in range(cells) if index not in kept.places)
    with closing(kept), closing(asked(pending)) as more:
        progress(len(kept.places), cells)
        for index in range(cells):
            while index not in kept.places:
                kept.add(next(more))
                progress(len(kept.places), cells)
            row = kept.row(index)
            if index == cells - 1:
                kept.finish()
            yield row


def _asked(
    grid: Grid, ask: Ask, executor: Executor | None, in_flight: int, pending: Iterator[int]
) -> Iterator[_Answers]:
    """Yield the answers of this process one at a time, or of an executor by chunks of a time."""
    if executor is None:
        for index in pending:
            yield [(index, _answer(ask, grid.cell(index)))]
        return
    running: dict[Future[tuple[list[Columns], float]], list[int]] = {}
    # Engines such as dask know a task by its arguments: without a stamp, one would be the task of
    # an earlier sweep that is just being cancelled, and be cancelled with it.
    seconds_per_cell, stamp = _SECONDS_PER_CHUNK, uuid4().hex
    try:
        while True:
            size = max(1, min(_MOST_CELLS_PER_CHUNK, int(_SECONDS_PER_CHUNK / seconds_per_cell)))
            while len(running) < in_flight and (some := list(islice(pending, size))):
                chunk = executor.submit(_timed, ask, [grid.cell(one) for one in some], stamp)
                running[chunk] = some
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            # What failed comes last, so that what did not is kept.
            for future in sorted(done, key=lambda f: f.cancelled() or f.exception() is not None):
                some = running.pop(future)
                columns, seconds = future.result()
                seconds_per_cell = max((seconds_per_cell + seconds / len(some)) / 2, 1e-9)
                yield list(zip(some, columns, strict=True))
    finally:
        for future in running:
            future.cancel()


def _timed(
    ask: Ask, cells: Sequence[Mapping[str, object]], stamp: str
) -> tuple[list[Columns], float]:
    """Return the columns of some cells, and the seconds that they took."""
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
    """Return the answer to a question as columns."""
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


def _described(ask: Any, inside: tuple[Any, ...] = ()) -> str:
    """Return a question in words: a function by name, parameters and what it holds, else the repr.

    What it does is not read: whoever changes that asks for another file.
    """
    if isinstance(ask, partial):
        inner = _described(ask.func, inside)
        return f"{inner} of {ask.args!r} and {sorted(ask.keywords.items())!r}"
    if not isfunction(ask):
        return repr(ask)
    if ask in inside:
        return ask.__qualname__
    if ask.__name__ == "<lambda>":
        raise ParameterError("ask", ask, _RECOGNISED)
    held = []
    for cell in ask.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not set yet
            continue
        if isinstance(value, Hashable):  # what it may change is not of it
            held.append(_described(value, (*inside, ask)))
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
        with open(journal_of(target), "rb") as file:
            whole = sum(line.endswith(b"\n") for line in file)
    except FileNotFoundError:
        return None
    return max(0, whole - 1)


@final
class _Kept:
    """Answers until their turn, in a journal from which the file is then made.

    It is in memory where there is no file. It has a line for each answer, in the order in which
    they come; the first line says what the sweep is of, and a last one that was cut off is dropped.
    What is written leaves the process at once: when it is killed, all of that stays. The disk is
    made to catch up about once a second, so a machine that loses power loses about as much.
    """

    def __init__(
        self, grid: Grid, target: Path | None, heading: Mapping[str, str], replace: bool
    ) -> None:
        self.grid, self.target, self.replace = grid, target, replace
        self.places: dict[int, int] = {}
        self.synced = time.monotonic()
        self.file: io.BytesIO | io.BufferedRandom = io.BytesIO()
        if target is None:
            return
        self.path = journal_of(target)
        if not self.path.exists():
            self._refuse_finished(target)
        self.file = io.BufferedRandom(_files.locked(self.path, "out"))
        try:
            self._take_up(target, {**heading, "cells": str(len(grid))})
        except BaseException:
            self.file.close()
            raise

    def row(self, index: int) -> Columns:
        """Return the row of a cell that is answered."""
        self.file.seek(self.places[index])
        return self.grid.row(index, json.loads(self.file.readline())[1])

    def add(self, answers: _Answers) -> None:
        """Keep answers."""
        place = self.file.seek(0, os.SEEK_END)
        for index, columns in answers:
            line = _line([index, columns])
            self.file.write(line)
            self.places[index] = place
            place += len(line)
        self.file.flush()
        if time.monotonic() - self.synced > _SECONDS_BETWEEN_SYNCS:
            self._sync()

    def finish(self) -> None:
        """Make the file, all at once, and remove the journal."""
        if self.target is None:
            return
        self._sync()
        with _files.replacing(self.target) as part, open(part, "wb") as file:
            write = _write_csv if self.target.suffix.lower() == ".csv" else _write_json_lines
            write(file, self)
        if sys.platform == "win32":  # which removes no file that is open
            self.file.close()
        self.path.unlink()
        self.file.close()

    def close(self) -> None:
        """Let go of the file; what is written stays."""
        if not self.file.closed:
            self._sync()
            self.file.close()

    def __iter__(self) -> Iterator[Columns]:
        """Yield all rows in the order of the grid."""
        return map(self.row, range(len(self.grid)))

    def _sync(self) -> None:
        """Make the disk catch up."""
        self.file.flush()
        if self.target is not None:
            _files.force(self.file.fileno())
        self.synced = time.monotonic()

    def _take_up(self, target: Path, heading: Mapping[str, str]) -> None:
        """Find what is answered already, or begin."""
        expected = _line({_MARK: heading})
        first = self.file.readline()
        is_journal = first.startswith(_line({_MARK: {}})[: -len(b"}}\n")])
        if first == expected:
            place = len(first)
            for line in self.file:
                index = _index(line, len(self.grid))
                if index is None:
                    break
                self.places[index] = place
                place += len(line)
            self.file.truncate(place)
        elif expected.startswith(first) or (self.replace and is_journal):
            self.file.truncate(0)
            self.file.seek(0)
            self.file.write(expected)
            self._sync()
        else:
            kind = "of another grid, question or version" if is_journal else "no journal of a sweep"
            allowed = (
                f"the file of the sweep that was begun there; {self.path.name} beside it is {kind}:"
                " finish that sweep, give replace=True to begin anew, or choose another file"
            )
            raise ParameterError("out", str(target), allowed)
        if len(self.places) < len(self.grid):
            self._refuse_finished(target)

    def _refuse_finished(self, target: Path) -> None:
        """Raise where there is a file, which a sweep would replace, and nobody said it may."""
        if target.exists() and not self.replace:
            allowed = "a file that is not there yet, unless replace=True"
            raise ParameterError("out", str(target), allowed)


def _line(value: object) -> bytes:
    """Return a value as one line of ASCII."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _index(line: bytes, cells: int) -> int | None:
    """Return the cell that a line answers, None where it is no whole line."""
    try:
        index, columns = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    whole = line.endswith(b"\n") and isinstance(index, int) and isinstance(columns, dict)
    return index if whole and 0 <= index < cells else None


def _write_csv(file: Any, rows: Iterable[Columns]) -> None:
    """Write rows as CSV: every float with all its digits, an empty cell where there is nothing."""
    columns: Columns = {}
    for row in rows:
        columns |= dict.fromkeys(row)
    last = [name for name in (CAUTION, ERROR) if name in columns]
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    ordered = [*(name for name in columns if name not in last), *last]
    table = csv.DictWriter(text, ordered, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    text.detach()


def _write_json_lines(file: Any, rows: Iterable[Columns]) -> None:
    """Write rows as objects in JSON, one in each line; a number that JSON lacks is a text."""
    for row in rows:
        fields = {
            name: repr(one) if isinstance(one, float) and not math.isfinite(one) else one
            for name, one in row.items()
        }
        file.write(_line(fields))


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
