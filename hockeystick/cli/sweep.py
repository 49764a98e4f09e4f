"""The command ``sweep``: one question at every cell of a grid, into a file."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Any, Final, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.answers import cautions
from hockeystick.calibration import Calibrated
from hockeystick.calibration.sweeps.questions import ACCOUNTANT, with_fields
from hockeystick.calibration.sweeps.sweep import CAUTION, ENDINGS, journal_of, kept_for
from hockeystick.cli.command import command
from hockeystick.cli.progress import WORKERS, processes, progress, seconds
from hockeystick.cli.show import Sheet, one_line, out_path, show
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io.plan_file import content_of, document_of, plan_file_of, shown, text_at
from hockeystick.io.vocabulary import refuse_unknown
from hockeystick.mechanisms import DPSGD
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain
from hockeystick.results import Approximate, Certified

# So many cells are looked at before a file is said to describe no plan.
_TRIED: Final = 100
_AT: Final = ("delta", "epsilon")
# What says where to ask for what; both of them to solve for a parameter.
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {"epsilon": ("delta",), "delta": ("epsilon",)}
# With these to find, the length of a training is known before the answer.
_STEPS_STAY: Final = ("epsilon", "delta", "noise_multiplier")
# What [grid] has that is no part of the plan.
_BESIDE: Final = (*_AT, ACCOUNTANT)
_TABLES: Final = ("grid", "ask")
_ASK_KEYS: Final = ("find", "delta", "epsilon", "accountant", "tolerance")
_RANGE: Final = ("from", "to", "count", "log", "whole")
_COUNT: Final = Domain(symbol="n", low=2, high=10**6, typical=(5, 100), whole=True)
_END: Final = Domain(symbol="x", low=0, high=math.inf, high_open=True, typical=(0.1, 100))
_POSITIVE: Final = Domain(
    symbol="x", low=0, low_open=True, high=math.inf, high_open=True, typical=(0.1, 100)
)
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
        at: Where to ask: delta, epsilon or both, as far as the grid does not have them.
        how: The accountant and the tolerance, where they are given.
    """

    document: Mapping[str, Any]
    find: str
    at: Mapping[str, float]
    how: Mapping[str, Any]

    def __call__(self, **parameters: Any) -> Any:
        """Return the answer at one cell."""
        at, plan = self.where(parameters), self.plan(parameters)
        chosen = {ACCOUNTANT: parameters[ACCOUNTANT]} if ACCOUNTANT in parameters else {}
        how = {**self.how, **chosen}
        if self.find in _NEEDED:
            ask: Any = getattr(hs, self.find)
            (name,) = _NEEDED[self.find]
            return ask(plan, **{name: at[name]}, **how)
        return hs.calibrate(plan, self.find, hs.ApproxDP(at["epsilon"], at["delta"]), **how)

    def about(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a row says besides its cell and its answer: what was asked, and where."""
        at, plan = self.where(parameters), self.plan(parameters)
        where = {name: at[name] for name in self.needed}
        told = {"quantity": self.find, **where, "adjacency": plan.adjacency}
        if isinstance(plan, DPSGD) and self.find in _STEPS_STAY:
            told["total_steps"] = plan.total_steps
        told["version"] = hs.__version__
        return {name: value for name, value in told.items() if name not in parameters}

    def caution(self, parameters: Mapping[str, Any], found: Any) -> str | None:
        """Return what whoever decides by the answer at one cell should know besides."""
        at, name = self.where(parameters), self.needed[0]
        if isinstance(found, Calibrated):
            answer, plan = found.achieved, found.plan
        else:
            answer, plan = found, self.plan(parameters)
        if not isinstance(answer, Certified | Approximate):
            return None
        asked: dict[str, Any] = {name: at[name]}
        return " ".join(one.text for one in cautions(answer, plan, **asked)) or None

    @property
    def needed(self) -> tuple[str, ...]:
        """What says where to ask."""
        return _NEEDED.get(self.find, _AT)

    def where(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return where one cell asks: delta, epsilon or both."""
        return {**self.at, **{name: parameters[name] for name in _AT if name in parameters}}

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
    try:
        return grid_file(content_of(name))
    except HockeystickError as error:
        message = str(error).removeprefix(f"{shown(name)}: ")
        raise PlanFileError(f"{shown(name)}: {message}") from None


def grid_file(content: bytes) -> GridFile:
    """Return what the content of a grid file describes, once its plan is checked, or raise."""
    document = document_of(content)
    tables = {name: document.get(name) for name in _TABLES}
    for name, table in tables.items():
        if not isinstance(table, dict) or not table:
            raise PlanFileError(f"a grid file needs a table [{name}]")
    given: Any = tables["grid"]
    asked: Any = tables["ask"]
    grid = {name: _values(name, one) for name, one in given.items()}
    refuse_unknown("ask", asked, _ASK_KEYS)
    _refuse_twice(document, asked, grid)
    plan = {key: value for key, value in document.items() if key not in _TABLES}
    at = {name: asked.get(name, plan.pop(name, None)) for name in _AT}
    find = asked.get("find", "epsilon")
    if not isinstance(find, str):
        allowed = '"epsilon", "delta", or the name of what to solve for, in quotes'
        raise ParameterError("find", find, allowed)
    places = {name: _validate.real(name, one) for name, one in at.items() if one is not None}
    how = {name: asked[name] for name in ("accountant", "tolerance") if name in asked}
    if "accountant" in how:
        _validate.one_of("accountant", how["accountant"], tuple(ACCOUNTANTS))
    if "tolerance" in how:
        how["tolerance"] = _validate.real("tolerance", how["tolerance"])
    question = FileQuestion(plan, find, places, how)
    _check_asked(question, asked, grid)
    _check_plan(question, grid)
    return GridFile(grid, question, text_at(document, "title"))


def _refuse_twice(
    document: Mapping[str, object], asked: Mapping[str, object], grid: Mapping[str, object]
) -> None:
    """Raise for what says at more than one place where, or whom, to ask."""
    for name in _BESIDE:
        top = name in _AT and name in document
        places = [("the top level", top), ("[ask]", name in asked), ("[grid]", name in grid)]
        where = [place for place, given in places if given]
        if len(where) > 1:
            raise PlanFileError(f"{name} is given twice, in {' and in '.join(where)}; give it once")


def _check_asked(
    question: FileQuestion, asked: Mapping[str, object], grid: Mapping[str, object]
) -> None:
    """Raise unless file and grid together say where to ask, and nothing else."""
    for name in question.needed:
        if name not in grid and name not in question.at:
            raise PlanFileError(f"[ask] or [grid] needs {name}, to find {question.find}")
    for name in dict.fromkeys((*_AT, question.find)):
        if name not in question.needed and (name in grid or name in asked):
            where = "[grid]" if name in grid else "[ask]"
            raise PlanFileError(f"{where} cannot have {name}, which is what to find")


def _check_plan(question: FileQuestion, grid: Mapping[str, Iterable[Any]]) -> None:
    """Raise where there is no plan in any of the first cells: then it is the file that is wrong."""
    names = [name for name in grid if name not in _BESIDE]
    first: HockeystickError | None = None
    for cell in islice(product(*(grid[name] for name in names)), _TRIED):
        try:
            question.plan(dict(zip(names, cell, strict=True)))
        except HockeystickError as error:
            first = first or error
        else:
            return
    if first is not None:
        raise first


def _values(name: str, given: Any) -> tuple[Any, ...]:
    """Return the values of one parameter, or raise."""
    where = f"[grid].{name}"
    if isinstance(given, list) and given and not any(isinstance(x, dict | list) for x in given):
        _check_kinds(name, given)
        return tuple(given)
    if not isinstance(given, dict):
        raise ParameterError(where, given, _A_RANGE)
    refuse_unknown(where, given, _RANGE)
    for key in _RANGE[:3]:
        if key not in given:
            raise PlanFileError(f"{where} needs {key}; it must be {_A_RANGE}")
    for key in _RANGE[3:]:
        if not isinstance(given.get(key, False), bool):
            raise ParameterError(f"{where}.{key}", given[key], "true or false")
    is_log = given.get("log", False)
    ends = _POSITIVE if is_log else _END
    low, high = (_validate.real(f"{where}.{end}", given[end], ends) for end in ("from", "to"))
    last = _validate.count(f"{where}.count", given["count"], _COUNT) - 1
    inner = _logarithmic if is_log else _even
    # Both ends exactly as they are given.
    spaced = [low, *(inner(low, high, k, last) for k in range(1, last)), high]
    is_whole = given.get("whole", False)
    return tuple(dict.fromkeys(round(x) for x in spaced)) if is_whole else tuple(spaced)


def _check_kinds(name: str, values: Sequence[Any]) -> None:
    """Raise for what is no number among numbers, and for what is no accountant."""
    if name == ACCOUNTANT:
        for one in values:
            _validate.one_of(f"[grid].{ACCOUNTANT}", one, tuple(ACCOUNTANTS))
        return
    numeric = [isinstance(x, int | float | Decimal) and not isinstance(x, bool) for x in values]
    allowed = "a number" if name in _AT else f"a number, as others of {name} are"
    for index, value in enumerate(values):
        if not numeric[index] and (name in _AT or any(numeric)):
            raise ParameterError(f"[grid].{name}[{index}]", value, allowed)


def _even(low: float, high: float, k: int, last: int) -> float:
    """Return the k-th of evenly spaced numbers: the float next to what the decimals mean."""
    first, step = decimal(low), decimal(high) - decimal(low)
    return float(first + step * k / last)


def _logarithmic(low: float, high: float, k: int, last: int) -> float:
    """Return the k-th of numbers, each as many times the one before."""
    return math.exp(math.log(low) + (math.log(high) - math.log(low)) * k / last)


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
    path = out_path(out, ENDINGS, force or journal_of(Path(out)).exists())
    file = load_grid(grid)
    try:
        told = _swept(file, str(path), count, force)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror}") from None
    except KeyboardInterrupt:
        kept, cells = kept_for(path), prod(map(len, file.grid.values()))
        stays = f": {kept:,} of {cells:,} kept in {journal_of(path)}; run again to go on"
        raise KeyboardInterrupt(f"interrupted{stays if kept else ''}") from None
    show(lambda: told, lambda: _sheet(told))


def _swept(file: GridFile, out: str, workers: int, force: bool) -> dict[str, Any]:
    """Sweep, and return what became of it, ready for JSON."""
    rows, resumed, errors, warned = 0, None, [], []
    start = time.perf_counter()
    with progress("sweeping") as tell, processes(workers) as executor:

        def report(answered: int, cells: int) -> None:
            nonlocal resumed
            resumed = answered if resumed is None else resumed
            tell(answered, cells)

        in_flight = None if executor is None else 2 * workers
        how: dict[str, Any] = {"in_flight": in_flight, "replace": force}
        for row in hs.sweep(file.grid, file.question, executor, out=out, progress=report, **how):
            rows += 1
            errors += [] if row["error"] is None else [str(row["error"])]
            warned += [] if row.get(CAUTION) is None else [str(row[CAUTION])]
    return {
        "version": hs.__version__,
        "title": file.title,
        "find": file.question.find,
        "at": dict(file.question.at),
        "grid": {name: list(values) for name, values in file.grid.items()},
        "out": out,
        "rows": rows,
        "errors": len(errors),
        "first_error": errors[0] if errors else None,
        "cautions": len(warned),
        "first_caution": warned[0] if warned else None,
        "resumed": resumed,
        "seconds": time.perf_counter() - start,
    }


def _sheet(told: Mapping[str, Any]) -> Sheet:
    """Return what was asked, and where the answers are."""
    sheet = Sheet(told["title"])
    sheet.fact("file", one_line(told["out"], "bold green"))
    before = f", {told['resumed']:,} of them answered before" if told["resumed"] else ""
    sheet.fact("rows", f"{told['rows']:,}{before}, in {seconds(told['seconds'])}")
    if told["errors"]:
        sheet.fact("no answer", f"in {told['errors']:,} rows; first: {told['first_error']}")
    if told["cautions"]:
        many = f"in {told['cautions']:,} of {told['rows']:,} rows, in the first of these:"
        sheet.fact("caution", Text(f"{many} {told['first_caution']}", style="yellow"))
    places = [f"{name} = {plain(value)}" for name, value in told["at"].items()]
    sheet.fact("found", told["find"] + (f" at {', '.join(places)}" if places else ""))
    for name, values in told["grid"].items():
        sheet.more("grid", f"{name}: {len(values)} values, {values[0]} to {values[-1]}")
    return sheet
