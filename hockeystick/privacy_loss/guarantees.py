"""The losses of guarantees: what is known of a mechanism of which only that is known.

Huber's least favourable pair, below all that are known up to a contamination h. Let
``P = (1 - h) P_0 + h A`` and ``Q = (1 - h) Q_0 + h B`` with any A and B. For each event S

    P(S) - e^eps Q(S) >= (1 - h) (P_0(S) - e^eps Q_0(S)) - e^eps h,

and ``delta >= 1 - e^eps``. With D_0 the profile of ``(P_0, Q_0)`` over ``x = e^eps``, the larger of
``(1 - h) D_0(x) - x h``, ``1 - x`` and 0 is the profile of a pair: under P its loss is that of P_0,
clipped to ``[low, high]``, with probability ``1 - h``, and ``low`` otherwise. ``high`` and ``low``
are where the three meet:

    (1 - h) D_0(e^high) = e^high h,     (1 - h) (D_0(e^low) - 1 + e^low) = h.

A pair with smaller profiles has smaller profiles in any composition. Lowering ``high`` or ``low``
lowers the losses.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Final, TypeAlias, final

import numpy as np

from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.notions.compositions import MetricDP
from hockeystick.numerics import ULP, Ball, FloatAndDecimal, decimal, largest_reading, least_reading
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import float_up
from hockeystick.precision.profiles import exact
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, of_range, outward, steepest_slope
from hockeystick.privacy_loss.core.atomic import AtomListLoss, kept, read_only_atoms
from hockeystick.privacy_loss.core.base import (
    Array,
    Atoms,
    CGFEstimate,
    DominatingPair,
    Masses,
    NoAnalysisError,
    PrivacyLoss,
    ProfiledLoss,
    both,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import Terms, breakpoints, largest_order
from hockeystick.privacy_loss.core.mixtures import (
    RandomizedResponsePairLoss,
    extreme_pair,
    merged,
    two_point_pair,
)
from hockeystick.privacy_loss.core.uncertain_endpoints import no_atoms
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss


@dominating_pair.register
def _(mechanism: PureDP) -> DominatingPair:
    return two_point_pair(mechanism.epsilon, 0.0)


@dominating_pair.register
def _(mechanism: ApproxDP) -> DominatingPair:
    return two_point_pair(mechanism.epsilon, mechanism.delta)


@dominating_pair.register
def _(mechanism: MetricDP) -> DominatingPair:
    raise NoAnalysisError(
        "its privacy loss grows with the distance of two inputs, so that it has none for all "
        "neighbours alike; say how far apart neighbours may be: MetricDP(epsilon).within(radius)"
    )


@dominating_pair.register
def _(mechanism: GDP) -> DominatingPair:
    return gaussian_pair(mechanism.mu)


def gaussian_pair(mu: float) -> DominatingPair:
    """Return the losses of a Gaussian of which mu is known."""
    return extreme_pair(mu) or both(GaussianLoss(1 / decimal(mu)))


@final
@dataclass(frozen=True, slots=True)
class BoundedRangeLoss(CellLoss, ProfiledLoss):
    """The envelope of all losses that take values in an interval of length e only.

    The worst such releases have two outcomes, of loss t and t - e for a t from 0 to e. At each
    epsilon one of them, ``t = (epsilon + e)/2``, is the worst, and the profile of all together is

        delta(eps) = (exp(e/2) - exp(eps/2))^2 / (exp(e) - 1),   |eps| <= e:

    exact for one run. It is the profile of a pair of its own, whose loss has the density
    ``exp(l/2) / (4 sinh(e/2))`` on (-e, e) and no atoms; that pair dominates every adaptive
    composition (Zhu, Dong and Wang 2022, theorem 10), but none attains it.

    ``cgf_bounds`` is no moment of the envelope but the largest of any single release, which is
    less. With ``g(x) = ln(sinh(x)/x)`` and ``h = e/2``

        K(c) = max over t of K_t(c) = (c+1) g((c+1) h) - c g(c h) - g(h) <= c (c+1) e^2 / 8,

    attained by ``exp(t) = c (exp(e) - exp(-c e)) / ((c+1) (1 - exp(-c e)))``. Divergences add up
    at each order on its own, so that this bounds adaptive composition too.

    References:
        Dong, Durfee and Rogers 2020, lemma 3.2 (two outcomes); Rogers and Steinke, "A Better
        Privacy Analysis of the Exponential Mechanism", 2021 (e^2/8).
    """

    epsilon: float
    attained_in_samples = True

    @property
    def supremum(self) -> float:
        """The range e, rounded up over its readings: a larger range only allows more."""
        return float_up(largest_reading(self.epsilon))

    @property
    def exact_supremum(self) -> FloatAndDecimal:
        return FloatAndDecimal.of(self.epsilon)

    @property
    def infimum(self) -> float:
        return -self.supremum

    @property
    def attained(self) -> RandomizedResponsePairLoss | None:
        """Randomized response of half the range: two candidates with opposite scores."""
        half = 0.5 * self.epsilon
        return RandomizedResponsePairLoss(half) if half > 0.0 else None

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        own = exact(self.epsilon) * (1 + perturbation * mp.mpf(ULP))
        if epsilon >= own:
            return mp.zero
        if epsilon <= -own:
            return -mp.expm1(epsilon)
        return mp.expm1((epsilon - own) / 2) ** 2 / -mp.expm1(-own)

    def atoms(self) -> Atoms:
        return no_atoms()

    def cells(self, edges: Array) -> Masses:
        """Return ``exp((high - e)/2) (1 - exp(-width/2)) / (1 - exp(-e))``, and under Q."""
        end = self.supremum
        inside = np.clip(edges, -end, end)
        low, high, width = inside[:-1], inside[1:], np.diff(inside)
        whole = math.log(-math.expm1(-end))
        with np.errstate(divide="ignore"):
            log_part = np.log(-np.expm1(-0.5 * width)) - whole
        log_p = 0.5 * (high - end) + log_part
        log_q = -0.5 * (low + end) + log_part
        sizes = np.where(width > 0.0, np.abs(log_part), 0.0) + 2.0 * abs(whole)
        return Masses(log_p, log_q, ULP * (4.0 * end + 4.0 * sizes + 16.0))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        value, slope, curvature = _largest(c, self.supremum)
        return CGFEstimate(float(value), float(slope), float(curvature))

    def cgf_bounds(self, c: float) -> Ball:
        value = float(_largest(c, self.supremum)[0])
        # K grows at most as the square of e, whose readings differ by half a unit.
        return Ball(value, 8.0 * ULP * value + 5e-324)

    def zcdp_line(self) -> ZCDPLine:
        return of_range(self.supremum)


def _largest(c: float, end: float) -> tuple[mpf, mpf, mpf]:
    """Return ``(F(a) - F(b) - F(h)) / h`` for ``F = x g(x)``, ``a = (c+1) h``, ``b = c h``.

    With the derivatives in c, in digits enough for what cancels.
    """
    lost = 3.0 * abs(math.log10(c)) + 3.0 * abs(math.log10(0.5 * end)) if c > 0.0 else 0.0
    with working_digits(30 + math.ceil(lost)):
        h, order = mp.mpf(end) / 2, mp.mpf(c)
        if c == 0.0:
            return mp.zero, _series(h)[1], mp.inf
        above, below, one = (_series(x) for x in ((order + 1) * h, order * h, h))
        value = (above[0] - below[0] - one[0]) / h
        return value, above[1] - below[1], h * (above[2] - below[2])


def _series(x: mpf) -> tuple[mpf, mpf, mpf]:
    """Return ``F(x) = x ln(sinh(x)/x)`` and two derivatives."""
    small = mp.exp(-2 * x)
    room = -mp.expm1(-2 * x)
    log_ratio = x + mp.log(room / (2 * x))
    coth = (1 + small) / room
    return (
        x * log_ratio,
        log_ratio + x * coth - 1,
        2 * coth - 1 / x - 4 * x * small / (room * room),
    )


_ULP: Final = Fraction(ULP)
# Pairs of two outcomes: between which rho; minus the logarithm of the least probability; how far
# apart orders and losses are.
_RESOLVED: Final = (1e-200, 1e200)
_LOG_LEAST: Final = 690.0
_CELL: Final = 0.03
_STEP: Final = 0.01

Divergences: TypeAlias = tuple[tuple[float, float], ...]
Points: TypeAlias = list[tuple[Fraction, Fraction]]


class RenyiBoundLoss(PrivacyLoss):
    """A loss known only by ``K(c) <= bound(c)``.

    ``cgf_bounds`` is the interval from 0 to the bound; the cumulants are those of the bound.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def largest_order(self) -> float:
        """The largest c at which K is bounded, inf where there is none."""

    @property
    def attained(self) -> PrivacyLoss | None:
        return None

    @abstractmethod
    def bound(self, c: float) -> float:
        """Return a proven upper bound of ``K(c)`` at a c from 0 to the largest order."""

    @abstractmethod
    def estimate(self, c: float) -> CGFEstimate:
        """Return the bound with two derivatives, fast, at a c up to the largest order."""

    def by_differences(self, c: float, share: float) -> CGFEstimate:
        """Return the bound and its differences over steps of a share of c."""
        h = share * c
        low, middle, high = (self.bound(c + k * h) for k in (-1.0, 0.0, 1.0))
        second = (high - 2.0 * middle + low) / (h * h)
        return CGFEstimate(middle, (high - low) / (2.0 * h), max(second, 0.0))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return self.estimate(c) if c <= self.largest_order else CGFEstimate(math.inf, math.inf, 0.0)

    @property
    def supremum(self) -> float:
        return math.inf

    # Bounds of divergences have no central limit.
    clt_mu_squared: ClassVar[float] = math.inf

    def cgf_bounds(self, c: float) -> Ball:
        if c > self.largest_order:
            return Ball(math.inf, 0.0)
        half = 0.5 * self.bound(c) * (1.0 + 4.0 * ULP)
        return Ball(half, half)


class RunsBoundLoss(RenyiBoundLoss):
    """A loss whose bound is a function of the bounds of some runs."""

    __slots__ = ()

    terms: Terms

    @property
    def largest_order(self) -> float:
        return largest_order(self.terms)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return breakpoints(self.terms)


@final
@dataclass(frozen=True, slots=True)
class ConcentratedLoss(RenyiBoundLoss):
    """``K(c) <= rho c (c + 1)`` for ``c <= omega - 1``: (truncated) concentrated privacy.

    The divergence is continuous in its order, so that the bound holds at omega itself.
    """

    rho: float
    omega: float = math.inf

    @property
    def largest_order(self) -> float:
        return (self.omega - 1.0) * (1.0 - 4.0 * ULP)

    @property
    def attained(self) -> GaussianLoss:
        return gaussian_within(self.rho)

    @property
    def also_attained(self) -> tuple[PrivacyLoss, ...]:
        return (TwoOutcomesLoss(self),) if _RESOLVED[0] < self.rho < _RESOLVED[1] else ()

    def limits(self) -> Limits:
        """Return cells up to where ``(c + 1) rho`` is more than any loss, and one down to 0."""
        most = math.inf if self.omega == math.inf else float_up(largest_reading(self.omega) - 1)
        order = min(math.sqrt(_LOG_LEAST / self.rho), most)
        largest = self.rho * (order + 1.0) + _LOG_LEAST / order
        end = min(largest / self.rho, most)
        first = min(_CELL / largest, end)
        c = np.geomspace(first, end, 2 + math.floor(math.log(end / first) / _CELL))
        bound = self.rho * c * (c + 1.0)
        slope = self.rho * (2.0 * c + 1.0) / -np.expm1(-bound)
        log_room = np.append(_log_less_one(bound), math.log(self.rho * first))
        width = np.append(np.diff(c, append=end), 0.0)
        return np.append(c, first), log_room, np.append(slope, 0.0), width, self.rho

    def bound(self, c: float) -> float:
        return self.rho * c * (c + 1.0) * (1.0 + 8.0 * ULP)

    def zcdp_line(self) -> ZCDPLine:
        return ZCDPLine(self.rho, self.omega)

    def estimate(self, c: float) -> CGFEstimate:
        return CGFEstimate(self.bound(c), self.rho * (2.0 * c + 1.0), 2.0 * self.rho)


@final
@dataclass(frozen=True, slots=True)
class RenyiCurveLoss(RenyiBoundLoss):
    """``K`` at most the lower convex envelope of what is known of it: ``K(c) <= c tau`` at points.

    K is convex and ``K(0) = 0``, so that it lies below each chord; the envelope is itself such a
    K, and so the least bound. ``points`` are the breakpoints of the envelope after the one at 0.
    """

    points: Divergences
    slope: float

    @classmethod
    def of(cls, divergences: Divergences) -> RenyiCurveLoss:
        """Return the loss with divergences at most these, at orders > 1; one must be finite."""
        finite = [(order, tau) for order, tau in divergences if tau < math.inf]
        slope = min(least_reading(tau) / largest_reading(order) for order, tau in finite)
        vertices = [(Fraction(0), Fraction(0))]
        for order, tau in finite:
            # Each point moves to the left and up, over all readings and the rounding: K increases.
            c = (least_reading(order) - 1) * (1 - _ULP)
            vertices.append((c, (largest_reading(order) - 1) * largest_reading(tau) * (1 + _ULP)))
        points = tuple((float(c), _finite(k)) for c, k in lower_hull(vertices)[1:])
        return cls(points, _finite(slope * (1 - _ULP)))

    @property
    def largest_order(self) -> float:
        return self.points[-1][0]

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return tuple(c for c, _ in self.points)

    @property
    def attained(self) -> GaussianLoss | None:
        return gaussian_within(self.slope) if self.slope > 0.0 else None

    @property
    def also_attained(self) -> tuple[PrivacyLoss, ...]:
        return (TwoOutcomesLoss(self),) if _RESOLVED[0] < self.slope < _RESOLVED[1] else ()

    def limits(self) -> Limits:
        """Return the points, a few ulps to the right and down, which covers all readings."""
        c, bound = (np.minimum(column, _RESOLVED[1]) for column in np.array(self.points).T)
        off = 16.0 * ULP * (1.0 + 1.0 / c)
        c, bound = c * (1.0 + off), bound * np.maximum(1.0 - off, 0.0)
        none = np.zeros_like(c)
        return c, _log_less_one(bound), none, none, float((bound / c).min())

    def bound(self, c: float) -> float:
        value, slope = self._chord(c)
        return value * (1.0 + 16.0 * ULP) if slope < math.inf else math.inf

    def zcdp_line(self) -> ZCDPLine:
        vertices = ((0.0, 0.0), *self.points)
        steepest = max(steepest_slope(left, right) for left, right in pairwise(vertices))
        return ZCDPLine(outward(steepest), 1.0 + self.largest_order)

    def estimate(self, c: float) -> CGFEstimate:
        value, slope = self._chord(c)
        return CGFEstimate(value, slope, 0.0)

    def _chord(self, c: float) -> tuple[float, float]:
        index = bisect_left(self.breakpoints, c)
        left, low = self.points[index - 1] if index else (0.0, 0.0)
        right, high = self.points[min(index, len(self.points) - 1)]
        if right == left:
            return high, 0.0
        share = (c - left) / (right - left)
        return low * (1.0 - share) + high * share, (high - low) / (right - left)


# Some c; there ``ln(e^B - 1)`` and its slope; widths of cells on from them; least B(c)/c of all.
Limits: TypeAlias = tuple[Array, Array, Array, Array, float]


@final
@dataclass(frozen=True, slots=True)
class TwoOutcomesLoss(ProfiledLoss):
    """All pairs of two outcomes that have no larger divergences: what some release costs once.

    One has the loss l with the probability p under P, q under Q. As ``(1-p)/(1-q) <= 1``,
    ``e^K(c) <= 1 + p (e^(c l) - 1)``; and ``e^K(c) <= e^(c p/(1-p))`` in the other direction. Both
    are within a bound B where, at all c,

        p <= (e^B(c) - 1) / (e^(c l) - 1),    p / (1 - p) <= B(c) / c.

    ``h(c)``, the logarithm of the first for ``B = rho c (c+1)``, has ``h'' >= -2/c^2``, as
    ``ln((e^B - 1)/B)`` and ``-ln(e^(c l) - 1)`` are convex: in a cell of the width w from c on
    ``h >= h(c) + w min(h'(c), 0) - (w/c)^2``. Near 0 it is at least ``rho c / (e^(c l) - 1)``,
    which falls. The largest ``p (1 - e^(eps - l))`` counts.
    """

    known: ConcentratedLoss | RenyiCurveLoss
    supremum: ClassVar[Any] = math.inf

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return self.known.cgf_estimate(c)

    def cgf_bounds(self, c: float) -> Ball:
        return self.known.cgf_bounds(c)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        loss, p = two_outcomes(self.known)
        missed = -np.expm1(np.minimum(float(epsilon) - loss, 0.0))
        return mp.mpf(float(np.max(p * missed)))


@lru_cache(maxsize=64)
def two_outcomes(known: ConcentratedLoss | RenyiCurveLoss) -> tuple[Array, Array]:
    """Return losses and their largest probabilities, rounded down."""
    c, log_room, slope, width, least = known.limits()
    largest = float(np.min((np.maximum(log_room, 0.0) + _LOG_LEAST) / c))
    loss = least * np.exp(_STEP * np.arange(1 + math.log(max(largest / least, 1.0)) / _STEP))
    with np.errstate(all="ignore"):
        at = np.multiply.outer(loss, c)
        rest = -np.expm1(-at)
        log_p = log_room - at - np.log(rest) - 32.0 * ULP * (8.0 + at + np.abs(log_room))
        log_p += width * np.minimum(slope - loss[:, np.newaxis] / rest, 0.0) - (width / c) ** 2
    most = least / (1.0 + least)
    return loss, np.minimum(np.exp(log_p.min(axis=1)), most) * (1.0 - 2.0**-40)


def _log_less_one(exponent: Array) -> Array:
    """Return ``ln(e^x - 1)``, -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(exponent + np.log(-np.expm1(-exponent)))


def gaussian_within(rho: float) -> GaussianLoss:
    """Return the Gaussian loss of ``mu = sqrt(2 rho)``, of divergences ``rho alpha``, at most."""
    return GaussianLoss(math.sqrt(0.5) / math.sqrt(rho) * (1.0 + 16.0 * ULP))


def lower_hull(points: Points) -> Points:
    """Return the corners of the lower convex hull of points that ascend, in exact arithmetic."""
    hull: Points = []
    for x, y in points:
        while len(hull) > 1:
            (first, low), (second, high) = hull[-2:]
            if (high - low) * (x - first) < (y - low) * (second - first):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _finite(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


@dominating_pair.register(ZCDP)
@dominating_pair.register(TCDP)
def _(mechanism: ZCDP | TCDP) -> DominatingPair:
    omega = mechanism.omega if isinstance(mechanism, TCDP) else math.inf
    return extreme_pair(mechanism.rho) or both(ConcentratedLoss(mechanism.rho, omega))


@dominating_pair.register
def _(mechanism: RenyiDP) -> DominatingPair:
    least = min(divergence for _, divergence in mechanism.divergences)
    return extreme_pair(least) or both(RenyiCurveLoss.of(mechanism.divergences))


@final
@dataclass(frozen=True, slots=True)
class ContaminatedLoss(AtomListLoss):
    """The least favourable pair where a share of both distributions is unknown.

    ``known`` has atoms only, each rounded down or exact; ``share``, h, is above 0 and at most 1/2.

    References:
        Huber, "A robust version of the probability ratio test", Ann. Math. Statist. 36 (1965);
        Huber and Strassen, Ann. Statist. 1 (1973), for all levels at once.
    """

    known: CellLoss
    share: float

    @kept(64)
    def atoms(self) -> Atoms:
        """Return the clipped atoms; the share is placed a step further, which sets the spacing."""
        known, log_share = self.known.atoms(), math.log(self.share)
        low, high = _ends(known, log_share)
        values = np.append(low - np.diff(known.loss).min(), np.clip(known.loss, low, high))
        kept = known.log_p + math.log1p(-self.share)
        error = known.error + ULP * (4.0 + np.abs(kept))
        log_p = np.append(log_share, kept)
        error = np.append(ULP * (4.0 + abs(log_share)), error)
        return Atoms(*read_only_atoms(*merged(Atoms(values, log_p, error))))


def _ends(known: Atoms, log_share: float) -> tuple[float, float]:
    """Return ``low`` and ``high``, each rounded down to the loss of an atom.

    ``D_0(x)`` is ``sum p (1 - x/x_i)`` over ``x_i > x``, and ``D_0(x) - 1 + x`` at most
    ``sum p (x/x_i - 1)`` over ``x_i < x``.
    """
    loss, log_p, error = known
    margin = 1e-6 + 4.0 * float(error.max())  # covers all round-off of the sums
    log_q, gaps = log_p - loss, np.log(-np.expm1(-np.diff(loss)))
    above_p = np.logaddexp.accumulate(log_p[::-1])[::-1]
    # By parts, ``D_0(x_j) / x_j = sum over i >= j of (1/x_i - 1/x_(i+1)) P(L > l_i)``.
    over = np.logaddexp.accumulate((gaps - loss[:-1] + above_p[1:])[::-1])[::-1]
    below_q = np.logaddexp.accumulate(log_q)
    under = np.logaddexp.accumulate(gaps + loss[1:] + below_q[:-1])
    less = math.log1p(-math.exp(log_share)) - margin
    high = np.append(loss[0], loss[:-1][over + less >= log_share])[-1]
    low = np.append(loss[0], loss[1:][under + margin <= log_share])[-1]
    return float(min(low, high)), float(high)
