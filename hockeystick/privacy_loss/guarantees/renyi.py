"""Losses of which only Renyi divergences are known: upper bounds of K on the real axis."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, TypeAlias, final

from hockeystick.notions import TCDP, ZCDP, RenyiDP
from hockeystick.numerics import ULP, Ball, largest_reading, least_reading
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, outward, steepest_slope
from hockeystick.privacy_loss.core.base import CGFEstimate, PrivacyLoss
from hockeystick.privacy_loss.core.composition import Terms
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.core.terms import breakpoints, largest_order
from hockeystick.privacy_loss.core.two_point import NO_PRIVACY
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

_OUTWARD: Final = Fraction(1, 2**52)

Points: TypeAlias = tuple[tuple[float, float], ...]


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

    @property
    def supremum(self) -> float:
        """Infinite: no upper bound is known."""
        return math.inf

    @property
    def clt_mu_squared(self) -> float:
        """Infinite: bounds of divergences have no central limit."""
        return math.inf

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
        """The Gaussian with ``mu = sqrt(2 rho)``, whose divergences are ``rho alpha``."""
        return gaussian_within(self.rho)

    def bound(self, c: float) -> float:
        return self.rho * c * (c + 1.0) * (1.0 + 8.0 * ULP)

    def zcdp_line(self) -> ZCDPLine:
        return ZCDPLine(self.rho, self.omega)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if c > self.largest_order:
            return CGFEstimate(math.inf, math.inf, 0.0)
        return CGFEstimate(self.bound(c), self.rho * (2.0 * c + 1.0), 2.0 * self.rho)


@final
@dataclass(frozen=True, slots=True)
class RenyiCurveLoss(RenyiBoundLoss):
    """``K`` at most the lower convex envelope of what is known of it: ``K(c) <= c tau`` at points.

    K is convex and ``K(0) = 0``, so that it lies below each chord; the envelope is itself such a
    K, and so the least bound. ``points`` are the breakpoints of the envelope after the one at 0.
    """

    points: Points
    slope: float

    @classmethod
    def of(cls, divergences: Points) -> RenyiCurveLoss:
        """Return the loss with divergences at most these, at orders > 1; one must be finite."""
        finite = [(order, tau) for order, tau in divergences if tau < math.inf]
        slope = min(least_reading(tau) / largest_reading(order) for order, tau in finite)
        # Each point moves to the left and up, over all readings and the rounding: K increases.
        vertices = [
            (
                (least_reading(order) - 1) * (1 - _OUTWARD),
                (largest_reading(order) - 1) * largest_reading(tau) * (1 + _OUTWARD),
            )
            for order, tau in finite
        ]
        points = tuple((float(c), _finite(k)) for c, k in _lower_hull(vertices))
        return cls(points, _finite(slope * (1 - _OUTWARD)))

    @property
    def largest_order(self) -> float:
        return self.points[-1][0]

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return tuple(c for c, _ in self.points)

    @property
    def attained(self) -> GaussianLoss | None:
        return gaussian_within(self.slope) if self.slope > 0.0 else None

    def bound(self, c: float) -> float:
        value, slope = self._chord(c)
        return value * (1.0 + 16.0 * ULP) if slope < math.inf else math.inf

    def zcdp_line(self) -> ZCDPLine:
        vertices = ((0.0, 0.0), *self.points)
        steepest = max(steepest_slope(left, right) for left, right in pairwise(vertices))
        return ZCDPLine(outward(steepest), 1.0 + self.largest_order)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if c > self.largest_order:
            return CGFEstimate(math.inf, math.inf, 0.0)
        value, slope = self._chord(c)
        return CGFEstimate(value, slope, 0.0)

    def _chord(self, c: float) -> tuple[float, float]:
        """Return the value and the slope of the chord above c."""
        index = bisect_left(self.breakpoints, c)
        left, low = self.points[index - 1] if index else (0.0, 0.0)
        right, high = self.points[min(index, len(self.points) - 1)]
        if right == left:
            return high, 0.0
        share = (c - left) / (right - left)
        return low * (1.0 - share) + high * share, (high - low) / (right - left)


def gaussian_within(rho: float) -> GaussianLoss:
    """Return the Gaussian loss with divergences ``rho alpha``, rounded down."""
    return GaussianLoss(math.sqrt(0.5) / math.sqrt(rho) * (1.0 + 16.0 * ULP))


def _lower_hull(points: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """Return the vertices of the lower convex envelope of points and 0, without 0."""
    hull = [(Fraction(0), Fraction(0))]
    for x, y in points:
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return hull[1:]


def _is_above(
    first: tuple[Fraction, Fraction],
    middle: tuple[Fraction, Fraction],
    last: tuple[Fraction, Fraction],
) -> bool:
    """Return whether a point lies on or above the line through its neighbours."""
    rise = (middle[1] - first[1]) * (last[0] - first[0])
    return rise >= (last[1] - first[1]) * (middle[0] - first[0])


def _finite(value: Fraction) -> float:
    """Return a number as a float, inf where it has none."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


@dominating_pair.register
def _(mechanism: ZCDP) -> DominatingPair:
    return _concentrated(mechanism.rho, math.inf)


@dominating_pair.register
def _(mechanism: TCDP) -> DominatingPair:
    return _concentrated(mechanism.rho, mechanism.omega)


@dominating_pair.register
def _(mechanism: RenyiDP) -> DominatingPair:
    divergences = [divergence for _, divergence in mechanism.divergences]
    if min(divergences) == 0.0:
        return DominatingPair(None, None)
    if min(divergences) == math.inf:
        return NO_PRIVACY
    loss = RenyiCurveLoss.of(mechanism.divergences)
    return DominatingPair(loss, loss)


def _concentrated(rho: float, omega: float) -> DominatingPair:
    """Return the losses of the worst release with Renyi divergences below a line."""
    if rho == 0.0:
        return DominatingPair(None, None)
    if rho == math.inf:
        return NO_PRIVACY
    loss = ConcentratedLoss(rho, omega)
    return DominatingPair(loss, loss)
