"""How far one participant moves what a linear encoder of a training run releases, squared.

Column i of the encoder C is what round i adds. With vectors ``u_i`` of norm at most 1 in the rounds
of a participant the release moves by ``|sum C_i u_i|``, and

    |sum C_i u_i|^2 = sum <C_i, C_j> <u_i, u_j> <= sum |<C_i, C_j>|,

attained by equal vectors where no inner product is negative. Orthogonal vectors attain
``sum |C_i|^2``. All is exact, in integers, unless said otherwise.

How far one participant moves the nodes of a binary tree over the rounds, squared.

The nodes are those whose leaves are all there, ``[j s, (j + 1) s)`` for ``s = 1, 2, 4, ...``, so
that ``<C_i, C_j>`` counts the nodes that hold both rounds. None is negative, so that the largest
square is ``sum of c(node)^2`` over the nodes, the largest over the patterns of participation, where
c counts how often a participant is in a node.

Three ways lead to it, b rounds being the separation and k the most participations:

* A node of s leaves holds at most ``m = ceil(s / b)``; of numbers up to m that sum to at most k, as
  many as there are nodes, those have the largest sum of squares that are m as long as k allows.
  The sum of this over the levels is an upper bound. The earliest pattern attains it where b is a
  power of two: it fills each node before the next.
* Enumeration by dynamic programming: what a node's leaves can reach is kept for each number of
  participations in it and for each distance, below b, of the first and the last of them from the
  node's ends. Halves of a node meet where these two distances allow it.
* The same in units of g rounds, g a power of two of at most b: two participations never share a
  unit, and a unit's nodes count one each. Units of participations are ``floor(b / g)`` apart at
  least, which gives an upper bound, and first rounds of units that are ``ceil(b / g)`` apart are a
  pattern, which gives a lower one. If g divides b, both are the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

from hockeystick.numerics import ULP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hockeystick.kernels.series import Array


# The most additions that a dynamic programme takes, and what one NumPy call counts as.
_AFFORDABLE: Final = 100_000_000
_A_CALL: Final = 8_000
_IMPOSSIBLE: Final = -(1 << 60)


def of_tree(rounds: int, pattern: Pattern) -> Squares:
    """Return the squares of the tree over so many rounds."""
    most = _by_levels(rounds, pattern)
    least = _of_places(rounds, pattern.earliest(rounds))
    unit = _unit(rounds, pattern) if least < most else 0
    if unit:
        apart = pattern.separation
        most = min(most, _by_halves(rounds, pattern.participations, apart // unit, unit))
        least = max(least, _by_halves(rounds, pattern.participations, -(-apart // unit), unit))
    return Squares(Fraction(least), Fraction(most))


def _by_levels(rounds: int, pattern: Pattern) -> int:
    total, size = 0, 1
    taken = len(pattern.earliest(rounds))
    while size <= rounds:
        each, nodes = -(-size // pattern.separation), rounds // size
        full, rest = divmod(taken, each)
        total += nodes * each**2 if full >= nodes else full * each**2 + rest**2
        size *= 2
    return total


def _of_places(rounds: int, places: range) -> int:
    total, size = 0, 1
    rows = np.array(places)
    while size <= rounds:
        nodes = rows // size
        held = np.bincount(nodes[nodes < rounds // size])
        total += int(held @ held)
        size *= 2
    return total


def _unit(rounds: int, pattern: Pattern) -> int:
    taken = len(pattern.earliest(rounds))
    unit = pattern.separation & -pattern.separation
    while unit <= pattern.separation:
        wide = -(-pattern.separation // unit)
        if 2 * taken**2 * (wide**3 + _A_CALL) <= _AFFORDABLE:
            return unit
        unit *= 2
    return 0


class _Node(NamedTuple):
    """What so many leaves reach, ``best[c, a, z]``: c take part, not the first a nor the last z."""

    size: int
    best: NDArray[np.int64]


def _by_halves(rounds: int, participations: int, apart: int, unit: int) -> int:
    """Return the largest square, in units whose first rounds are so many units apart."""
    nodes = unit.bit_length()
    whole, rest = divmod(rounds, unit)
    node, trees = _leaf(nodes, apart), []
    while whole:
        if whole & 1:
            trees.append(node)
        whole >>= 1
        if whole:
            node = _joined(node, node, apart, participations)
            node.best[...] += (np.arange(len(node.best)) ** 2)[:, None, None]
    total = _leaf(rest.bit_length(), apart)
    for tree in trees:
        total = _joined(tree, total, apart, participations)
    return int(total.best[:, 0, 0].max())


def _leaf(nodes: int, apart: int) -> _Node:
    best = np.full((2, apart, apart), _IMPOSSIBLE)
    best[0], best[1, 0, 0] = 0, nodes
    return _Node(1, best)


def _joined(left: _Node, right: _Node, apart: int, participations: int) -> _Node:
    """Return two runs of leaves, one after the other, without a node above both."""
    size = left.size + right.size
    count = min(len(left.best) + len(right.best) - 1, participations + 1, -(-size // apart) + 1)
    best = np.full((count, apart, apart), _IMPOSSIBLE)
    places = np.arange(apart)
    for c, one in enumerate(left.best[:count]):
        best[c] = np.maximum(best[c], one[:, np.maximum(places - right.size, 0)])
    for c, one in enumerate(right.best[:count]):
        best[c] = np.maximum(best[c], one[np.maximum(places - left.size, 0)])
    # The last of the left one z before its end and the first of the right one a after its start
    # are a + z + 1 apart.
    meeting = right.best[:, ::-1]
    for c, one in enumerate(left.best[1:count], 1):
        for d, other in enumerate(meeting[1 : count - c], 1):
            both = (one[:, :, None] + other[None]).max(axis=1)
            best[c + d] = np.maximum(best[c + d], both)
    return _Node(size, np.maximum(best, _IMPOSSIBLE))


# The most additions that enumerating the patterns of participation may take.
_SENSITIVITY_AFFORDABLE: Final = 300_000
# A root is what an answer of a thousand digits is computed from.
_ROOT_BITS: Final = 3500


class Squares(NamedTuple):
    """A square that some participant reaches, and one that none exceeds."""

    least: Fraction
    most: Fraction


@final
@dataclass(frozen=True, slots=True)
class Pattern:
    """The most participations, and the least number of rounds between two of them."""

    participations: int
    separation: int

    def earliest(self, rounds: int) -> range:
        """Return the pattern that starts first and has the least gaps."""
        count = min(self.participations, -(-rounds // self.separation))
        return range(0, count * self.separation, self.separation)

    def every(self, rounds: int, start: int = 0, taken: int = 0) -> Iterator[tuple[int, ...]]:
        """Yield all patterns, the empty one too."""
        yield ()
        if taken == self.participations:
            return
        for first in range(start, rounds):
            for rest in self.every(rounds, first + self.separation, taken + 1):
                yield (first, *rest)

    def count(self, rounds: int) -> int:
        """Return the number of patterns."""
        return sum(
            math.comb(rounds - (k - 1) * (self.separation - 1), k)
            for k in range(1, len(self.earliest(rounds)) + 1)
        )


def square_root(square: Fraction) -> Fraction:
    """Return a square root to more digits than any answer is asked for, rounded up."""
    shift = max(2 * _ROOT_BITS + square.denominator.bit_length() - square.numerator.bit_length(), 0)
    shift += shift % 2
    root = math.isqrt((square.numerator << shift) // square.denominator)
    whole = Fraction(root * root, 1 << shift) == square
    return Fraction(root if whole else root + 1, 1 << (shift // 2))


def of_toeplitz(coefficients: Sequence[Fraction], rounds: int, pattern: Pattern) -> Squares:
    """Return the squares of the lower triangular matrix with these diagonals, from the main on.

    Where the coefficients fall and none is negative, an inner product is the larger the earlier
    both columns and the closer they are, so that the earliest pattern is the worst; columns
    further apart than the last diagonal are orthogonal, and only the first of these holds then.
    Otherwise the largest coefficients from each diagonal on take their places in the bound.
    """
    shown = list(coefficients[:rounds])
    own = _earliest_square(shown, rounds, pattern)
    falling = all(one >= other for one, other in pairwise(shown)) and shown[-1] >= 0
    apart = len(shown) <= pattern.separation
    if pattern.participations == 1 or apart or falling:
        return Squares(own, own)
    majorant = list(accumulate((abs(one) for one in reversed(shown)), max))[::-1]
    squares = list(accumulate(one * one for one in shown))
    orthogonal = sum(
        (squares[min(rounds - place, len(shown)) - 1] for place in pattern.earliest(rounds)),
        Fraction(0),
    )
    return Squares(max(own, orthogonal), _earliest_square(majorant, rounds, pattern))


def _earliest_square(coefficients: Sequence[Fraction], rounds: int, pattern: Pattern) -> Fraction:
    whole, unit = _integers(coefficients)
    whole += [0] * (rounds - len(whole))
    apart, end = pattern.separation, pattern.earliest(rounds).stop
    # Each row has what the row before the last gap has, one more term and perhaps one less.
    total: list[int] = []
    for row, value in enumerate(whole):
        former = total[row - apart] if row >= apart else 0
        total.append(former + value - (whole[row - end] if row >= end else 0))
    return Fraction(sum(value * value for value in total), unit * unit)


def widened(squares: Squares, move: Fraction) -> Squares:
    """Return ends of ``s^2`` where s may be off by a move h: ``2 s h <= h (s^2 / c + c)``."""
    size = squares.most.numerator.bit_length() - squares.most.denominator.bit_length()
    c = Fraction(2) ** (size // 2)
    least, most = (
        square + sign * move * (square / c + c)
        for sign, square in zip((-1, 1), squares, strict=True)
    )
    return Squares(max(least, Fraction(0)), most + move * move)


def of_columns(columns: Sequence[Sequence[Fraction]], pattern: Pattern) -> Squares:
    """Return the squares of any matrix, given by its columns."""
    rows = len(columns[0])
    flat, unit = _integers([value for column in columns for value in column])
    whole = [flat[start : start + rows] for start in range(0, len(flat), rows)]
    norms = [sum(value * value for value in column) for column in whole]
    scale = unit * unit
    separate = Fraction(_best(norms, pattern), scale)
    if pattern.participations == 1 or _are_apart(whole, pattern.separation):
        return Squares(separate, separate)
    count = len(columns)
    if (
        pattern.count(count) * pattern.participations**2 + count * count * rows
        <= _SENSITIVITY_AFFORDABLE
    ):
        least, most = _by_every_pattern(whole, pattern)
        return Squares(max(Fraction(least, scale), separate), Fraction(most, scale))
    together = [sum(row) for row in zip(*(whole[i] for i in pattern.earliest(count)), strict=True)]
    least = sum(value * value for value in together)
    return Squares(max(Fraction(least, scale), separate), _by_rows(columns, pattern))


def _best(weights: Sequence[int], pattern: Pattern) -> int:
    """Return the largest sum of weights >= 0 that a pattern collects, by dynamic programming."""
    size, apart = len(weights), pattern.separation
    best = [0] * (size + 1)
    for _ in pattern.earliest(size):
        former, best = best, [0] * (size + 1)
        for place, weight in enumerate(weights):
            taken = weight + former[max(place + 1 - apart, 0)]
            best[place + 1] = max(best[place], taken)
    return best[size]


def _are_apart(columns: Sequence[Sequence[int]], separation: int) -> bool:
    spans = [[row for row, value in enumerate(column) if value] for column in columns]
    first = [span[0] if span else len(columns[0]) for span in spans]
    last = [span[-1] if span else -1 for span in spans]
    nearest = list(accumulate(reversed(first), min))[::-1]
    return all(
        last[place] < nearest[place + separation]
        for place in range(len(columns) - separation)
        if last[place] >= 0
    )


def _by_every_pattern(columns: Sequence[Sequence[int]], pattern: Pattern) -> tuple[int, int]:
    """Return the largest sums of inner products, and of their sizes, over all patterns."""
    products = [
        [sum(a * b for a, b in zip(one, other, strict=True)) for other in columns]
        for one in columns
    ]
    least = most = 0
    for places in pattern.every(len(columns)):
        among = [products[i][j] for i in places for j in places]
        least, most = max(least, sum(among)), max(most, sum(map(abs, among)))
    return least, most


def _by_rows(columns: Sequence[Sequence[Fraction]], pattern: Pattern) -> Fraction:
    """Return an upper bound in floats, rounded up: each round with the worst pattern of its own.

    ``sum over i in pi of sum over j in pi of |<C_i, C_j>|`` is at most the same with the inner
    sum's largest value over all patterns that contain i.
    """
    unit = max(abs(value) for column in columns for value in column)
    matrix = np.array([[float(value / unit) for value in column] for column in columns])
    count, rows = matrix.shape
    sizes = np.abs(matrix)
    unsure = (2.0 * rows + 16.0) * ULP
    products = np.abs(matrix @ matrix.T) + unsure * (sizes @ sizes.T)
    places = np.arange(count)
    near = np.abs(places[:, None] - places) < pattern.separation
    others = Pattern(pattern.participations - 1, pattern.separation)
    worst = np.diagonal(products) + _best_of_each(np.where(near, 0.0, products), others)
    total = _best_of_each(worst[np.newaxis], pattern)[0]
    return Fraction(float(total)) * Fraction(1.0 + (4.0 * count + 64.0) * ULP) * unit * unit


def _best_of_each(weights: Array, pattern: Pattern) -> Array:
    """Return the largest sum that a pattern collects of each row of weights, in floats."""
    count, size = weights.shape
    best = np.zeros((size + 1, count))
    for _ in pattern.earliest(size):
        former, best = best, np.zeros((size + 1, count))
        for place in range(size):
            taken = weights[:, place] + former[max(place + 1 - pattern.separation, 0)]
            best[place + 1] = np.maximum(best[place], taken)
    return best[size]


def _integers(values: Iterable[Fraction]) -> tuple[list[int], int]:
    listed = list(values)
    unit = math.lcm(*(value.denominator for value in listed))
    return [value.numerator * (unit // value.denominator) for value in listed], unit
