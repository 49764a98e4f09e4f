"""Tuning by privacy profiles: both ends of the worst order of the outcomes of one run."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.base import (
    Accountant,
    DirectedAccountant,
    Interval,
    Kind,
    SettledInterval,
    split_infinity,
)
from hockeystick.accountants.choice import Auto
from hockeystick.accountants.closed_form import ClosedForm, provable_parts
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.profile import profile_of
from hockeystick.accountants.prv import PRV
from hockeystick.accountants.rdp import RDP, epsilon_upper
from hockeystick.accountants.selection.orders import Ranked, generating
from hockeystick.accountants.selection.pairs import FinitePair, Knots, swapped_terms
from hockeystick.errors import UnsupportedError
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.numerics.roots import falling_crossing
from hockeystick.privacy_loss import Composition, Terms, TunedLoss, largest_loss
from hockeystick.tradeoffs import Profile

if TYPE_CHECKING:
    from hockeystick.results import Quantity

Array: TypeAlias = NDArray[np.float64]

# The share of delta that what lies beyond the last knot may cost, and its odds at the top.
_BEYOND: Final = 1e-4
# The number of knots on either side of 0, and of those that these are placed by.
_KNOTS: Final = 200
_FIRST_KNOTS: Final = 48
_LEAST_KNOT: Final = 1e-4
_MOST_BREAKPOINTS: Final = 200
# The size of pieces of outcomes, relative to where they lie, and how many there may be.
_FINENESS: Final = 0.08
_MOST_PIECES: Final = 700
_COARSER: Final = 1.25
_LEAST_TARGET: Final = 1e-280
# The largest loss is a knot where it is not much farther than that.
_NEARLY: Final = 1.1
# More than what profiles move their ends by.
_ROUND_OFF: Final = 2.0**-48
# No knot is farther than this: what is beyond counts as infinite.
_FARTHEST: Final = 300.0


@dataclass(frozen=True, slots=True)
class Ends:
    """Both ends of the divergence of the best run, at every epsilon >= 0."""

    above: Ranked
    below: tuple[Ranked, ...]

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of delta."""
        return self.above.upper(math.exp(epsilon))

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of delta."""
        return max((one.lower(math.exp(epsilon)) for one in self.below), default=0.0)


def ends_of(loss: TunedLoss, delta: float, accountant: Accountant) -> Ends | None:
    """Return the ends for deltas of at least this one; None where they are not resolved.

    ``accountant`` finds the profile of one run where no contour integral does.
    """
    count = generating(loss.distribution)
    if count is None:
        return None
    share = min(delta / max(count.mean, 1.0), 1.0 / max(count.steepness, 1.0))
    target = max(_BEYOND * share, _LEAST_TARGET)
    reach = max(_reach(terms, target) for terms in (loss.terms, loss.reverse))
    if not 0.0 < reach < math.inf:
        return None
    profiles = {terms: profile_of(terms, accountant) for terms in (loss.terms, loss.reverse)}
    own, reverse = profiles[loss.terms], profiles[loss.reverse]
    at = _knots(own, reverse, reach)

    def ranked(knots: Knots) -> Ranked | None:
        pair = FinitePair.of(knots)
        return None if pair is None else Ranked(_split(pair, 1.0 / count.steepness), count)

    above = ranked(Knots.above(own, reverse, at))
    if above is None:
        return None
    below = []
    for part, opposite in _attained_parts(loss.terms):
        for terms in (part, opposite):
            if terms not in profiles:
                profiles[terms] = profile_of(terms, accountant)
        below.append(ranked(Knots.below(profiles[part], profiles[opposite], at)))
    return Ends(above, tuple(one for one in below if one is not None))


def _attained_parts(terms: Terms) -> list[tuple[Terms, Terms]]:
    """Return parts of the runs that some data attain, all where they are exact, both directions."""
    whole = all(loss.attained is loss for loss, _ in terms)
    turned = ((part, swapped_terms(part)) for part in ([terms] if whole else provable_parts(terms)))
    return [(part, opposite) for part, opposite in turned if opposite is not None]


def _reach(terms: Terms, target: float) -> float:
    """Return an epsilon beyond which delta falls no longer, or is below a target."""
    _, finite = split_infinity(terms)
    # Just beyond it: there the profile's upper end is 0, whatever it is rounded by.
    largest = largest_loss(finite) * (1.0 + _ROUND_OFF)
    if not finite or largest == 0.0:
        return 0.0
    reach = epsilon_upper(finite, target)
    return min(largest if largest <= _NEARLY * reach else reach, _FARTHEST)


def _knots(own: Profile, reverse: Profile, reach: float) -> Array:
    """Return ascending epsilons from 0 on: near in epsilon, and near in the logarithm of delta."""
    first = np.r_[0.0, np.geomspace(_LEAST_KNOT * reach, reach, _FIRST_KNOTS)]
    place = first / reach
    for profile in (own, reverse):
        logs = np.log(np.maximum(profile.at(first).upper, 1e-300))
        fallen = np.maximum.accumulate(logs[0] - logs)
        place = place + fallen / max(float(fallen[-1]), 1e-300)
    knots = np.interp(np.linspace(0.0, place[-1], _KNOTS), place, first)
    breakpoints = np.union1d(own.breakpoints, reverse.breakpoints)
    if breakpoints.size <= _MOST_BREAKPOINTS:
        knots = np.union1d(knots, breakpoints[breakpoints <= reach])
    return np.union1d(knots, [0.0, reach])


def _split(pair: FinitePair, scale: float) -> FinitePair:
    fineness = _FINENESS
    while pair.split_size(scale, fineness) > max(_MOST_PIECES, 1.3 * pair.p.size):
        fineness *= _COARSER
    return pair.split(scale, fineness)


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
        The worst order of the outputs is this package's own, proven in ``orders``. Earlier bounds:
        Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022;
        Koskela, Redberg and Wang, "Privacy Profiles for Private Selection", ICML 2024.
    """

    name: ClassVar[str] = "selection"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "tuning by the privacy profile of one run, in the worst order"

    def applies(self, composition: Composition, quantity: Quantity, value: float) -> bool:
        directions = composition.directions
        return any(isinstance(loss, TunedLoss) for terms in directions for loss, _ in terms)

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        return self._of(terms, _epsilon_by_profile, RDP().epsilon_of, delta)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        return self._of(terms, _delta_by_profile, RDP().delta_of, epsilon)

    def _of(
        self,
        terms: Terms,
        by_profile: Callable[[TunedLoss, float], Interval | None],
        by_orders: Callable[[Terms, float], Interval],
        value: float,
    ) -> Interval:
        """Return what the profile of one run proves, with Renyi divergences where it is wide."""
        if not terms:
            return Interval.point(0.0)
        loss, count = terms[0]
        if len(terms) > 1 or count > 1 or not isinstance(loss, TunedLoss):
            raise self.refuse("the plan", "it is not one tuning with a random number of runs")
        found = by_profile(loss, value)
        settled = _WIDE if loss.supremum == math.inf else _NARROW
        if found is not None and found.relative_width <= settled:
            return SettledInterval(*found)
        with suppress(UnsupportedError):
            bound = by_orders(terms, value)
            found = bound if found is None else bound.within(found)
        if found is None:
            raise self.refuse("the plan", "the profile of one run is not known")
        return found


def _epsilon_by_profile(loss: TunedLoss, delta: float) -> Interval | None:
    ends = _ends(loss, 2.0 ** math.floor(math.log2(delta)))
    if ends is None:
        return None
    upper = _crossing(ends.upper, float(least_reading(delta)), 1.0, 1.0)
    if upper in (0.0, math.inf):
        return Interval(0.0, upper, upper)
    lower = _crossing(ends.lower, float(largest_reading(delta)), upper, -1.0)
    return Interval(min(lower, upper), upper, upper)


def _delta_by_profile(loss: TunedLoss, epsilon: float) -> Interval | None:
    if epsilon > _LARGEST_EPSILON:
        return None
    delta = _FIRST_DELTA
    while (ends := _ends(loss, delta)) is not None:
        upper = ends.upper(epsilon)
        if upper >= delta or delta == _LEAST_DELTA:
            return Interval(min(ends.lower(epsilon), upper), upper, upper)
        delta = max(delta * delta, _LEAST_DELTA)
    return None


@lru_cache(maxsize=16)
def _ends(loss: TunedLoss, delta: float) -> Ends | None:
    order = (ClosedForm(), Selection(), Contour(smooths=False), PRV(), Contour(), RDP())
    return ends_of(loss, delta, Auto(order))


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
