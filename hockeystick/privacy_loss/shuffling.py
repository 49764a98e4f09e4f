"""Shuffled reports: the privacy blanket of local mechanisms, and the stronger clones.

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

The stronger clones' is that pair for K = 2, and the largest in convex order of all randomizers
(Feldman, McMillan and Talwar 2023). Of K-ary response where all others hold a third category let t
reports lie in the two, x of them in the first: with ``q = 1 / (e^eps + K - 1)``, ``S = 2x - t`` and
g the masses of ``Bin(n - 1, 2q)``

    P(x, t) = b(x; t) (m_t + d_t S/t),    Q(x, t) = b(x; t) (m_t - d_t S/t),
    m_t = (e^eps + 1) q g(t-1) + (K - 2) q g(t),    d_t = (e^eps - 1) q g(t-1),

also for K = 2. Adding fair reports is post-processing and keeps m and d: weights of neighbouring t
are added up at the largest of them, for a lower bound.

**Binary reports** are their number: ``Z ~ Bin(i, p) + Bin(n - 1 - i, 1 - p)`` and the first user's,
where i of the others hold the first datum, and ``p/(1 - p) = e^eps``. Z is log-concave, so that the
likelihood ratio rises, all tests are half-lines, and

    delta(ln k) = max over t of (e^eps - k)/(e^eps + 1) P[Z = t] - (k - 1) P[Z > t].

For i from a to b let Z be of a and ``n - 1 - b`` others: what those between report is revealed. The
largest delta of such ranges from 0 to n - 1 holds for all data, and for both orders of neighbours,
as the two data may change places. It is convex in k: chords between points are above it, and are
the profile of a pair, the same in both directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from itertools import pairwise
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.shuffled_reports import DEPTH, RAREST, binomial, clone_masses, up_to
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.local.reports import Encoding, RandomizedResponse, UnaryEncoding
from hockeystick.numerics import ULP
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss.core.atomic import AtomListLoss, kept, read_only_atoms
from hockeystick.privacy_loss.core.base import Array, Atoms, ProfiledLoss
from hockeystick.privacy_loss.core.mixtures import merged

# Up to this number of pairs (x, t) each is an atom; above it, cells of the loss are used.
_MOST_ATOMS: Final = 1_500
CELLS: Final = 5000
# The range of the equidistant cells, in standard deviations of the loss; beyond it, far edges grow
# by a factor.
_DEVIATIONS: Final = 40.0
_GROWTH: Final = 1.02
# A bound of the omitted mass, for n - 1 <= 10^9: counts far from the modes; and far sums of R
# values, up to 10^-135 of the whole, at most ``1 + e^eps`` times as likely under P or Q.
_OMITTED_MASS: Final = 1e-126


class ReportsLoss(AtomListLoss, ProfiledLoss):
    """An atomic loss of shuffled reports."""

    __slots__ = ()

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        # In floats; with a perturbation an upper or lower bound, rounding included.
        atoms = self.atoms()
        at = float(epsilon)
        at -= perturbation * 8.0 * ULP * (abs(at) + self.supremum)
        from_here = int(np.searchsorted(atoms.loss, at, side="right"))
        loss, log_p, error = (column[from_here:] for column in atoms)
        each = np.exp(log_p + perturbation * (error + 8.0 * ULP * (1.0 + np.abs(log_p))))
        total = float((each * -np.expm1(at - loss)).sum())
        return mp.mpf(total * (1.0 + perturbation * ULP * (loss.size + 16.0)))


@final
@dataclass(frozen=True, slots=True)
class StrongerClonesLoss(ReportsLoss):
    """The loss of the pair of the stronger clones, bounded from below.

    Few outputs are atoms of their own. Of many, the masses of P and Q are computed in cells of the
    loss, and merged at ``ln(p/q)``. Omitted mass is dropped.
    """

    epsilon: float
    categories: int
    users: int

    @kept(64)
    def atoms(self) -> Atoms:
        weights = _clone_weights(self)
        if float((weights.totals + 1.0).sum()) <= _MOST_ATOMS:
            return read_only_atoms(*merged(atoms_one_by_one(weights, above=False)))
        cells = _merged_cells(self, _merged_totals(weights), deviation_of(weights))
        return read_only_atoms(*merged(cells))


class ReportWeights(NamedTuple):
    """``common = m_t - d_t`` and ``difference = d_t`` for each t, P(t = 0), and the error."""

    totals: Array
    common: Array
    difference: Array
    null_mass: float
    error: float


def _clone_weights(loss: StrongerClonesLoss) -> ReportWeights:
    more, others = math.expm1(loss.epsilon), loss.categories - 2
    q = 1.0 / (more + loss.categories)
    first, mass = binomial(loss.users - 1, 2.0 / (more + others))
    before, at = np.append(0.0, mass), np.append(mass, 0.0)
    common, difference = q * (2.0 * before + others * at), more * q * before
    totals = np.arange(first, first + at.size, dtype=np.float64)
    null_mass = float(common[0]) if first == 0 else 0.0
    kept = difference > 0.0
    error = ULP * ((16.0 + 4.0 * loss.epsilon) * mass.size + 64.0)
    return ReportWeights(totals[kept], common[kept], difference[kept], null_mass, error)


def block_starts(total: int, size: int) -> NDArray[np.int64]:
    """Return where blocks of a range begin: finer in the middle, where most of the mass is."""
    left, right = int(0.3 * total), int(0.7 * total)
    far, near = np.arange(0, left, 4 * size), np.arange(left, right, size)
    return np.concatenate((far, near, np.arange(right, total, 4 * size)))


def _merged_totals(weights: ReportWeights) -> ReportWeights:
    center = float(weights.totals @ weights.difference / weights.difference.sum())
    # So that there are about 6e5 terms.
    blocks = int(min(max(6e5 / math.sqrt(center), 60), 4000))
    size = -(-weights.totals.size // (2 * blocks))
    if size == 1:
        return weights
    starts = block_starts(weights.totals.size, size)
    ends = np.append(starts[1:], weights.totals.size) - 1
    return ReportWeights(
        weights.totals[ends],
        np.add.reduceat(weights.common, starts),
        np.add.reduceat(weights.difference, starts),
        weights.null_mass,
        weights.error + ULP * 4.0 * size,
    )


def with_omitted_mass(atoms: Atoms, epsilon: float) -> Atoms:
    """Return the atoms with a bound of the omitted mass added at both ends of the loss."""
    end = max(float(atoms.loss.max()), epsilon * (1.0 + 4.0 * ULP))
    ends = [float(atoms.loss.min()), end], [math.log(_OMITTED_MASS)] * 2, [0.0, 0.0]
    return Atoms(*map(np.append, atoms, ends))


def deviation_of(weights: ReportWeights) -> float:
    """Return an estimate of the standard deviation of the loss."""
    difference, common = float(weights.difference.sum()), float(weights.common.sum())
    center = float(weights.totals @ weights.difference) / difference
    return 2.0 * difference / ((common + difference) * math.sqrt(center))


def atoms_one_by_one(weights: ReportWeights, *, above: bool) -> Atoms:
    """Return one atom for each (x, t), rounded in the safe direction."""
    losses, masses = [], []
    columns = weights.totals, weights.common, weights.difference
    for t, common, difference in zip(*columns, strict=True):
        _, fair = binomial(int(t), 1.0)
        heads = np.arange(t + 1.0) / t
        more, less = common + 2.0 * difference * heads, common + 2.0 * difference * heads[::-1]
        losses.append(np.log(more / less))
        masses.append(fair * more)
    if weights.null_mass > 0.0:
        losses.append(np.zeros(1))
        masses.append(np.array([weights.null_mass]))
    loss, log_p = np.concatenate(losses), np.log(np.concatenate(masses))
    off = (2.0 * weights.error + 64.0 * ULP) * (1.0 if above else -1.0)
    error = weights.error + ULP * (4.0 * float(weights.totals.max()) + 2.0 * np.abs(log_p))
    return Atoms(loss + off, log_p, error)


def _cell_masses(weights: ReportWeights, inner: Array) -> tuple[Array, Array, Array]:
    """Return masses under P and Q of cells from end to end of the loss, and relative errors."""
    cuts = np.tanh(0.5 * inner)
    p, q, terms = clone_masses(weights.totals, weights.common, weights.difference, cuts)
    steps = DEPTH * math.sqrt(float(weights.totals.max())) + 8.0
    return p, q, weights.error + ULP * (4.0 * steps + terms + 64.0)


def _edges(epsilon: float, deviation: float, half: float) -> tuple[Array, float]:
    reach = min(epsilon, _DEVIATIONS * deviation)
    step = reach / CELLS
    inner = step * (np.arange(-CELLS, CELLS) + half)
    kept = np.abs(inner) < epsilon * (1.0 - 1e-9)
    return inner[kept], step


def _far_edges(epsilon: float, inner: Array, step: float) -> Array:
    reach = CELLS * step
    count = math.ceil(math.log(epsilon / reach) / math.log(_GROWTH))
    far = reach * _GROWTH ** np.arange(1.0, max(count, 1))
    return np.concatenate((-far[::-1], inner, far))


def connected_dots(epsilon: float, weights: ReportWeights, deviation: float) -> Atoms:
    """Return each cell's mass split between its ends (connect the dots), rounded up.

    The share at the upper end keeps the mean of ``e^-L``, and is rounded up.
    """
    inner = _far_edges(epsilon, *_edges(epsilon, deviation, 0.0))
    p, q, error = _cell_masses(weights, inner)
    edges = np.concatenate(([-epsilon], inner, [epsilon]))
    known = np.flatnonzero((p > 0.0) & (q > 0.0))
    p, q, error = p[known], q[known], error[known]
    low, size = edges[known], np.diff(edges)[known]
    # The error of the edges of a cell in terms of the loss.
    off = ULP * (64.0 * math.cosh(0.5 * epsilon) ** 2 + 16.0 * epsilon)
    rest = np.clip(np.log(p / q) - low, 0.0, size)
    margin = (2.0 * error + 8.0 * off) / -np.expm1(-size)
    up = np.clip(np.expm1(-rest) / np.expm1(-size) + margin, 0.0, 1.0)
    down = np.clip(1.0 - up, 0.0, 1.0)
    losses = np.concatenate((low, edges[known + 1]))
    mass = np.concatenate((p * down, p * up))
    error = np.concatenate((error, error))[mass > 0.0]
    log_p = np.log(mass[mass > 0.0])
    return Atoms(losses[mass > 0.0] + off, log_p, error + ULP * (16.0 + 2.0 * np.abs(log_p)))


def _merged_cells(loss: StrongerClonesLoss, weights: ReportWeights, deviation: float) -> Atoms:
    """Return each cell merged; cells are centred at the points of a grid, as the means are then."""
    inner, _ = _edges(loss.epsilon, deviation, 0.5)
    p, q, error = _cell_masses(weights, inner)
    if weights.null_mass > 0.0:
        middle = int(np.searchsorted(inner, 0.0))
        p[middle] += weights.null_mass
        q[middle] += weights.null_mass
    known = (p > 0.0) & (q > 0.0)
    p, q, error = p[known], q[known], error[known] + 2.0 * ULP
    log_p = np.log(p)
    less = np.log(p / q) - (2.0 * error + 16.0 * ULP)
    return Atoms(less, log_p, error + ULP * (16.0 + 2.0 * np.abs(log_p)))


@final
@dataclass(frozen=True, slots=True)
class BinaryReportsLoss(ReportsLoss):
    """The loss of binary responses among others of the worst data, bounded from above."""

    epsilon: float
    users: int

    @kept(64)
    def atoms(self) -> Atoms:
        odds = math.exp(self.epsilon) * (1.0 + ULP * (8.0 + 4.0 * self.epsilon))
        step = 2.0 * math.sinh(0.5 * self.epsilon) / math.sqrt(self.users)
        edges = _far_edges(self.epsilon, *_edges(self.epsilon, step, 0.0))
        k = np.concatenate(([1.0], np.exp(edges[edges > 0.0]), [odds]))
        deviation = math.sqrt(self.users * odds) / (1.0 + odds)
        # Of the number of others who hold a datum; each takes about as long as the deviation.
        ranges = int(min(max(2e5 / deviation, 32.0), 200, self.users))
        starts = np.arange(ranges + 1) * self.users // ranges
        delta = np.zeros(k.size)
        for start, end in pairwise(starts.tolist()):
            delta = np.maximum(delta, _binary_profile(k, odds, start, self.users - end))
        slopes = -np.diff(delta + _OMITTED_MASS * (k < odds)) / np.diff(k)
        slopes = np.maximum.accumulate(slopes[::-1])[::-1] * (1.0 + ULP * (8.0 * k.size))
        rare = -np.diff(slopes, append=0.0)
        likely, loss = k[1:] * rare, np.log(k[1:]) + ULP * (8.0 + 4.0 * self.epsilon)
        mass = np.concatenate((rare, [max(1.0 - float((rare + likely).sum()), 0.0)], likely))
        loss = np.concatenate((-loss, [0.0], loss))[mass > 0.0]
        log_p = np.log(mass[mass > 0.0])
        return read_only_atoms(*merged(Atoms(loss, log_p, ULP * (8.0 + 2.0 * np.abs(log_p)))))


def _binary_profile(k: Array, odds: float, likely: int, rare: int) -> Array:
    """Return upper bounds of delta at ``ln k``, given how many others hold either datum."""
    n, share = likely + rare, 1.0 / (1.0 + odds)
    mean = (likely * odds + rare) * share
    # Beyond this Bernstein's inequality gives less than ``RAREST``.
    reach = 110.0 + math.sqrt(110.0**2 + 650.0 * n * odds * share * share)
    ends = int(max(mean - reach, 0.0)), n - int(max(n - mean - reach, 0.0))
    last = min(max(int((likely * odds * odds + rare) / (1.0 + odds * odds)), ends[0]), ends[1])
    below, error = up_to(likely, rare, odds, reach, last)
    above, more = up_to(rare, likely, odds, reach, n - last)
    mass = np.concatenate((below, above[-2::-1]))
    mass = mass[mass > RAREST * mass.max()]
    mass /= mass.sum()
    error = 2.0 * (error + more) + ULP * (4.0 * mass.size + 64.0)
    after = np.append(np.cumsum(mass[:0:-1])[::-1], 0.0)
    with np.errstate(divide="ignore"):
        at = np.searchsorted(mass[:-1] / mass[1:], (k * odds - 1.0) / (odds - k), side="right")
    once = (odds - k) * share * mass[at] * (1.0 + 4.0 * error)
    return np.asarray(once - (k - 1.0) * after[at] * (1.0 - 4.0 * error))


# Up to this number of outputs each is an atom.
_MOST_BLANKET_ATOMS: Final = 20_000
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
_GRID_GROWTH: Final = 1.3
# Weights below this are omitted.
_RAREST: Final = 1e-136


class Blanket(NamedTuple):
    """How likely a report says one of two data, both, or neither (``worth`` w), or is no report."""

    one: float
    both: float
    neither: float
    remainder: float
    worth: float = 1.0


@singledispatch
def blanket_of(randomizer: Mechanism, epsilon: float, variation: float) -> Blanket:
    """Return the blanket of a randomizer; of all within a total variation, if no more is known."""
    # Far more than what floats lose.
    one = variation * (1.0 + 1e-9) / math.expm1(epsilon)
    both = math.exp(-epsilon) - one * (1.0 + math.exp(-epsilon))
    if both < 1e-3 * one:
        return Blanket(1.0 / (1.0 + math.exp(epsilon)), 0.0, 0.0, math.tanh(0.5 * epsilon))
    return Blanket(one, 0.0, both, 1.0 - 2.0 * one - both, math.exp(epsilon))


@blanket_of.register
def _(randomizer: RandomizedResponse, epsilon: float, variation: float) -> Blanket:
    more, others = math.expm1(randomizer.epsilon), randomizer.categories - 2.0
    total = more + 2.0 + others
    return Blanket(1.0 / total, 0.0, others / total, more / total)


@blanket_of.register
def _(randomizer: UnaryEncoding, epsilon: float, variation: float) -> Blanket:
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

    blanket: Blanket
    epsilon: float
    users: int

    @kept(64)
    def atoms(self) -> Atoms:
        weights = _weights(self)
        if float((weights.totals + 1.0).sum()) <= _MOST_BLANKET_ATOMS:
            atoms = atoms_one_by_one(weights, above=True)
        else:
            atoms = connected_dots(self.epsilon, weights, deviation_of(weights))
            if weights.null_mass > 0.0:
                null = 0.0, math.log(weights.null_mass), weights.error
                atoms = Atoms(*map(np.append, atoms, null))
        return read_only_atoms(*merged(with_omitted_mass(atoms, self.epsilon)))


def _weights(loss: BlanketLoss) -> ReportWeights:
    blanket, more = loss.blanket, math.expm1(loss.epsilon)
    rest = blanket.both + blanket.neither + blanket.remainder
    first, mass = binomial(loss.users - 1, 2.0 * blanket.one / rest)
    s: Array = np.arange(first + 1.0, first + mass.size + 0.5)
    starts = _starts(s, _grid(blanket, more + 1.0, _trials(blanket, loss.users)).size)
    lasts = np.append(starts[1:], s.size) - 1
    parts, error = [], 0.0
    for start, last in zip(starts, lasts, strict=True):
        trials = _trials(blanket, loss.users - int(s[last]))
        at, chances, unsure = _sums(blanket, more + 1.0, trials)
        ratios, masses = _outermost(s[start : last + 1], mass[start : last + 1], loss.users)
        common = (2.0 / more) * (1.0 + np.outer(ratios, blanket.worth * at / trials))
        difference = more * blanket.one * np.outer(masses, chances)
        parts.append((np.full(common.size, s[start]), (common * difference).ravel(), difference))
        error = max(error, unsure + ULP * (2.0 * (last - start) + 8.0))
    totals, common, difference = (
        np.concatenate([np.ravel(column) for column in columns])
        for columns in zip(*parts, strict=True)
    )
    kept = np.maximum(common, difference) > _RAREST
    alike = blanket.both * (more + 1.0) + blanket.neither * blanket.worth
    null = alike * mass[0] if first == 0 else 0.0
    error += ULP * ((16.0 + 4.0 * loss.epsilon) * mass.size + 64.0)
    return ReportWeights(totals[kept], common[kept], difference[kept], float(null), error)


def _starts(s: Array, points: int) -> NDArray[np.int64]:
    # So that there are about 1e6 terms.
    blocks = max(1e6 / (math.sqrt(float(s.mean())) * points), 16)
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


@lru_cache(maxsize=64)
def _sums(blanket: Blanket, odds: float, trials: int) -> tuple[Array, Array, float]:
    """Return a grid, the masses on it of the sum of R values ``odds``, 1 or 0, and their error."""
    grid = _grid(blanket, odds, trials)
    if grid.size == 1:
        return grid, np.ones(1), 0.0
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
    return grid, found, error


def _grid(blanket: Blanket, odds: float, trials: int) -> Array:
    """Return points that all sums of R values lie between."""
    if blanket.neither == 0.0:
        return np.zeros(1)
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
    last = float(near[-1])
    steps = max(math.ceil(math.log(max(end, last) / last) / math.log(_GRID_GROWTH)), 0)
    return np.append(near, last * _GRID_GROWTH ** np.arange(1.0, steps + 1.0))
