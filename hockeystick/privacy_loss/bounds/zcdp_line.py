"""The least known line above all Renyi divergences of a loss: zero-concentrated privacy.

From the ends of the loss, from its range, from a Gaussian that dominates it, and from values of K
at many orders: K is convex and 0 at 0, so that it is below the chords between proven values at
ascending orders, and the least rho with ``chords <= rho c (c+1)`` holds up to the last of them.

For some losses that are the same in both directions, ``D_alpha / alpha`` falls with alpha, so that
the least rho is the Kullback-Leibler divergence D_1. With ``s = c + 1/2`` and the measure
``R = sqrt(P Q)``, on which the loss is symmetric,

    M = E_P[e^(c L)] = integral of cosh(s L) dR = sum over k of m_k u^k / (2k)!,    u = s^2,

m_k being the integral of ``L^(2k)``. Where ``ln M`` is concave in u it is below its tangent at
``u = 1/4``, which is c = 0, where it is 0: ``K <= (u - 1/4) K'(0) = c (c+1) D_1``. It is concave
where ``M'/M`` falls with u, and so wherever ``m_(k+1) / ((2k+1) m_k)`` falls with k, that is the
ratio of the coefficients of the series of M' and M (Biernacki and Krzyz 1955); or where M has, as a
function of s, imaginary zeros only: by Hadamard it is then a product of factors ``1 + u/y^2``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from hockeystick.numerics import Ball, up
from hockeystick.numerics.rounding import float_up

# Covers the few roundings of each formula, and the readings of its parameters.
_OUTWARD: Final = 2.0**-47
_LEAST: Final = 5e-324
# The relative round-off of a derivative.
_NEAR: Final = 1e-12
# The first and last order minus 1, and the number of orders per factor of ten.
_FIRST: Final = 1e-3
_LAST: Final = 1e3
_TO_TEN: Final = 12
# Of a whole curve: the first order minus 1, the relative steps from one to the next, and the most.
_FIRST_OF_CURVE: Final = 2.0**-15
_STEP: Final = 2.0**-6
_LARGEST_STEP: Final = 0.5
_MOST: Final = 2000
# The largest growth of rho relative to that of the first order.
_GROWTH: Final = 1.05


class ZCDPLine(NamedTuple):
    """``D_alpha <= rho alpha`` for alpha from 1 to omega, in both orders of a pair (P, Q)."""

    rho: float
    omega: float = math.inf


class _WithCGF(Hashable, Protocol):
    """A loss of which K has proven bounds."""

    def cgf_bounds(self, c: float) -> Ball:
        """Return ``K(c)`` with a proven error."""
        ...


def lowest(lines: Iterable[ZCDPLine | None]) -> ZCDPLine | None:
    """Return the line with the least rho of those that are known."""
    return min((line for line in lines if line), key=lambda line: line.rho, default=None)


def of_gaussian(mu_squared: Fraction | None) -> ZCDPLine | None:
    """Return ``rho = mu^2 / 2`` of the Gaussian that dominates a loss, None where none is known.

    Divergences fall where trade-off functions rise.
    """
    if mu_squared is None:
        return None
    try:
        return ZCDPLine(outward(0.5 * float(mu_squared)))
    except OverflowError:
        return ZCDPLine(math.inf)


def of_ends(infimum: float, supremum: float) -> ZCDPLine | None:
    """Return the line of a loss that is bounded on both sides.

    The likelihood ratio has mean 1 under Q and stays between the exponentials of the ends, so that
    K, the mean of a convex function of it, is largest with all the mass at ``exp(+-m)``, m the end
    farther from 0: ``rho = m tanh(m/2)`` (Steinke 2024, theorems 4 and 5). Or by the range.
    """
    farther = max(-infimum, supremum)
    if farther == math.inf:
        return None
    by_ends = outward(farther * math.tanh(0.5 * farther))
    return ZCDPLine(min(by_ends, of_range(up(supremum - infimum)).rho))


def of_range(width: float) -> ZCDPLine:
    """Return the line of a loss in an interval: ``rho = width^2 / 8``.

    K'' is a variance of the tilted loss, at most ``width^2 / 4``, so that ``K - width^2 c (c+1)/8``
    is concave; it is 0 at c = -1 and 0, and negative beyond (Rogers and Steinke 2021).
    """
    return ZCDPLine(width if width == math.inf else float_up(Fraction(width) ** 2 / 8))


@lru_cache(maxsize=256)
def by_orders(loss: _WithCGF) -> ZCDPLine | None:
    """Return a rho of at most 1.05 times that of the first order, and the largest omega for it.

    Where omega is finite, rho is the largest allowed one, so that it is monotone in K.

    Guarantees:
        ``K(c) <= rho c (c+1)`` for ``0 < c <= omega - 1``, of this direction, rounding included.
    """
    count = round(_TO_TEN * math.log10(_LAST / _FIRST))
    ratio = (_LAST / _FIRST) ** (1.0 / count)
    last, first, rho = (0.0, 0.0), 0.0, 0.0
    for c in (_FIRST * ratio**k for k in range(count + 1)):
        found = loss.cgf_bounds(c)
        point = (c, found.midpoint + found.radius)
        slope = steepest_slope(last, point) if point[1] < math.inf else math.inf
        first = first or slope
        if not slope <= _GROWTH * first < math.inf:
            # Where rho increases, it is set to the largest allowed one.
            rho = _GROWTH * first if rho > first else rho
            break
        last, rho = point, max(rho, slope)
    return ZCDPLine(outward(rho), 1.0 + last[0]) if last[0] > 0.0 else None


@lru_cache(maxsize=256)
def of_curve(loss: _WithCGF, largest: float) -> ZCDPLine | None:
    """Return the least rho above the chords of K, for a loss that is the same in both directions.

    Beyond the last order ``D_alpha`` is at most the largest loss, and ``D_alpha / alpha`` below
    rho. None where that takes too many orders.
    """
    last, rho, c = (0.0, 0.0), 0.0, _FIRST_OF_CURVE
    for _ in range(_MOST):
        found = loss.cgf_bounds(c)
        point = (c, found.midpoint + found.radius)
        slope = steepest_slope(last, point) if point[1] < math.inf else math.inf
        rho, last = max(rho, slope), point
        if largest <= rho * (1.0 + c):
            return ZCDPLine(outward(rho)) if rho < math.inf else None
        # Where K is a parabola, its chords are too high by about ``min(c, 1) step^2 / 4``.
        c *= 1.0 + min(_STEP / math.sqrt(min(c, 1.0)), _LARGEST_STEP)
    return None


def steepest_slope(left: tuple[float, float], right: tuple[float, float]) -> float:
    """Return the supremum of ``K(c) / (c (c + 1))`` on a chord ``K = b c - a`` of the curve.

    It is at most ``(sqrt(a + b) - sqrt(a))^2``, attained unless it falls, or rises, throughout.
    """
    (x0, y0), (x1, y1) = left, right
    b = (y1 - y0) / (x1 - x0)
    if b == math.inf:
        return math.inf
    if b * x0 * (x0 + 1.0) < y0 * (2.0 * x0 + 1.0) * (1.0 - _NEAR):
        return y0 / x0 / (x0 + 1.0)
    if b * x1 * (x1 + 1.0) > y1 * (2.0 * x1 + 1.0) * (1.0 + _NEAR):
        return y1 / x1 / (x1 + 1.0)
    # At an interior maximum b x0 <= 2 sqrt(a (a + b)): the cancellation in a is harmless.
    a = max(b * x0 - y0, 0.0)
    return (b / (math.sqrt(a + b) + math.sqrt(a))) ** 2 if b > 0.0 else 0.0


def outward(value: float) -> float:
    """Return the value rounded up, above 0."""
    return value * (1.0 + _OUTWARD) + 2.0 * _LEAST
