"""Profiles of one direction of a plan that no contour line serves: closed forms, Renyi bounds."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np

from hockeystick.accountants._cost import Cost, Counted, largest_loss
from hockeystick.accountants._exact import Exact
from hockeystick.accountants._failed import Failed
from hockeystick.accountants._interval import Interval
from hockeystick.accountants._orders import candidates, log_kappa, optimal_order
from hockeystick.accountants._revealed import split
from hockeystick.accountants.base import DirectedAccountant
from hockeystick.accountants.closed_form import ClosedForm, least_delta
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.rdp import RDP
from hockeystick.errors import UnsupportedError
from hockeystick.tradeoffs import Profile, ProfileValues, TableProfile

if TYPE_CHECKING:
    from hockeystick.tradeoffs.profile import Array

Accountants: TypeAlias = tuple[DirectedAccountant, ...]

_QUICK: Final[Accountants] = (ClosedForm(), RDP())
_THOROUGH: Final[Accountants] = (ClosedForm(), Exact(), RDP())
_KNOTS: Final = 193
# Fewer where each takes long, and only the lower end depends on them.
_FEW_KNOTS: Final = 25
_ORDERS: Final = 48
_NEAREST: Final = 2.0**-16
_FARTHEST: Final = 2.0**20
_BEYOND: Final = 1e15
_LEAST: Final = 1e-300
_OUTWARD: Final = 2.0**-46
# Logarithms of the deltas for which orders are sought.
_LARGEST_DELTA: Final = -1e-3
_SMALLEST_DELTA: Final = -700.0


@final
class FailingProfile(Profile):
    """``s + (1 - s) d(eps)``: with probability s all shows, and d is the profile of the rest."""

    __slots__ = ("_failed", "_rest")

    def __init__(self, failed: Failed, rest: Profile) -> None:
        self._failed = failed
        self._rest = rest

    def __eq__(self, other: object) -> bool:
        """Return whether both parts are equal."""
        return isinstance(other, FailingProfile) and self._parts == other._parts

    def __hash__(self) -> int:
        """Return the hash of both parts."""
        return hash(self._parts)

    @property
    def _parts(self) -> tuple[Failed, Profile]:
        """The failures and the rest."""
        return self._failed, self._rest

    @property
    def smooth(self) -> bool:
        """Whether the rest is."""
        return self._rest.smooth

    @property
    def supremum(self) -> float:
        """Infinite: all may show."""
        return math.inf

    @property
    def floor(self) -> float:
        """That all shows, or the rest's loss is infinite."""
        return self.precisely(_BEYOND)[0]

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        """Return delta at one epsilon."""
        return self._failed.delta(epsilon, lambda at: Interval(*self._rest.precisely(at)))

    def at(self, epsilon: Array) -> ProfileValues:
        """Return delta at epsilons."""
        rest, failed = self._rest.at(epsilon), self._failed
        if failed.low == -math.inf:
            one = np.ones_like(epsilon)
            return ProfileValues(one, one, one, 0.0 * one)
        shown = -math.expm1(failed.high) * (1.0 - _OUTWARD), -math.expm1(failed.low)
        hidden = math.exp(failed.high), math.exp(failed.low)
        lower = (shown[0] + hidden[0] * rest.lower) * (1.0 - _OUTWARD)
        middle = shown[1] + hidden[1] * rest.estimate
        upper = np.minimum((shown[1] + hidden[1] * rest.upper) * (1.0 + _OUTWARD), 1.0)
        return ProfileValues(lower, np.minimum(middle, upper), upper, hidden[1] * rest.slope)


@final
class WideProfile(Profile):
    """The profile of one direction by closed forms, or else by Renyi divergences."""

    def __init__(self, terms: Counted) -> None:
        self._terms = terms

    def __eq__(self, other: object) -> bool:
        """Return whether it is of the same losses."""
        return isinstance(other, WideProfile) and self._terms == other._terms

    def __hash__(self) -> int:
        """Return the hash of the losses."""
        return hash(self._terms)

    @property
    def smooth(self) -> bool:
        """It has corners, where orders or knots change."""
        return False

    @property
    def knots(self) -> Array:
        """Those of the table where there is a closed form."""
        return self._table.epsilons

    @cached_property
    def supremum(self) -> float:
        """The largest loss."""
        return largest_loss(self._terms)

    @cached_property
    def floor(self) -> float:
        """The probability of an infinite loss, a lower end."""
        return self._delta(_BEYOND, _QUICK).lower if self.supremum == math.inf else 0.0

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        """Return delta at one epsilon by whichever accountant proves most."""
        return self._delta(epsilon, _THOROUGH)

    def at(self, epsilon: Array) -> ProfileValues:
        """Return the ends at epsilons."""
        found = self._table.at(epsilon)
        if self._orders is None:
            return found
        upper, slope = self._chernoff(epsilon, *self._orders)
        upper = np.maximum(np.where(epsilon > self.supremum, 0.0, upper), found.lower)
        return ProfileValues(found.lower, upper, upper, slope)

    def _chernoff(self, epsilon: Array, c: Array, k: Array) -> tuple[Array, Array]:
        """Return the best bound of the orders, and its derivative."""
        log_kappas = np.array([log_kappa(one) for one in c.tolist()])
        away = np.multiply.outer(c, epsilon)
        logs = (k + log_kappas)[:, np.newaxis] - away
        logs += _OUTWARD * (away + (np.abs(k) - log_kappas)[:, np.newaxis])
        best = logs.argmin(axis=0)
        log_upper = np.minimum(logs[best, np.arange(epsilon.size)], 0.0)
        upper = np.minimum(np.exp(log_upper) * (1.0 + _OUTWARD) + _LEAST, 1.0)
        return upper, -c[best] * upper

    @cached_property
    def _orders(self) -> tuple[Array, Array] | None:
        """Orders less 1 and proven upper ends of K there; None where there is a closed form."""
        if self._is_closed:
            return None
        low, high = (optimal_order(self._terms, d) for d in (_LARGEST_DELTA, _SMALLEST_DELTA))
        wanted = np.geomspace(max(low, 1e-9), max(high, 2e-9), _ORDERS).tolist()
        orders = {one for c in wanted for one in candidates(self._terms, c) if one > 0.0}
        c = np.array(sorted(orders) or [1.0])
        bounds = [[(loss.log_mgf(one), n) for loss, n in self._terms] for one in c.tolist()]
        k = np.array([math.fsum(n * (b.value + b.error) for b, n in one) for one in bounds])
        return c, k * (1.0 + _OUTWARD)

    @cached_property
    def _is_closed(self) -> bool:
        """Whether there is a closed form, or releases without noise, which are set apart."""
        if split(self._terms)[0] is not None:
            return True
        try:
            ClosedForm().delta(Cost(self._terms, self._terms), 1.0)
        except UnsupportedError:
            return False
        return True

    @cached_property
    def _table(self) -> TableProfile:
        """The ends of delta at epsilons up to the largest loss, or to where it is negligible."""
        closed = self._is_closed
        reach = self._reach() if closed else min(self.supremum, 64.0)
        knots = reach * np.linspace(0.0, 1.0, _KNOTS if closed else _FEW_KNOTS) ** 2
        if closed:
            ends = np.array([self._delta(float(knot), _QUICK) for knot in knots])
        else:
            ends = np.array([(least_delta(self._terms, float(knot)), 1.0, 1.0) for knot in knots])
        # delta falls: what is at most something, remains so.
        upper = np.minimum.accumulate(ends[:, 2])
        lower = np.maximum.accumulate(ends[::-1, 0])[::-1]
        return TableProfile(knots, np.minimum(lower, upper), upper, self.supremum, self.floor)

    def _reach(self) -> float:
        """Return an epsilon beyond which delta is negligible, or has stopped falling."""
        end, before = _NEAREST, 1.0
        while end < min(self.supremum, _FARTHEST):
            here = self._delta(end, _QUICK).upper
            if here < _LEAST or (here >= before * (1.0 - 1e-9) and end > 1.0):
                return end
            end, before = 2.0 * end, here
        return min(self.supremum, _FARTHEST)

    def _delta(self, epsilon: float, accountants: Accountants) -> Interval:
        """Return delta by the first accountant that answers."""
        for accountant in accountants:
            with suppress(UnsupportedError):
                return accountant.delta(Cost(self._terms, self._terms), epsilon)
        raise Contour().refuse("the plan", "its trade-off function is not known")
