"""The privacy profile of one direction of a plan, at many epsilons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.accountants.base import Accountant, InfinityMass, Interval, split_infinity
from hockeystick.accountants.closed_form import ClosedForm, least_delta
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.contour.many import ContourProfile
from hockeystick.accountants.rdp import RDP, optimal_order
from hockeystick.errors import UnsupportedError
from hockeystick.numerics.rounding import OUTWARD_128
from hockeystick.privacy_loss import CellLoss, Composition, Terms, largest_loss
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.composition import candidate_orders, sum_of_bounds
from hockeystick.tradeoffs import PerfectPrivacy, Profile, ProfileValues, TableProfile

if TYPE_CHECKING:
    from hockeystick.accountants.prv.sums import Combinations
    from hockeystick.tradeoffs.profiles.profile import Array


_KNOTS: Final = 193
# Fewer where each takes long.
_FEW_KNOTS: Final = 33
# The relative width aimed for at each knot.
_KNOT_TOLERANCE: Final = 1e-3
# A wider interval than this may have a lower end below that of one part of the plan.
_WIDE: Final = 0.1
# The most values of a sum of losses that are enumerated, and their tilt.
_MOST_SUMS: Final = 500
_TILT: Final = 1.0
# The most values of a sum of evenly spaced losses.
_MOST_CONVOLVED: Final = 3000
# The most atoms of a loss that become knots.
_MOST_ATOMS: Final = 64
_ORDERS: Final = 48
_FIRST_EPSILON: Final = 2.0**-16
_LARGEST_EPSILON: Final = 2.0**20
_FAR_EPSILON: Final = 1e15
_LEAST_DELTA: Final = 1e-300
# Below this delta Renyi bounds are used.
_SMALL_DELTA: Final = 1e-9
# Logarithms of the deltas for which orders are sought.
_LARGEST_DELTA: Final = -1e-3
_SMALLEST_DELTA: Final = -700.0


@dataclass(frozen=True)
class InfinityProfile(Profile):
    """``s + (1 - s) d(eps)``: infinity mass s, and d the profile of the finite losses."""

    _mass: InfinityMass
    _rest: Profile

    @property
    def smooth(self) -> bool:
        return self._rest.smooth

    @property
    def breakpoints(self) -> Array:
        return self._rest.breakpoints

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infinity_mass_lower(self) -> float:
        return self.precisely(_FAR_EPSILON)[0]

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        return self._mass.delta(epsilon, lambda at: Interval(*self._rest.precisely(at)))

    def at(self, epsilon: Array) -> ProfileValues:
        rest, mass = self._rest.at(epsilon), self._mass
        if mass.low == -math.inf:
            one = np.ones_like(epsilon)
            return ProfileValues(one, one, one, 0.0 * one)
        infinite = -math.expm1(mass.high) * (1.0 - OUTWARD_128), -math.expm1(mass.low)
        kept = math.exp(mass.high), math.exp(mass.low)
        lower = (infinite[0] + kept[0] * rest.lower) * (1.0 - OUTWARD_128)
        middle = infinite[1] + kept[1] * rest.estimate
        upper = np.minimum((infinite[1] + kept[1] * rest.upper) * (1.0 + OUTWARD_128), 1.0)
        return ProfileValues(lower, np.minimum(middle, upper), upper, kept[1] * rest.slope)


@dataclass(frozen=True)
class WideProfile(Profile):
    """The profile of one direction by an accountant that chooses among others, at some epsilons.

    Between these it is bounded by convexity, and beyond them by Renyi divergences. Where the loss
    takes few values, these are knots, and delta is exact everywhere.
    """

    _terms: Terms
    _accountant: Accountant = field(compare=False)

    @property
    def smooth(self) -> bool:
        return False

    @property
    def breakpoints(self) -> Array:
        return self._table.epsilons

    @cached_property
    def supremum(self) -> float:
        return largest_loss(self._terms)

    @cached_property
    def infinity_mass_lower(self) -> float:
        return self._by_theorem(_FAR_EPSILON).lower if self.supremum == math.inf else 0.0

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        return self._accountant.delta(self._composition, epsilon)

    def at(self, epsilon: Array) -> ProfileValues:
        found = self._table.at(epsilon)
        far = (epsilon > self.breakpoints[-1]) & (epsilon <= self.supremum)
        if self._is_closed or not far.any():
            return found
        upper, slope = self._chernoff(epsilon[far], *self._orders)
        better = upper < found.upper[far]
        upper = np.maximum(np.where(better, upper, found.upper[far]), found.lower[far])
        found.estimate[far], found.upper[far] = upper, upper
        found.slope[far] = np.where(better, slope, found.slope[far])
        return found

    def _chernoff(self, epsilon: Array, c: Array, cgf: Array) -> tuple[Array, Array]:
        """Return the best bound of the orders, and its derivative."""
        log_cks_factors = np.array([log_cks_factor(one) for one in c.tolist()])
        away = np.multiply.outer(c, epsilon)
        logs = (cgf + log_cks_factors)[:, np.newaxis] - away
        logs += OUTWARD_128 * (away + (np.abs(cgf) - log_cks_factors)[:, np.newaxis])
        best = logs.argmin(axis=0)
        log_upper = np.minimum(logs[best, np.arange(epsilon.size)], 0.0)
        upper = np.minimum(np.exp(log_upper) * (1.0 + OUTWARD_128) + _LEAST_DELTA, 1.0)
        return upper, -c[best] * upper

    @cached_property
    def _orders(self) -> tuple[Array, Array]:
        low, high = (optimal_order(self._terms, d) for d in (_LARGEST_DELTA, _SMALLEST_DELTA))
        wanted = np.geomspace(max(low, 1e-9), max(high, 2e-9), _ORDERS).tolist()
        orders = {one for c in wanted for one in candidate_orders(self._terms, c) if one > 0.0}
        c = np.array(sorted(orders) or [1.0])
        cgf = np.array([sum_of_bounds(self._terms, one) for one in c.tolist()])
        return c, cgf * (1.0 + OUTWARD_128)

    @property
    def _composition(self) -> Composition:
        return Composition(self._terms, self._terms)

    @cached_property
    def _is_closed(self) -> bool:
        try:
            found = ClosedForm().delta(self._composition, 0.0)
        except UnsupportedError:
            return False
        return found.lower >= 0.5 * found.upper

    @cached_property
    def _sums(self) -> Combinations | None:
        """All values of the loss, where they are few and the loss is known."""
        cells = [
            (loss, n)
            for loss, n in self._terms
            if isinstance(loss, CellLoss) and loss.attained is loss
        ]
        if not cells or len(cells) < len(self._terms):
            return None
        from hockeystick.accountants.prv.sums import combinations

        return combinations(cells, _TILT, most=_MOST_SUMS) or self._evenly_spaced

    @cached_property
    def _is_on_lattice(self) -> bool:
        return self._sums is not None and self._sums is self._evenly_spaced

    @cached_property
    def _evenly_spaced(self) -> Combinations | None:
        """All values of the loss, where they are those of runs of one loss on a lattice."""
        loss, count = self._terms[0]
        if len(self._terms) > 1 or not isinstance(loss, CellLoss) or loss.attained is not loss:
            return None
        from hockeystick.accountants.prv.sums import convolved

        return convolved(loss, count, _TILT, most=_MOST_CONVOLVED)

    @cached_property
    def _table(self) -> TableProfile:
        """The ends of delta at epsilons up to the largest loss, or to where it is negligible."""
        if self._is_closed or self._sums is not None:
            knots = self._knots(self._reach(_LEAST_DELTA), _KNOTS)
            ends = [self._at_knot(knot) for knot in knots.tolist()]
        else:
            knots = self._knots(self._reach(_SMALL_DELTA), _FEW_KNOTS)
            ends = list(self._until_rare(knots))
        lowers, _, uppers = np.array(ends).T
        # delta is nonincreasing.
        upper = np.minimum.accumulate(uppers)
        lower = np.maximum.accumulate(lowers[::-1])[::-1]
        return TableProfile(
            knots, np.minimum(lower, upper), upper, self.supremum, self.infinity_mass_lower
        )

    def _knots(self, reach: float, count: int) -> Array:
        """Return epsilons up to a reach, dense near 0, and the breakpoints of delta.

        Where these are of a lattice, and so too many for others to lie between, two knots are put
        between each two: delta is linear in ``e^eps`` there, and the table exact.
        """
        breakpoints = self._breakpoints[self._breakpoints < reach]
        knots = np.union1d(reach * np.linspace(0.0, 1.0, count) ** 2, breakpoints)
        if not self._is_on_lattice:
            return knots
        ends = np.r_[0.0, breakpoints]
        thirds = [ends[:-1] + share * np.diff(ends) for share in (1.0 / 3.0, 2.0 / 3.0)]
        return np.unique(np.r_[knots, *thirds])

    @cached_property
    def _breakpoints(self) -> Array:
        """The breakpoints of delta: sums of atoms above 0, rounded; none where they are many."""
        values = np.zeros(1)
        if self._sums is not None:
            values = np.unique(self._sums.loss)
            return np.asarray(values[values > 0.0])
        for loss, count in self._terms:
            atoms = loss.atoms().loss if isinstance(loss, CellLoss) else values[:0]
            if count > _MOST_ATOMS or not 0 < atoms.size <= _MOST_ATOMS:
                return values[:0]
            for _ in range(count):
                values = np.unique(np.round(np.add.outer(values, atoms), 12))
                if values.size > 4 * _MOST_ATOMS:
                    return values[:0]
        return np.asarray(values[values > 0.0])

    def _at_knot(self, epsilon: float) -> Interval:
        """Return delta in closed form, or by the values that the loss takes."""
        if self._sums is None or (self._is_closed and not self._is_on_lattice):
            return self._by_theorem(epsilon)
        low, high = self._sums.lower(epsilon), self._sums.upper(epsilon)
        lower = math.exp(low - OUTWARD_128 * (abs(low) + 4.0)) if low > -math.inf else 0.0
        upper = min(math.exp(min(high + OUTWARD_128 * (abs(high) + 4.0), 0.0)) + _LEAST_DELTA, 1.0)
        return Interval(lower, upper, upper)

    def _until_rare(self, knots: Array) -> Iterator[Interval]:
        """Yield delta at rising epsilons, by theorems alone once it is small."""
        rare = False
        for knot in knots.tolist():
            found = self._by_theorem(knot) if rare else self._by_accountant(knot)
            rare = rare or found.upper < _SMALL_DELTA
            yield found

    def _by_accountant(self, epsilon: float) -> Interval:
        found = self._accountant.within(_KNOT_TOLERANCE).delta(self._composition, epsilon)
        if found.is_narrow(_WIDE):
            return found
        least = min(least_delta(self._terms, epsilon), found.upper)
        return Interval(max(found.lower, least), *found[1:]).ordered()

    def _reach(self, least: float) -> float:
        """Return an epsilon beyond which delta is below the least, or has stopped falling."""
        farthest = min(self.supremum, _LARGEST_EPSILON)
        end, before = _FIRST_EPSILON, 1.0
        while end < farthest * (1.0 - 1e-9):
            here = self._by_theorem(end).upper
            stays = here >= before * (1.0 - 1e-9) and end > 1.0
            if here < least or (stays and not (self._is_closed and here > 0.5)):
                return end
            end, before = 2.0 * end, here
        return farthest

    def _by_theorem(self, epsilon: float) -> Interval:
        for accountant in (ClosedForm(), RDP())[not self._is_closed :]:
            with suppress(UnsupportedError):
                return accountant.delta(self._composition, epsilon)
        raise Contour().refuse("the plan", "its trade-off function is not known")


# A report asks for the profiles of one plan several times, which take seconds to tabulate.
_REMEMBERED: Final = 8


@lru_cache(maxsize=_REMEMBERED)
def profile_of(terms: Terms, accountant: Accountant) -> Profile:
    """Return the profile of one direction; what has no lines is asked of an accountant.

    The last few are remembered, with what they have tabulated.
    """
    mass, rest = split_infinity(terms)
    if mass is not None:
        return InfinityProfile(mass, profile_of(rest, accountant))
    if not terms:
        return PerfectPrivacy()
    if len(terms) == 1 and terms[0][1] == 1:
        alone = terms[0][0].proven_profile()
        if alone is not None:
            return alone
    wide, lines = WideProfile(terms, accountant), Composition(terms, terms).analytic
    return ContourProfile(lines[0], wide) if lines and not wide._breakpoints.size else wide
