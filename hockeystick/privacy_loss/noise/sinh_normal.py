"""The loss of sinh-normal noise: a density, with a profile in closed form.

*Moments* are a trapezoid sum whose error is proven. With S(u) the logarithm of
``sqrt(pi / q) e^-K(0)`` times the geometric mean of the two densities, ``q = rho A^2``,
``v = 1/(2A)`` and the odd loss l,

    M(c) - 1 = 4 sqrt(q/pi) Int_0^inf exp(S(u)) sinh((c+1) l/2) sinh(c l/2) du,
    S(u) = -q (sinh(u)^2 cosh(2v) + sinh(v)^2) + ln(1 + sinh(u)^2 + sinh(v)^2) / 2,

all positive, so that small moments keep their digits. The largest part of the integrand,
``exp(S + (c + 1/2) l)``, is ``exp(-(q/2) (R cosh(2(u - u0)) - 1))`` times
``cosh(u - v)^(1+c) cosh(u + v)^-c``, with

    R^2 = 1 - 4 c (c+1) sinh(2v)^2,    tanh(2 u0) = (1 + 2c) tanh(2v);

M(c) is finite just where R is positive. On a line at the height d it is no more than

    exp(q sin(d)^2) cos(d)^-c cos(2d)^(-1/2)

times what q cos(2d) in place of q makes on the axis, whose integral is at most M(c): delta and
with it M rise with rho where the loss is increasing, as it is for ``q cos(2d) >= 1/2``. That bounds
the error of the trapezoid sum (Trefethen and Weideman 2014, theorem 5.1).

*The loss as a curve*, and its inverse, are in floats with proven errors. With ``v = 1/(2A)`` and
``k = rho A^2 sinh(2v)`` the loss at the output ``1/2 + A u`` is

    l(u) = k sinh(2u) - ln(cosh(u + v) / cosh(u - v)),

odd in u. As ``rho A^2 >= 1``, what is subtracted is at most half of the first term, and so are the
slopes: ``k cosh(2u) <= l'(u) <= 2 k cosh(2u)``; for u >= 0 it is convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.gaussian import SinhNormal
from hockeystick.notions import RenyiDP
from hockeystick.numerics import ULP, Ball, decimal, largest_reading, least_reading
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import as_mpf, evaluated_up
from hockeystick.precision.profiles import exact, sinh_normal_delta
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, by_orders, sixth_power
from hockeystick.privacy_loss.core.base import (
    Array,
    CGFEstimate,
    DominatingPair,
    Masses,
    NoAnalysisError,
    ProfiledLoss,
    both,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import UnboundedLoss
from hockeystick.privacy_loss.core.composition import NoiselessLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    DensityLoss,
    UncertainEdges,
    log_masses,
)

_DIGITS: Final = 40
# The sum's error, and what its ends leave out, is below exp of minus this, relative to M - 1.
_DEPTH: Final = 45.0
# Nodes up to this one are exact multiples of the step.
_LAST: Final = 2**26
# Beyond this exponent M is next to M - 1.
_LARGE: Final = 30.0
_SLACK: Final = 1e-12


class _Shape(NamedTuple):
    """R and u0 at one c, and the bounds of K in closed form."""

    bend: float
    top: float
    lower: float
    upper: float


class _Sum(NamedTuple):
    """``ln(M - 1)`` with its relative error, and the terms at losses, to be differentiated."""

    log_excess: float
    error: float
    loss: Array
    weight: Array


@lru_cache(maxsize=256)
def _shape(rho: float, width: float, c: float) -> _Shape | None:
    """Return R and what goes with it, None where R is 0 or imaginary.

    Below, K is at least that of the Gaussian ``c (c+1) rho``, to which the cost falls as the width
    grows. Above, ``cosh(x) <= exp(|u - u0|) cosh(u0 - v)`` and the ratio of the two hyperbolic
    cosines to the power c is at most ``exp(2 v c) <= exp(1/2)``, so that

        M <= 2 sqrt(e / R) cosh(u0 - v) exp((q/2) (1 - R) + 1/(4 q R)).
    """
    with working_digits(_DIGITS):
        order, a, exponent = mp.mpf(c), exact(width), exact(rho)
        square, half = exponent * a * a, 1 / (2 * a)
        drop = 4 * order * (order + 1) * mp.sinh(2 * half) ** 2
        if drop >= 1:
            return None
        bend = mp.sqrt(1 - drop)
        top = mp.atanh((1 + 2 * order) * mp.tanh(2 * half)) / 2
        upper = square * drop / (2 * (1 + bend)) + 1 / (4 * square * bend)
        upper += (1 + mp.log(4 / bend)) / 2 + mp.log(mp.cosh(top - half))
        lower = order * (order + 1) * exponent
        return _Shape(
            float(bend), float(top), float(lower) * (1 - _SLACK), float(upper) * (1 + _SLACK)
        )


@lru_cache(maxsize=256)
def _sum(rho: float, width: float, c: float) -> _Sum | None:
    """Return the trapezoid sum at c, None where it would be too long or hardly known."""
    curve, shape = curve_of(rho, width), _shape(rho, width, c)
    if shape is None or shape.lower < 1e-250:
        return None
    depth = _DEPTH + max(0.0, -math.log(shape.lower))
    q = curve.square
    step, log_aliased = _step(q, c, depth)
    reach = math.asinh(math.sqrt(1.2 * depth / (q * shape.bend)))
    first = max(1, math.ceil((shape.top - reach) / step))
    last = math.ceil((shape.top + reach) / step)
    if last - first > 2**17 or last > _LAST:
        return None
    u = step * np.arange(first, last + 1, dtype=np.float64)
    loss, mean, mean_error, log_term, error = _terms(curve, u, c)
    top = float(log_term.max())
    weight = np.exp(log_term - top)
    total = math.fsum(weight)
    log_front = math.log(4.0 * step) + 0.5 * math.log(q / math.pi)
    log_excess = top + math.log(total) + log_front
    largest = mean + (c + 0.5) * loss - math.log(4.0) + 2.0 * mean_error + 1.0
    left_out = math.exp(_log_ends(curve, shape, c, u, largest, step) - top - math.log(total))
    excess = max(log_excess, 0.0) + 1.0
    aliased = math.exp(min(log_aliased + excess - log_excess, 1.0))
    if not float(error.max()) < 0.05:
        return None
    round_off = 1.05 * math.fsum(weight * error) / total
    rest = ULP * (16.0 + 4.0 * abs(top) + 4.0 * abs(log_front) + 2.0 * abs(log_excess))
    return _Sum(log_excess, 1.05 * (round_off + left_out + aliased) + rest, loss, weight / total)


def _step(q: float, c: float, depth: float) -> tuple[float, float]:
    """Return a step of few bits, and the logarithm of the error's share of ``1 + M(c)``.

    The error is at most ``2 (M(c) N + N') / (e^(2 pi d/h) - 1)``, N and N' the factors on the lines
    at c and at 0.
    """
    # At the largest height cos(2d) is 1/2.
    height = min(math.pi / 6.0, math.sqrt(depth / (q + 0.5 * c)))
    grown = q * math.sin(height) ** 2 - c * math.log(math.cos(height))
    grown -= 0.5 * math.log(math.cos(2.0 * height) - 4.0 * ULP)
    mantissa, exponent = math.frexp(2.0 * math.pi * height / (depth + grown + 4.0))
    step = math.ldexp(math.floor(mantissa * _LAST), exponent - 26)
    turns = 2.0 * math.pi * height / step
    slack = 1e-6 + 64.0 * ULP * (grown + turns)
    return step, math.log(2.0) + grown - turns - math.log(-math.expm1(-turns)) + slack


def _terms(curve: SinhNormalCurve, u: Array, c: float) -> tuple[Array, Array, Array, Array, Array]:
    """Return the loss, S and its error, the logarithm of the term and its error."""
    loss, unsure = curve.loss(u)
    rise, shift = np.sinh(u) ** 2, curve.sinh_half**2
    fall = curve.square * (rise * curve.cosh + shift)
    bump = 0.5 * np.log1p(rise + shift)
    mean, mean_error = bump - fall, ULP * (20.0 * fall + 20.0 * bump)
    log_term, error = mean, mean_error
    for factor in (0.5 * (c + 1.0), 0.5 * c):
        part = factor * loss
        log_sinh = part + np.log(-0.5 * np.expm1(-2.0 * part))
        log_term = log_term + log_sinh
        error = error + (1.0 + part) * (unsure / loss + 4.0 * ULP)
        error += ULP * (4.0 * part + 6.0 * np.abs(log_sinh) + 8.0)
    return loss, mean, mean_error, log_term, error + ULP * (4.0 * np.abs(log_term) + 8.0)


def _log_ends(
    curve: SinhNormalCurve, shape: _Shape, c: float, u: Array, largest: Array, step: float
) -> float:
    """Return the logarithm of a bound on the terms beyond the nodes, next to ``4 h sqrt(q/pi)``.

    They are at most ``exp(S + (c + 1/2) l) / 4``, which above u0 falls at least at the rate
    ``q R sinh(2(u - u0)) - 1`` and below rises at ``q R sinh(2(u0 - u)) - (1 + 2c) v`` or more.
    """
    steep = curve.square * shape.bend * (1.0 - 1e-6)
    falling = steep * math.sinh(2.0 * (float(u[-1]) - shape.top)) - 1.0 - 1e-6
    above = _log_geometric(float(largest[-1]), falling * step)
    if float(u[0]) < 1.5 * step:
        return above
    rising = steep * math.sinh(2.0 * (shape.top - float(u[0])))
    rising -= (1.0 + 2.0 * c) * curve.half * (1.0 + 1e-6)
    below = _log_geometric(float(largest[0]), rising * step)
    return max(above, below) + math.log(2.0)


def _log_geometric(log_first: float, fall: float) -> float:
    """Return ``ln(f / (e^x - 1))``, inf unless x is positive."""
    return log_first - fall - math.log(-math.expm1(-fall)) if fall > 0.0 else math.inf


_STEPS: Final = 40
# Outputs where both normal coordinates are beyond this have no mass at all.
_MOST_DEVIATIONS: Final = 1e10
# Cells up to this width (in u) have their width worked out without cancellation.
_NARROW: Final = 0.3


class SinhNormalCurve(NamedTuple):
    """The constants of the curve, each within half a unit of what the decimals given make.

    ``rho A^2``, k, ``A sqrt(2 rho)`` (from ``sinh(u -+ v)`` to the normal coordinate), v,
    ``sinh(v)``, ``sinh(2v)`` and ``cosh(2v)``.
    """

    square: float
    strength: float
    scale: float
    half: float
    sinh_half: float
    sinh: float
    cosh: float

    def loss(self, u: Array) -> tuple[Array, Array]:
        """Return the loss at ``u >= 0``, and a bound on its error."""
        ratio = 2.0 * np.sinh(u) * self.sinh_half / np.cosh(u - self.half)
        whole, less = self.strength * np.sinh(2.0 * u), np.log1p(ratio)
        return whole - less, ULP * (7.0 * whole + (18.0 + u + 2.0 * self.half) * less)

    def slope(self, u: Array) -> Array:
        """Return ``l'(u)``, to better than a thousandth."""
        grown = np.cosh(2.0 * u)
        return 2.0 * self.strength * grown - 2.0 * self.sinh / (grown + self.cosh)

    def normal_edges(self, edges: UncertainEdges, side: float) -> UncertainEdges:
        """Return edges in u as normal coordinates ``a sinh(u - side v)`` of one of the two."""
        x = edges.at - side * self.half
        unsure = edges.error + ULP * (np.abs(edges.at) + 2.0 * self.half)
        at = self.scale * np.sinh(x)
        error = 1.01 * self.scale * np.cosh(np.abs(x) + unsure) * unsure + 8.0 * ULP * np.abs(at)
        middle = 0.5 * (x[1:] + x[:-1])
        width = 2.0 * self.scale * np.cosh(middle) * np.sinh(0.5 * edges.width)
        moved = np.maximum(unsure[1:], unsure[:-1])
        width_error = 1.1 * edges.width_error + 1.1 * moved + 16.0 * ULP
        return _edges(
            at, np.where(np.isinf(at), 0.0, error), edges.width <= _NARROW, width, width_error
        )

    def outputs(self, edges: UncertainEdges) -> UncertainEdges:
        """Return the u at which the loss takes the values of edges, with proven errors."""
        size = np.abs(edges.at)
        # Outputs beyond this end have no mass, so that losses beyond its own are all alike.
        end = math.asinh(_MOST_DEVIATIONS / self.scale) + 2.0 * self.half + 1.0
        most = float(self.loss(np.array([end + 1.0]))[0][0])
        size = np.where(np.isfinite(size), np.minimum(size, most), size)
        u = self._solved(np.where(np.isinf(size), 0.0, size))
        value, unsure = self.loss(u)
        off = 1.01 * (np.abs(value - size) + unsure + edges.error) + 1e-320
        # The slope, at least k, is least where the true output may be nearest to the middle; and a
        # share of a convex loss is reached no nearer than at that share of the way.
        nearest = np.fmax(u - off / self.strength, u * (1.0 - 2.0 * off / value))
        error = off / self.slope(np.maximum(nearest, 0.0))
        u = np.where(np.isinf(size), math.inf, u)
        beyond = u - np.where(np.isinf(size), 0.0, error) > end
        u = np.where(beyond & np.isfinite(size), end, u)
        error = np.where(beyond, 0.0, error)
        return self._with_widths(edges, np.copysign(u, edges.at), error)

    def _solved(self, target: Array) -> Array:
        """Return u with l(u) near a target >= 0: Newton's method, from above where it is convex."""
        near = np.minimum(2.0 * target, target + 2.0 * self.half) / self.strength
        u: Array = 0.5 * np.arcsinh(near)
        for _ in range(_STEPS):
            step = (self.loss(u)[0] - target) / self.slope(u)
            u = np.maximum(u - step, 0.0)
            if bool((np.abs(step) <= 8.0 * ULP * u).all()):
                break
        return u

    def _with_widths(self, edges: UncertainEdges, at: Array, error: Array) -> UncertainEdges:
        """Return the outputs at edges with the distances of neighbouring ones.

        Around the middle m of a cell of width h the loss grows by

            2 k cosh(2m) sinh(h) - ln(1 + 2 sinh(2v) sinh(h) / (cosh(2m) + cosh(h - 2v))).

        It is between half of its first term and all of it, so that a relative error of the growth
        makes at most twice that in h. Moving m by d changes it by at most ``5 d`` of itself, as
        ``|l''| <= 5 l'``.
        """
        grown = np.where(np.isfinite(edges.width), edges.width, 0.0)
        twice = np.cosh(at[1:] + at[:-1])
        width = grown / self.slope(0.5 * (at[1:] + at[:-1]))
        narrow = (np.diff(at) <= _NARROW) & (width <= _NARROW) & (grown > 0.0)
        width = np.where(narrow, width, 0.0)
        for _ in range(_STEPS):
            value, steep = self._growth(twice, width)
            step = np.where(narrow, (value - grown) / steep, 0.0)
            width = width - step
            if bool((np.abs(step) <= 8.0 * ULP * width).all()):
                break
        left = np.abs(self._growth(twice, width)[0] - grown) / grown
        moved = np.maximum(error[1:], error[:-1])
        round_off = ULP * (64.0 + 4.0 * np.abs(at[1:] + at[:-1]) + 4.0 * self.half)
        width_error = 2.1 * (left + round_off + edges.width_error + 5.0 * moved)
        return _edges(at, error, narrow, width, width_error)

    def _growth(self, twice: Array, width: Array) -> tuple[Array, Array]:
        """Return by how much the loss grows across cells, and the derivative, unproven."""
        sinh, cosh = np.sinh(width), np.cosh(width)
        shifted = width - 2.0 * self.half
        under = twice + np.cosh(shifted)
        ratio = 2.0 * self.sinh * sinh / under
        bend = 2.0 * self.sinh * (cosh * under - sinh * np.sinh(shifted)) / (under * under)
        value = 2.0 * self.strength * twice * sinh - np.log1p(ratio)
        return value, 2.0 * self.strength * twice * cosh - bend / (1.0 + ratio)


def _edges(
    at: Array, error: Array, narrow: NDArray[np.bool_], width: Array, width_error: Array
) -> UncertainEdges:
    """Return edges with the widths given of narrow cells, and the differences of others."""
    plain = np.diff(at)
    rough = (error[1:] + error[:-1]) / np.maximum(plain, 1e-300) + 4.0 * ULP
    rough = np.where(np.isinf(plain), 0.0, rough)
    widths = np.where(narrow, width, plain), np.where(narrow, width_error, rough)
    return UncertainEdges(at, error, *widths)


@lru_cache(maxsize=64)
def curve_of(rho: float, width: float) -> SinhNormalCurve:
    """Return the curve of parameters read as the decimals that they print as."""
    with working_digits(_DIGITS):
        square, half = exact(decimal(rho) * decimal(width) ** 2), 1 / (2 * exact(width))
        sinh = mp.sinh(2 * half)
        return SinhNormalCurve(
            float(square),
            float(square * sinh),
            float(mp.sqrt(2 * square)),
            float(half),
            float(mp.sinh(half)),
            float(sinh),
            float(mp.cosh(2 * half)),
        )


# Below, what a run loses is often beyond 10^9; so it is beyond this rho.
_WIDTHS: Final = (0.25, 1e12)
_LARGEST_RHO: Final = 1e6


@final
@dataclass(frozen=True, slots=True)
class SinhNormalLoss(UnboundedLoss, DensityLoss, ProfiledLoss):
    """The loss of ``A arsinh(N(0, 1/(2 rho))/A)`` with means 1 and 0, the same in both directions.

    At the output ``1/2 + y``

        l(y) = rho A^2 sinh(1/A) sinh(2y/A) - 2 artanh(tanh(y/A) tanh(1/(2A))),

    which is odd, so that exchanging the two reflects the output only, and strictly increasing, as
    ``rho A^2 >= 1``. Its profile rises with rho and falls with A. With z the distance to the mean
    and ``n = A sqrt(2 rho) sinh(z/A)`` its normal coordinate, the profile is the maximum over
    thresholds y of ``Phi(-n_P) - e^eps Phi(-n_Q)``, which changes with a parameter as
    ``e^eps phi(n_Q) dn_Q - phi(n_P) dn_P`` where
    ``e^eps phi(n_Q) cosh(z_Q/A) = phi(n_P) cosh(z_P/A)``: for rho by what has the sign of
    ``tanh(z_Q/A) - tanh(z_P/A) > 0``, for A by that of ``t(z_Q/A) - t(z_P/A) < 0`` with the
    decreasing ``t(x) = tanh(x) - x``.

    References:
        Bun, Dwork, Rothblum and Steinke 2018, section 4 (the noise; its analysis is not used).
    """

    rho: float
    width: float

    def zcdp_line(self) -> ZCDPLine | None:
        return by_orders(self)

    @property
    def sixth_moment_upper(self) -> float:
        """That of the loss's closed form.

        ``rho A^2 sinh(1/A) sinh(2|y|/A)``, with ``sinh(z/A) = n/(A sqrt(2 rho))`` of a normal n and
        ``sinh(2 (|z| + 1/2)/A) <= exp(1/A) (1 + 2 sinh(z/A)^2)``; ``E[n^12] = 10395``.
        """
        width, rho = self.width, self.rho
        front = rho * width * width * math.sinh(1.0 / width) * math.exp(1.0 / width)
        share = 1.0 / (rho * width * width)
        return sixth_power(front) * 32.0 * (1.0 + 10395.0 * share**6)

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        curve = curve_of(self.rho, self.width)
        with np.errstate(all="ignore"):
            outputs = curve.outputs(edges)
            own, other = (curve.normal_edges(outputs, side) for side in (1.0, -1.0))
        return Masses.of(log_masses(own), log_masses(other))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return an estimate of K and two derivatives.

        Where they are infinite, those without the losses that hardly ever occur: large and finite,
        so that a search along c is led back.
        """
        shape = _shape(self.rho, self.width, c)
        if shape is None:
            return UnboundedLoss.cgf_estimate(self, c)
        found = _sum(self.rho, self.width, c)
        if found is None:
            return CGFEstimate(shape.lower, (2.0 * c + 1.0) * self.rho, 2.0 * self.rho)
        share = 1.0 / (1.0 + math.exp(-max(found.log_excess, -700.0)))
        loss, weight = found.loss, found.weight
        with np.errstate(over="ignore"):
            first, second = 1.0 / np.tanh(0.5 * (c + 1.0) * loss), 1.0 / np.tanh(0.5 * c * loss)
        slope = 0.5 * share * float(weight @ (loss * (first + second)))
        if found.log_excess > _LARGE:
            curvature = float(weight @ (loss - slope) ** 2)
        else:
            square = float(weight @ (loss * loss * (1.0 + first * second)))
            curvature = 0.5 * share * square - slope * slope
        return CGFEstimate(self.cgf_bounds(c).midpoint, slope, max(curvature, 0.0))

    def cgf_bounds(self, c: float) -> Ball:
        """Return K by a trapezoid sum with a proven error, finite for ``c < 1/(exp(2/A) - 1)``."""
        shape = _shape(self.rho, self.width, c)
        if shape is None:
            return Ball(math.inf, 0.0)
        found = _sum(self.rho, self.width, c)
        if found is None or not found.error < 0.5:
            half = 0.5 * (shape.upper - shape.lower)
            return Ball(shape.lower + half, half * (1.0 + 8.0 * ULP) + 8.0 * ULP * shape.lower)
        grown = math.exp(-abs(found.log_excess))
        value = max(found.log_excess, 0.0) + math.log1p(grown)
        if found.log_excess < _LARGE:
            value = math.log1p(math.exp(found.log_excess))
        # Of ln(1 + x) the derivative to ln x is x / (1 + x).
        share = 1.0 / (1.0 + math.exp(-max(found.log_excess, -700.0)))
        error = 1.1 * found.error * share / (1.0 - found.error) + 8.0 * ULP * value
        return Ball(value, error)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        unit = Fraction(ULP) * perturbation
        rho, width = decimal(self.rho), decimal(self.width)
        return sinh_normal_delta(epsilon, rho * (1 + unit), width * (1 - unit))


@dominating_pair.register
def _(mechanism: SinhNormal) -> DominatingPair:
    if mechanism.rho == math.inf:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    if not (_WIDTHS[0] <= mechanism.width <= _WIDTHS[1] and mechanism.rho <= _LARGEST_RHO):
        raise NoAnalysisError(
            f"sinh-normal noise is analysed for widths from {_WIDTHS[0]:g} to {_WIDTHS[1]:g} and "
            f"rho up to {_LARGEST_RHO:g}"
        )
    return both(SinhNormalLoss(mechanism.rho, mechanism.width))


# Orders are multiples of 2^-10, which are the decimals that they print as.
_ORDERS, _PARTS, _LEAST, _LARGEST = 64, 1024.0, 2.0**-6, 2.0**14


def sinh_normal_divergences(mechanism: SinhNormal) -> RenyiDP:
    """Return what sinh-normal noise in each entry of a vector costs, of L2 sensitivity 1.

    For ``alpha > 1`` with ``4 alpha (alpha - 1) sinh(1/A)^2 < 1``, in any dimension,

        D_alpha <= (rho A^2 (1 - R) / 2 - ln(R) / 2 + k^2 / 2) / (alpha - 1),
        R = sqrt(1 - 4 alpha (alpha - 1) sinh(1/A)^2),
        k = ln((1 + alpha (e^(2/A) - 1)) / (1 - alpha (1 - e^(-2/A)))) / 4 - alpha / A.

    Proof. The noise has the density ``f(z) ~ cosh(z/A) exp(-rho A^2 sinh(z/A)^2)``. For a shift v
    of one entry, ``f(z - v)^alpha f(z)^(1 - alpha)`` has the exponent
    ``-(rho A^2/2) (R cosh(2 (z - tau)/A) - 1)``, with R and ``tau/A = k + alpha v/A`` at v/A for
    1/A (hyperbolic cosine rule). ``ln cosh`` is convex, so that what is before it is at most
    ``cosh((z - alpha v)/A)``, whose part even about tau is ``cosh(k) cosh((z - tau)/A)``; with
    ``n = A sinh((z - tau)/A)`` the integral is Gaussian: at most
    ``exp(rho A^2 (1 - R)/2) R^(-1/2) cosh(k)``, and ``cosh(k) <= exp(k^2/2)``. As functions of
    ``s = v^2``, ``sinh(v/A)^2`` and k^2 have power series of no negative coefficient (the
    derivative of ``2 tau/A`` by ``t = 2 v/A`` is ``(1 + sinh(t_0)/(cosh(t_0) - cosh(t)))/2``), and
    ``1 - sqrt(1 - x)`` and ``-ln(1 - x)`` are convex and rising: the logarithm of the bound is
    convex in s and 0 at 0. Entries are independent, so that a vector v costs the sum, at most
    ``sum v_i^2 = |v|^2 <= 1`` times the bound at 1.

    The width is from 1/2 to 1e12 and rho from 1e-24 to 1e6. Upper bounds, rounded up, at up to 64
    orders, tending to the Gaussian's ``rho alpha`` as A grows.

    **The account of one number is no bound for vectors.** A shift of ``1/sqrt(n)`` in each of n
    entries is exactly ``SinhNormal(rho/n, A sqrt(n)) ** n``, whose delta at small epsilons is
    larger than that of ``SinhNormal(rho, A)``; see the example. At the same variance, vectors gain
    nothing over the Gaussian (Cramer and Rao). The bound is this library's; Bun, Dwork, Rothblum
    and Steinke 2018, section 4, have (16 rho, A/8)-tCDP for one number.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.SinhNormal(rho=0.1, width=10)
        >>> found = hs.release.sinh_normal_divergences(noise)
        >>> print(f"{hs.epsilon(found, delta=1e-5).upper:.3f}")
        3.039
        >>> spread = hs.mechanisms.SinhNormal(rho=0.1 / 16, width=40) ** 16
        >>> hs.delta(spread, epsilon=0).lower > hs.delta(noise, epsilon=0).upper
        True
    """
    known = isinstance(mechanism, SinhNormal)
    if not (known and 0.5 <= mechanism.width <= 1e12 and 1e-24 <= mechanism.rho <= _LARGEST_RHO):
        allowed = "a SinhNormal of a width from 0.5 to 1e12 and a rho from 1e-24 to 1e6"
        raise ParameterError("mechanism", mechanism, allowed)
    return RenyiDP(_divergences(mechanism.rho, mechanism.width))


@lru_cache(maxsize=64)
def _divergences(rho: float, width: float) -> tuple[tuple[float, float], ...]:
    """Return bounds of the divergences at orders for which they are finite.

    A bound rises with rho and falls with the width, so that both readings of each are covered.
    """
    largest = min(0.5 + 0.5 / math.tanh(1.0 / width) - 1.0, _LARGEST)
    steps = np.geomspace(_LEAST, max(largest, _LEAST), _ORDERS)
    orders = sorted({1.0 + math.floor(float(one) * _PARTS) / _PARTS for one in steps})
    with working_digits(2 * _DIGITS):
        readings = as_mpf(largest_reading(rho)), as_mpf(least_reading(width))
        found = [(order, _bound(*readings, order)) for order in orders]
    return tuple((order, evaluated_up(value)) for order, value in found if value is not None)


def _bound(rho: Any, width: Any, order: float) -> Any:
    """Return the bound of the divergence at an order, or None where it is infinite."""
    alpha = mp.mpf(order)
    lost = 4 * alpha * (alpha - 1) * mp.sinh(1 / width) ** 2
    if lost >= 1:
        return None
    root = mp.sqrt(1 - lost)
    above, below = (1 + alpha * mp.expm1(t) for t in (2 / width, -2 / width))
    k = mp.log(above / below) / 4 - alpha / width
    # 1 - R without cancellation
    main = rho * width**2 / 2 * lost / (1 + root)
    return (main - mp.log1p(-lost) / 4 + k**2 / 2) / (alpha - 1)
