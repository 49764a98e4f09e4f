"""GOPA: averaging without a trusted party, by pairwise noise that cancels."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.decentralised.graphs import A_GRAPH, Graph
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.scope import ONE_CLIENT, Fact
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

_PAIRWISE: Final = Domain(symbol="s_D", low=0, high=math.inf, typical=(0.1, 100))


class WorstParty(NamedTuple):
    """The honest party that loses most: the same one for this graph and ratio of the noises."""

    graph: Graph
    ratio: Fraction | float

    def __str__(self) -> str:
        """Return it in words."""
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

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Sabater, Bellet and Ramon, "An Accurate, Scalable and Verifiable Protocol for Federated
        Differentially Private Averaging", Machine Learning 2022, section 4.

    Example:
        >>> import hockeystick as hs
        >>> graph = hs.mechanisms.Graph.complete(100)
        >>> print(hs.mechanisms.GOPA(0.4, 2.0, graph, colluders=range(10)))
        GOPA (noise multiplier 0.4, pairwise 2, complete graph of 100 parties, 10 colluders)
        >>> round(hs.epsilon(hs.mechanisms.GOPA(0.4, 2.0, graph), delta=1e-5).upper, 6)
        0.946278
    """

    falls_with = ("noise_multiplier", "pairwise_multiplier")

    noise_multiplier: float
    pairwise_multiplier: float
    graph: Graph
    colluders: frozenset[int]

    def __init__(
        self,
        noise_multiplier: float,
        pairwise_multiplier: float,
        graph: Graph,
        colluders: Iterable[int] = (),
    ) -> None:
        noise = _validate.real("noise_multiplier", noise_multiplier)
        pairwise = _validate.real("pairwise_multiplier", pairwise_multiplier, _PAIRWISE)
        if not isinstance(graph, Graph):
            raise ParameterError("graph", graph, A_GRAPH)
        object.__setattr__(self, "noise_multiplier", noise)
        object.__setattr__(self, "pairwise_multiplier", pairwise)
        object.__setattr__(self, "graph", graph)
        object.__setattr__(
            self, "colluders", checked_parties("colluders", colluders, graph.parties, fewest=0)
        )

    @property
    def adjacency(self) -> Adjacency:
        """Replace-one: one party has another value; the parties themselves are known."""
        return Adjacency.REPLACE_ONE

    @property
    def scope(self) -> tuple[Fact, ...]:
        """That honest parties are protected, which of them is the worst, and who colludes."""
        everybody = (
            Fact("unit", ONE_CLIENT),
            Fact("observers", self.colluders),
            Fact("colluding", len(self.colluders)),
        )
        return everybody if self._alike else (*everybody, Fact("party", self._worst))

    @property
    def _alike(self) -> bool:
        """Whether all honest parties are known to lose the same."""
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
        """What must hold in the protocol for the view to be as described."""
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
        """Return the name, both kinds of noise, the graph and the colluders."""
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
