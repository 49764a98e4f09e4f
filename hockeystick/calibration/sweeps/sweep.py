"""One question at every cell of a grid, on as many workers as there are, into a file.

Until its file is whole, the answers of a sweep are in a journal beside it: a line that says what
the sweep is of, then one for each answer, in the order of the grid. Whatever is there when a
process is killed stays, and the same sweep goes on behind the last whole line.
"""

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
from contextlib import closing, nullcontext
from functools import partial
from inspect import isfunction, signature
from io import FileIO
from itertools import islice, product
from pathlib import Path
from typing import Any, Final, TypeAlias, final
from uuid import uuid4

from hockeystick import _files, _validate
from hockeystick._version import __version__
from hockeystick.calibration.solve.calibrate import Calibrated
from hockeystick.calibration.sweeps.questions import ACCOUNTANT, Question
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.numerics.numerals import at_least, at_most, digits_held, is_mpf, nearest
from hockeystick.results import Approximate, Certified

Scalar: TypeAlias = bool | int | float | str | None
Columns: TypeAlias = dict[str, Scalar]
Grid: TypeAlias = Mapping[str, tuple[Any, ...]]

ERROR: Final = "error"
CAUTION: Final = "caution"
# What a row calls the accountant of its answer where the grid says which one to ask.
ANSWERED_BY: Final = "answered_by"
ENDINGS: Final = (".csv", ".jsonl")
_MOST_CELLS: Final = 10**7
_IN_FLIGHT_PER_CORE: Final = 4
_SECONDS_BETWEEN_SYNCS: Final = 1.0
_MARK: Final = "hockeystick sweep"
_RECOGNISED: Final = (
    "a function with a name, or what says in its repr what it is, not where it lies in memory: a "
    "sweep that is taken up again must know what it is of"
)


def grid_of(grid: object) -> Grid:
    """Return the parameters of a grid and their values, or raise."""
    if not isinstance(grid, Mapping) or not all(isinstance(name, str) for name in grid):
        allowed = "a mapping from names of parameters to sequences of at least one value"
        raise ParameterError("grid", grid, allowed)
    if ERROR in grid:
        raise ParameterError("grid", grid, f"without {ERROR!r}, which is a column of its own")
    made: dict[str, tuple[Any, ...]] = {}
    for name, given in grid.items():
        is_one = isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable)
        made[name] = () if is_one else tuple(given)
        if not made[name]:
            raise ParameterError(name, given, "a sequence of at least one value")
    if size_of(made) > _MOST_CELLS:
        raise ParameterError("grid", grid, f"of at most 10^7 cells; these are {size_of(made):,}")
    return made


def size_of(grid: Grid) -> int:
    """Return how many cells a grid has."""
    return math.prod(map(len, grid.values()))


def cells_of(grid: Grid) -> Iterator[dict[str, Any]]:
    """Yield the cells of a grid, whose last parameter changes fastest."""
    return (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))


def sweep(
    grid: Mapping[str, Iterable[object]],
    ask: Callable[..., object],
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
        With ``out``, each answer is in ``out`` + ".journal" before its row is yielded; the file
        itself appears at once with the last answer. The same call takes up a sweep that was killed.
        Lost with the machine's power is what was written in the last second.

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
        progress: Called with how many cells are answered, and of how many, whenever there are more.
        in_flight: The most cells that the executor has at a time; by default four for each core.
        replace: Whether a file that is there already may go, when the new one is whole, and, at
            once, the journal of another sweep.

    Raises:
        ParameterError: If a parameter of the grid is none of the plan's that is asked about, or
            ``out`` belongs to another sweep.
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
    cells = grid_of(grid)
    if not callable(ask):
        raise ParameterError("ask", ask, "a function of the grid's parameters, such as AskEpsilon")
    if executor is not None and not isinstance(executor, Executor):
        raise ParameterError("executor", executor, "a concurrent.futures.Executor")
    most = _IN_FLIGHT_PER_CORE * (os.cpu_count() or 1)
    if in_flight is not None:
        most = _validate.count("in_flight", in_flight, _validate.whole_numbers("w", 1, (2, 64)))
    journal = None if out is None else _Journal(cells, ask, out, replace)
    if isinstance(ask, Question):
        ask.refuse_unknown(next(cells_of(cells)))
    return _rows(
        cells, journal, partial(_asked, ask, executor, most), progress or (lambda *_: None)
    )


def _rows(
    grid: Grid,
    journal: _Journal | None,
    asked: Callable[[Iterator[Any]], Any],
    progress: Callable[[int, int], None],
) -> Iterator[Columns]:
    size = size_of(grid)
    with closing(journal) if journal else nullcontext():
        answers = journal.open() if journal else []
        progress(len(answers), size)
        with closing(asked(islice(cells_of(grid), len(answers), None))) as more:
            for index, cell in enumerate(cells_of(grid)):
                if index == len(answers):
                    answers.append(next(more))
                    if journal:
                        journal.add(index, answers[index])
                    progress(len(answers), size)
                if journal and index == size - 1:
                    journal.finish(list(map(_row, cells_of(grid), answers)))
                yield _row(cell, answers[index])


def _row(cell: Mapping[str, Any], columns: Columns) -> Columns:
    labels = {name: scalar(value) for name, value in cell.items()}
    return {**labels, **columns, ERROR: columns.get(ERROR)}


def _asked(
    ask: Any, executor: Executor | None, in_flight: int, cells: Iterator[dict[str, Any]]
) -> Iterator[Columns]:
    if executor is None:
        yield from map(partial(_answer, ask), cells)
        return
    running: deque[Future[Columns]] = deque()
    # Engines such as dask know a task by its arguments: without a stamp, one would be the task of
    # an earlier sweep that is just being cancelled, and be cancelled with it.
    stamp = uuid4().hex
    try:
        while True:
            for cell in islice(cells, in_flight - len(running)):
                running.append(executor.submit(_answer, ask, cell, stamp))
            if not running:
                return
            yield running[0].result()
            running.popleft()
    finally:
        for future in running:
            future.cancel()


def _answer(ask: Any, cell: Mapping[str, Any], stamp: str = "") -> Columns:
    try:
        found = ask(**cell)
    except HockeystickError as error:
        return {ERROR: " ".join(str(error).split())}
    except (ArithmeticError, ValueError) as error:
        return {ERROR: " ".join(f"{type(error).__name__}: {error}".split())}
    columns = columns_of(found, cell)
    taken = [name for name in columns if name in cell or name == ERROR]
    if taken:
        allowed = f"a function whose answer has no column named {taken[0]!r}, as the grid has"
        raise TypeError(str(ParameterError("ask", ask, allowed)))
    return columns


def columns_of(found: object, cell: Mapping[str, Any]) -> Columns:
    """Return an answer as the columns of the row of a cell."""
    accountant = ANSWERED_BY if ACCOUNTANT in cell else ACCOUNTANT
    match found:
        case Certified():
            return {
                "lower": _end(found.lower, at_least),
                "estimate": _end(found.estimate, nearest),
                "upper": _end(found.upper, at_most),
                accountant: found.accountant,
            }
        case Approximate():
            value = _end(found.value, nearest)
            ends: Columns = {"lower": None, "estimate": value, "upper": None}
            return {**ends, "approximation": value, accountant: found.accountant}
        case Calibrated():
            return {
                "value": scalar(found.value),
                "achieved_lower": float(found.achieved.lower),
                "achieved_upper": float(found.achieved.upper),
                "status": str(found.status),
            }
        case numbers.Real():
            return {"value": scalar(found)}
        case Mapping():
            return {str(name): scalar(value) for name, value in found.items()}
        case _:
            allowed = "a function that returns a number, an answer, or a mapping of those"
            raise TypeError(str(ParameterError("ask", found, allowed)))


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
    """Return a function by name, parameters and what it holds, else the repr; not what it does."""
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
class _Journal:
    """The answers of a sweep on the disk, until they are a file.

    What is written leaves the process at once: when it is killed, all of that stays. The disk is
    made to catch up about once a second, so a machine that loses power loses about as much.
    """

    def __init__(self, grid: Grid, ask: object, out: Any, replace: bool) -> None:
        self.target, self.size, self.replace = _target(out), size_of(grid), replace
        self.file: FileIO | None = None
        self.synced = time.monotonic()
        listed = [[scalar(value) for value in values] for values in grid.values()]
        identity = {
            "version": __version__,
            "grid": _digest("grid", json.dumps([list(grid), listed])),
            "ask": _digest("ask", _described(ask)),
            "cells": str(self.size),
        }
        self.heading = _line({_MARK: identity})

    def open(self) -> list[Columns]:
        """Lock the journal, and return the answers that it has."""
        if not journal_of(self.target).exists():
            self._refuse_finished()
        self.file = _files.locked(journal_of(self.target), "out")
        first, *lines = self.file.readall().splitlines(keepends=True) or [b""]
        is_journal = first.startswith(_line({_MARK: {}})[: -len(b"}}\n")])
        answers: list[Columns] = []
        if first == self.heading:
            whole = len(first)
            for line in lines[: self.size]:
                columns = _answer_in(line, len(answers))
                if columns is None:
                    break
                answers.append(columns)
                whole += len(line)
            self.file.truncate(whole)
            self.file.seek(whole)
        elif self.heading.startswith(first) or (self.replace and is_journal):
            self.file.truncate(0)
            self.file.seek(0)
            self._write(self.heading)
            _files.force(self.file.fileno())
        else:
            kind = "of another grid, question or version" if is_journal else "no journal of a sweep"
            name = journal_of(self.target).name
            allowed = (
                f"the file of the sweep that was begun there; {name} beside it is {kind}: finish "
                "that sweep, give replace=True to begin anew, or choose another file"
            )
            raise ParameterError("out", str(self.target), allowed)
        if len(answers) < self.size:
            self._refuse_finished()
        return answers

    def add(self, index: int, columns: Columns) -> None:
        assert self.file is not None
        self._write(_line([index, columns]))
        if time.monotonic() - self.synced > _SECONDS_BETWEEN_SYNCS:
            _files.force(self.file.fileno())
            self.synced = time.monotonic()

    def finish(self, rows: list[Columns]) -> None:
        assert self.file is not None
        _files.force(self.file.fileno())
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

    def close(self) -> None:
        if self.file is not None and not self.file.closed:
            _files.force(self.file.fileno())
            self.file.close()

    def _write(self, text: bytes) -> None:
        """Write all of a text, or raise: a disk that is nearly full takes a part and says so."""
        assert self.file is not None
        while text:
            text = text[self.file.write(text) :]

    def _refuse_finished(self) -> None:
        if self.target.exists() and not self.replace:
            allowed = "a file that is not there yet, unless replace=True"
            raise ParameterError("out", str(self.target), allowed)


def _target(out: Any) -> Path:
    try:
        target = Path(os.fsdecode(out)).absolute()
    except TypeError:
        raise ParameterError("out", out, "the name of a file") from None
    if target.suffix.lower() not in ENDINGS or "\0" in str(target):
        allowed = f"a file name that ends in {' or '.join(ENDINGS)}"
        raise ParameterError("out", str(target), allowed)
    _files.check_path(target, "out")
    return target


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _answer_in(line: bytes, wanted: int) -> Columns | None:
    """Return the answer in a line, None where it is no whole line of that cell."""
    try:
        index, columns = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    whole = line.endswith(b"\n") and type(index) is int and isinstance(columns, dict)
    return columns if whole and index == wanted else None


def _write_csv(file: Any, rows: Iterable[Columns]) -> None:
    """Write rows as CSV: every float with all its digits, an empty cell where there is nothing."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    columns.sort(key=lambda name: (name == ERROR, name == CAUTION))
    table = csv.DictWriter(file, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)


def _write_json_lines(file: Any, rows: Iterable[Columns]) -> None:
    for row in rows:
        fields = {
            name: repr(one) if isinstance(one, float) and not math.isfinite(one) else one
            for name, one in row.items()
        }
        file.write(_line(fields).decode())
