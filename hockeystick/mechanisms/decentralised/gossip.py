"""Gossip averaging: parties add noise once, and then average with their neighbours."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism, registered, set_fields
from hockeystick.mechanisms.decentralised.graphs import A_GRAPH, Graph
from hockeystick.mechanisms.scope import ONE_CLIENT, Fact
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.row_span import RowSpan, row_span

if TYPE_CHECKING:
    from hockeystick.numerics.row_span import Row


WEIGHTS: Final = ("metropolis", "max-degree")
_MOST_PARTIES: Final = 10_000


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class GossipAveraging(Mechanism):
    """Each party adds noise to its value once; then all average with their neighbours T times.

    Party u has a value ``x_u`` in an interval of width 1 (or a vector, any two of them at most 1
    apart in L2) and starts with ``y_u^0 = x_u + N(0, s^2 I)``. In each round t = 0..T-1 every party
    sends ``y_w^t`` to its neighbours and takes ``y^(t+1) = W y^t``, W a symmetric stochastic matrix
    on the graph's edges. Observers C see what they are sent, and know all of their own. This is
    what *one* party u loses to them: pairwise network differential privacy.

    With ``z = y^0``, all that they see is linear in z: ``(W^t z)_w`` for w in C and its neighbours,
    t < T. So it is one Gaussian mechanism of ``mu = |P e_u| / s``, P the orthogonal projection onto
    the span S of the ``W^t e_w``: ``d^T Sg^+ d`` for the joint Gaussian view, ``Sg = s^2 M M^T``
    and ``d = M e_u``.

    Guarantees:
        Exactly mu-GDP. ``|P e_u|^2`` is between two proven ends, equal to some thirty digits.

    Consequences:
        What counts is S alone: accelerated rounds, such as Chebyshev's, cost the same. Whoever the
        observers can solve for loses ``1 / s``, as if it had published: a neighbour of one does,
        and on a path or a cycle everybody within T steps.

    Args:
        noise_multiplier: Standard deviation s of each party's noise over the width, in [0, inf].
        graph: The parties, and who sends to whom; at most 10^4 parties.
        rounds: The number T of rounds, an integer from 0 to 10^15; of a party further than T steps
            from all observers nothing is seen.
        party: The party u whose value changes, from 0 to n - 1, no observer.
        observers: The parties, from 0 to n - 1, who put together what they see; one at least.
        weights: W: "metropolis" has ``W_vw = 1 / (1 + max(d_v, d_w))`` for the degrees of two
            neighbours, "max-degree" ``1 / (1 + d)`` for the largest of all degrees; the diagonal
            is the rest to 1.

    References:
        Cyffers, Even, Bellet and Massoulie, "Muffliato: Peer-to-Peer Privacy Amplification for
        Decentralized Optimization and Averaging", NeurIPS 2022 (the protocol, pairwise network
        privacy). Their bound of a pair's loss adds up messages as if each had noise of its own, but
        all are made of the same z: it is no bound, while their mean over all parties u is one.

    Example:
        >>> import hockeystick as hs
        >>> hub = hs.mechanisms.Graph(6, [(0, 1), (1, 2), (1, 3), (1, 4), (1, 5)])
        >>> gossip = hs.mechanisms.GossipAveraging(5, hub, rounds=9, party=2, observers=[0])
        >>> # What 0 sees of the four behind the hub is their sum, with the noise of all four.
        >>> hs.epsilon(gossip, delta=1e-5).upper <= hs.epsilon(hs.Gaussian(10), delta=1e-5).upper
        True
    """

    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    rises_with: ClassVar[tuple[str, ...]] = ("rounds",)
    unordered: ClassVar[tuple[str, ...]] = ("party",)
    noise_multiplier: float
    graph: Graph = field(metadata={"allowed": A_GRAPH})
    rounds: int = field(metadata={"domain": whole_numbers("T", 0, (1, 100))})
    party: int = field(metadata={"domain": Domain("u", 0, 10**6, (0, 100), whole=True)})
    observers: frozenset[int]
    weights: str = "metropolis"
    adjacency = Adjacency.REPLACE_ONE

    def __init__(
        self,
        noise_multiplier: float,
        graph: Graph,
        rounds: float,
        party: int,
        observers: Iterable[int],
        weights: str = "metropolis",
    ) -> None:
        plain_fields = {"noise_multiplier": noise_multiplier, "graph": graph, "rounds": rounds}
        set_fields(self, plain_fields)
        if graph.parties > _MOST_PARTIES:
            raise ParameterError("graph", graph, f"{A_GRAPH} of at most {_MOST_PARTIES:,} parties")
        found = checked_parties("observers", observers, graph.parties)
        set_fields(self, {"party": party})
        if self.party >= graph.parties or self.party in found:
            allowed = f"from 0 to {graph.parties - 1}, and none of the observers"
            raise ParameterError("party", party, allowed)
        object.__setattr__(self, "observers", found)
        object.__setattr__(self, "weights", _validate.one_of("weights", weights, WEIGHTS))

    @property
    def scope(self) -> tuple[Fact, ...]:
        return (
            Fact("unit", ONE_CLIENT),
            Fact("party", self.party),
            Fact("observers", self.observers),
            Fact("colluding", len(self.observers)),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        watching = ", ".join(map(str, sorted(self.observers)))
        return (
            f"Party {self.party} is compared with another value at most 1 away, in the units of "
            "the noise; every party adds Gaussian noise of the standard deviation "
            f"{plain(self.noise_multiplier)} once, in each coordinate, before the first round.",
            f"All follow the rounds with {self.weights} weights on the graph ({self.graph}), in "
            "arithmetic whose rounding tells nothing; messages go to neighbours alone.",
            f"Only the parties {watching} put together what they see, and nobody else publishes "
            "anything, an average included.",
            "The graph does not depend on the values. Where the protocol runs again, the new "
            "values depend on the others' through nothing but what the observers have seen.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        watching = sorted(self.observers)
        seen = f"observer {watching[0]}" if len(watching) == 1 else f"{len(watching)} observers"
        weights = () if self.weights == WEIGHTS[0] else (f"{self.weights} weights",)
        noise = f"noise multiplier {self.noise_multiplier:g}"
        rounds = f"{self.rounds} rounds"
        return "gossip averaging", (
            *(noise, str(self.graph), *weights, rounds, f"party {self.party}", seen),
        )


@final
@dataclass(frozen=True, slots=True)
class GossipMatrix:
    """A gossip matrix times its least common denominator: integers.

    Of each party its neighbours, their ``entries`` in the same order, and its ``own``.
    """

    denominator: int
    neighbours: tuple[tuple[int, ...], ...]
    entries: tuple[tuple[int, ...], ...]
    own: tuple[int, ...]

    def times(self, values: Row) -> Row:
        """Return the integer matrix times values, exactly."""
        found = [own * value for own, value in zip(self.own, values, strict=True)]
        for party, links in enumerate(zip(self.neighbours, self.entries, strict=True)):
            found[party] += sum(entry * values[one] for one, entry in zip(*links, strict=True))
        return np.array(found, dtype=object)


@lru_cache(maxsize=16)
def gossip_matrix(graph: Graph, weights: str) -> GossipMatrix:
    """Return the gossip matrix of a graph."""
    pairs = graph.pairs
    degrees = np.bincount(pairs.ravel(), minlength=graph.parties)
    divisors = np.maximum(degrees[pairs[:, 0]], degrees[pairs[:, 1]]) + 1
    if weights == "max-degree":
        divisors = np.full(len(pairs), degrees.max() + 1)
    denominator = math.lcm(*map(int, np.unique(divisors)))
    linked: list[list[tuple[int, int]]] = [[] for _ in range(graph.parties)]
    for (first, second), divisor in zip(pairs.tolist(), divisors.tolist(), strict=True):
        linked[first].append((second, denominator // divisor))
        linked[second].append((first, denominator // divisor))
    return GossipMatrix(
        denominator,
        tuple(tuple(party for party, _ in links) for links in linked),
        tuple(tuple(entry for _, entry in links) for links in linked),
        tuple(denominator - sum(entry for _, entry in links) for links in linked),
    )


def is_sent_to_observers(mechanism: GossipAveraging) -> bool:
    """Return whether the party sends its noisy value to an observer: then ``|P e_u|`` is 1.

    Of a neighbour u of an observer the first message is ``z_u``, so that ``e_u = W^0 e_u`` is in S.
    """
    neighbours = gossip_matrix(mechanism.graph, mechanism.weights).neighbours[mechanism.party]
    return mechanism.rounds > 0 and not mechanism.observers.isdisjoint(neighbours)


@lru_cache(maxsize=16)
def observed_span(
    graph: Graph, weights: str, rounds: int, observers: frozenset[int]
) -> RowSpan | None:
    """Return the span of what observers see of ``y^0``: ``W^t e_w``, t < T, w near an observer.

    ``W^(t+1) e_c`` for an observer c is a sum of what its neighbours sent in round t, so that the
    observers' own rows may be started with those of their neighbours. None where the
    elimination would take too long.
    """
    matrix = gossip_matrix(graph, weights)
    near = observers.union(*(matrix.neighbours[party] for party in observers))
    first = (np.eye(1, graph.parties, party, dtype=object)[0] for party in sorted(near))
    products = graph.parties + 2 * graph.size
    return row_span(graph.parties, first, matrix.times, rounds, image_products=products)


class WorstParty(NamedTuple):
    """The honest party that loses most: the same one for this graph and ratio of the noises."""

    graph: Graph
    ratio: Fraction | float

    def __str__(self) -> str:
        return f"the worst of {self.graph} with {float(self.ratio):g} times the noise shared"


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class GOPA(Mechanism):
    """Each party publishes its value with noise of its own and noise shared with its neighbours.

    Party v has a value ``x_v`` in an interval of width 1 and publishes ``x_v + eta_v + sum over its
    edges {v, w} of Delta_vw``, where ``eta_v ~ N(0, s^2)`` is its own, and ``Delta_vw = -Delta_wv
    ~ N(0, t^2)`` is known to v and w alone and cancels in the sum of all. The adversary sees all
    that is published, and all that the colluding parties know: their values and noise, and so also
    the pairwise noise that the others share with them, which hides nothing.

    So the view is that of the honest parties alone, with the edges between them: ``x + N(0, Sg)``,
    ``Sg = s^2 I + t^2 Lap``, Lap the Laplacian of that graph. A party that moves its value by at
    most 1 makes it a Gaussian mechanism of ``mu^2 = (Sg^-1)_vv``; mu is the largest over the honest
    parties v, attained by the worst one moving from one end to the other. For the complete graph of
    n honest parties ``mu^2 = 1/(n s^2) + (1 - 1/n)/(s^2 + n t^2)``.

    Guarantees:
        Exactly mu-GDP, never looser than the conditions for (epsilon, delta) in the paper. mu is
        exact for complete graphs and where pairwise noise is 0 or inf; elsewhere it is between two
        proven ends, equal to ten or more digits for graphs up to 10,000 parties.

    Edge cases:
        Noise multiplier 0 reveals the sum of the honest values; inf releases nothing. Without
        pairwise noise each party is alone, ``mu = 1/s``, as is an honest party without honest
        neighbours. With infinite pairwise noise only the sums of the connected parts are seen:
        ``mu = 1/(s sqrt(m))``, m the size of the smallest.

    Args:
        noise_multiplier: Standard deviation s of each party's own noise over the width of the
            interval, in [0, inf].
        pairwise_multiplier: Standard deviation t of each pair's noise over the width, in [0, inf].
        graph: The parties, and which of them share noise.
        colluders: The parties, from 0 to n - 1, that tell the adversary all that they know; at
            least one party is honest.

    References:
        Sabater, Bellet and Ramon, "An Accurate, Scalable and Verifiable Protocol for Federated
        Differentially Private Averaging", Machine Learning 2022, section 4.

    Example:
        >>> import hockeystick as hs
        >>> graph = hs.mechanisms.Graph.complete(100)
        >>> round(hs.epsilon(hs.mechanisms.GOPA(0.4, 2.0, graph), delta=1e-5).upper, 6)
        0.946278
    """

    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier", "pairwise_multiplier")
    noise_multiplier: float
    pairwise_multiplier: float = field(metadata={"domain": Domain("s_D", 0, math.inf, (0.1, 100))})
    graph: Graph = field(metadata={"allowed": A_GRAPH})
    colluders: frozenset[int]
    adjacency = Adjacency.REPLACE_ONE

    def __init__(
        self,
        noise_multiplier: float,
        pairwise_multiplier: float,
        graph: Graph,
        colluders: Iterable[int] = (),
    ) -> None:
        own = {"noise_multiplier": noise_multiplier, "pairwise_multiplier": pairwise_multiplier}
        set_fields(self, own | {"graph": graph})
        found = checked_parties("colluders", colluders, graph.parties, fewest=0)
        object.__setattr__(self, "colluders", found)

    @property
    def scope(self) -> tuple[Fact, ...]:
        everybody = (
            Fact("unit", ONE_CLIENT),
            Fact("observers", self.colluders),
            Fact("colluding", len(self.colluders)),
        )
        return everybody if self._alike else (*everybody, Fact("party", self._worst))

    @property
    def _alike(self) -> bool:
        silent = self.pairwise_multiplier == 0.0 or self.noise_multiplier in (0.0, math.inf)
        return silent or self.graph.whole or (self.graph.alike and not self.colluders)

    @property
    def _worst(self) -> WorstParty:
        """The party that loses most, which the graph decides, and how much more noise is shared."""
        shared = self.pairwise_multiplier
        exact = math.inf if shared == math.inf else decimal(shared) / decimal(self.noise_multiplier)
        return WorstParty(self.graph, exact)

    @property
    def assumptions(self) -> tuple[str, ...]:
        own, shared = plain(self.noise_multiplier), plain(self.pairwise_multiplier)
        return (
            "Each party's value is in an interval of width 1, in the units of the noise, and its "
            f"own Gaussian noise has the standard deviation {own}.",
            f"Each two neighbours in the graph ({self.graph}) share fresh Gaussian noise of the "
            f"standard deviation {shared}, which one adds and the other subtracts; nobody else "
            "sees it.",
            f"At most the {len(self.colluders)} parties named collude; they follow the protocol, "
            "and no honest party drops out.",
            "The graph does not depend on the values.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        noise = f"noise multiplier {self.noise_multiplier:g}"
        details = (noise, f"pairwise {self.pairwise_multiplier:g}", str(self.graph))
        count = len(self.colluders)
        return "GOPA", (*details, f"{count} colluders") if count else details


def checked_parties(name: str, values: object, parties: int, *, fewest: int = 1) -> frozenset[int]:
    """Return some of the parties, but not all of them, or raise."""
    some = "" if fewest == 0 else ", at least one"
    last = parties - 1
    allowed = f"different parties, each an integer from 0 to {last}, but not all of them{some}"
    if not _validate.has_several(values) or isinstance(values, str | bytes):
        raise ParameterError(name, values, allowed)
    listed = list(values)
    for value in listed:
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not whole or not 0 <= value < parties:
            raise ParameterError(name, value, allowed)
    found = frozenset(int(value) for value in listed)
    if len(found) != len(listed) or not fewest <= len(found) < parties:
        raise ParameterError(name, values, allowed)
    return found
