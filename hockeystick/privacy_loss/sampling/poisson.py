"""The pair of losses of a mechanism on a Poisson sample."""

from __future__ import annotations

import math
from fractions import Fraction
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
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.registry import (
    DominatingPair,
    NoAnalysisError,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.two_point import (
    RandomizedResponsePairLoss,
    two_point_pair,
)
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss, gaussian_noise_pair
from hockeystick.privacy_loss.sampling.replaced_gaussian import ReplacedGaussianLoss
from hockeystick.privacy_loss.sampling.sampled import SampledLoss
from hockeystick.privacy_loss.sampling.sampled_atoms import SampledAtomsLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss

# Losses beyond this would overflow once sampled.
_LARGEST: Final = 1e140


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


@sampled_loss.register
def _(loss: CellLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    if loss.supremum > _LARGEST and loss.atoms().loss.size:
        raise NoAnalysisError(f"its largest loss, {loss.supremum:g}, is too large for floats")
    return SampledLoss(loss, rate, removing)


@sampled_loss.register
def _(loss: AtomicLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    return SampledAtomsLoss(loss, rate, removing)


@sampled_loss.register
def _(loss: GaussianLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    return SampledGaussianLoss(rate, loss.noise_multiplier, removing)


@sampled_loss.register
def _(loss: SampledGaussianLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    both = decimal(rate) * decimal(loss.rate)
    return SampledGaussianLoss(both, loss.noise_multiplier, removing)


@sampled_loss.register
def _(loss: NoiselessLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    both = rate if loss.rate == 1.0 else decimal(rate) * decimal(loss.rate)
    return NoiselessLoss(both, removing)


@sampled_loss.register
def _(loss: RandomizedResponsePairLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    if loss.failure == 1.0:
        return NoiselessLoss(rate, removing)
    if loss.failure > 0.0:
        raise NoAnalysisError(
            "a guarantee that may fail has infinity mass on a sample, with more outcomes "
            "than are accounted; state the sampled guarantee itself, or the pure part alone"
        )
    return SampledAtomsLoss(loss, rate, removing)


def _replaced_gaussian(inner: Mechanism, rate: float | Fraction) -> DominatingPair:
    """Return the losses of Gaussian noise on a Poisson sample in which an example is replaced."""
    noise_multiplier = cast(Gaussian, inner).noise_multiplier
    if rate == 1:
        return gaussian_noise_pair(0.5 * noise_multiplier)
    if rate == 0 or math.isinf(noise_multiplier):
        return DominatingPair(None, None)
    if noise_multiplier == 0.0:
        return two_point_pair(0.0, float(rate))
    loss = ReplacedGaussianLoss(rate, noise_multiplier)
    return DominatingPair(loss, loss)
