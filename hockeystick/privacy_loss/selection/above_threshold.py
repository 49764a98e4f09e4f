"""The AboveThreshold pair with a Gaussian threshold: bounded losses, and a tail on either side.

Where a pair (A, B) bounds the likelihood ratio of a release up to a factor ``e^s``, in either
direction, the profile H of the release has, with ``x = e^eps`` and D the profile of (A, B),

    H(x) <= D(x e^-s)    and, by reflection,    H(x) <= 1 - x + x D(e^-s / x).

The loss is that of (A, B) plus s above some g, its reflection below -g, with probability m that of
the symmetric pair ``middle``, whose profile is at least ``(H(x) - D(x e^-s)_g)/m`` for x between
``e^-g`` and ``e^g``, D(..)_g what the losses above g contribute to D.

What a run of comparisons with Gaussian noise reveals, given the threshold's noise, is as below,
with other pairs (a, a') of the probabilities of "below": those between
the curves ``(Phi(t), Phi(t + s+))`` and ``(Phi(t + s-), Phi(t))``. The tangents at some t are the
sides of a polygon around them, at whose corners the largest divergence of a run is attained. It
grows without bound with the number n of comparisons, so that upper bounds of V_1, ..., V_n are
found in turn, at points of equal ratios: between them V lies below the chord.

**Corners.** A corner has one coordinate about where two tangents meet, and the other one where the
outer of both is: whatever is lost where they are nearly parallel, it is beyond neither, and so are
the sides between corners. Below ``t = 0`` the coordinates are (a, a'), above it (b, b'), those of
"above"; the others are 1 minus these, within a relative 2^-53. ``Phi`` has a relative error of at
most 5e-14 (Cephes), and is taken at arguments rounded once. Together with the tangents' rounding
this moves a side by at most 4e-13 times ``phi(t + s)``, which is less than what the steps are
enlarged by: that moves the curves by ``phi(t + s)`` times as much. A slope that errs by a relative
eta touches the curve at a t less by ``eta/s``, which is ``phi eta^2 / (2 s)`` above the line there.

**Rounding.** With ``u = b - x b'`` and ``w = a - x a'`` the gain of a corner is the larger of 0,
``min(u, -w)`` and ``min(-u, w)``, which rises with each of the four: all are taken at their upper
ends. Z at ``x a'/a`` is read nearer to 1 by more than the logarithm's error, where Z is larger; so
near to 1 that the sides are uncertain, it is Z at 1. The rest is ``kernels.comparison_runs``.

What a run of comparisons reveals, given the threshold's noise: the largest profile.

A run ends with its first "above". Given the noise, a comparison is "below" with probability a for
one data set and a' for its neighbour. The pairs (a, a') that a comparison can have lie in the
quadrilateral with the corners (0, 0), (1, 1) and, with ``R(s) = (1, e^s) / (1 + e^s)``, R(s+) and
the mirror image of R(s-): "below" at most ``e^(s+)`` times as likely for the neighbour, and "above"
for the data set, and the other way round with s-. With ``x = e^eps``,

    V_0(x) = (1 - x)_+,    V_(n+1)(x) = max of ((1 - a) - x (1 - a'))_+ + a V_n(x a'/a)

is the largest hockey-stick divergence of a run of n + 1 comparisons, whatever their order and
stopping rule. V_n is convex, as the largest of convex functions, so that the term, which is
homogeneous, is convex in (a, a'): the maximum is at a corner. (0, 0) and (1, 1) leave V as it is.

With ``V = (1 - x)_+ + Z`` nothing cancels: a corner says

    Z_(n+1)(x) = a Z_n(x a'/a) + (min(|u|, |w|), where u and w have different signs),
    u = (1 - a) - x (1 - a'),  w = a - x a'.

For whole multiples of a unit h, s+ and s-, Z at ``x = e^(j h)`` needs Z at such points only.
Numbers that do not grow when the right side, rounded up, is taken of them bound Z_n for each n, by
induction. Z falls above 1 and rises below, so that its ends bound it beyond them; between two
points the chord does, as V is convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels import comparison_runs
from hockeystick.numerics import ULP, Ball
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import as_mpf
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, sixth_moment_of_normal, sixth_power
from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.base import Array, Atoms, CGFEstimate, Masses
from hockeystick.privacy_loss.core.cell_loss import UnboundedLoss
from hockeystick.privacy_loss.core.composition import mu_of
from hockeystick.privacy_loss.core.uncertain_endpoints import UncertainEdges
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

# Tangents: the first, the last, and their number.
_TANGENTS: Final = (-7.5, 9.5, 112)
# Points for each s+ or s-, whichever is larger, and how many of these they reach down and up.
_PER_STEP: Final = 25
_DOWN: Final = 14
_UP: Final = 12
# Steps are enlarged by these, relative and absolute.
_ENLARGED: Final = 1.0 + 1e-10
_MORE: Final = 4e-13
# Errors of u and w, and of logarithms of ratios; what weights are enlarged by.
_TERM_ERROR: Final = 2.0**-49
_LOG_ERROR: Final = 2.0**-48
_UPWARD: Final = 1.0 + 2.0**-50


class Corners(NamedTuple):
    """Corners of a polygon: a, a', 1 - a and 1 - a'."""

    below: Array
    others_below: Array
    above: Array
    others_above: Array


class Shifts(NamedTuple):
    """Where each corner moves Z to: ranges of points with an offset, and the weights there."""

    spans: NDArray[np.int64]
    low: Array
    high: Array


@lru_cache(maxsize=64)
def gaussian_run(plus: float, minus: float, comparisons: int) -> RunProfile:
    """Return upper bounds of Z after so many comparisons, for s+ and s-, not both 0.

    Gaussian noise at a smaller distance is made from that at a larger one, so that steps which are
    lost in round-off may be taken for larger ones.
    """
    plus, minus = (max(step, _MORE) if step else 0.0 for step in (plus, minus))
    unit = max(plus, minus) / _PER_STEP
    places = np.arange(-_DOWN * _PER_STEP, _UP * _PER_STEP + 1)
    curves = [corners_of(plus)] if plus else []
    if minus:
        one = corners_of(minus)
        curves.append(Corners(one.others_below, one.below, one.others_above, one.above))
    corners = Corners(*(np.concatenate(column) for column in zip(*curves, strict=True)))
    shifts = shifts_of(corners, unit, places)
    margin = int(np.abs(shifts.spans[:, 3]).max()) + 1
    gain = gain_of(corners, unit, places)
    excess = comparison_runs.run_excess(gain, *shifts, margin, comparisons)
    return RunProfile(unit, int(places[0]), excess)


def gain_of(corners: Corners, unit: float, places: NDArray[np.int64]) -> Array:
    """Return ``((1 - a) - x (1 - a'))_+ + (a - x a')_+ - (1 - x)_+`` or more, of each corner."""
    log_x = np.asarray(unit * places, dtype=np.float64)
    x, far = np.exp(log_x), _TERM_ERROR * (1.0 + np.abs(log_x))
    terms = []
    for one, other in (corners[2:], corners[:2]):
        own, moved = one[:, None], other[:, None] * x
        terms += [own - moved, (own + moved) * far]
    up, up_error, down, down_error = terms
    first = np.minimum(up_error + up, down_error - down)
    second = np.minimum(up_error - up, down_error + down)
    return np.asarray(np.maximum(np.maximum(first, second), 0.0) * _UPWARD)


def shifts_of(corners: Corners, unit: float, places: NDArray[np.int64]) -> Shifts:
    """Return the chords that bound ``a Z(x a'/a)`` at the points, by rising corner."""
    found: list[tuple[int, int, int, int]] = []
    weights: list[tuple[float, float]] = []
    size, middle, beside = places.size, int(-places[0]), math.expm1(unit)
    for k, (a, other) in enumerate(zip(corners.below, corners.others_below, strict=True)):
        if a == 0.0:
            found.append((k, 0, size, 0))
            weights.append((0.0, 0.0))
            continue
        ratio = math.log(other / a) if other > 0.0 else -math.inf
        ratio = min(max(ratio, -2.0 * size * unit), 2.0 * size * unit)
        error = _LOG_ERROR * (1.0 + abs(ratio))
        at = unit * places + ratio
        ends = int(np.sum(at < -2.0 * error)), int(np.sum(at <= 2.0 * error))
        for nearer, start, stop in ((error, 0, ends[0]), (-error, ends[1], size)):
            offset = math.floor((ratio + nearer) / unit)
            rest = min(max(ratio + nearer - offset * unit, 0.0), unit)
            within = min(math.expm1(rest) / beside, 1.0)
            found.append((k, start, stop, offset))
            weights.append((a * (1.0 - within) * _UPWARD, a * within * _UPWARD))
        for j in range(*ends):
            found.append((k, j, j + 1, middle - j))
            weights.append((a * _UPWARD, 0.0))
    low, high = np.array(weights).T
    return Shifts(np.array(found), low.copy(), high.copy())


def corners_of(step: float) -> Corners:
    """Return the corners that the tangents of the curve ``(Phi(t), Phi(t + step))`` meet in."""
    from scipy.special import ndtr

    size = step * _ENLARGED + _MORE
    t = np.linspace(*_TANGENTS)
    slope = np.exp(-size * t - 0.5 * size * size)
    lower, upper = t[1:] <= 0.0, t[1:] > 0.0
    below, others_below = _met(ndtr(t), ndtr(t + size), slope, np.maximum)
    above, others_above = _met(ndtr(-t), ndtr(-t - size), slope, np.minimum)
    start = max(float(ndtr(t[0] + size) - slope[0] * ndtr(t[0])), 0.0)
    end = max(float(ndtr(-t[-1]) - ndtr(-t[-1] - size) / slope[-1]), 0.0)
    first = np.concatenate(([0.0], below[lower])), np.concatenate(([start], others_below[lower]))
    last = np.append(above[upper], end), np.append(np.maximum(others_above[upper], 0.0), 0.0)
    return Corners(
        *(np.concatenate((one, 1.0 - other)) for one, other in zip(first, last, strict=True)),
        *(np.concatenate((1.0 - one, other)) for one, other in zip(first, last, strict=True)),
    )


def _met(own: Array, other: Array, slope: Array, outer: np.ufunc) -> tuple[Array, Array]:
    """Return about where neighbouring tangents meet, and the outer one of both there."""
    difference = other[1:] - other[:-1] - slope[1:] * own[1:] + slope[:-1] * own[:-1]
    first = difference / (slope[:-1] - slope[1:])
    first = np.clip(first, np.minimum(own[:-1], own[1:]), np.maximum(own[:-1], own[1:]))
    lines = (other[k] + slope[k] * (first - own[k]) for k in (slice(-1), slice(1, None)))
    return first, np.asarray(outer(*lines))


# Z is followed until it is less than about exp of minus this.
_LOG_RANGE: Final = 45.0
# The largest s-, and the largest number of iterations.
_LARGEST_STEP: Final = 1.5
_ITERATIONS: Final = 4000
_TINY: Final = 5e-324


@final
@dataclass(frozen=True, eq=False)
class RunProfile:
    """Upper bounds of Z at the points ``e^(j unit)``, for the j from ``first`` on."""

    unit: float
    first: int
    excess: Array

    def at(self, log_x: Array) -> Array:
        """Return upper bounds of Z, by chords in x; the arguments may be off by a few ulps."""
        size = np.abs(log_x)
        nearer = np.maximum(size - 2.0**-36 * self.unit - 2.0**-46 * size, 0.0)
        place = np.copysign(nearer, log_x) / self.unit - self.first
        place = np.clip(place, 0.0, self.excess.size - 1.0)
        left = np.minimum(place.astype(int), self.excess.size - 2)
        within = (place - left) * self.unit
        low = self.excess[left] * np.exp(within) * np.expm1(self.unit - within)
        high = self.excess[left + 1] * np.expm1(within)
        return np.asarray((low + high) / math.expm1(self.unit) * (1.0 + 2.0**-46))


@lru_cache(maxsize=128)
def run_profile(unit: float, plus: int, minus: int) -> RunProfile | None:
    """Return the bounds for ``s+ = plus unit`` and ``s- = minus unit``; None for large s-."""
    if minus * unit > _LARGEST_STEP:
        return None
    below = math.log1p(math.exp(plus * unit)) if plus * unit < 700.0 else plus * unit
    above = math.log1p(math.exp(-minus * unit))
    fewest = plus + minus + 2
    first = -fewest - math.ceil(_LOG_RANGE * max(plus / below, minus / (above + minus * unit)))
    last = fewest + math.ceil(_LOG_RANGE * minus / above)
    places = np.arange(first, last + 1, dtype=float)
    corners = [_Corner.of(places, unit, step) for step in (plus, -minus) if step]
    excess = np.zeros(places.size)
    for _ in range(_ITERATIONS):
        new = np.maximum.reduce([one.value(excess) for one in corners])
        if (new <= excess).all():
            return RunProfile(unit, first, excess)
        excess = np.maximum(new, excess)
    return None


@final
@dataclass(frozen=True, eq=False)
class _Corner:
    """R(s), with the ratio ``a'/a = e^s`` and ``s = step unit``, or its mirror image for s < 0."""

    chance: float
    step: int
    gain: Array
    slack: float

    @classmethod
    def of(cls, places: Array, unit: float, step: int) -> _Corner:
        """Return the corner, with what it adds to Z at each place."""
        size = step * unit
        chance = max(1.0 / (1.0 + math.exp(min(size, 700.0))), _TINY)
        above = 1.0 / (1.0 + math.exp(max(-size, -700.0)))
        with np.errstate(over="ignore"):
            up = above * np.abs(np.expm1((places - step) * unit))
            down = chance * np.abs(np.expm1((places + step) * unit))
        gain = np.where(np.abs(places) < abs(step), np.minimum(up, down), 0.0)
        return cls(chance, step, gain, 1.0 + ULP * (64.0 + 16.0 * abs(size)))

    def value(self, excess: Array) -> Array:
        """Return the corner's term for Z, rounded up."""
        last = excess.size - 1
        moved = excess[np.clip(np.arange(excess.size) + self.step, 0, last)]
        return np.asarray((self.chance * moved + self.gain) * self.slack)


_LN_2: Final = math.log(2.0)
_SQRT_HALF: Final = math.sqrt(0.5)
_SQRT_2_OVER_PI: Final = math.sqrt(2.0 / math.pi)
# Decimal digits beyond those that cancel.
_DIGITS: Final = 30
# Up to this, ``exp(c g)`` times a mass so many deviations out is negligible in an estimate.
_LARGEST_EXPONENT: Final = 20.0
_FAR: Final = 9.0


@final
@dataclass(frozen=True, slots=True)
class AboveThresholdGaussianLoss(UnboundedLoss):
    """The pair of a Gaussian loss plus s: ``N(mu^2/2 + s, mu^2)`` above g, and its reflection.

    The remaining mass m is that of ``middle``, with atoms in [-g, g]. With ``k = c + 1/2`` and
    ``y = g - s``

        M(c) = exp(mu^2 c (c+1) / 2) (e^(c s) Phi(mu k - y/mu) + e^(-(c+1) s) Phi(-mu k - y/mu))
               + m M_middle(c).
    """

    noise_multiplier: Fraction
    shift: float
    inner: float
    middle: AtomicLoss
    line: ZCDPLine | None = None

    def zcdp_line(self) -> ZCDPLine | None:
        return self.line

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives; by the atoms alone where the tails are negligible."""
        mu = mu_of(self.noise_multiplier)
        beyond = (self.inner - self.shift) / mu - 0.5 * mu
        if c * self.inner < _LARGEST_EXPONENT and beyond > _FAR:
            return self.middle.cgf_estimate(c)
        if beyond > _FAR:
            return self._estimate(c)
        value, slope, curvature = self._cumulants(c)
        return CGFEstimate(float(value), float(slope), float(curvature))

    def _estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives where the tails have next to no probability, in floats."""
        from scipy.special import erfcx, log_ndtr

        mu, k = mu_of(self.noise_multiplier), c + 0.5
        found = [self.middle.cgf_estimate(c)]
        for side in (1.0, -1.0):
            # ln of the tail's moment, exp(a) Phi(u) with a' = step, and its derivatives.
            step = mu * mu * k + side * self.shift
            quantile = side * mu * k - (self.inner - self.shift) / mu
            exponent = 0.5 * mu * mu * (k * k - 0.25) + (side * k - 0.5) * self.shift
            log_below = float(log_ndtr(quantile))
            hazard = _SQRT_2_OVER_PI / float(erfcx(-quantile * _SQRT_HALF))
            slope = step + side * mu * hazard
            bend = mu * mu * max(1.0 - hazard * (quantile + hazard), 0.0)
            found.append(CGFEstimate(exponent + log_below, slope, bend))
        most = max(one.value for one in found)
        value = most + math.log(math.fsum(math.exp(one.value - most) for one in found))
        return CGFEstimate.of_mixture(value, (0.0,) * len(found), found)

    def cgf_bounds(self, c: float) -> Ball:
        value = float(self._cumulants(c)[0])
        return Ball(value, 4.0 * ULP * value + _TINY)

    @property
    def sixth_moment_upper(self) -> float:
        """That of the atoms, and of a Gaussian plus a shift on either side."""
        mu = float(1 / self.noise_multiplier)
        return sixth_power(max(self.inner, self.middle.supremum)) + 2.0 * sixth_moment_of_normal(
            0.5 * mu * mu + self.shift, mu
        )

    def atoms(self) -> Atoms:
        rest = math.log(float(_inner_mass(self)))
        loss, log_p, error = self.middle.atoms()
        return Atoms(loss, log_p + rest, error + ULP * (4.0 * abs(rest) + np.abs(log_p) + 8.0))

    def cells(self, edges: Array) -> Masses:
        above = self._above(np.maximum(edges, self.inner))
        mirrored = self._above(np.maximum(-edges[::-1], self.inner))
        log_p = np.logaddexp(above.log_p, mirrored.log_q[::-1])
        log_q = np.logaddexp(above.log_q, mirrored.log_p[::-1])
        return Masses(log_p, log_q, np.maximum(above.error, mirrored.error[::-1]) + 8.0 * ULP)

    def _above(self, edges: Array) -> Masses:
        """Return the masses above g: those of the Gaussian loss, shifted by s."""
        at = edges - self.shift
        finite = np.isfinite(edges)
        error = np.where(finite, ULP * (np.abs(edges) + self.shift), 0.0)
        with np.errstate(invalid="ignore"):
            width = np.diff(edges)
        width = np.where(np.isnan(width), 0.0, width)
        inner = GaussianLoss(self.noise_multiplier).uncertain_cells(
            UncertainEdges(at, error, width, np.full(width.size, ULP))
        )
        empty = width == 0.0
        log_p = np.where(empty, -math.inf, inner.log_p)
        log_q = np.where(empty, -math.inf, inner.log_q - self.shift)
        kept = np.where(np.isfinite(log_q), np.abs(log_q), 0.0)
        error = inner.error + ULP * (kept + self.shift)
        return Masses(log_p, log_q, np.where(empty, 0.0, error))

    def _cumulants(self, c: float) -> tuple[mpf, mpf, mpf]:
        """Return K and two derivatives, with the digits that cancel."""
        size = self.shift + mu_of(self.noise_multiplier)
        with working_digits(_digits(c, size)):
            mu = as_mpf(1 / self.noise_multiplier)
            shift, inner = mp.mpf(self.shift), mp.mpf(self.inner)
            k = mp.mpf(c) + mp.mpf("0.5")
            moment = slope = second = mp.zero
            for side in (1, -1):
                # exp(a) Phi(u) with a' = step, a'' = mu^2, u' = side mu.
                step = mu * mu * k + side * shift
                quantile = side * mu * k - (inner - shift) / mu
                exponent = mu * mu * (k * k - mp.mpf("0.25")) / 2 + side * k * shift - shift / 2
                weight = mp.exp(exponent)
                below, density = weight * mp.ncdf(quantile), weight * mp.npdf(quantile) * mu
                moment += below
                slope += step * below + side * density
                second += (step * step + mu * mu) * below
                second += (2 * side * step - mu * quantile) * density
            rest = _inner_mass(self)
            atoms = self.middle.nodes(0, self.middle.atoms().loss.size)
            for loss, mass in zip(*atoms, strict=True):
                part = rest * mass * mp.exp(c * loss)
                moment += part
                slope += loss * part
                second += loss * loss * part
            mean = slope / moment
            return mp.log(moment), mean, second / moment - mean * mean


def tail(noise_multiplier: Fraction, shift: float, inner: float) -> tuple[mpf, mpf]:
    """Return the masses above g under P and under Q, to mpmath's precision."""
    return _tail_in(noise_multiplier, shift, inner, int(max(mp.dps, _DIGITS)) + _DIGITS)


@lru_cache(maxsize=256)
def _tail_in(
    noise_multiplier: Fraction, shift: float, inner: float, digits: int
) -> tuple[mpf, mpf]:
    with working_digits(digits):
        mu = as_mpf(1 / noise_multiplier)
        quantile = (mp.mpf(inner) - mp.mpf(shift)) / mu
        return mp.ncdf(mu / 2 - quantile), mp.exp(-mp.mpf(shift)) * mp.ncdf(-quantile - mu / 2)


def _inner_mass(loss: AboveThresholdGaussianLoss) -> mpf:
    p, q = tail(loss.noise_multiplier, loss.shift, loss.inner)
    return 1 - p - q


def _digits(c: float, size: float) -> int:
    """Return working digits for K at c, the logarithm of a moment near 1, for losses of a size."""
    lost = abs(math.log10(c)) + 2.0 * abs(math.log10(size)) if c > 0.0 else 0.0
    return _DIGITS + math.ceil(lost)
