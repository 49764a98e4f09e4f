"""The pair of losses of a mechanism on a Poisson sample.

Why a group that contributes one vector costs most, for Gaussian noise: let the group's examples
contribute g_i with ``|g_i| <= 1/z`` on one data set and h_i on the other (0 where they are missing
or zeroed), and let S be those in the sample, which is drawn alike from both. With ``a_S`` and
``b_S`` the sums of g_i and h_i over S, relative to the other examples' sum, the densities over
N(0, I) are ``P = E_S L(a_S)`` and ``Q = E_S L(b_S)``, ``L(a) = exp(<a, Z> - |a|^2/2)``, and

    delta(eps) = E[(E_S L(a_S) - e^eps E_S L(b_S))_+],   Z ~ N(0, I).

That is a function of log-normal variables of mean 1, whose second derivatives are at least 0 by two
of the a or two of the b, and at most 0 by one of each. By Kahane's inequality (interpolate between
two Gaussian families: the derivative is the mean of ``1/2 sum (C'_ij - C_ij) L_i L_j d_ij F``) it
rises with every ``<a_S, a_T>`` and ``<b_S, b_T>``, S = T included, and falls with ``<a_S, b_T>``.
As ``|a_S| <= |S|/z``, the products are at most ``|S| |T|/z^2`` and at least its negative, and 0
with ``b = 0``: all g_i = u/z and h_i = -u/z (or 0) for one unit vector u have all extremes at once.
In the same way the cost rises with every length alone, so that counts may be moved up.
"""

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
    PoissonSubsampledGroup,
    Repeated,
)
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.registry import (
    DominatingPair,
    NoAnalysisError,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss, two_point_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss, gaussian_noise_pair
from hockeystick.privacy_loss.noise.gaussian_mixture import mixture_loss
from hockeystick.privacy_loss.noise.opposite_mixtures import OppositeMixturesLoss
from hockeystick.privacy_loss.sampling.replaced_gaussian import ReplacedGaussianLoss
from hockeystick.privacy_loss.sampling.sampled import SampledLoss
from hockeystick.privacy_loss.sampling.sampled_atoms import SampledAtomsLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss

# Losses beyond this would overflow once sampled.
_LARGEST: Final = 1e140
# Groups up to this size are accounted; counts rarer than this are moved to others.
_LARGEST_GROUP: Final = 1000
_RAREST: Final = Fraction(1, 10**90)
_FARTHEST: Final = 10**100


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


@dominating_pair.register
def _(mechanism: PoissonSubsampledGroup) -> DominatingPair:
    inner, rate, size = mechanism.inner, mechanism.rate, mechanism.size
    noise = cast(Gaussian, inner).noise_multiplier
    replaced = mechanism.adjacency is Adjacency.REPLACE_ONE
    if size == 1:
        return dominating_pair(PoissonSubsampled(inner, rate, mechanism.adjacency))
    if rate == 0 or math.isinf(noise):
        return DominatingPair(None, None)
    if size > _LARGEST_GROUP:
        raise NoAnalysisError(
            f"groups on a Poisson sample are accounted up to {_LARGEST_GROUP:,} examples, not for "
            f"{size:,}"
        )
    if replaced and noise == 0.0:
        return two_point_pair(0.0, float(1 - (1 - decimal(rate)) ** size))
    counts = binomial_counts(decimal(rate), size)
    upper, lower = (moved_counts(counts, up=up) for up in (True, False))
    losses = []
    for removing in (True, False):
        dominating, below = (
            opposite_loss(noise, moves) if replaced else mixture_loss(noise, moves, removing)
            for moves in (upper, lower)
        )
        if upper != lower and isinstance(dominating, CellLoss):
            dominating = DominatedLoss(dominating, below)
        losses.append(dominating)
    return DominatingPair(*losses)


def binomial_counts(rate: Fraction, size: int) -> list[Fraction]:
    """Return the probability of each number of examples in the sample."""
    return [
        math.comb(size, count) * rate**count * (1 - rate) ** (size - count)
        for count in range(size + 1)
    ]


def moved_counts(
    counts: list[Fraction], *, up: bool, rarest: Fraction = _RAREST
) -> dict[Fraction, Fraction]:
    """Return the numbers with their probabilities, those rarer than this moved up or down.

    Up: rare large ones to the largest, and rare small ones to the least that is not rare.
    """
    size = len(counts) - 1
    kept = [number for number, chance in enumerate(counts) if chance >= rarest]
    first, last = kept[0], kept[-1]
    found = {Fraction(number): counts[number] for number in kept}
    below, above = sum(counts[:first], Fraction(0)), sum(counts[last + 1 :], Fraction(0))
    if up:
        found[Fraction(first)] += below
        if above:
            # As much as a float can have, of which the mode can spare the rest.
            mode = max(found, key=lambda number: found[number])
            found[mode] -= max(rarest - above, Fraction(0))
            found[Fraction(size)] = found.get(Fraction(size), Fraction(0)) + max(above, rarest)
        return found
    found[Fraction(last)] += above
    if below:
        found[Fraction(0)] = found.get(Fraction(0), Fraction(0)) + below
    return {number: chance for number, chance in found.items() if chance >= rarest or not number}


def opposite_loss(
    noise_multiplier: float | Fraction, moves: dict[Fraction, Fraction]
) -> PrivacyLoss | None:
    """Return the loss of an answer that moves by these amounts, one way or the other.

    None for an answer that does not move.
    """
    noise = decimal(noise_multiplier)
    if len(moves) == 1:
        (number,) = moves
        return GaussianLoss(noise / (2 * number)) if number else None
    numbers = sorted(moves)
    distances = tuple(number / noise for number in numbers)
    if not (distances[-1] <= _FARTHEST and distances[1] >= 1 / _FARTHEST):
        raise NoAnalysisError("the noise multiplier is out of the reach of floats")
    return OppositeMixturesLoss(distances, tuple(moves[number] for number in numbers))
