"""The pairs of losses of Gaussians, of guarantees and of trade-off functions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch
from typing import Final, cast

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import (
    Composed,
    Gaussian,
    GaussianSequence,
    Mechanism,
    Plan,
    PoissonSubsampled,
    Repeated,
)
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.privacy_loss._levels import levels_of
from hockeystick.privacy_loss._rates import exact_rate
from hockeystick.privacy_loss.atomic import AtomicLoss
from hockeystick.privacy_loss.base import CellLoss, PrivacyLoss
from hockeystick.privacy_loss.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.privacy_loss.gaussian import GaussianLoss
from hockeystick.privacy_loss.gaussian_sequence import GaussianSequenceLoss
from hockeystick.privacy_loss.outcomes import dominating_pair_of_outcomes
from hockeystick.privacy_loss.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.renyi_curve import ConcentratedLoss, RenyiCurveLoss
from hockeystick.privacy_loss.replaced_gaussian import ReplacedGaussianLoss
from hockeystick.privacy_loss.revealing import RevealingLoss
from hockeystick.privacy_loss.sampled import sampled
from hockeystick.privacy_loss.sampled_atoms import SampledAtomsLoss
from hockeystick.privacy_loss.sampled_gaussian import SampledGaussianLoss
from hockeystick.privacy_loss.trade_off import ProfileLoss
from hockeystick.privacy_loss.two_point import TwoPointLoss
from hockeystick.tradeoffs import (
    ApproxTradeOff,
    GaussianTradeOff,
    PiecewiseLinearTradeOff,
    SampledGaussianTradeOff,
    TradeOff,
)

# Losses beyond this would overflow once sampled.
_LARGEST: Final = 1e140


@dominating_pair.register
def _(mechanism: Gaussian) -> DominatingPair:
    return _gaussian_noise(mechanism.noise_multiplier)


@dominating_pair.register
def _(mechanism: GaussianSequence) -> DominatingPair:
    if mechanism.rate == 0:
        return DominatingPair(None, None)
    if mechanism.rate == 1:
        raise NoAnalysisError("without sampling its releases are accounted for one by one")
    levels = levels_of(mechanism.noise_multipliers)
    return DominatingPair(
        *(GaussianSequenceLoss(mechanism.rate, levels, way) for way in (True, False))
    )


@dominating_pair.register
def _(mechanism: PoissonSubsampled) -> DominatingPair:
    inner, rate = mechanism.inner, mechanism.rate
    if isinstance(inner, Composed | GaussianSequence | Repeated | Plan):
        raise NoAnalysisError(
            f"Poisson subsampling is analysed for a single run inside, not for {inner}: what "
            "shares a sample is not amplified apart. Where each draws a sample of its own, repeat "
            "or compose the sampled mechanisms: PoissonSubsampled(m, rate) ** n"
        )
    if mechanism.adjacency is Adjacency.REPLACE_ONE:
        return _replaced_gaussian(inner, rate)
    pair = dominating_pair(inner)
    if rate == 1.0 or rate == 0.0:
        return pair if rate == 1.0 else DominatingPair(None, None)
    try:
        return DominatingPair(
            *(
                None if loss is None else sampled_loss(loss, rate, removing)
                for loss, removing in ((pair.removing, True), (pair.adding, False))
            )
        )
    except NoAnalysisError as error:
        raise NoAnalysisError(f"Poisson subsampling of {inner}: {error}") from None


@singledispatch
def sampled_loss(loss: PrivacyLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    """Return the loss of one run on a Poisson sample, at a rate between 0 and 1.

    Raises:
        NoAnalysisError: If the distribution of the loss itself is not known.
    """
    raise NoAnalysisError("only some bounds of its privacy loss are known, not its distribution")


@sampled_loss.register
def _(loss: CellLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    if loss.supremum > _LARGEST and loss.atoms().loss.size:
        raise NoAnalysisError(f"its largest loss, {loss.supremum:g}, is too large for floats")
    return sampled(loss, rate, removing)


@sampled_loss.register
def _(loss: AtomicLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    return SampledAtomsLoss(loss, rate, removing)


@sampled_loss.register
def _(loss: GaussianLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    return SampledGaussianLoss(rate, loss.noise_multiplier, removing)


@sampled_loss.register
def _(loss: SampledGaussianLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    both = exact_rate(rate) * exact_rate(loss.rate)
    return SampledGaussianLoss(both, loss.noise_multiplier, removing)


@sampled_loss.register
def _(loss: RevealingLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    both = rate if loss.rate == 1.0 else exact_rate(rate) * exact_rate(loss.rate)
    return RevealingLoss(both, removing)


@sampled_loss.register
def _(loss: TwoPointLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    if loss.failure == 1.0:
        return RevealingLoss(rate, removing)
    if loss.failure > 0.0:
        raise NoAnalysisError(
            "a guarantee that may fail shows everything or nothing on a sample, with more outcomes "
            "than are accounted; state the sampled guarantee itself, or the pure part alone"
        )
    return SampledAtomsLoss(loss, rate, removing)


@dominating_pair.register
def _(mechanism: PureDP) -> DominatingPair:
    return _two_point(mechanism.epsilon, 0.0)


@dominating_pair.register
def _(mechanism: ApproxDP) -> DominatingPair:
    return _two_point(mechanism.epsilon, mechanism.delta)


@dominating_pair.register
def _(mechanism: GDP) -> DominatingPair:
    return _gaussian(mechanism.mu)


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
        return _ANYTHING
    loss = RenyiCurveLoss.of(mechanism.divergences)
    return DominatingPair(loss, loss)


@dominating_pair.register
def _(mechanism: FDP) -> DominatingPair:
    return dominating_pair_of_tradeoff(mechanism.tradeoff)


_ANYTHING: Final = DominatingPair(TwoPointLoss(0.0, 1.0), TwoPointLoss(0.0, 1.0))


def _two_point(epsilon: float, failure: float) -> DominatingPair:
    """Return the losses of the worst release with an (epsilon, failure)-DP guarantee."""
    if epsilon == math.inf:
        return _ANYTHING
    if epsilon == failure == 0.0:
        return DominatingPair(None, None)
    loss = TwoPointLoss(epsilon, failure)
    return DominatingPair(loss, loss)


def _gaussian(mu: float) -> DominatingPair:
    """Return the losses of a Gaussian of which mu is known."""
    if mu == 0.0:
        return DominatingPair(None, None)
    if mu == math.inf:
        return _ANYTHING
    loss = GaussianLoss(1 / Fraction(repr(mu)))
    return DominatingPair(loss, loss)


def _concentrated(rho: float, omega: float) -> DominatingPair:
    """Return the losses of the worst release with Renyi divergences below a line."""
    if rho == 0.0:
        return DominatingPair(None, None)
    if rho == math.inf:
        return _ANYTHING
    loss = ConcentratedLoss(rho, omega)
    return DominatingPair(loss, loss)


@singledispatch
def dominating_pair_of_tradeoff(tradeoff: TradeOff) -> DominatingPair:
    """Return the pair of losses of the worst release with a trade-off function: by its profiles."""
    return _by_profiles(tradeoff)


def _by_profiles(tradeoff: TradeOff) -> DominatingPair:
    """Return the pair of losses of which the profiles alone are known."""
    forward = ProfileLoss(tradeoff.forward, tradeoff.backward)
    if forward.supremum == 0.0:
        return DominatingPair(None, None)
    return DominatingPair(forward, ProfileLoss(tradeoff.backward, tradeoff.forward))


@dominating_pair_of_tradeoff.register
def _(tradeoff: ApproxTradeOff) -> DominatingPair:
    return _two_point(*tradeoff.guarantee)


@dominating_pair_of_tradeoff.register
def _(tradeoff: PiecewiseLinearTradeOff) -> DominatingPair:
    if tradeoff.outcomes is None:
        return _by_profiles(tradeoff)
    return dominating_pair_of_outcomes(tradeoff.outcomes)


@dominating_pair_of_tradeoff.register
def _(tradeoff: SampledGaussianTradeOff) -> DominatingPair:
    if tradeoff.rate == 1.0:
        return _gaussian(tradeoff.mu)
    if tradeoff.rate == 0.0 or tradeoff.mu == 0.0:
        return DominatingPair(None, None)
    noise = 1.0 / tradeoff.mu
    if exact_rate(noise) * exact_rate(tradeoff.mu) > 1:
        noise = math.nextafter(noise, 0.0)
    loss = FixedSizeGaussianLoss(tradeoff.rate, noise)
    return DominatingPair(loss, loss)


@dominating_pair_of_tradeoff.register
def _(tradeoff: GaussianTradeOff) -> DominatingPair:
    return _gaussian(tradeoff.mu)


def _replaced_gaussian(inner: Mechanism, rate: float | Fraction) -> DominatingPair:
    """Return the losses of Gaussian noise on a Poisson sample in which an example is replaced."""
    noise_multiplier = cast(Gaussian, inner).noise_multiplier
    if rate == 1:
        return _gaussian_noise(0.5 * noise_multiplier)
    if rate == 0 or math.isinf(noise_multiplier):
        return DominatingPair(None, None)
    if noise_multiplier == 0.0:
        return _two_point(0.0, float(rate))
    loss = ReplacedGaussianLoss(rate, noise_multiplier)
    return DominatingPair(loss, loss)


def _gaussian_noise(noise_multiplier: float) -> DominatingPair:
    """Return the losses of Gaussian noise, edge cases included."""
    if noise_multiplier == math.inf:
        return DominatingPair(None, None)
    if noise_multiplier == 0.0:
        return DominatingPair(RevealingLoss(1.0, True), RevealingLoss(1.0, False))
    loss = GaussianLoss(noise_multiplier)
    return DominatingPair(loss, loss)
