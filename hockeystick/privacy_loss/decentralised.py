"""Losses of decentralised averaging and training.

The first needs the largest diagonal entry of ``(I + r Lap)^-1`` for a graph's Laplacian.
With B the edges' incidence matrix, ``Lap = B B^T``, and M = I + r Lap, two variational principles
bound an entry ``h_v = (M^-1)_vv`` by whatever potentials x and flows f one puts in:

    h_v = max over x of  2 x_v - |x|^2 - r |B^T x|^2            (Dirichlet)
    h_v = min over f of  |e_v - B f|^2 + |f|^2 / r              (Thomson)

The first is ``2 e_v x - x M x``, whose maximum is at ``x = M^-1 e_v``; the second is ridge
regression, ``I - B (B^T B + I/r)^-1 B^T = (I + r B B^T)^-1`` by Woodbury's identity. Both sides
are sums of squares, so that round-off is relative, and an error of x or ``f = r B^T x`` enters
squared. So conjugate gradients need not be trusted: what they return is only put in.

h_v falls as r grows, so that r may be rounded to the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple, cast, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.mechanisms.decentralised.gossip import (
    GOPA,
    GossipAveraging,
    is_sent_to_observers,
    observed_span,
)
from hockeystick.mechanisms.decentralised.graphs import Graph
from hockeystick.mechanisms.decentralised.token_walk import NoisyIterations, TokenWalk, change
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import decimal
from hockeystick.numerics.multiprecision import mp, working_digits
from hockeystick.privacy_loss.core.base import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import LEAST_NOISE, edge_pair
from hockeystick.privacy_loss.core.mixtures import observed_mixture
from hockeystick.privacy_loss.core.symmetrized import dominated_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
_UNIT: Final = 2.0**-53
# The most steps of conjugate gradients.
_MOST_STEPS: Final = 20_000
# Right-hand sides solved for at a time, and numbers held for their edges.
_COLUMNS: Final = 64
_HELD: Final = 2**23


class Exposure(NamedTuple):
    """Proven ends of the largest ``h_v``, each in (0, 1]."""

    least: Fraction
    most: Fraction


@lru_cache(maxsize=64)
def exposure(graph: Graph, colluders: frozenset[int], ratio: Fraction) -> Exposure:
    """Return the largest ``((I + r Lap)^-1)_vv`` over the honest parties of a graph.

    Exact for complete graphs and for a ratio of 0; see ``infinite_exposure`` for one of inf.
    """
    if ratio == 0:
        return Exposure(Fraction(1), Fraction(1))
    if graph.whole:
        honest = graph.parties - len(colluders)
        exact = Fraction(1, honest) + (1 - Fraction(1, honest)) / (1 + honest * ratio)
        return Exposure(exact, exact)
    network = _Network.of(graph, colluders)
    ends = _searched(network, _Ratio.of(ratio))
    by_degree = 1 / (1 + ratio * int(network.degrees.min()))
    smallest = Fraction(1, int(network.members.min()))
    least = max(Fraction(ends[0]), by_degree, smallest)
    return Exposure(least, min(max(Fraction(ends[1]), least), Fraction(1)))


def infinite_exposure(graph: Graph, colluders: frozenset[int]) -> Fraction:
    """Return the limit of the exposure for ratios to inf: one over the smallest connected part."""
    if graph.whole:
        return Fraction(1, graph.parties - len(colluders))
    return Fraction(1, int(_Network.of(graph, colluders).members.min()))


class _Ratio(NamedTuple):
    """Floats below and above a ratio r, the lower one not too large to be computed with."""

    low: float
    high: float

    @classmethod
    def of(cls, ratio: Fraction) -> _Ratio:
        try:
            near = float(ratio)
        except OverflowError:
            near = math.inf
        low = math.nextafter(near, 0.0)
        high = math.nextafter(near, math.inf)
        # Ratios beyond these are as good as none, or as infinite: the bounds stay proven, if wider.
        return cls(min(low, 1e14) if low >= 1e-200 else 0.0, high)


@final
@dataclass(frozen=True, slots=True)
class _Network:
    """The graph of the honest parties: its edges' ends, each party's degree and part.

    ``members`` is for each party the size of the connected part that it is in. ``alike`` says that
    all parties see the same graph, so that one of them stands for all.
    """

    heads: Whole
    tails: Whole
    degrees: Whole
    parts: Whole
    members: Whole
    adjacent: Any
    incidence: Any
    alike: bool

    @classmethod
    def of(cls, graph: Graph, colluders: frozenset[int]) -> _Network:
        """Return the graph without the colluders and their edges."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        honest = np.ones(graph.parties, dtype=bool)
        honest[sorted(colluders)] = False
        pairs = graph.pairs
        kept = pairs[honest[pairs].all(axis=1)]
        places = np.cumsum(honest) - 1
        heads, tails = places[kept[:, 0]], places[kept[:, 1]]
        size, count = int(honest.sum()), len(kept)
        ones = np.ones(count)
        # Releases of scipy up to 1.11 find connected parts by 32-bit places alone: else no labels.
        half = csr_array((ones, (heads.astype(np.int32), tails.astype(np.int32))), (size, size))
        adjacent = csr_array(half + half.T)
        rows, columns = np.concatenate((heads, tails)), np.tile(np.arange(count), 2)
        signs = np.concatenate((ones, -ones))
        incidence = csr_array((signs, (rows, columns)), shape=(size, count))
        _, parts = connected_components(adjacent, directed=False)
        degrees = np.bincount(rows, minlength=size)
        members = np.bincount(parts)[parts]
        alike = graph.alike and not colluders
        return cls(
            heads, tails, degrees, parts.astype(np.int64), members, adjacent, incidence, alike
        )

    @property
    def size(self) -> int:
        return len(self.degrees)


def _searched(network: _Network, ratio: _Ratio) -> tuple[float, float]:
    """Return proven ends of the largest entry.

    Every party is bounded with a few steps; those that may still be the largest, with more.
    """
    left = np.arange(1 if network.alike else network.size)
    best, most, steps = 0.0, 1.0, 6
    near = 1e-13 + 4.0 * _UNIT * (network.size + len(network.heads) + 32)
    while True:
        lower, upper = _bounds(network, ratio, left, steps)
        best = max(best, float(lower.max()))
        most = min(most, max(float(upper.max()), best))
        left = left[upper > best]
        # More steps than twice the size are not taken, so that another round would be the same.
        last = steps >= min(2 * network.size, _MOST_STEPS)
        steps *= 3
        if most - best <= near * best or not left.size or last or steps > _MOST_STEPS:
            return best, most


def _bounds(network: _Network, ratio: _Ratio, parties: Whole, steps: int) -> tuple[Array, Array]:
    width = max(min(_COLUMNS, _HELD // max(len(network.heads), network.size)), 1)
    blocks = [parties[start : start + width] for start in range(0, len(parties), width)]
    found = [
        _ends(network, ratio, block, *_potentials(network, ratio, block, steps)) for block in blocks
    ]
    lower, upper = (np.concatenate(ends) for ends in zip(*found, strict=True))
    return lower, upper


def _potentials(
    network: _Network, ratio: _Ratio, parties: Whole, steps: int
) -> tuple[Array, Array]:
    """Return approximations of ``M^-1 e_v`` by conjugate gradients, one column for each v.

    The share along the constant of v's connected part is known; on the rest M is well conditioned
    where the graph spreads fast. Both are returned apart: next to the shares, small differences
    would lose their digits.
    """
    together = network.parts[:, None] == network.parts[parties]
    shares = np.where(together, 1.0 / network.members[parties], 0.0)
    columns = np.arange(len(parties))
    residual = -shares
    residual[parties, columns] += 1.0
    found, direction = np.zeros_like(shares), residual.copy()
    square = np.einsum("ij,ij->j", residual, residual)
    diagonal = 1.0 + ratio.low * network.degrees[:, None]
    first = square
    for _ in range(min(steps, 2 * network.size)):
        image = diagonal * direction - ratio.low * (network.adjacent @ direction)
        along = np.einsum("ij,ij->j", direction, image)
        length = np.divide(square, along, out=np.zeros_like(square), where=along > 0.0)
        found += length * direction
        residual -= length * image
        last, square = square, np.einsum("ij,ij->j", residual, residual)
        if (square <= _UNIT**2 * first).all():
            break
        turn = np.divide(square, last, out=np.zeros_like(square), where=last > 0.0)
        direction = residual + turn * direction
    return shares, found


def _ends(
    network: _Network, ratio: _Ratio, parties: Whole, shares: Array, rest: Array
) -> tuple[Array, Array]:
    """Return the Dirichlet and the Thomson bound of parties' entries by given potentials.

    The potentials are shares, the same throughout a connected part, and the rest.

    With u the unit round-off, a sum of k squares of rounded differences is off by less than
    ``2 (k + 8) u`` relative. The flow that is put in is r times the rounded differences, so that
    only the sum of a party's d edges is rounded, by less than ``2 (d + 8) u`` of what it moves;
    the norm of that is added, by the triangle inequality.
    """
    columns = np.arange(len(parties))
    potentials = shares + rest
    jumps = rest[network.heads] - rest[network.tails]
    energy, norm = _squares(jumps), _squares(potentials)
    with np.errstate(over="ignore"):
        spent = (norm + ratio.high * energy) * (1.0 + 4.0 * _UNIT)
    gained = 2.0 * potentials[parties, columns] * (1.0 - 4.0 * _UNIT)
    lower = np.maximum(gained - spent, 0.0) * (1.0 - 4.0 * _UNIT)
    left = -ratio.low * (network.incidence @ jumps)
    left[parties, columns] += 1.0
    moved = ratio.low * (abs(network.incidence) @ np.abs(jumps))
    moved[parties, columns] += 1.0
    moved *= (int(network.degrees.max()) + 8) * 2.0 * _UNIT
    length = np.sqrt(_squares(left)) + np.sqrt(_squares(moved))
    upper = (length**2 + ratio.low * energy) * (1.0 + 32.0 * _UNIT)
    return lower, np.minimum(upper, 1.0)


def _squares(columns: Array) -> Array:
    """Return the columns' sums of squares, rounded up, also where the entries are, or underflow."""
    total = np.einsum("ij,ij->j", columns, columns)
    return np.asarray(total * (1.0 + (len(columns) + 8) * 2.0 * _UNIT) + 1e-290)


@dominating_pair.register
def _(mechanism: GOPA) -> DominatingPair:
    if edge := edge_pair(mechanism.noise_multiplier, LEAST_NOISE):
        return edge
    noise, hidden = decimal(mechanism.noise_multiplier), (mechanism.graph, mechanism.colluders)
    # The largest ``s^2 (Sg^-1)_vv``.
    if mechanism.pairwise_multiplier == math.inf:
        least = most = infinite_exposure(*hidden)
    else:
        ratio = (decimal(mechanism.pairwise_multiplier) / noise) ** 2
        least, most = exposure(*hidden, ratio)
    return dominated_pair(*(GaussianLoss(noise / square_root(end)) for end in (most, least)))


@dominating_pair.register
def _(mechanism: GossipAveraging) -> DominatingPair:
    least, most = _squared_projection(mechanism)
    if most == 0:
        return DominatingPair(None, None)
    if edge := edge_pair(mechanism.noise_multiplier, LEAST_NOISE):
        return edge
    noise = decimal(mechanism.noise_multiplier)
    above = GaussianLoss(noise / square_root(most))
    # A root is rounded up by less than this: the lower end needs it rounded down.
    down = 1 - Fraction(1, 2**100)
    below = GaussianLoss(noise / (square_root(least) * down)) if least else None
    return dominated_pair(above, above if least == most else below)


def _squared_projection(mechanism: GossipAveraging) -> tuple[Fraction, Fraction]:
    """Return proven ends of ``|P e_u|^2``, or raise where that takes too long."""
    if is_sent_to_observers(mechanism):
        return Fraction(1), Fraction(1)
    observers = mechanism.observers
    span = observed_span(mechanism.graph, mechanism.weights, mechanism.rounds, observers)
    if span is None:
        raise NoAnalysisError(
            f"what {len(observers)} observers see of {mechanism.graph.parties:,} parties in "
            f"{mechanism.rounds:,} rounds takes too long to eliminate exactly; what a party loses "
            "to everybody, Gaussian(noise_multiplier), bounds it"
        )
    return span.squared_projection(mechanism.party)


@dominating_pair.register
def _(mechanism: NoisyIterations) -> DominatingPair:
    if mechanism.steps == 0:
        return DominatingPair(None, None)
    if edge := edge_pair(mechanism.noise_multiplier, LEAST_NOISE):
        return edge
    noise = decimal(mechanism.noise_multiplier) / change(mechanism.adjacency)
    return dominated_pair(_covered(noise, mechanism.covering), _covered(noise, mechanism.steps))


def _covered(noise: Fraction, steps: int) -> GaussianLoss:
    """Return the loss under the noise of several steps, ``mu = 1 / (noise sqrt(steps))``."""
    return GaussianLoss(noise * steps / square_root(Fraction(steps)))


# Probabilities are multiples of 2^-192.
_BITS: Final = 192


@dominating_pair.register
def _(mechanism: TokenWalk) -> DominatingPair:
    if edge := edge_pair(mechanism.noise_multiplier, LEAST_NOISE):
        return edge
    noise = decimal(mechanism.noise_multiplier) / change(mechanism.adjacency)
    if mechanism.distance is not None:
        steps = mechanism.distance, mechanism.parties - 1
        return dominated_pair(*(_covered(noise, number) for number in steps))
    walk = _Walk(mechanism.parties, cast(int, mechanism.observers))
    return dominated_pair(cast(CellLoss, _above(noise, walk)), _below(noise, walk))


@final
@dataclass(frozen=True, slots=True)
class _Walk:
    """The number of noisy steps after a contribution to a walk on the complete graph."""

    parties: int
    observers: int

    def likely_steps(self, observed: int) -> int:
        """Return the number of steps to one of several parties that is exceeded with e^-14."""
        return -(-14 * self.parties // observed)

    def observed_tail(self, steps: int) -> Fraction:
        """Return a lower bound of ``Pr[more than steps follow]``, where both parties are observed.

        ``(1 - p)^steps`` with ``p = (c + 1)/n``, rounded down.
        """
        if steps == 0:
            return Fraction(1)
        return _rounded([(1, self.observers + 1, steps)], self.parties, up=False)

    def between_observers_tail(self, steps: int) -> Fraction:
        """Return an upper bound of ``Pr[more than steps between two observers]``.

        Those up to the contribution are geometric with ``p = (c + 1)/n``, as w is observed anew
        from each observer; those after it, up to the next observer, with ``c/n``: in all, more than
        g with probability ``(c + 1) (1 - c/n)^(g + 1) - c (1 - (c + 1)/n)^(g + 1)``.
        """
        if steps == 0:
            return Fraction(1)
        c = self.observers
        return _rounded([(c + 1, c, steps + 1), (-c, c + 1, steps + 1)], self.parties, up=True)


def _rounded(terms: list[tuple[int, int, int]], parties: int, *, up: bool) -> Fraction:
    """Return ``sum w (1 - k/n)^e`` over (w, k, e), rounded to a multiple of ``2^-192``."""
    with working_digits(120):
        total = mp.fsum(
            weight * (mp.mpf(parties - stopping) / parties) ** exponent
            for weight, stopping, exponent in terms
        )
        scaled = int(mp.floor(mp.ldexp(total, _BITS)))
    units = scaled + 2 if up else scaled - 1
    return Fraction(min(max(units, 0), 1 << _BITS), 1 << _BITS)


def _ends_of_token_walk(steps: int, singles: int, blocks: int) -> list[int]:
    """Return the last number of steps of each block: single ones, then in a geometric series.

    There are fewer blocks where they would differ by less than a factor: every one costs time.
    """
    ends = list(range(min(steps, singles) + 1))
    growth = max(1.25, (steps / singles) ** (1 / blocks))
    while ends[-1] < steps:
        ends.append(math.ceil(ends[-1] * growth))
    return ends


@lru_cache(maxsize=64)
def _above(noise: Fraction, walk: _Walk) -> CellLoss | None:
    """Return the mixture in which each block has the noise of its least number of steps."""
    ends = _ends_of_token_walk(walk.likely_steps(walk.observers + 1), 12, 20)
    left = [*(walk.observed_tail(end) for end in ends), Fraction(0)]
    shares = [first - second for first, second in pairwise(left)]
    parts = [(share, _covered(noise, end + 1)) for end, share in zip(ends, shares, strict=True)]
    return observed_mixture(parts)


@lru_cache(maxsize=64)
def _below(noise: Fraction, walk: _Walk) -> CellLoss | None:
    """Return the mixture in which each block has the noise of its largest number of steps."""
    ends = _ends_of_token_walk(walk.likely_steps(walk.observers), 3, 5)
    left = [walk.between_observers_tail(end) for end in ends]
    shares = [first - second for first, second in pairwise(left)]
    parts = [(share, _covered(noise, end)) for end, share in zip(ends[1:], shares, strict=True)]
    return observed_mixture([*parts, (left[-1], None)])
