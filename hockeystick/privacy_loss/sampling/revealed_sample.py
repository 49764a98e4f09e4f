"""The pair of losses of a sample that an adversary sees."""

from __future__ import annotations

from fractions import Fraction

from hockeystick.mechanisms import Composed, Plan, Repeated
from hockeystick.mechanisms.sampling.revealed_sample import RevealedSample
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.observed_mixture import observed_mixture
from hockeystick.privacy_loss.core.rates import decimal_or_above
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss


@dominating_pair.register
def _(mechanism: RevealedSample) -> DominatingPair:
    inner, rate = mechanism.inner, mechanism.rate
    if isinstance(inner, Composed | Repeated | Plan):
        raise NoAnalysisError(
            f"a revealed sample is analysed for a single run inside, not for {inner}; "
            "repeat or compose the sampled mechanism instead: RevealedSample(m, rate) ** n"
        )
    exact = decimal(rate)
    pair = dominating_pair(inner)
    return DominatingPair(_sampled(pair.removing, exact), _sampled(pair.adding, exact))


def _sampled(loss: PrivacyLoss | None, rate: Fraction) -> PrivacyLoss | None:
    """Return the loss in one direction."""
    if loss is None or rate == 0:
        return None
    if rate == 1:
        return loss
    if isinstance(loss, NoiselessLoss) and loss.rate == 1:
        return RandomizedResponsePairLoss(0.0, decimal_or_above(rate))
    if isinstance(loss, RandomizedResponsePairLoss) and loss.failure > 0.0:
        raise NoAnalysisError(
            "a guarantee that may fail has no distribution of its loss to sample; sample its pure "
            "part, and add the failures of all runs"
        )
    if not isinstance(loss, CellLoss):
        raise NoAnalysisError(
            "only some bounds of its privacy loss are known, not its distribution"
        )
    return observed_mixture([(1 - rate, None), (rate, loss)])
