"""The losses of a selection of partitions by a noisy threshold.

Let D be neighbours' common users, and let one user more be in k partitions: alone in j of them, and
with others in the rest. Noises are independent, so that the outputs of different partitions are.

*A partition of this user alone.* Without the user nobody looks at it. With the user it is shown
with probability ``p = P[1 + Z >= threshold]``. Removing, its loss is infinite with probability p
and ``ln(1 - p)`` otherwise; adding, it is ``-ln(1 - p)``.

*A partition with others.* The outcome is a function of the noisy count, n + 1 + Z or n + Z, so that
it costs at most what the noise costs; as n grows, the threshold hides less and less of it.

The losses of neighbours with j are thus j of the first kind plus k - j of the second, and no
neighbours with that j exceed them (data processing); a user of fewer partitions has less. So

    delta(eps) = max over j of delta_j(eps)     for one run by itself,

which is attained in the limit of large n. For j from a to b, delta_j is at most that of b
partitions of the first kind and k - a of the second. Where other releases are composed, j may
depend on their outcomes, and worse than any j that is fixed; all that is dominated by k of both.

Under replace-one adjacency both users have such partitions: k counts fall and k rise, and the
partitions of either user alone have their losses in either order. What is attained is looked at
for no partition of a user alone, and for all, so that one run by itself is between two bounds too.

References:
    Wilkins, Kifer, Zhang and Karrer, "Exact Privacy Analysis of the Gaussian Sparse Histogram
    Mechanism", 2024 (arXiv 2202.01100), for Gaussian noise and one run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, PartitionSelection
from hockeystick.mechanisms.selection.partition_selection import CountNoise
from hockeystick.numerics import Ball, FloatAndDecimal, largest_reading, least_reading
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import DIGITS, as_mpf, fraction_of
from hockeystick.precision.integer_noise import discrete_gaussian_tail, discrete_laplace_tail
from hockeystick.precision.profiles import phi
from hockeystick.privacy_loss.core.base import (
    CGFEstimate,
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.core.composition import (
    ALONE,
    KIND,
    Composition,
    ConstantLoss,
    NoiselessLoss,
    Terms,
    complement_bounds,
    largest_when_adding,
    losses_of_run,
    once,
)

# Probabilities are computed to DIGITS digits and widened by this share.
_SHARE: Final = 1e-25
# Noise that is farther away than this many scales is rarer than _LEAST.
_FARTHEST: Final = 1_000
_FARTHEST_OF_GAUSSIANS: Final = 40
# Smaller ones are rounded up to this, and down to 0.
_LEAST: Final = Fraction(1, 10**300)
# Up to this many partitions every j is looked at; beyond, blocks grow by the other factor.
_FEW: Final = 8
_GROWTH: Final = 3


@final
@dataclass(frozen=True, slots=True)
class UnseenPartitionLoss(PrivacyLoss):
    """Infinite with probability p, else ``ln(1 - p)``.

    Upper ends take p as ``rate``, lower ends as ``least``: 0 where they do not rely on it.
    """

    rate: Fraction
    least: Fraction = Fraction(0)

    @property
    def attained(self) -> NoiselessLoss | None:
        return NoiselessLoss(self.least, True) if self.least else None

    @property
    def infinity_mass(self) -> FloatAndDecimal:
        return FloatAndDecimal.of(self.rate)

    @property
    def finite(self) -> ConstantLoss | None:
        """``ln(1 - p)`` for either p; None where the partition is always shown."""
        below_1 = [p for p in (self.rate, self.least or self.rate) if p < 1]
        if not below_1:
            return None
        return ConstantLoss(complement_bounds(below_1[0])[0], complement_bounds(below_1[-1])[1])

    supremum: ClassVar[float] = math.inf

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return CGFEstimate(math.inf, math.inf, 0.0)

    def cgf_bounds(self, c: float) -> Ball:
        return Ball(math.inf, 0.0)


@dominating_pair.register
def _(mechanism: PartitionSelection) -> DominatingPair:
    raise NoAnalysisError(ALONE)


@losses_of_run.register
def _(mechanism: PartitionSelection) -> Composition:
    noise = dominating_pair(mechanism.noise)
    parts = _Kinds(noise, *shown_alone(mechanism.noise, mechanism.threshold), mechanism.adjacency)
    k = mechanism.partitions
    together = parts.losses(k, k, exact=False)
    apart = replace(parts.losses(0, k, exact=True), place=((KIND, 2, 1),))
    alone = [] if mechanism.adjacency is Adjacency.REPLACE_ONE else blocks(k)
    each = (parts.losses(k - low, high, exact=low == high) for low, high in alone)
    return replace(together, others=(apart,), place=((KIND, 2, 0),), alone=tuple(each))


def blocks(k: int) -> Iterator[tuple[int, int]]:
    """Return disjoint blocks of the numbers 0 to k: both ends alone, and small j apart."""
    yield 0, 0
    least = 1
    while least < k:
        most = least if k <= _FEW else min(_GROWTH * least, k - 1)
        if most > 3 * k // 4 > least:
            most = 3 * k // 4
        yield least, most
        least = most + 1
    yield k, k


@final
@dataclass(frozen=True, slots=True)
class _Kinds:
    """What partitions of either kind add to the losses, under an adjacency."""

    noise: DominatingPair
    least: Fraction
    most: Fraction
    adjacency: Adjacency

    def losses(self, shared: int, alone: int, *, exact: bool) -> Composition:
        """Return the losses of neighbours with so many partitions of either kind.

        Where they only dominate, lower ends are those without partitions of users alone.
        """
        least = self.least if exact else Fraction(0)
        unseen: tuple[PrivacyLoss | None, PrivacyLoss | None] = None, None
        p = self.most
        if p == 1:
            # Adding, a p of almost 1 is no infinity mass that is attained.
            unseen = UnseenPartitionLoss(p, least), UnseenPartitionLoss(p, Fraction(least == 1))
        elif p > 0:
            constant = ConstantLoss(-complement_bounds(least)[1], largest_when_adding(p))
            unseen = UnseenPartitionLoss(p, least), constant
        own = [_times(once(one), alone) for one in unseen]
        others = [_times(once(one), shared) for one in self.noise]
        if self.adjacency is Adjacency.REPLACE_ONE:
            both = own[0] + own[1] + others[0] + others[1]
            return Composition(both, both)
        return Composition(own[0] + others[0], own[1] + others[1])


def _times(terms: Terms, count: int) -> Terms:
    return tuple((loss, runs * count) for loss, runs in terms) if count else ()


def shown_alone(noise: CountNoise, threshold: float) -> tuple[Fraction, Fraction]:
    """Return bounds of ``P[1 + Z >= threshold]`` over all readings of the numbers."""
    spread = _spread(noise)
    if spread == math.inf:
        return Fraction(1, 2), Fraction(1, 2)
    gaps = {least_reading(threshold) - 1, largest_reading(threshold) - 1}
    if spread == 0.0:
        seen = [Fraction(gap <= 0) for gap in gaps]
        return min(seen), max(seen)
    with working_digits(DIGITS):
        scales = {least_reading(spread), largest_reading(spread)}
        found = [_tail(noise, scale, gap) for scale in scales for gap in gaps]
        share = mp.mpf(_SHARE)
        low, high = fraction_of(min(found) * (1 - share)), fraction_of(max(found) * (1 + share))
    return low if low >= _LEAST else Fraction(0), min(max(high, _LEAST), Fraction(1))


def _spread(noise: CountNoise) -> float:
    if isinstance(noise, Gaussian):
        return noise.noise_multiplier
    return noise.sigma if isinstance(noise, DiscreteGaussian) else noise.scale


def _tail(noise: CountNoise, scale: Fraction, gap: Fraction) -> mpf:
    """Return ``P[Z >= gap]`` of noise of a scale, to mpmath's precision."""
    far = _FARTHEST_OF_GAUSSIANS if isinstance(noise, Gaussian | DiscreteGaussian) else _FARTHEST
    if abs(gap) > far * scale:
        return mp.zero if gap > 0 else mp.one
    if isinstance(noise, DiscreteGaussian):
        return discrete_gaussian_tail(scale, math.ceil(gap))
    if isinstance(noise, DiscreteLaplace):
        return discrete_laplace_tail(scale, math.ceil(gap))
    at = as_mpf(gap / scale)
    if isinstance(noise, Gaussian):
        return phi(-at)
    return mp.exp(-at) / 2 if at > 0 else 1 - mp.exp(at) / 2
