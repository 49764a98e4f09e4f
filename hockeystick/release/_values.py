"""Checks of the data that people randomize, and the grid on which real numbers get exact noise.

What is wrong with private data is said without showing them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release.counting import book, checked_charge
from hockeystick.release.samplers.bits import Bits, Floats, Integers
from hockeystick.release.samplers.real_noise import SCALE

_Kind = TypeVar("_Kind", bound=Mechanism)
Draw = Callable[..., Integers]

_SENSITIVITY: Final = _validate.Domain("D", 0, math.inf, (0.01, 100), low_open=True, high_open=True)
# Sums of two such integers fit 64 bits, noise of 2^61 and less included.
MOST: Final = 2**62
# Up to here every integer is a float.
_EXACT: Final = 2**53
_NUMBERS: Final = "finite numbers of at most 64 bits, integers up to 2^53 in size"
_INTEGERS: Final = "integers of at most 2^62 in size"
# The grid's step is at most 2^-20 of the sensitivity, and what rounding adds to it at most 2^-16.
_STEP_BITS: Final = 20
_ADDED_BITS: Final = 16


def of_kind(mechanism: Any, kind: type[_Kind]) -> _Kind:
    if not isinstance(mechanism, kind):
        raise ParameterError("mechanism", mechanism, f"a {kind.__name__}")
    return mechanism


def category_array(name: str, values: Any, categories: int) -> Integers:
    """Return categories as an array, or raise if one is none of 0..K-1."""
    array = np.asarray(values)
    whole = array.ndim == 1 and (array.dtype.kind in "iu" or array.size == 0)
    if not whole or bool(((array < 0) | (array >= categories)).any()):
        raise ParameterError(name, values, f"a row of integers from 0 to {categories - 1}")
    return array.astype(np.int64)


def real_array(name: str, values: Any, low: float, high: float) -> Floats:
    """Return at least one number as an array, or raise if one is outside an interval."""
    array = np.asarray(values)
    usual = array.ndim == 1 and array.size > 0 and array.dtype.kind in "iuf"
    if not usual or not bool(((array >= low) & (array <= high)).all()):
        raise ParameterError(name, values, f"a row of one or more numbers from {low:g} to {high:g}")
    return array.astype(np.float64)


def array_of(name: str, values: Any, kinds: str, allowed: str) -> np.ndarray:
    """Return an array of one of some kinds of numbers, none of them masked, or raise."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        raise ParameterError(name, type(values).__name__, allowed) from None
    several = values if isinstance(values, list | tuple) and array.ndim > 1 else (values,)
    if any(isinstance(one, np.ma.MaskedArray) for one in several):
        reason = "as they are to be released: beneath a mask are numbers all the same; use filled()"
        raise ParameterError(name, f"masked {_described(array)}", f"{allowed}, {reason}")
    if array.dtype.kind not in kinds:
        raise ParameterError(name, _described(array), allowed)
    return array


def numbers(name: str, values: Any) -> Floats:
    """Return finite numbers of any shape as floats, exactly, or raise."""
    array = array_of(name, values, "iuf", _NUMBERS)
    floats = array.astype(np.float64)
    if array.dtype.kind == "f":
        exact = array.dtype.itemsize <= floats.dtype.itemsize and _are_floats(values, array)
    else:
        exact = _within(array, _EXACT)
    if not exact or not bool(np.isfinite(floats).all()):
        raise ParameterError(name, _described(array), _NUMBERS)
    return floats


def shaped(name: str, values: Any, allowed: str, fits: Callable[[Floats], Any]) -> Floats:
    """Return finite numbers whose array fits, or raise."""
    array = numbers(name, values)
    if not fits(array):
        raise ParameterError(name, f"an array of shape {array.shape}", allowed)
    return array


def row_of(name: str, values: Any, size: int) -> Floats:
    return shaped(name, values, f"a row of {size:,} numbers", lambda row: row.shape == (size,))


def rows_of_length(name: str, values: Any, length: int) -> Floats:
    allowed = f"rows of {length} numbers"
    return shaped(name, values, allowed, lambda a: a.ndim == 2 and a.shape[1] == length)


def integers(name: str, values: Any) -> Integers:
    """Return integers of any shape, or raise."""
    array = array_of(name, values, "iu", _INTEGERS)
    if not _within(array, MOST):
        raise ParameterError(name, _described(array), _INTEGERS)
    return array.astype(np.int64)


def sensitivity_of(value: Any) -> Fraction:
    """Return the larger reading of a sensitivity, a short float's decimal included, or raise."""
    reading = largest_reading(_validate.real("sensitivity", value, _SENSITIVITY))
    if isinstance(value, np.floating):
        return max(reading, Fraction(str(value)))
    return max(reading, Fraction(value)) if isinstance(value, Rational | Decimal) else reading


def set_numbers(made: Any, **domains: _validate.Domain) -> None:
    """Set fields of a frozen dataclass to numbers of their domains, or raise."""
    for name, domain in domains.items():
        object.__setattr__(made, name, _validate.real(name, getattr(made, name), domain))


def yes_or_no(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ParameterError(name, value, "True or False")
    return value


def _are_floats(values: Any, array: np.ndarray) -> bool:
    """Return whether an array of floats was made of a sequence without rounding its integers."""
    if not isinstance(values, list | tuple) or _within(array, _EXACT - 1):
        return True
    parts = map(np.asarray, values)
    return all(
        _are_floats(value, part) if part.dtype.kind == "f" else _within(part, _EXACT)
        for value, part in zip(values, parts, strict=True)
    )


def _within(array: np.ndarray, most: int) -> bool:
    return bool(((array <= most) & (array >= -most)).all())


def _described(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}"


class Grid(NamedTuple):
    """The multiples of ``2^exponent``; sensitivity and scale of the noise are in such steps."""

    exponent: int
    sensitivity: Fraction
    scale: float

    def steps(self, name: str, values: Floats) -> Integers:
        """Return numbers rounded to the grid, each by at most half a step, in steps; or raise."""
        # A power of two times a float is exact wherever the result is at least one step.
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.rint(np.ldexp(values, -self.exponent))
        if not bool((np.abs(rounded) <= MOST).all()):
            most = math.log2(MOST) + self.exponent
            raise ParameterError(name, "a larger one", f"numbers up to 2^{most:.0f} in size")
        return rounded.astype(np.int64)

    def floats(self, steps: Integers) -> Floats:
        """Return numbers of steps as floats; what is rounded above 2^53 is post-processing."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(steps.astype(np.float64), self.exponent))


def grid_of(
    mechanism: Mechanism, noise: float, sensitivity: object, moved: int, *, most: float = SCALE.high
) -> Grid:
    """Return a grid for noise of a scale over the sensitivity, never a function of the data.

    Rounding adds at most ``moved`` steps to the distance of two answers; none is above ``most``.
    """
    own = sensitivity_of(sensitivity)
    # Rounding alone needs no more than half of the largest scale.
    if not noise * moved <= most / 2.0:
        allowed = f"of noise up to {most / 2.0 / moved:.3g} times the sensitivity"
        raise ParameterError("mechanism", mechanism, allowed)
    finer = max(_STEP_BITS, _ADDED_BITS + (moved - 1).bit_length())
    exponent = math.frexp(float(own))[1] - 1 - finer
    while True:
        distance = own / Fraction(2) ** exponent + moved
        scale = float_up(largest_reading(noise) * distance)
        if scale <= most:
            return Grid(exponent, distance, scale)
        exponent += 1


def root_up(entries: int) -> int:
    """Return ``ceil(sqrt(d))``, how far rounding moves two answers of d entries in L2, in steps."""
    return math.isqrt(max(entries, 1) - 1) + 1


def released(
    grid: Grid, answer: Floats, charged: Mechanism, charge: Any, draw: Draw, bits: Bits
) -> Floats:
    """Return an answer plus noise on the grid once a mechanism is charged; itself without noise.

    Noise is drawn of a scale and a number, ``draw(scale, size, bits=bits)``.
    """
    steps = grid.steps("value", answer)
    book(checked_charge(charge), charged)
    if grid.scale == 0.0:
        return answer
    return grid.floats(steps + draw(grid.scale, steps.size, bits=bits).reshape(steps.shape))
