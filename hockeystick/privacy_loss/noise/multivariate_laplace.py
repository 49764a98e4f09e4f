"""The loss of multivariate Laplace noise: masses of cells with proven errors, in any dimension.

With ``e`` the distance of the centres in units of the scale, the loss is ``l = e tanh t``, where t
has a density of which the logarithm psi, its bound of growth G and the error of a Gauss sum are in
``hockeystick.precision.multivariate_laplace``. Cells are cut at breaks between which psi hardly
moves. A piece is a Gauss sum where the growth allows it. Elsewhere, far from the peak, its slope
is between two ends of one sign, ``lam`` and ``Lam``, so that a piece of width w next to the density
f is between ``f (1 - exp(-Lam w))/Lam`` and the same of lam.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.mechanisms.noise.laplace import Laplace, MultivariateLaplace
from hockeystick.numerics import ULP, decimal
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.precision.multivariate_laplace import bessel_of, multivariate_laplace_delta, peak
from hockeystick.privacy_loss.core.base import (
    Array,
    DominatingPair,
    Masses,
    NoAnalysisError,
    both,
    dominating_pair,
)
from hockeystick.privacy_loss.core.composition import edge_pair
from hockeystick.privacy_loss.core.uncertain_endpoints import UncertainEdges, cut_edges, mirrored
from hockeystick.privacy_loss.noise.laplace import ReachLoss, reach_of

Indices = NDArray[np.intp]
# The largest radius that the bound of the growth is used for, and radii over half a piece.
_REACH: Final = 0.75
_RATIOS: Final = (3.0, 6.0, 12.0, 30.0, 100.0, 1000.0, 1e5)
# Gauss rules, each with the error with which it will do; then the one for the rest.
_RULES: Final = ((4, 1e-15), (10, 1e-15), (20, 0.25))
# Breaks: half the width of a piece at most, what psi may move by next to it, how far down pieces
# are so narrow, how wide they are beyond, and where the last one ends.
_WIDEST: Final = 0.24
_GROWTH: Final = 5.0
_DEPTH: Final = 900.0
_WIDE: Final = 0.25
_END: Final = 20.0
# Nearer to an end of the loss than this multiple of its error, an edge is not known, and counts as
# the end if its error is at most the next share of it; no edge is moved farther than the last.
_SURE: Final = 16.0
_SNAPPED: Final = 20.0 * ULP
SNAP: Final = 512.0 * ULP


class Axis(NamedTuple):
    """The pair: dimension, ``a = e/2``, e, bessel, where P has its peak, and the breaks."""

    dimension: int
    half: float
    end: float
    bessel: float
    breaks: Array
    log_total: float
    error: float


@lru_cache(maxsize=32)
def axis_of(end: float, dimension: int) -> Axis:
    """Return the pair at a distance e, in at least two dimensions."""
    with working_digits(30):
        bessel = float(bessel_of(dimension, mp.mpf(end) / 2))
    bare = Axis(dimension, 0.5 * end, end, bessel, np.empty(0), 0.0, 0.0)
    top = peak(dimension, bare.half, bessel)
    # Pieces are narrow around the peak, and wide from there outwards.
    breaks = np.unique(np.concatenate((_march(bare, top, -1.0), [top], _march(bare, top, 1.0))))
    points = np.concatenate(([-math.inf], breaks, [math.inf]))
    total = _integrals(bare, *_between(points[:-1], points[1:]))
    (log_total,), (error,) = _summed(*total, np.zeros(1, dtype=np.int64))
    return bare._replace(breaks=breaks, log_total=float(log_total), error=float(error))


def log_masses(axis: Axis, edges: UncertainEdges) -> tuple[Array, Array]:
    """Return ``ln P`` between neighbouring edges of the loss, and a bound on each one's error.

    The edges lie between -e and e, where -e and e mean the ends of the loss; e is known to a unit
    in the last place. Edges within ``SNAP`` of an end may count as the end.
    """
    with np.errstate(all="ignore"):
        at, error = _places(axis, edges)
        low, high = at[:-1], at[1:]
        first = np.searchsorted(axis.breaks, low, side="right")
        inside = np.searchsorted(axis.breaks, high, side="left") - first
        whole = np.flatnonzero(inside <= 0)
        value, off = np.full(low.size, -math.inf), np.zeros(low.size)
        value[whole], off[whole] = _of_one(axis, edges, at, error, whole)
        cut = np.flatnonzero(inside > 0)
        if cut.size:
            value[cut], off[cut] = _of_several(axis, at, error, cut)
        round_off = ULP * (4.0 * np.abs(np.where(value > -math.inf, value, 0.0)) + 8.0)
        off = off + axis.error + round_off + ULP * (4.0 * abs(axis.log_total) + 4.0)
    empty = ~(high > low) & (np.isinf(low) | ~(edges.width > 0.0))
    off = np.where(np.isnan(value) | np.isnan(off), math.inf, off)
    value = np.where(empty | np.isnan(value), -math.inf, value - axis.log_total)
    return value, np.where(empty, 0.0, off)


def _places(axis: Axis, edges: UncertainEdges) -> tuple[Array, Array]:
    """Return ``t = artanh(l/e)`` of edges, with a bound on each one's error."""
    size = np.abs(edges.at)
    room = axis.end - size
    at = np.copysign(0.5 * np.log1p(2.0 * size / room), edges.at)
    moved = edges.error + 2.0 * ULP * size
    error = 1.2 * moved * (axis.end / room) / (axis.end + size) + 6.0 * ULP * np.abs(at)
    near = moved * _SURE > room
    error = np.where(near, math.inf, error)
    ends = (room <= 0.0) | (near & (moved <= _SNAPPED * axis.end))
    at = np.where(ends, np.copysign(math.inf, edges.at), at)
    return at, np.where(ends, 0.0, error)


def _of_one(
    axis: Axis, edges: UncertainEdges, at: Array, error: Array, which: Indices
) -> tuple[Array, Array]:
    """Return masses of cells without a break inside, from their widths.

    ``artanh x - artanh y = artanh((x - y) / (1 - x y))``, where ``1 - x y`` is a sum.
    """
    low, high = which, which + 1
    x, y = edges.at[low] / axis.end, edges.at[high] / axis.end
    same = x * y > 0.0
    near, far = ((axis.end - np.abs(edges.at[one])) / axis.end for one in (low, high))
    rest = np.where(same, near + np.abs(x) * far, 1.0 - x * y)
    share = edges.width[low] / axis.end / rest
    width = np.arctanh(share)
    moved = np.maximum(error[low], error[high])
    unsure = 1.2 * (edges.width_error[low] + 2.0 * moved * (1.0 + share) + 12.0 * ULP)
    # Wide pieces are the difference of their ends.
    wide = ~(share < 0.2) | np.isinf(at[low]) | np.isinf(at[high])
    width = np.where(wide, at[high] - at[low], width)
    unsure = np.where(wide, 1.2 * 2.0 * moved / width + 4.0 * ULP, unsure)
    unsure = np.where(np.isinf(width), 0.0, unsure)
    centre = np.where(at[low] < 0.0, at[high] - 0.5 * width, at[low] + 0.5 * width)
    found, found_error = _integrals(axis, at[low], at[high], centre, width)
    slope = _steepest(axis, at[low] - moved, at[high] + moved)
    shift = np.where(moved > 0.0, slope * moved * (1.0 + 8.0 * ULP), 0.0)
    # d ln(mass) / d ln(width) is at most width f/mass at the steep end.
    stretched = np.where(unsure > 0.0, 1.2 * unsure * (1.0 + slope * width), 0.0)
    return found, found_error + shift + np.where(unsure < 0.1, stretched, math.inf)


def _of_several(axis: Axis, at: Array, error: Array, which: Indices) -> tuple[Array, Array]:
    """Return masses of cells with breaks inside: pieces, and slivers at the uncertain edges."""
    first, last = at[which], at[which + 1]
    points = np.unique(np.concatenate((axis.breaks, first, last)))
    low = np.searchsorted(points, first)
    high = np.searchsorted(points, last)
    counts = high - low
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    index = np.arange(counts.sum()) - np.repeat(starts, counts) + np.repeat(low, counts)
    pieces = _integrals(axis, *_between(points[index], points[index + 1]))
    found, found_error = _summed(*pieces, starts)
    slivers = np.zeros(which.size)
    for edge, moved in ((first, error[which]), (last, error[which + 1])):
        near = _log_density(axis, edge)
        grown = _steepest(axis, edge - moved, edge + moved) * moved
        share = np.exp(near + grown - found) * moved
        slivers += np.where(moved > 0.0, share, 0.0)
    # What is added or taken away, of a mass that is itself only known to its error.
    known = slivers * np.exp(found_error)
    return found, found_error + np.where(known < 0.5, 1.4 * known, math.inf)


def _between(low: Array, high: Array) -> tuple[Array, Array, Array, Array]:
    width = high - low
    with np.errstate(invalid="ignore"):
        return low, high, low + 0.5 * width, width


def _integrals(
    axis: Axis, low: Array, high: Array, centre: Array, width: Array
) -> tuple[Array, Array]:
    """Return ln of the integral of ``exp(psi)`` over each piece, by whichever way errs least."""
    with np.errstate(all="ignore"):
        value, error = _by_slopes(axis, low, high, width)
        pending = np.flatnonzero(np.isfinite(width))
        for count, tolerance in _RULES:
            if not pending.size:
                break
            bound = _gauss_error(axis, centre[pending], 0.5 * width[pending], count)
            good = (bound < tolerance) & (2.0 * bound < error[pending])
            chosen = pending[good]
            value[chosen], rest = _gauss(axis, centre[chosen], 0.5 * width[chosen], count)
            error[chosen] = 2.0 * bound[good] + rest
            pending = pending[~good]
    return value, error


def _gauss(axis: Axis, centre: Array, half: Array, count: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    top = _log_density(axis, centre)
    total = np.zeros_like(centre)
    for x, w in zip(nodes, weights, strict=True):
        total += w * np.exp(_log_density(axis, centre + half * x) - top)
    return top + np.log(half * total), _round_off(axis, centre, half)


def _round_off(axis: Axis, centre: Array, half: Array) -> Array:
    """Return what rounding does to the logarithm of a sum.

    psi is a sum of three terms, known to 8 units in the last place each, at a place known to 4.
    """
    place = np.abs(centre) + half
    log_cosh = place - math.log(2.0) + np.log1p(np.exp(-2.0 * place))
    largest = axis.half * np.tanh(place) + (axis.dimension - 1) * log_cosh
    ends = abs(math.log(axis.bessel)) + 2.0 * log_cosh + 1.0
    slope = _steepest(axis, centre - half, centre + half)
    size = 12.0 * largest + 8.0 * ends + 4.0 * slope * place + np.abs(np.log(half)) + 64.0
    return np.asarray(2.0 * ULP * size)


def _log_density(axis: Axis, t: Array) -> Array:
    """Return psi."""
    size = np.abs(t)
    log_cosh = np.where(
        size < 1.0,
        0.5 * np.log1p(np.sinh(np.minimum(size, 1.0)) ** 2),
        size - math.log(2.0) + np.log1p(np.exp(-2.0 * size)),
    )
    square = np.exp(-2.0 * log_cosh)
    slant = axis.half * np.tanh(t) - (axis.dimension - 1) * log_cosh
    return np.asarray(slant + np.log(axis.bessel + square))


def _gauss_error(axis: Axis, centre: Array, half: Array, count: int) -> Array:
    """Return ``2 exp(G(q h) + G(h)) q^(-2m) / (1 - 1/q)`` for the best ratio q, 1 at most."""
    best = np.ones_like(centre)
    own = _growth(axis, centre, half)
    for q in _RATIOS:
        radius = q * half
        exponent = _growth(axis, centre, radius) + own - 2.0 * count * math.log(q)
        bound = 2.0 / (1.0 - 1.0 / q) * np.exp(np.minimum(exponent, 700.0))
        best = np.where(radius <= _REACH, np.minimum(best, bound), best)
    return best


def _growth(axis: Axis, centre: Array, radius: Array | float) -> Array:
    """Return G, where the radius is at most ``_REACH``."""
    cut = np.minimum(radius, _REACH)
    square = np.cosh(np.minimum(np.abs(centre), 300.0)) ** -2
    slope = np.abs(axis.half * square - (axis.dimension - 1) * np.tanh(centre))
    bend = square * (2.0 * axis.half + axis.dimension - 1)
    grown = slope + 0.5 * bend * cut * np.exp(2.0 * cut) / np.cos(cut) ** 2 + 2.0
    return np.asarray(grown * cut * (1.0 + 1e-9))


def _slopes(axis: Axis, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the ends of the slope of psi on pieces: ``a s - (n-1) T - 2 s T/(bessel + s)``."""
    nearest = np.where(low * high <= 0.0, 0.0, np.minimum(np.abs(low), np.abs(high)))
    farthest = np.maximum(np.abs(low), np.abs(high))
    most, least = (np.cosh(np.minimum(t, 300.0)) ** -2 for t in (nearest, farthest))
    left, right = np.tanh(low), np.tanh(high)
    # 2 s T/(bessel + s) has the sign of T and is no further from 0 than this.
    share = 2.0 * most / (axis.bessel + most)
    up = axis.half * most - (axis.dimension - 1) * left + share * np.maximum(-left, 0.0)
    down = axis.half * least - (axis.dimension - 1) * right - share * np.maximum(right, 0.0)
    slack = 32.0 * ULP * (axis.half * most + axis.dimension + 2.0)
    return down - slack, up + slack


def _steepest(axis: Axis, low: Array, high: Array) -> Array:
    down, up = _slopes(axis, low, high)
    return np.asarray(np.maximum(np.abs(down), np.abs(up)))


def _by_slopes(axis: Axis, low: Array, high: Array, width: Array) -> tuple[Array, Array]:
    """Return integrals over pieces on which psi has a slope of one sign; inf errors elsewhere."""
    down, up = _slopes(axis, low, high)
    falls, rises = up < 0.0, down > 0.0
    gentle = np.where(falls, -up, down)
    steep = np.where(falls, -down, up)
    top = _log_density(axis, np.where(falls, low, high))
    first = top + np.log(-np.expm1(-steep * width) / steep)
    second = top + np.log(-np.expm1(-gentle * width) / gentle)
    place = np.where(falls, np.abs(low), np.abs(high))
    error = 0.5 * (second - first) + _round_off(axis, place, np.minimum(1.0, 1.0 / steep))
    known = (falls | rises) & (width > 0.0) & np.isfinite(place)
    return np.where(known, 0.5 * (first + second), 0.0), np.where(known, error, math.inf)


def _summed(log: Array, unsure: Array, starts: Indices) -> tuple[Array, Array]:
    """Return sums of consecutive integrals, from each start to the next, by logarithms."""
    counts = np.diff(np.concatenate((starts, [log.size])))
    top = np.maximum.reduceat(log, starts)
    part = np.exp(log - np.repeat(top, counts))
    total = np.add.reduceat(part, starts)
    with np.errstate(invalid="ignore", over="ignore"):
        # Each is right within a factor of exp(error): of the sum the mean factor counts.
        off = np.where(part > 0.0, part * np.expm1(np.minimum(unsure, 700.0)), 0.0)
    # A piece that vanishes next to the largest may still be badly known.
    off = np.where((part == 0.0) & (unsure > 700.0), math.inf, off)
    mean = np.add.reduceat(off, starts) / total
    error = np.where(mean < 0.5, 1.4 * mean, math.inf) + ULP * (counts + 4.0)
    return top + np.log(total), error


def _march(axis: Axis, top: float, way: float) -> Array:
    def depth(t: float) -> float:
        return float(_log_density(axis, np.array([t]))[0])

    def growth(t: float, radius: float) -> float:
        return float(_growth(axis, np.array([t]), radius)[0])

    deepest = depth(top) - _DEPTH
    found, at, half = [], top, _WIDEST
    while abs(at) < _END:
        half = min(1.5 * half, _WIDEST)
        if depth(at) > deepest:
            while growth(at + way * half, _RATIOS[0] * half) > _GROWTH:
                half *= 0.8
            at += 2.0 * way * half
        else:
            at += way * _WIDE
        found.append(at)
    return np.array(found)


# Distances in units of the scale, and dimensions, for which floats hold what is computed.
_REACHES: Final = (1e-6, 1e7)
_DIMENSIONS: Final = 10**8


@final
@dataclass(frozen=True, slots=True)
class MultivariateLaplaceLoss(ReachLoss):
    """The loss of noise of density ``~ exp(-|z|)`` on R^n, n >= 2, at distance ``e = 1/scale``.

    P is centred at u and Q at 0, so that ``l = |x| - |x - u|`` lies between -e and e. That and the
    sum ``|x| + |x - u|`` are prolate spheroidal coordinates, and the sum integrates out:

        p(l) ~ exp(l/2) (1 - T^2)^((n-3)/2) (bessel + 1 - T^2),  T = l/e,
        bessel = (2(n-1)/e) K_(n/2)(e/2) / K_(n/2-1)(e/2).

    Exchanging the two reflects the space, so that both directions have this loss. A pair of answers
    at a smaller distance has a smaller profile: on every line along u the density is log-concave,
    so that the outputs with a loss above eps are a ray; moving P up the line moves mass into it.
    """

    scale: float
    dimension: int

    @property
    def endpoint_tolerance(self) -> float:
        return SNAP * self.reach

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        axis = axis_of(self.reach, self.dimension)
        with np.errstate(all="ignore"):
            cut = cut_edges(edges, self.reach)
        log_q, error_q = log_masses(axis, mirrored(cut))
        return Masses.of(log_masses(axis, cut), (log_q[::-1], error_q[::-1]))

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        distance = 1 / (decimal(self.scale) * (1 - Fraction(ULP) * perturbation))
        return multivariate_laplace_delta(epsilon, distance, self.dimension)


@dominating_pair.register
def _(mechanism: MultivariateLaplace) -> DominatingPair:
    scale, dimension = mechanism.scale, mechanism.dimension
    if dimension == 1:
        return dominating_pair(Laplace(scale))
    if edge := edge_pair(scale):
        return edge
    if not (_REACHES[0] <= reach_of(scale) <= _REACHES[1] and dimension <= _DIMENSIONS):
        raise NoAnalysisError(
            f"multivariate Laplace noise is analysed for scales from {1 / _REACHES[1]:g} to "
            f"{1 / _REACHES[0]:g} and up to {_DIMENSIONS:,} dimensions"
        )
    return both(MultivariateLaplaceLoss(scale, dimension))
