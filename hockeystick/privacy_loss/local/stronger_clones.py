"""The stronger clones' pair, which dominates shuffled reports, and an attained pair of its kind.

Let t reports lie in two categories, x of them in the first, and ``S = 2x - t``. With
``b(x; t) = binom(t, x) / 2^t`` and g the masses of ``Bin(n - 1, 2q)``

    P(x, t) = b(x; t) (m_t + d_t S/t),    Q(x, t) = b(x; t) (m_t - d_t S/t),
    m_t = (e^eps + 1) q g(t-1) + (K - 2) q g(t),    d_t = (e^eps - 1) q g(t-1).

For ``q = 1 / (e^eps + K - 1)`` and K >= 3 that is K-ary randomized response where all others hold a
third category. For K = 2 it is the pair of the stronger clones, which dominates the shuffled
reports of every eps-DP randomizer (Feldman, McMillan and Talwar 2023).

Adding fair reports to the t is post-processing and keeps m and d: weights of neighbouring t are
added up at the least of them for an upper bound, at the largest for a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.atomic import AtomListLoss, read_only_atoms
from hockeystick.privacy_loss.core.base import Atoms, ProfiledLoss
from hockeystick.privacy_loss.core.observed_mixture import merged

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.kernels.series import Array

# Up to this number of pairs (x, t) each is an atom; above it, cells of the loss are used.
_MOST_ATOMS: Final = 1_500
CELLS: Final = 5000
# The range of the equidistant cells, in standard deviations of the loss; beyond it, far edges grow
# by a factor.
_DEVIATIONS: Final = 40.0
_GROWTH: Final = 1.02
# The number of terms at which neighbouring t are added up, and the least and largest number of t.
_WORK: Final = 6e5
_FEWEST_BLOCKS: Final = 60
_MOST_BLOCKS: Final = 4000
# A bound of the omitted mass: counts far from the modes, for n - 1 <= 10^9.
_OMITTED_MASS: Final = 1e-128


class ReportsLoss(AtomListLoss, ProfiledLoss):
    """An atomic loss of shuffled reports."""

    __slots__ = ()

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``sum p (1 - e^(epsilon - loss))`` over the atoms above epsilon, in floats.

        With a perturbation of 1 or -1 it is an upper or lower bound, rounding included.
        """
        from hockeystick.numerics.multiprecision import mp

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
    """The loss of the pair of the stronger clones, bounded from ``above`` or from below.

    Few outputs are atoms of their own. Of many, the masses of P and Q are computed in cells of the
    loss: from above each is split between the two ends of its cell (connect the dots), from below
    it is merged at ``ln(p/q)``. Omitted mass has the largest loss from above, and is dropped from
    below.
    """

    epsilon: float
    categories: int
    users: int
    above: bool

    def atoms(self) -> Atoms:
        return _clone_atoms(self)


class ReportWeights(NamedTuple):
    """``common = m_t - d_t`` and ``difference = d_t`` for each t, P(t = 0), and the error."""

    totals: Array
    common: Array
    difference: Array
    null_mass: float
    error: float


def _clone_weights(loss: StrongerClonesLoss) -> ReportWeights:
    """Return the weights for every t."""
    from hockeystick.kernels.shuffled_reports import binomial

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
    return np.concatenate(
        (
            np.arange(0, left, 4 * size),
            np.arange(left, right, size),
            np.arange(right, total, 4 * size),
        )
    )


def _merged_totals(weights: ReportWeights, *, above: bool) -> ReportWeights:
    """Return the weights with those of neighbouring t added up."""
    center = float(weights.totals @ weights.difference / weights.difference.sum())
    blocks = int(min(max(_WORK / math.sqrt(center), _FEWEST_BLOCKS), _MOST_BLOCKS))
    size = -(-weights.totals.size // (2 * blocks))
    if size == 1:
        return weights
    starts = block_starts(weights.totals.size, size)
    ends = np.append(starts[1:], weights.totals.size) - 1
    return ReportWeights(
        weights.totals[starts if above else ends],
        np.add.reduceat(weights.common, starts),
        np.add.reduceat(weights.difference, starts),
        weights.null_mass,
        weights.error + ULP * 4.0 * size,
    )


@lru_cache(maxsize=64)
def _clone_atoms(loss: StrongerClonesLoss) -> Atoms:
    """Return the atoms, one for each output or by cells."""
    weights = _clone_weights(loss)
    if float((weights.totals + 1.0).sum()) <= _MOST_ATOMS:
        atoms = atoms_one_by_one(weights, above=loss.above)
    else:
        deviation = deviation_of(weights)
        weights = _merged_totals(weights, above=loss.above)
        atoms = (
            connected_dots(loss.epsilon, weights, deviation)
            if loss.above
            else _merged_cells(loss, weights, deviation)
        )
    return read_only_atoms(*merged(with_omitted_mass(atoms, loss.epsilon) if loss.above else atoms))


def with_omitted_mass(atoms: Atoms, epsilon: float, omitted: float = _OMITTED_MASS) -> Atoms:
    """Return the atoms with a bound of the omitted mass added at both ends of the loss."""
    end = max(float(atoms.loss.max()), epsilon * (1.0 + 4.0 * ULP))
    two = np.full(2, math.log(omitted))
    return Atoms(
        np.append(atoms.loss, [float(atoms.loss.min()), end]),
        np.append(atoms.log_p, two),
        np.append(atoms.error, np.zeros(2)),
    )


def deviation_of(weights: ReportWeights) -> float:
    """Return an estimate of the standard deviation of the loss."""
    difference, common = float(weights.difference.sum()), float(weights.common.sum())
    center = float(weights.totals @ weights.difference) / difference
    return 2.0 * difference / ((common + difference) * math.sqrt(center))


def atoms_one_by_one(weights: ReportWeights, *, above: bool) -> Atoms:
    """Return one atom for each (x, t), rounded in the safe direction."""
    from hockeystick.kernels.shuffled_reports import binomial

    losses, masses = [], []
    for t, common, difference in zip(
        weights.totals, weights.common, weights.difference, strict=True
    ):
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


class _CellMasses(NamedTuple):
    """The masses of cells under P and Q, and the relative error of each."""

    p: Array
    q: Array
    error: Array


def _cell_masses(weights: ReportWeights, inner: Array) -> _CellMasses:
    """Return the masses between inner edges; the outermost cells extend to the ends of the loss."""
    from hockeystick.kernels.shuffled_reports import DEPTH, clone_masses

    cuts = np.tanh(0.5 * inner)
    p, q, terms = clone_masses(weights.totals, weights.common, weights.difference, cuts)
    steps = DEPTH * math.sqrt(float(weights.totals.max())) + 8.0
    return _CellMasses(p, q, weights.error + ULP * (4.0 * steps + terms + 64.0))


def _edges(epsilon: float, deviation: float, half: float) -> tuple[Array, float]:
    """Return the edges of the cells without the two ends, and their spacing."""
    reach = min(epsilon, _DEVIATIONS * deviation)
    step = reach / CELLS
    inner = step * (np.arange(-CELLS, CELLS) + half)
    kept = np.abs(inner) < epsilon * (1.0 - 1e-9)
    return inner[kept], step


def _far_edges(epsilon: float, inner: Array, step: float) -> Array:
    """Return the edges with growing ones on both sides, up to the ends of the loss."""
    reach = CELLS * step
    count = math.ceil(math.log(epsilon / reach) / math.log(_GROWTH))
    far = reach * _GROWTH ** np.arange(1.0, max(count, 1))
    return np.concatenate((-far[::-1], inner, far))


def _endpoint_error(epsilon: float) -> float:
    """Return the error of the edges of a cell in terms of the loss."""
    return ULP * (64.0 * math.cosh(0.5 * epsilon) ** 2 + 16.0 * epsilon)


def connected_dots(
    epsilon: float, weights: ReportWeights, deviation: float, *, far: bool = False
) -> Atoms:
    """Return each cell's mass split between its ends (connect the dots), rounded up.

    With ``far`` there are cells beyond the range of the equidistant ones, or else a single one.
    The share at the upper end keeps the mean of ``e^-L``, and is rounded up.
    """
    inner, step = _edges(epsilon, deviation, 0.0)
    inner = _far_edges(epsilon, inner, step) if far else inner
    p, q, error = _cell_masses(weights, inner)
    edges = np.concatenate(([-epsilon], inner, [epsilon]))
    known = np.flatnonzero((p > 0.0) & (q > 0.0))
    p, q, error = p[known], q[known], error[known]
    low, size = edges[known], np.diff(edges)[known]
    off = _endpoint_error(epsilon)
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
