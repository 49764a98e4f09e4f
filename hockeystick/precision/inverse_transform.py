"""Survival functions of laws in intervals, and tables of their inverses.

Two laws are here, each by its survival function S on [0, inf), with ``S(0) = 1``:

    half normal, |N(0, 1)|:    S(x) = erfc(x / sqrt 2)
    exponential of rate 1:     S(x) = exp(-x)

``enclosure`` is interval arithmetic from end to end; the tables use mpmath's own functions at
twice the digits that they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.polynomial import Polynomial

from hockeystick.numerics.multiprecision import (
    integers_around,
    interval_bits,
    iv,
    mp,
    mpf,
    working_bits,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DEGREE: Final = 11
_BITS: Final = 120
_GUARD: Final = 64
_UNIT: Final = 2.0**-53


@dataclass(frozen=True, slots=True)
class Law:
    """A law on [0, inf): S on an interval, its inverse Q on (0, 1), and Q's Taylor coefficients.

    ``taylor`` has them about u by the power, given u and Q(u).
    """

    survival: Callable[[Any], Any]
    inverse: Callable[[mpf], mpf]
    taylor: Callable[[mpf, mpf, int], list[mpf]]


def enclosure(law: Law, at: Fraction, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits S(x)``: the lower at most, the upper at least that."""
    if at <= 0:
        return 1 << bits, 1 << bits
    with interval_bits(bits + _GUARD):
        scaled = law.survival(iv.mpf(at.numerator) / at.denominator) * iv.mpf(2) ** bits
        return integers_around(scaled)


def erfc(x: Any) -> Any:
    """Return an interval around ``erfc(x)`` for an interval x > 0.

    ``erf(x) = 2/sqrt(pi) exp(-x^2) Sum_n 2^n x^(2n+1) / (2n+1)!!``. All terms are positive; once a
    term is less than half of the one before, what follows is at most as large as the last. Where
    ``erfc(x) <= exp(-x^2)`` is below the precision, that alone is said.
    """
    floor = iv.mpf(2) ** (-iv.prec)
    most = iv.exp(-x * x)
    if most.b < floor.a:
        return most * iv.mpf([0, 1])
    square = 2 * x * x
    term, total, n = x, x, 0
    while True:
        n += 1
        ratio = square / (2 * n + 1)
        term = term * ratio
        total = total + term
        if ratio.b < 0.5 and term.b < (floor * total).a:
            break
    total = total + term * iv.mpf([0, 1])
    return 1 - 2 * most * total / iv.sqrt(iv.pi)


def table(
    law: Law, lowest: int, cell_bits: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the polynomials of Q, bounds on their errors, and bounds on ``|dQ/dt|``, by cells.

    Octave e has the u from ``2^(e-63)`` to twice that, cut into ``2^cell_bits`` cells; t runs from
    -1 to 1 over a cell. Coefficients are Taylor's about the middle. All derivatives of Q have one
    sign pattern, so that each is largest in size at the cell's lower end, where Lagrange's
    remainder is taken. Horner's rule with degree d errs by at most ``2^-53 Sum_k (2k + 2)|c_k|``
    for ``|t| <= 1``; rounding the coefficients and t adds less than as much again.

    These bounds are of arithmetic in 120 bits.
    """
    rows, errors, slopes = [], [], []
    with working_bits(_BITS):
        for octave in range(lowest, 63):
            for cell in range(1 << cell_bits):
                size = mp.ldexp(1, octave - 63 - cell_bits)
                low = ((1 << cell_bits) + cell) * size
                half, centre = size / 2, low + size / 2
                powers = law.taylor(centre, law.inverse(centre), _DEGREE)
                row = [float(c * half**k) for k, c in enumerate(powers)]
                steepest = law.taylor(low, law.inverse(low), _DEGREE + 1)
                remainder = float(abs(steepest[-1]) * half ** (_DEGREE + 1))
                rounding = sum((4 * k + 4) * abs(c) for k, c in enumerate(row)) * _UNIT
                rows.append(row)
                errors.append((remainder + rounding) * (1 + 2.0**-30))
                slopes.append(float(abs(steepest[1]) * half) * (1 + 2.0**-30))
    return np.array(rows), np.array(errors), np.array(slopes)


def _half_normal_inverse(u: mpf) -> mpf:
    """Return x with ``erfc(x / sqrt 2) = u >= 2^-1000``, by Newton's method from a float."""
    x = -mp.mpf(NormalDist().inv_cdf(float(u) / 2))
    root, scale = mp.sqrt(2), mp.sqrt(mp.pi / 2)
    for _ in range(max(1, mp.prec.bit_length() - 4)):
        x += (mp.erfc(x / root) - u) * scale * mp.exp(x * x / 2)
    return x


def _half_normal_taylor(u: mpf, x: mpf, degree: int) -> list[mpf]:
    """Return ``Q^(n)(u) / n!``.

    ``Q' = -1/s(x)`` with the density ``s = sqrt(2/pi) exp(-x^2/2)``, and with ``s' = -x s`` the
    n-th derivative is ``(-1/s)^n P_n(x)`` with ``P_1 = 1`` and ``P_(n+1) = P_n' + n x P_n``, whose
    coefficients are integers >= 0, held by floats up to P_12: it falls with u in size.
    """
    scale = -mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2)
    found, power, polynomial = [x], mp.one, Polynomial([1.0])
    for n in range(1, degree + 1):
        power = power * scale / n
        found.append(power * reduce(lambda all_, c: all_ * x + c, polynomial.coef[::-1], mp.zero))
        polynomial = polynomial.deriv() + Polynomial([0.0, n]) * polynomial
    return found


HALF_NORMAL: Final = Law(
    lambda x: erfc(x / iv.sqrt(iv.mpf(2))), _half_normal_inverse, _half_normal_taylor
)
EXPONENTIAL: Final = Law(
    lambda x: iv.exp(-x),
    lambda u: -mp.log(u),
    lambda u, x, degree: [x, *((-1 / u) ** n / n for n in range(1, degree + 1))],
)
