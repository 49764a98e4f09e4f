"""The pair of losses of a mechanism on a sample of a fixed size, without replacement.

What zeroing one of n vectors costs, each of norm at most 1, with Gaussian noise on the sum of a
sample of m: let R be m-1 of the others and j one more, all at random. With probability q = m/n the
sample is R with the vector g in question, else R with the vector x of j. Given R and j, that is

    P = (1-q) N(x) + q N(g)    against    Q = (1-q) N(x) + q N(0),

moved by the sum of R, and a hockey-stick divergence, being jointly convex, is at most that of the
worst x and g. In densities over N(0), ``L(a) = exp(<a, Z> - |a|^2/2)`` in units of the noise,

    delta(eps) = E[((1-q) (1 - e^eps) L(x) + q L(g) - e^eps q)_+],    Z ~ N(0, I).

By Kahane's inequality, as in ``poisson.py``, it rises with ``<u, v>`` where the coefficients of
L(u) and of L(v) have the same sign, and falls where they have not; both squares have: it rises with
``|x|`` and ``|g|``. For ``eps > 0`` the signs of x and g differ, and ``x = -g`` of norm 1 is worst:
``(1-q) N(-1) + q N(1)`` against ``(1-q) N(-1) + q N(0)``. Of Q against P, with the coefficients
``(1-q) (1 - e^eps)``, q of 1 and ``-e^eps q`` of L(g), x and g have the same sign, and ``x = g`` is
worst: ``(1-q) N(1) + q N(0)`` against N(1), a sampled Gaussian. Negative eps ask for the other
order at -eps, so that the profile is that of the first pair above 0 and of the second, exchanged,
below: as a supremum of profiles it is convex, hence one of a pair. Data whose other vectors are all
-g, or all g, attain one of the halves each.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, NamedTuple, cast

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import (
    Composed,
    FixedSizeSubsampled,
    Gaussian,
    Mechanism,
    Plan,
    Repeated,
    WithReplacementSubsampled,
)
from hockeystick.numerics import decimal
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.privacy_loss.core.base import (
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    both,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.mixtures import RandomizedResponsePairLoss, observed_mixture
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss, JoinedLoss, exchanged_pair
from hockeystick.privacy_loss.noise.gaussian import DisplacedGaussianLoss, GaussianLoss
from hockeystick.privacy_loss.noise.gaussian_mixture import GaussianMixtureLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss


@dominating_pair.register
def _(mechanism: FixedSizeSubsampled) -> DominatingPair:
    if isinstance(mechanism.inner, Composed | Repeated | Plan):
        raise NoAnalysisError(
            "sampling of a fixed size is analysed for a single run inside, not for "
            f"{mechanism.inner}; repeat or compose the sampled mechanism instead"
        )
    pair = dominating_pair(mechanism.inner)
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


def _zeroed(replaced: PrivacyLoss, mechanism: FixedSizeSubsampled) -> DominatingPair:
    """Return the losses of samples of a fixed size where an example is zeroed.

    None costs more than a replacement. Among examples that contribute nothing, one that is zeroed
    moves a Gaussian's sum by half as much, a selection's scores as a replacement may. The same
    holds of an example that is missing in a sample of all.
    """
    rate = mechanism.rate
    half = replaced.attained if replaced.attained_in_samples else None
    if isinstance(replaced, GaussianLoss):
        half = GaussianLoss(2 * decimal(replaced.noise_multiplier))
    if mechanism.clipped and isinstance(half, GaussianLoss):
        exact = clipped_pair(rate, half.noise_multiplier)
        if exact is not None:
            return exact
    if rate == 1:
        alone = DominatedLoss(_distribution(replaced, mechanism.inner), half)
        return DominatingPair(alone, alone)
    attained = (half and sampled_loss(half, rate, way) for way in (True, False))
    return exchanged_pair(sampled_loss(replaced, rate, True), *attained)


def clipped_pair(rate: Fraction, noise_multiplier: float | Fraction) -> DominatingPair | None:
    """Return the losses where one of the vectors of a sample is zeroed, all of norm at most 1.

    At rate 1 it is in the sample of all; None where the numbers are out of the reach of floats.
    """
    if rate == 1:
        return both(GaussianLoss(noise_multiplier))
    opposite = DisplacedGaussianLoss(rate, noise_multiplier)
    alike = SampledGaussianLoss(rate, noise_multiplier, True)
    if not opposite.is_within_reach:
        return None
    return DominatingPair(
        DominatedLoss(JoinedLoss(opposite, alike), opposite, exact=True),
        DominatedLoss(JoinedLoss(alike, opposite), alike, exact=True),
    )


def _distribution(replaced: PrivacyLoss, inner: Mechanism) -> CellLoss:
    """Return the loss if it is one that another one may be said to be dominated by, or raise."""
    fails = isinstance(replaced, RandomizedResponsePairLoss) and replaced.failure > 0.0
    if isinstance(replaced, CellLoss) and not fails:
        return cast(CellLoss, replaced.dominating)
    raise NoAnalysisError(
        f"of {inner} no distribution of losses is known that is finite, to bound what zeroing an "
        "example costs; under replace-one the whole sample is accounted, and costs no less"
    )


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
def _with_replacement(mechanism: WithReplacementSubsampled) -> DominatingPair:
    noise = noise_of(mechanism.inner, "Sampling with replacement")
    if noise is None or mechanism.examples == 1:
        # The only example fills the batch.
        return dominating_pair(
            Gaussian(math.inf if noise is None else noise / mechanism.batch_size)
        )
    noise_multiplier = decimal(noise)
    above, below = (_multiplicities(mechanism, up=up) for up in (True, False))
    rate = sum((group.probability for group in above), Fraction(0))
    observed = observed_mixture(
        (group.probability / rate, GaussianLoss(noise_multiplier / group.most)) for group in above
    )
    upper = sampled_loss(cast(CellLoss, observed), rate, True)
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
    share = mp.one / examples
    return (
        mp.binomial(batch, multiplicity)
        * share**multiplicity
        * (1 - share) ** (batch - multiplicity)
    )


def _dyadic(probability: mpf) -> Fraction:
    """Return a chance rounded down to a multiple of ``2^-960``, its own round-off included."""
    return Fraction(max(int(mp.floor(mp.ldexp(probability, _BITS))) - 1, 0), 2**_BITS)


def _equal_examples(
    groups: list[_Group], noise_multiplier: Fraction, removing: bool
) -> PrivacyLoss:
    """Return the loss of data whose other examples are equal: a mixture of Gaussians."""
    known = [group for group in groups if group.probability > 0]
    rate = sum((group.probability for group in known), Fraction(0))
    distances = tuple(group.fewest / noise_multiplier for group in known)
    weights = tuple(group.probability / rate for group in known)
    return sampled_loss(GaussianMixtureLoss(distances, weights, removing), rate, removing)
