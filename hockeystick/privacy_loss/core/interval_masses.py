"""Moments of a loss from the masses in its cells: what every loss with cells has for nothing.

As ``E_P[e^-L] = 1`` under the part of P that Q sees, what a moment exceeds 1 by is a sum of
positive terms, in which small losses keep their digits: with ``e2(x) = e^x - 1 - x``

    M(c) - 1 = E_P[psi(L)],    psi(l) = e2(c l) + c e2(-l).

psi is convex in ``e^-l`` and is 0 where the loss is. In a cell with the masses p and q, in which
``E_P[e^-L] = q/p``, its mean is therefore at least that at ``ln(p/q)`` (Jensen), and at most that
of the two ends of the cell, in such shares that the mean of ``e^-L`` is kept. The distance of the
two falls with the square of the width, and cells are cut where that helps most.

Below all cells ``psi(l) <= c e^-l``, which adds c q. Above, with any ``r > 1`` (Hoelder),

    E_P[e^(c L); L > b] <= p^(1 - 1/r) exp(K(r c) / r).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.core.base import CGFEstimate, KnownDistribution
from hockeystick.privacy_loss.core.log_sums import log1p_exp, log_add, log_e2, log_psi, log_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hockeystick.kernels.series import Array

# Of the first cells, so many are equal, and on either side of 0 so many grow with their distance.
_EQUAL: Final = 2**12
_GROWING: Final = 2**11
_SMALLEST: Final = 2.0**-40
# So many cells are added where they help most, and so often; and to reach further.
_ADDED: Final = 2**13
_ROUNDS: Final = 6
_FURTHER: Final = 2**9
_STRETCHES: Final = 16
# A gap of this size, relative to what is enclosed, is as good as none; of this, worth a round.
_NOTHING: Final = 1e-13
_NARROW: Final = 1e-6
# Where a mass is known no better than this, its cell is not cut out.
_SURE: Final = 1e-3
# What is less likely than exp of this is beyond the grid; atoms less likely than that are missing.
_LEAST: Final = -760.0
_MISSING: Final = -800.0
# Losses that go no further than this are covered whole.
_NEAR: Final = 20.0
# Losses at which the reach of one is probed.
_NEAREST: Final = 1e-9
_LARGEST_LOSS: Final = 1e9
_PROBES: Final = 512
# The powers that Hoelder's inequality is tried with.
_POWERS: Final = tuple(1.0 + 2.0**k for k in range(-6, 8))
# Exponents from which exponentials are taken as they are.
_LARGE: Final = 30.0
# Units in the last place that the sums of up to 10^5 positive terms may lose, pairwise.
_SUMS: Final = 1024.0


class Cells(NamedTuple):
    """Cells that a loss lies in, ascending: their ends, the masses under P and Q, the error."""

    low: Array
    high: Array
    log_p: Array
    log_q: Array
    error: Array

    def chosen(self, which: Any) -> Cells:
        """Return some of the cells."""
        return Cells(*(column[which] for column in self))


class Ends(NamedTuple):
    """What lies below and above all cells: logarithms of the masses under P and under Q."""

    low_p: float
    low_q: float
    high: float
    high_p: float
    high_q: float


def reach(loss: KnownDistribution, log_least: float) -> tuple[float, float]:
    """Return losses below which Q, and above which P, has hardly more than ``exp(log_least)``."""
    if max(-loss.infimum, loss.supremum) <= _NEAR:
        return loss.infimum, loss.supremum
    atoms = loss.atoms()
    sizes = np.geomspace(_NEAREST, _LARGEST_LOSS, _PROBES)
    edges = np.concatenate((-sizes[::-1], sizes))
    masses = loss.cells(np.concatenate(([-math.inf], edges, [math.inf])))
    log_q = np.concatenate((atoms.log_p - atoms.loss, masses.log_q[:-1]))
    log_p = np.concatenate((atoms.log_p, masses.log_p[1:]))
    # A cell counts by the edge that is farther out.
    lowest = np.concatenate((atoms.loss, [-math.inf], edges[:-1]))
    highest = np.concatenate((atoms.loss, edges[1:], [math.inf]))
    low = _outermost(-lowest, log_q, log_least)
    high = _outermost(highest, log_p, log_least)
    return max(-low, loss.infimum, -_LARGEST_LOSS), min(high, loss.supremum, _LARGEST_LOSS)


def _outermost(place: Array, log_mass: Array, log_least: float) -> float:
    """Return the outermost place at which the mass from there on is more than the least."""
    order = np.argsort(-place, kind="stable")
    beyond = np.logaddexp.accumulate(log_mass[order])
    enough = np.flatnonzero(beyond > log_least)
    return float(place[order][enough[0]]) if enough.size else 0.0


@lru_cache(maxsize=64)
def _grid(loss: KnownDistribution) -> tuple[Cells, Ends]:
    """Return the cells that everything begins with."""
    return cells_of(loss, _GROWING, _SMALLEST)


def cells_of(loss: KnownDistribution, growing: int, smallest: float) -> tuple[Cells, Ends]:
    """Return the part of a loss without atoms on cells, and what lies beyond them.

    Some cells are equal, and others, so many on either side, grow with their distance from 0, from
    a share of the largest loss on; a cell ends at 0. Edges at which masses are hardly known, as
    next to an end of the loss, are left out.
    """
    low, high = reach(loss, _LEAST)
    grown = max(-low, high) * np.exp(np.linspace(math.log(smallest), 0.0, growing + 1))
    edges = np.concatenate((np.linspace(low, high, _EQUAL + 1), -grown, grown, [0.0]))
    edges = np.unique(edges[(edges >= low) & (edges <= high)])
    for _ in range(_ROUNDS):
        found = masses_between(loss, edges)
        unsure = found.error > _SURE
        if edges.size < 4 or not bool(unsure.any()):
            break
        left_out = np.zeros(edges.size, dtype=bool)
        left_out[:-1] |= unsure
        left_out[1:] |= unsure
        edges = edges[~left_out | (edges == low) | (edges == high) | (edges == 0.0)]
    return found, _beyond(loss, low, high)


def masses_between(loss: KnownDistribution, edges: Array) -> Cells:
    """Return the masses between edges; at an end of the loss, all that rounding puts beyond it."""
    if edges.size < 2:
        return Cells(*(np.empty(0) for _ in Cells._fields))
    given = edges.copy()
    given[0] = -math.inf if edges[0] <= loss.infimum else edges[0]
    given[-1] = math.inf if edges[-1] >= loss.supremum else edges[-1]
    with np.errstate(all="ignore"):
        masses = loss.cells(given)
    return Cells(edges[:-1], edges[1:], masses.log_p, masses.log_q, masses.error)


def _beyond(loss: KnownDistribution, low: float, high: float) -> Ends:
    """Return bounds of the masses beyond two edges: all of them are atoms or in cells."""
    with np.errstate(all="ignore"):
        masses = loss.cells(np.array([-math.inf, low, high, math.inf]))
        log_p, log_q = masses.log_p + masses.error, masses.log_q + masses.error
    ends = [float(value) for value in (log_p[0], log_q[0], log_p[2], log_q[2])]
    if low <= loss.infimum:
        ends[:2] = -math.inf, -math.inf
    if high >= loss.supremum:
        ends[2:] = -math.inf, -math.inf
    # A mass that is not known at all may be all there is.
    ends = [0.0 if math.isnan(value) else min(value, 0.0) for value in ends]
    return Ends(ends[0], ends[1], high, ends[2], ends[3])


@lru_cache(maxsize=64)
def points_of(loss: KnownDistribution) -> tuple[Array, Array]:
    """Return the loss as atoms, each cell merged: losses and ``ln P``."""
    (cells, ends), atoms = _grid(loss), loss.atoms()
    kept = cells.chosen((cells.log_p > -math.inf) & (cells.log_q > -math.inf))
    if not kept.log_p.size + atoms.loss.size:
        # All of it is farther out than any cell.
        return np.array([ends.high]), np.zeros(1)
    mean = np.clip(kept.log_p - kept.log_q, kept.low, kept.high)
    return np.concatenate((atoms.loss, mean)), np.concatenate((atoms.log_p, kept.log_p))


def cgf_estimate(loss: KnownDistribution, c: float) -> CGFEstimate:
    """Return an estimate of K and two derivatives, with each cell merged."""
    mean, log_p = points_of(loss)
    value = log1p_exp(log_sum(log_p + log_psi(mean, c)))
    exponent = log_p + c * mean
    weight = np.exp(exponent - exponent.max())
    weight /= weight.sum()
    if value < 1.0:
        # M' = E[l (e^(c l) - 1) + e2(-l)], all positive, where the mean of l would cancel.
        with np.errstate(over="ignore", invalid="ignore"):
            less_one = np.exp(log_p) * np.expm1(c * mean)
            grown = mean * np.where(c * mean > _LARGE, np.exp(exponent), less_one)
        slope = float(grown.sum() + np.exp(log_p + log_e2(-mean)).sum()) * math.exp(-value)
    else:
        slope = float((weight * mean).sum())
    return CGFEstimate(value, slope, float((weight * (mean - slope) ** 2).sum()))


def cgf_bounds(
    loss: KnownDistribution, c: float, upper: Callable[[float], float] | None = None
) -> Ball:
    """Return K between its ends: cells merged (Jensen), and cells spread to their edges.

    The gap is about 1e-7 of K. ``upper`` bounds K at any order: a loss without a largest value
    needs one for what lies above all cells, and gets no more than it.
    """
    low, high = _enclosed(loss, c, upper)
    if high == math.inf:
        value = cgf_estimate(loss, c).value
        high, low = (upper(c) if upper else math.inf), 0.0
        if high == math.inf:
            return Ball(value, math.inf)
    elif upper and high - low > _NARROW * high:
        high = max(min(high, upper(c)), low)
    return Ball(0.5 * (low + high), 0.5 * (high - low) * (1.0 + 4.0 * ULP) + ULP * high)


@lru_cache(maxsize=256)
def _enclosed(
    loss: KnownDistribution, c: float, upper: Callable[[float], float] | None
) -> tuple[float, float]:
    """Return proven ends of K."""
    (cells, ends), atoms = _grid(loss), loss.atoms()
    points = _of_points(atoms.loss, atoms.log_p, atoms.error, c)
    known = _between(loss, cells, c)
    above = _above(loss, ends, c, upper)
    for _ in range(_STRETCHES):
        if above <= max(log_sum(known[0]), points[0]) + math.log(_NOTHING):
            break
        if above == math.inf or ends.high >= min(loss.supremum, _LARGEST_LOSS):
            break
        cells, ends = _stretched(loss, cells, ends)
        known = _between(loss, cells, c)
        above = _above(loss, ends, c, upper)
    for _ in range(_ROUNDS):
        low, high = known
        total = log_sum(low)
        if log_sum(high) <= total + _NARROW:
            break
        cells = _cut(loss, cells, _shares(low, high, max(total, points[0])))
        known = _between(loss, cells, c)
    missing = _missing(loss, c, upper) if atoms.loss.size else -math.inf
    below = math.log(c) + ends.low_q
    low_end = log_add(log_sum(known[0]), points[0])
    high_end = log_add(log_sum(known[1]), points[1], above, below, missing)
    return _exponent(low_end, -1.0), _exponent(high_end, 1.0)


def _exponent(log_excess: float, side: float) -> float:
    """Return ``ln(1 + e^x)`` of a sum's logarithm, rounded to one side with the sum's round-off."""
    if math.isinf(log_excess):
        return max(log_excess, 0.0)
    moved = log_excess + side * ULP * (_SUMS + 4.0 * abs(log_excess))
    return log1p_exp(moved) * (1.0 + side * 8.0 * ULP)


def _of_points(place: Array, log_p: Array, error: Array, c: float) -> tuple[float, float]:
    """Return the logarithm of the sum of ``p psi`` over atoms, losses known to 4 ulp, rounded."""
    if not place.size:
        return -math.inf, -math.inf
    unsure = 4.0 * ULP * np.abs(place)
    near = np.sign(place) * np.maximum(np.abs(place) - unsure, 0.0)
    far = place + np.sign(place) * unsure
    low, high = log_psi(near, c), log_psi(far, c)
    low_end = log_sum(log_p + low - error - _rounding(near, low, log_p, c))
    return low_end, log_sum(log_p + high + error + _rounding(far, high, log_p, c))


def _between(loss: KnownDistribution, cells: Cells, c: float) -> tuple[Array, Array]:
    """Return the logarithms of lower and upper ends of the mean of psi in each cell, times p."""
    log_p = cells.log_p
    empty = ~(log_p > -math.inf) & (cells.error < math.inf)
    unknown = ~(cells.error < math.inf) | (np.isinf(log_p) & ~empty)
    with np.errstate(all="ignore"):
        low, high = cells.low - loss.displacement, cells.high + loss.displacement
        sizes = np.abs(log_p) + np.abs(cells.log_q)
        unsure = 2.0 * cells.error + 2.0 * ULP * sizes
        mean = np.clip(log_p - cells.log_q, low, high)
        nearest = np.clip(np.sign(mean) * np.maximum(np.abs(mean) - unsure, 0.0), low, high)
        inner, first, last = (log_psi(place, c) for place in (nearest, low, high))
        lower = log_p + inner - cells.error - _rounding(nearest, inner, log_p, c)
        # Of the mass under P, the share that goes to the upper edge.
        room = -np.expm1(low - high)
        share, slack = -np.expm1(low - mean) / room, 1.1 * unsure / room + 16.0 * ULP
        share = np.clip(np.where(last > first, share + slack, share - slack), 0.0, 1.0)
        upper = log_p + np.logaddexp(np.log1p(-share) + first, np.log(share) + last)
        ends = np.maximum(np.abs(low), np.abs(high))
        upper = upper + cells.error + _rounding(ends, np.maximum(first, last), log_p, c)
        upper = np.where(np.isnan(upper), np.where(room > 0.0, math.inf, lower), upper)
    lower = np.where(empty | unknown | np.isnan(lower), -math.inf, lower)
    return lower, np.where(empty, -math.inf, np.where(unknown, math.inf, upper))


def _rounding(place: Array, value: Array, log_p: Array, c: float) -> Array:
    """Return a bound on the round-off of ``ln p + ln psi``."""
    size = np.where(np.isfinite(value), np.abs(value), 0.0)
    known = np.where(np.isfinite(log_p), np.abs(log_p), 0.0)
    return np.asarray(ULP * (8.0 * (1.0 + c) * np.abs(place) + 8.0 * size + 4.0 * known + 64.0))


def _above(
    loss: KnownDistribution, ends: Ends, c: float, upper: Callable[[float], float] | None
) -> float:
    """Return the logarithm of a bound of ``E_P[psi(L)]`` above all cells."""
    if ends.high_p == -math.inf:
        return -math.inf
    return _log_beyond(loss, c, ends.high_p, upper)


def _missing(loss: KnownDistribution, c: float, upper: Callable[[float], float] | None) -> float:
    """Return the logarithm of a bound of what atoms that are not listed add."""
    return log_add(_log_beyond(loss, c, _MISSING, upper), math.log(c) + _MISSING)


def _log_beyond(
    loss: KnownDistribution, c: float, log_p: float, upper: Callable[[float], float] | None
) -> float:
    """Return a bound of ``ln E_P[e^(c L)]`` over an event of a probability, for L >= 0."""
    found = log_p + c * max(loss.supremum, 0.0)
    if upper is not None and found > _LEAST:
        powers = ((1.0 - 1.0 / r) * log_p + upper(r * c) / r for r in _POWERS)
        found = min(found, *powers)
    return found + ULP * 64.0 * (abs(found) + abs(log_p)) if found < math.inf else found


def _stretched(loss: KnownDistribution, cells: Cells, ends: Ends) -> tuple[Cells, Ends]:
    """Return the cells with some more above them."""
    high = min(2.0 * max(ends.high, 1.0), loss.supremum, _LARGEST_LOSS)
    more = masses_between(loss, np.linspace(ends.high, high, _FURTHER + 1))
    beyond = _beyond(loss, ends.high, high)
    joined = Cells(*(np.concatenate(pair) for pair in zip(cells, more, strict=True)))
    return joined, Ends(ends.low_p, ends.low_q, high, beyond.high_p, beyond.high_q)


def _shares(low: Array, high: Array, total: float) -> NDArray[np.int64]:
    """Return in how many parts each cell is cut.

    A gap g falls as ``g / n^2``: for a given sum of n the sum of gaps is least for n as g^(1/3).
    """
    # A cell whose upper end is far above the sum needs cutting as much as the next such one.
    with np.errstate(invalid="ignore"):
        gap = np.exp(np.minimum(high - total, 1.0)) * -np.expm1(np.minimum(low - high, 0.0))
    gap = np.where((high < math.inf) & (gap > _NOTHING / gap.size), gap, 0.0)
    root = np.cbrt(gap)
    parts = np.ceil(_ADDED * root / max(float(root.sum()), 1e-300))
    return np.asarray(np.maximum(parts, 1.0), dtype=np.int64)


def _cut(loss: KnownDistribution, cells: Cells, times: NDArray[np.int64]) -> Cells:
    """Return the cells with each cut in so many parts, unless parts would be hardly known."""
    whole = times <= 1
    cut = cells.chosen(~whole)
    if not cut.low.size:
        return cells
    parts = times[~whole]
    parent = np.repeat(np.arange(parts.size), parts)
    place = np.arange(parent.size) - np.repeat(np.cumsum(parts) - parts, parts)
    starts = cut.low[parent] + (cut.high - cut.low)[parent] * (place / parts[parent])
    found = masses_between(loss, np.unique(np.concatenate((starts, cut.high))))
    # Between cells that are cut lie some that are not.
    owner = np.searchsorted(cut.low, found.low, side="right") - 1
    inside = found.low < cut.high[owner]
    found, owner = found.chosen(inside), owner[inside]
    unsure = np.zeros(parts.size, dtype=bool)
    unsure[owner[~(found.error <= np.maximum(_SURE, cut.error[owner]))]] = True
    kept, better = cells.chosen(whole), found.chosen(~unsure[owner])
    joined = [np.concatenate(three) for three in zip(kept, cut.chosen(unsure), better, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return Cells(*(column[order] for column in joined))
