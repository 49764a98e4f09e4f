"""One run's loss on a lattice: a distribution that dominates it, and one that it dominates.

Above, the mass of each cell goes to its two edges, P's and Q's mass both kept ("connect the dots",
Doroshenko et al. 2022): the likelihood ratio is spread with its mean kept, and every profile is
convex in it. Below, each cell is merged to its mean, which is data processing, and the mean is
rounded down to the lattice: P's mass stays, and the loss falls. The lattice's own offset is chosen
so that hardly any mean lies below its point, so that both are of second order in the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.base import Masses
from hockeystick.privacy_loss.core.interval_masses import reach

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array
    from hockeystick.privacy_loss import Atoms, CellLoss

Indices: TypeAlias = NDArray[np.int64]

# Errors beyond this many times their mean are added up instead of counted for all.
_USUAL: Final = 8.0
# The number of cells that are worked out at a time.
_BLOCK: Final = 2**16
# Rounding of a position, in units of its size: atoms nearer to a point than this lie on it.
_ON_POINT: Final = 16.0 * ULP


@dataclass(frozen=True)
class Steps:
    """A lattice for one loss: points ``offset + k step``, k from ``first`` to ``last``.

    Where it is ``starts`` (``ends``), the loss is nowhere below the first (above the last) point.
    """

    offset: float
    step: float
    first: int
    last: int
    starts: bool = False
    ends: bool = False

    def at(self, index: Array) -> Array:
        """Return the points of some indices."""
        points: Array = self.offset + self.step * index
        return points


@dataclass(frozen=True)
class LatticeGrid:
    """A loss, a lattice for it, and the masses between its points, for both ends to use."""

    loss: CellLoss
    steps: Steps

    @cached_property
    def points(self) -> Array:
        """The points of the lattice."""
        return self.steps.at(np.arange(self.steps.first, self.steps.last + 1, dtype=np.float64))

    @cached_property
    def masses(self) -> tuple[Masses, Masses, Masses]:
        """The masses before the first point, between neighbouring points, and beyond the last.

        Where the loss starts or ends at a point there is nothing before or beyond it: what rounding
        would leave there belongs inside.
        """
        points = self.points
        head = [-math.inf] if self.steps.starts else [-math.inf, points[0]]
        tail = [math.inf] if self.steps.ends else [points[-1], math.inf]
        masses = _cells(self.loss, np.concatenate((head, points[1:-1], tail)))
        first, last = len(head) - 1, masses.log_p.size - len(tail) + 1
        parts = (slice(0, first), slice(first, last), slice(last, None))
        before, inside, beyond = (Masses(*(values[part] for values in masses)) for part in parts)
        return before, inside, beyond


class _Pieces(NamedTuple):
    """Masses under P, as logarithms with the error of each, and their places on a lattice."""

    place: Indices
    log_p: Array
    error: Array


@dataclass(frozen=True)
class Weights:
    """Masses on lattice points from ``first`` on, as ``exp(log_p + tilt * point - log_total)``.

    Each is right within a factor ``exp(error)``, but for some that are off by what ``off`` has at
    their place, which is empty where there are none. ``lost`` bounds the probability of an infinite
    loss; ``slack`` bounds how far each point is from where its mass belongs.
    """

    offset: float
    first: int
    weight: Array
    log_total: float
    error: float
    off: Array
    lost: float
    slack: float

    @property
    def loose(self) -> float:
        """What those that are off are off by together, rounded up."""
        return float(self.off.sum()) * (1.0 + 1e-9)

    def retilted(self, step: float, tilt: float, other: float) -> Weights:
        """Return masses of one tilt as those of another."""
        point = self.offset + step * (self.first + np.arange(self.weight.size, dtype=np.float64))
        exponent = (other - tilt) * point
        with np.errstate(divide="ignore"):
            log_weight = np.log(self.weight)
        raised = log_weight + exponent
        top = float(raised.max())
        log_total = top + math.log(float(np.exp(raised - top).sum()))
        weight = np.exp(raised - log_total)
        kept = weight > 0.0
        place = abs(self.offset) + step * np.abs(self.first + np.arange(self.weight.size))
        size = np.where(kept, np.abs(log_weight) + abs(other - tilt) * place, 0.0)
        error = ULP * (8.0 * size + 8.0 * abs(log_total) + 64.0)
        typical, off = _errors(weight, error)
        if self.off.size:
            raised = exponent - log_total + np.minimum(error, 700.0)
            with np.errstate(over="ignore", invalid="ignore"):
                own = np.where(self.off > 0.0, self.off * np.exp(raised), 0.0)
            off = own + off if off.size else own
        return replace(
            self,
            weight=weight,
            log_total=self.log_total + log_total,
            error=self.error + typical,
            off=off,
        )

    def split(self, step: float, threshold: float) -> tuple[Weights, Weights]:
        """Return the masses of losses up to a threshold, and of those above it."""
        kept = math.floor((threshold - self.offset) / step) - self.first + 1
        large = np.arange(self.weight.size) >= kept
        low, high = (
            replace(
                self,
                weight=np.where(part, self.weight, 0.0),
                off=np.where(part[: self.off.size], self.off, 0.0),
            )
            for part in (~large, large)
        )
        return low, high


def cover(
    loss: CellLoss,
    offset: float,
    step: float,
    tilt: float,
    log_least: tuple[float, float],
    value: float | None = None,
) -> Steps:
    """Return the lattice that covers a loss but for tails of so little mass, below and above.

    Below, that is mass after tilting: of all below l it is at most ``exp(tilt l - K)``; K is
    ``value`` where that is not the loss's own.
    """
    known = loss.cgf_estimate(tilt).value if value is None else value
    least = (known + log_least[0]) / tilt
    low, high = reach(loss, log_least[1])
    low = max(low, min(least, high))
    near = 2.0 * _ON_POINT * (max(abs(low), abs(high)) + abs(offset))
    first, last = math.floor((low + near - offset) / step), math.ceil((high - near - offset) / step)
    return Steps(
        offset,
        step,
        first,
        max(last, first + 1),
        starts=offset + step * first <= loss.infimum + near,
        ends=offset + step * last >= loss.supremum - near,
    )


def above(grid: LatticeGrid, tilt: float) -> Weights:
    """Return a distribution on the lattice that dominates the loss."""
    loss, steps, points = grid.loss, grid.steps, grid.points
    before, masses, beyond = grid.masses
    atoms = loss.atoms()
    index, rest = _index(atoms, steps)
    over = (index > steps.last) | ((index == steps.last) & (rest > 0.0))
    lost = [beyond.log_p + beyond.error, (atoms.log_p + atoms.error)[over]]
    kept = np.flatnonzero(masses.log_p > -math.inf)
    log_p, error = masses.log_p[kept], masses.error[kept]
    mean = log_p - masses.log_q[kept]
    unsure = 2.0 * error + 4.0 * ULP * (np.abs(log_p) + np.abs(mean))
    unsure += 2.0 * ULP * (abs(steps.offset) + np.abs(points[:-1][kept]))
    under = np.maximum(index, steps.first) - steps.first
    rest = np.where(index < steps.first, 0.0, rest)
    pieces = [
        _Pieces(np.zeros(before.log_p.size, dtype=np.int64), before.log_p, before.error),
        *_spread(kept, mean - points[:-1][kept], unsure, steps.step, log_p, error),
        *_spread(
            under[~over],
            rest[~over],
            np.zeros(int((~over).sum())),
            steps.step,
            atoms.log_p[~over],
            atoms.error[~over],
        ),
    ]
    return _tilted(steps, _joined(pieces), tilt, _sum_up(np.concatenate(lost)), loss.displacement)


def below(grid: LatticeGrid, tilt: float) -> Weights:
    """Return a distribution on the lattice that the loss dominates."""
    loss, steps = grid.loss, grid.steps
    masses = _cells(loss, _edges_below(grid))
    atoms = loss.atoms()
    kept = np.flatnonzero(masses.log_p > -math.inf)
    log_p, error = masses.log_p[kept], masses.error[kept]
    mean = log_p - masses.log_q[kept]
    unsure = 2.0 * error + 4.0 * ULP * (np.abs(log_p) + np.abs(mean))
    own, own_rest = _index(atoms, steps)
    index = np.concatenate((kept + steps.first, own))
    at = steps.at(index.astype(np.float64))
    rest = np.concatenate((mean - unsure - at[: kept.size], own_rest))
    # What lies beyond the last point counts as if it were there.
    rest = np.where(index > steps.last, 0.0, rest)
    index = np.minimum(index, steps.last)
    pieces = _Pieces(
        index - steps.first,
        np.concatenate((log_p, atoms.log_p)),
        np.concatenate((error, atoms.error)),
    )
    shift = _best_shift(rest, pieces.log_p + tilt * at, steps.step)
    place = pieces.place - (rest + shift < 0.0)
    inside = place >= 0
    pieces = _Pieces(place[inside], pieces.log_p[inside], pieces.error[inside])
    moved = Steps(steps.offset - shift, steps.step, steps.first, steps.last)
    return _tilted(moved, pieces, tilt, 0.0, loss.displacement)


def _cells(loss: CellLoss, edges: Array) -> Masses:
    """Return the masses between edges, worked out in blocks so that what they take stays small."""
    if edges.size <= _BLOCK + 1:
        return loss.cells(edges)
    starts = range(0, edges.size - 1, _BLOCK)
    blocks = [loss.cells(edges[start : start + _BLOCK + 1]) for start in starts]
    return Masses(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def _edges_below(grid: LatticeGrid) -> Array:
    """Return edges between the points such that the mean of each cell lies about on its point.

    Halfway between points the mean is off by ``step^2/12`` times the slope of the logarithm of the
    density, and so is that of the cell between the points from its middle: edges moved by as much
    make up for it. Any edges will do for a lower bound.
    """
    steps, inside = grid.steps, grid.masses[1]
    edges = steps.at(np.arange(steps.first - 1, steps.last + 1, dtype=np.float64) + 0.5)
    with np.errstate(invalid="ignore"):
        off = inside.log_p - inside.log_q - edges[1:-1]
    # Next to an atom or an end of the support there is no slope to speak of.
    edges[1:-1] -= np.where(np.abs(off) < steps.step / 16.0, off, 0.0)
    edges[0] = -math.inf if steps.starts else edges[0]
    edges[-1] = math.inf
    return edges


def _spread(
    cell: Indices, rest: Array, unsure: Array, step: float, log_p: Array, error: Array
) -> tuple[_Pieces, _Pieces]:
    """Return masses that lie ``rest`` above the lower edge of their cells, spread to both edges.

    The share that goes up keeps the mean of the likelihood ratio; it is rounded up.
    """
    rest = np.clip(rest, 0.0, step)
    room = -math.expm1(-step)
    inside = np.where(rest > 0.0, unsure / room + 16.0 * ULP, unsure / room)
    up = np.clip(-np.expm1(-rest) / room + inside, 0.0, 1.0)
    down = np.clip(np.exp(-rest) * -np.expm1(rest - step) / room - inside, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return (
            _Pieces(cell, log_p + np.log(down), error),
            _Pieces(cell + 1, log_p + np.log(up), error),
        )


def _index(atoms: Atoms, steps: Steps) -> tuple[Indices, Array]:
    """Return each atom's point at or below it, and how far above it the atom lies."""
    near = _ON_POINT * (np.abs(atoms.loss) + abs(steps.offset))
    index = np.floor((atoms.loss - steps.offset + near) / steps.step)
    rest = atoms.loss - steps.at(index)
    return index.astype(np.int64), np.where(np.abs(rest) <= 2.0 * near, 0.0, np.maximum(rest, 0.0))


def _best_shift(rest: Array, exponent: Array, step: float) -> float:
    """Return how far to move the lattice down so that rounding down costs least.

    A shift s costs s; what lies further than s below its point costs a step.
    """
    short = rest < 0.0
    if not bool(short.any()):
        return 0.0
    weight = np.exp(exponent - exponent.max())
    weight /= weight.sum()
    order = np.argsort(rest[short])
    need, own = -rest[short][order], weight[short][order]
    cost = need + step * (np.cumsum(own) - own)
    best = int(np.argmin(cost))
    return float(need[best]) * (1.0 + 4.0 * ULP) if cost[best] < step * own.sum() else 0.0


def _tilted(
    steps: Steps, pieces: _Pieces, tilt: float, lost: float, displacement: float
) -> Weights:
    """Return the masses at their places, tilted and made to add up to 1."""
    point = steps.at((pieces.place + steps.first).astype(np.float64))
    exponent = pieces.log_p + tilt * point
    if not exponent.size:
        raise ArithmeticError("nothing of the loss lies on the lattice")
    top = float(exponent.max())
    log_total = top + math.log(float(np.exp(exponent - top).sum()))
    size = steps.last - steps.first + 1
    mass = np.exp(exponent - log_total)
    weight = np.bincount(pieces.place, weights=mass, minlength=size).astype(np.float64)
    place = abs(steps.offset) + steps.step * np.abs(pieces.place + float(steps.first))
    sizes = np.abs(pieces.log_p) + tilt * place
    together = float(np.bincount(pieces.place).max())
    error = pieces.error + ULP * (8.0 * sizes + 8.0 * abs(log_total) + 64.0 + together)
    typical, loose = _errors(mass, error)
    if loose.size:
        loose = np.bincount(pieces.place, weights=loose, minlength=size).astype(np.float64)
    farthest = float(np.abs(point).max()) + abs(steps.offset)
    return Weights(
        steps.offset,
        steps.first,
        weight,
        log_total,
        typical,
        loose,
        lost,
        4.0 * _ON_POINT * farthest + 2.0 * displacement,
    )


def _errors(weight: Array, error: Array) -> tuple[float, Array]:
    """Return a relative error that most weights keep to, and what each other one is off by.

    Nothing is returned for each where all keep to it.
    """
    usual = _USUAL * float((weight * np.minimum(error, 1.0)).sum())
    large = error > usual
    if not bool(large.any()):
        return usual, np.zeros(0)
    worst = weight * np.expm1(np.minimum(error, 700.0))
    return usual, np.where(large, np.where(error < 700.0, worst, math.inf), 0.0)


def _joined(pieces: list[_Pieces]) -> _Pieces:
    """Return pieces as one list, those without mass left out."""
    place, log_p, error = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    kept = log_p > -math.inf
    return _Pieces(place[kept], log_p[kept], error[kept])


def _sum_up(logs: Array) -> float:
    """Return the sum of exponentials, rounded up."""
    return float(np.exp(np.minimum(logs, 0.0)).sum()) * (1.0 + 1e-12)
