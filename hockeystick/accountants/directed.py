"""One ordered pair of neighbours: delta at every real epsilon, and epsilon, by its direction."""

from __future__ import annotations

import math
from typing import Any, Final, overload

from hockeystick import _validate
from hockeystick._validate import Domain, WordEnum
from hockeystick.accountants.ask import Answer, Proving, accountant_of, answers_of
from hockeystick.accountants.base import TOLERANCE, composition_of
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.numerics import ULP
from hockeystick.privacy_loss import Composition, Terms
from hockeystick.results import Approximate, Certified, Quantity

_EPSILON: Final = Domain(symbol="eps", low=-math.inf, high=math.inf, typical=(-20, 20))


class Direction(WordEnum):
    """Which of two neighbours the outputs are from; the other one is what they are held against.

    "remove": P is of the data with the record, Q of those without it; "add": the other way round.
    Under replace-one and zero-out adjacency they are the two orders of each pair of neighbours.
    """

    REMOVE = "remove"
    ADD = "add"

    @property
    def opposite(self) -> Direction:
        """The other direction."""
        return Direction.ADD if self is Direction.REMOVE else Direction.REMOVE

    def terms_of(self, composition: Composition) -> Terms:
        """Return the losses of a composition in this direction."""
        return composition.removing if self is Direction.REMOVE else composition.adding


@overload
def directed_delta(
    plan: Mechanism,
    epsilon: float,
    direction: Direction | str,
    *,
    accountant: Proving = ...,
    tolerance: float = ...,
) -> Certified: ...
@overload
def directed_delta(
    plan: Mechanism,
    epsilon: float,
    direction: Direction | str,
    *,
    accountant: str,
    tolerance: float = ...,
) -> Answer: ...
def directed_delta(
    plan: Mechanism,
    epsilon: float,
    direction: Direction | str,
    *,
    accountant: str = "auto",
    tolerance: float = TOLERANCE,
) -> Answer:
    """Return the hockey-stick divergence of one direction, at any real epsilon.

    ``H_{e^eps}(P||Q) = sup over sets S of P(S) - e^eps Q(S)``, the largest over all neighbours in
    this direction. Below 0 it is that of the other direction, by reflection:

        H_{e^eps}(P||Q) = 1 - e^eps + e^eps H_{e^-eps}(Q||P).

    Guarantees:
        As for ``hs.delta``, which is the larger one of both directions for ``epsilon >= 0``. At a
        negative epsilon the interval is as narrow as the other direction's, times ``e^epsilon``.

    Edge cases:
        epsilon = -inf gives 1; epsilon = inf the chance that a release without noise shows the
        direction; a plan that releases nothing has ``max(1 - e^epsilon, 0)``.

    Args:
        plan: A mechanism or plan.
        epsilon: In [-inf, inf].
        direction: "remove" or "add".
        accountant: As for ``hs.delta``.
        tolerance: As for ``hs.delta``.

    Returns:
        ``Certified``, or ``Approximate`` for "gdp" and "edgeworth".

    Raises:
        UnsupportedError: If the accountant has no analysis for a part of the plan.

    References:
        Zhu, Dong and Wang, AISTATS 2022, for the directions; the reflection is that of
        ``(p - a q)_+ = p - a q + a (q - p / a)_+``.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(2), rate=0.1)
        >>> for direction in ("remove", "add"):
        ...     for epsilon in (0.05, -0.05):
        ...         delta = hs.accountants.directed_delta(plan, epsilon, direction)
        ...         print(f"{direction} {epsilon}: {delta:.7f}")
        remove 0.05: 0.0069071
        remove -0.05: 0.0502412
        add 0.05: 0.0015460
        add -0.05: 0.0553408
    """
    asked = _validate.choice("direction", direction, Direction)
    at = _validate.real("epsilon", epsilon, _EPSILON)
    if at >= 0.0:
        return _read(plan, "delta", at, asked, accountant, tolerance)
    return _reflected(_read(plan, "delta", -at, asked.opposite, accountant, tolerance), at)


@overload
def directed_epsilon(
    plan: Mechanism,
    delta: float,
    direction: Direction | str,
    *,
    accountant: Proving = ...,
    tolerance: float = ...,
) -> Certified: ...
@overload
def directed_epsilon(
    plan: Mechanism,
    delta: float,
    direction: Direction | str,
    *,
    accountant: str,
    tolerance: float = ...,
) -> Answer: ...
def directed_epsilon(
    plan: Mechanism,
    delta: float,
    direction: Direction | str,
    *,
    accountant: str = "auto",
    tolerance: float = TOLERANCE,
) -> Answer:
    """Return the least epsilon >= 0 of one direction at a delta.

    ``P(S) <= e^epsilon Q(S) + delta`` for all sets S and all neighbours in this direction.

    Guarantees:
        As for ``hs.epsilon``, which is the larger one of both directions.

    Edge cases:
        As for ``hs.epsilon``.

    Args:
        plan: A mechanism or plan.
        delta: In [0, 1].
        direction: "remove" or "add".
        accountant: As for ``hs.epsilon``.
        tolerance: As for ``hs.epsilon``.

    Returns:
        ``Certified``, or ``Approximate`` for "gdp" and "edgeworth".

    Raises:
        UnsupportedError: If the accountant has no analysis for a part of the plan.

    References:
        Zhu, Dong and Wang, AISTATS 2022.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 1000
        >>> for direction in ("remove", "add"):
        ...     print(f"{hs.accountants.directed_epsilon(plan, 1e-5, direction):.4f}")
        1.5154
        1.2378
    """
    asked = _validate.choice("direction", direction, Direction)
    at = _validate.real("delta", delta)
    return _read(plan, "epsilon", at, asked, accountant, tolerance)


def _read(
    plan: Mechanism,
    quantity: Quantity,
    value: float,
    direction: Direction,
    accountant: str,
    tolerance: float,
) -> Answer:
    """Return the answer for the losses of one direction, wherever the record is."""
    chosen = accountant_of(accountant, tolerance)
    known = checked("plan", plan)
    whole = composition_of(known, chosen.name)
    terms = [direction.terms_of(one) for one in whole.branches]
    alone = [Composition(one, one) for one in dict.fromkeys(terms)]
    return answers_of(known, alone, quantity, (value,), chosen)[0]


def _reflected(other: Answer, epsilon: float) -> Answer:
    """Return ``1 - e^eps + e^eps delta`` at a negative epsilon, rounded outward."""
    odds, rest = math.exp(epsilon), -math.expm1(epsilon)
    slack = 8.0 * ULP if epsilon > -math.inf else 0.0

    def at(delta: float, side: float) -> float:
        return min(max((rest + odds * delta) * (1.0 + side * slack), 0.0), 1.0)

    said: Any = {"quantity": "delta", "accountant": other.accountant, "at": epsilon}
    said |= {"adjacency": other.adjacency, "assumptions": other.assumptions}
    if isinstance(other, Approximate):
        return Approximate(at(other.value, 0.0), **said)
    ends = (at(other.lower, -1.0), at(other.estimate, 0.0), at(other.upper, 1.0))
    return Certified(*ends, **said)
