"""From a mechanism to the event of dp-accounting that describes it."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import singledispatch

from dp_accounting import dp_event

from hockeystick import _validate
from hockeystick.adapters.dp_accounting._reading import MORE_RUNS
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError, UnsupportedError
from hockeystick.mechanisms import (
    Composed,
    DiscreteLaplace,
    FixedSizeSubsampled,
    Gaussian,
    GaussianMixture,
    Laplace,
    Mechanism,
    Plan,
    PoissonSubsampled,
    RandomizedResponse,
    RandomStopping,
    Repeated,
    TreeAggregation,
    TruncatedPoissonSubsampled,
    WithReplacementSubsampled,
)
from hockeystick.mechanisms.selection.tuning import Poisson, RunCount, TruncatedNegativeBinomial
from hockeystick.notions import ZCDP, PureDP
from hockeystick.numerics import largest_reading
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.rounding import DIGITS, as_mpf, evaluated_down, float_up
from hockeystick.numerics.working_precision import working_digits


def to_event(mechanism: Mechanism, adjacency: Adjacency | str | None = None) -> dp_event.DpEvent:
    """Return the event of dp-accounting that describes a mechanism.

    The other way round from ``from_event``, with the same table; a plan, as ``DPSGD``, is written
    as what it stands for. An event does not say which neighbours it is for: give their accountant
    the relation that the mechanism has.

    Guarantees:
        Exact, but for numbers that a float does not hold, which are rounded so that the event is at
        most as private as the mechanism.

    Args:
        mechanism: The mechanism.
        adjacency: The neighbours that are meant. None for the mechanism's own, or add-remove where
            it names none.

    Raises:
        UnsupportedError: If the mechanism, or it under this adjacency, has no counterpart.
        ParameterError: If it is no mechanism.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.dp_accounting import to_event
        >>> to_event(hs.Gaussian(1.1) ** 1000)
        SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=1.1), count=1000)
        >>> to_event(hs.Gaussian(1.1), adjacency="replace-one")
        GaussianDpEvent(noise_multiplier=2.2)
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError("mechanism", mechanism, "a mechanism")
    own = mechanism.adjacency or Adjacency.ADD_REMOVE
    meant = own if adjacency is None else _validate.choice("adjacency", adjacency, Adjacency)
    if mechanism.adjacency not in (None, meant):
        raise _refused(mechanism, f"it is described under {own}, not under {meant}")
    return write(mechanism, meant)


def _refused(mechanism: Mechanism, reason: str) -> UnsupportedError:
    return UnsupportedError("dp-accounting", str(mechanism), reason)


def _only_under(needed: Adjacency, adjacency: Adjacency, mechanism: Mechanism) -> None:
    if adjacency is not needed:
        reason = f"there is an event for it under {needed} alone, not under {adjacency}"
        raise _refused(mechanism, reason)


def _contribution(noise_multiplier: float, adjacency: Adjacency) -> float:
    """Return a noise multiplier for the distance of neighbours in units of contributions."""
    if adjacency is not Adjacency.REPLACE_ONE or noise_multiplier == math.inf:
        return noise_multiplier
    return min(2.0 * noise_multiplier, sys.float_info.max)


def _chance_of_response(epsilon: float, categories: int) -> float:
    """Return ``p = k / (e^epsilon + k - 1)``, rounded down."""
    if epsilon == 0.0:
        return 1.0
    if epsilon == math.inf:
        return 0.0
    with working_digits(DIGITS):
        odds = mp.exp(as_mpf(largest_reading(epsilon)))
        return evaluated_down(categories / (odds + categories - 1))


@singledispatch
def write(mechanism: Mechanism, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return the event that describes a mechanism under an adjacency."""
    raise _refused(mechanism, "dp-accounting has no event for it")


@write.register
def _(mechanism: Plan, adjacency: Adjacency) -> dp_event.DpEvent:
    return write(mechanism.mechanism, adjacency)


@write.register
def _(mechanism: Composed, adjacency: Adjacency) -> dp_event.DpEvent:
    return dp_event.ComposedDpEvent([write(part, adjacency) for part in mechanism.parts])


@write.register
def _(mechanism: Repeated, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return the repetition; none at all does nothing."""
    if mechanism.count == 0:
        return dp_event.NoOpDpEvent()
    return dp_event.SelfComposedDpEvent(write(mechanism.inner, adjacency), mechanism.count)


@write.register
def _(mechanism: Gaussian, adjacency: Adjacency) -> dp_event.DpEvent:
    return dp_event.GaussianDpEvent(_contribution(mechanism.noise_multiplier, adjacency))


@write.register
def _(mechanism: Laplace, adjacency: Adjacency) -> dp_event.DpEvent:
    return dp_event.LaplaceDpEvent(_contribution(mechanism.scale, adjacency))


@write.register
def _(mechanism: DiscreteLaplace, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return the discrete Laplace mechanism with the parameter 1/scale."""
    if mechanism.scale == 0.0:
        return dp_event.NonPrivateDpEvent()
    if mechanism.scale == math.inf:
        return dp_event.NoOpDpEvent()
    moves, odd = divmod(mechanism.sensitivity, 2)
    if adjacency is not Adjacency.REPLACE_ONE:
        moves, odd = mechanism.sensitivity, 0
    if odd:
        raise _refused(mechanism, "contributions of at most C move a sum by 2C, an even number")
    return dp_event.DiscreteLaplaceDpEvent(float_up(1 / Fraction(mechanism.scale)), moves)


@write.register
def _(mechanism: RandomizedResponse, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return randomized response by the chance of a random answer."""
    _only_under(Adjacency.REPLACE_ONE, adjacency, mechanism)
    chance = _chance_of_response(mechanism.epsilon, mechanism.categories)
    return dp_event.RandomizedResponseDpEvent(chance, mechanism.categories)


@write.register
def _(mechanism: PoissonSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return Poisson sampling, a Gaussian's noise in units of contributions."""
    units = Adjacency.ADD_REMOVE if adjacency is Adjacency.REPLACE_ONE else adjacency
    inner = write(mechanism.inner, units)
    return dp_event.PoissonSampledDpEvent(float_up(Fraction(mechanism.rate)), inner)


@write.register
def _(mechanism: FixedSizeSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return sampling without replacement, in which a record takes another's place."""
    zeroed = adjacency is Adjacency.ZERO_OUT and isinstance(mechanism.inner, Gaussian)
    if zeroed and not mechanism.clipped:
        reason = (
            "an event's noise is in units of the norm of contributions, half of what a replacement "
            "moves; where they are clipped to that norm, say so"
        )
        raise _refused(mechanism, reason)
    inner = write(mechanism.inner, Adjacency.REPLACE_ONE)
    return dp_event.SampledWithoutReplacementDpEvent(
        mechanism.examples, mechanism.batch_size, inner
    )


@write.register
def _(mechanism: WithReplacementSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    inner = write(mechanism.inner, adjacency)
    return dp_event.SampledWithReplacementDpEvent(mechanism.examples, mechanism.batch_size, inner)


@write.register
def _(mechanism: TruncatedPoissonSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    if not isinstance(mechanism.inner, Gaussian):
        raise _refused(mechanism, "there is an event for cut samples of Gaussians alone")
    return dp_event.TruncatedSubsampledGaussianDpEvent(
        mechanism.examples,
        float_up(Fraction(mechanism.rate)),
        mechanism.cap,
        mechanism.inner.noise_multiplier,
    )


@write.register
def _(mechanism: TreeAggregation, adjacency: Adjacency) -> dp_event.DpEvent:
    _only_under(Adjacency.ZERO_OUT, adjacency, mechanism)
    return dp_event.SingleEpochTreeAggregationDpEvent(mechanism.noise_multiplier, mechanism.leaves)


@write.register
def _(mechanism: GaussianMixture, adjacency: Adjacency) -> dp_event.DpEvent:
    return dp_event.MixtureOfGaussiansDpEvent(
        mechanism.noise_multiplier, mechanism.sensitivities, mechanism.probabilities
    )


@write.register
def _(mechanism: RandomStopping, adjacency: Adjacency) -> dp_event.DpEvent:
    mean, shape = _mean_and_shape(mechanism, mechanism.distribution)
    return dp_event.RepeatAndSelectDpEvent(write(mechanism.inner, adjacency), mean, shape)


def _mean_and_shape(mechanism: Mechanism, distribution: RunCount) -> tuple[float, float]:
    """Return the mean number of runs, rounded up, and the shape of their distribution."""
    if isinstance(distribution, Poisson):
        return distribution.mean, math.inf
    if not isinstance(distribution, TruncatedNegativeBinomial):
        reason = "an event's number of runs is truncated negative binomial or Poisson"
        raise _refused(mechanism, reason)
    if distribution.eta < 0.0:
        raise _refused(mechanism, "an event's shape is at least 0")
    if distribution.eta == 1.0:
        return float_up(1 / Fraction(distribution.gamma)), 1.0
    return distribution.expected * MORE_RUNS, distribution.eta


@write.register
def _(mechanism: ZCDP, adjacency: Adjacency) -> dp_event.DpEvent:
    return dp_event.ZCDpEvent(mechanism.rho)


@write.register
def _(mechanism: PureDP, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return an event for the two ends; there is none for epsilon-DP in general."""
    if mechanism.epsilon == math.inf:
        return dp_event.NonPrivateDpEvent()
    if mechanism.epsilon == 0.0:
        return dp_event.NoOpDpEvent()
    raise _refused(mechanism, "dp-accounting has no event for it")
