"""The privacy blanket of randomized response and of unary encodings, after shuffling.

For data x and x' of the first user and w the pointwise least density of all data, each of the
others reports from w with probability ``|w|``. Reveal who reported from the remainder, and what:
all else is a function of the multiset of the first user's report and of those from w, whatever the
others' data are, so that this multiset's pair dominates (Balle, Bell, Gascon and Nissim 2019). For
these randomizers ``R_x = r w`` with r = ``e^eps`` on the reports that say x (its category; its bit)
and 1 on the others. So a report of the others says, with probabilities of

                            x or x' alone, each   both          neither        in units of 1 over
    K-ary response          1                     0             K - 2          e^eps + K - 1
    symmetric encoding      1                     e^(-eps/2)    e^(eps/2)      (1 + e^(eps/2))^2
    optimized encoding      1                     e^-eps        e^eps          2 + 2 e^eps

and it is from the remainder else. (Of the encodings, w is larger where all bits are 1; to leave
that away is to reveal more.) Of all reports that are not from the remainder let s say x or x'
alone, k of them x, and U be s, plus ``e^eps`` times those that say both, plus those that say
neither. The likelihood ratio is ``(U + (e^eps - 1) k) / (U + (e^eps - 1) (s - k))``. With a = the
probability of either alone, and g the masses of ``Bin(n - 1, 2a)``,

    P = b(k; s) d_s (c + 2k/s),   Q = b(k; s) d_s (c + 2 (s - k)/s),   b(k; s) = binom(s, k) / 2^s,
    c = 2U / (s (e^eps - 1)),     d_s = (e^eps - 1) a g(s-1),

where U, given s and weighted by d_s, is s plus the sum of n - s independent values, each ``e^eps``,
1 or 0. Both densities are linear in c, so each divergence is convex in U: what is larger than U in
convex order dominates. Used are

- the mean of R of the n - s values for the mean of all (the means of more and more values are a
  reversed martingale), which makes the law the same for many s;
- points of a grid for what lies between them (connect the dots);
- for neighbouring s, the two outermost ``(n - s)/s``, and the least s, as adding fair reports is
  post-processing.

The stronger clones are the largest in convex order of all randomizers, this one included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.local.randomized_response import RandomizedResponse
from hockeystick.mechanisms.local.unary_encoding import Encoding, UnaryEncoding
from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.atomic import read_only_atoms
from hockeystick.privacy_loss.core.base import Atoms
from hockeystick.privacy_loss.core.observed_mixture import merged
from hockeystick.privacy_loss.local.stronger_clones import (
    ReportsLoss,
    ReportWeights,
    atoms_one_by_one,
    block_starts,
    connected_dots,
    deviation_of,
    with_omitted_mass,
)

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Up to this number of outputs each is an atom.
_MOST_ATOMS: Final = 20_000
# The largest number R of values whose mean is taken: with two kinds of them, and with one.
_MOST_VALUES: Final = 2**12
_MOST_VALUES_OF_ONE_KIND: Final = 2**16
# R is rounded down to this number of leading bits, so that few laws are needed.
_BITS: Final = 4
# Up to this number of sums each is a point of the grid. Else its steps add this to the variance,
# relative to the mean's square, but are no finer than a part of the standard deviation. Beyond some
# deviations they grow.
_MOST_POINTS: Final = 45
_ADDED: Final = 1e-4
_FINEST: Final = 0.3
_NEAR: Final = 5.0
_GROWTH: Final = 1.3
# The number of terms at which neighbouring s are added up, and the fewest blocks of them.
_WORK: Final = 1e6
_FEWEST_BLOCKS: Final = 16
# Weights below this are omitted, and a bound of all omitted mass: that of far sums of R values, up
# to 10^-135 of the whole, is at most ``1 + e^eps`` times as likely under P or Q.
_RAREST: Final = 1e-136
_OMITTED_MASS: Final = 1e-126


class Blanket(NamedTuple):
    """How likely a report says one of two data, both, or neither, or is from the remainder."""

    one: float
    both: float
    neither: float
    remainder: float


@singledispatch
def blanket_of(randomizer: Mechanism) -> Blanket | None:
    """Return the blanket of a randomizer; None where none is known, or the clones' is the same."""
    return None


@blanket_of.register
def _(randomizer: RandomizedResponse) -> Blanket | None:
    if randomizer.categories == 2:
        return None
    more, others = math.expm1(randomizer.epsilon), randomizer.categories - 2.0
    total = more + 2.0 + others
    return Blanket(1.0 / total, 0.0, others / total, more / total)


@blanket_of.register
def _(randomizer: UnaryEncoding) -> Blanket:
    epsilon = randomizer.epsilon
    if randomizer.kind is Encoding.OPTIMIZED:
        odds = math.exp(epsilon)
        one = 0.5 / (1.0 + odds)
        return Blanket(one, one / odds, one * odds, -0.5 * math.expm1(-epsilon))
    root = math.exp(0.5 * epsilon)
    one = 1.0 / (1.0 + root) ** 2
    return Blanket(one, one / root, one * root, -math.expm1(-0.5 * epsilon))


@final
@dataclass(frozen=True, slots=True)
class BlanketLoss(ReportsLoss):
    """The loss of the first user's report and those of the blanket, bounded from above.

    Few outputs are atoms of their own; of many, the masses of cells of the loss are split between
    the two ends of each.
    """

    randomizer: RandomizedResponse | UnaryEncoding
    users: int

    @property
    def epsilon(self) -> float:
        """That of the randomizer."""
        return self.randomizer.epsilon

    def atoms(self) -> Atoms:
        return _blanket_atoms(self)


@lru_cache(maxsize=64)
def _blanket_atoms(loss: BlanketLoss) -> Atoms:
    """Return the atoms, one for each output or by cells."""
    weights = _weights(loss)
    if float((weights.totals + 1.0).sum()) <= _MOST_ATOMS:
        atoms = atoms_one_by_one(weights, above=True)
    else:
        atoms = connected_dots(loss.epsilon, weights, deviation_of(weights), far=True)
        if weights.null_mass > 0.0:
            null = [0.0], [math.log(weights.null_mass)], [weights.error]
            columns = zip(atoms, null, strict=True)
            atoms = Atoms(*(np.append(column, one) for column, one in columns))
    return read_only_atoms(*merged(with_omitted_mass(atoms, loss.epsilon, _OMITTED_MASS)))


def _weights(loss: BlanketLoss) -> ReportWeights:
    """Return weights for pairs of s and U that dominate those of the blanket."""
    from hockeystick.kernels.shuffled_reports import binomial

    blanket, more = _known(loss.randomizer), math.expm1(loss.epsilon)
    rest = blanket.both + blanket.neither + blanket.remainder
    first, mass = binomial(loss.users - 1, 2.0 * blanket.one / rest)
    s: Array = np.arange(first + 1.0, first + mass.size + 0.5)
    starts = _starts(s, _grid(blanket, more + 1.0, _trials(blanket, loss.users)).size)
    lasts = np.append(starts[1:], s.size) - 1
    parts, error = [], 0.0
    for start, last in zip(starts, lasts, strict=True):
        trials = _trials(blanket, loss.users - int(s[last]))
        sums = _sums(blanket, more + 1.0, trials)
        ratios, masses = _outermost(s[start : last + 1], mass[start : last + 1], loss.users)
        common = (2.0 / more) * (1.0 + np.outer(ratios, sums.at / trials))
        difference = more * blanket.one * np.outer(masses, sums.mass)
        parts.append((np.full(common.size, s[start]), (common * difference).ravel(), difference))
        error = max(error, sums.error + ULP * (2.0 * (last - start) + 8.0))
    totals, common, difference = (
        np.concatenate([np.ravel(column) for column in columns])
        for columns in zip(*parts, strict=True)
    )
    kept = np.maximum(common, difference) > _RAREST
    null = (blanket.both * (more + 1.0) + blanket.neither) * mass[0] if first == 0 else 0.0
    error += ULP * ((16.0 + 4.0 * loss.epsilon) * mass.size + 64.0)
    return ReportWeights(totals[kept], common[kept], difference[kept], float(null), error)


def _known(randomizer: RandomizedResponse | UnaryEncoding) -> Blanket:
    """Return the blanket of a randomizer that has one."""
    found = blanket_of(randomizer)
    assert found is not None
    return found


def _starts(s: Array, points: int) -> NDArray[np.int64]:
    """Return where the blocks of neighbouring s begin."""
    blocks = max(_WORK / (math.sqrt(float(s.mean())) * points), _FEWEST_BLOCKS)
    size = -(-s.size // int(2.0 * min(blocks, s.size)))
    return np.arange(s.size) if size == 1 else block_starts(s.size, size)


def _outermost(s: Array, mass: Array, users: int) -> tuple[Array, Array]:
    """Return the outermost ``(n - s)/s`` of a block, and masses with the same mean, rounded up."""
    ratios = (users - s) / s
    if s.size == 1:
        return ratios, mass
    high, low = float(ratios[0]), float(ratios[-1])
    margin = 8.0 * ULP * high / (high - low)
    up = float(mass @ np.minimum((ratios - low) / (high - low) + margin, 1.0))
    down = float(mass @ np.minimum((high - ratios) / (high - low) + margin, 1.0))
    return np.array([high, low]), np.array([up, down])


def _trials(blanket: Blanket, others: int) -> int:
    """Return R for a number of values, rounded down to few leading bits; at least 1."""
    most = _MOST_VALUES if blanket.both > 0.0 else _MOST_VALUES_OF_ONE_KIND
    found = max(min(others, most), 1)
    shift = max(found.bit_length() - _BITS, 0)
    # Few sums are points of the grid themselves.
    return found if found <= 1 << (_BITS + 2) else (found >> shift) << shift


class _Sums(NamedTuple):
    """Points of a sum of R values and their masses, and the relative error of these."""

    at: Array
    mass: Array
    error: float


@lru_cache(maxsize=64)
def _sums(blanket: Blanket, odds: float, trials: int) -> _Sums:
    """Return the sum of R values ``odds``, 1 or 0, on a grid: between its points, split."""
    from hockeystick.kernels.shuffled_reports import binomial

    grid = _grid(blanket, odds, trials)
    gaps = np.diff(grid)
    first, mass = 0, np.ones(1)
    if blanket.both > 0.0:
        first, mass = binomial(trials, blanket.both / (blanket.neither + blanket.remainder))
    found, longest = np.zeros(grid.size), 0
    for both, chance in enumerate(mass, first):
        least, each = binomial(trials - both, blanket.neither / blanket.remainder)
        at = odds * both + np.arange(least, least + each.size)
        cell = np.clip(np.searchsorted(grid, at, side="right") - 1, 0, gaps.size - 1)
        share = (at - grid[cell]) / gaps[cell]
        margin = 16.0 * ULP * at / gaps[cell]
        up, down = (np.clip(one + margin, 0.0, 1.0) for one in (share, 1.0 - share))
        found[:-1] += chance * np.bincount(cell, each * down, gaps.size)
        found[1:] += chance * np.bincount(cell, each * up, gaps.size)
        longest = max(longest, each.size)
    error = ULP * ((16.0 + 4.0 * math.log(odds)) * (mass.size + longest) + 64.0)
    return _Sums(grid, found, error)


def _grid(blanket: Blanket, odds: float, trials: int) -> Array:
    """Return points that all sums of R values lie between."""
    most = odds if blanket.both > 0.0 else 1.0
    kinds = range(trials + 1) if blanket.both > 0.0 else range(1)
    if blanket.both == 0.0 and trials < _MOST_POINTS:
        return np.arange(trials + 1.0)
    if (trials + 1) * (trials + 2) <= 2 * _MOST_POINTS:
        return np.unique([odds * i + j for i in kinds for j in range(trials + 1 - i)])
    rest = blanket.both + blanket.neither + blanket.remainder
    first = (odds * blanket.both + blanket.neither) / rest
    second = (odds * odds * blanket.both + blanket.neither) / rest
    mean, deviation = trials * first, math.sqrt(trials * (second - first * first))
    step = max(2.0 * math.sqrt(_ADDED) * mean, _FINEST * deviation)
    near = step * np.arange(1.0, math.ceil(_NEAR * deviation / step) + 1.0)
    below, above = (_outward(near, one) for one in (mean, trials * most - mean))
    grid = np.concatenate((mean - below[::-1], [mean], mean + above))
    grid = grid if blanket.both > 0.0 else np.round(grid)
    return np.unique(np.concatenate(([0.0], np.clip(grid, 0.0, trials * most), [trials * most])))


def _outward(near: Array, end: float) -> Array:
    """Return the distances of points from the mean: near ones, then growing ones up to an end."""
    last = float(near[-1])
    steps = max(math.ceil(math.log(max(end, last) / last) / math.log(_GROWTH)), 0)
    return np.append(near, last * _GROWTH ** np.arange(1.0, steps + 1.0))
