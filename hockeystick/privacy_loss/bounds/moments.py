"""Bounds on moments and cumulants of losses, and the zCDP line through them.

**Cumulants**, the first four under P and under Q, fast and unproven. The mean of a small loss is of
second order in it, so it is never a difference: with ``L = ln dP/dQ``, ``h(y) = e^-y - 1 + y`` and
``l(y) = e^-y (e^y - 1 - y)``, both >= 0 for ``y >= 0``,

     E_P[L] = E_P[h(L); L > 0] + E_Q[l(-L); L < 0],
    -E_Q[L] = E_P[l(L); L > 0] + E_Q[h(-L); L < 0].

These are ``E_P[e^-L - 1 + L]`` and ``E_Q[e^L - 1 - L]``, as ``E_P[e^-L] = 1 = E_Q[e^L]``, with the
measure changed where an exponential would grow.

**Beyond the last cells**, of an event E of probability p, with ``k <= 3`` and ``S = E[L^6]``
(Cauchy-Schwarz and Lyapunov),

    E[(|L| + a)^k; E] <= sqrt(p) (32 (S + a^6))^(k/6).

Where a loss is no more than ``a + b |Z|`` of a normal Z, ``S <= 32 (a^6 + 15 b^6)``.

**Enclosures** of mean, variance and third absolute central moment. On each cell of outputs the
masses under P and under Q are known but for their round-off, the loss is monotone, and each
integrand falls towards one loss and rises from it on, so that its extremes are at the cell's ends.
The means are sums as above. With ``c`` near the mean m, ``Var L = E[(L-c)^2] - (m-c)^2``.

**The least known zCDP line**, above all Renyi divergences of a loss: from its ends, its range, a
Gaussian that dominates it, and values of K at many orders. K is convex and 0 at 0, so that it is
below the chords between proven values at ascending orders, and the least rho with
``chords <= rho c (c+1)`` holds up to the last of them.

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
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, final

import numpy as np

from hockeystick.kernels import uniform_minorant
from hockeystick.kernels.series import Array
from hockeystick.numerics import ULP, Ball, up
from hockeystick.numerics.rounding import OUTWARD_64, OUTWARD_8192, float_up


def log_cks_factor(c: float, m: Any = math) -> float:
    """Return ``ln C(c) = ln(c^c / (1+c)^(1+c))``: ``ln delta <= K(c) - c epsilon + ln C(c)``.

    ``sup_l exp(-c l) (1 - exp(-l))`` over ``l > 0`` is attained at ``l = ln(1 + 1/c)``. With a
    context of mpmath as m, the factor is computed in it.

    References:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020,
        proposition 12.
    """
    return -c * m.log1p(1 / c) - m.log1p(c) if c > 0 else 0.0


class FourCumulants(NamedTuple):
    """Mean, variance, and the third and fourth cumulants."""

    mean: float
    variance: float
    third: float
    fourth: float


class Cumulants(NamedTuple):
    """The cumulants of a loss under each of its two distributions."""

    under_p: FourCumulants
    under_q: FourCumulants


@final
@dataclass(frozen=True, slots=True)
class Range:
    """Lower and upper bounds, cell by cell."""

    low: Array
    high: Array


_Values = TypeVar("_Values")


class Signed(NamedTuple, Generic[_Values]):
    """The part of one sign of a discretised loss: ``|L|``, and the weights under P and Q."""

    size: _Values
    p: _Values
    q: _Values

    def swapped(self) -> Signed[_Values]:
        """Return the same with P and Q exchanged."""
        return Signed(self.size, self.q, self.p)


# By values, and by bounds of them.
SignedPart: TypeAlias = Signed[Array]
SignedCells: TypeAlias = Signed[Range]


def of_signed_parts(above: SignedPart, below: SignedPart, zero_mass: float = 0.0) -> Cumulants:
    """Return the cumulants given the positive losses, the negative ones and the mass at 0."""
    near, far = mean_integrands(above.size), mean_integrands(below.size)
    mean_p = float((above.p * near[0]).sum() + (below.q * far[1]).sum())
    mean_q = float((above.p * near[1]).sum() + (below.q * far[0]).sum())
    under_p = _cumulants((above.size, above.p), (below.size, below.p), zero_mass, mean_p)
    under_q = _cumulants((above.size, above.q), (below.size, below.q), zero_mass, -mean_q)
    return Cumulants(under_p, under_q)


def mean_integrands(size: Array) -> tuple[Array, Array]:
    """Return ``h`` and ``l`` of the module's text, to full relative precision, for y >= 0.

    They increase with y; beyond 0.5 nothing cancels, and below it the series of e^y does not.
    """
    small = np.minimum(size, 0.5)
    plus, minus = np.ones_like(small), np.ones_like(small)
    for order in range(20, 2, -1):
        plus, minus = 1.0 + small / order * plus, 1.0 - small / order * minus
    square = 0.5 * small * small
    is_small = size <= 0.5
    h = np.where(is_small, square * minus, np.expm1(-size) + size)
    rest = -np.expm1(-size) - size * np.exp(-size)
    return h, np.where(is_small, np.exp(-small) * square * plus, rest)


def _cumulants(
    above: tuple[Array, Array], below: tuple[Array, Array], zero_mass: float, mean: float
) -> FourCumulants:
    up, down = above[0] - mean, -below[0] - mean
    second, third, fourth = (
        float((above[1] * up**k).sum() + (below[1] * down**k).sum()) + zero_mass * (-mean) ** k
        for k in (2, 3, 4)
    )
    return FourCumulants(mean, second, third, fourth - 3.0 * second * second)


@final
@dataclass(frozen=True, slots=True)
class MinorantDecay:
    """A uniform minorant (widths, masses) of a density, its total variation, and an atom's share.

    The atom and what is above the minorant do not decay; and the part without the atom is at most
    its total variation over y.
    """

    width: Array
    mass: Array
    variation: float
    atom: float = 0.0

    def exponent(self, y: float) -> float:
        by_minorant = uniform_minorant.minorant_exponent(self.width, self.mass, math.inf, y)
        left = self.atom + self.variation / y if y > 0.0 else math.inf
        return max(float(by_minorant), -math.log(left) if left < 1.0 else 0.0)


# The sixth power of larger losses is infinite.
_LARGEST: Final = 1e40


def tail_moment(mass: float, sixth: float, power: int, offset: float) -> float:
    """Return a bound of ``E[(|L| + offset)^power]`` over an event of at most this mass."""
    largest = 32.0 * (sixth + offset**6)
    return math.sqrt(mass) * float(largest ** (power / 6.0)) * (1.0 + OUTWARD_8192)


def sixth_moment_of_normal(offset: float, slope: float) -> float:
    """Return the bound of ``E[(a + b |Z|)^6]``."""
    return 32.0 * (sixth_power(offset) + 15.0 * sixth_power(slope))


def sixth_power(size: float) -> float:
    """Return the sixth power, rounded up; inf where it overflows."""
    return size**6 * (1.0 + OUTWARD_8192) if size < _LARGEST else math.inf


# Covers the round-off of sums of positive terms, and of elementary functions.
SUM_ROUND_OFF: Final = 1e-11
# Bounds ``E[(|L| + offset)^power]`` beyond the cells, given the power and the offset.
TailBound: TypeAlias = Callable[[int, float], float]


class LawBounds(NamedTuple):
    """Enclosures of a mean and a variance, and an upper bound of ``E|L - E[L]|^3``."""

    mean_lower: float
    mean_upper: float
    variance_lower: float
    variance_upper: float
    third_upper: float


class MomentBounds(NamedTuple):
    """The enclosures under each of a loss's two distributions."""

    under_p: LawBounds
    under_q: LawBounds


def of_signed_cells(
    above: SignedCells,
    below: SignedCells,
    tail_bound: TailBound,
    zero_mass: tuple[float, float] = (0.0, 0.0),
) -> MomentBounds:
    """Return the enclosures given the positive losses, the negative ones and the mass at 0."""
    near, far = _evaluated(above.size), _evaluated(below.size)
    rest = tail_bound(1, 0.0)
    mean_p = _total([(above.p, near[0]), (below.q, far[1])], rest)
    mean_q = _total([(above.p, near[1]), (below.q, far[0])], rest)
    under_q = -mean_q[1], -mean_q[0]
    return MomentBounds(
        _law((above.size, above.p), (below.size, below.p), zero_mass, mean_p, tail_bound),
        _law((above.size, above.q), (below.size, below.q), zero_mass, under_q, tail_bound),
    )


def _evaluated(size: Range) -> tuple[Range, Range]:
    # ``h`` and ``l`` increase.
    low, high = mean_integrands(size.low), mean_integrands(size.high)
    return Range(low[0], high[0]), Range(low[1], high[1])


def _law(
    above: tuple[Range, Range],
    below: tuple[Range, Range],
    zero_mass: tuple[float, float],
    mean: tuple[float, float],
    tail_bound: TailBound,
) -> LawBounds:
    centre = 0.5 * (mean[0] + mean[1])
    radius = 1.000001 * (0.5 * (mean[1] - mean[0]) + 4.0 * ULP * abs(centre))
    zero = np.zeros(1)
    at_zero = (Range(zero, zero), Range(zero + zero_mass[0], zero + zero_mass[1]))
    parts = [
        (above[1], _distance(above[0].low, above[0].high, centre)),
        (below[1], _distance(-below[0].high, -below[0].low, centre)),
        (at_zero[1], _distance(zero, zero, centre)),
    ]
    offset = abs(centre) + radius
    squares = _total([(w, _power(d, 2)) for w, d in parts], tail_bound(2, offset))
    cubes = [(w, _power(Range(d.low, d.high + radius), 3)) for w, d in parts]
    third = _total(cubes, tail_bound(3, offset))[1]
    variance = max(squares[0] - radius * radius * (1.0 + SUM_ROUND_OFF), 0.0)
    return LawBounds(*mean, variance, squares[1], third)


def _distance(low: Array, high: Array, centre: float) -> Range:
    slack = 2.0 * ULP * (np.maximum(np.abs(low), np.abs(high)) + abs(centre))
    least = np.maximum(np.maximum(low - centre, centre - high) - slack, 0.0)
    return Range(least, np.maximum(high - centre, centre - low) + slack)


def _power(size: Range, exponent: int) -> Range:
    return Range(size.low**exponent, size.high**exponent)


def _total(parts: list[tuple[Range, Range]], rest: float) -> tuple[float, float]:
    """Return bounds of the integral of a positive function: masses times values, and the rest."""
    low = sum(float((mass.low * value.low).sum()) for mass, value in parts)
    high = sum(float((mass.high * value.high).sum()) for mass, value in parts)
    return low * (1.0 - SUM_ROUND_OFF), high * (1.0 + SUM_ROUND_OFF) + rest


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
        """Return K with a proven error."""


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
    return value * (1.0 + OUTWARD_64) + 2.0 * _LEAST
