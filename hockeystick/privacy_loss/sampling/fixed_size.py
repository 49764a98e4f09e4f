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

What several replacements cost where earlier outcomes choose the data, ``adaptive_upper``: of P with
``(1-q) L(a) + q L(b)`` against Q with c for b, the largest ``E F(P, Q)`` with F convex, homogeneous
and a mean of hockey-sticks. With ``R = P/Q``, ``F_pq = -R F_pp`` and ``F_qq = R^2 F_pp``, Kahane's
derivatives by ``u = |a-b|^2``, ``v = |a-c|^2`` and ``w = |b-c|^2``, all up to mu^2, are positive
multiples, the first two alike, of

    E[L(a) L(b) F_pp (R - 1)],    E[L(a) L(c) F_pp R (1 - R)],    E[L(b) L(c) F_pp R].

R is between 1 and ``L(b)/L(c)``, so that the first two add up to at least 0: the cost rises with w,
and with u and v together. Squared distances are a convex cone: two sides are mu in the worst case.
With ``w = u = mu^2`` sticks above 1 fall with v, the others rise: at most those of the least v of a
range above 1, of its largest below. Where ``w = v = mu^2`` exchange the two data sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, cast, final

from hockeystick.adjacency import Adjacency
from hockeystick.kernels.fixed_size_gaussian import triangle_profile
from hockeystick.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSubsampled,
    Gaussian,
    Mechanism,
    Plan,
    RandomizedResponse,
    Repeated,
    Skellam,
    WithReplacementSubsampled,
)
from hockeystick.mechanisms.local.reports import RAPPOR, Encoding, UnaryEncoding
from hockeystick.numerics import ULP, decimal
from hockeystick.numerics.multiprecision import mp, working_digits
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    Array,
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    both,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.mixtures import RandomizedResponsePairLoss, observed_mixture
from hockeystick.privacy_loss.core.symmetrized import (
    Choices,
    DominatedLoss,
    EitherWay,
    FreeThird,
    JoinedLoss,
    SharedBits,
    exchanged_pair,
)
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
            f"of {mechanism.inner} it is only known what a replacement costs, in a sample of all"
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
    if isinstance(mechanism.inner, RandomizedResponse) and mechanism.inner.categories > 2:
        # Three different examples attain both halves.
        return both(JoinedLoss(cast(CellLoss, removing), cast(CellLoss, removing)))
    choices = _choices(mechanism, pair.removing.dominating, removing, adding)
    return exchanged_pair(removing, removing.attained, adding.attained, choices=choices)


def _choices(
    mechanism: FixedSizeSubsampled,
    replaced: PrivacyLoss,
    removing: PrivacyLoss,
    adding: PrivacyLoss,
) -> tuple[Choices, ...]:
    inner, rate = mechanism.inner, mechanism.rate
    if isinstance(inner, Gaussian):
        known = 0.2 < inner.noise_multiplier < 1e3
        return (Triangles(rate, inner.noise_multiplier),) if known else ()
    if isinstance(inner, UnaryEncoding):
        return (SharedBits(rate, *_bit(inner), 1),)
    if isinstance(inner, RAPPOR) and inner.hashes <= _MOST_BITS:
        kept = 0.5 * inner.flip, 1.0 - 0.5 * inner.flip
        return (SharedBits(rate, kept, kept[::-1], inner.hashes),)
    # Of three examples, any two of which are neighbours, two have one output.
    two = isinstance(inner, RandomizedResponse)
    if isinstance(inner, DiscreteGaussian | DiscreteLaplace | Skellam):
        two = inner.sensitivity == 1
    if two:
        return (EitherWay(cast(CellLoss, removing), cast(CellLoss, adding)),)
    end = replaced.supremum
    if not end < LARGEST_EXPONENT:
        return ()
    # What loses at most e is e-DP, whatever else is known of it.
    pure = RandomizedResponsePairLoss(end)
    above, reverse = (cast(CellLoss, sampled_loss(pure, rate, way)) for way in (True, False))
    within = EitherWay(above, reverse, math.exp(end))
    if replaced == pure:
        return (within,)
    return within, FreeThird(rate, cast(CellLoss, replaced.dominating))


def _bit(encoding: UnaryEncoding) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the chances that a bit is reported as 0 and 1, where it is 1 and where it is 0."""
    optimized = encoding.kind is Encoding.OPTIMIZED
    one = 1.0 / (1.0 + math.exp(encoding.epsilon * (1.0 if optimized else 0.5)))
    return (0.5, 0.5) if optimized else (one, 1.0 - one), (1.0 - one, one)


# Sets of more bits than this have too many triples.
_MOST_BITS: Final = 4
# Shares of the squared side for which there are triangles.
_TRIANGLES: Final = 8


@final
@dataclass(frozen=True, slots=True)
class Triangles:
    """The profiles where ``|b-c| = mu`` and a is as far from one of them, nearer to the other.

    With ``|a-b|^2 = own mu^2`` and ``|a-c|^2 = other mu^2`` it is, over N(b),
    ``q E (1 - k e^X - e^eps e^Y)_+`` with ``k = (1-q)/q (e^eps - 1)``; given X, Y is normal with
    mean ``lean X`` and a constant, ``lean = (1 + own - other) / (2 own)`` in [0, 1]. So the mean
    over Y is convex in ``e^X``, and rises where the mass of a cell of X goes to its ends; it falls
    with X. It rises with q.
    """

    rate: Fraction
    noise_multiplier: float

    def __call__(self, epsilons: Array) -> Sequence[tuple[Array, Array]]:
        rate, mu = float(self.rate) * (1.0 + ULP), (1.0 + 4.0 * ULP) / self.noise_multiplier
        return [
            (
                triangle_profile(rate, mu, 1.0, k / _TRIANGLES, epsilons),
                triangle_profile(rate, mu, (k + 1) / _TRIANGLES, 1.0, epsilons),
            )
            for k in range(_TRIANGLES)
        ]


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
    fails = isinstance(replaced, RandomizedResponsePairLoss) and replaced.failure > 0.0
    if rate == 1 and (fails or not isinstance(replaced, CellLoss)):
        raise NoAnalysisError(
            f"of {mechanism.inner} no finite distribution of losses is known, to bound what zeroing"
            " an example costs; replace-one is accounted, and costs no less"
        )
    if rate == 1:
        return both(DominatedLoss(cast(CellLoss, replaced.dominating), half))
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
        return dominating_pair(
            Gaussian(math.inf if noise is None else noise / mechanism.batch_size)
        )
    noise_multiplier = decimal(noise)
    groups = _multiplicities(mechanism.batch_size, mechanism.examples)
    rate = sum((group.probability for group in groups), Fraction(0))
    observed = observed_mixture(
        (group.probability / rate, GaussianLoss(noise_multiplier / group.most)) for group in groups
    )
    upper = sampled_loss(cast(CellLoss, observed), rate, True)
    return exchanged_pair(
        upper, *(_equal_examples(groups, noise_multiplier, way) for way in (True, False))
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
    """Multiplicities in a range."""

    fewest: int
    most: int
    probability: Fraction


def _multiplicities(batch: int, examples: int) -> list[_Group]:
    """Return an example's multiplicity in a sample, in groups; the last is all that was lost."""
    groups: list[_Group] = []
    first, likely = 1, True
    with working_digits(_DIGITS):
        while first <= batch and likely:
            last = max(first, math.floor(_GROWTH * first)) if first > _SINGLES else first
            chances = [_chance(batch, k, examples) for k in range(first, min(last, batch) + 1)]
            likely = chances[-1] > _LEAST_PROBABILITY or last * examples < batch
            groups.append(_Group(first, min(last, batch), sum(chances, Fraction(0))))
            first = last + 1
        none = _chance(batch, 0, examples)
    rest = 1 - none - sum((group.probability for group in groups), Fraction(0))
    return [*groups, _Group(0, batch, rest)]


def _chance(batch: int, multiplicity: int, examples: int) -> Fraction:
    """Return a chance rounded down to a multiple of ``2^-960``, its own round-off included."""
    share = mp.one / examples
    value = mp.binomial(batch, multiplicity) * share**multiplicity
    value *= (1 - share) ** (batch - multiplicity)
    return Fraction(max(int(mp.floor(mp.ldexp(value, _BITS))) - 1, 0), 2**_BITS)


def _equal_examples(
    groups: list[_Group], noise_multiplier: Fraction, removing: bool
) -> PrivacyLoss:
    """Return the loss of data whose other examples are equal: a mixture of Gaussians."""
    known = [group for group in groups if group.fewest and group.probability > 0]
    rate = sum((group.probability for group in known), Fraction(0))
    distances = tuple(group.fewest / noise_multiplier for group in known)
    weights = tuple(group.probability / rate for group in known)
    return sampled_loss(GaussianMixtureLoss(distances, weights, removing), rate, removing)
