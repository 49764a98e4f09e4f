"""The pair of losses of a mechanism on a Poisson sample.

**A group that contributes one vector costs most**, for Gaussian noise: let the group's examples
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

**Truncated to a largest size B**, let the larger data set have n examples, x the one that differs,
and let J ~ Bin(n - 1, p) of the others be drawn. Whether ``J >= B`` has the same chance F with x
and without it, so that it may be told:

- ``J < B``: nothing is cut, and x is in the sample with probability p: the sum moves by up to C.
- ``J >= B``: without x the sample is a random set of B others, whatever J is; with x, if it is
  drawn and kept, a random set of B - 1 others and x. Another example, drawn at random, in the place
  of x makes the first sample of the second, so that the sum moves by up to 2C. This happens with
  the probability

      r = E[p B/(J + 1) | J >= B] = B P[Bin(n, p) > B] / (n F).

The pair is a mixture, told, of two sampled Gaussians: of rate p and noise z with probability
``1 - F``, and of rate r and noise z/2 with probability F. Where all other examples contribute
nothing, x matters where it is drawn and kept, with probability ``(1 - F) p + F r``: a pair that is
attained.

Where x is zeroed or replaced, both data sets have n examples, x or what it becomes is drawn and
kept alike in both, and J is as above. With the same coins it may be told again whether ``J >= B``:
then the sample is a random set of B - 1 others and, with probability r, x, else one more of the
others, whatever J is. That is a sample of a fixed size in which x is with the chance r, not B/n, of
which ``fixed_size.py`` says what vectors of the ball cost at most: replaced, ``y = g' = -g`` for
``eps > 0``. Below the cap they are a sampled Gaussian of rate p, and the one with examples that
move the sum both ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, cast

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
    TruncatedPoissonSubsampled,
)
from hockeystick.mechanisms.sampling.poisson import RevealedSample
from hockeystick.numerics import decimal
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import as_mpf, fraction_of
from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    both,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import NoiselessLoss, decimal_or_above
from hockeystick.privacy_loss.core.mixtures import (
    RandomizedResponsePairLoss,
    observed_mixture,
    two_point_pair,
)
from hockeystick.privacy_loss.core.outcomes import dominating_pair_of_outcomes
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss, JoinedLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss, gaussian_noise_pair
from hockeystick.privacy_loss.noise.gaussian_mixture import OppositeMixturesLoss, mixture_loss
from hockeystick.privacy_loss.sampling.fixed_size import clipped_pair, noise_of
from hockeystick.privacy_loss.sampling.sampled import (
    ReplacedGaussianLoss,
    SampledAtomsLoss,
    SampledLoss,
)
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss
from hockeystick.tradeoffs.functions.closed_forms import Masses, Outcomes

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
    if loss.failure == 0.0:
        return SampledAtomsLoss(loss, rate, removing)
    outcomes = None
    if loss.epsilon < LARGEST_EXPONENT:
        printed, exact = (_sampled_masses(loss, rate, read) for read in (decimal, Fraction))
        outcomes = Outcomes.within(printed, exact, _TINY)
    if outcomes is None:
        raise NoAnalysisError("its masses are out of the reach of floats")
    pair = dominating_pair_of_outcomes(outcomes)
    return cast(PrivacyLoss, pair.removing if removing else pair.adding)


def _sampled_masses(
    loss: RandomizedResponsePairLoss, rate: float | Fraction, read: Callable[[Any], Fraction]
) -> Masses:
    """Return the masses of Q and of ``q P + (1 - q) Q``, of a response that may fail."""
    q, failure = read(rate), read(loss.failure)
    with working_digits(_DIGITS):
        odds = fraction_of(mp.exp(as_mpf(read(loss.epsilon))))
    rest = (1 - failure) / (1 + odds)
    own, other = (
        (failure, odds * rest, rest, Fraction(0)),
        (Fraction(0), rest, odds * rest, failure),
    )
    return tuple((b, q * a + (1 - q) * b) for a, b in zip(own, other, strict=True))


def _replaced_gaussian(inner: Mechanism, rate: float | Fraction) -> DominatingPair:
    noise_multiplier = cast(Gaussian, inner).noise_multiplier
    if rate == 1:
        return gaussian_noise_pair(0.5 * noise_multiplier)
    if rate == 0 or math.isinf(noise_multiplier):
        return DominatingPair(None, None)
    if noise_multiplier == 0.0:
        return two_point_pair(0.0, float(rate))
    return both(ReplacedGaussianLoss(rate, noise_multiplier))


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
            f"sampled groups are accounted up to {_LARGEST_GROUP:,} examples, not for {size:,}"
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
    none = 1 - rate
    return [math.comb(size, k) * rate**k * none ** (size - k) for k in range(size + 1)]


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


_DIGITS: Final = 60
_BITS: Final = 960
# A chance is known to this.
_TINY: Final = Fraction(1, 10**50)


@dominating_pair.register
def _(mechanism: TruncatedPoissonSubsampled) -> DominatingPair:
    noise = noise_of(mechanism.inner, "Truncated Poisson sampling")
    if noise is None or mechanism.rate == 0:
        return DominatingPair(None, None)
    if mechanism.rate == 1:
        raise NoAnalysisError("at rate 1 every example is drawn; use FixedSizeSubsampled")
    adjacency = mechanism.adjacency
    if mechanism.cap >= mechanism.examples:
        return _uncut(mechanism.rate, noise, adjacency)
    cut, kept = cut_of(mechanism.examples, mechanism.cap, decimal(mechanism.rate))
    full, free = cut[0], 1 - cut[1]
    most = min(math.nextafter(float(kept[1]), 1.0), float(mechanism.rate))
    # What is not known of the chances counts as cut with the chance of any sample: it costs most.
    told = (
        (free, _uncut(mechanism.rate, noise, adjacency)),
        (full, _cut(most, noise, adjacency)),
        (1 - free - full, _cut(mechanism.rate, noise, adjacency)),
    )
    shown = math.nextafter(float(free * decimal(mechanism.rate) + full * kept[0]), 0.0)
    alone = _uncut(shown, noise, adjacency) if shown > 0.0 else DominatingPair(None, None)
    losses = []
    for way in (0, 1):
        above = observed_mixture((weight, cast(CellLoss, pair[way])) for weight, pair in told)
        losses.append(DominatedLoss(cast(CellLoss, above), alone[way]))
    return DominatingPair(*losses)


def _uncut(rate: float | Fraction, noise: float, adjacency: Adjacency) -> DominatingPair:
    if adjacency is Adjacency.REPLACE_ONE:
        return both(ReplacedGaussianLoss(rate, noise))
    return DominatingPair(*(SampledGaussianLoss(rate, noise, way) for way in (True, False)))


def _cut(rate: float | Fraction, noise: float, adjacency: Adjacency) -> DominatingPair:
    """Return the losses of a full sample that an example is in with some chance."""
    if adjacency is Adjacency.ADD_REMOVE:
        return _uncut(rate, noise / 2.0, adjacency)
    zeroed = clipped_pair(decimal(rate), noise) if adjacency is Adjacency.ZERO_OUT else None
    moved = SampledGaussianLoss(rate, noise / 2.0, True)
    return zeroed or both(JoinedLoss(moved, moved))


@lru_cache(maxsize=64)
def cut_of(examples: int, cap: int, rate: Fraction) -> tuple[tuple[Fraction, Fraction], ...]:
    """Return ends of the chance F that the sample is cut, and of that to be in it then, r.

    The cap is below the number of examples, the rate between 0 and 1. The ends are on a grid whose
    points are floats.
    """
    with working_digits(_DIGITS + len(str(examples))):
        full = _at_least(examples - 1, cap, rate)
        kept = cap * _at_least(examples, cap + 1, rate) / (examples * full)
        chances = fraction_of(full), fraction_of(kept)
    return tuple(
        (
            Fraction(math.floor(one * (1 - _TINY) * 2**_BITS), 2**_BITS),
            min(Fraction(math.ceil(one * (1 + _TINY) * 2**_BITS), 2**_BITS), most),
        )
        for one, most in zip(chances, (Fraction(1), rate), strict=True)
    )


def _at_least(trials: int, first: int, rate: Fraction) -> mpf:
    """Return ``P[Bin(trials, rate) >= first]``, from its mode on each chance from the one before.

    The ratio of two falls; once 2^-200 of the sum is left for all, as many as there are left.
    """
    if first <= trials * rate:
        return 1 - _at_least(trials, trials - first + 1, 1 - rate)
    share, odds = as_mpf(rate), as_mpf(rate / (1 - rate))
    chance = mp.binomial(trials, first) * share**first * (1 - share) ** (trials - first)
    total, least = chance, mp.ldexp(chance, -200) / trials
    for count in range(first, trials):
        chance *= odds * (trials - count) / (count + 1)
        total += chance
        if chance < least:
            break
    return total


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
    if loss is None or rate == 0:
        return None
    if rate == 1:
        return loss
    if isinstance(loss, NoiselessLoss) and loss.rate == 1:
        return RandomizedResponsePairLoss(0.0, decimal_or_above(rate))
    if isinstance(loss, RandomizedResponsePairLoss) and loss.failure > 0.0:
        raise NoAnalysisError("it may fail: sample its pure part, and add the failures of all runs")
    if not isinstance(loss, CellLoss):
        raise NoAnalysisError("only some bounds of its loss are known, not its distribution")
    return observed_mixture([(1 - rate, None), (rate, loss)])
