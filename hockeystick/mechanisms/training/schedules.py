"""How noise, or the batch size, changes in the course of a training run: factors of its start."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = [
    "Constant",
    "Cyclic",
    "Exponential",
    "Linear",
    "Piecewise",
    "Schedule",
    "Staircase",
    "Values",
]

# The factors of more steps are not listed.
MOST_STEPS: Final = 10_000_000
A_SCHEDULE: Final = "a Schedule, as schedules.Exponential(end=0.5)"
_FACTOR: Final = Domain("f", 0, math.inf, (0.1, 10), low_open=True, high_open=True)
_FLOOR: Final = Domain(symbol="f", low=0, high=1, low_open=True, typical=(0.1, 0.9))
_PARTS: Final = whole_numbers("k", 1, (2, 100))


@dataclass(frozen=True, slots=True)
class Schedule(ABC):
    """Positive factors, one for each step, that the number at the start is multiplied by."""

    def __post_init__(self) -> None:
        set_fields(self)

    @abstractmethod
    def factors(self, steps: int) -> Array:
        """Return the factors of ``steps`` steps, or raise where it is for another number."""


def factors_of(schedule: Schedule | None, steps: int, name: str = "steps") -> Array:
    """Return the factors of a schedule, ones where there is none; ``name`` is that of the steps."""
    if steps > MOST_STEPS:
        allowed = f"at most {MOST_STEPS:,} where each of them has noise, or a rate, of its own"
        raise ParameterError(name, steps, allowed)
    return (schedule or Constant()).factors(steps)


@final
@dataclass(frozen=True, slots=True)
class Constant(Schedule):
    """The same throughout.

    Example:
        >>> from hockeystick.mechanisms import schedules
        >>> schedules.Constant().factors(3).tolist()
        [1.0, 1.0, 1.0]
    """

    def factors(self, steps: int) -> Array:
        return np.ones(steps)


@final
@dataclass(frozen=True, slots=True)
class Linear(Schedule):
    """``1 + (end - 1) t/(steps - 1)`` for t from 0: a straight line from 1 to ``end``.

    Args:
        end: The factor in the last step, above 0.

    Example:
        >>> from hockeystick.mechanisms import schedules
        >>> schedules.Linear(end=0.5).factors(3).tolist()
        [1.0, 0.75, 0.5]
    """

    end: float = field(metadata={"domain": _FACTOR})

    def factors(self, steps: int) -> Array:
        return np.linspace(1.0, self.end, steps)


@final
@dataclass(frozen=True, slots=True)
class Exponential(Schedule):
    """``end^(t/(steps - 1))`` for t from 0: each step has the same share of the one before.

    Args:
        end: The factor in the last step, above 0.

    Example:
        >>> from hockeystick.mechanisms import schedules
        >>> schedules.Exponential(end=0.25).factors(3).tolist()
        [1.0, 0.5, 0.25]
    """

    end: float = field(metadata={"domain": _FACTOR})

    def factors(self, steps: int) -> Array:
        return np.asarray(self.end ** np.linspace(0.0, 1.0, steps))


@final
@dataclass(frozen=True, slots=True)
class Staircase(Schedule):
    """So many stairs of the same height and, but for one step, width, from 1 to ``end``.

    Args:
        end: The factor of the last stair, above 0.
        stairs: How many there are, an integer >= 1.

    Example:
        >>> from hockeystick.mechanisms import schedules
        >>> schedules.Staircase(end=0.5, stairs=3).factors(6).tolist()
        [1.0, 1.0, 0.75, 0.75, 0.5, 0.5]
    """

    end: float = field(metadata={"domain": _FACTOR})
    stairs: int = field(metadata={"domain": _PARTS})

    def factors(self, steps: int) -> Array:
        stair = np.arange(steps) * self.stairs // max(steps, 1)
        return np.asarray(1.0 + (self.end - 1.0) * stair / max(self.stairs - 1, 1))


@final
@dataclass(frozen=True, slots=True)
class Cyclic(Schedule):
    """Half a cosine from 1 down to ``floor``, over and over.

    In a cycle of P steps, ``floor + (1 - floor) (1 + cos(pi t/P))/2`` for t = 0..P-1. Without a
    floor, as published, a cycle ends at ``pi^2/(4 P^2)`` of the first noise: no privacy is left.

    Args:
        floor: What a cycle falls to, above 0 and at most 1.
        cycles: How many there are, an integer >= 1.

    Example:
        >>> from hockeystick.mechanisms import schedules
        >>> schedules.Cyclic(floor=0.5, cycles=2).factors(4).tolist()
        [1.0, 0.75, 1.0, 0.75]
    """

    floor: float = field(metadata={"domain": _FLOOR})
    cycles: int = field(metadata={"domain": _PARTS})

    def factors(self, steps: int) -> Array:
        length = max(-(-steps // self.cycles), 1)
        wave = 0.5 * (1.0 + np.cos(np.pi * (np.arange(steps) % length) / length))
        return np.asarray(self.floor + (1.0 - self.floor) * wave)


@final
@dataclass(frozen=True, slots=True, init=False)
class Piecewise(Schedule):
    """Segments of given lengths with a factor each, such as a smaller one in the last epoch.

    Args:
        segments: Pairs of a number of steps, an integer >= 1, and a factor above 0.

    Example:
        >>> from hockeystick.mechanisms import schedules
        >>> schedules.Piecewise([(2, 1.0), (1, 0.5)]).factors(3).tolist()
        [1.0, 1.0, 0.5]
    """

    segments: tuple[tuple[int, float], ...]

    def __init__(self, segments: Iterable[tuple[float, float]]) -> None:
        try:
            pairs = [(steps, factor) for steps, factor in segments]
        except (TypeError, ValueError):
            allowed = "pairs of a number of steps and a factor"
            raise ParameterError("segments", segments, allowed) from None
        known = tuple(
            (
                _validate.count("segments: steps", steps, _PARTS),
                _validate.real("segments: factor", factor, _FACTOR),
            )
            for steps, factor in pairs
        )
        object.__setattr__(self, "segments", known)

    def factors(self, steps: int) -> Array:
        total = sum(count for count, _ in self.segments)
        if total != steps:
            allowed = f"segments of {steps} steps in all; these have {total}"
            raise ParameterError("schedule", f"Piecewise of {total} steps", allowed)
        counts, values = zip(*self.segments, strict=True)
        return np.repeat(np.array(values, dtype=np.float64), counts)


@final
@dataclass(frozen=True, slots=True, init=False)
class Values(Schedule):
    """A factor for each step, as listed.

    Args:
        values: Positive numbers, one for each step.

    Example:
        >>> from hockeystick.mechanisms import schedules
        >>> schedules.Values([1.0, 0.9, 0.7]).factors(3).tolist()
        [1.0, 0.9, 0.7]
    """

    values: tuple[float, ...]

    def __init__(self, values: Iterable[float]) -> None:
        try:
            listed = list(values)
        except TypeError:
            raise ParameterError("values", values, "a list of positive numbers") from None
        known = tuple(_validate.real("values", value, _FACTOR) for value in listed)
        object.__setattr__(self, "values", known)

    def factors(self, steps: int) -> Array:
        if len(self.values) != steps:
            allowed = f"a value for each of {steps} steps; these are {len(self.values)}"
            raise ParameterError("schedule", f"{len(self.values)} values", allowed)
        return np.array(self.values, dtype=np.float64)
