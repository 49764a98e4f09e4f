"""Coins of which one leans: the pair that dominates shuffled reports, and one that some data reach.

Let T coins be thrown, all fair but one, which leans by chance to one side under P and to the other
under Q. With S heads more than tails, fair coins give ``b(x; t)`` to x heads, and with g the masses
of ``Bin(n - 1, 2q)``

    P(x, t) = b(x; t) (m_t + d_t S/t),    Q(x, t) = b(x; t) (m_t - d_t S/t),
    m_t = (e^eps + 1) q g(t-1) + (K - 2) q g(t),    d_t = (e^eps - 1) q g(t-1).

For ``q = 1 / (e^eps + K - 1)`` and K >= 3 that is K-ary randomized response where all others hold a
third category: a coin is a report of one of the two categories in question. For K = 2 it is the
pair of the stronger clones, which dominates all that is eps-DP (Feldman, McMillan and Talwar 2023).

Throwing more fair coins, unseen among the others, is data processing and leaves m and d as they
are: weights of neighbouring t are added up at the least of them from above, at the largest below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.atomic import AtomListLoss, read_only_atoms
from hockeystick.privacy_loss.core.base import Atoms, ProfiledLoss
from hockeystick.privacy_loss.core.observed_mixture import merged

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.kernels.series import Array

# Pairs of x and t are listed one by one up to this number; else they go into cells.
_MOST_POINTS: Final = 1_500
CELLS: Final = 5000
# How many standard deviations of the loss the equal cells reach.
_REACH: Final = 40.0
# How much work neighbouring numbers of coins are added up for, and into how many at least and most.
_WORK: Final = 6e5
_FEWEST: Final = 60
_MOST: Final = 4000
# More than all that is left out: of n - 1 <= 10^9 others and as many coins, next to their modes.
_LEFT_OUT: Final = 1e-128


class ReportsLoss(AtomListLoss, ProfiledLoss):
    """A loss of the reports, listed as atoms."""

    __slots__ = ()

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``sum p (1 - e^(epsilon - loss))`` over the atoms above epsilon, as a float's.

        With a perturbation of 1 or -1 it is a bound: all that rounding may have moved lies inside.
        """
        from mpmath import mp

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
    """The loss of coins of which one leans, or one above it, or one below it.

    Few outputs are listed one by one. Of many, the masses of P and Q are worked out in cells of the
    loss. Above, those of a cell are spread to its two ends, both kept; below, a cell is merged.
    What is left out is taken to lose the most from above, and
    nothing from below.
    """

    epsilon: float
    categories: int
    users: int
    above: bool

    def atoms(self) -> Atoms:
        """Return the atoms."""
        return _coin_atoms(self)


class _StrongerClones(NamedTuple):
    """Numbers of coins with ``m - d`` and ``d`` of each, P where no coin is seen, and the error."""

    coins: Array
    flat: Array
    lean: Array
    unseen: float
    error: float


def _coins(loss: StrongerClonesLoss) -> _StrongerClones:
    """Return how many coins there may be, one by one."""
    from hockeystick.kernels.shuffled_reports import binomial

    more, others = math.expm1(loss.epsilon), loss.categories - 2
    q = 1.0 / (more + loss.categories)
    first, mass = binomial(loss.users - 1, 2.0 / (more + others))
    before, at = np.append(0.0, mass), np.append(mass, 0.0)
    flat, lean = q * (2.0 * before + others * at), more * q * before
    coins = np.arange(first, first + at.size, dtype=np.float64)
    unseen = float(flat[0]) if first == 0 else 0.0
    kept = lean > 0.0
    error = ULP * ((16.0 + 4.0 * loss.epsilon) * mass.size + 64.0)
    return _StrongerClones(coins[kept], flat[kept], lean[kept], unseen, error)


def _blocks(found: _StrongerClones, *, above: bool) -> _StrongerClones:
    """Return numbers of coins with those of neighbours added up."""
    center = float(found.coins @ found.lean / found.lean.sum())
    blocks = int(min(max(_WORK / math.sqrt(center), _FEWEST), _MOST))
    size = -(-found.coins.size // (2 * blocks))
    if size == 1:
        return found
    # The middle is where most of the mass is: there blocks are finer, and outside coarser.
    total, edges = found.coins.size, (0.3 * found.coins.size, 0.7 * found.coins.size)
    left, right = (int(edge) for edge in edges)
    starts = np.concatenate(
        (
            np.arange(0, left, 4 * size),
            np.arange(left, right, size),
            np.arange(right, total, 4 * size),
        )
    )
    ends = np.append(starts[1:], total) - 1
    return _StrongerClones(
        found.coins[starts if above else ends],
        np.add.reduceat(found.flat, starts),
        np.add.reduceat(found.lean, starts),
        found.unseen,
        found.error + ULP * 4.0 * size,
    )


@lru_cache(maxsize=64)
def _coin_atoms(loss: StrongerClonesLoss) -> Atoms:
    """Return the atoms, one by one or by cells."""
    found = _coins(loss)
    if float((found.coins + 1.0).sum()) <= _MOST_POINTS:
        atoms = _listed(found, above=loss.above)
    else:
        width = _width(found)
        found = _blocks(found, above=loss.above)
        atoms = _spread(loss, found, width) if loss.above else _merged_down(loss, found, width)
    return read_only_atoms(*merged(_with_left_out(atoms, loss.epsilon) if loss.above else atoms))


def _with_left_out(atoms: Atoms, epsilon: float) -> Atoms:
    """Return atoms with more than all that is left out, under P and under Q, at both ends."""
    end = max(float(atoms.loss.max()), epsilon * (1.0 + 4.0 * ULP))
    two = np.full(2, math.log(_LEFT_OUT))
    return Atoms(
        np.append(atoms.loss, [float(atoms.loss.min()), end]),
        np.append(atoms.log_p, two),
        np.append(atoms.error, np.zeros(2)),
    )


def _width(found: _StrongerClones) -> float:
    """Return about the standard deviation of the loss."""
    lean, flat = float(found.lean.sum()), float(found.flat.sum())
    center = float(found.coins @ found.lean) / lean
    return 2.0 * lean / ((flat + lean) * math.sqrt(center))


def _listed(found: _StrongerClones, *, above: bool) -> Atoms:
    """Return one atom for each number of coins and of heads, moved to the safe side."""
    from hockeystick.kernels.shuffled_reports import binomial

    losses, masses = [], []
    for t, flat, lean in zip(found.coins, found.flat, found.lean, strict=True):
        _, fair = binomial(int(t), 1.0)
        heads = np.arange(t + 1.0) / t
        more, less = flat + 2.0 * lean * heads, flat + 2.0 * lean * heads[::-1]
        losses.append(np.log(more / less))
        masses.append(fair * more)
    if found.unseen > 0.0:
        losses.append(np.zeros(1))
        masses.append(np.array([found.unseen]))
    loss, log_p = np.concatenate(losses), np.log(np.concatenate(masses))
    off = (2.0 * found.error + 64.0 * ULP) * (1.0 if above else -1.0)
    error = found.error + ULP * (4.0 * float(found.coins.max()) + 2.0 * np.abs(log_p))
    return Atoms(loss + off, log_p, error)


class _Filled(NamedTuple):
    """The masses of cells under P and Q, and the relative error of each."""

    p: Array
    q: Array
    error: Array


def _filled(found: _StrongerClones, inner: Array) -> _Filled:
    """Return the masses between inner edges; the outermost cells have the ends of the loss."""
    from hockeystick.kernels.shuffled_reports import DEPTH, leaning_coins

    cuts = np.tanh(0.5 * inner)
    p, q, terms = leaning_coins(found.coins, found.flat, found.lean, cuts)
    steps = DEPTH * math.sqrt(float(found.coins.max())) + 8.0
    return _Filled(p, q, found.error + ULP * (4.0 * steps + terms + 64.0))


def _edges(loss: StrongerClonesLoss, width: float, half: float) -> tuple[Array, float]:
    """Return the edges of the cells but for the two ends, and the step between them."""
    reach = min(loss.epsilon, _REACH * width)
    step = reach / CELLS
    inner = step * (np.arange(-CELLS, CELLS) + half)
    kept = np.abs(inner) < loss.epsilon * (1.0 - 1e-9)
    return inner[kept], step


def _displaced(epsilon: float) -> float:
    """Return how far beyond the edges of its cell the loss of an output may lie."""
    return ULP * (64.0 * math.cosh(0.5 * epsilon) ** 2 + 16.0 * epsilon)


def _spread(loss: StrongerClonesLoss, found: _StrongerClones, width: float) -> Atoms:
    """Return each cell's mass at the ends of the cell, moved up.

    The share that goes up keeps the mean of ``e^-L``, and is rounded up.
    """
    inner, _ = _edges(loss, width, 0.0)
    p, q, error = _filled(found, inner)
    edges = np.concatenate(([-loss.epsilon], inner, [loss.epsilon]))
    known = np.flatnonzero((p > 0.0) & (q > 0.0))
    p, q, error = p[known], q[known], error[known]
    low, size = edges[known], np.diff(edges)[known]
    off = _displaced(loss.epsilon)
    rest = np.clip(np.log(p / q) - low, 0.0, size)
    margin = (2.0 * error + 8.0 * off) / -np.expm1(-size)
    up = np.clip(np.expm1(-rest) / np.expm1(-size) + margin, 0.0, 1.0)
    down = np.clip(1.0 - up, 0.0, 1.0)
    place = np.concatenate((low, edges[known + 1]))
    mass = np.concatenate((p * down, p * up))
    error = np.concatenate((error, error))[mass > 0.0]
    log_p = np.log(mass[mass > 0.0])
    return Atoms(place[mass > 0.0] + off, log_p, error + ULP * (16.0 + 2.0 * np.abs(log_p)))


def _merged_down(loss: StrongerClonesLoss, found: _StrongerClones, width: float) -> Atoms:
    """Return each cell merged; cells lie around the points of a grid, as means then do as well."""
    inner, _ = _edges(loss, width, 0.5)
    p, q, error = _filled(found, inner)
    if found.unseen > 0.0:
        middle = int(np.searchsorted(inner, 0.0))
        p[middle] += found.unseen
        q[middle] += found.unseen
    known = (p > 0.0) & (q > 0.0)
    p, q, error = p[known], q[known], error[known] + 2.0 * ULP
    log_p = np.log(p)
    less = np.log(p / q) - (2.0 * error + 16.0 * ULP)
    return Atoms(less, log_p, error + ULP * (16.0 + 2.0 * np.abs(log_p)))
