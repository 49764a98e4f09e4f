"""The command ``sweep``: one question at every cell of a grid, into a file; its rows verified."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.calibration.sweeps import sweep as sweeps
from hockeystick.calibration.sweeps.questions import ACCOUNTANT, with_fields
from hockeystick.cli import show
from hockeystick.cli.command import command
from hockeystick.cli.show import WORKERS, processes, progress
from hockeystick.errors import AnswerError, HockeystickError, ParameterError, PlanFileError
from hockeystick.io import parse
from hockeystick.io.codec import refuse_unknown
from hockeystick.io.plan_file import content_of, document_of, plan_file_of, shown, text_at
from hockeystick.mechanisms import DPSGD
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

# So many cells are looked at before a file is said to describe no plan.
_TRIED: Final = 100
_AT: Final = ("delta", "epsilon")
# What says where to ask for what; both of them to solve for a parameter.
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {"epsilon": ("delta",), "delta": ("epsilon",)}
# With these to find, the length of a training is known before the answer.
_STEPS_STAY: Final = ("epsilon", "delta", "noise_multiplier")
# What [grid] has that is no part of the plan.
_BESIDE: Final = (*_AT, ACCOUNTANT)
_RANGE: Final = ("from", "to", "count", "log", "whole")
_COUNT: Final = replace(_validate.whole_numbers("n", 2, (5, 100)), high=10**6)
_END: Final = _validate.Domain(symbol="x", low=0, high=math.inf, high_open=True, typical=(0.1, 100))
_A_RANGE: Final = (
    "an array of at least one value, or a table {from = 0.5, to = 8, count = 10}, optionally with "
    "log = true (even on a logarithmic scale) and whole = true (rounded to whole numbers)"
)


@final
@dataclass(frozen=True, slots=True)
class FileQuestion:
    """What a grid file asks at one cell.

    Args:
        document: The file's plan.
        find: "epsilon", "delta", or the parameter to solve for.
        asked: delta, epsilon, accountant and tolerance, as far as the grid does not have them.
    """

    document: Mapping[str, Any]
    find: str
    asked: Mapping[str, Any]

    def __call__(self, **cell: Any) -> dict[str, Any]:
        plan, (at, how) = self.plan(cell), self.asked_at(cell)
        answer: Any
        if self.find in _NEEDED:
            found = answer = getattr(hs, self.find)(plan, **at, **how)
        else:
            found = hs.calibrate(plan, self.find, hs.ApproxDP(**at), **how)
            answer, plan = found.achieved, found.plan
        cautions = hs.answers.cautions(answer, plan, **first(at))
        columns = sweeps.columns_of(found, cell) | self.about(cell)
        return columns | {sweeps.CAUTION: " ".join(one.text for one in cautions) or None}

    def about(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a row says besides its cell and its answer: what was asked, and where."""
        plan = self.plan(cell)
        told = {"quantity": self.find, **self.asked_at(cell)[0], "adjacency": plan.adjacency}
        if isinstance(plan, DPSGD) and self.find in _STEPS_STAY:
            told["total_steps"] = plan.total_steps
        told["version"] = hs.__version__
        return {name: value for name, value in told.items() if name not in cell}

    @property
    def needed(self) -> tuple[str, ...]:
        """What says where to ask."""
        return _NEEDED.get(self.find, _AT)

    def asked_at(self, cell: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return where one cell asks, and how."""
        asked = {**self.asked, **{name: cell[name] for name in _BESIDE if name in cell}}
        at = {name: asked[name] for name in self.needed}
        return at, {name: one for name, one in asked.items() if name not in _AT}

    def plan(self, cell: Mapping[str, Any]) -> hs.Mechanism:
        """Return the file's plan with the parameters of one cell in place."""
        parameters = {name: value for name, value in cell.items() if name not in _BESIDE}
        table: Any = self.document.get("dpsgd")
        fields = DPSGD.__dataclass_fields__ if isinstance(table, dict) else {}
        own = {name: value for name, value in parameters.items() if name in fields}
        # What is solved for begins somewhere where the file leaves it out.
        begin = {self.find: 1} if self.find in fields and self.find not in table else {}
        plan = plan_file_of(self.document, {**begin, **own}).plan
        others = {name: value for name, value in parameters.items() if name not in own}
        return with_fields(plan, others) if others else plan


def first(at: Mapping[str, Any]) -> dict[str, Any]:
    """Return where an answer is: for what is solved for, at its delta."""
    return dict(islice(at.items(), 1))


class GridFile(NamedTuple):
    """A grid, and the question to ask at each of its cells."""

    grid: Mapping[str, tuple[Any, ...]]
    question: FileQuestion
    title: str | None = None


def load_grid(path: str | os.PathLike[str]) -> GridFile:
    """Read a grid file: a plan file with two tables more, ``[grid]`` and ``[ask]``."""
    name = os.fspath(path)
    try:
        return grid_file(content_of(name))
    except HockeystickError as error:
        message = str(error).removeprefix(f"{shown(name)}: ")
        raise PlanFileError(f"{shown(name)}: {message}") from None


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
    grid = {name: _values(name, one) for name, one in given.items()}
    checked: dict[str, Any] = {
        name: _validate.one_of(name, value, tuple(ACCOUNTANTS))
        if name == ACCOUNTANT
        else _validate.real(name, value)
        for name, value in {**top, **asked}.items()
    }
    question = FileQuestion(plan, find, checked)
    for name in dict.fromkeys((*_AT, find)):
        if name in question.needed and name not in {**grid, **checked}:
            raise PlanFileError(f"[ask] or [grid] needs {name}, to find {find}")
        if name not in question.needed and name in {**grid, **asked}:
            place = "[grid]" if name in grid else "[ask]"
            raise PlanFileError(f"{place} cannot have {name}, which is what to find")
    _check_plan(question, grid)
    return GridFile(grid, question, text_at(plan, "title"))


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    table = document.pop(name, None)
    if not isinstance(table, dict) or not table:
        raise PlanFileError(f"a grid file needs a table [{name}]")
    return table


def _check_plan(question: FileQuestion, grid: Mapping[str, Iterable[Any]]) -> None:
    """Raise where there is no plan in any of the first cells: then it is the file that is wrong."""
    names = [name for name in grid if name not in _BESIDE]
    problems: list[HockeystickError] = []
    for cell in islice(product(*(grid[name] for name in names)), _TRIED):
        try:
            question.plan(dict(zip(names, cell, strict=True)))
        except HockeystickError as error:
            problems.append(error)
        else:
            return
    raise problems[0]


def _values(name: str, given: Any) -> tuple[Any, ...]:
    where = f"[grid].{name}"
    if isinstance(given, dict):
        return _range(where, given)
    if not isinstance(given, list) or not given or any(isinstance(x, dict | list) for x in given):
        raise ParameterError(where, given, _A_RANGE)
    return tuple(given)


def _range(where: str, given: dict[str, Any]) -> tuple[float, ...]:
    """Return numbers between two ends, which are as they are given."""
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
    count = _validate.count("workers", workers, WORKERS)
    path = show.out_path(out, sweeps.ENDINGS, force or sweeps.journal_of(Path(out)).exists())
    file = load_grid(grid)
    try:
        told = _swept(file, str(path), count, force)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror}") from None
    except KeyboardInterrupt:
        kept, cells = sweeps.kept_for(path), math.prod(map(len, file.grid.values()))
        stays = f": {kept:,} of {cells:,} kept in {sweeps.journal_of(path)}; run again to go on"
        raise KeyboardInterrupt(f"interrupted{stays if kept else ''}") from None
    before = f", {told['resumed']:,} of them answered before" if told["resumed"] else ""
    errors = f"in {told['errors']:,} rows; first: {told['first_error']}"
    many = f"in {told['cautions']:,} of {told['rows']:,} rows, in the first of these:"
    places = ", ".join(f"{name} = {plain(value)}" for name, value in told["at"].items())
    facts: list[show.Fact] = [
        ("file", show.one_line(told["out"], "bold green")),
        ("rows", f"{told['rows']:,}{before}, in {told['seconds']:.1f} s"),
        ("no answer", errors if told["errors"] else ""),
        ("caution", Text(f"{many} {told['first_caution']}", "yellow") if told["cautions"] else ""),
        ("found", f"{told['find']} at {places}" if places else told["find"]),
    ]
    ranges = [f"{name}: {len(x)} values, {x[0]} to {x[-1]}" for name, x in told["grid"].items()]
    show.answer(told, facts, more=[("grid", text) for text in ranges])


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


# So many rows of each status are named.
_NAMED: Final = 5
# The worst is that of all rows; where there is no answer at all, nothing is covered.
_STATUSES: Final = {"refuted": 1, "not covered": 3, "verified": 0}


def verify_rows(out: str, grid: str | None, workers: Any) -> NoReturn:
    """Print what the verifier says of each row of a sweep, and end with the exit status of all."""
    if grid is None:
        raise click.UsageError(
            f"{out} holds rows of a sweep: give the grid file that was swept too"
        )
    file, count = load_grid(grid), _validate.count("workers", workers, WORKERS)
    cells, given = [*sweeps.cells_of(sweeps.grid_of(file.grid))], sweeps.read_rows(Path(out))
    if len(given) != len(cells):
        needed = f"as many rows as {grid} has cells, {len(cells):,}; it has {len(given):,}"
        raise AnswerError(f"{out} must have {needed}")
    judge = partial(_judged, file.question, grid)
    where = [f"{out}, row {number}" for number in range(1, len(cells) + 1)]
    rows: list[dict[str, Any]] = []
    with progress("verifying") as tell, processes(count) as executor:
        run = map if executor is None else executor.map
        for cell, (status, reason) in zip(cells, run(judge, where, cells, given), strict=True):
            parameters = {name: sweeps.scalar(value) for name, value in cell.items()}
            told = {"row": len(rows) + 1, "parameters": parameters, "status": status}
            rows.append({**told, "reason": reason or None})
            tell(len(rows), len(cells))
    facts: list[show.Fact] = [("file", f"{out}, {len(rows):,} rows of {grid}")]
    for name in (*_STATUSES, "no answer"):
        found = [one for one in rows if one["status"] == name]
        facts.append((name, Text(f"{len(found):,}", show.STYLES.get(name, ""))))
        for one in found[:_NAMED] if name != "verified" else ():
            place = ", ".join(f"{key} = {value}" for key, value in one["parameters"].items())
            facts.append((name, f"row {one['row']} ({place}): {one['reason']}"))
    there = {one["status"] for one in rows}
    status = next((name for name in _STATUSES if name in there), "not covered")
    facts.append(("verdict", Text(status, show.STYLES[status])))
    about = {"version": hs.__version__, "file": out, "grid": grid, "title": file.title}
    show.answer({**about, "status": status, "rows": rows}, facts, status=_STATUSES[status])


def _judged(
    question: FileQuestion, grid: str, where: str, cell: Mapping[str, Any], row: Mapping[str, str]
) -> tuple[str, str]:
    """Return what the verifier says of the ends in a row, asked of its cell's plan; and why."""
    try:
        _check_row(row, cell, {} if row[sweeps.ERROR] else question.about(cell), grid)
        if row[sweeps.ERROR]:
            return "no answer", row[sweeps.ERROR]
        if row.get("approximation"):
            return "not covered", "an approximation claims nothing that could be verified"
        return _verified(question, cell, row)
    except HockeystickError as error:
        raise AnswerError(f"{where}: {error}") from None


def _check_row(
    row: Mapping[str, str], cell: Mapping[str, Any], about: Mapping[str, Any], grid: str
) -> None:
    """Raise unless a row has the parameters of its cell; what was asked older files do not say."""
    for name, value in {**cell, **about}.items():
        found = row.get(name)
        if found is None and name in cell:
            raise AnswerError(f"there is no column {name}: these are not the rows of {grid}")
        wanted = "" if value is None else str(sweeps.scalar(value))
        is_left_out = name in about and (not found or name == "version")
        if not is_left_out and found != wanted and parse(str(found)) != parse(wanted):
            raise AnswerError(f"{name} is {found}, but {grid} has {value} there")


def _verified(
    question: FileQuestion, cell: Mapping[str, Any], row: Mapping[str, str]
) -> tuple[str, str]:
    solved = question.find not in _NEEDED
    low, high = ("achieved_lower", "achieved_upper") if solved else ("lower", "upper")
    plan = question.plan({**cell, question.find: _number(row, "value")} if solved else cell)
    lower, upper = _number(row, low), _number(row, high)
    if lower > upper:
        raise AnswerError(f"{low} must be at most {high}; they are {lower} and {upper}")
    at, how = question.asked_at(cell)
    if solved and upper > at["epsilon"]:
        return "refuted", f"{high} is above the target, epsilon = {at['epsilon']}"
    quantity: Any = "epsilon" if solved else question.find
    about: Any = {"accountant": "sweep", "adjacency": plan.adjacency}
    answer = hs.Certified(lower, lower, upper, quantity=quantity, **about)
    misnamed = None if solved else _misnamed(cell, row, how.get(ACCOUNTANT, "auto"))
    if misnamed is not None:
        return "refuted", misnamed
    verdict = hs.verify(answer, plan, **first(at))
    is_inside = solved or lower <= _number(row, "estimate") <= upper
    if verdict.status == "verified" and not is_inside:
        return "refuted", "estimate is not from lower to upper"
    return verdict.status, verdict.reason


def _misnamed(cell: Mapping[str, Any], row: Mapping[str, str], asked: str) -> str | None:
    """Return why the accountant that a row names cannot have proven it, if so."""
    column = sweeps.ANSWERED_BY if ACCOUNTANT in cell else ACCOUNTANT
    named = row.get(column, "")
    if named not in ACCOUNTANTS or named == "auto":
        return f"{column} = {named!r} is no accountant's name"
    if ACCOUNTANTS[named].kind == "approximation":
        return f"{column} = {named!r} proves nothing, so no row with ends is its"
    return None if asked in ("auto", named) else f"{column} = {named!r}, but {asked} was asked"


def _number(row: Mapping[str, str], name: str) -> float:
    value = parse(row.get(name, ""))
    if not isinstance(value, int | float):
        raise AnswerError(f"{name} must be a number; it is {row.get(name, '')!r}")
    return value
