"""Sweeps: one question, asked at every cell of a grid, on as many workers as there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias, final
from uuid import uuid4

from hockeystick import _files
from hockeystick._validate import Domain, count
from hockeystick._version import __version__
from hockeystick.calibration.sweeps.cells import Ask, Columns, Grid, Scalar, answered, identity_of
from hockeystick.calibration.sweeps.journal import Journal, Memory
from hockeystick.calibration.sweeps.questions import refuse_unknown
from hockeystick.calibration.sweeps.table import kind_of
from hockeystick.errors import ParameterError

Progress: TypeAlias = Callable[[int, int], None]
_Answers: TypeAlias = list[tuple[int, Columns]]
_Answering: TypeAlias = Generator[_Answers, None, None]
_Told: TypeAlias = tuple[list[Columns], float]

_IN_FLIGHT: Final = Domain(symbol="w", low=1, high=10**6, typical=(2, 64), whole=True)
_A_QUESTION: Final = (
    "a function of the grid's parameters, such as hockeystick.calibration.AskEpsilon(plan, "
    "delta=1e-5), of AskDelta(plan, epsilon=1), or Solve(plan, parameter, target)"
)
_CHUNKS_PER_CORE: Final = 4
# Long enough that what a task costs on top does not count, short enough to lose.
_SECONDS_PER_CHUNK: Final = 0.25
_MOST_CELLS_PER_CHUNK: Final = 1024


def sweep(
    grid: Mapping[str, Iterable[object]],
    ask: Ask,
    executor: Executor | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    in_flight: int | None = None,
    replace: bool = False,
) -> Iterator[dict[str, Scalar]]:
    """Ask one question at every cell of a grid, and yield the rows in the grid's order.

    The grid is the product of the parameters' values, the last of which changes fastest. A row has
    the parameters, then what the question's answer consists of (``lower``, ``estimate``, ``upper``
    and ``accountant`` of a ``Certified``, which is ``answered_by`` where the grid has
    ``accountant``; of an ``Approximate``, which proves nothing, ``lower`` and ``upper`` are None,
    and its number is ``estimate`` and, beside it, ``approximation``; ``value``, ``achieved_lower``,
    ``achieved_upper`` and ``status`` of a ``Calibrated``; a number is ``value``; a mapping is its
    own columns), then ``error``: None, or why this cell has no answer.

    Guarantees:
        With ``out``, each answer is on its way to the disk before the next one is asked for (that
        of a chunk of cells, with an executor), in ``out`` + ".journal"; the file itself appears at
        once when the last answer is there. The same call takes up a sweep that was killed: what is
        in the journal is not computed again, and the file is, row for row, that of a sweep that
        nobody interrupted. Computed twice is at most what was under way: one cell in process, and
        ``in_flight`` chunks, each of about a quarter of a second, with an executor. A machine that
        loses power can lose the last second besides.

    Edge cases:
        Nothing is asked before the iterator is; a file is made only when it is exhausted. A cell
        that the library refuses, or whose arithmetic fails (``HockeystickError``, ``ValueError``,
        ``ArithmeticError``), is a row with an ``error``; any other exception ends the sweep, which
        can be taken up again. A journal of another grid, question or version is refused, and so
        is a file that is there already, unless ``replace`` says that they may go: such a journal
        goes at once, the file when the new one is whole. A function is known by its name, its
        parameters and what it holds, not by what it does: whoever changes that says ``replace``.

    Args:
        grid: Parameters and their values: numbers, texts, or descriptions with a repr.
        ask: What is called with the parameters as keywords, such as ``AskEpsilon(plan, delta)``.
            An executor of other processes needs one that can be pickled.
        executor: Where to ask: any ``concurrent.futures.Executor``, such as
            ``distributed.Client().get_executor()`` or ``adapters.ray.RayExecutor()``; by default
            here. It is not shut down.
        out: A file name that ends in .csv or .parquet (which needs the extra ``parquet``).
        progress: Called with the number of cells that are answered and that of all cells: once at
            the beginning, then whenever there are more.
        in_flight: The most chunks that the executor has at a time, an integer from 1 to 1000000;
            by default four for each core of this machine.
        replace: Whether ``out`` may replace a file that is there already, and the journal of
            another sweep that was begun there; one of this sweep is taken up all the same.

    Returns:
        An iterator of rows.

    Raises:
        ParameterError: If an argument is outside its domain, a parameter of the grid is none of the
            plan's that is asked about, or ``out`` belongs to another sweep.
        HockeystickError: If ``out`` is a Parquet file and pyarrow is missing.
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
    opened = Memory if out is None else _journal(out, cells, ask, replace)
    refuse_unknown(ask, dict(zip(cells.names, cells.cell(0), strict=True)))
    return _Sweep(cells, ask, executor, opened, progress or _unseen, chunks).rows()


def _unseen(answered: int, cells: int) -> None:
    """Tell nobody."""


def _journal(
    out: str | os.PathLike[str], grid: Grid, ask: Ask, replace: bool
) -> Callable[[], Journal]:
    """Return what opens the journal of a file, with what a sweep before this one left there."""
    try:
        target = Path(os.fsdecode(out)).absolute()
    except TypeError:
        raise ParameterError("out", out, "the name of a file") from None
    kind_of(target)
    _files.check_path(target, "out")
    heading = {"version": __version__, "grid": grid.identity, "ask": identity_of(ask)}
    return lambda: Journal(target, grid, heading, replace=replace)


@final
@dataclass(frozen=True, slots=True)
class _Sweep:
    """One question at all cells of a grid."""

    grid: Grid
    ask: Ask
    executor: Executor | None
    opened: Callable[[], Memory | Journal]
    progress: Progress
    in_flight: int

    def rows(self) -> Iterator[dict[str, Scalar]]:
        """Yield all rows, and make the file before the last one."""
        store = self.opened()
        pending = (index for index in range(len(self.grid)) if index not in store)
        ask = self._here if self.executor is None else partial(self._elsewhere, self.executor)
        with closing(store), closing(ask(pending)) as answers:
            yield from self._in_order(store, answers)

    def _in_order(self, store: Memory | Journal, answers: Iterator[_Answers]) -> Iterator[Columns]:
        """Yield rows in the grid's order, from answers in any order."""
        cells = len(self.grid)
        done = store.answered
        self.progress(done, cells)
        for index in range(cells):
            while index not in store:
                some = next(answers)
                store.add(some)
                done += len(some)
                self.progress(done, cells)
            row = self.grid.row(index, store.take(index))
            if index == cells - 1:
                store.finish()
            yield row

    def _here(self, pending: Iterator[int]) -> _Answering:
        """Yield the answers of this process, one at a time."""
        for index in pending:
            (columns,), _ = answered(self.ask, self.grid.names, [self.grid.cell(index)])
            yield [(index, columns)]

    def _elsewhere(self, executor: Executor, pending: Iterator[int]) -> _Answering:
        """Yield the answers of an executor, by chunks that take about equally long."""
        running: dict[Future[_Told], list[int]] = {}
        seconds_per_cell, stamp = _SECONDS_PER_CHUNK, uuid4().hex
        try:
            while True:
                size = _cells_per_chunk(seconds_per_cell)
                while len(running) < self.in_flight and (some := list(islice(pending, size))):
                    cells = [self.grid.cell(index) for index in some]
                    chunk = executor.submit(answered, self.ask, self.grid.names, cells, stamp)
                    running[chunk] = some
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                # What failed comes last, so that what did not is kept.
                for future in sorted(done, key=_failed):
                    some = running.pop(future)
                    columns, seconds = future.result()
                    seconds_per_cell = (seconds_per_cell + seconds / len(some)) / 2
                    yield list(zip(some, columns, strict=True))
        finally:
            for future in running:
                future.cancel()


def _cells_per_chunk(seconds: float) -> int:
    """Return the number of cells in a chunk, given the seconds that one takes."""
    return max(1, min(_MOST_CELLS_PER_CHUNK, int(_SECONDS_PER_CHUNK / max(seconds, 1e-9))))


def _failed(future: Future[_Told]) -> bool:
    """Return whether a chunk of cells has no answers."""
    return future.cancelled() or future.exception() is not None
