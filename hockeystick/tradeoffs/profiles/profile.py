"""Privacy profiles: delta at every epsilon >= 0, as certified arrays, with its derivative.

A pair of output distributions (P, Q) has two profiles, one per direction, and they determine the
pair up to post-processing, as ``H_{e^-eps}(Q||P) = 1 - e^-eps + e^-eps H_{e^eps}(P||Q)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics import ULP

# Beyond this epsilon only the monotonicity of delta is used.
FARTHEST: Final = 1e15
_SECTIONS: Final = 33
_ROUNDS: Final = 16
# Steps outward from an estimated epsilon, relative to it and absolute, until the bounds agree.
_STEPS: Final = 2.0 ** np.arange(-50.0, 4.0)


def epsilon_interval(profile: Profile, delta: float) -> tuple[float, float, float]:
    """Return proven ends of the epsilon of a delta, and the estimate between them.

    The upper end is inf where the profile is not proven to fall to delta.
    """
    if delta == 0.0:
        if profile.infinity_mass_lower > 0.0:
            return math.inf, math.inf, math.inf
        largest = profile.supremum
        return _highest_above(profile, 0.0, min(largest, FARTHEST)), largest, largest
    middle = _estimate(profile, delta)
    if middle == math.inf:
        return _highest_above(profile, delta, FARTHEST), math.inf, math.inf
    with np.errstate(over="ignore"):
        above = np.r_[middle, middle + _STEPS * (middle + 1.0), FARTHEST]
    covered = np.flatnonzero(profile.at(above).upper <= delta)
    upper = float(above[covered[0]]) if covered.size else math.inf
    return _highest_above(profile, delta, middle), min(middle, upper), upper


def _highest_above(profile: Profile, delta: float, epsilon: float) -> float:
    """Return an epsilon, at most the given one, at which delta is proven to be larger."""
    below = np.maximum(np.r_[epsilon, epsilon - _STEPS * (epsilon + 1.0), 0.0], 0.0)
    larger = np.flatnonzero(profile.at(below).lower > delta)
    return float(below[larger[0]]) if larger.size else 0.0


def _estimate(profile: Profile, delta: float) -> float:
    """Return the epsilon at which the estimate falls to delta; inf where it does not."""
    if _at(profile, 0.0) <= delta:
        return 0.0
    high = 1.0
    while _at(profile, high) > delta:
        high *= 2.0
        if high > FARTHEST:
            return math.inf
    low = 0.0
    for _ in range(_ROUNDS):
        grid = np.linspace(low, high, _SECTIONS)
        first = int(np.argmax(profile.at(grid).estimate <= delta))
        low, high = float(grid[max(first - 1, 0)]), float(grid[first])
        if high - low <= 2.0 * math.ulp(high):
            break
    return high


def _at(profile: Profile, epsilon: float) -> float:
    return float(profile.at(np.array([epsilon])).estimate[0])


def ends_at(profile: Profile, epsilon: float) -> tuple[float, float, float]:
    """Return delta at one epsilon: lower end, estimate, upper end."""
    lower, middle, upper = profile.precisely(min(epsilon, FARTHEST))
    if epsilon > FARTHEST:
        lower, middle = profile.infinity_mass_lower, profile.infinity_mass_lower
    return lower, min(max(middle, lower), upper), upper


Array: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

# Rates below this are handled as logarithms; derivatives are cut at this.
_TINY_RATE: Final = 1e-200
_STEEPEST: Final = 1e300
_SMALL_EPSILON: Final = 1e-12
_SMALLEST: Final = 5e-324
# Covers the round-off of slopes between cells.
_SLOPES_ROUND: Final = 1.0 + 2.0**-40
# Beyond this exponent only logarithms are used.
_LARGEST_EXPONENT: Final = 700.0
# The number of standard deviations beyond which a float holds 0.
_MOST_DEVIATIONS: Final = 1e4
_LEAST_DEVIATIONS: Final = 1e50
_DENSITY_0: Final = 1.0 / math.sqrt(2.0 * math.pi)
# Below this mu the difference of two Mills ratios is integrated instead of taken.
_CLOSE: Final = 0.25
_NODES: Final = 0.5 + 0.5 * np.polynomial.legendre.leggauss(6)[0]
_WEIGHTS: Final = 0.5 * np.polynomial.legendre.leggauss(6)[1]


class ProfileValues(NamedTuple):
    """delta at several epsilons as proven intervals, an estimate, and its derivative (<= 0)."""

    lower: Array
    estimate: Array
    upper: Array
    slope: Array


class Profile(ABC):
    """The hockey-stick divergence ``delta(eps) = E_P[(1 - e^(eps - L))_+]`` for ``eps >= 0``."""

    __slots__ = ()

    @property
    @abstractmethod
    def supremum(self) -> float:
        """The largest loss, beyond which delta is constant; inf where there is none."""

    @property
    def smooth(self) -> bool:
        """Whether delta has a smooth derivative: no breakpoints, no atoms of the loss."""
        return True

    @property
    def breakpoints(self) -> Array:
        """The epsilons at which the derivative of delta jumps; none by default."""
        return np.zeros(0)

    @property
    def infinity_mass_lower(self) -> float:
        """A lower bound of the infinity mass, and so of delta at every epsilon."""
        return 0.0

    @property
    def dominating_mu(self) -> float:
        """A mu with ``delta(eps) <= delta_G(eps; mu)`` for all eps; inf where none is known.

        It bounds the tail beyond the range of floats.
        """
        return math.inf

    @abstractmethod
    def at(self, epsilon: Array) -> ProfileValues:
        """Return delta at epsilons >= 0."""

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        """Return lower end, estimate and upper end of delta at one epsilon, at full precision."""
        lower, middle, upper, _ = self.at(np.array([epsilon]))
        return float(lower[0]), float(middle[0]), float(upper[0])

    def above(self, epsilon: Array, threshold: Array) -> ProfileValues:
        """Return delta at epsilons; where it is below the threshold, any upper end below that.

        For maxima, in which the smaller values need not be computed precisely.
        """
        return self.at(epsilon)


class Cells(NamedTuple):
    """Proven ends of a profile at ascending epsilons; between them it is convex in ``e^eps``."""

    profile: Profile
    epsilon: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, profile: Profile, epsilon: Array) -> Self:
        """Return the cells between epsilons."""
        values = profile.at(epsilon)
        return cls(profile, epsilon, values.lower, values.upper)

    def with_more(self, epsilon: Array) -> Cells:
        """Return the cells, cut at more epsilons."""
        more = Cells.of(self.profile, epsilon)
        joined, place = np.unique(np.r_[self.epsilon, epsilon], return_index=True)
        low, high = np.r_[self.low, more.low], np.r_[self.high, more.high]
        return Cells(self.profile, joined, low[place], high[place])

    def lines_below(self) -> tuple[Array, Array]:
        """Return lines below it in each cell, from the left and from the right, at both ends.

        By convexity its slope is at least that in the cell before, and at most that in the one
        after.
        """
        h, low, high = np.diff(self.epsilon), self.low, self.high
        grown = np.expm1(h)
        drop = np.maximum(high[:-2] - low[1:-1], 0.0) * (grown[1:] / grown[:-1]) * np.exp(h[:-1])
        fall = np.maximum(low[1:-1] - high[2:], 0.0) * (grown[:-1] / grown[1:]) * np.exp(-h[:-1])
        start, end = low[:-1], low[1:]
        left = np.zeros((2, h.size))
        left[0, 1:] = start[1:]
        left[1, 1:] = start[1:] - drop * _SLOPES_ROUND - 2.0 * ULP * (start[1:] + drop)
        right = np.stack([end, end])
        right[0, :-1] = (end[:-1] + fall / _SLOPES_ROUND) * (1.0 - 2.0 * ULP)
        return left, right


@final
@dataclass(frozen=True, slots=True)
class GaussianProfile(Profile):
    """``Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)``, for ``mu > 0``.

    With ``a = eps/mu - mu/2`` and ``b = a + mu`` it is ``e^(-a^2/2) (R(a) - R(b))``, R the Mills
    ratio over ``sqrt(2 pi)``: nothing overflows, and the relative error is a few units in the last
    place over ``1 - R(b)/R(a)``.

    References:
        Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, corollary 2.13.
    """

    mu: float

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def dominating_mu(self) -> float:
        return self.mu

    def at(self, epsilon: Array) -> ProfileValues:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._at(
                np.clip(epsilon / self.mu - 0.5 * self.mu, -_LEAST_DEVIATIONS, _MOST_DEVIATIONS)
            )

    def _at(self, a: Array) -> ProfileValues:
        """Return delta where the smaller argument is a."""
        density = np.exp(-0.5 * a * a)
        tail = density * _mills(a + self.mu)
        estimate, error = (
            self._integrated(a, density) if self.mu < _CLOSE else _difference(a, density, tail)
        )
        # e^(-a^2/2) carries a^2 times the round-off of a; mu may be off by a few units itself.
        off = 8.0 * ULP * self.mu * _DENSITY_0 * density
        slack = error + off + ULP * (16.0 + 8.0 * a * a) * estimate
        lower = np.maximum(estimate - slack, 0.0)
        return ProfileValues(lower, estimate, np.minimum(estimate + slack + _SMALLEST, 1.0), -tail)

    def _integrated(self, a: Array, density: Array) -> tuple[Array, Array]:
        """Return the integral of ``-R'`` from a to b, without cancellation, and its error.

        ``-R'(x) = 1/sqrt(2 pi) - x R(x)`` has derivatives bounded by the moments of the half-normal
        distribution: on an interval of length 1/4 or less, six nodes leave less than 1e-19 of it.
        """
        total = np.zeros_like(a)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            x = a + self.mu * node
            total += weight * (_DENSITY_0 - x * _mills(x))
        scale = density * self.mu
        return scale * total, 64.0 * ULP * _DENSITY_0 * scale


def _difference(a: Array, density: Array, tail: Array) -> tuple[Array, Array]:
    """Return ``Phi(-a) - e^eps Phi(-b)`` as a difference, and its error."""
    from scipy.special import ndtr

    above = np.where(a < 0.0, ndtr(-a), density * _mills(np.maximum(a, 0.0)))
    error = ULP * (64.0 * above + np.where(a < 0.0, 8.0 * a * a, 0.0) * tail)
    return np.maximum(above - tail, 0.0), error


def _mills(x: Array) -> Array:
    """Return ``R(x) = Phi(-x) / e^(-x^2/2)``."""
    from scipy.special import erfcx

    return np.asarray(0.5 * erfcx(x / math.sqrt(2.0)))


@final
@dataclass(frozen=True, slots=True)
class PerfectPrivacy(Profile):
    """The profile of two equal distributions: 0."""

    @property
    def supremum(self) -> float:
        return 0.0

    @property
    def dominating_mu(self) -> float:
        return 0.0

    def at(self, epsilon: Array) -> ProfileValues:
        zero = np.zeros_like(epsilon)
        return ProfileValues(zero, zero, zero, zero)


@final
@dataclass(frozen=True, slots=True)
class SampledProfile(Profile):
    """``(P, Q) -> ((1-p) Q + p P, Q)``: with probability p the record is in the sample.

    ``delta(eps) = p delta_inner(ln(1 + (e^eps - 1) / p))``.

    References:
        Balle, Barthe and Gaboardi 2018, theorem 2.
    """

    inner: Profile
    rate: float

    @property
    def supremum(self) -> float:
        largest = self.inner.supremum
        if largest > _LARGEST_EXPONENT:
            return max(largest + math.log(self.rate), 0.0) * (1.0 + 4.0 * ULP) + _SMALL_EPSILON
        return math.log1p(self.rate * math.expm1(largest)) * (1.0 + 8.0 * ULP)

    @property
    def smooth(self) -> bool:
        return self.inner.smooth

    @property
    def breakpoints(self) -> Array:
        with np.errstate(over="ignore"):
            near = np.log1p(self.rate * np.expm1(self.inner.breakpoints))
        far = np.maximum(self.inner.breakpoints + math.log(self.rate), 0.0)
        return np.where(self.inner.breakpoints > _LARGEST_EXPONENT, far, near)

    @property
    def infinity_mass_lower(self) -> float:
        return self.rate * self.inner.infinity_mass_lower * (1.0 - ULP)

    @property
    def dominating_mu(self) -> float:
        """The inner one's, as ``ln(1 + (e^eps - 1) / p) >= eps``."""
        return self.inner.dominating_mu

    def at(self, epsilon: Array) -> ProfileValues:
        p = self.rate
        inner, off = self._amplified(epsilon)
        lower = self.inner.at(inner + off).lower
        upper = self.inner.at(np.maximum(inner - off, 0.0)).upper
        middle = self.inner.at(inner)
        # d inner / d eps = e^eps / (e^eps - 1 + p)
        with np.errstate(divide="ignore", over="ignore"):
            rise = 1.0 / (p - np.expm1(-epsilon) * (1.0 - p))
        return ProfileValues(
            np.maximum(p * lower * (1.0 - 2.0 * ULP) - _SMALLEST, 0.0),
            p * middle.estimate,
            np.where(upper > 0.0, p * upper * (1.0 + 2.0 * ULP) + _SMALLEST, 0.0),
            p * middle.slope * np.minimum(rise, _STEEPEST),
        )

    def _amplified(self, epsilon: Array) -> tuple[Array, Array]:
        """Return ``ln(1 + (e^eps - 1) / p)``, and a bound on its error."""
        p, log_p = self.rate, math.log(self.rate)
        large = (epsilon > 30.0) | (p < _TINY_RATE)
        with np.errstate(all="ignore"):
            # = ln(1 + e^(ln(e^eps - 1) - ln p)), in logarithms where it may overflow
            log_grown = np.where(epsilon > 30.0, epsilon, np.log(np.expm1(epsilon)))
            log_grown += np.where(epsilon > 30.0, np.log1p(-np.exp(-epsilon)), 0.0)
            far = np.logaddexp(0.0, log_grown - log_p)
            near = np.log1p(np.expm1(np.where(large, 0.0, epsilon)) / p)
        inner = np.where(large, far, near)
        scale = np.where(large, np.abs(log_p) + np.abs(log_grown), 0.0)
        scale = np.where(np.isfinite(scale), scale, 0.0)
        return inner, 8.0 * ULP * (np.abs(inner) + 1.0 + scale)


class CombinedProfile(Profile):
    """A profile made of others: unless it says otherwise, as far-reaching as any of them."""

    __slots__ = ()

    @property
    @abstractmethod
    def parts(self) -> tuple[Profile, ...]:
        """The others."""

    @property
    def supremum(self) -> float:
        return max(part.supremum for part in self.parts)

    @property
    def smooth(self) -> bool:
        return all(part.smooth for part in self.parts)

    @property
    def breakpoints(self) -> Array:
        return np.unique(np.concatenate([part.breakpoints for part in self.parts]))

    @property
    def infinity_mass_lower(self) -> float:
        return max(part.infinity_mass_lower for part in self.parts)

    @property
    def dominating_mu(self) -> float:
        return max(part.dominating_mu for part in self.parts)


@final
@dataclass(frozen=True, slots=True)
class MaximumProfile(CombinedProfile):
    """The larger of two profiles, at each epsilon."""

    first: Profile
    second: Profile

    @property
    def parts(self) -> tuple[Profile, ...]:
        return self.first, self.second

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        one, two = self.first.precisely(epsilon), self.second.precisely(epsilon)
        return max(one[0], two[0]), max(one[1], two[1]), max(one[2], two[2])

    def at(self, epsilon: Array) -> ProfileValues:
        one = self.first.at(epsilon)
        two = self.second.above(epsilon, one.lower)
        return ProfileValues(
            np.maximum(one.lower, two.lower),
            np.maximum(one.estimate, two.estimate),
            np.maximum(one.upper, two.upper),
            np.where(one.estimate >= two.estimate, one.slope, two.slope),
        )


@final
@dataclass(frozen=True, slots=True)
class SwappedSampledProfile(Profile):
    """``(Q, (1-p) Q + p P)``, the other direction of ``SampledProfile``.

    With ``w = 1 - (1-p) e^eps``, ``delta(eps) = w delta_inner(ln(p e^eps / w))`` where w > 0, and 0
    beyond; ``inner`` is the profile of (Q, P).
    """

    inner: Profile
    rate: float

    @property
    def smooth(self) -> bool:
        return self.inner.smooth

    @property
    def breakpoints(self) -> Array:
        return -np.log1p(self.rate * np.expm1(-self.inner.breakpoints))

    @property
    def dominating_mu(self) -> float:
        """The inner one's, as w <= p in ``ln(p e^eps / w)``."""
        return self.inner.dominating_mu

    @property
    def supremum(self) -> float:
        """``-ln(1 - p + p e^-sup)``; ``-ln(1 - p)`` where the inner loss may be infinite."""
        p, largest = self.rate, self.inner.supremum
        if p == 1.0:
            return largest
        kept = 0.0 if self.inner.infinity_mass_lower > 0.0 else p * math.exp(-largest)
        lost = p if kept == 0.0 else -p * math.expm1(-largest)
        # Either form keeps its relative precision only on its side.
        near_one = kept == 0.0 or lost < 0.5
        log_rest = math.log1p(-lost) if near_one else math.log((1.0 - p) + kept)
        return -log_rest * (1.0 + 8.0 * ULP)

    def at(self, epsilon: Array) -> ProfileValues:
        p = self.rate
        grown = (1.0 - p) * np.expm1(np.minimum(epsilon, 700.0))
        slack = 8.0 * ULP * (p + grown)
        # Where w may be positive, it is taken to be at least its slack.
        inside = p - grown + slack > 0.0
        w = np.where(inside, np.maximum(p - grown, slack), 1.0)
        inner = np.where(inside, np.maximum(epsilon + np.log(p / w), 0.0), 0.0)
        off = 8.0 * ULP * (inner + 1.0 + epsilon) + 2.0 * slack / w
        lower = self.inner.at(inner + off).lower
        upper = self.inner.at(np.maximum(inner - off, 0.0)).upper
        middle = self.inner.at(inner)
        slope = middle.slope - (1.0 - w) * middle.estimate
        above = (w + slack) * upper * (1.0 + 2.0 * ULP) + _SMALLEST
        return ProfileValues(
            np.where(inside, np.maximum((w - slack) * lower * (1.0 - ULP) - _SMALLEST, 0.0), 0.0),
            np.where(inside, w * middle.estimate, 0.0),
            np.where(inside & (upper > 0.0), above, 0.0),
            np.where(inside, slope, 0.0),
        )


_CHAIN_LARGEST_EXPONENT: Final = 690.0
# Below this an exponential less 1 over another one is the number of records, next to it.
_SMALL: Final = 1e-12
_ROUND: Final = 1.0 + 64.0 * ULP


@final
@dataclass(frozen=True, slots=True)
class ChainProfile(CombinedProfile):
    """The smaller of a profile for a group and of what a chain of single records gives.

    For distributions ``P_0, ..., P_g`` of which neighbours have the profile ``one``,

        delta_g(eps) <= (1 + e^(eps/g) + ... + e^((g-1) eps/g)) one(eps/g):

    ``H_(e^(a+b))(P || R) <= H_(e^a)(P || Q) + e^a H_(e^b)(Q || R)``, as for every event
    ``P(S) - e^(a+b) R(S) = (P(S) - e^a Q(S)) + e^a (Q(S) - e^b R(S))``, g times over.

    Args:
        group: A profile for the group, which also has the lower ends.
        one: The profile of each pair of neighbours on the way, all in one order.
        size: The number g of records, at least 1.
    """

    group: Profile
    one: Profile
    size: int

    @property
    def parts(self) -> tuple[Profile, ...]:
        return (self.group,)

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        lower, middle, upper = self.group.precisely(epsilon)
        share = self._share(np.array([epsilon]))
        link = self.one.precisely(float(share[0]))[2]
        chained = float(self._chained(np.array([epsilon]), share, np.array([link]))[0])
        return (lower, middle, upper) if upper <= chained else (lower, chained, chained)

    def at(self, epsilon: Array) -> ProfileValues:
        found, share = self.group.at(epsilon), self._share(epsilon)
        link = self.one.at(share)
        chained = self._chained(epsilon, share, link.upper)
        shorter = chained < found.upper
        with np.errstate(over="ignore", invalid="ignore"):
            slope = self._factor(share) * link.slope / self.size
        return ProfileValues(
            found.lower,
            np.where(shorter, chained, found.estimate),
            np.where(shorter, chained, found.upper),
            np.where(shorter, slope, found.slope),
        )

    def _share(self, epsilon: Array) -> Array:
        """Return the part of one record, rounded down."""
        return np.asarray(epsilon / self.size * (1.0 - 4.0 * ULP))

    def _chained(self, epsilon: Array, share: Array, link: Array) -> Array:
        """Return the chain's bound, rounded up; 1 where exponentials end."""
        with np.errstate(over="ignore", invalid="ignore"):
            bound = self._factor(share) * link * _ROUND + _SMALLEST
        return np.where((epsilon <= _CHAIN_LARGEST_EXPONENT) & (bound < 1.0), bound, 1.0)

    def _factor(self, share: Array) -> Array:
        """Return ``(e^(g share) - 1) / (e^share - 1)``, rounded up but for a few last places."""
        whole = np.minimum(share * self.size * (1.0 + 4.0 * ULP), _CHAIN_LARGEST_EXPONENT + 1.0)
        small = share < _SMALL
        step = np.expm1(np.where(small, 1.0, share))
        return np.where(small, self.size * np.exp(whole), np.expm1(whole) / step)
