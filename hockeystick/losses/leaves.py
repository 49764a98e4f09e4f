"""From a mechanism to its pair of losses."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch
from typing import NamedTuple

from hockeystick.losses.base import Loss
from hockeystick.losses.gaussian import GaussianLoss
from hockeystick.losses.revealing import RevealingLoss
from hockeystick.losses.sampled_gaussian import SampledGaussianLoss
from hockeystick.mechanisms import Gaussian, Mechanism, PoissonSubsampled


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
