"""Rows clipped to a length, as integers: what sums of them with exact noise start from."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release._values import array_of
from hockeystick.release.samplers import Bits, rounded_gaussian
from hockeystick.release.samplers.rounded import SCALE

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Units of a clipped row's length: squares of sums of squares stay below 2^53.
UNITS: Final = 2**22
LENGTH: Final = Domain(symbol="C", low=1e-24, high=1e24, typical=(0.1, 10))
_MOST_ROWS: Final = 2**30
# Room for the rounding of lengths and scales, so that few rows are scaled again.
_ROOM: Final = 1 - 2.0**-40


def clipped_integers(
    rows: NDArray[np.float64], norm: float, units: int = UNITS
) -> NDArray[np.float64]:
    """Return ``min(1, norm / |x|) x units / norm`` of each row x, rounded, as whole floats.

    The squared length of a row is at most ``units^2``, in exact arithmetic; each row decides alone
    how it is rounded. A row without a finite length becomes 0. Units are at most 2^22, so that a
    row's squares add up exactly.
    """
    # Numpy sums a row's squares in an order that goes by the layout, and with columns stored
    # together that of one row alone is another than that of two.
    rows = np.ascontiguousarray(rows)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lengths = np.linalg.norm(rows, axis=1)
        within = max(_ROOM * units - math.sqrt(rows.shape[1]) / 2, 0.0)
        scales = np.minimum(within / lengths, units / norm)
    scales[~np.isfinite(lengths)] = 0.0
    rows = np.where(scales[:, None] > 0, rows, 0.0)
    for shrunk in (1 - 2.0**-8, 0.0):
        found: NDArray[np.float64] = np.rint(rows * scales[:, None])
        over = ~(np.square(found).sum(axis=1) <= float(units) ** 2)
        if not over.any():
            return found
        scales[over] *= shrunk
    rest: NDArray[np.float64] = np.rint(rows * scales[:, None])
    return rest


def noisy_integers(
    total: NDArray[np.int64], scale: Fraction | int, noise_multiplier: float, bits: Bits
) -> NDArray[np.int64]:
    """Return integers plus ``round(N(0, s^2))`` each, ``s >= scale * noise_multiplier``.

    For integers ``k + round(N) = round(k + N)``: post-processing of the Gaussian mechanism.
    """
    if noise_multiplier == 0.0:
        return total
    deviation = float_up(largest_reading(noise_multiplier) * scale)
    return total + rounded_gaussian(deviation, total.size, bits=bits).reshape(total.shape)


def noisy_clipped_sum(
    rows: NDArray[np.float64], norm: float, noise_multiplier: float, bits: Bits
) -> NDArray[np.float64]:
    """Return ``sum clip(x_i, C) + N(0, (z C)^2 I)`` of rows, of exact integers until the end."""
    total = clipped_integers(rows, norm).sum(axis=0).astype(np.int64)
    noisy = noisy_integers(total, UNITS, noise_multiplier, bits)
    return np.asarray(noisy * (norm / UNITS), np.float64)


def check_noise(noise_multiplier: float, scale: float) -> None:
    """Raise where noise of so many units cannot be drawn; before anything is charged."""
    if float_up(largest_reading(noise_multiplier) * Fraction(scale)) > SCALE.high:
        most = SCALE.high / scale
        raise ParameterError("mechanism", noise_multiplier, f"a noise multiplier up to {most:g}")


def gradient_rows(name: str, gradients: Any) -> NDArray[np.float64]:
    """Return a row for each example of a batch, possibly of none; what is not finite stays."""
    allowed = "real numbers, a row for each of at most 2^30 examples"
    rows = array_of(name, gradients, "fiu", allowed)
    if rows.ndim != 2 or len(rows) > _MOST_ROWS:
        raise ParameterError(name, f"{rows.dtype} of shape {rows.shape}", allowed)
    return np.ascontiguousarray(rows, np.float64)


def length_of(name: str, value: Any) -> float:
    """Return a length that rows are clipped to, or raise."""
    return _validate.real(name, value, LENGTH)


def moved_length(value: float, exponent: float) -> float:
    """Return ``value exp(exponent)``, kept within the lengths that can be clipped to."""
    logarithm = min(max(math.log(value) + exponent, math.log(LENGTH.low)), math.log(LENGTH.high))
    return min(max(math.exp(logarithm), LENGTH.low), LENGTH.high)
