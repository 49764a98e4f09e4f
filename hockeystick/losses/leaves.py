"""From a mechanism to its pair of losses."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch
from typing import Final, NamedTuple

from hockeystick.losses.base import Loss
from hockeystick.losses.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.losses.gaussian import GaussianLoss
from hockeystick.losses.renyi_curve import ConcentratedLoss, RenyiCurveLoss
from hockeystick.losses.revealing import RevealingLoss
from hockeystick.losses.sampled_gaussian import SampledGaussianLoss
from hockeystick.losses.trade_off import ProfileLoss
from hockeystick.losses.two_point import TwoPointLoss
from hockeystick.mechanisms import Gaussian, Mechanism, PoissonSubsampled
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.tradeoffs import (
    ApproxTradeOff,
    GaussianTradeOff,
    SampledGaussianTradeOff,
    TradeOff,
)


class LossPair(NamedTuple):
    """The losses of one run in the two directions; None where the output tells nothing.

    The two are composed separately, and only the final answers are compared.
    """

    removing: Loss | None
    adding: Loss | None


class NoAnalysisError(Exception):
    """No pair of losses is known; the reason, for the fold to raise as the public error."""


@singledispatch
def losses_of(mechanism: Mechanism) -> LossPair:
    """Return the pair of losses of one run of a mechanism.

    Raises:
        NoAnalysisError: If none is known.
    """
    raise NoAnalysisError(f"no privacy loss is known for a {type(mechanism).__name__}")


@losses_of.register
def _(mechanism: Gaussian) -> LossPair:
    return _sampled(mechanism.noise_multiplier, 1.0)


@losses_of.register
def _(mechanism: PoissonSubsampled) -> LossPair:
    inner = mechanism.inner
    if not isinstance(inner, Gaussian):
        raise NoAnalysisError(
            f"Poisson subsampling is analysed for a Gaussian inside, not for {inner}; "
            "repeat or compose the sampled mechanism instead: PoissonSubsampled(m, rate) ** n"
        )
    return _sampled(inner.noise_multiplier, mechanism.rate)


@losses_of.register
def _(mechanism: PureDP) -> LossPair:
    return _two_point(mechanism.epsilon, 0.0)


@losses_of.register
def _(mechanism: ApproxDP) -> LossPair:
    return _two_point(mechanism.epsilon, mechanism.delta)


@losses_of.register
def _(mechanism: GDP) -> LossPair:
    return _gaussian(mechanism.mu)


@losses_of.register
def _(mechanism: ZCDP) -> LossPair:
    return _concentrated(mechanism.rho, math.inf)


@losses_of.register
def _(mechanism: TCDP) -> LossPair:
    return _concentrated(mechanism.rho, mechanism.omega)


@losses_of.register
def _(mechanism: RenyiDP) -> LossPair:
    divergences = [divergence for _, divergence in mechanism.divergences]
    if min(divergences) == 0.0:
        return LossPair(None, None)
    if min(divergences) == math.inf:
        return _ANYTHING
    loss = RenyiCurveLoss.of(mechanism.divergences)
    return LossPair(loss, loss)


@losses_of.register
def _(mechanism: FDP) -> LossPair:
    return losses_of_tradeoff(mechanism.tradeoff)


_ANYTHING: Final = LossPair(TwoPointLoss(0.0, 1.0), TwoPointLoss(0.0, 1.0))


def _two_point(epsilon: float, failure: float) -> LossPair:
    """Return the losses of the worst release with an (epsilon, failure)-DP guarantee."""
    if epsilon == math.inf:
        return _ANYTHING
    if epsilon == failure == 0.0:
        return LossPair(None, None)
    loss = TwoPointLoss(epsilon, failure)
    return LossPair(loss, loss)


def _gaussian(mu: float) -> LossPair:
    """Return the losses of a Gaussian of which mu is known."""
    if mu == 0.0:
        return LossPair(None, None)
    if mu == math.inf:
        return _ANYTHING
    loss = GaussianLoss(1 / Fraction(repr(mu)))
    return LossPair(loss, loss)


def _concentrated(rho: float, omega: float) -> LossPair:
    """Return the losses of the worst release with Renyi divergences below a line."""
    if rho == 0.0:
        return LossPair(None, None)
    if rho == math.inf:
        return _ANYTHING
    loss = ConcentratedLoss(rho, omega)
    return LossPair(loss, loss)


@singledispatch
def losses_of_tradeoff(tradeoff: TradeOff) -> LossPair:
    """Return the pair of losses of the worst release with a trade-off function: by its profiles."""
    forward = ProfileLoss(tradeoff.forward, tradeoff.backward)
    if forward.supremum == 0.0:
        return LossPair(None, None)
    return LossPair(forward, ProfileLoss(tradeoff.backward, tradeoff.forward))


@losses_of_tradeoff.register
def _(tradeoff: ApproxTradeOff) -> LossPair:
    return _two_point(*tradeoff.guarantee)


@losses_of_tradeoff.register
def _(tradeoff: SampledGaussianTradeOff) -> LossPair:
    if tradeoff.rate == 1.0:
        return _gaussian(tradeoff.mu)
    if tradeoff.rate == 0.0 or tradeoff.mu == 0.0:
        return LossPair(None, None)
    loss = FixedSizeGaussianLoss(tradeoff.rate, 1.0 / tradeoff.mu)
    return LossPair(loss, loss)


@losses_of_tradeoff.register
def _(tradeoff: GaussianTradeOff) -> LossPair:
    return _gaussian(tradeoff.mu)


def _sampled(noise_multiplier: float, rate: float | Fraction) -> LossPair:
    """Return the losses of a Gaussian on a Poisson sample, edge cases included."""
    if rate == 0.0 or noise_multiplier == math.inf:
        return LossPair(None, None)
    if noise_multiplier == 0.0:
        return LossPair(RevealingLoss(rate, True), RevealingLoss(rate, False))
    if rate == 1.0:
        loss = GaussianLoss(noise_multiplier)
        return LossPair(loss, loss)
    return LossPair(
        SampledGaussianLoss(rate, noise_multiplier, removing=True),
        SampledGaussianLoss(rate, noise_multiplier, removing=False),
    )
