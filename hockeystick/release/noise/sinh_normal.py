"""Sinh-normal noise on numbers, exact in floats."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick.mechanisms.noise.sinh_normal import SinhNormal
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.numerics.working_precision import interval_bits
from hockeystick.release._values import numbers, of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.noise._grid import grid_of
from hockeystick.release.noise.integers import ENTRIES
from hockeystick.release.samplers import Bits, NoisyNumber, RealNoise, secret_bits
from hockeystick.release.samplers.bits import checked_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GUARD: Final = 128


def sinh_normal(
    mechanism: SinhNormal,
    value: Any,
    sensitivity: float,
    *,
    entries: int = 1,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return numbers plus sinh-normal noise, independently in each.

    With S the sensitivity and g a power of two of at most ``2^-20 S``, each number is

        g (round(value / g) + round(c arsinh(Z / a))),
        Z ~ N(0, 1),  a = A sqrt(2 rho),  c = A (S / g + 1).

    Guarantees:
        That of the mechanism, where neighbouring data sets differ in one of the numbers, by at most
        S; that of ``mechanism ** k`` with ``entries=k``. Rounding to the grid moves the distance of
        two numbers by at most g, to which the noise is scaled, and ``k + round(X) = round(k + X)``
        for integers k. ``round(X)`` is a function of Z's bits, of which so many are drawn that
        interval arithmetic leaves one integer, so that it has exactly its distribution if they are
        ideal.

    Edge cases:
        rho inf returns the numbers themselves.

    Args:
        mechanism: The sinh-normal mechanism, of a rho of at least ``2^-87`` or so.
        value: Numbers of any shape, as for ``gaussian``. A draw takes some milliseconds.
        sensitivity: How far a number moves between neighbouring data sets, in its own unit; a
            finite number > 0.
        entries: The largest number k of numbers in which neighbouring data sets differ.
        charge: As for ``gaussian``.
        bits: As for ``gaussian``.

    Returns:
        An array of floats of the value's shape.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Bun, Dwork, Rothblum and Steinke, "Composable and Versatile Privacy via Truncated CDP",
        STOC 2018, section 4.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.SinhNormal(rho=0.1, width=40)
        >>> hs.release.sinh_normal(noise, [3.5, 4.5], sensitivity=1).shape
        (2,)
    """
    own, answer = of_kind(mechanism, SinhNormal), numbers("value", value)
    changed = _validate.count("entries", entries, ENTRIES)
    deviation = math.sqrt(0.5) / math.sqrt(own.rho)
    grid = grid_of(own, deviation, sensitivity, 1)
    steps = grid.steps("value", answer)
    book(checked_charge(charge), own if changed == 1 else own**changed)
    if own.rho == math.inf:
        return answer
    width = largest_reading(own.width)
    square, scale = 2 * least_reading(own.rho) * width**2, width * grid.sensitivity
    noise = [rounded_arsinh(scale, square, bits) for _ in range(steps.size)]
    return grid.floats(steps + np.array(noise, dtype=np.int64).reshape(steps.shape))


def rounded_arsinh(scale: Fraction, square: Fraction, bits: Bits) -> int:
    """Return ``round(scale arsinh(Z / sqrt(square)))`` for one Gaussian Z."""
    word = int(checked_words(bits, 1)[0])
    number = NoisyNumber(Fraction(0), RealNoise.GAUSSIAN, Fraction(1), word, bits)
    while True:
        ends = [_around(end, scale, square) for end in number.bounds()]
        if ends[0][0] == ends[1][1]:
            return ends[0][0]
        number.refine()


def _around(z: Fraction, scale: Fraction, square: Fraction) -> tuple[int, int]:
    """Return integers around ``round(scale ln(y + sqrt(y^2 + 1)))``, ``y^2 = z^2 / square``."""
    from mpmath import libmp

    from hockeystick.numerics.multiprecision import iv

    ratio = z * z / square
    with interval_bits(scale.numerator.bit_length() + ratio.denominator.bit_length() + _GUARD):
        y = iv.mpf(ratio.numerator) / ratio.denominator
        size = iv.log(iv.sqrt(y) + iv.sqrt(y + 1)) * scale.numerator / scale.denominator
        low, high = ((size if z > 0 else -size) + iv.mpf(0.5))._mpi_
    return libmp.to_int(low, "f"), libmp.to_int(high, "f")
