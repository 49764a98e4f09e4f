"""The command ``sweep``: one question at every cell of a grid, into a file."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Any, Final, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick._suggest import hint
from hockeystick._validate import Domain
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.answers import cautions
from hockeystick.calibration import Calibrated
from hockeystick.calibration.sweeps.questions import ACCOUNTANT, with_fields
from hockeystick.calibration.sweeps.sweep import CAUTION, ENDINGS, journal_of, kept_for
from hockeystick.cli import command, flags, layout
from hockeystick.cli.as_json import dumped
from hockeystick.cli.layout import Sheet
from hockeystick.cli.out_file import out_flags, out_path
from hockeystick.cli.progress import WORKERS, bar, processes, seconds
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io import parse
from hockeystick.io.building import refuse_unknown
from hockeystick.io.plan_file import content_of, document_of, plan_file_of, shown, text_at
from hockeystick.io.vocabulary import ALTERNATIVES
from hockeystick.mechanisms import DPSGD
from hockeystick.numerics import decimal
from hockeystick.numerics import numerals as numerals
from hockeystick.numerics.numerals import plain
from hockeystick.results import Approximate, Certified

# So many cells are looked at before a file is said to describe no plan.
_TRIED: Final = 100
_FOR_EPSILON: Final = "epsilon"
_FOR_DELTA: Final = "delta"
_AT: Final = ("delta", "epsilon")
# With these to find, the length of a training is known before the answer.
_STEPS_STAY: Final = (_FOR_EPSILON, _FOR_DELTA, "noise_multiplier")
_NUMBER: Final = "a number"
# What [grid] has that is no part of the plan.
_BESIDE: Final = (*_AT, ACCOUNTANT)
_ONCE: Final = "give it once: at the top, in [ask], or in [grid] where each row has its own"

ASK_KEYS: Final = ("find", "delta", "epsilon", "accountant", "tolerance")
# What solving begins with where the file leaves out what is solved for.
_BEGINNING: Final = 1


@final
@dataclass(frozen=True, slots=True)
class FileQuestion:
    """What a grid file asks at one cell.

    Args:
        document: The file's plan.
        find: "epsilon", "delta", or the parameter to solve for.
        at: Where to ask: delta, epsilon or both, as far as the grid does not have them.
        how: The accountant and the tolerance, where they are given.
    """

    document: Mapping[str, Any]
    find: str
    at: Mapping[str, float]
    how: Mapping[str, Any]

    def __call__(self, **parameters: Any) -> Any:
        """Return the answer at one cell."""
        at = self.where(parameters)
        how = {**self.how, **_chosen(parameters, (ACCOUNTANT,))}
        plan = self.plan(parameters)
        if self.find == _FOR_EPSILON:
            return hs.epsilon(plan, at["delta"], **how)
        if self.find == _FOR_DELTA:
            return hs.delta(plan, epsilon=at["epsilon"], **how)
        target = hs.ApproxDP(at["epsilon"], at["delta"])
        return hs.calibrate(plan, self.find, target, **how)

    def about(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a row says besides its cell and its answer: what was asked, and where."""
        where = self.where(parameters)
        at = {name: where[name] for name in _needed(self.find)}
        plan = self.plan(parameters)
        told = {"quantity": self.find, **at, "adjacency": plan.adjacency}
        if isinstance(plan, DPSGD) and self.find in _STEPS_STAY:
            told["total_steps"] = plan.total_steps
        return {
            name: value
            for name, value in {**told, "version": hs.__version__}.items()
            if name not in parameters
        }

    def caution(self, parameters: Mapping[str, Any], found: Any) -> str | None:
        """Return what whoever decides by the answer at one cell should know besides."""
        at = self.where(parameters)
        asked = {name: at[name] for name in _needed(self.find)[:1]}
        solved = isinstance(found, Calibrated)
        answer, plan = (found.achieved, found.plan) if solved else (found, self.plan(parameters))
        if not isinstance(answer, Certified | Approximate):
            return None
        return " ".join(one.text for one in cautions(answer, plan, **asked)) or None

    def where(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return where one cell asks: delta, epsilon or both."""
        return {**self.at, **_chosen(parameters, _AT)}

    def plan(self, cell: Mapping[str, Any]) -> hs.Mechanism:
        """Return the file's plan with the parameters of one cell in place."""
        parameters = {name: value for name, value in cell.items() if name not in _BESIDE}
        table: Any = self.document.get("dpsgd")
        fields = DPSGD.__dataclass_fields__ if isinstance(table, dict) else {}
        own = {name: value for name, value in parameters.items() if name in fields}
        begin = {self.find: _BEGINNING} if self.find in fields and self.find not in table else {}
        plan = plan_file_of(self.document, {**begin, **own}).plan
        others = {name: value for name, value in parameters.items() if name not in own}
        return with_fields(plan, others) if others else plan


@final
@dataclass(frozen=True, slots=True)
class GridFile:
    """A grid, and the question to ask at each of its cells.

    Args:
        grid: Parameters and their values.
        question: What is asked.
        title: What to call it.
    """

    grid: Mapping[str, tuple[Any, ...]]
    question: FileQuestion
    title: str | None = None

    @property
    def replaced(self) -> list[str]:
        """What the file says and its grid replaces by something else, in words."""
        table = self.question.document.get("dpsgd", {})
        pairs = ((name, ALTERNATIVES.get(name)) for name in self.grid)
        return [
            f"{name} replaces the file's {other} = {plain(table[other])}"
            for name, other in pairs
            if other in table and name not in table
        ]


def _chosen(parameters: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return those of these parameters that a cell has."""
    return {name: parameters[name] for name in names if name in parameters}


def load_grid(path: str | os.PathLike[str]) -> GridFile:
    """Read a grid file.

    It is a plan file with two tables more. ``[grid]`` has, for each parameter, an array of values
    or a range such as ``{from = 0.5, to = 8, count = 10, log = true}``. ``[ask]`` has what to
    ``find``: "epsilon", "delta", or the name of a number in the plan, which is then solved for;
    optionally ``delta`` and ``epsilon``, where to ask, and ``accountant`` and ``tolerance``.
    A parameter of the grid replaces a field of ``[dpsgd]``, or the number of the plan that has
    that name or path; ``delta`` and ``epsilon`` are where to ask, ``accountant`` is whom. None of
    these three may be given twice.

    Args:
        path: The file.

    Returns:
        The grid and the question.

    Raises:
        PlanFileError: If the file cannot be read or does not describe a grid.

    Example:
        >>> from hockeystick.cli.sweep import load_grid
        >>> file = load_grid("examples/grids/mnist-noise-and-epochs.toml")
        >>> {name: len(values) for name, values in file.grid.items()}
        {'noise_multiplier': 10, 'epochs': 6, 'delta': 2}
    """
    name = os.fspath(path)
    content = content_of(name)
    try:
        return _grid_file(document_of(content))
    except HockeystickError as error:
        raise PlanFileError(f"{shown(name)}: {error}") from None


def problems_in_grid(content: bytes) -> list[str]:
    """Return all that is wrong with a grid file, as far as it can be told apart."""
    try:
        document = document_of(content)
    except PlanFileError as error:
        return [str(error)]
    tables = [document.get(name) for name in ("grid", "ask")]
    grid, asked = ({} if not isinstance(one, dict) else one for one in tables)
    plan = {key: value for key, value in document.items() if key not in ("grid", "ask")}
    at = {name: one for name in _AT if (one := asked.get(name, document.get(name))) is not None}
    checks: list[Callable[[], object]] = [
        *(partial(_grid, {name: one}) for name, one in grid.items()),
        *(partial(_refuse_misspelt, plan, [name]) for name in grid),
        *(partial(refuse_unknown, "ask", {key: 0}, ASK_KEYS) for key in asked),
        *(partial(_question, {}, {key: one}, {}) for key, one in asked.items() if key not in _AT),
        *(partial(_question, {}, {}, {key: one}) for key, one in at.items()),
        partial(_refuse_twice, document, asked, grid),
    ]
    find = asked.get("find", _FOR_EPSILON)
    if isinstance(find, str):
        checks.append(partial(_check_asked, FileQuestion(plan, find, at, {}), asked, grid))
    found = [problem for check in checks if (problem := _problem(check))]
    whole = "" if found else _problem(partial(_grid_file, document))
    return list(dict.fromkeys(found or ([whole] if whole else [])))


def _problem(check: Callable[[], object]) -> str:
    """Return what is wrong; nothing where nothing is."""
    try:
        check()
    except HockeystickError as error:
        return str(error)
    return ""


def _grid_file(document: dict[str, Any]) -> GridFile:
    """Return the object that a document describes, once its plan is checked."""
    grid = _grid(_table(document, "grid"))
    asked = _table(document, "ask")
    refuse_unknown("ask", asked, ASK_KEYS)
    _refuse_twice(document, asked, grid)
    plan = {key: value for key, value in document.items() if key not in ("grid", "ask")}
    at = {name: asked.get(name, plan.pop(name, None)) for name in _AT}
    question = _question(plan, asked, {key: one for key, one in at.items() if one is not None})
    _check_asked(question, asked, grid)
    _check_plan(question, grid)
    return GridFile(grid, question, text_at(document, "title"))


def _table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table of a document, or raise."""
    found = document.get(name)
    if not isinstance(found, dict) or not found:
        what = (
            "ranges of parameters" if name == "grid" else 'find = "epsilon", say, and delta = 1e-6'
        )
        raise PlanFileError(f"a grid file needs a table [{name}] with {what}")
    return found


def _question(
    plan: Mapping[str, Any], asked: Mapping[str, Any], at: Mapping[str, Any]
) -> FileQuestion:
    """Return the question, or raise."""
    find = asked.get("find", _FOR_EPSILON)
    if not isinstance(find, str):
        allowed = '"epsilon", "delta", or the name of what to solve for, in quotes'
        raise ParameterError("find", find, allowed)
    places = {name: _validate.real(name, value) for name, value in at.items()}
    how: dict[str, Any] = {}
    if "accountant" in asked:
        known = tuple(ACCOUNTANTS)
        how["accountant"] = _validate.one_of("accountant", asked["accountant"], known)
    if "tolerance" in asked:
        how["tolerance"] = _validate.real("tolerance", asked["tolerance"])
    return FileQuestion(plan, find, places, how)


def _refuse_twice(
    document: Mapping[str, object], asked: Mapping[str, object], grid: Mapping[str, object]
) -> None:
    """Raise for what says at more than one place where, or whom, to ask."""
    for name in _BESIDE:
        top = name in _AT and name in document
        places = [("the top level", top), ("[ask]", name in asked), ("[grid]", name in grid)]
        where = [place for place, given in places if given]
        if len(where) > 1:
            said = f"{name} is given twice, in {' and in '.join(where)}; {_ONCE}"
            raise PlanFileError(said)


def _check_asked(
    question: FileQuestion, asked: Mapping[str, object], grid: Mapping[str, object]
) -> None:
    """Raise unless file and grid together say where to ask."""
    known = dict.fromkeys([_FOR_EPSILON, _FOR_DELTA, *_fields_in(question.document)])
    if question.find not in known and question.find.isidentifier():
        near = hint(question.find, known)
        if near:
            raise PlanFileError(f"[ask]: there is no {question.find} to find{near}")
    needed = _needed(question.find)
    for name in needed:
        if name not in grid and name not in question.at:
            raise PlanFileError(f"[ask] or [grid] needs {name}, to find {question.find}")
    for name in _AT:
        if name not in needed and (name in grid or name in asked):
            where = "[grid]" if name in grid else "[ask]"
            raise PlanFileError(f"{where} cannot have {name}, which is what to find")
    if question.find in grid:
        raise PlanFileError(f"[grid] cannot have {question.find}, which is what to find")


def _needed(find: str) -> tuple[str, ...]:
    """Return what says where to ask for this."""
    return {_FOR_EPSILON: ("delta",), _FOR_DELTA: ("epsilon",)}.get(find, _AT)


def _refuse_misspelt(document: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise for a parameter of the grid that is nowhere in the plan, though one alike may be."""
    known = dict.fromkeys([*_fields_in(document), *_BESIDE])
    for name in names:
        near = "" if name in known or not name.isidentifier() else hint(name, known)
        if near:
            raise PlanFileError(f"[grid]: the plan has no {name}{near}")


def _refuse_unplaced(
    document: Mapping[str, Any], names: Sequence[str], error: HockeystickError
) -> None:
    """Raise, in the words of files, where an error is that a name leads to no number of a plan."""
    if not isinstance(error, ParameterError) or error.name != "parameter":
        return
    name = str(error.value)
    if name not in names:
        return
    fields = list(DPSGD.__dataclass_fields__) if isinstance(document.get("dpsgd"), dict) else []
    numbers = [] if "release" not in document and fields else [error.allowed]
    allowed = ", ".join([*_BESIDE, *(one for one in fields if one != "origin"), *numbers])
    raise PlanFileError(f"unknown key {name!r} in [grid]; allowed are {allowed}")


def _fields_in(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of DP-SGD, where that is the plan, and all keys of a document."""
    if isinstance(document.get("dpsgd"), dict):
        yield from DPSGD.__dataclass_fields__
    yield from _keys(document)


def _keys(node: object) -> Iterator[str]:
    """Yield the keys of all tables in a document."""
    if isinstance(node, Mapping):
        yield from node
        node = list(node.values())
    if isinstance(node, list):
        for one in node:
            yield from _keys(one)


def _check_plan(question: FileQuestion, grid: Mapping[str, Iterable[Any]]) -> None:
    """Raise where there is no plan in any of the first cells: then it is the file that is wrong."""
    names = [name for name in grid if name not in _BESIDE]
    values = [grid[name] for name in names]
    first: HockeystickError | None = None
    for cell in islice(product(*values), _TRIED):
        try:
            question.plan(dict(zip(names, cell, strict=True)))
        except HockeystickError as error:
            first = first or error
        else:
            return
    if first is not None:
        _refuse_misspelt(question.document, names)
        _refuse_unplaced(question.document, names, first)
        raise first


def _grid(table: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the values of each parameter."""
    grid = {}
    for name, given in table.items():
        try:
            grid[name] = values_of(name, given)
            _check_kinds(name, grid[name])
        except ParameterError as error:
            raise PlanFileError(str(error)) from None
    return grid


def _check_kinds(name: str, values: Sequence[Any]) -> None:
    """Raise for a text or a truth value among numbers, and the other way round."""
    if name == ACCOUNTANT:
        for one in values:
            _validate.one_of(f"[grid].{ACCOUNTANT}", one, tuple(ACCOUNTANTS))
        return
    kinds = [_kind_of(one) for one in values]
    kind = _NUMBER if name in _AT or _NUMBER in kinds else kinds[0]
    for index, (value, own) in enumerate(zip(values, kinds, strict=True)):
        if own != kind:
            allowed = kind if name in _AT else f"{kind}, as others of {name} are"
            raise ParameterError(f"[grid].{name}[{index}]", value, allowed)


def _kind_of(value: object) -> str:
    """Return what a value is, in words."""
    if isinstance(value, bool):
        return "true or false"
    return _NUMBER if isinstance(value, int | float | Decimal) else "a text in quotes"


_RANGE: Final = ("from", "to", "count", "log", "whole")
_COUNT: Final = Domain(symbol="n", low=2, high=10**6, typical=(5, 100), whole=True)
_END: Final = Domain(symbol="x", low=0, high=math.inf, high_open=True, typical=(0.1, 100))
_POSITIVE: Final = replace(_END, low_open=True)
_A_RANGE: Final = (
    "an array of at least one value, or a table {from = 0.5, to = 8, count = 10}, optionally with "
    "log = true (even on a logarithmic scale) and whole = true (rounded to whole numbers)"
)


def values_of(name: str, given: Any) -> tuple[Any, ...]:
    """Return the values of one parameter, or raise."""
    if isinstance(given, list) and given and not any(isinstance(x, dict | list) for x in given):
        return tuple(given)
    if not isinstance(given, dict):
        raise ParameterError(f"[grid].{name}", given, _A_RANGE)
    refuse_unknown(f"[grid].{name}", given, _RANGE)
    missing = [key for key in _RANGE[:3] if key not in given]
    if missing:
        raise PlanFileError(f"[grid].{name} needs {missing[0]}; it must be {_A_RANGE}")
    flags = [_flag(name, key, given.get(key, False)) for key in ("log", "whole")]
    return _range(name, given, *flags)


def _range(name: str, given: Mapping[str, Any], log: bool, whole: bool) -> tuple[Any, ...]:
    """Return evenly spaced values, both ends exactly as they are given."""
    where, ends = f"[grid].{name}", _POSITIVE if log else _END
    low, high = (_validate.real(f"{where}.{end}", given[end], ends) for end in ("from", "to"))
    last = _validate.count(f"{where}.count", given["count"], _COUNT) - 1
    inner = _logarithmic if log else _even
    spaced = [low, *(inner(low, high, k, last) for k in range(1, last)), high]
    return tuple(dict.fromkeys(round(x) for x in spaced)) if whole else tuple(spaced)


def _even(low: float, high: float, k: int, last: int) -> float:
    """Return the k-th of evenly spaced numbers: the float next to what the decimals mean."""
    first, step = decimal(low), decimal(high) - decimal(low)
    return float(first + step * k / last)


def _logarithmic(low: float, high: float, k: int, last: int) -> float:
    """Return the k-th of numbers, each as many times the one before."""
    return math.exp(math.log(low) + (math.log(high) - math.log(low)) * k / last)


def _flag(name: str, key: str, value: object) -> bool:
    """Return a truth value of a range, or raise."""
    if not isinstance(value, bool):
        raise ParameterError(f"[grid].{name}.{key}", value, "true or false")
    return value


@click.command(cls=command.Command)
@click.argument("grid_file", metavar="GRID.toml")
@out_flags("Where the rows go: a new .csv or .jsonl file.")
@click.option("--workers", metavar="N", help="Ask in N processes; by default in this one.")
@flags.json_flag
@flags.verbose_flag
def sweep(grid_file: str, out: str | None, force: bool, workers: str | None, as_json: bool) -> None:
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
    given: Any = "1" if workers is None else workers
    count = _validate.count("workers", parse(given), WORKERS)
    path = out_path(out, ENDINGS, force or journal_of(Path(out)).exists())
    file = load_grid(grid_file)
    try:
        done = _swept(file, str(path), count, force)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror}") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(*_what_stays(path, file)) from None
    if as_json:
        click.echo(_json(done))
    else:
        _sheet(done).show()


def _what_stays(path: Path, file: GridFile) -> list[str]:
    """Return what an interrupt leaves, in words; nothing where no sweep was begun."""
    kept, cells = kept_for(path), prod(map(len, file.grid.values()))
    if kept is None:
        return []
    if not kept:
        return ["interrupted: stopped before the first answer; run again to begin anew"]
    return [f"interrupted: {kept:,} of {cells:,} kept in {journal_of(path)}; run again to go on"]


def _swept(file: GridFile, out: str, workers: int, force: bool) -> Swept:
    """Sweep, and return what became of it."""
    errors, told = [], []
    resumed: list[int] = []
    rows = 0
    start = time.perf_counter()
    with bar("sweeping") as tell, processes(workers) as executor:

        def progress(answered: int, cells: int) -> None:
            if not resumed:
                resumed.append(answered)
            tell(answered, cells)

        in_flight = None if executor is None else 2 * workers
        how: dict[str, Any] = {"in_flight": in_flight, "replace": force}
        for row in hs.sweep(file.grid, file.question, executor, out=out, progress=progress, **how):
            rows += 1
            if row["error"] is not None:
                errors.append(str(row["error"]))
            if row.get(CAUTION) is not None:
                told.append(str(row[CAUTION]))
    seconds = time.perf_counter() - start
    why, caution = (next(iter(one), None) for one in (errors, told))
    return Swept(file, out, rows, len(errors), why, len(told), caution, resumed[0], seconds)


def _json(done: Swept) -> str:
    """Return what became of a sweep as strict JSON in ASCII."""
    told = {
        "version": hs.__version__,
        "title": done.file.title,
        "find": done.file.question.find,
        "at": dict(done.file.question.at),
        "grid": {name: list(values) for name, values in done.file.grid.items()},
        "out": done.out,
        "rows": done.rows,
        "errors": done.errors,
        "first_error": done.first_error,
        "cautions": done.cautions,
        "first_caution": done.first_caution,
        "resumed": done.resumed,
        "seconds": done.seconds,
    }
    return dumped(told)


@final
@dataclass(frozen=True, slots=True)
class Swept:
    """What became of a sweep.

    Args:
        file: The grid and the question.
        out: The file that was written.
        rows: How many rows it has.
        errors: How many of them have no answer.
        first_error: Why the first of these has none.
        cautions: How many answers come with a caution.
        first_caution: The first of these.
        resumed: How many were answered before.
        seconds: What the others took.
    """

    file: GridFile
    out: str
    rows: int
    errors: int
    first_error: str | None
    cautions: int
    first_caution: str | None
    resumed: int
    seconds: float


def _sheet(done: Swept) -> Sheet:
    """Return what was asked, and where the answers are."""
    sheet, file = Sheet(done.file.title), done.file
    sheet.fact("file", layout.one_line(done.out, "bold green"))
    sheet.fact("rows", f"{done.rows:,}{_beginning(done)}, in {seconds(done.seconds)}")
    if done.errors:
        sheet.fact("no answer", f"in {done.errors:,} rows; first: {done.first_error}")
    if done.first_caution is not None:
        many = f"in {done.cautions:,} of {done.rows:,} rows, in the first of these:"
        sheet.fact("caution", Text(f"{many} {done.first_caution}", style="yellow"))
    places = [f"{name} = {numerals.plain(value)}" for name, value in file.question.at.items()]
    at = f" at {', '.join(places)}" if places else ""
    sheet.fact("found", file.question.find + at)
    for name, values in file.grid.items():
        many = f"{len(values)} values, {values[0]} to {values[-1]}"
        shown = ", ".join(map(str, values)) if len(values) <= 4 else many
        sheet.more("grid", f"{name}: {shown}")
    for told in file.replaced:
        sheet.fact("", told)
    return sheet


def _beginning(done: Swept) -> str:
    """Return the number of answers found in the file, if any."""
    return f", {done.resumed:,} of them answered before" if done.resumed else ""
