"""The best of a random number of runs between two finite pairs, by the profile of one run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.base import Accountant
from hockeystick.accountants.closed_forms.closed_form import provable_parts
from hockeystick.accountants.infinity import split_infinity
from hockeystick.accountants.profile import profile_of
from hockeystick.accountants.selection.counts import generating
from hockeystick.accountants.selection.orders import Ranked
from hockeystick.accountants.selection.pairs import FinitePair, Knots
from hockeystick.accountants.selection.swapped import swapped_terms
from hockeystick.accountants.theorems.rdp import epsilon_upper
from hockeystick.privacy_loss import Terms, TunedLoss, largest_loss
from hockeystick.tradeoffs import Profile

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


@final
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
    count = generating(loss.count)
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
    """Return parts of the runs that some pair of data sets attains, in both directions.

    All of them where they are known exactly; else what of them has a closed form.
    """
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
    """Return the pair with its outcomes cut as finely as their number allows."""
    fineness = _FINENESS
    while pair.split_size(scale, fineness) > max(_MOST_PIECES, 1.3 * pair.p.size):
        fineness *= _COARSER
    return pair.split(scale, fineness)
