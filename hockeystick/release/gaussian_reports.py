"""Vectors that people report with Gaussian noise of their own, and their mean."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.numerics import largest_reading
from hockeystick.release._values import numbers, of_kind
from hockeystick.release.noise._grid import Grid, grid_of
from hockeystick.release.randomized_response import USERS
from hockeystick.release.samplers import Bits, rounded_gaussian, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NORM: Final = Domain(symbol="C", low=1e-100, high=1e100, typical=(0.01, 100))
_ENTRIES: Final = Domain(symbol="d", low=1, high=2**18, typical=(1, 1000), whole=True)
# What a clipped vector's norm may be above the clipping norm, by round-off: 2^18 terms and some.
_CLIPPED: Final = 1 + Fraction(1, 2**30)


def gaussian_reports(
    mechanism: Gaussian, values: Any, norm: float, *, bits: Bits = secret_bits
) -> NDArray[np.float64]:
    """Return each user's vector, clipped to a norm, plus Gaussian noise of the user's own.

    With C the norm and z the noise multiplier, ``v min(1, C/||v||) + N(0, (2 C z)^2 I)``: two
    values of one user are at most 2C apart.

    Guarantees:
        Each row costs its user what the mechanism does, under replace-one and whatever the floats:
        as ``gaussian``, on a grid, with the sensitivity ``2 C (1 + 2^-30)``, which covers the
        round-off of clipping. The noise is drawn exactly if the bits are ideal. No server has to be
        trusted, and no other user.

    Edge cases:
        Noise multiplier 0 reports the clipped vectors, rounded to the grid.

    Args:
        mechanism: The Gaussian mechanism, of a finite noise multiplier, in units of 2C.
        values: A row of finite numbers, one for each user, or one row of up to 2^18 for each.
        norm: The clipping norm C, in the values' unit, from 1e-100 to 1e100; public.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of floats of the values' shape.

    Raises:
        ParameterError: If it is another mechanism, or an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith, "What Can We Learn Privately?", FOCS
        2008 (local privacy); Mironov 2012 (the attack on floats).

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> noise = hs.Gaussian(noise_multiplier=1.5)
        >>> reports = gaussian_reports(noise, np.full((20_000, 2), [0.6, -0.2]), norm=1.0)
        >>> off = np.abs(gaussian_mean(noise, reports) - [0.6, -0.2])
        >>> bool((off < 6 * gaussian_error(noise, 20_000, norm=1.0, entries=2)).all())
        True
    """
    known = of_kind(mechanism, Gaussian)
    given = numbers("values", values)
    if given.ndim not in (1, 2) or given.size == 0:
        allowed = "a row of one or more numbers, or one row of them for each user"
        raise ParameterError("values", f"an array of shape {given.shape}", allowed)
    rows = given.reshape(given.shape[0], -1)
    grid = _grid(known, norm, rows.shape[1])
    steps = grid.steps("values", _clipped(rows, float(norm)))
    if known.noise_multiplier > 0.0:
        steps = steps + rounded_gaussian(grid.scale, steps.size, bits=bits).reshape(steps.shape)
    return grid.floats(steps).reshape(given.shape)


def gaussian_mean(mechanism: Gaussian, reports: Any) -> NDArray[np.float64]:
    """Return the mean of the reports, entry by entry.

    Guarantees:
        Unbiased for the mean of the clipped vectors, but for the rounding of each entry to a grid
        of at most ``2^-20`` times the sensitivity. What clipping takes away is not given back.

    Args:
        mechanism: The mechanism that made the reports.
        reports: A row of numbers, one for each report, or one row of them for each.

    Returns:
        One number for each entry of a report, an array of shape () where these are numbers.

    Raises:
        ParameterError: If it is another mechanism, or the reports are no such array.

    Example:
        >>> import hockeystick as hs
        >>> gaussian_mean(hs.Gaussian(1), [[1.0, 2.0], [3.0, 4.0]]).tolist()
        [2.0, 3.0]
    """
    of_kind(mechanism, Gaussian)
    rows = numbers("reports", reports)
    if rows.ndim not in (1, 2) or rows.size == 0:
        allowed = "a row of one or more numbers, or one row of them for each report"
        raise ParameterError("reports", f"an array of shape {rows.shape}", allowed)
    return np.asarray(rows.mean(axis=0), dtype=np.float64)


def gaussian_error(mechanism: Gaussian, users: int, norm: float, *, entries: int = 1) -> float:
    """Return the standard error of each entry of the mean, for fixed data: ``2 C z / sqrt(n)``.

    Guarantees:
        That of the noise that is drawn, which is above ``2 C z`` by a share of ``2^-15`` at most,
        as the noise covers the grid; rounding adds less than a grid step to it.

    Edge cases:
        Noise multiplier 0 has no error, but for rounding.

    Args:
        mechanism: The mechanism that made the reports.
        users: The number n of reports, an integer from 1 to 10^15.
        norm: The clipping norm C.
        entries: How many entries d a report has, an integer from 1 to 2^18.

    Raises:
        ParameterError: If it is another mechanism, or an argument is outside its domain.

    Example:
        >>> import hockeystick as hs
        >>> f"{gaussian_error(hs.Gaussian(2), users=10_000, norm=0.5):.4f}"
        '0.0200'
    """
    known = of_kind(mechanism, Gaussian)
    count = _validate.count("users", users, USERS)
    grid = _grid(known, norm, entries)
    return math.ldexp(grid.scale, grid.exponent) / math.sqrt(count)


def _grid(mechanism: Gaussian, norm: float, entries: int) -> Grid:
    """Return the grid for reports of vectors of some length and norm."""
    length = _validate.count("entries", entries, _ENTRIES)
    reach = largest_reading(_validate.real("norm", norm, _NORM)) * 2 * _CLIPPED
    moved = math.isqrt(length - 1) + 1
    return grid_of(mechanism, mechanism.noise_multiplier, reach, moved)


def _clipped(rows: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """Return rows scaled to a norm of C, up to round-off, those above it; others as they are.

    Each is measured by its largest entry, so that no square overflows, and none that counts
    underflows. A sum of d squares is off by d + 1 units in the last place at most.
    """
    largest = np.abs(rows).max(axis=1, keepdims=True)
    shape = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0.0)
    length = np.sqrt(np.square(shape).sum(axis=1, keepdims=True))
    # Above C as far as floats can tell; the largest entry times a length may overflow.
    above = largest > norm / np.maximum(length, 1.0)
    return np.where(above, shape * (norm / np.maximum(length, 1.0)), rows)
