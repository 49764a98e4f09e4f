"""Losses whose distribution is known: masses in cells, and atoms. K and moments from these.

Of ``M(c) = E_P[e^(c L)]``, as ``E_P[e^-L] = 1``, ``M - 1`` is a mean of positive terms, so that
small losses keep their relative precision: with ``e2(x) = e^x - 1 - x``

    M(c) - 1 = E_P[psi(L)],    psi(l) = e2(c l) + c e2(-l).

psi is convex in ``e^-l`` and 0 at 0. In a cell with the masses p and q, where
``E_P[e^-L] = q/p``, its mean is therefore at least its value at ``ln(p/q)`` (Jensen), and at most
its mean over the two ends of the cell with the weights that keep the mean of ``e^-L`` (connect the
dots). The gap is of second order in the width; cells are refined where it is largest.

Below all cells ``psi(l) <= c e^-l``, which adds c q. Above, with any ``r > 1`` (Hoelder),

    E_P[e^(c L); L > b] <= p^(1 - 1/r) exp(K(r c) / r).

Moments, for expansions about the normal and as enclosures, are from geometric cells, so that the
loss has a relative uncertainty of less than 1e-3 in each of them, from 1e-4 standard deviations on.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.bounds.moments import (
    Cumulants,
    MomentBounds,
    Range,
    SignedCells,
    SignedPart,
    TailBound,
    ZCDPLine,
    lowest,
    of_ends,
    of_gaussian,
    of_signed_cells,
    of_signed_parts,
    sixth_power,
    tail_moment,
)
from hockeystick.privacy_loss.core.base import Array, Atoms, CGFEstimate, Masses, PrivacyLoss

# Numbers of the first cells: of equal width, and of geometric width on either side of 0. The first
# geometric edge is this share of the largest one.
_EQUAL_CELLS: Final = 2**12
_GEOMETRIC_CELLS: Final = 2**11
_FIRST_SHARE: Final = 2.0**-40
# Cells added in a round of refinement, rounds; cells added by an extension upward, extensions.
_CELLS_PER_ROUND: Final = 2**13
_ROUNDS: Final = 6
_CELLS_PER_EXTENSION: Final = 2**9
_EXTENSIONS: Final = 16
# Relative gaps: one that is negligible, and one that ends the refinement.
_NEGLIGIBLE_GAP: Final = 1e-13
_TARGET_GAP: Final = 1e-6
# Cells whose log mass has a larger error than this are not used.
_LARGEST_ERROR: Final = 1e-3
# Less mass than exp of the first lies beyond the cells, and less than exp of the second is in atoms
# that are not listed.
_LOG_LEAST_MASS: Final = -760.0
_LOG_UNLISTED_MASS: Final = -800.0
# Losses in [-20, 20] are covered from infimum to supremum.
_SHORT_RANGE: Final = 20.0
# The grid of losses at which the effective range is searched.
_SMALLEST_PROBE: Final = 1e-9
_LARGEST_PROBE: Final = 1e9
_PROBES: Final = 512
# The exponents r of Hoelder's inequality.
POWERS: Final = tuple(1.0 + 2.0**k for k in range(-6, 8))
# Above this exponent, exp(x) is used in place of exp(x) - 1.
_LARGE_EXPONENT: Final = 30.0
# Bound of the error of pairwise sums of up to 10^5 positive terms, in units in the last place.
_SUM_ULPS: Final = 1024.0
# Of moments: geometric cells on either side; where they begin, in standard deviations; the least
# such share of the largest loss; the largest error of a log mass.
_MOMENT_CELLS: Final = 2**15
_MOMENT_SHARE: Final = 1e-4
_LEAST_SHARE: Final = 2.0**-60
_LARGEST_MOMENT_ERROR: Final = 0.1
# Below this size e^x - 1 - x is summed as a series of ``_TERMS`` terms.
_SERIES: Final = 1.0
_TERMS: Final = 20


class CellLoss(PrivacyLoss):
    """A loss whose distribution is known: masses in cells, and atoms.

    The loss is finite with probability 1: infinity mass is split off before.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def infimum(self) -> float:
        """The least value that the loss takes, -inf where it has none."""

    @property
    def endpoint_tolerance(self) -> float:
        """The largest error of the edges that masses are computed between, next to an end."""
        return 0.0

    @property
    def unsampled(self) -> CellLoss | None:
        """The loss without sampling, where this is that of a sample by ``SubsamplingMap``."""
        return None

    @property
    def symmetrized_quadrature(self) -> PrivacyLoss | None:
        """The same loss in both directions with a quadrature of K; None where there is none."""
        return None

    @abstractmethod
    def atoms(self) -> Atoms:
        """Return the atoms; the unlisted ones have less than ``exp(-800)`` under P and Q."""

    @abstractmethod
    def cells(self, edges: Array) -> Masses:
        """Return the masses of the part without atoms between neighbouring edges.

        Edges ascend strictly; the first may be -inf and the last inf. A mass of 0 is -inf.
        """

    def zcdp_line(self) -> ZCDPLine | None:
        by_ends = of_ends(self.infimum, self.supremum)
        return lowest((by_ends, of_gaussian(self.dominating_mu_squared)))

    def cumulants(self) -> Cumulants | None:
        return of_signed_parts(*signed_parts(self))

    def moment_bounds(self) -> MomentBounds | None:
        """Return the enclosures from cells, each contributing the range of its integrand.

        None where the masses in or beyond the cells are not accurate enough.
        """
        if not self.sixth_moment_upper < math.inf:
            return None
        cells, outer = _moment_cells(self)
        if not bool((cells.error < _LARGEST_MOMENT_ERROR).all()):
            return None
        atoms = self.atoms()
        unsure = 4.0 * ULP * abs(atoms.loss)
        zero = atoms.log_p[atoms.loss == 0.0] + atoms.error[atoms.loss == 0.0]
        zero_mass = math.fsum(math.exp(one) for one in zero.tolist())
        slack = 2.0 * float(atoms.error[atoms.loss == 0.0].sum()) + 8.0 * ULP
        off = self.endpoint_tolerance
        widened = cells._replace(low=cells.low - off, high=cells.high + off)
        atom_cells = Cells(
            atoms.loss - unsure,
            atoms.loss + unsure,
            atoms.log_p,
            atoms.log_p - atoms.loss,
            atoms.error + unsure + 2.0 * ULP * (abs(atoms.log_p) + abs(atoms.loss)),
        )
        least = max(zero_mass * (1.0 - slack), 0.0)
        at_zero = (least, zero_mass) if zero_mass > 0.0 else (0.0, 0.0)
        above, below = (_side(widened, atom_cells, sign) for sign in (1.0, -1.0))
        beyond = _tail_bound(outer, self.sixth_moment_upper, bool(atoms.loss.size))
        return of_signed_cells(above, below, beyond, at_zero)

    @property
    def sixth_moment_upper(self) -> float:
        """An upper bound of ``E[L^6]`` under P and under Q rounding included; inf for none.

        By the largest size of a loss, unless an unbounded one has a bound of its own.
        """
        return sixth_power(max(-self.infimum, self.supremum))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return cgf_estimate(self, c)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K from cells, and where these leave it open no more than an own ``cgf_upper``."""
        own = type(self).cgf_upper is not PrivacyLoss.cgf_upper
        return cgf_bounds(self, c, self.cgf_upper if own else None)


class UnboundedLoss(CellLoss):
    """A loss that takes values of any size, of either sign."""

    __slots__ = ()

    supremum: ClassVar[float] = math.inf
    infimum: ClassVar[float] = -math.inf


# A bound of K at any order; None where there is no other than by cells.
Upper: TypeAlias = Callable[[float], float] | None


class Cells(NamedTuple):
    """Cells, ascending: their ends, log masses under P and Q, and the error of these."""

    low: Array
    high: Array
    log_p: Array
    log_q: Array
    error: Array

    def chosen(self, which: Any) -> Cells:
        """Return some of them."""
        return Cells(*(column[which] for column in self))


class OuterMasses(NamedTuple):
    """Log masses under P and Q below and above all cells, and the end ``high`` of the cells."""

    low_p: float
    low_q: float
    high: float
    high_p: float
    high_q: float


def effective_range(loss: CellLoss, log_least: float) -> tuple[float, float]:
    """Return an interval below which Q, and above which P, has about ``exp(log_least)`` or less."""
    if max(-loss.infimum, loss.supremum) <= _SHORT_RANGE:
        return loss.infimum, loss.supremum
    enough = [values[beyond > log_least] for values, beyond in _tails(loss)]
    low, high = (float(values[0]) if values.size else 0.0 for values in enough)
    return max(-low, loss.infimum, -_LARGEST_PROBE), min(high, loss.supremum, _LARGEST_PROBE)


@lru_cache(maxsize=64)
def _probes(loss: CellLoss) -> Cells:
    sizes = np.geomspace(_SMALLEST_PROBE, _LARGEST_PROBE, _PROBES)
    edges = np.concatenate(([-math.inf], -sizes[::-1], sizes, [math.inf]))
    return Cells(edges[:-1], edges[1:], *loss.cells(edges))


@lru_cache(maxsize=64)
def _tails(loss: CellLoss) -> list[tuple[Array, Array]]:
    """Return minus the losses and ln of Q's mass below each, and losses and ln of P's above."""
    atoms, cells = loss.atoms(), _probes(loss)
    log_q = np.concatenate((atoms.log_p - atoms.loss, cells.log_q[:-1]))
    log_p = np.concatenate((atoms.log_p, cells.log_p[1:]))
    # The mass of a cell is taken at its outer edge.
    minus_lowest = -np.concatenate((atoms.loss, cells.low[:-1]))
    highest = np.concatenate((atoms.loss, cells.high[1:]))
    found = []
    for values, log_mass in ((minus_lowest, log_q), (highest, log_p)):
        order = np.argsort(-values, kind="stable")
        found.append((values[order], np.logaddexp.accumulate(log_mass[order])))
    return found


@lru_cache(maxsize=64)
def _initial_cells(loss: CellLoss) -> tuple[Cells, OuterMasses]:
    return cells_of(loss, _GEOMETRIC_CELLS, _FIRST_SHARE)


def cells_of(loss: CellLoss, geometric: int, smallest: float) -> tuple[Cells, OuterMasses]:
    """Return the part of a loss without atoms on cells, and what lies beyond them.

    Some edges are equidistant, others geometric on either side of 0 (``geometric`` of them, from
    ``smallest`` numbers the largest loss); 0 is an edge. Edges next to cells whose masses are not
    accurate, as at an end of the loss, are left out.
    """
    low, high = effective_range(loss, _LOG_LEAST_MASS)
    grown = max(-low, high) * np.exp(np.linspace(math.log(smallest), 0.0, geometric + 1))
    edges = np.concatenate((np.linspace(low, high, _EQUAL_CELLS + 1), -grown, grown, [0.0]))
    edges = np.unique(edges[(edges >= low) & (edges <= high)])
    for _ in range(_ROUNDS):
        found = masses_between(loss, edges)
        unsure = found.error > _LARGEST_ERROR
        if edges.size < 4 or not bool(unsure.any()):
            break
        left_out = np.zeros(edges.size, dtype=bool)
        left_out[:-1] |= unsure
        left_out[1:] |= unsure
        edges = edges[~left_out | (edges == low) | (edges == high) | (edges == 0.0)]
    return found, _outer_masses(loss, low, high)


def masses_between(loss: CellLoss, edges: Array) -> Cells:
    """Return the masses between edges; the outermost ones include rounding beyond the support."""
    if edges.size < 2:
        return Cells(*(np.empty(0) for _ in Cells._fields))
    given = edges.copy()
    given[0] = -math.inf if edges[0] <= loss.infimum else edges[0]
    given[-1] = math.inf if edges[-1] >= loss.supremum else edges[-1]
    with np.errstate(all="ignore"):
        masses = loss.cells(given)
    return Cells(edges[:-1], edges[1:], masses.log_p, masses.log_q, masses.error)


def _outer_masses(loss: CellLoss, low: float, high: float) -> OuterMasses:
    with np.errstate(all="ignore"):
        masses = loss.cells(np.array([-math.inf, low, high, math.inf]))
        log_p, log_q = masses.log_p + masses.error, masses.log_q + masses.error
    outer = [float(value) for value in (log_p[0], log_q[0], log_p[2], log_q[2])]
    if low <= loss.infimum:
        outer[:2] = -math.inf, -math.inf
    if high >= loss.supremum:
        outer[2:] = -math.inf, -math.inf
    # An unknown mass is bounded by 1.
    outer = [0.0 if math.isnan(value) else min(value, 0.0) for value in outer]
    return OuterMasses(outer[0], outer[1], high, outer[2], outer[3])


@lru_cache(maxsize=64)
def merged_points(loss: CellLoss) -> tuple[Array, Array]:
    """Return the loss discretised, each cell merged at ``ln(p/q)``: losses and ``ln P``."""
    cells, outer = _initial_cells(loss)
    losses, log_p, _ = _merged(loss, cells)
    return (losses, log_p) if losses.size else (np.array([outer.high]), np.zeros(1))


def _merged(loss: CellLoss, cells: Cells) -> tuple[Array, Array, Array]:
    """Return the losses of atoms and of merged cells, ``ln P`` and ``ln Q``."""
    kept, atoms = cells.chosen((cells.log_p > -math.inf) & (cells.log_q > -math.inf)), loss.atoms()
    mean = np.clip(kept.log_p - kept.log_q, kept.low, kept.high)
    return (
        np.concatenate((atoms.loss, mean)),
        np.concatenate((atoms.log_p, kept.log_p)),
        np.concatenate((atoms.log_p - atoms.loss, kept.log_q)),
    )


def cgf_estimate(loss: CellLoss, c: float) -> CGFEstimate:
    """Return an estimate of K and two derivatives, by the discretised loss."""
    mean, log_p = merged_points(loss)
    value = log1p_exp(log_sum(log_p + log_psi(mean, c)))
    exponent = log_p + c * mean
    weight = np.exp(exponent - exponent.max())
    weight /= weight.sum()
    if value < 1.0:
        # M' = E[l (e^(c l) - 1) + e2(-l)], all positive, where the mean of l would cancel.
        with np.errstate(over="ignore", invalid="ignore"):
            less_one = np.exp(log_p) * np.expm1(c * mean)
            grown = mean * np.where(c * mean > _LARGE_EXPONENT, np.exp(exponent), less_one)
        slope = float(grown.sum() + np.exp(log_p + log_e2(-mean)).sum()) * math.exp(-value)
    else:
        slope = float((weight * mean).sum())
    return CGFEstimate(value, slope, float((weight * (mean - slope) ** 2).sum()))


def cgf_bounds(loss: CellLoss, c: float, upper: Upper) -> Ball:
    """Return K by its lower bound (Jensen) and its upper bound (connect the dots).

    The gap is about 1e-7 of K. ``upper`` bounds K at any order: a loss without a supremum needs
    one for the mass above all cells, and the result is at most that.
    """
    low, high = _bounds(loss, c, upper)
    if high == math.inf:
        value = cgf_estimate(loss, c).value
        high, low = (upper(c) if upper else math.inf), 0.0
        if high == math.inf:
            return Ball(value, math.inf)
    elif upper and high - low > _TARGET_GAP * high:
        high = max(min(high, upper(c)), low)
    return Ball(0.5 * (low + high), 0.5 * (high - low) * (1.0 + 4.0 * ULP) + ULP * high)


@lru_cache(maxsize=256)
def _bounds(loss: CellLoss, c: float, upper: Upper) -> tuple[float, float]:
    (cells, outer), atoms = _initial_cells(loss), loss.atoms()
    points = _atom_contributions(atoms.loss, atoms.log_p, atoms.error, c)
    cell_ends = _contributions(loss, cells, c)
    above = _log_tail_moment(loss, c, outer.high_p, upper)
    for _ in range(_EXTENSIONS):
        if above <= max(log_sum(cell_ends[0]), points[0]) + math.log(_NEGLIGIBLE_GAP):
            break
        if above == math.inf or outer.high >= min(loss.supremum, _LARGEST_PROBE):
            break
        cells, outer = _extended(loss, cells, outer)
        cell_ends = _contributions(loss, cells, c)
        above = _log_tail_moment(loss, c, outer.high_p, upper)
    for _ in range(_ROUNDS):
        low, high = cell_ends
        total = log_sum(low)
        if log_sum(high) <= total + _TARGET_GAP:
            break
        cells = _refined(loss, cells, _numbers_of_parts(low, high, max(total, points[0])))
        cell_ends = _contributions(loss, cells, c)
    missing = -math.inf
    if atoms.loss.size:
        unlisted = _log_tail_moment(loss, c, _LOG_UNLISTED_MASS, upper)
        missing = log_add(unlisted, math.log(c) + _LOG_UNLISTED_MASS)
    below = math.log(c) + outer.low_q
    low_end = log_add(log_sum(cell_ends[0]), points[0])
    high_end = log_add(log_sum(cell_ends[1]), points[1], above, below, missing)
    return _cgf_of_excess(low_end, -1.0), _cgf_of_excess(high_end, 1.0)


def _cgf_of_excess(log_excess: float, side: float) -> float:
    """Return ``ln(1 + e^x)`` of a sum's logarithm, rounded to one side with the sum's round-off."""
    if math.isinf(log_excess):
        return max(log_excess, 0.0)
    rounded = log_excess + side * ULP * (_SUM_ULPS + 4.0 * abs(log_excess))
    return log1p_exp(rounded) * (1.0 + side * 8.0 * ULP)


def _atom_contributions(values: Array, log_p: Array, error: Array, c: float) -> tuple[float, float]:
    """Return the logarithm of the sum of ``p psi`` over atoms, losses known to 4 ulp, rounded."""
    if not values.size:
        return -math.inf, -math.inf
    unsure = 4.0 * ULP * np.abs(values)
    near = np.sign(values) * np.maximum(np.abs(values) - unsure, 0.0)
    far = values + np.sign(values) * unsure
    low, high = log_psi(near, c), log_psi(far, c)
    low_end = log_sum(log_p + low - error - _round_off(near, low, log_p, c))
    most = np.minimum(log_p + error, 0.0)
    return low_end, log_sum(most + high + _round_off(far, high, log_p, c))


def _contributions(loss: CellLoss, cells: Cells, c: float) -> tuple[Array, Array]:
    """Return the logarithms of lower and upper bounds of ``E_P[psi(L); cell]`` for each cell."""
    log_p = cells.log_p
    empty = ~(log_p > -math.inf) & (cells.error < math.inf)
    unknown = ~(cells.error < math.inf) | (np.isinf(log_p) & ~empty)
    with np.errstate(all="ignore"):
        low, high = cells.low - loss.endpoint_tolerance, cells.high + loss.endpoint_tolerance
        sizes = np.abs(log_p) + np.abs(cells.log_q)
        unsure = 2.0 * cells.error + 2.0 * ULP * sizes
        mean = np.clip(log_p - cells.log_q, low, high)
        nearest = np.clip(np.sign(mean) * np.maximum(np.abs(mean) - unsure, 0.0), low, high)
        inner, first, last = (log_psi(values, c) for values in (nearest, low, high))
        lower = log_p + inner - cells.error - _round_off(nearest, inner, log_p, c)
        # The share of the mass under P that is placed at the upper edge.
        room = -np.expm1(low - high)
        share, slack = -np.expm1(low - mean) / room, 1.1 * unsure / room + 16.0 * ULP
        share = np.clip(np.where(last > first, share + slack, share - slack), 0.0, 1.0)
        upper = log_p + np.logaddexp(np.log1p(-share) + first, np.log(share) + last)
        outer = np.maximum(np.abs(low), np.abs(high))
        upper = upper + cells.error + _round_off(outer, np.maximum(first, last), log_p, c)
        upper = np.where(np.isnan(upper), np.where(room > 0.0, math.inf, lower), upper)
    lower = np.where(empty | unknown | np.isnan(lower), -math.inf, lower)
    return lower, np.where(empty, -math.inf, np.where(unknown, math.inf, upper))


def _round_off(values: Array, value: Array, log_p: Array, c: float) -> Array:
    size = np.where(np.isfinite(value), np.abs(value), 0.0)
    size_p = np.where(np.isfinite(log_p), np.abs(log_p), 0.0)
    return np.asarray(ULP * (8.0 * (1.0 + c) * np.abs(values) + 8.0 * size + 4.0 * size_p + 64.0))


def _log_tail_moment(loss: CellLoss, c: float, log_p: float, upper: Upper) -> float:
    """Return a bound of ``ln E_P[e^(c L); A]``, L >= 0, by ``ln P(A)``: trivial, or Hoelder."""
    if log_p == -math.inf:
        return -math.inf
    found = log_p + c * max(loss.supremum, 0.0)
    if upper is not None and found > _LOG_LEAST_MASS:
        powers = ((1.0 - 1.0 / r) * log_p + upper(r * c) / r for r in POWERS)
        found = min(found, *powers)
    return found + ULP * 64.0 * (abs(found) + abs(log_p)) if found < math.inf else found


def _extended(loss: CellLoss, cells: Cells, outer: OuterMasses) -> tuple[Cells, OuterMasses]:
    """Return the cells with more of them above, up to twice as far."""
    high = min(2.0 * max(outer.high, 1.0), loss.supremum, _LARGEST_PROBE)
    more = masses_between(loss, np.linspace(outer.high, high, _CELLS_PER_EXTENSION + 1))
    beyond = _outer_masses(loss, outer.high, high)
    joined = Cells(*(np.concatenate(pair) for pair in zip(cells, more, strict=True)))
    return joined, OuterMasses(outer.low_p, outer.low_q, high, beyond.high_p, beyond.high_q)


def _numbers_of_parts(low: Array, high: Array, total: float) -> NDArray[np.int64]:
    """Return the number n of parts into which each cell is divided.

    A gap g becomes ``g / n^2``: for a given sum of n the sum of gaps is least for n as g^(1/3).
    """
    # Upper bounds far above the sum are treated as equal.
    with np.errstate(invalid="ignore"):
        gap = np.exp(np.minimum(high - total, 1.0)) * -np.expm1(np.minimum(low - high, 0.0))
    gap = np.where((high < math.inf) & (gap > _NEGLIGIBLE_GAP / gap.size), gap, 0.0)
    root = np.cbrt(gap)
    parts = np.ceil(_CELLS_PER_ROUND * root / max(float(root.sum()), 1e-300))
    return np.asarray(np.maximum(parts, 1.0), dtype=np.int64)


def _refined(loss: CellLoss, cells: Cells, numbers: NDArray[np.int64]) -> Cells:
    """Return the cells, each divided into parts, unless the masses of parts are not accurate."""
    whole = numbers <= 1
    divided = cells.chosen(~whole)
    if not divided.low.size:
        return cells
    parts = numbers[~whole]
    parent = np.repeat(np.arange(parts.size), parts)
    position = np.arange(parent.size) - np.repeat(np.cumsum(parts) - parts, parts)
    starts = divided.low[parent] + (divided.high - divided.low)[parent] * (position / parts[parent])
    found = masses_between(loss, np.unique(np.concatenate((starts, divided.high))))
    # Between the cells that are divided lie some that are not.
    owner = np.searchsorted(divided.low, found.low, side="right") - 1
    inside = found.low < divided.high[owner]
    found, owner = found.chosen(inside), owner[inside]
    unsure = np.zeros(parts.size, dtype=bool)
    unsure[owner[~(found.error <= np.maximum(_LARGEST_ERROR, divided.error[owner]))]] = True
    kept, better = cells.chosen(whole), found.chosen(~unsure[owner])
    joined = [
        np.concatenate(three) for three in zip(kept, divided.chosen(unsure), better, strict=True)
    ]
    order = np.argsort(joined[0], kind="stable")
    return Cells(*(column[order] for column in joined))


def signed_parts(loss: CellLoss) -> tuple[SignedPart, SignedPart, float]:
    """Return the positive losses, the negative ones and the mass at 0, of the discretised loss."""
    losses, log_p, log_q = _merged(loss, _moment_cells(loss)[0])
    with np.errstate(under="ignore"):
        p, q = np.exp(log_p), np.exp(log_q)
    above, below = losses > 0.0, losses < 0.0
    return (
        SignedPart(losses[above], p[above], q[above]),
        SignedPart(-losses[below], p[below], q[below]),
        float(p[losses == 0.0].sum()),
    )


def _moment_cells(loss: CellLoss) -> tuple[Cells, OuterMasses]:
    """Return cells that begin well below the standard deviation of the loss."""
    losses, log_p = merged_points(loss)
    deviation = math.sqrt(float((np.exp(log_p) * losses * losses).sum()))
    farthest = float(np.abs(losses).max())
    share = _MOMENT_SHARE * deviation / farthest if farthest > 0.0 else _MOMENT_SHARE
    return cells_of(loss, _MOMENT_CELLS, min(max(share, _LEAST_SHARE), _MOMENT_SHARE))


def _tail_bound(outer: OuterMasses, sixth: float, atomic: bool) -> TailBound:
    logs = (outer.low_p, outer.low_q, outer.high_p, outer.high_q)
    mass = math.fsum(math.exp(one) for one in logs)
    if atomic:
        mass += 2.0 * math.exp(0.5 * _LOG_UNLISTED_MASS) ** 2 + 1e-320
    return lambda power, offset: tail_moment(mass, sixth, power, offset)


def _side(widened: Cells, atom_cells: Cells, sign: float) -> SignedCells:
    """Return the cells and the atoms on one side of 0, by their distance from it."""
    inside = widened.low + widened.high > 0.0 if sign > 0.0 else widened.low + widened.high < 0.0
    cells, atoms = widened.chosen(inside), atom_cells.chosen(sign * atom_cells.low > 0.0)
    low, high, log_p, log_q, error = (
        np.concatenate(pair) for pair in zip(cells, atoms, strict=True)
    )
    sizes = (low, high) if sign > 0.0 else (-high, -low)
    size = Range(np.maximum(sizes[0], 0.0), sizes[1])
    with np.errstate(under="ignore"):
        masses = (Range(np.exp(one - error), np.exp(one + error)) for one in (log_p, log_q))
        return SignedCells(size, *masses)


def log_psi(loss: Array, c: float) -> Array:
    """Return ``ln(e2(c l) + c e2(-l))``."""
    return np.asarray(np.logaddexp(log_e2(c * loss), math.log(c) + log_e2(-loss)))


def log_e2(x: Array) -> Array:
    """Return ``ln(e^x - 1 - x)``; -inf at 0."""
    above, below = x > _SERIES, x < -_SERIES
    neither = ~(above | below)
    near, large, small = x[neither], x[above], x[below]
    series, term = np.ones_like(near), np.empty_like(near)
    for n in range(_TERMS, 2, -1):
        np.divide(near, n, out=term)
        series *= term
        series += 1.0
    found = np.empty_like(x)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        found[neither] = 2.0 * np.log(np.abs(near)) + np.log(0.5 * series)
        found[above] = large + np.log1p(-(1.0 + large) * np.exp(-large))
        found[below] = np.log(np.expm1(small) - small)
    return found


def log1p_exp(x: float) -> float:
    """Return ``ln(1 + e^x)``."""
    return x + math.log1p(math.exp(-x)) if x > _LARGE_EXPONENT else math.log1p(math.exp(x))


def log_add(*logs: float) -> float:
    """Return ``ln sum e^x`` of some numbers, with an error of less than 64 ulp."""
    largest = max(logs)
    if math.isinf(largest):
        return largest
    return largest + math.log(math.fsum(math.exp(one - largest) for one in logs))


def log_sum(logs: Array) -> float:
    """Return ``ln sum e^x`` of an array; -inf where it is empty."""
    largest = float(logs.max(initial=-math.inf))
    if math.isinf(largest):
        return largest
    return largest + math.log(float(np.exp(logs - largest).sum()))
