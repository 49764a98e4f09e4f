"""Twin of ``kernels.inverse_transform``: survival functions in intervals, and tables of inverses.

Two laws are here, each by its survival function S on [0, inf), with ``S(0) = 1``:

    half normal, |N(0, 1)|:    S(x) = erfc(x / sqrt 2)
    exponential of rate 1:     S(x) = exp(-x)

``enclosure`` is interval arithmetic from end to end; the tables use mpmath's own functions at
twice the digits that they are asked for. Samplers name the laws before anything is drawn, so that
mpmath is imported where it computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick.numerics.working_precision import integers_around, interval_bits, working_bits

if TYPE_CHECKING:
    from mpmath import mpf
    from numpy.typing import NDArray

_DEGREE: Final = 11
_BITS: Final = 120
_GUARD: Final = 64
_UNIT: Final = 2.0**-53


@dataclass(frozen=True, slots=True)
class Law:
    """A law on [0, inf) by its survival function.

    Args:
        name: The law's name.
        survival: S on an interval.
        inverse: Its inverse at a number in (0, 1), at the precision of the number's context.
        taylor: The coefficients of S's inverse about u, given Q(u): an array by power of h.
    """

    name: str
    survival: Callable[[Any], Any]
    inverse: Callable[[mpf], mpf]
    taylor: Callable[[mpf, mpf, int], list[mpf]]


def enclosure(law: Law, at: Fraction, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits S(x)``: the lower at most, the upper at least that."""
    from hockeystick.numerics.multiprecision import iv

    if at <= 0:
        return 1 << bits, 1 << bits
    with interval_bits(bits + _GUARD):
        scaled = law.survival(iv.mpf(at.numerator) / at.denominator) * iv.mpf(2) ** bits
        return integers_around(scaled)


def integers(law: Law, word: int, scale: float, shift: float) -> tuple[int, int]:
    """Return the least and the most that ``floor(s Q(u) + shift)`` is for the u of a word > 1.

    These are ``V 2^-63 <= u <= (V + 1) 2^-63`` with the word's upper 63 bits V.
    """
    from hockeystick.numerics.multiprecision import mp

    with working_bits(_BITS):
        ends = (law.inverse(mp.ldexp((word >> 1) + end, -63)) for end in (1, 0))
        least, most = (int(mp.floor(mp.mpf(scale) * end + mp.mpf(shift))) for end in ends)
    return least, most


def erfc(x: Any) -> Any:
    """Return an interval around ``erfc(x)`` for an interval x > 0.

    ``erf(x) = 2/sqrt(pi) exp(-x^2) Sum_n 2^n x^(2n+1) / (2n+1)!!``. All terms are positive; once a
    term is less than half of the one before, what follows is at most as large as the last. Where
    ``erfc(x) <= exp(-x^2)`` is below the precision, that alone is said.
    """
    from hockeystick.numerics.multiprecision import iv

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
    from hockeystick.numerics.multiprecision import mp

    rows, errors, slopes = [], [], []
    with working_bits(_BITS):
        for octave in range(lowest, 63):
            for cell in range(1 << cell_bits):
                size = mp.ldexp(1, octave - 63 - cell_bits)
                low = ((1 << cell_bits) + cell) * size
                half, centre = size / 2, low + size / 2
                start = law.inverse(centre)
                powers = law.taylor(centre, start, _DEGREE)
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
    from statistics import NormalDist

    mp = u.context
    x = -mp.mpf(NormalDist().inv_cdf(float(u) / 2))
    root, scale = mp.sqrt(2), mp.sqrt(mp.pi / 2)
    for _ in range(max(1, mp.prec.bit_length() - 4)):
        x += (mp.erfc(x / root) - u) * scale * mp.exp(x * x / 2)
    return x


def _half_normal_taylor(u: mpf, x: mpf, degree: int) -> list[mpf]:
    """Return ``Q^(n)(u) / n!``.

    ``Q' = -1/s(x)`` with the density ``s = sqrt(2/pi) exp(-x^2/2)``, and with ``s' = -x s`` the
    n-th derivative is ``(-1/s)^n P_n(x)`` with ``P_1 = 1`` and ``P_(n+1) = P_n' + n x P_n``, whose
    coefficients are not negative: in size it rises with x, and so falls with u.
    """
    mp = x.context
    scale = -mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2)
    found, polynomial = [x], [1]
    power = mp.mpf(1)
    for n in range(1, degree + 1):
        power = power * scale / n
        found.append(power * _value(polynomial, x))
        polynomial = _next(polynomial, n)
    return found


def _value(polynomial: list[int], x: mpf) -> mpf:
    """Return the value of a polynomial, the constant coefficient being the first."""
    total = 0 * x
    for c in reversed(polynomial):
        total = total * x + c
    return total


def _next(polynomial: list[int], n: int) -> list[int]:
    """Return the coefficients of ``P' + n x P``, the constant one first."""
    longer = [0, *(n * c for c in polynomial)]
    for power, c in enumerate(polynomial[1:], start=1):
        longer[power - 1] += power * c
    return longer


def _exponential_taylor(u: mpf, x: mpf, degree: int) -> list[mpf]:
    """Return ``Q^(n)(u) / n!`` of ``Q = -ln u``, which is ``(-1/u)^n / n``."""
    return [x, *((-1 / u) ** n / n for n in range(1, degree + 1))]


def _half_normal_survival(x: Any) -> Any:
    """Return an interval around ``erfc(x / sqrt 2)``."""
    from hockeystick.numerics.multiprecision import iv

    return erfc(x / iv.sqrt(iv.mpf(2)))


def _exponential_survival(x: Any) -> Any:
    """Return an interval around ``exp(-x)``."""
    from hockeystick.numerics.multiprecision import iv

    return iv.exp(-x)


def _exponential_inverse(u: mpf) -> mpf:
    """Return ``-ln u``."""
    return -u.context.log(u)


HALF_NORMAL: Final = Law(
    "half normal", _half_normal_survival, _half_normal_inverse, _half_normal_taylor
)
EXPONENTIAL: Final = Law(
    "exponential", _exponential_survival, _exponential_inverse, _exponential_taylor
)
