"""The loss of Gaussian noise on a query that a record changes by a random amount."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple, final

import numpy as np

from hockeystick.mechanisms.noise.gaussian import GaussianMixture
from hockeystick.numerics import ULP, decimal
from hockeystick.numerics.rounding import short_up
from hockeystick.privacy_loss.bounds.moments import sixth_moment_of_normal
from hockeystick.privacy_loss.core.base import (
    Array,
    DominatingPair,
    Masses,
    NoAnalysisError,
    PrivacyLoss,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.cell_loss import UnboundedLoss
from hockeystick.privacy_loss.core.composition import NoiselessLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    DensityLoss,
    UncertainEdges,
    edges_at,
    log_masses,
    log_mixture,
    mirrored,
    moved,
)
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

_STEPS: Final = 200
# A slope that changes by no more than this share is as good as constant.
_STEADY: Final = 0.04
# Exponents beyond this are taken as infinite, or left to the difference of the positions.
_LARGEST_EXPONENT: Final = 500.0


@final
@dataclass(frozen=True, slots=True)
class OppositeMixturesLoss(UnboundedLoss, DensityLoss):
    """The loss of ``sum_k w_k N(m_k, 1)`` against ``sum_k w_k N(-m_k, 1)``, all ``m_k >= 0``.

    At the output x it is ``T(x) - T(-x)`` with ``T(x) = ln sum_k w_k exp(m_k x - m_k^2/2)``: odd,
    and rising, as T rises. It is the same in both directions. The distances ascend.
    """

    distances: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]

    same_both_ways = True

    @property
    def dominating_mu_squared(self) -> Fraction:
        """That of twice the largest distance: the mixtures have the same weights."""
        return short_up(4 * max(self.distances) ** 2)

    @property
    def sixth_moment_upper(self) -> float:
        """That of the largest m: ``|T'| <= m``, so that the loss is at most ``2 m |x|``."""
        farthest = float(max(self.distances))
        return sixth_moment_of_normal(2.0 * farthest * farthest, 2.0 * farthest)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln sum_k w_k exp(2 c (c+1) m_k^2)``, rounded up: powers are convex."""
        return _log_mean_power(self.distances, self.weights, 2.0 * c * (c + 1.0))

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        with np.errstate(all="ignore"):
            parts = self.distances, self.weights
            curve = _OddCurve(*(np.array(one, dtype=np.float64) for one in parts))
            at = curve.outputs(edges)
            means = curve.distances, -curve.distances
            return Masses.of(*(_mixed_masses(at, mean, curve.weights) for mean in means))


def _log_mean_power(
    distances: Sequence[Fraction], weights: Sequence[Fraction], rate: float
) -> float:
    """Return ``ln sum_k w_k exp(rate m_k^2)``, rounded up."""
    rate *= 1.0 + 16.0 * ULP
    upper = rate * float(max(distances)) ** 2
    if upper < _LARGEST_EXPONENT:
        pairs = zip(distances, weights, strict=True)
        terms = [float(w) * math.expm1(rate * float(m) ** 2) for m, w in pairs]
        upper = math.log1p(math.fsum(terms)) * (1.0 + (64.0 + 8.0 * upper) * ULP)
    return upper


def _mixed_masses(at: UncertainEdges, means: Array, weights: Array) -> tuple[Array, Array]:
    """Return the masses of cells of the output under a mixture of normals, and errors."""
    found = (np.full(at.width.size, -math.inf), np.zeros(at.width.size))
    for mean, weight in zip(means.tolist(), weights.tolist(), strict=True):
        found = log_mixture(found, 1.0, log_masses(moved(at, -mean)), weight)
    return found


class _ValueAndSlope(NamedTuple):
    """A function's value and slope at some outputs, and the error of the value."""

    value: Array
    slope: Array
    error: Array


class _OddCurve(NamedTuple):
    """The loss as a function of the output, with parameters each within half a unit."""

    distances: Array
    weights: Array

    def outputs(self, edges: UncertainEdges) -> UncertainEdges:
        """Return the outputs at which the loss takes the values of edges, with proven errors."""
        target = edges.at
        finite = np.where(np.isfinite(target), target, 0.0)
        at = np.where(finite == 0.0, 0.0, np.copysign(self._solved(np.abs(finite)), finite))
        read = self._value_at(at)
        # The loss at 0 is exactly 0.
        unsure = np.where(at == 0.0, 0.0, read.error)
        off = 1.01 * (np.abs(read.value - finite) + unsure + edges.error)
        # Either side's slope changes by at most a quarter of the squared range of the distances.
        bend = 0.5 * float(np.ptp(self.distances)) ** 2
        error = off / ((1.0 - _STEADY) * read.slope)
        steady = bend * error <= _STEADY * read.slope
        # Of x and -x one is at least 0, and T' rises.
        error = np.where(steady, error, 1.01 * off / self._rising(np.zeros(1)).slope[0])
        sizes = np.where(np.isfinite(target), np.abs(at), 0.0)
        at = np.where(np.isinf(target), target, at)
        return edges_at(at, np.where(np.isinf(target), 0.0, error + 4.0 * ULP * sizes))

    def _solved(self, target: Array) -> Array:
        """Return x >= 0 where the loss is near a target >= 0, by Newton's method in a bracket.

        ``T(-x) <= 0 <= x``, so that the loss is at least what each component gives.
        """
        low = np.zeros_like(target)
        moving = self.distances > 0.0
        distance, weight = self.distances[moving, None], self.weights[moving, None]
        high = np.min((target - np.log(weight)) / distance + 0.5 * distance, axis=0)
        at = 0.5 * high
        for _ in range(_STEPS):
            read = self._value_at(at)
            above = read.value > target
            low, high = np.where(above, low, at), np.where(above, at, high)
            moved = at - (read.value - target) / read.slope
            inside = (moved > low) & (moved < high)
            moved = np.where(inside, moved, 0.5 * (low + high))
            step, at = np.abs(moved - at), moved
            if bool((step <= 4.0 * ULP * (np.abs(at) + 1e-300)).all()):
                break
        return np.asarray(at)

    def _value_at(self, at: Array) -> _ValueAndSlope:
        right, left = self._rising(at), self._rising(-at)
        return _ValueAndSlope(
            right.value - left.value,
            right.slope + left.slope,
            right.error + left.error + ULP * np.abs(right.value - left.value),
        )

    def _rising(self, at: Array) -> _ValueAndSlope:
        """Return T and T' at some outputs.

        T is the logarithm of a mean of numbers near 1 where x is small: ``ln1p`` of a sum of
        ``expm1`` loses nothing there.
        """
        distance, weight = self.distances[:, None], self.weights[:, None]
        exponent = distance * (at - 0.5 * distance)
        top = exponent.max(axis=0)
        small = top <= 1.0
        share = weight * np.exp(exponent - top)
        total = share.sum(axis=0)
        slope = (share * distance).sum(axis=0) / total
        rest = (weight * np.expm1(np.minimum(exponent, 1.0))).sum(axis=0)
        value = np.where(small, np.log1p(rest), top + np.log(total))
        sizes = distance * (np.abs(at) + distance) + 2.0
        unsure = (4.0 * sizes * share).sum(axis=0) / total
        # The weights add up to 1 to within half a unit each, which log1p takes for exact.
        unsure = unsure + 8.0 + 4.0 * distance.size + 2.0 * np.abs(top)
        return _ValueAndSlope(value, slope, ULP * unsure)


_GAUSSIAN_MIXTURE_STEPS: Final = 60
_REACH: Final = (1e-100, 1e100)
# Components whose logarithm is this far below that of the nearest one do not count.
_NEGLIGIBLE: Final = 50.0


@final
@dataclass(frozen=True, slots=True)
class GaussianMixtureLoss(UnboundedLoss, DensityLoss):
    """The loss of ``sum_k w_k N(m_k, 1)`` against N(0, 1), or the other way round, all m_k > 0.

    At the output x it is ``t(x) = ln sum_k w_k exp(m_k x - m_k^2/2)`` when removing, which rises
    and is convex, with slopes between the least and the largest m_k; when adding it is ``-t(x)``.
    """

    distances: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]
    removing: bool

    @property
    def clt_mu_squared(self) -> float:
        """Return the chi-square divergence ``sum_jk w_j w_k exp(m_j m_k) - 1``."""
        pairs = list(zip(map(float, self.distances), map(float, self.weights), strict=True))
        if pairs[-1][0] > 26.0:
            return math.inf  # beyond floats
        return math.fsum(v * w * math.expm1(m * n) for m, v in pairs for n, w in pairs)

    @property
    def dominating_mu_squared(self) -> Fraction:
        return short_up(max(self.distances) ** 2)

    @property
    def sixth_moment_upper(self) -> float:
        """That of the largest m: the loss is between two ``m x - m^2/2``, ``|x| <= |Z| + m``."""
        farthest = float(max(self.distances))
        return sixth_moment_of_normal(1.5 * farthest * farthest, farthest)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln sum_k w_k exp(c (c+1) m_k^2 / 2)``, rounded up: powers are convex."""
        return _log_mean_power(self.distances, self.weights, 0.5 * c * (c + 1.0))

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        with np.errstate(all="ignore"):
            curve = _Curve.of(self.distances, self.weights)
            found = []
            for first, part in curve.by_components(edges if self.removing else mirrored(edges)):
                at = first.outputs(part)
                mix = _mixed_masses(at, first.distances, first.weights)
                found.append(Masses.of(mix, log_masses(at)))
        mixed, alone, error = map(np.concatenate, zip(*found, strict=True))
        if self.removing:
            return Masses(mixed, alone, error)
        return Masses(alone[::-1], mixed[::-1], error[::-1])


class _ValueAndShares(NamedTuple):
    """The loss t, its slope, each component's share, the error of t, and each share's relative."""

    value: Array
    slope: Array
    share: Array
    error: Array
    share_error: Array


class _Curve(NamedTuple):
    """The loss t as a function of the output, in floats, each within half a unit."""

    distances: Array
    weights: Array

    @classmethod
    def of(cls, distances: Sequence[Fraction], weights: Sequence[Fraction]) -> _Curve:
        pairs = sorted(zip(map(float, distances), map(float, weights), strict=True))
        return cls(*map(np.array, zip(*pairs, strict=True)))

    def by_components(self, edges: UncertainEdges) -> Iterator[tuple[_Curve, UncertainEdges]]:
        """Yield runs of cells with the components that count there, the nearest ones.

        Component k is below ``exp(-50)`` of the first for all x up to some x_k, so that the masses
        and the loss there are those of the components before it to ``exp(-45)``: far below the
        unit in the last place by which the errors of edges, widths and masses are raised.
        """
        gap = np.log(self.weights[0] / self.weights[1:]) - _NEGLIGIBLE
        first, others = self.distances[0], self.distances[1:]
        enters = gap / (others - first) + 0.5 * (others + first)
        enters = np.minimum.accumulate(enters[::-1])[::-1]
        top = self._at_most(np.nan_to_num(edges.at[1:] + edges.error[1:], nan=math.inf))
        many = 1 + np.searchsorted(enters, np.maximum.accumulate(top))
        starts = [0, *(1 + np.flatnonzero(np.diff(many))).tolist(), many.size]
        for start, stop in pairwise(starts):
            count = int(many[start])
            slack = ULP if count < self.distances.size else 0.0
            part = UncertainEdges(
                edges.at[start : stop + 1],
                edges.error[start : stop + 1] + slack,
                edges.width[start:stop],
                edges.width_error[start:stop] + slack,
            )
            yield _Curve(self.distances[:count], self.weights[:count]), part

    def _at_most(self, target: Array) -> Array:
        """Return x that are not below the outputs at which the loss takes the values.

        The loss is at least that of any one component, so that no root is above that component's.
        """
        starts = (target - np.log(self.weights)[:, None]) / self.distances[:, None]
        return np.asarray(np.min(starts + 0.5 * self.distances[:, None], axis=0))

    def outputs(self, edges: UncertainEdges) -> UncertainEdges:
        """Return the outputs at which the loss takes the values of edges, with proven errors."""
        target = edges.at
        at = self._solved(target)
        read = self._value_at(at)
        slope = read.slope
        off = 1.01 * (np.abs(read.value - target) + read.error + edges.error)
        bend = 0.25 * float(np.ptp(self.distances)) ** 2
        error = off / ((1.0 - _STEADY) * slope)
        steady = bend * error <= _STEADY * slope
        error = np.where(steady, error, off / float(self.distances.min()))
        error = np.where(np.isinf(target), 0.0, error)
        at = np.where(np.isinf(target), target, at)
        width, width_error = self._widths(edges, slope[:-1], read.share[:, :-1])
        width_error = (
            width_error + 1.1 * (read.share_error + float(np.ptp(self.distances)) * error)[:-1]
        )
        plain = np.diff(at)
        rough = ~(width_error < math.inf)
        return UncertainEdges(
            at,
            error,
            np.where(rough, plain, width),
            np.where(rough, (error[1:] + error[:-1]) / plain, width_error),
        )

    def _solved(self, target: Array) -> Array:
        """Return x with t(x) near a target by Newton's method, from above, where t is convex."""
        finite = np.where(np.isfinite(target), target, 0.0)
        at = self._at_most(finite)
        for _ in range(_GAUSSIAN_MIXTURE_STEPS):
            read = self._value_at(at)
            step = (read.value - finite) / read.slope
            at = at - step
            if bool((np.abs(step) <= 8.0 * ULP * (np.abs(at) + self.distances.max())).all()):
                break
        return at

    def _value_at(self, at: Array) -> _ValueAndShares:
        distance, log_weight = self.distances[:, None], np.log(self.weights)[:, None]
        parts = log_weight + distance * (at - 0.5 * distance)
        top = parts.max(axis=0)
        share = np.exp(parts - top)
        total = share.sum(axis=0)
        share = share / total
        sizes = distance * (np.abs(at) + distance) + np.abs(log_weight)
        unsure = ULP * (4.0 * (sizes * share).sum(axis=0) + np.abs(top) + 8.0 + 2.0 * len(share))
        share_unsure = ULP * (8.0 * sizes.max(axis=0) + 16.0 + 2.0 * len(share))
        return _ValueAndShares(
            top + np.log(total), (share * distance).sum(axis=0), share, unsure, share_unsure
        )

    def _widths(self, edges: UncertainEdges, slope: Array, share: Array) -> tuple[Array, Array]:
        """Return the distances of neighbouring outputs, and errors, without those of the shares.

        Above an edge the loss grows by ``ln(1 + sum_k share_k (exp(m_k h) - 1))``, convex in h and
        at least ``slope h``: Newton's method from above once more.
        """
        distance = self.distances[:, None]
        growth = np.where(np.isfinite(edges.width), edges.width, 0.0)
        width = growth / slope
        reach = float(self.distances.max()) * width
        width = np.where(reach <= _LARGEST_EXPONENT, width, 0.0)
        value = np.zeros_like(width)
        for _ in range(_GAUSSIAN_MIXTURE_STEPS):
            excess = (share * np.expm1(distance * width)).sum(axis=0)
            value = np.log1p(excess)
            steep = (share * distance * np.exp(distance * width)).sum(axis=0) / (1.0 + excess)
            step = (value - growth) / steep
            width = np.where(reach <= _LARGEST_EXPONENT, width - step, 0.0)
            if bool((np.abs(step) <= 8.0 * ULP * width).all()):
                break
        left = np.abs(np.log1p((share * np.expm1(distance * width)).sum(axis=0)) - growth) / growth
        off = left + ULP * (16.0 + 4.0 * reach) + edges.width_error
        return width, np.where((width > 0.0) & np.isfinite(edges.width), off, math.inf)


@dominating_pair.register
def _(mechanism: GaussianMixture) -> DominatingPair:
    moves: dict[Fraction, Fraction] = defaultdict(Fraction)
    for move, chance in zip(mechanism.sensitivities, mechanism.probabilities, strict=True):
        moves[decimal(move)] += decimal(chance)
    noise = mechanism.noise_multiplier
    return DominatingPair(*(mixture_loss(noise, moves, removing) for removing in (True, False)))


def mixture_loss(
    noise_multiplier: float | Fraction, moves: Mapping[Fraction, Fraction], removing: bool
) -> PrivacyLoss | None:
    """Return the loss in one direction, of an answer that moves by amounts with these chances.

    Raises:
        NoAnalysisError: If an amount or a chance is out of the reach of floats.
    """
    total = sum(moves.values())
    moving = {move: chance / total for move, chance in sorted(moves.items()) if move and chance}
    if not moving or noise_multiplier == math.inf:
        return None
    rate, noise = sum(moving.values(), Fraction(0)), decimal(noise_multiplier)
    inner: PrivacyLoss
    if noise == 0:
        inner = NoiselessLoss(1.0, removing)
    elif len(moving) == 1:
        inner = GaussianLoss(noise / next(iter(moving)))
    else:
        distances = tuple(move / noise for move in moving)
        if not all(_REACH[0] <= one <= _REACH[1] for one in (*distances, *moving.values())):
            raise NoAnalysisError("a sensitivity or a probability is out of the reach of floats")
        weights = tuple(chance / rate for chance in moving.values())
        inner = GaussianMixtureLoss(distances, weights, removing)
    return inner if rate == 1 else sampled_loss(inner, rate, removing)
