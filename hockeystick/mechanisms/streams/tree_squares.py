"""How far one participant moves the nodes of a binary tree over the rounds, squared.

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

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.mechanisms.streams.sensitivity import Pattern, Squares

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    """Return the upper bound that looks at each level of the tree by itself."""
    total, size = 0, 1
    taken = len(pattern.earliest(rounds))
    while size <= rounds:
        each, nodes = -(-size // pattern.separation), rounds // size
        full, rest = divmod(taken, each)
        total += nodes * each**2 if full >= nodes else full * each**2 + rest**2
        size *= 2
    return total


def _of_places(rounds: int, places: range) -> int:
    """Return the square of a participant in these rounds."""
    total, size = 0, 1
    rows = np.array(places)
    while size <= rounds:
        nodes = rows // size
        held = np.bincount(nodes[nodes < rounds // size])
        total += int(held @ held)
        size *= 2
    return total


def _unit(rounds: int, pattern: Pattern) -> int:
    """Return the least unit for which a dynamic programme is affordable, or 0."""
    taken = len(pattern.earliest(rounds))
    unit = pattern.separation & -pattern.separation
    while unit <= pattern.separation:
        wide = -(-pattern.separation // unit)
        if 2 * taken**2 * (wide**3 + _A_CALL) <= _AFFORDABLE:
            return unit
        unit *= 2
    return 0


class _Node(NamedTuple):
    """What so many leaves in a row reach: ``best[c, a, z]`` with c participations.

    The first a of them take no part, nor do the last z.
    """

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
    """Return a single unit, which is in so many nodes that nothing else is in."""
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
