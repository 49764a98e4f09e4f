"""The dominating pair of the last iterate of noisy gradient descent: one Gaussian, or a few."""

from __future__ import annotations

from fractions import Fraction

from hockeystick.mechanisms.training.last_iterate import FIXED_SIZE, LastIterate
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.bounds.shifted_interpolation import LastOfCycle
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.composition import ComposedLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss, dominated_pair
from hockeystick.privacy_loss.core.infinity_mass import edge_pair
from hockeystick.privacy_loss.core.registry import (
    DominatingPair,
    NoAnalysisError,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.symmetrized import exchanged_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.training.sampled_iterates import SampledIterates


@dominating_pair.register
def _(mechanism: LastIterate) -> DominatingPair:
    if mechanism.steps == 0:
        return DominatingPair(None, None)
    edge = edge_pair(mechanism.noise_multiplier)
    if edge is not None and mechanism.noise_multiplier == 0.0 and mechanism.rate < 1:
        raise NoAnalysisError("random batches without noise are not analysed")
    if edge is not None:
        return edge
    if mechanism.batches == FIXED_SIZE and mechanism.rate < 1:
        return _on_samples(mechanism)
    cycle = _cycle(mechanism)
    above = GaussianLoss(cycle.noise_lower())
    projected = cycle.across is not None
    below = None if projected or _alternates(mechanism) else GaussianLoss(cycle.noise_attained())
    return dominated_pair(above, below)


def _cycle(mechanism: LastIterate) -> LastOfCycle:
    """Return the steps in units of the noise."""
    noise, (low, high) = decimal(mechanism.noise_multiplier), mechanism.factors
    across = mechanism.moves_across
    return LastOfCycle(
        max(abs(low), abs(high)),
        max(low, -high, Fraction(0)),
        mechanism.steps,
        mechanism.period,
        mechanism.change / noise,
        None if across is None else across / noise,
    )


def _alternates(mechanism: LastIterate) -> bool:
    """Return whether distances change sign in every step, and no curvature is left to follow."""
    low, high = mechanism.factors
    return low == high < 0


def _on_samples(mechanism: LastIterate) -> DominatingPair:
    """Return the losses on random batches: samples, and a Gaussian for what they hide."""
    cycle, noise = _cycle(mechanism), decimal(mechanism.noise_multiplier)
    sampled = SampledIterates(
        cycle.c,
        cycle.least,
        mechanism.rate,
        mechanism.steps,
        noise,
        mechanism.change,
        mechanism.moves_across,
    )
    attained = _attained(mechanism, sampled)
    split, always = sampled.split(), GaussianLoss(cycle.noise_lower())
    if always.mu * always.mu <= sampled.estimate(split):
        return DominatingPair(*(DominatedLoss(always, one) for one in attained))
    if split.noise is None:
        whole = exchanged_pair(_worst(noise, mechanism), *attained)
        rest = _worst_term(noise, mechanism, split.plain - 1)
        return DominatingPair(*(ComposedLoss(((one, 1), *rest)) for one in whole if one))
    parts = (
        *_worst_term(noise, mechanism, split.plain),
        *_worst_term(noise * split.share, mechanism, split.shifted),
    )
    ends = (DominatedLoss(GaussianLoss(split.noise), one) for one in attained)
    return DominatingPair(*(ComposedLoss((*parts, (end, 1))) for end in ends))


def _worst(noise: Fraction, mechanism: LastIterate) -> PrivacyLoss:
    """Return the loss of a step on a sample in which a record takes another one's place."""
    return sampled_loss(GaussianLoss(noise / 2), mechanism.rate, True)


def _worst_term(
    noise: Fraction, mechanism: LastIterate, runs: int
) -> tuple[tuple[PrivacyLoss, int], ...]:
    """Return several steps on samples, of which no example is known."""
    loss = exchanged_pair(_worst(noise, mechanism), None, None).removing
    return ((loss, runs),) if loss and runs else ()


def _attained(
    mechanism: LastIterate, sampled: SampledIterates
) -> tuple[PrivacyLoss | None, PrivacyLoss | None]:
    """Return the losses of quadratic losses in both directions; None with a projection."""
    if mechanism.moves_across is not None or _alternates(mechanism):
        return None, None
    rate, noise = sampled.attained_sample()
    removing, adding = (sampled_loss(GaussianLoss(noise), rate, way) for way in (True, False))
    return removing, adding
