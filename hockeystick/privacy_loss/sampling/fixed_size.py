"""The pair of losses of a mechanism on a sample of a fixed size, without replacement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import (
    Composed,
    FixedSizeSubsampled,
    Gaussian,
    Mechanism,
    Plan,
    Repeated,
)
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.registry import (
    DominatingPair,
    NoAnalysisError,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.symmetrized import exchanged_pair
from hockeystick.privacy_loss.core.two_point import (
    RandomizedResponsePairLoss,
)
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

if TYPE_CHECKING:
    pass


@dominating_pair.register
def _(mechanism: FixedSizeSubsampled) -> DominatingPair:
    pair = _of_one_run(mechanism.inner, "sampling of a fixed size")
    zeroed = mechanism.adjacency is Adjacency.ZERO_OUT
    whole = mechanism.rate == 1
    if pair.removing is None or (whole and mechanism.adjacency is Adjacency.REPLACE_ONE):
        return pair
    if whole and not zeroed and not isinstance(mechanism.inner, Gaussian):
        raise NoAnalysisError(
            "without one of its examples a sample of all has none to take the place of the missing "
            f"one, and of {mechanism.inner} it is only known what a replacement costs"
        )
    if pair.removing != pair.adding:
        raise NoAnalysisError(
            f"samples of a fixed size are analysed for what costs the same in both directions of a "
            f"replacement, not for {mechanism.inner}"
        )
    if zeroed or whole:
        return _zeroed(pair.removing, mechanism)
    removing, adding = (sampled_loss(pair.removing, mechanism.rate, way) for way in (True, False))
    if mechanism.adjacency is Adjacency.ADD_REMOVE:
        return DominatingPair(removing, adding)
    return exchanged_pair(removing, removing.attained, adding.attained)


def _of_one_run(inner: Mechanism, what: str) -> DominatingPair:
    """Return the losses of an inner mechanism that runs once, or raise."""
    if isinstance(inner, Composed | Repeated | Plan):
        raise NoAnalysisError(
            f"{what} is analysed for a single run inside, not for {inner}; repeat or compose the "
            "sampled mechanism instead"
        )
    return dominating_pair(inner)


def _zeroed(replaced: PrivacyLoss, mechanism: FixedSizeSubsampled) -> DominatingPair:
    """Return the losses of samples of a fixed size where an example is zeroed.

    None costs more than a replacement. Among examples that contribute nothing, one that is zeroed
    moves a Gaussian's sum by half as much. The same holds of an example that is missing in a sample
    of all.
    """
    rate, half = mechanism.rate, None
    if isinstance(replaced, GaussianLoss):
        noise = replaced.noise_multiplier
        half = GaussianLoss(2 * (decimal(noise)))
    if rate == 1:
        alone = DominatedLoss(_distribution(replaced, mechanism.inner), half)
        return DominatingPair(alone, alone)
    attained = (half and sampled_loss(half, rate, way) for way in (True, False))
    return exchanged_pair(sampled_loss(replaced, rate, True), *attained)


def _distribution(replaced: PrivacyLoss, inner: Mechanism) -> CellLoss:
    """Return the loss if it is one that another one may be said to be dominated by, or raise."""
    fails = isinstance(replaced, RandomizedResponsePairLoss) and replaced.failure > 0.0
    if isinstance(replaced, CellLoss) and not fails:
        return replaced
    raise NoAnalysisError(
        f"of {inner} no distribution of losses is known that is finite, to bound what zeroing an "
        "example costs; under replace-one the whole sample is accounted, and costs no less"
    )
