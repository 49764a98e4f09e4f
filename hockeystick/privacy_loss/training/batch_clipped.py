"""The pair of losses of sums of batches that are clipped as a whole.

The example that differs moves its batch's sum by at most 2C: the pair of half the noise dominates.
The loss of data of a given size depends on the probability that the batch holds another example.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch
from typing import Final, cast

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import BatchClipped, Gaussian, PoissonSubsampled, RandomAllocation
from hockeystick.numerics import decimal
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair, sampled_loss
from hockeystick.privacy_loss.guarantees.least_favourable import ContaminatedLoss
from hockeystick.privacy_loss.noise.gaussian_mixture import GaussianMixtureLoss
from hockeystick.privacy_loss.sampling.random_allocation import AllocationLoss

# A chance to be alone is rounded up to this at least.
_LEAST: Final = Fraction(1, 10**90)
_DIGITS: Final = 60
# Noise for which the mixture of two Gaussians is in the reach of floats.
_REACH: Final = (1e-90, 1e90)
# More contamination than this leaves next to nothing.
_MOST_CONTAMINATED: Final = 0.25
# The order, in units of one over the width of the loss, at which concrete data are compared.
_ORDER: Final = 5.0


@dominating_pair.register
def _(mechanism: BatchClipped) -> DominatingPair:
    inner, examples = mechanism.inner, mechanism.examples
    alone = dominating_pair(inner)
    if examples == 1 and mechanism.adjacency is Adjacency.ZERO_OUT:
        return alone
    noise = _noise_of(inner)
    twice = dominating_pair(replace(inner, inner=Gaussian(noise / 2.0)))
    known = _single_batch(inner) and examples > 1
    if known or noise in (0.0, math.inf) or None in (*twice, *alone):
        return twice
    lonely = _probability_alone(inner, examples)
    ways = zip((True, False), twice, alone, strict=True)
    return DominatingPair(
        *(
            DominatedLoss(
                cast(CellLoss, above),
                _attained_by_data(
                    inner, cast(PrivacyLoss, above), cast(PrivacyLoss, below), lonely, way
                ),
            )
            for way, above, below in ways
        )
    )


def _noise_of(inner: PoissonSubsampled | RandomAllocation) -> float:
    """Return the noise multiplier."""
    return cast(Gaussian, inner.inner).noise_multiplier


def _single_batch(inner: PoissonSubsampled | RandomAllocation) -> bool:
    """Return whether every batch holds all examples."""
    if isinstance(inner, RandomAllocation):
        return inner.participations == inner.steps
    return inner.rate == 1


def _probability_alone(inner: PoissonSubsampled | RandomAllocation, examples: int) -> Fraction:
    """Return the chance that a given batch holds none of the other examples, rounded up."""
    from hockeystick.numerics.multiprecision import mp

    if isinstance(inner, RandomAllocation):
        rate = Fraction(inner.participations, inner.steps)
    else:
        rate = decimal(inner.rate)
    if examples == 1:
        return Fraction(1)
    with working_digits(_DIGITS):
        missed = 1 - mp.mpf(rate.numerator) / rate.denominator
        chance = missed ** (examples - 1)
        found = math.nextafter(float(chance) * (1.0 + 2.0**-50), 2.0)
    return min(max(Fraction(found), _LEAST), Fraction(1))


@singledispatch
def _attained_by_data(
    inner: object, above: PrivacyLoss, alone: PrivacyLoss, lonely: Fraction, removing: bool
) -> PrivacyLoss | None:
    """Return a loss that data sets reach, given those of a move by 2C and by C; None if unknown."""
    return None


@_attained_by_data.register
def _(
    inner: PoissonSubsampled,
    above: PrivacyLoss,
    alone: PrivacyLoss,
    lonely: Fraction,
    removing: bool,
) -> PrivacyLoss | None:
    noise = _noise_of(inner)
    if 1 - lonely < _LEAST or not _REACH[0] <= noise <= _REACH[1]:
        return alone.attained
    # Mirrored, the example's end of the ball is 0, an empty batch at C and one of others at 2C;
    # with the chance to be alone rounded up the half-lines, which are the tests, tell less.
    near = 1 / decimal(noise)
    pair = GaussianMixtureLoss((near, 2 * near), (lonely, 1 - lonely), not removing)
    return sampled_loss(pair, inner.rate, removing)


@_attained_by_data.register
def _(
    inner: RandomAllocation,
    above: PrivacyLoss,
    alone: PrivacyLoss,
    lonely: Fraction,
    removing: bool,
) -> PrivacyLoss | None:
    least, together = alone.attained, above.attained
    some_empty = math.nextafter(float(inner.steps * lonely), math.inf)
    if not isinstance(together, AllocationLoss) or some_empty > _MOST_CONTAMINATED:
        return least
    found = ContaminatedLoss(together, some_empty)
    return found if least is None else _larger_at_order_1(found, least)


def _larger_at_order_1(first: PrivacyLoss, second: PrivacyLoss) -> PrivacyLoss:
    """Return the loss of the larger moment of an order that decides epsilon at common deltas."""
    spread = math.sqrt(
        max(first.cgf_estimate(1e-3).second_derivative, second.cgf_estimate(1e-3).second_derivative)
    )
    order = _ORDER / spread
    return max(first, second, key=lambda one: one.cgf_estimate(order).value)
