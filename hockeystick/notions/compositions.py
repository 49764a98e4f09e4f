"""Several guarantees at once: of disjoint parts of the data, and metric privacy at distances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Any, Final, TypeVar, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import set_fields
from hockeystick.notions.guarantees import (
    FDP,
    GDP,
    TCDP,
    ZCDP,
    ApproxDP,
    Notion,
    Origin,
    PureDP,
    RenyiDP,
    group_size,
)
from hockeystick.numerics import largest_reading
from hockeystick.numerics.multiprecision import working_digits
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import DIGITS, evaluated_up, float_up, product_up
from hockeystick.tradeoffs import MaximumProfile, ProfileTradeOff, TradeOff

_RADIUS: Final = Domain(symbol="r", low=0, high=math.inf, typical=(0.01, 100))
_GIVEN: Final = "one or more pairs of a MetricDP and the distance that it is read at"


@final
@dataclass(frozen=True, slots=True, init=False)
class MetricDP(Notion):
    """epsilon d-privacy: two inputs at distance d have a privacy loss of at most epsilon d.

    ``P(M(x) in S) <= e^(epsilon d(x, x')) P(M(x') in S)`` for all inputs x, x' and all S.

    Guarantees:
        It bounds the loss for each two inputs by their own distance, and for neighbours only once
        it is known how far apart these may be: ``within(radius)`` is then pure differential
        privacy, and only that can be accounted. Asked without a radius, every accountant refuses.

    Args:
        epsilon: The privacy loss for each unit of distance, in [0, inf].
        metric: What the distance is called; guarantees for different ones are not added up.

    References:
        Chatzikokolakis, Andres, Bordenabe and Palamidessi, "Broadening the Scope of Differential
        Privacy Using Metrics", PETS 2013.

    Example:
        >>> import hockeystick as hs
        >>> hs.notions.MetricDP(epsilon=0.5).within(3)
        PureDP(epsilon=1.5)
    """

    epsilon: float
    metric: str

    def __init__(
        self, epsilon: float, metric: str = "euclidean", *, origin: Origin | None = None
    ) -> None:
        if not isinstance(metric, str) or not metric.strip():
            raise ParameterError("metric", metric, "the name of a distance")
        set_fields(self, {"epsilon": epsilon, "metric": str(metric), "origin": origin})

    @property
    def _guarantee(self) -> str:
        return f"{plain(self.epsilon)} d-private ({self.metric} distance)"

    def within(self, radius: float) -> PureDP:
        """Return the guarantee for inputs at distance at most r: ``epsilon r``-DP, rounded up.

        The radius r, in [0, inf], is a public number, which does not depend on the data.
        """
        return metric_composition([(self, radius)])

    def compose(self, other: MetricDP) -> MetricDP:
        """Return the guarantee of both about the same input, by one metric: epsilons add up."""
        if not isinstance(other, MetricDP):
            raise ParameterError("other", other, "a MetricDP")
        if self.metric != other.metric:
            raise IncompatibleError(
                f"guarantees for the {self.metric} and the {other.metric} distance do not add up; "
                "metric_composition takes each at a distance of its own"
            )
        if math.inf in (self.epsilon, other.epsilon):
            return MetricDP(math.inf, self.metric)
        total = largest_reading(self.epsilon) + largest_reading(other.epsilon)
        return MetricDP(float_up(total), self.metric)

    def group(self, size: int) -> MetricDP:
        """Return ``g epsilon``, where d is the distance that one of g records makes."""
        return MetricDP(product_up(group_size(size), self.epsilon), self.metric)


def metric_composition(releases: Iterable[tuple[MetricDP, float]]) -> PureDP:
    """Return what several d-private releases are together, each at a distance of its own.

    ``sum epsilon_i d_i``, where the i-th release sees two inputs at distance ``d_i`` of each other.

    Guarantees:
        An upper bound, rounded up; it holds for all events of the outputs together, and for
        releases that are chosen in view of the earlier ones. At a delta above 0 the releases
        ``one.within(d_1) @ other.within(d_2)``, accounted together, cost less.

    Edge cases:
        A distance of 0 costs nothing, even of a release that reveals everything.

    Args:
        releases: Pairs of a guarantee and a distance in [0, inf]; at least one.

    References:
        Chatzikokolakis, Andres, Bordenabe and Palamidessi, PETS 2013; Galli, Biswas, Jung,
        Cucinotta and Palamidessi, "Group Privacy for Personalized Federated Learning", 2022 (which
        states it for rectangles of events only).

    Example:
        >>> import hockeystick as hs
        >>> hs.notions.metric_composition(
        ...     [(hs.notions.MetricDP(0.5), 3), (hs.notions.MetricDP(0.25), 2)]
        ... )
        PureDP(epsilon=2.0)
    """
    pairs = list(releases) if _validate.has_several(releases) else []
    if not pairs:
        raise ParameterError("releases", releases, _GIVEN)
    total, unbounded = Fraction(0), False
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], MetricDP)):
            raise ParameterError("releases", releases, _GIVEN)
        epsilon, radius = pair[0].epsilon, _validate.real("radius", pair[1], _RADIUS)
        if radius == 0.0 or epsilon == 0.0:
            continue
        if math.inf in (epsilon, radius):
            unbounded = True
        else:
            total += largest_reading(epsilon) * largest_reading(radius)
    return PureDP(math.inf if unbounded else float_up(total))


_Notion = TypeVar("_Notion", bound=Notion)
_ALLOWED: Final = "guarantees of one class: PureDP, ApproxDP, ZCDP, TCDP, GDP, RenyiDP or FDP"


def parallel(parts: Iterable[_Notion], adjacency: Adjacency | str = "add-remove") -> _Notion:
    """Return the guarantee of releases each of which reads its own part of the data.

    The data are split by a rule that does not depend on anyone's data; each part goes to one
    release. A record that is added, removed or zeroed is in one part: the worst guarantee holds
    for all. A record that is REPLACED may move from one part to another, so that two releases
    change: the two worst compose.

    Guarantees:
        Valid for all releases with these guarantees, every number rounded up.

    Args:
        parts: Guarantees of one notion, one per part of the data.
        adjacency: "add-remove", "zero-out" or "replace-one".

    Returns:
        A guarantee of the same notion; Renyi divergences need an order in common.

    References:
        McSherry, "Privacy Integrated Queries", 2009, theorem 4, under add-remove. Some texts state
        it without the adjacency: under replace-one the worst alone does not suffice.

    Example:
        >>> import hockeystick as hs
        >>> hs.notions.parallel([hs.PureDP(1.0), hs.PureDP(0.5), hs.PureDP(0.25)])
        PureDP(epsilon=1.0)
        >>> hs.notions.parallel([hs.PureDP(1.0), hs.PureDP(0.5), hs.PureDP(0.25)], "replace-one")
        PureDP(epsilon=1.5)
    """
    listed: list[_Notion] = list(parts) if _validate.has_several(parts) else []
    if not listed or not isinstance(listed[0], Notion) or len({type(one) for one in listed}) > 1:
        raise ParameterError("parts", parts, _ALLOWED)
    moves = _validate.choice("adjacency", adjacency, Adjacency) is Adjacency.REPLACE_ONE
    changed = 2 if moves and len(listed) > 1 else 1
    if len(listed) == 1:
        return listed[0]
    together: _Notion = _together(listed, changed)
    return together


def _together(parts: Sequence[Any], changed: int) -> Any:
    """Return the guarantee where 1 or 2 of the parts change."""
    first = parts[0]
    if isinstance(first, RenyiDP):
        known = [dict(one.divergences) for one in parts]
        orders = [order for order in known[0] if all(order in other for other in known[1:])]
        if not orders:
            raise IncompatibleError("the guarantees have no order of their divergences in common")
        return RenyiDP({a: _largest((other[a] for other in known), changed) for a in orders})
    if isinstance(first, FDP):
        functions = [one.tradeoff for one in parts]
        if changed == 2:
            functions = [f @ g for f, g in combinations(functions, 2)]
        return FDP(reduce(_worse, functions))
    if isinstance(first, GDP):
        return GDP(_largest_root([one.mu for one in parts], changed))
    if not isinstance(first, PureDP | ApproxDP | ZCDP | TCDP):
        raise ParameterError("parts", parts, _ALLOWED)
    kind: Any = type(first)
    numbers = {name: [getattr(one, name) for one in parts] for name in kind.__match_args__}
    sums = {name: _largest(sizes, changed) for name, sizes in numbers.items() if name != "omega"}
    if "delta" in sums:
        sums["delta"] = min(sums["delta"], 1.0)
    if "omega" in numbers:
        sums["omega"] = min(numbers["omega"])
    return kind(**sums)


def _largest_root(mus: Sequence[float], count: int) -> float:
    """Return the root of the sum of the squares of the largest few numbers, rounded up."""
    largest = sorted(mus, reverse=True)[:count]
    if count == 1 or math.inf in largest or largest[1] == 0.0:
        return largest[0]
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        return evaluated_up(mp.sqrt(mp.fsum(mp.mpf(mu) ** 2 for mu in largest)))


def _worse(f: TradeOff, g: TradeOff) -> TradeOff:
    """Return the lower convex envelope of the smaller of two functions and of their inverses."""
    one, other = f.symmetrize(), g.symmetrize()
    if one == other:
        return one
    profile = MaximumProfile(one.forward, other.forward)
    return ProfileTradeOff((profile, profile))


def _largest(sizes: Iterable[float], count: int) -> float:
    most = sorted(sizes, reverse=True)[:count]
    return math.inf if math.inf in most else float_up(sum(map(Fraction, most), Fraction(0)))
