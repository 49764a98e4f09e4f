"""The losses of Gaussian noise on a Poisson sample truncated to a largest size.

Let the larger data set have n examples, x the one that differs, and let J ~ Bin(n - 1, p) of the
others be drawn; B is the cap. Whether ``J >= B`` has the same chance F with x and without it, so
that it may be told:

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
which ``fixed_size.py`` says what vectors of the ball cost at most: zeroed, the pair of opposite and
of equal vectors, and replaced, with ``(1-r) N(y) + r N(g)`` against ``(1-r) N(y) + r N(g')`` for
y, g, g' in the ball, by the same inequality ``y = g' = -g`` for ``eps > 0``: a sampled Gaussian of
rate r and noise z/2, and for ``eps < 0`` the reverse of the other order. Below the cap they are a
sampled Gaussian of rate p, and the one with examples that move the sum both ways.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple, cast

import numpy as np

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import TruncatedPoissonSubsampled
from hockeystick.numerics import ULP, decimal
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.observed_mixture import observed_mixture
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.core.symmetrized import symmetrized
from hockeystick.privacy_loss.sampling.fixed_size import clipped_pair
from hockeystick.privacy_loss.sampling.replaced_gaussian import ReplacedGaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss
from hockeystick.privacy_loss.sampling.with_replacement import noise_of

_DIGITS: Final = 60
_BITS: Final = 960
# A chance is known to this.
_TINY: Final = Fraction(1, 10**50)
# The most chances that are added up; a geometric series bounds the others.
_MOST_TERMS: Final = 2_000_000
# The number of standard deviations beyond which the series takes over.
_REACH: Final = 12.0


class Enclosure(NamedTuple):
    """A number that lies between two others."""

    low: Fraction
    high: Fraction

    @property
    def rest(self) -> Enclosure:
        """One less the number."""
        return Enclosure(1 - self.high, 1 - self.low)


class Cut(NamedTuple):
    """The chance F that the sample is cut, and the chance r to be in it then."""

    full: Enclosure
    kept: Enclosure


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
    cut = cut_of(mechanism.examples, mechanism.cap, decimal(mechanism.rate))
    full, free = cut.full.low, cut.full.rest.low
    most = min(math.nextafter(float(cut.kept.high), 1.0), float(mechanism.rate))
    # What is not known of the chances counts as cut with the chance of any sample: it costs most.
    told = (
        (free, _uncut(mechanism.rate, noise, adjacency)),
        (full, _cut(most, noise, adjacency)),
        (1 - free - full, _cut(mechanism.rate, noise, adjacency)),
    )
    shown = math.nextafter(float(free * decimal(mechanism.rate) + full * cut.kept.low), 0.0)
    alone = _uncut(shown, noise, adjacency) if shown > 0.0 else DominatingPair(None, None)
    losses = []
    for way in (0, 1):
        above = observed_mixture((weight, cast(CellLoss, pair[way])) for weight, pair in told)
        losses.append(DominatedLoss(cast(CellLoss, above), alone[way]))
    return DominatingPair(*losses)


def _uncut(rate: float | Fraction, noise: float, adjacency: Adjacency) -> DominatingPair:
    """Return the losses of a sample that is not cut."""
    if adjacency is Adjacency.REPLACE_ONE:
        replaced = ReplacedGaussianLoss(rate, noise)
        return DominatingPair(replaced, replaced)
    return DominatingPair(*(SampledGaussianLoss(rate, noise, way) for way in (True, False)))


def _cut(rate: float | Fraction, noise: float, adjacency: Adjacency) -> DominatingPair:
    """Return the losses of a full sample that an example is in with some chance."""
    moved = SampledGaussianLoss(rate, noise / 2.0, True)
    if adjacency is Adjacency.ADD_REMOVE:
        return DominatingPair(moved, SampledGaussianLoss(rate, noise / 2.0, False))
    zeroed = None
    if adjacency is Adjacency.ZERO_OUT:
        zeroed = clipped_pair(decimal(rate), noise)
    if zeroed is None:
        return DominatingPair(*(symmetrized(moved, None),) * 2)
    return DominatingPair(*(loss.without_attained if loss is not None else None for loss in zeroed))


@lru_cache(maxsize=64)
def cut_of(examples: int, cap: int, rate: Fraction) -> Cut:
    """Return F and r, for a cap below the number of examples and a rate between 0 and 1.

    Chances are added up from the cap on, away from the mode: each is the one before times a ratio
    that falls. What follows the last one is less than a geometric series.
    """
    others = examples - 1
    if cap > others * rate:
        chance = _chance(others, cap, rate)
        total, shares = _sums(others, cap, rate, 1)
        kept = Enclosure(rate * shares.low / total.high, min(rate * shares.high / total.low, rate))
        return Cut(_product(chance, total), kept)
    below, at = _chance(others, cap - 1, rate), _chance(others, cap, rate)
    full = _product(below, _sums(others, cap - 1, rate, -1)[0]).rest
    # P[Bin(n, p) > B] is F less the chance that J = B and x is not drawn.
    share, missed = Fraction(cap, examples), 1 - rate
    least = 1 - missed * min(at.high / full.low, Fraction(1)) if full.low else Fraction(0)
    most = 1 - missed * at.low / full.high
    return Cut(full, Enclosure(share * least, min(share * most, rate)))


def _product(chance: Enclosure, total: Enclosure) -> Enclosure:
    """Return a chance times a sum, on a grid whose points are floats."""
    low = math.floor(chance.low * total.low * 2**_BITS)
    high = math.ceil(chance.high * total.high * 2**_BITS)
    return Enclosure(Fraction(low, 2**_BITS), min(Fraction(high, 2**_BITS), Fraction(1)))


def _sums(trials: int, first: int, rate: Fraction, step: int) -> tuple[Enclosure, Enclosure]:
    """Return sums of the chances of ``Bin(trials, rate)``, over the first of them, up or down.

    The second one is that of ``first/(count + 1)`` times the chances.
    """
    odds = float(rate / (1 - rate))
    room = trials - first if step > 0 else first
    deviation = math.sqrt(trials * float(rate) * float(1 - rate))
    terms = min(room, math.ceil(_REACH * deviation) + 64, _MOST_TERMS)
    counts = first + step * np.arange(terms + 1, dtype=np.float64)
    if step > 0:
        ratios = (trials - counts) * odds / (counts + 1.0)
    else:
        ratios = counts / ((trials - counts + 1.0) * odds)
    sizes = np.append(1.0, np.cumprod(ratios[:-1]))
    weighed = sizes * (first / (counts + 1.0))
    # All that follows, each no more than the last ratio times the one before.
    last = float(ratios[-1]) * (1.0 + 8.0 * ULP)
    beyond = float(sizes[-1]) * last / (1.0 - last) if last < 1.0 else math.inf
    if not beyond < trials:
        beyond = float(sizes[-1]) * (room - terms)
    unsure = Fraction((8.0 * terms + 64.0) * ULP)
    rest = Fraction(beyond)
    ends = []
    for found in (sizes, weighed):
        sum_of = Fraction(float(found.sum()))
        ends.append(Enclosure(sum_of * (1 - unsure), (sum_of + rest) * (1 + unsure)))
    return ends[0], ends[1]


def _chance(trials: int, count: int, rate: Fraction) -> Enclosure:
    """Return ``P[Bin(trials, rate) = count]`` to 50 digits; what is next to nothing may be 0."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(_DIGITS + len(str(trials))):
        share = mp.mpf(rate.numerator) / rate.denominator
        value = mp.binomial(trials, count) * share**count * (1 - share) ** (trials - count)
        if mp.mag(value) < -2 * _BITS:
            return Enclosure(Fraction(0), Fraction(1, 2 ** (2 * _BITS)))
        mantissa, exponent = value.man_exp
    found = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return Enclosure(found * (1 - _TINY), found * (1 + _TINY))
