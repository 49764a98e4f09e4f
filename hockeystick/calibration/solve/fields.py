"""The numbers of a plan: where they stand, the one that is solved for, and a plan with another."""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

from hockeystick._validate import MAX_COUNT, PARAMETERS
from hockeystick.errors import HockeystickError, IncompatibleError, ParameterError
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.mechanisms.selection.tuning import RunCount
from hockeystick.mechanisms.training.schedules import Schedule

Path: TypeAlias = tuple[str | int, ...]

_NODES: Final = (Mechanism, RunCount, Schedule)
_SEGMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[\d+\])*")
_SHOWN: Final = 12
# Positions of the smallest and the largest float.
_SMALLEST: Final = -745.0
_LARGEST: Final = 709.7
# The ends of the search where 0 or infinity is not allowed.
_NEAREST: Final = 1e-300
_LARGEST_VALUE: Final = 1e300
_AMOUNTS: Final = frozenset({"count", "epochs", "leaves", "local_steps", "rate", "rounds", "steps"})


def locate(plan: Mechanism, parameter: str) -> Path:
    """Return where in a plan a parameter stands: by its path, or by a name that only one has."""
    path = _parsed(parameter)
    if path is not None and _is_number(value_at(plan, path)):
        return path
    there = numeric_paths(plan)
    found = [one for one in there if path is not None and one[-len(path) :] == path]
    if len(found) == 1:
        return found[0]
    if found:
        raise ParameterError("parameter", parameter, f"one of these, written out: {_listed(found)}")
    names = [name for one in there for name in (spelled(one), name_of(one))]
    allowed = f"a number that the plan gives: {_listed(there)}"
    raise ParameterError("parameter", parameter, allowed, names=names)


def numeric_paths(plan: Mechanism) -> tuple[Path, ...]:
    """Return the paths of all numbers in a plan."""
    return tuple(_numbers(plan, ()))


def value_at(node: Any, path: Path) -> Any:
    """Return what is at a path in a plan: a number, or what has one; None where nothing is."""
    for key in path:
        if isinstance(key, int):
            node = node[key] if isinstance(node, tuple) and key < len(node) else None
        else:
            node = _fields(node).get(key) if isinstance(node, _NODES) else None
    return node


def rebuilt(node: Any, path: Path, value: Any) -> Any:
    """Return a plan with another number at a path, through the constructors, which check it."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(key, int):
        return (*node[:key], rebuilt(node[key], rest, value), *node[key + 1 :])
    changed = {key: rebuilt(getattr(node, key), rest, value)}
    return type(node)(**_fields(node) | changed)


def spelled(path: Path) -> str:
    """Return a path as people write it."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def name_of(path: Path) -> str:
    """Return the name of the field at the end of a path."""
    return next(key for key in reversed(path) if isinstance(key, str))


def _parsed(parameter: str) -> Path | None:
    if not isinstance(parameter, str):
        raise ParameterError("parameter", parameter, "the name of a number in the plan")
    segments = parameter.split(".")
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        return None
    keys = [key for segment in segments for key in re.findall(r"\w+", segment)]
    return tuple(int(key) if key.isdecimal() else key for key in keys)


def _numbers(node: Any, path: Path) -> Iterator[Path]:
    if _is_number(node):
        yield path
    elif isinstance(node, tuple):
        for index, item in enumerate(node):
            yield from _numbers(item, (*path, index))
    elif isinstance(node, _NODES):
        for name, value in _fields(node).items():
            yield from _numbers(value, (*path, name))


def _fields(node: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(node):
        return {}
    return {one.name: getattr(node, one.name) for one in dataclasses.fields(node) if one.compare}


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _listed(paths: Sequence[Path]) -> str:
    if not paths:
        return "it gives none"
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(spelled(path) for path in islice(paths, _SHOWN)) + more


@dataclass(frozen=True, slots=True)
class Parameter:
    """The values of one parameter of a plan.

    A position is the logarithm of a value (of value + 1 for whole numbers); ``safer`` is the
    direction, +1 or -1, in which epsilon should fall: a hint that no answer depends on.
    """

    plan: Mechanism
    path: Path
    whole: bool
    low: float
    high: float
    safer: int

    @classmethod
    def of(cls, plan: Mechanism, path: Path, *, whole: bool = False) -> Parameter:
        """Return the parameter at a path, of whole numbers where that is asked or so anyway."""
        name, value = name_of(path), value_at(plan, path)
        if whole and not isinstance(value, int):
            plan = rebuilt(plan, path, max(1, round(min(value, MAX_COUNT))))
        whole = whole or isinstance(value, int)
        low, high = _ends(plan, path, whole)
        owner = value_at(plan, path[:-1])
        safer = isinstance(owner, Mechanism) and name in owner.falls_with
        return cls(plan, path, whole, low, high, 1 if safer else -1)

    @property
    def name(self) -> str:
        """The parameter's path, as people write it."""
        return spelled(self.path)

    @property
    def is_amount(self) -> bool:
        """Whether 0 stands for running nothing at all."""
        return name_of(self.path) in _AMOUNTS

    @property
    def one_step(self) -> float | None:
        """The epochs that make one step, None where the parameter is not epochs, or whole ones."""
        training = value_at(self.plan, self.path[:-1])
        if self.whole or name_of(self.path) != "epochs" or not isinstance(training, DPSGD):
            return None
        return training.sampling_rate

    def make(self, x: float) -> Mechanism:
        """Return the plan with a value of the parameter."""
        try:
            made: Mechanism = rebuilt(self.plan, self.path, x)
            return made
        except HockeystickError as error:
            raise IncompatibleError(
                f"only some values of {self.name} between {self.low:g} and {self.high:g} are "
                f"allowed, and {x:g} is not: {error}"
            ) from None

    def start(self) -> float:
        """Return the first value: the plan's own, or a typical one where that is an end."""
        value = value_at(self.plan, self.path)
        value = int(value) if self.whole else float(value)
        if self.low < value < self.high or self.low == self.high:
            return value
        known = PARAMETERS.get(name_of(self.path))
        typical = known.typical if known else (1.0, 100.0)
        middle = self.rounded(math.sqrt(typical[0] * typical[1]))
        return middle if self.low < middle < self.high else value

    def position(self, x: float) -> float:
        """Return the position of a value."""
        if self.whole:
            return math.log1p(x)
        if 0.0 < x < math.inf:
            return max(math.log(x), _SMALLEST)
        return _SMALLEST if x == 0.0 else _LARGEST

    def at(self, position: float) -> float:
        """Return the value at a position."""
        if self.whole:
            return self.rounded(math.expm1(min(position, 50.0)))
        return self.rounded(math.exp(min(position, _LARGEST)))

    def rounded(self, x: float) -> float:
        """Return the nearest value that is allowed."""
        inside = min(max(x, self.low), self.high)
        return round(inside) if self.whole else inside

    def shifted(self, x: float, stride: float) -> float:
        """Return a value further along by a stride in position: at least by one if whole."""
        there = self.position(x) + stride
        if there > _LARGEST:
            return self.high
        if there < _SMALLEST:
            return self.low
        if not self.whole:
            # A stride of a few ulps would be lost in the position's round-off.
            return self.rounded(x + x * math.expm1(stride) if math.isfinite(x) else self.at(there))
        moved = self.at(there)
        return moved if moved != x else self.rounded(x + math.copysign(1, stride))


def _ends(plan: Mechanism, path: Path, whole: bool) -> tuple[float, float]:
    domain = PARAMETERS.get(name_of(path))
    default = (0.0, float(MAX_COUNT)) if whole else (0.0, math.inf)
    low, high = (domain.low, domain.high) if domain else default
    if whole:
        low, high = math.ceil(low), int(min(high, MAX_COUNT))
    inside = float(value_at(plan, path))

    def allowed(x: float) -> bool:
        try:
            rebuilt(plan, path, int(x) if whole else x)
        except HockeystickError:
            return False
        return True

    downwards = (low,) if whole else (low, max(low, _NEAREST))
    upwards = (high,) if whole else (high, min(high, _LARGEST_VALUE))
    return _edge(allowed, inside, downwards, whole), _edge(allowed, inside, upwards, whole)


def _edge(
    allowed: Callable[[float], bool], inside: float, ends: tuple[float, ...], whole: bool
) -> float:
    """Return the first of the ends that is allowed, or else the last allowed value before them."""
    for end in ends:
        if allowed(end):
            return int(end) if whole else float(end)
    outside = ends[-1]
    while True:
        middle = _between(inside, outside, whole)
        if middle in (inside, outside):
            return int(inside) if whole else inside
        inside, outside = (middle, outside) if allowed(middle) else (inside, middle)


def _between(a: float, b: float, whole: bool) -> float:
    if min(a, b) > 0.0 and max(a, b) > 2.0 * min(a, b):
        middle = math.sqrt(a) * math.sqrt(b)
    else:
        middle = 0.5 * (a + b)
    return float(math.floor(middle)) if whole else middle
