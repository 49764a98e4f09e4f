"""The pair of losses of Gaussian noise on a sample that is drawn with replacement."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from hockeystick.mechanisms import Gaussian, Mechanism, WithReplacementSubsampled
from hockeystick.numerics import decimal
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.observed_mixture import observed_mixture
from hockeystick.privacy_loss.core.registry import (
    DominatingPair,
    NoAnalysisError,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.symmetrized import exchanged_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.noise.gaussian_mixture import GaussianMixtureLoss

if TYPE_CHECKING:
    from mpmath import mpf


# Multiplicities up to this are accounted one by one, larger ones in groups that grow by this.
_SINGLES: Final = 6
_GROWTH: Final = 1.25
# A remaining probability below this is assigned to the largest multiplicity.
_LEAST_PROBABILITY: Final = 1e-290
# With less, losses and their squares leave the range of floats.
_LEAST_NOISE: Final = 1e-30
_DIGITS: Final = 370
_BITS: Final = 960


@dominating_pair.register
def _(mechanism: WithReplacementSubsampled) -> DominatingPair:
    noise = noise_of(mechanism.inner, "Sampling with replacement")
    if noise is None or mechanism.examples == 1:
        # The only example fills the batch.
        return dominating_pair(
            Gaussian(math.inf if noise is None else noise / mechanism.batch_size)
        )
    noise_multiplier = decimal(noise)
    above, below = (_multiplicities(mechanism, up=up) for up in (True, False))
    rate = sum((group.probability for group in above), Fraction(0))
    upper = sampled_loss(_observed(above, noise_multiplier, rate), rate, True)
    return exchanged_pair(
        upper, *(_equal_examples(below, noise_multiplier, way) for way in (True, False))
    )


def noise_of(inner: Mechanism, what: str) -> float | None:
    """Return the noise multiplier of a Gaussian, None where it is infinite, or raise."""
    if not isinstance(inner, Gaussian):
        raise NoAnalysisError(f"{what} is analysed for the Gaussian mechanism, not for {inner}")
    noise = inner.noise_multiplier
    if noise < _LEAST_NOISE:
        raise NoAnalysisError(
            f"{what} is analysed for noise multipliers of at least {_LEAST_NOISE:g}, not {noise:g}"
        )
    return None if math.isinf(noise) else noise


class _Group(NamedTuple):
    """A range of multiplicities, and its probability."""

    fewest: int
    most: int
    probability: Fraction


def _multiplicities(mechanism: WithReplacementSubsampled, *, up: bool) -> list[_Group]:
    """Return the distribution of an example's multiplicity in a sample, in groups, rounded.

    Rounded up, the lost mass has the largest multiplicity; rounded down, multiplicity 0.
    """
    from hockeystick.numerics.multiprecision import mp

    batch, examples = mechanism.batch_size, mechanism.examples
    groups: list[_Group] = []
    first, likely = 1, True
    with working_digits(_DIGITS):
        while first <= batch and likely:
            last = min(
                max(first, math.floor(_GROWTH * first)) if first > _SINGLES else first, batch
            )
            probabilities = [_binomial(batch, k, examples) for k in range(first, last + 1)]
            likely = probabilities[-1] > _LEAST_PROBABILITY or last * examples < batch
            groups.append(_Group(first, last, _dyadic(mp.fsum(probabilities))))
            first = last + 1
        if up:
            none = _dyadic(_binomial(batch, 0, examples))
            rest = 1 - none - sum((group.probability for group in groups), Fraction(0))
            groups.append(_Group(batch, batch, rest))
    return groups


def _binomial(batch: int, multiplicity: int, examples: int) -> mpf:
    """Return ``P[Bin(places, 1/examples) = hits]``."""
    from hockeystick.numerics.multiprecision import mp

    share = mp.one / examples
    return (
        mp.binomial(batch, multiplicity)
        * share**multiplicity
        * (1 - share) ** (batch - multiplicity)
    )


def _dyadic(probability: mpf) -> Fraction:
    """Return a chance rounded down to a multiple of ``2^-960``, its own round-off included."""
    from hockeystick.numerics.multiprecision import mp

    return Fraction(max(int(mp.floor(mp.ldexp(probability, _BITS))) - 1, 0), 2**_BITS)


def _observed(groups: list[_Group], noise_multiplier: Fraction, rate: Fraction) -> CellLoss:
    """Return the loss given a positive multiplicity, where the multiplicity is observed."""
    mixture = observed_mixture(
        (group.probability / rate, GaussianLoss(noise_multiplier / group.most)) for group in groups
    )
    return cast(CellLoss, mixture)


def _equal_examples(
    groups: list[_Group], noise_multiplier: Fraction, removing: bool
) -> PrivacyLoss:
    """Return the loss of data whose other examples are equal: a mixture of Gaussians."""
    known = [group for group in groups if group.probability > 0]
    rate = sum((group.probability for group in known), Fraction(0))
    distances = tuple(group.fewest / noise_multiplier for group in known)
    weights = tuple(group.probability / rate for group in known)
    return sampled_loss(GaussianMixtureLoss(distances, weights, removing), rate, removing)
