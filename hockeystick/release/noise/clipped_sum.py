"""Sums of rows clipped to a length, as integers with exact noise, for loops of any library."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release._values import array_of
from hockeystick.release.samplers.bits import Bits, Floats, Integers, secret_bits
from hockeystick.release.samplers.real_noise import SCALE, rounded_gaussian

# Units of a clipped row's length: squares of sums of squares stay below 2^53.
UNITS: Final = 2**22
LENGTH: Final = Domain(symbol="C", low=1e-24, high=1e24, typical=(0.1, 10))
NORM: Final = Domain(symbol="C", low=1e-24, high=math.inf, high_open=True, typical=(0.1, 10))
NOISE: Final = Domain(symbol="z", low=0, high=2.0**21, typical=(0.5, 10))
_MOST_ROWS: Final = 2**30
# Room for the rounding of lengths and scales, so that few rows are scaled again.
_ROOM: Final = 1 - 2.0**-40


def noisy_sum(
    gradients: Any, *, norm: float, noise_multiplier: float, bits: Bits = secret_bits
) -> Floats:
    """Return the sum of clipped gradients plus ``N(0, (z C)^2)``, in exact arithmetic.

    Each row becomes integers m in units of ``2^-22 C`` with ``|m| <= 2^22``, and what is returned
    is a function of ``S + round(N) = round(S + N)``, with S the sum of the rows and N of deviation
    at least ``z 2^22``: post-processing of the Gaussian mechanism with noise multiplier z, whatever
    floats come out. It is to be divided by the *expected* size of a batch.

    Gradients have a row for each example that was drawn, of this example alone, at most ``2^30``;
    one without a finite length is 0, and no row gives pure noise; C >= 1e-24 and z in [0, 2^21].

    Example:
        >>> from hockeystick.release.noise.clipped_sum import noisy_sum
        >>> noisy_sum([[3.0, 4.0], [0.5, 0.0]], norm=1.0, noise_multiplier=0).round(3)
        array([1.1, 0.8])
    """
    clipped = _validate.real("norm", norm, NORM)
    noise = _validate.real("noise_multiplier", noise_multiplier, NOISE)
    return noisy_clipped_sum(gradient_rows("gradients", gradients), clipped, noise, bits)


def noisy_clipped_sum(rows: Floats, norm: float, noise_multiplier: float, bits: Bits) -> Floats:
    """Return ``sum clip(x_i, C) + N(0, (z C)^2 I)`` of rows, of exact integers until the end."""
    total = clipped_integers(rows, norm).sum(axis=0).astype(np.int64)
    noisy = noisy_integers(total, UNITS, noise_multiplier, bits)
    return np.asarray(noisy * (norm / UNITS), np.float64)


def clipped_integers(rows: Floats, norm: float, units: int = UNITS) -> Floats:
    """Return ``min(1, norm / |x|) x units / norm`` of each row x, rounded, as whole floats.

    The squared length of a row is at most ``units^2``, in exact arithmetic; each row decides alone
    how it is rounded. A row without a finite length becomes 0. Units are at most 2^22.
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
        found: Floats = np.rint(rows * scales[:, None])
        over = ~(np.square(found).sum(axis=1) <= float(units) ** 2)
        if not over.any():
            return found
        scales[over] *= shrunk
    return np.asarray(np.rint(rows * scales[:, None]))


def noisy_integers(
    total: Integers, scale: Fraction | int, noise_multiplier: float, bits: Bits
) -> Integers:
    """Return integers plus ``round(N(0, s^2))`` each, ``s >= scale * noise_multiplier``.

    For integers ``k + round(N) = round(k + N)``: post-processing of the Gaussian mechanism.
    """
    if noise_multiplier == 0.0:
        return total
    deviation = float_up(largest_reading(noise_multiplier) * scale)
    return total + rounded_gaussian(deviation, total.size, bits=bits).reshape(total.shape)


def check_noise(noise_multipliers: tuple[float, ...], scale: float) -> None:
    """Raise where noise is infinite, or too large to be drawn in so many units of a step."""
    for noise in noise_multipliers:
        if noise == math.inf:
            raise ParameterError("mechanism", noise, "of finite noise: infinite cannot be drawn")
        if float_up(largest_reading(noise) * Fraction(scale)) > SCALE.high:
            most = SCALE.high / scale
            raise ParameterError("mechanism", noise, f"a noise multiplier up to {most:g}")


def gradient_rows(name: str, gradients: Any, length: int | None = None) -> Floats:
    """Return a row for each example of a batch, possibly of none; what is not finite stays."""
    allowed = "real numbers, a row for each of at most 2^30 examples"
    rows = array_of(name, gradients, "fiu", allowed)
    if rows.ndim != 2 or len(rows) > _MOST_ROWS:
        raise ParameterError(name, f"{rows.dtype} of shape {rows.shape}", allowed)
    if length is not None and rows.shape[1] != length:
        raise ParameterError(name, f"an array of shape {rows.shape}", f"rows of {length} numbers")
    return np.ascontiguousarray(rows, np.float64)
