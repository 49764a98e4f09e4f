"""The Renyi order that accountant "rdp" converts at."""

from __future__ import annotations

import math
from typing import ClassVar, final

from hockeystick import _validate
from hockeystick.accountants.base import DirectedAccountant, Kind
from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.theorems.rdp import RDP, epsilon_and_order
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.privacy_loss import Terms


@final
class _Watched(DirectedAccountant):
    """Accountant "rdp", which keeps each epsilon that it reads, with its order."""

    name: ClassVar[str] = RDP.name
    kind: ClassVar[Kind] = RDP.kind
    summary: ClassVar[str] = RDP.summary

    def __init__(self) -> None:
        self.read: list[tuple[float, float]] = []

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        """Return epsilon of one direction, the order of its upper end kept."""
        if terms:
            self.read.append(epsilon_and_order(terms, delta))
        return RDP().epsilon_of(terms, delta)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        return RDP().delta_of(terms, epsilon)


def best_order(plan: Mechanism, delta: float) -> float:
    """Return the order whose Renyi divergence gives ``hs.epsilon(plan, delta, accountant="rdp")``.

    The alpha > 1 at which the epsilon that a divergence of this order proves is least, of all real
    orders and in the direction that costs most.

    Guarantees:
        About the best one; the epsilon is proven by exactly this order.

    Edge cases:
        inf where the largest loss, the divergence of order infinity, is what counts: for plans that
        release nothing, at delta 0 and 1, and where epsilon is infinite.

    Args:
        plan: A mechanism or plan.
        delta: In [0, 1].

    Raises:
        ParameterError: If a parameter is outside its domain.
        UnsupportedError: If divergences of a part of the plan are not known.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 1000
        >>> round(hs.accountants.best_order(plan, delta=1e-6), 2)
        9.79
    """
    at = _validate.real("delta", delta)
    branches = composition_of(checked("plan", plan), RDP.name).branches
    directions = [terms for one in branches for terms in (one.removing, one.adding)]
    if not 0.0 < at < 1.0:
        return math.inf
    return max((_of_direction(terms, at) for terms in directions), key=lambda one: one[0])[1]


def _of_direction(terms: Terms, delta: float) -> tuple[float, float]:
    """Return epsilon of one direction, and the order that it is from."""
    watched = _Watched()
    epsilon = watched._epsilon(terms, delta).upper
    _, order = max(watched.read, default=(0.0, math.inf))
    return epsilon, order if epsilon < math.inf else math.inf
