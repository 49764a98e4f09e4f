"""One run's loss on a lattice: a distribution that dominates it, and one that it dominates.

Above, the mass of each cell goes to its two edges, P's and Q's mass both kept ("connect the dots",
Doroshenko et al. 2022): that keeps the mean of the likelihood ratio, and every profile is convex in
it. Below, each cell around a point is replaced by its conditional mean, once it has been given so
much of a neighbour that this lies on the point: both are data processing. What has no neighbour to
take from is rounded down: P's mass stays, and the loss falls. Both errors are of second order in
the step.

What of a tilted sum lies outside a window is bounded by Chernoff. The tilt is chosen by estimates
of the cgf of truncated losses: a tail that is too unlikely to matter at a delta may still dominate
a moment, as in a mixture over the number of times that a record was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss import CellLoss, CGFEstimate, PrivacyLoss
from hockeystick.privacy_loss.core.base import Masses
from hockeystick.privacy_loss.core.cell_loss import effective_range, merged_points
from hockeystick.privacy_loss.core.composition import TermSequence

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array
    from hockeystick.privacy_loss import Atoms

Indices: TypeAlias = NDArray[np.int64]

# Relative errors above this many times their mean become absolute errors of their points.
_TYPICAL: Final = 8.0
# The number of cells in a batch.
_BLOCK: Final = 2**16
# Rounding of a position, in units of its size: atoms nearer to a point than this lie on it.
_ON_POINT: Final = 16.0 * ULP
# Each of two neighbours is given at most this share of a cell's outcomes, or of what is left.
_LARGEST_SHARE: Final = 0.45


@dataclass(frozen=True)
class LatticePoints:
    """A lattice for one loss: points ``offset + k step``, k from ``first`` to ``last``.

    With ``covers_infimum`` (``covers_supremum``) the loss is nowhere below the first (above the
    last) point.
    """

    offset: float
    step: float
    first: int
    last: int
    covers_infimum: bool = False
    covers_supremum: bool = False

    def at(self, index: Array | Indices) -> Array:
        """Return the points of some indices."""
        return np.asarray(self.offset + self.step * index, dtype=np.float64)


class _Contributions(NamedTuple):
    """Masses under P, as logarithms with the error of each, to be added up at lattice points."""

    place: Indices
    log_p: Array
    error: Array


@dataclass(frozen=True)
class TiltedMasses:
    """Masses on lattice points from ``first`` on, as ``exp(log_p + tilt * point - log_total)``.

    Four kinds of error are kept apart until delta is read off; each is a proven bound:

    ==================  ============================================================================
    ``relative_error``  of the logarithm of any weight not among the next ones
    ``absolute_errors`` of single weights whose relative error is larger, by point; empty for none
    ``infinity_mass``   the P-mass beyond the last point, which counts as an infinite loss
    ``displacement``    the distance of a point from the loss that its mass stands for
    ==================  ============================================================================
    """

    offset: float
    first: int
    weight: Array
    log_total: float
    relative_error: float
    absolute_errors: Array
    infinity_mass: float
    displacement: float

    @property
    def absolute_error(self) -> float:
        """The sum of the absolute errors, rounded up."""
        return float(self.absolute_errors.sum()) * (1.0 + 1e-9)

    def retilted(self, step: float, tilt: float, other: float) -> TiltedMasses:
        """Return the same masses, tilted by ``other`` instead of ``tilt``."""
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
        typical, absolute = _errors(weight, error)
        if self.absolute_errors.size:
            raised = exponent - log_total + np.minimum(error, 700.0)
            with np.errstate(over="ignore", invalid="ignore"):
                own = np.where(
                    self.absolute_errors > 0.0, self.absolute_errors * np.exp(raised), 0.0
                )
            absolute = own + absolute if absolute.size else own
        return replace(
            self,
            weight=weight,
            log_total=self.log_total + log_total,
            relative_error=self.relative_error + typical,
            absolute_errors=absolute,
        )

    def split(self, step: float, threshold: float) -> tuple[TiltedMasses, TiltedMasses]:
        """Return the masses of losses up to a threshold, and of those above it."""
        kept = math.floor((threshold - self.offset) / step) - self.first + 1
        tail = np.arange(self.weight.size) >= kept
        low, high = (
            replace(
                self,
                weight=np.where(part, self.weight, 0.0),
                absolute_errors=np.where(
                    part[: self.absolute_errors.size], self.absolute_errors, 0.0
                ),
            )
            for part in (~tail, tail)
        )
        return low, high


def cover(
    loss: CellLoss,
    offset: float,
    step: float,
    tilt: float,
    log_least: tuple[float, float],
    value: float | None = None,
) -> LatticePoints:
    """Return the lattice that covers a loss but for tails of at most ``log_least``, on each side.

    Below, that is mass after tilting: of all below l it is at most ``exp(tilt l - K)``; K is
    ``value`` where that is not the loss's own.
    """
    known = loss.cgf_estimate(tilt).value if value is None else value
    least = (known + log_least[0]) / tilt
    low, high = effective_range(loss, log_least[1])
    low = max(low, min(least, high))
    near = 2.0 * _ON_POINT * (max(abs(low), abs(high)) + abs(offset))
    first, last = math.floor((low + near - offset) / step), math.ceil((high - near - offset) / step)
    return LatticePoints(
        offset,
        step,
        first,
        max(last, first + 1),
        covers_infimum=offset + step * first <= loss.infimum + near,
        covers_supremum=offset + step * last >= loss.supremum - near,
    )


def dominating_masses(loss: CellLoss, lattice: LatticePoints, tilt: float) -> TiltedMasses:
    """Return a distribution on the lattice that dominates the loss."""
    points = lattice.at(np.arange(lattice.first, lattice.last + 1, dtype=np.float64))
    # Where the lattice covers an end of the loss, rounding would put mass beyond it that is inside.
    head = [-math.inf] if lattice.covers_infimum else [-math.inf, points[0]]
    tail = [math.inf] if lattice.covers_supremum else [points[-1], math.inf]
    found = _cells(loss, np.concatenate((head, points[1:-1], tail)))
    first, last = len(head) - 1, found.log_p.size - len(tail) + 1
    parts = (slice(0, first), slice(first, last), slice(last, None))
    before, masses, beyond = (Masses(*(values[part] for values in found)) for part in parts)
    atoms = loss.atoms()
    index, excess = _index(atoms, lattice)
    over = (index > lattice.last) | ((index == lattice.last) & (excess > 0.0))
    infinity_mass = [beyond.log_p + beyond.error, (atoms.log_p + atoms.error)[over]]
    kept = np.flatnonzero(masses.log_p > -math.inf)
    log_p, error = masses.log_p[kept], masses.error[kept]
    mean = log_p - masses.log_q[kept]
    mean_error = 2.0 * error + 4.0 * ULP * (np.abs(log_p) + np.abs(mean))
    mean_error += 2.0 * ULP * (abs(lattice.offset) + np.abs(points[:-1][kept]))
    under = np.maximum(index, lattice.first) - lattice.first
    excess = np.where(index < lattice.first, 0.0, excess)
    contributions = [
        _Contributions(np.zeros(before.log_p.size, dtype=np.int64), before.log_p, before.error),
        *_connect_the_dots(kept, mean - points[:-1][kept], mean_error, lattice.step, log_p, error),
        *_connect_the_dots(
            under[~over],
            excess[~over],
            np.zeros(int((~over).sum())),
            lattice.step,
            atoms.log_p[~over],
            atoms.error[~over],
        ),
    ]
    infinite = float(np.exp(np.minimum(np.concatenate(infinity_mass), 0.0)).sum()) * (1.0 + 1e-12)
    return _tilted(lattice, _joined(contributions), tilt, infinite, loss.endpoint_tolerance)


def dominated_masses(loss: CellLoss, lattice: LatticePoints, tilt: float) -> TiltedMasses:
    """Return a distribution on the lattice that the loss dominates."""
    edges = lattice.at(np.arange(lattice.first, lattice.last + 2, dtype=np.float64) - 0.5)
    edges[0] = -math.inf if lattice.covers_infimum else edges[0]
    edges[-1] = math.inf
    masses = _cells(loss, edges)
    atoms = loss.atoms()
    kept = np.flatnonzero(masses.log_p > -math.inf)
    log_p, error = masses.log_p[kept], masses.error[kept]
    mean = log_p - masses.log_q[kept]
    mean -= 2.0 * error + 4.0 * ULP * (np.abs(log_p) + np.abs(mean))
    below = _to_points(kept + lattice.first, mean, log_p, error, lattice)
    index, excess = _index(atoms, lattice)
    gaps = np.concatenate(([1e200], np.diff(atoms.loss), [1e200]))
    # Of second order is what raising an atom by its neighbour costs, and of first to round it down.
    raising = 0.5 * (tilt + 1.0) * np.minimum(gaps[:-1], gaps[1:]) * (lattice.step - excess)
    alone = (raising >= excess) | (index >= lattice.last)
    nearest = np.minimum(index + (~alone & (2.0 * excess > lattice.step)), lattice.last)
    values = np.where(alone, lattice.at(nearest), atoms.loss)
    at_atoms = _to_points(nearest, values, atoms.log_p, atoms.error, lattice)
    place, found_p, errors = _joined([below, at_atoms])
    inside = place >= lattice.first
    found = _Contributions(place[inside] - lattice.first, found_p[inside], errors[inside])
    return _tilted(lattice, found, tilt, 0.0, loss.endpoint_tolerance)


def _to_points(
    place: Indices, mean: Array, log_p: Array, error: Array, lattice: LatticePoints
) -> _Contributions:
    """Return cells, or atoms, at points from which no mean lies below, with ln of their masses.

    Each one is given outcomes of its neighbour on the other side of its point, at random, until
    its mean of ``e^-L`` is that of the point: that is data processing, and an error of second order
    in the step. Where the neighbour has too few of them, the cell goes to the next point, or down.
    """
    cells, known = np.arange(mean.size), np.array((mean, log_p, error))
    side = np.where(mean >= lattice.at(place), -1, 1)  # what is not known goes down
    giver = np.clip(cells + side, 0, mean.size - 1)
    most = np.full(mean.size, _LARGEST_SHARE)
    given, share = _balance(known, known[:, giver], lattice.at(place), most[giver])
    rest = np.flatnonzero((share == 0.0) & (mean != lattice.at(place)))
    away = side[rest]
    giver[rest] = np.clip(rest - 2 * away, 0, mean.size - 1)
    most *= 1.0 - np.bincount(giver, share, minlength=mean.size)
    owner, at = giver[rest], lattice.at(place[rest] - away)
    given[rest], share[rest] = _balance(known[:, rest], known[:, owner], at, most[owner])
    place[rest] -= np.where(share[rest] > 0.0, away, np.maximum(away, 0))
    # What gives outcomes away needs less itself: at least ``least`` of it, at most ``most``.
    least = 1.0 - np.bincount(giver, share, minlength=mean.size)
    most = 1.0 - np.bincount(giver, share * least, minlength=mean.size)
    needed = np.where(mean >= lattice.at(place), least, most)
    left = 1.0 - np.bincount(giver, share * needed, minlength=mean.size)
    larger = np.maximum(error, error[giver]) + ULP * (512.0 + 2.0 * np.abs(log_p - log_p[giver]))
    larger = np.where(share > 0.0, larger, error)
    return _Contributions(place, log_p + np.log(left + given * needed), larger)


def _balance(cell: Array, giver: Array, point: Array, most: Array) -> tuple[Array, Array]:
    """Return the mass given to cells, over their own, and its share of the giver; 0 for none.

    Of both the mean, ``ln P`` and its error. The P-masses times ``expm1(point - mean)`` of what
    lies on the point add up to 0 or less.
    """
    with np.errstate(all="ignore"):
        ratio = cell[1] - giver[1]
        slack = 2.0 * (cell[2] + giver[2]) + ULP * (1024.0 + 2.0 * np.abs(ratio))
        given = np.expm1(point - cell[0]) / -np.expm1(point - giver[0])
        given *= np.where(cell[0] < point, 1.0 + slack, 1.0 - slack)
        share = given * np.exp(ratio)
        usable = (share > 0.0) & (share <= most) & (slack <= _LARGEST_SHARE)
    return np.where(usable, given, 0.0), np.where(usable, share, 0.0)


def _cells(loss: CellLoss, edges: Array) -> Masses:
    """Return the masses between edges, in batches that bound the memory taken."""
    if edges.size <= _BLOCK + 1:
        return loss.cells(edges)
    starts = range(0, edges.size - 1, _BLOCK)
    blocks = [loss.cells(edges[start : start + _BLOCK + 1]) for start in starts]
    return Masses(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def _connect_the_dots(
    cell: Indices, excess: Array, mean_error: Array, step: float, log_p: Array, error: Array
) -> tuple[_Contributions, _Contributions]:
    """Return masses whose mean is ``excess`` above the lower edge of their cells, on both edges.

    The share ``(1 - e^-excess) / (1 - e^-step)`` on the upper edge keeps ``E[e^-L]``, that is both
    P's and Q's mass; it is rounded up.
    """
    excess = np.clip(excess, 0.0, step)
    room = -math.expm1(-step)
    inside = np.where(excess > 0.0, mean_error / room + 16.0 * ULP, mean_error / room)
    up = np.clip(-np.expm1(-excess) / room + inside, 0.0, 1.0)
    down = np.clip(np.exp(-excess) * -np.expm1(excess - step) / room - inside, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return (
            _Contributions(cell, log_p + np.log(down), error),
            _Contributions(cell + 1, log_p + np.log(up), error),
        )


def _index(atoms: Atoms, lattice: LatticePoints) -> tuple[Indices, Array]:
    """Return each atom's point at or below it, and how far above it the atom lies."""
    near = _ON_POINT * (np.abs(atoms.loss) + abs(lattice.offset))
    index = np.floor((atoms.loss - lattice.offset + near) / lattice.step)
    excess = atoms.loss - lattice.at(index)
    return index.astype(np.int64), np.where(
        np.abs(excess) <= 2.0 * near, 0.0, np.maximum(excess, 0.0)
    )


def _tilted(
    lattice: LatticePoints,
    contributions: _Contributions,
    tilt: float,
    infinity_mass: float,
    displacement: float,
) -> TiltedMasses:
    """Return the masses at their points, tilted and normalised."""
    point = lattice.at((contributions.place + lattice.first).astype(np.float64))
    exponent = contributions.log_p + tilt * point
    if not exponent.size:
        raise ArithmeticError("nothing of the loss lies on the lattice")
    top = float(exponent.max())
    log_total = top + math.log(float(np.exp(exponent - top).sum()))
    size = lattice.last - lattice.first + 1
    mass = np.exp(exponent - log_total)
    weight = np.bincount(contributions.place, weights=mass, minlength=size).astype(np.float64)
    place = abs(lattice.offset) + lattice.step * np.abs(contributions.place + float(lattice.first))
    sizes = np.abs(contributions.log_p) + tilt * place
    together = float(np.bincount(contributions.place).max())
    error = contributions.error + ULP * (8.0 * sizes + 8.0 * abs(log_total) + 64.0 + together)
    typical, absolute = _errors(mass, error)
    if absolute.size:
        absolute = np.bincount(contributions.place, weights=absolute, minlength=size).astype(
            np.float64
        )
    farthest = float(np.abs(point).max()) + abs(lattice.offset)
    return TiltedMasses(
        lattice.offset,
        lattice.first,
        weight,
        log_total,
        typical,
        absolute,
        infinity_mass,
        4.0 * _ON_POINT * farthest + 2.0 * displacement,
    )


def _errors(weight: Array, error: Array) -> tuple[float, Array]:
    """Return a relative error that most weights keep to, and the absolute errors of the others."""
    typical = _TYPICAL * float((weight * np.minimum(error, 1.0)).sum())
    large = error > typical
    if not bool(large.any()):
        return typical, np.zeros(0)
    worst = weight * np.expm1(np.minimum(error, 700.0))
    return typical, np.where(large, np.where(error < 700.0, worst, math.inf), 0.0)


def _joined(contributions: list[_Contributions]) -> _Contributions:
    place, log_p, error = (np.concatenate(parts) for parts in zip(*contributions, strict=True))
    kept = log_p > -math.inf
    return _Contributions(place[kept], log_p[kept], error[kept])


# With more losses than this none is truncated.
_MOST_LOSSES: Final = 16
# A tilted loss is truncated if its mean is within this many standard deviations of the tail.
_WITHIN: Final = 2.0
# Larger losses have no cells.
_LARGEST_LOSS: Final = 1e9
# ln of delta per run over the probability of the tail, and the tolerance at which it is that.
_UNLIKELY: Final = 14.0
_USUAL: Final = 1e-4


@dataclass(frozen=True)
class Truncation:
    """Losses truncated where the tail is less likely than ``exp(log_least)``; it proves nothing."""

    log_least: float

    @classmethod
    def at(cls, terms: TermSequence, log_delta: float, tolerance: float = _USUAL) -> Truncation:
        """Return the truncation for about a delta, later where the tolerance is smaller."""
        if len(terms) > _MOST_LOSSES:
            return cls(-math.inf)
        runs = math.fsum(count for _, count in terms)
        finer = max(math.log(_USUAL / tolerance), 0.0)
        return cls(round(log_delta - math.log(max(runs, 1.0)) - finer) - _UNLIKELY)

    def cgf_estimate(self, loss: PrivacyLoss, c: float) -> CGFEstimate:
        """Return K and two derivatives at c of the truncated loss."""
        whole = loss.cgf_estimate(c)
        if self.log_least == -math.inf or not isinstance(loss, CellLoss):
            return whole
        high = _tail_start(loss, self.log_least)
        spread = _WITHIN * math.sqrt(max(whole.second_derivative, 0.0))
        if high == math.inf or whole.first_derivative + spread < high < math.inf:
            return whole
        return _truncated_estimate(loss, high, c)

    def terms(self, terms: TermSequence) -> list[tuple[PrivacyLoss, int]]:
        """Return the truncated losses."""
        if self.log_least == -math.inf:
            return list(terms)
        cells = [(isinstance(loss, CellLoss), loss, count) for loss, count in terms]
        return [
            (_TruncatedLoss(loss, self) if known else loss, count) for known, loss, count in cells
        ]


@dataclass(frozen=True)
class _TruncatedLoss(PrivacyLoss):
    """A loss whose cgf estimate is that of the truncated loss."""

    loss: PrivacyLoss
    truncation: Truncation

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return self.truncation.cgf_estimate(self.loss, c)

    @property
    def supremum(self) -> float:
        return self.loss.supremum

    def cgf_bounds(self, c: float) -> Ball:
        return self.loss.cgf_bounds(c)


@lru_cache(maxsize=256)
def _tail_start(loss: CellLoss, log_least: float) -> float:
    high = effective_range(loss, log_least)[1]
    return math.inf if high >= min(loss.supremum, _LARGEST_LOSS) else high


@lru_cache(maxsize=256)
def _truncated_estimate(loss: CellLoss, high: float, c: float) -> CGFEstimate:
    point, log_p = merged_points(loss)
    kept = point <= max(high, float(point.min()))
    point, exponent = point[kept], log_p[kept] + c * point[kept]
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    value = top + math.log(float(weight.sum()))
    weight /= weight.sum()
    first = float((weight * point).sum())
    return CGFEstimate(value, first, float((weight * (point - first) ** 2).sum()))


NO_TRUNCATION: Final = Truncation(-math.inf)


# The approximate number of points that moments are taken over.
_COARSE_POINTS: Final = 256
_ROUNDING: Final = 1e-12
# The tilts at which Chernoff's bound is tried, over the best one of a normal sum.
_TILTS: Final = np.exp(np.arange(-10.0, 3.1, 0.3))


class Window(NamedTuple):
    """Two ends, and a bound on the tilted mass that lies outside them."""

    low: float
    high: float
    outside: float


def window(weights: Sequence[tuple[TiltedMasses, int]], step: float, log_outside: float) -> Window:
    """Return the interval that holds the sum but for ``exp(log_outside)`` on either side."""
    known = coarsened(weights, step)
    # That of a normal sum, and others around it.
    s = np.sqrt(-2.0 * log_outside / max(known.variance, 1e-300)) * _TILTS
    ends, outside = [], 0.0
    for side in (-1.0, 1.0):
        parts = np.array_split(s, 1 + len(known.runs) // 64)
        log_moment = np.concatenate([known.log_moment(side * part) for part in parts])
        needed = float(((log_moment - log_outside) / s).min())
        farthest, reached = known.farthest(side), needed + 1e-9 * abs(needed)
        ends.append(side * min(farthest, reached))
        outside += 0.0 if farthest <= reached else math.exp(log_outside)
    return Window(min(ends), max(ends), outside * (1.0 + 1e-6))


class CoarseLosses(NamedTuple):
    """Losses on few points each, a row for a loss: convexly larger, with the same means.

    ``weight`` has the masses of the points, 0 where a row has fewer; ``runs`` the numbers of runs.
    """

    point: Array
    weight: Array
    runs: Array

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        mean = (self.weight * self.point).sum(axis=1, keepdims=True)
        one = (self.weight * (self.point - mean) ** 2).sum(axis=1)
        return float((self.runs * one).sum())

    def farthest(self, side: float) -> float:
        """Return the largest sum on the side 1, minus the smallest on the side -1."""
        reach = np.where(self.weight > 0.0, side * self.point, -math.inf).max(axis=1)
        return float((self.runs * reach).sum())

    def log_moment(self, s: Array | float) -> Array:
        """Return ``ln E exp(s S)`` of the sum S for each s, rounded up."""
        exponent = np.where(self.weight > 0.0, np.multiply.outer(s, self.point), -math.inf)
        top = exponent.max(axis=-1)
        sums = (self.weight * np.exp(exponent - top[..., None])).sum(axis=-1)
        values = top + np.log(sums) + _ROUNDING * (1.0 + np.abs(top))
        return np.asarray((self.runs * values).sum(axis=-1))


def coarsened(
    weights: Sequence[tuple[TiltedMasses, int]], step: float, most: int = _COARSE_POINTS
) -> CoarseLosses:
    """Return all losses on few points each, padded to rows of the same length."""
    rows = [_coarsen(one, step, most) for one, _ in weights]
    size = max(point.size for point, _ in rows)
    point, weight = (np.zeros((len(rows), size)) for _ in range(2))
    for k, (at, mass) in enumerate(rows):
        point[k, : at.size], weight[k, : at.size] = at, mass
    return CoarseLosses(point, weight, np.array([float(count) for _, count in weights]))


def _coarsen(one: TiltedMasses, step: float, most: int) -> tuple[Array, Array]:
    """Return masses split between the two coarse points next to each, with the same mean.

    The result is larger in convex order: the mean of any convex function rises. The outermost
    coarse points are the outermost masses' own, or beyond them.
    """
    kept = np.flatnonzero(one.weight > 0.0)
    first, last = int(kept[0]), int(kept[-1])
    stride = max(-(-(last - first) // most), 1)
    count = -(-(last - first) // stride)
    padded = np.zeros((max(count, 1), stride))
    padded.ravel()[: last - first + 1] = one.weight[first : last + 1][: padded.size]
    share = np.arange(stride) / stride
    weight = np.zeros(padded.shape[0] + 1)
    weight[:-1] = (padded * (1.0 - share)).sum(axis=1)
    weight[1:] += (padded * share).sum(axis=1)
    if last - first == padded.size:
        weight[-1] += one.weight[last]
    index = first + stride * np.arange(weight.size)
    return one.offset + step * (one.first + index.astype(np.float64)), weight
