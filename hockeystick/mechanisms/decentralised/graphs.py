"""Undirected graphs of parties: who exchanges noise with whom."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import registered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pairs = NDArray[np.int64]

_MOST: Final = 10**6
# Most pairs that are kept: a complete graph of any size needs none.
_MOST_PAIRS: Final = 10**8
_PARTIES: Final = Domain(symbol="n", low=1, high=_MOST, typical=(10, 10_000), whole=True)
_CHOSEN: Final = Domain(symbol="k", low=0, high=_MOST, typical=(3, 50), whole=True)
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 1000), whole=True)
_EDGES: Final = "pairs of different parties, each from 0 to parties - 1, no pair twice"
A_GRAPH: Final = "a Graph"
# A graph of more edges than these is described, not listed.
_SHOWN: Final = 32


@registered
@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Graph:
    """An undirected graph of parties 0, ..., n - 1, without loops and without double edges.

    Made from ``edges``, or by ``complete``, ``cycle``, ``path`` or ``random_out``; graphs are equal
    if they have the same edges. A graph need not be connected, and may have no edges at all.

    Args:
        parties: The number n of parties, an integer from 1 to 10^6.
        edges: Pairs of different parties; an integer array of two columns is fine. At most 10^8,
            unless they are all that there are.

    Example:
        >>> import hockeystick as hs
        >>> hs.mechanisms.Graph(4, [(0, 1), (1, 2), (2, 3)]) == hs.mechanisms.Graph.path(4)
        True
    """

    parties: int
    whole: bool
    stored: bytes
    words: str = field(compare=False)
    alike: bool = field(compare=False)

    def __init__(self, parties: float, edges: Iterable[Iterable[int]] = ()) -> None:
        size = _validate.count("parties", parties, _PARTIES)
        pairs = _checked(edges, size)
        _set(self, size, pairs, f"{len(pairs)} edges between {size} parties")

    @classmethod
    def complete(cls, parties: float) -> Graph:
        """Return the graph in which every two parties have an edge.

        Args:
            parties: Their number, an integer from 1 to 10^6.

        Example:
            >>> import hockeystick as hs
            >>> hs.mechanisms.Graph.complete(100).size
            4950
        """
        size = _validate.count("parties", parties, _PARTIES)
        return _made(size, None, f"complete graph of {size} parties", alike=True)

    @classmethod
    def cycle(cls, parties: float) -> Graph:
        """Return the cycle 0, 1, ..., n - 1, 0; of two parties one edge, of one none.

        Args:
            parties: Their number, an integer from 1 to 10^6.

        Example:
            >>> import hockeystick as hs
            >>> hs.mechanisms.Graph.cycle(3) == hs.mechanisms.Graph.complete(3)
            True
        """
        size = _validate.count("parties", parties, _PARTIES)
        ends = np.column_stack((np.arange(size), (np.arange(size) + 1) % size))
        return _made(
            size, _sorted(ends[: size if size > 2 else size - 1]), f"cycle of {size}", True
        )

    @classmethod
    def path(cls, parties: float) -> Graph:
        """Return the path 0, 1, ..., n - 1.

        Args:
            parties: Their number, an integer from 1 to 10^6.

        Example:
            >>> import hockeystick as hs
            >>> hs.mechanisms.Graph.path(10).size
            9
        """
        size = _validate.count("parties", parties, _PARTIES)
        ends = np.column_stack((np.arange(size - 1), np.arange(1, size)))
        return _made(size, ends, f"path of {size} parties", alike=False)

    @classmethod
    def random_out(cls, parties: float, chosen: float, seed: float) -> Graph:
        """Return a random graph: each party chooses that many others, with equal chances.

        There is an edge wherever at least one of two has chosen the other. A guarantee is for this
        one graph, and no average over graphs.

        Args:
            parties: Their number, an integer from 1 to 10^6.
            chosen: How many others each chooses, an integer from 0 to parties - 1.
            seed: Of NumPy's default generator, an integer >= 0.

        Example:
            >>> import hockeystick as hs
            >>> hs.mechanisms.Graph.random_out(50, 49, seed=1) == hs.mechanisms.Graph.complete(50)
            True
        """
        size = _validate.count("parties", parties, _PARTIES)
        count = _validate.count("chosen", chosen, _CHOSEN)
        if count >= size:
            raise ParameterError("chosen", chosen, f"an integer from 0 to parties - 1, {size - 1}")
        given = _validate.count("seed", seed, _SEED)
        _few_enough(size * count, chosen, "chosen")
        draw = np.random.default_rng(given)
        others = np.empty((size, count), dtype=np.int64)
        for party in range(size):
            row = draw.choice(size - 1, size=count, replace=False)
            others[party] = row + (row >= party)
        ends = np.column_stack((np.repeat(np.arange(size), count), others.ravel()))
        words = f"{count} chosen by each of {size} parties, seed {given}"
        return _made(size, _sorted(ends), words, alike=False)

    def named(self, words: str) -> Graph:
        """Return the same graph, described by other words.

        Example:
            >>> import hockeystick as hs
            >>> print(hs.mechanisms.Graph.path(3).named("three hospitals in a row"))
            three hospitals in a row
        """
        return _made(self.parties, None if self.whole else self.pairs, words, self.alike)

    @property
    def size(self) -> int:
        """The number of edges."""
        if self.whole:
            return self.parties * (self.parties - 1) // 2
        return len(self.stored) // 16

    @property
    def pairs(self) -> Pairs:
        """The edges as an integer array of two columns, in order, each with the lower party first.

        For a complete graph it is made anew each time.
        """
        if self.whole:
            _few_enough(self.size, self.parties, "parties")
            return np.column_stack(np.triu_indices(self.parties, 1)).astype(np.int64)
        return np.frombuffer(self.stored, dtype="<i8").reshape(-1, 2)

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        if self.whole:
            return f"Graph.complete({self.parties})"
        if self.size > _SHOWN:
            return f"<Graph: {self.words}>"
        return f"Graph({self.parties}, {self.pairs.tolist()})"


def _made(size: int, pairs: Pairs | None, words: str, alike: bool) -> Graph:
    graph = object.__new__(Graph)
    _set(graph, size, pairs, words, alike)
    return graph


def _set(graph: Graph, size: int, pairs: Pairs | None, words: str, alike: bool = False) -> None:
    whole = pairs is None or len(pairs) == size * (size - 1) // 2
    kept = b"" if pairs is None or whole else pairs.astype("<i8").tobytes()
    values = (size, whole, kept, words, alike or whole)
    for name, value in zip(Graph.__slots__, values, strict=True):
        object.__setattr__(graph, name, value)


def _checked(edges: object, size: int) -> Pairs:
    if isinstance(edges, np.ndarray):
        array = edges
    else:
        array = np.array(_listed(edges), dtype=np.int64).reshape(-1, 2)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ParameterError("edges", edges, _EDGES)
    _few_enough(len(array), edges, "edges")
    wrong = (array < 0) | (array >= size)
    if wrong.any() or (array[:, 0] == array[:, 1]).any():
        raise ParameterError("edges", edges, _EDGES)
    ordered = _sorted(array.astype(np.int64))
    if len(ordered) != len(array):
        raise ParameterError("edges", edges, _EDGES)
    return ordered


def _listed(edges: object) -> list[tuple[int, int]]:
    if not _validate.has_several(edges) or isinstance(edges, str | bytes):
        raise ParameterError("edges", edges, _EDGES)
    found = []
    for edge in edges:
        ends = tuple(edge) if _validate.has_several(edge) and not isinstance(edge, str) else ()
        whole = all(isinstance(e, numbers.Integral) and not isinstance(e, bool) for e in ends)
        if len(ends) != 2 or not whole or not all(0 <= e < _MOST for e in ends):
            raise ParameterError("edges", edge, _EDGES)
        found.append((int(ends[0]), int(ends[1])))
    return found


def _sorted(ends: Pairs) -> Pairs:
    codes = np.unique(ends.min(axis=1) * _MOST + ends.max(axis=1))
    return np.column_stack((codes // _MOST, codes % _MOST))


def _few_enough(count: int, value: object, name: str) -> None:
    if count > _MOST_PAIRS:
        raise ParameterError(name, value, f"such that there are at most {_MOST_PAIRS:,} edges")
