"""Moments of the loss of sinh-normal noise: a trapezoid sum whose error is proven.

With S(u) the logarithm of ``sqrt(pi / q) e^-K(0)`` times the geometric mean of the two densities,
``q = rho A^2``, ``v = 1/(2A)`` and the odd loss l,

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
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.core.base import CGFEstimate
from hockeystick.privacy_loss.noise.sinh_normal_curve import SinhNormalCurve, curve_of

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

_DIGITS: Final = 40
# The sum's error, and what its ends leave out, is below exp of minus this, relative to M - 1.
_DEPTH: Final = 45.0
# The largest height of a line, where cos(2d) = 1/2.
_HIGHEST: Final = math.pi / 6.0
_MOST_NODES: Final = 2**17
# Nodes up to this one are exact multiples of the step.
_LAST: Final = 2**26
# Beyond this exponent M is next to M - 1.
_LARGE: Final = 30.0
_OUTWARD: Final = 1e-12


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


def cgf_bounds(rho: float, width: float, c: float) -> Ball:
    """Return K(c) with a proven error; inf from where the moments are infinite."""
    shape = _shape(rho, width, c)
    if shape is None:
        return Ball(math.inf, 0.0)
    found = _sum(rho, width, c)
    if found is None or not found.error < 0.5:
        return _between(shape.lower, shape.upper)
    grown = math.exp(-abs(found.log_excess))
    value = max(found.log_excess, 0.0) + math.log1p(grown)
    if found.log_excess < _LARGE:
        value = math.log1p(math.exp(found.log_excess))
    # Of ln(1 + x) the derivative to ln x is x / (1 + x).
    share = 1.0 / (1.0 + math.exp(-max(found.log_excess, -700.0)))
    error = 1.1 * found.error * share / (1.0 - found.error) + 8.0 * ULP * value
    return Ball(value, error)


def cgf_estimate(rho: float, width: float, c: float) -> CGFEstimate | None:
    """Return an estimate of K and two derivatives; None where they are infinite."""
    shape = _shape(rho, width, c)
    if shape is None:
        return None
    found = _sum(rho, width, c)
    if found is None:
        return CGFEstimate(shape.lower, (2.0 * c + 1.0) * rho, 2.0 * rho)
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
    return CGFEstimate(cgf_bounds(rho, width, c).midpoint, slope, max(curvature, 0.0))


@lru_cache(maxsize=256)
def _shape(rho: float, width: float, c: float) -> _Shape | None:
    """Return R and what goes with it, None where R is 0 or imaginary.

    Below, K is at least that of the Gaussian ``c (c+1) rho``, to which the cost falls as the width
    grows. Above, ``cosh(x) <= exp(|u - u0|) cosh(u0 - v)`` and the ratio of the two hyperbolic
    cosines to the power c is at most ``exp(2 v c) <= exp(1/2)``, so that

        M <= 2 sqrt(e / R) cosh(u0 - v) exp((q/2) (1 - R) + 1/(4 q R)).
    """
    from hockeystick.numerics.multiprecision import mp
    from hockeystick.precision.profiles import exact

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
            float(bend), float(top), float(lower) * (1 - _OUTWARD), float(upper) * (1 + _OUTWARD)
        )


def _between(low: float, high: float) -> Ball:
    """Return an interval as its middle and half its width, rounded outward."""
    half = 0.5 * (high - low)
    return Ball(low + half, half * (1.0 + 8.0 * ULP) + 8.0 * ULP * low)


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
    if last - first > _MOST_NODES or last > _LAST:
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
    height = min(_HIGHEST, math.sqrt(depth / (q + 0.5 * c)))
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
