"""Tuning by privacy profiles: both ends of the worst order of the outcomes of one run."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import ClassVar, Final, final

from hockeystick.accountants.base import DirectedAccountant, Kind
from hockeystick.accountants.choice import Choice
from hockeystick.accountants.closed_forms.closed_form import ClosedForm
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.interval import Interval, SettledInterval
from hockeystick.accountants.prv import PRV
from hockeystick.accountants.selection.ends import Ends, ends_of
from hockeystick.accountants.theorems.rdp import RDP
from hockeystick.errors import UnsupportedError
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.numerics.roots import falling_crossing
from hockeystick.privacy_loss import Terms, TunedLoss

# The tolerance of epsilon, relative to a first guess.
_NARROW: Final = 1e-5
# A wider interval than this is held against Renyi divergences as well, a narrower one only of
# losses that are bounded, whose divergences are read at once.
_WIDE: Final = 0.02
_LARGEST_EPSILON: Final = 600.0
# Of deltas at an epsilon: the first one that is expected, and the least one.
_FIRST_DELTA: Final = 2.0**-20
_LEAST_DELTA: Final = 2.0**-900


@final
class Selection(DirectedAccountant):
    """The best of a random number of runs, by the profile of one run in the worst order.

    Upper end: the largest divergence over all scores of a finite pair that dominates one run, made
    of proven upper ends of its profile. Lower end: that of a pair that one run dominates, attained
    by some score. Between them is what the profile is known to and the grid leaves open.

    References:
        The worst order of the outputs is this package's own, proven in its page. Earlier bounds:
        Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022;
        Koskela, Redberg and Wang, "Privacy Profiles for Private Selection", ICML 2024.
    """

    name: ClassVar[str] = "selection"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "tuning by the privacy profile of one run, in the worst order"

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        loss = self._tuned(terms)
        found = self._epsilon_by_profile(loss, delta)
        if found is not None and _is_settled(loss, found):
            return SettledInterval(*found)
        return self._with_bounds(found, lambda: RDP().epsilon_of(terms, delta))

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        loss = self._tuned(terms)
        found = self._delta_by_profile(loss, epsilon)
        if found is not None and _is_settled(loss, found):
            return SettledInterval(*found)
        return self._with_bounds(found, lambda: RDP().delta_of(terms, epsilon))

    def _tuned(self, terms: Terms) -> TunedLoss:
        """Return the loss of the one tuning that the terms are, or raise."""
        if len(terms) == 1 and terms[0][1] == 1 and isinstance(terms[0][0], TunedLoss):
            return terms[0][0]
        raise self.refuse("the plan", "it is not one tuning with a random number of runs")

    def _with_bounds(self, found: Interval | None, ask: Callable[[], Interval]) -> Interval:
        """Return the intersection with what Renyi divergences prove, or one of both."""
        with suppress(UnsupportedError):
            bound = ask()
            found = bound if found is None else bound.within(found)
        if found is None:
            raise self.refuse("the plan", "the profile of one run is not known")
        return found

    def _epsilon_by_profile(self, loss: TunedLoss, delta: float) -> Interval | None:
        """Return epsilon by the profile of one run, None where that is not resolved."""
        ends = _ends(loss, 2.0 ** math.floor(math.log2(delta)))
        if ends is None:
            return None
        upper = _crossing(ends.upper, float(least_reading(delta)), 1.0, 1.0)
        if upper in (0.0, math.inf):
            return Interval(0.0, upper, upper)
        lower = _crossing(ends.lower, float(largest_reading(delta)), upper, -1.0)
        return Interval(min(lower, upper), upper, upper)

    def _delta_by_profile(self, loss: TunedLoss, epsilon: float) -> Interval | None:
        """Return delta by the profile of one run, None where that is not resolved."""
        if epsilon > _LARGEST_EPSILON:
            return None
        delta = _FIRST_DELTA
        while (ends := _ends(loss, delta)) is not None:
            upper = ends.upper(epsilon)
            if upper >= delta or delta == _LEAST_DELTA:
                return Interval(min(ends.lower(epsilon), upper), upper, upper)
            delta = max(delta * delta, _LEAST_DELTA)
        return None


def _is_settled(loss: TunedLoss, found: Interval) -> bool:
    """Return whether Renyi divergences will hardly narrow an interval."""
    return found.relative_width <= (_WIDE if loss.supremum == math.inf else _NARROW)


@lru_cache(maxsize=16)
def _ends(loss: TunedLoss, delta: float) -> Ends | None:
    """Return both ends of the best run, for deltas of at least this one."""
    order = (ClosedForm(), Selection(), Contour(smooths=False), PRV(), Contour(), RDP())
    return ends_of(loss, delta, Choice(order=order))


def _crossing(value: Callable[[float], float], goal: float, guess: float, side: float) -> float:
    """Return an epsilon at which a falling end is at most the goal (1), or at least that (-1)."""
    known: dict[float, float] = {}

    def excess(epsilon: float) -> float:
        if epsilon not in known:
            found = value(epsilon) if epsilon <= _LARGEST_EPSILON else 0.0
            known[epsilon] = math.log(found / goal) if found > 0.0 else -math.inf
        return known[epsilon]

    if excess(0.0) <= 0.0:
        return 0.0
    stride = 0.5 * guess if side > 0.0 else 0.02 * guess
    return falling_crossing(excess, guess, side, stride=stride, tolerance=_NARROW * guess)
