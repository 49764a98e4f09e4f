"""Metric privacy, also called d-privacy: a privacy loss that grows with a distance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.notions.approx import PureDP
from hockeystick.notions.base import Notion, Origin, checked_origin, group_size
from hockeystick.numerics import largest_reading
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import float_up, product_up

_RADIUS: Final = Domain(symbol="r", low=0, high=math.inf, typical=(0.01, 100))
_GIVEN: Final = "one or more pairs of a MetricDP and the distance that it is read at"


@final
@dataclass(frozen=True, slots=True, init=False)
class MetricDP(Notion):
    """epsilon d-privacy: two inputs at distance d have a privacy loss of at most epsilon d.

    ``P(M(x) in S) <= e^(epsilon d(x, x')) P(M(x') in S)`` for all inputs x, x' and all S.

    Guarantees:
        Any function of the output has the same guarantee. It bounds the loss for each two inputs by
        their own distance, and for neighbours only once it is known how far apart these may be:
        ``within(radius)`` is then pure differential privacy, and only that can be accounted.
        Asked without a radius, every accountant refuses.

    Edge cases:
        epsilon 0 releases nothing; inf may release everything.

    Args:
        epsilon: The privacy loss for each unit of distance, in [0, inf].
        metric: What the distance is called; guarantees for different ones are not added up.
        origin: How a conversion came to it.

    Raises:
        ParameterError: If epsilon is no such number, or the metric has no name.

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
        object.__setattr__(self, "epsilon", _validate.real("epsilon", epsilon))
        object.__setattr__(self, "metric", str(metric))
        object.__setattr__(self, "origin", checked_origin(origin))

    @property
    def _guarantee(self) -> str:
        return f"{plain(self.epsilon)} d-private ({self.metric} distance)"

    def within(self, radius: float) -> PureDP:
        """Return the guarantee for inputs at distance at most r: ``epsilon r``-DP, rounded up.

        Args:
            radius: The largest distance r of two neighbours, in [0, inf]: a public number, which
                does not depend on the data.

        Raises:
            ParameterError: If the radius is no such number.
        """
        return metric_composition([(self, radius)])

    def compose(self, other: MetricDP) -> MetricDP:
        """Return the guarantee of both releases about the same input: epsilons add, rounded up.

        Args:
            other: A guarantee for the same metric.

        Raises:
            ParameterError: If the other one is no MetricDP.
            IncompatibleError: If it is for another metric.
        """
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
        """Return the guarantee where d is the distance that one record makes, of g: ``g epsilon``.

        Args:
            size: The number g of records, an integer >= 1.
        """
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

    Returns:
        An upper bound of the epsilon of all of them.

    Raises:
        ParameterError: If a pair or a distance is none.

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
    total = Fraction(0)
    pairs = list(releases) if _validate.has_several(releases) else []
    if not pairs:
        raise ParameterError("releases", releases, _GIVEN)
    unbounded = False
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
