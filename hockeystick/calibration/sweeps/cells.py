"""The cells of a grid, and what an answer is as the columns of a row."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from inspect import isfunction, signature
from types import FunctionType
from typing import Any, Final, Protocol, TypeAlias, final, runtime_checkable

from hockeystick.calibration.solve.calibrate import Calibrated
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.numerals import at_least, at_most, digits_held, is_mpf, nearest
from hockeystick.results import Approximate, Certified

Scalar: TypeAlias = bool | int | float | str | None
Columns: TypeAlias = dict[str, Scalar]
Ask: TypeAlias = Callable[..., object]


@runtime_checkable
class Describing(Protocol):
    """A question whose rows say of themselves what they are of."""

    def about(self, parameters: Mapping[str, Any]) -> Columns:
        """Return the columns that say so of the answer at one cell."""

    def caution(self, parameters: Mapping[str, Any], found: Any) -> str | None:
        """Return what the answer at one cell does not say by itself; None for nothing."""


ERROR: Final = "error"
CAUTION: Final = "caution"
ACCOUNTANT: Final = "accountant"
# What a row calls the accountant of its answer where the grid says which one to ask.
ANSWERED_BY: Final = "answered_by"
_MOST_CELLS: Final = 10**8
_ADDRESS: Final = " at 0x"
_A_GRID: Final = "a mapping from names of parameters to sequences of at least one value"
_ASKED: Final = (
    " (a plan is in the question: hs.sweep({'steps': [100, 200]}, "
    "hs.calibration.AskEpsilon(plan, delta=1e-5)))"
)
_NAMED: Final = (
    "made of functions with names where there is a file: a sweep that is taken up again must know "
    "what it is of"
)
_NO_RESULT: Final = "a function that returns a number, an answer, or a mapping of those"
# What a question may raise because of what it is asked; anything else is a fault of its code.
_REFUSALS: Final = (HockeystickError, ArithmeticError, ValueError)
_ANSWERS: Final = (Certified, Approximate)


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
            asked = _ASKED * isinstance(grid, Mechanism)
            raise ParameterError("grid", grid, _A_GRID + asked)
        if ERROR in grid:
            raise ParameterError("grid", grid, f"without {ERROR!r}, which is a column of its own")
        made = cls(tuple(grid), tuple(_values(name, given) for name, given in grid.items()))
        if len(made) > _MOST_CELLS:
            raise ParameterError("grid", grid, f"of at most 10^8 cells; these are {len(made):,}")
        return made

    def __len__(self) -> int:
        """Return the number of cells."""
        return math.prod(len(one) for one in self.values)

    def cell(self, index: int) -> tuple[object, ...]:
        """Return the values of one cell."""
        found = []
        for one in reversed(self.values):
            index, place = divmod(index, len(one))
            found.append(one[place])
        return tuple(reversed(found))

    def row(self, index: int, columns: Columns) -> Columns:
        """Return one cell's row: its parameters, its answer, and why there is none if so."""
        labels = zip(self.names, map(scalar, self.cell(index)), strict=True)
        return {**dict(labels), **columns, ERROR: columns.get(ERROR)}

    @property
    def identity(self) -> str:
        """What tells this grid from others, the same in every process."""
        listed = [[scalar(value) for value in one] for one in self.values]
        return _digest("grid", json.dumps([self.names, listed]))


def identity_of(ask: Ask) -> str:
    """Return the key of a question, the same in every process, or raise."""
    return _digest("ask", _described(ask))


def answered(
    ask: Ask, names: tuple[str, ...], cells: Sequence[tuple[object, ...]], stamp: str = ""
) -> tuple[list[Columns], float]:
    """Return the columns of some cells, and the seconds that they took.

    The stamp is not read. Engines such as dask know a task by its arguments: without it, a task
    would be the one of an earlier sweep that is just being cancelled, and be cancelled with it.
    """
    start = time.perf_counter()
    answers = [_answer(ask, dict(zip(names, cell, strict=True))) for cell in cells]
    return answers, time.perf_counter() - start


def _answer(ask: Ask, parameters: Mapping[str, object]) -> Columns:
    """Return the columns of one cell: an answer, or why there is none."""
    try:
        found = ask(**parameters)
    except _REFUSALS as error:
        return {ERROR: _reason(error)}
    told = _beside(columns(found), parameters) if isinstance(found, _ANSWERS) else columns(found)
    if isinstance(ask, Describing):
        told |= {**ask.about(parameters), CAUTION: ask.caution(parameters, found)}
    taken = [name for name in told if name in parameters or name == ERROR]
    if taken:
        allowed = f"a function whose answer has no column named {taken[0]!r}, as the grid has"
        raise TypeError(str(ParameterError("ask", ask, allowed)))
    return told


def _beside(told: Columns, parameters: Mapping[str, object]) -> Columns:
    """Return an answer's columns, its accountant under another name where the grid has one."""
    if ACCOUNTANT not in parameters:
        return told
    return {ANSWERED_BY if name == ACCOUNTANT else name: value for name, value in told.items()}


def _reason(error: Exception) -> str:
    """Return an error on one line; what is not the library's own has its kind before it."""
    text = " ".join(str(error).split())
    return text if isinstance(error, HockeystickError) else f"{type(error).__name__}: {text}"


@singledispatch
def columns(found: object) -> Columns:
    """Return the answer to a question as columns."""
    raise TypeError(str(ParameterError("ask", found, _NO_RESULT)))


@columns.register
def _(found: Certified) -> Columns:
    return {
        "lower": _end(found.lower, at_least),
        "estimate": _end(found.estimate, nearest),
        "upper": _end(found.upper, at_most),
        ACCOUNTANT: found.accountant,
    }


@columns.register
def _(found: Approximate) -> Columns:
    value = _end(found.value, nearest)
    return {
        "lower": None,
        "estimate": value,
        "upper": None,
        "approximation": value,
        ACCOUNTANT: found.accountant,
    }


@columns.register
def _(found: Calibrated) -> Columns:
    return {
        "value": scalar(found.value),
        "achieved_lower": float(found.achieved.lower),
        "achieved_upper": float(found.achieved.upper),
        "status": str(found.status),
    }


@columns.register(numbers.Real)
def _(found: object) -> Columns:
    return {"value": scalar(found)}


@columns.register(Mapping)
def _(found: Mapping[str, object]) -> Columns:
    return {str(name): scalar(value) for name, value in found.items()}


@singledispatch
def scalar(value: object) -> Scalar:
    """Return a value as a file can hold it: what is no number and no text as its repr."""
    return repr(value)


@scalar.register(type(None))
@scalar.register
def _(value: bool) -> Scalar:
    return value


@scalar.register
def _(value: str) -> Scalar:
    return str(value)


@scalar.register(numbers.Integral)
def _(value: Any) -> Scalar:
    return int(value)


@scalar.register(numbers.Real)
def _(value: Any) -> Scalar:
    return float(value)


def _end(value: float, rounded: Callable[[float, int], str]) -> Scalar:
    """Return a float as it is, and more digits as a text that is rounded to the safe side."""
    return rounded(value, digits_held(value)) if is_mpf(value) else value


def _values(name: str, given: object) -> tuple[object, ...]:
    """Return the values of one parameter, or raise."""
    listed: Any = given
    try:
        found = () if isinstance(given, str | bytes | Mapping) else tuple(listed)
    except TypeError:
        found = ()
    if not found:
        raise ParameterError(name, given, "a sequence of at least one value")
    return found


def _described(ask: Any, inside: tuple[Any, ...] = ()) -> str:
    """Return a question in words: a function by name, parameters and what it holds, else the repr.

    What it does is not read: whoever changes that asks for another file.
    """
    if isinstance(ask, partial):
        inner = _described(ask.func, inside)
        return f"{inner} of {ask.args!r} and {sorted(ask.keywords.items())!r}"
    if isfunction(ask) and ask in inside:
        return ask.__qualname__
    if isfunction(ask):
        if ask.__name__ == "<lambda>":
            raise ParameterError("ask", ask, _NAMED)
        held = [_described(value, (*inside, ask)) for value in _held(ask)]
        return f"{ask.__module__}.{ask.__qualname__}{signature(ask)} {held}"
    return repr(ask)


def _held(function: FunctionType) -> Iterator[object]:
    """Go through the values that a function took along; what it may change is not of it."""
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if isinstance(value, Hashable):
            yield value


def _digest(name: str, text: str) -> str:
    """Return a short text that differs where this one does, or raise if no other process has it."""
    if _ADDRESS in text:
        allowed = (
            "made of what says in its repr what it is, not where it lies in memory: a sweep that "
            "is taken up again must know what it is of"
        )
        raise ParameterError(name, text, allowed)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
