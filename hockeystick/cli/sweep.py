"""The command ``sweep``: one question at every cell of a grid, into a file."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick._spawning import Spawning
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.calibration.sweeps import sweep as sweeps
from hockeystick.calibration.sweeps.questions import ACCOUNTANT, with_fields
from hockeystick.cli import show
from hockeystick.cli.command import command, on_one_line
from hockeystick.cli.show import progress
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io.codec import parameters_of, refuse_unknown
from hockeystick.io.plan_file import content_of, document_of, plan_file_of
from hockeystick.mechanisms import DPSGD
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

_AT: Final = ("delta", "epsilon")
# What says where to ask for what; both of them to solve for a parameter.
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {"epsilon": ("delta",), "delta": ("epsilon",)}
# With these to find, the length of a training is known before the answer.
_STEPS_STAY: Final = ("epsilon", "delta", "noise_multiplier")
# What [grid] has that is no part of the plan.
_BESIDE: Final = (*_AT, ACCOUNTANT)
_RANGE: Final = ("from", "to", "count", "log", "whole")
_COUNT: Final = replace(_validate.whole_numbers("n", 2, (5, 100)), high=10**6)
_WORKERS: Final = _validate.Domain(symbol="w", low=1, high=1024, typical=(1, 64), whole=True)
_END: Final = _validate.Domain(symbol="x", low=0, high=math.inf, high_open=True, typical=(0.1, 100))


@final
@dataclass(frozen=True, slots=True)
class FileQuestion:
    """What a grid file asks at one cell: what to ``find`` of the plan that its ``document`` has.

    ``asked`` has delta, epsilon, accountant and tolerance, as far as the grid does not have them.
    """

    document: Mapping[str, Any]
    find: str
    asked: Mapping[str, Any]

    def __call__(self, **cell: Any) -> dict[str, Any]:
        plan = self.plan(cell)
        asked: dict[str, Any] = {
            **self.asked,
            **{name: cell[name] for name in _BESIDE if name in cell},
        }
        at = {name: asked.pop(name) for name in _NEEDED.get(self.find, _AT)}
        told: dict[str, Any] = {"quantity": self.find, **at, "adjacency": plan.adjacency}
        if isinstance(plan, DPSGD) and self.find in _STEPS_STAY:
            told["total_steps"] = plan.total_steps
        how = {name: one for name, one in asked.items() if name not in _AT}
        answer: Any
        if self.find in _NEEDED:
            found = answer = getattr(hs, self.find)(plan, **at, **how)
        else:
            found = hs.calibrate(plan, self.find, hs.ApproxDP(**at), **how)
            answer, plan = found.achieved, found.plan
            at.pop("epsilon")
        cautions = hs.answers.cautions(answer, plan, **at)
        told |= {"version": hs.__version__}
        columns = sweeps.columns_of(found, cell)
        columns |= {name: value for name, value in told.items() if name not in cell}
        return columns | {sweeps.CAUTION: " ".join(one.text for one in cautions) or None}

    def plan(self, cell: Mapping[str, Any]) -> hs.Mechanism:
        """Return the file's plan with the parameters of one cell in place."""
        parameters = {name: value for name, value in cell.items() if name not in _BESIDE}
        table: Any = self.document.get("dpsgd")
        fields = parameters_of(DPSGD) if isinstance(table, dict) else {}
        own = {name: value for name, value in parameters.items() if name in fields}
        # What is solved for begins somewhere where the file leaves it out.
        begin = {self.find: 1} if self.find in fields and self.find not in table else {}
        plan = plan_file_of(self.document, {**begin, **own}).plan
        others = {name: value for name, value in parameters.items() if name not in own}
        return with_fields(plan, others) if others else plan


class GridFile(NamedTuple):
    """A grid, and the question to ask at each of its cells."""

    grid: sweeps.Grid
    question: FileQuestion
    title: str | None = None


def load_grid(path: str | os.PathLike[str]) -> GridFile:
    """Read a grid file: a plan file with two tables more, ``[grid]`` and ``[ask]``."""
    content = content_of(os.fspath(path))
    try:
        return grid_file(content)
    except HockeystickError as error:
        raise PlanFileError(f"{path}: {error}") from None


def grid_file(content: bytes) -> GridFile:
    """Return what the content of a grid file describes, once its plan is checked, or raise."""
    plan = document_of(content)
    given, asked = (_table(plan, name) for name in ("grid", "ask"))
    refuse_unknown("ask", asked, ("find", *_BESIDE, "tolerance"))
    top: dict[str, Any] = {name: plan.pop(name) for name in _AT if name in plan}
    places = {"the top level": top, "[ask]": asked, "[grid]": given}
    for name in _BESIDE:
        where = [place for place, table in places.items() if name in table]
        if len(where) > 1:
            raise PlanFileError(f"{name} is given twice, in {' and in '.join(where)}; give it once")
    find = asked.pop("find", "epsilon")
    if not isinstance(find, str):
        allowed = '"epsilon", "delta", or the name of what to solve for, in quotes'
        raise ParameterError("find", find, allowed)
    ranges = {name: _range(name, one) for name, one in given.items() if isinstance(one, dict)}
    grid = sweeps.grid_of({**given, **ranges})
    checked: dict[str, Any] = {
        name: _validate.one_of(name, value, tuple(ACCOUNTANTS))
        if name == ACCOUNTANT
        else _validate.real(name, value)
        for name, value in {**top, **asked}.items()
    }
    question, needed = FileQuestion(plan, find, checked), _NEEDED.get(find, _AT)
    for name in dict.fromkeys((*_AT, find)):
        if name in needed and name not in {**grid, **checked}:
            raise PlanFileError(f"[ask] or [grid] needs {name}, to find {find}")
        if name not in needed and name in {**grid, **asked}:
            place = "[grid]" if name in grid else "[ask]"
            raise PlanFileError(f"{place} cannot have {name}, which is what to find")
    _check_plan(question, grid)
    return GridFile(grid, question, plan.get("title"))


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    table = document.pop(name, None)
    if not isinstance(table, dict) or not table:
        raise PlanFileError(f"a grid file needs a table [{name}]")
    return table


def _check_plan(question: FileQuestion, grid: sweeps.Grid) -> None:
    """Raise where there is no plan in any of the first 100 cells: it is the file that is wrong."""
    problems: list[HockeystickError] = []
    plans = {name: values for name, values in grid.items() if name not in _BESIDE}
    for cell in islice(sweeps.cells_of(plans), 100):
        try:
            question.plan(cell)
            return
        except HockeystickError as error:
            problems.append(error)
    raise problems[0]


def _range(name: str, given: dict[str, Any]) -> tuple[float, ...]:
    """Return numbers between two ends, which are as they are given."""
    where = f"[grid].{name}"
    refuse_unknown(where, given, _RANGE)
    log, whole = (given.get(key, False) for key in _RANGE[3:])
    for key, value in zip(_RANGE[3:], (log, whole), strict=True):
        if not isinstance(value, bool):
            raise ParameterError(f"{where}.{key}", value, "true or false")
    ends = replace(_END, low_open=log)
    low, high = (_validate.real(f"{where}.{end}", given.get(end), ends) for end in _RANGE[:2])
    last = _validate.count(f"{where}.count", given.get("count"), _COUNT) - 1
    if log:
        first, stride = math.log(low), math.log(high) - math.log(low)
        inner = [math.exp(first + stride * k / last) for k in range(1, last)]
    else:  # the floats next to what the decimals mean
        start, step = decimal(low), decimal(high) - decimal(low)
        inner = [float(start + step * k / last) for k in range(1, last)]
    spaced = (low, *inner, high)
    return tuple(dict.fromkeys(map(round, spaced))) if whole else spaced


@command(
    r"""printf '[dpsgd]\nexamples = 60_000\nbatch_size = 256\nepochs = 1\n' > grid.toml""",
    r"""printf '[grid]\nnoise_multiplier = [1, 2]\n[ask]\ndelta = 1e-5\n' >> grid.toml""",
    "hockeystick sweep grid.toml -o answers.csv",
    takes="GRID out force workers json verbose",
    out="Where the rows go: a new .csv or .jsonl file.",
)
def sweep(grid: str, out: str | None, force: bool, workers: Any) -> None:
    """Ask one question at every cell of a grid.

    GRID.toml is a plan file with two tables more: [grid], for each number by its name or path an
    array, or a range as {from = 1, to = 8, count = 5, log = true}; and [ask], what to find:
    "epsilon", "delta", or the number to solve for, and where: delta, epsilon. In [grid], delta,
    epsilon and accountant differ from row to row. A cell that is refused is a row with an error.

    What is interrupted goes on where it was when the same command is given again; until all is
    there, the answers are in FILE.journal.
    """
    if out is None:
        raise click.UsageError("Missing -o FILE, where the rows go: .csv or .jsonl")
    count = _validate.count("workers", workers, _WORKERS)
    path = show.out_path(out, sweeps.ENDINGS, force or sweeps.journal_of(Path(out)).exists())
    file = load_grid(grid)
    try:
        told = _swept(file, str(path), count, force)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror}") from None
    except KeyboardInterrupt:
        kept, cells = sweeps.kept_for(path), sweeps.size_of(file.grid)
        stays = f": {kept:,} of {cells:,} kept in {sweeps.journal_of(path)}; run again to go on"
        raise KeyboardInterrupt(f"interrupted{stays if kept else ''}") from None
    before = f", {told['resumed']:,} of them answered before" if told["resumed"] else ""
    errors = f"in {told['errors']:,} rows; first: {told['first_error']}"
    many = f"in {told['cautions']:,} of {told['rows']:,} rows, in the first of these:"
    places = "".join(f" at {name} = {plain(value)}" for name, value in told["at"].items())
    facts: list[show.Fact] = [
        ("file", Text(on_one_line(told["out"]), "bold green")),
        ("rows", f"{told['rows']:,}{before}, in {told['seconds']:.1f} s"),
        ("no answer", errors if told["errors"] else ""),
        ("caution", Text(f"{many} {told['first_caution']}", "yellow") if told["cautions"] else ""),
        ("found", f"{told['find']}{places}"),
    ]
    show.answer(told, facts)


def _swept(file: GridFile, out: str, workers: int, force: bool) -> dict[str, Any]:
    asked, start, done = file.question.asked, time.perf_counter(), dict[str, int]()
    with progress("sweeping") as tell, processes(workers) as executor:

        def report(answered: int, cells: int) -> None:
            done.setdefault("resumed", answered)
            tell(answered, cells)

        how: dict[str, Any] = {"in_flight": 2 * workers, "replace": force, "progress": report}
        rows = list(hs.sweep(file.grid, file.question, executor, out=out, **how))
    errors, warned = (
        [str(row[name]) for row in rows if row.get(name) is not None]
        for name in (sweeps.ERROR, sweeps.CAUTION)
    )
    return {
        "version": hs.__version__,
        "title": file.title,
        "find": file.question.find,
        "at": {name: asked[name] for name in _AT if name in asked},
        "grid": {name: list(values) for name, values in file.grid.items()},
        "out": out,
        "rows": len(rows),
        "errors": len(errors),
        "first_error": next(iter(errors), None),
        "cautions": len(warned),
        "first_caution": next(iter(warned), None),
        **done,
        "seconds": time.perf_counter() - start,
    }


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """Yield so many processes to ask in, None where this one is enough.

    They leave the terminal's interrupts to the command that started them.
    """
    if workers == 1:
        yield None
        return
    executor = ProcessPoolExecutor(workers, mp_context=Spawning(), initializer=_work)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _work() -> None:
    """Prepare a worker: the terminal's interrupts are for its parent, without which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def leave() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
