"""The accountant on a lattice, for all losses whose distribution is known, atoms included.

``split_tail`` estimates the threshold above which losses are split off as rare and large: a poor
one costs width, never soundness. There delta is about ``sum n E[(1 - exp(eps - L))+]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, final

import numpy as np

from hockeystick.accountants.base import TOLERANCE, DirectedAccountant, Interval, Kind, worse
from hockeystick.accountants.closed_form import (
    closed_delta_upper,
    closed_epsilon_upper,
    least_delta,
    least_epsilon,
)
from hockeystick.accountants.prv.discretise import Truncation
from hockeystick.accountants.prv.lattice import LatticeTarget, is_atomic, refined
from hockeystick.accountants.rdp import (
    RDP,
    delta_upper,
    epsilon_upper,
    rough_optimal_order,
    rough_optimal_order_at,
)
from hockeystick.numerics import ULP, down, log_readings, up
from hockeystick.numerics.roots import falling_crossing, increasing_root
from hockeystick.numerics.rounding import OUTWARD_8
from hockeystick.privacy_loss import (
    AnalyticLoss,
    CellLoss,
    Composition,
    Terms,
    expanded,
    largest_loss,
    merged,
)
from hockeystick.privacy_loss.adaptive import adaptive_loss
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.cell_loss import effective_range, merged_points
from hockeystick.privacy_loss.core.composition import total
from hockeystick.privacy_loss.core.symmetrized import adaptive_upper

if TYPE_CHECKING:
    from hockeystick.accountants.prv.lattice import AnswerOf, CellTerms, LatticeSum
    from hockeystick.kernels.series import Array


# ln of the tail's probability over delta: round-off is relative to that probability.
_LOG_TAIL_OVER_DELTA: Final = 16.0
# The least ln of the tail's probability over delta at which splitting pays.
_LEAST_LOG_RATIO: Final = 9.0
# The masses behind a smaller delta are subnormal numbers.
_LEAST_LOG_DELTA: Final = -650.0
# The threshold is at least exp of minus this of epsilon.
_LOWEST_LOG_THRESHOLD: Final = 4.0
# ln of the largest probability of a tail that counts as rare.
_MOST_LOG_TAIL: Final = -1.0
# A tilt scales the largest loss that counts by at most exp of this.
_MOST_LIFT: Final = 4.0
# With more different losses than this none is split.
_MOST_LOSSES: Final = 16
_TINY: Final = 1e-300


class _MergedLoss(NamedTuple):
    """A loss approximated by atoms, ascending, and its number of runs."""

    at: Array
    log_p: Array
    runs: int

    def tail(self, threshold: float) -> float:
        return self.runs * float(np.exp(self.log_p[self.at > threshold]).sum())

    def tail_delta(self, epsilon: float) -> float:
        """Return the single runs' contribution to delta: ``sum n E[(1 - exp(eps - L))+]``."""
        above = self.at > epsilon
        excess = np.exp(self.log_p[above]) * -np.expm1(epsilon - self.at[above])
        return self.runs * float(excess.sum())


@np.errstate(invalid="ignore", over="ignore")
def split_tail(target: LatticeTarget, epsilon: float | None) -> LatticeTarget | None:
    """Return the target with a threshold for the tail, None where no tail is rare.

    Atomic losses are not split: a lattice holds their atoms exactly.
    """
    hopeless = epsilon is None and target.log_delta + _LEAST_LOG_RATIO > _MOST_LOG_TAIL
    many = len(target.upper) > _MOST_LOSSES
    if hopeless or many or any(is_atomic(loss) for loss, _ in target.upper):
        return None
    points = [_merged(loss, count) for loss, count in target.upper]
    log_delta = target.log_delta
    if epsilon is None:
        epsilon = _tail_epsilon(points, log_delta)
    else:
        log_delta = min(log_delta, math.log(max(sum(p.tail_delta(epsilon) for p in points), _TINY)))
    if epsilon <= 0.0 or not _LEAST_LOG_DELTA < log_delta <= _MOST_LOG_TAIL - _LEAST_LOG_RATIO:
        return None
    threshold = _threshold(points, min(log_delta + _LOG_TAIL_OVER_DELTA, _MOST_LOG_TAIL), epsilon)
    if threshold <= 0.0:
        return None
    least = log_delta + math.log(target.tolerance) - math.log(target.runs)
    farthest = max(threshold, *(effective_range(loss, least)[1] for loss, _ in target.upper))
    tilt = min(1.0 / threshold, _MOST_LIFT / farthest)
    return target._replace(tilt=tilt, log_delta=log_delta, threshold=threshold)


def _merged(loss: CellLoss, count: int) -> _MergedLoss:
    at, log_p = merged_points(loss)
    order = np.argsort(at)
    return _MergedLoss(at[order], log_p[order], count)


def _tail_epsilon(points: list[_MergedLoss], log_delta: float) -> float:
    """Return the epsilon at which the single runs' contribution alone is a delta."""

    def less(epsilon: float) -> float:
        found = sum(p.tail_delta(max(epsilon, 0.0)) for p in points)
        return log_delta - math.log(max(found, _TINY))

    return 0.0 if less(0.0) >= 0.0 else increasing_root(less, 1e-3, tolerance=1e-6)


def _threshold(points: list[_MergedLoss], log_mass: float, epsilon: float) -> float:
    """Return the threshold above which the tail has a probability, 0 if beyond epsilon."""

    def less(log_threshold: float) -> float:
        tail = sum(p.tail(math.exp(log_threshold)) for p in points)
        return log_mass - math.log(max(tail, _TINY))

    high = math.log(epsilon)
    low = high - _LOWEST_LOG_THRESHOLD
    if less(high) <= 0.0:
        return 0.0
    if less(low) >= 0.0:
        return math.exp(low)
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if less(middle) >= 0.0 else (middle, high)
    return math.exp(high)


_LEAST_FLOAT: Final = 5e-324
# The largest tilt, beyond which round-off is all; the least one, over the standard deviation.
_LARGEST_TILT: Final = 1e7
_LEAST_TILT: Final = 0.05
_UNKNOWN: Final = "of one of its parts only bounds are known, not the privacy loss's distribution"
# The relative widths at which a direction is compared with another one: attained losses, and all.
_COARSE: Final = 0.1
_ROUGH: Final = 1e-2
# An interval wider than this may have a worse lower end than one part of the plan alone.
_WIDE: Final = 0.1


@final
@dataclass(frozen=True)
class PRV(DirectedAccountant):
    """Privacy-loss distributions on a lattice, refined until the interval is narrow enough.

    Two compositions, one that dominates the plan and one that the plan dominates, each tilted to
    the order that matters, so that round-off is relative to Chernoff's bound; where rare large
    losses decide, the outcomes with one are summed separately. ``tolerance`` is the
    relative width asked for; where the four million points that memory allows do not reach it, the
    answer is the interval that they give: for a hundred runs of a Gaussian of random sensitivity,
    that is a few parts in 10^8 of delta. With a ``step`` the lattice stays what it says.

    References:
        Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the dots: tighter discrete
        approximations of privacy loss distributions", PoPETs 2022, for the upper end; Gopi, Lee
        and Wutschitz, "Numerical composition of differential privacy", NeurIPS 2021.
    """

    tolerance: float = TOLERANCE
    step: float | None = None
    # Where the Renyi bound is no more than this it is the answer.
    least: float = field(default=0.0, repr=False, compare=False)
    name: ClassVar[str] = "prv"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "privacy-loss distributions on a lattice, by Fourier transforms"

    def within(self, tolerance: float) -> PRV:
        return PRV(tolerance, self.step)

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        return self._worst(composition, PRV._epsilon, PRV._epsilon_of, least_epsilon, delta)

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        return self._worst(composition, PRV._delta, PRV._delta_of, least_delta, epsilon)

    def _worst(
        self,
        composition: Composition,
        read: Callable[[PRV, Terms, float], Interval],
        alone: Callable[[PRV, Terms, float, float], Interval],
        least: Callable[[Terms, float], float],
        at: float,
    ) -> Interval:
        """Return the larger of the directions, without those that are provably smaller.

        A direction with the first one's dominating losses has its upper end, and as a lower end at
        most what its attained losses or a single run cost. Others are read roughly first.
        """
        first, *rest = composition.directions
        found = [read(self, first, at)]
        for terms in rest:
            known, enough = _attained_alone(terms, first), found[0].lower
            if self.step is not None:
                most = math.inf
            elif known:
                most = max(alone(PRV(_COARSE), known, at, math.inf).upper, least(terms, at))
            else:
                most = read(PRV(max(_ROUGH, self.tolerance), least=enough), terms, at).upper
            if most > enough:
                found.append(read(self, terms, at))
        return worse(found)

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        closed = closed_epsilon_upper(terms, delta)
        if closed == math.inf and not _all_cells(terms):
            closed = self._bound(terms, lambda bound: bound.epsilon_of(terms, delta))
        if closed == math.inf or _may_be_less(terms):
            found = _sharpened(terms, lambda some: self._epsilon_of(some, delta, closed))
            return _raised(found, lambda: least_epsilon(terms, delta))
        lattice = self._epsilon_of(_attained_cells(terms), delta, closed).lower
        lower = min(max(lattice, least_epsilon(terms, delta)), closed)
        return Interval(lower, closed, closed)

    def _epsilon_of(self, terms: Terms, delta: float, most: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        terms, log_delta = expanded(terms), math.log(delta)
        most = min(epsilon_upper(terms, delta), most)
        if most <= self.least:
            return Interval(0.0, most, most)
        truncation = Truncation.at(terms, log_delta, self.tolerance)
        kept = truncation.terms(terms)
        tilt = rough_optimal_order(kept, log_delta)
        # That of the bound by the truncated losses, which is nearer where a tail decides K.
        gain = min(tilt * most, total(kept, tilt).value + log_cks_factor(tilt) - log_delta)
        target = self._target(terms, truncation, tilt, log_delta, gain, for_delta=False)
        found = _tilted_or_split(target, lambda low, high: _epsilons(low, high, delta, most), None)
        return _within_bounds(found, most, lambda: RDP().epsilon_of(terms, delta))

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        closed = closed_delta_upper(terms, epsilon)
        if closed == math.inf and not _all_cells(terms):
            closed = self._bound(terms, lambda bound: bound.delta_of(terms, epsilon))
        if closed == math.inf or _may_be_less(terms):
            found = _sharpened(terms, lambda some: self._delta_of(some, epsilon, closed))
            return _raised(found, lambda: least_delta(terms, epsilon))
        lattice = self._delta_of(_attained_cells(terms), epsilon, closed).lower
        lower = min(max(lattice, least_delta(terms, epsilon)), closed)
        return Interval(lower, 0.5 * (lower + closed), closed)

    def _delta_of(self, terms: Terms, epsilon: float, most: float) -> Interval:
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        terms = expanded(terms)
        self._cell_terms(terms)  # Refuses what has no cells, whatever its delta.
        most = max(min(delta_upper(terms, epsilon), most), _LEAST_FLOAT)
        if most == _LEAST_FLOAT:
            # A delta below all floats needs no lattice.
            return RDP().delta_of(terms, epsilon)
        if most <= self.least:
            return Interval(0.0, most, most)
        truncation = Truncation.at(terms, math.log(most), self.tolerance)
        tilt = rough_optimal_order_at(truncation.terms(terms), epsilon)
        target = self._target(terms, truncation, tilt, math.log(most), 1.0, for_delta=True)
        found = _tilted_or_split(target, lambda low, high: _deltas(low, high, epsilon), epsilon)
        return _within_bounds(found, most, lambda: RDP().delta_of(terms, epsilon))

    def _target(
        self,
        terms: Terms,
        truncation: Truncation,
        tilt: float,
        log_delta: float,
        gain: float,
        *,
        for_delta: bool,
    ) -> LatticeTarget:
        upper = self._cell_terms(terms)
        spread = math.sqrt(max(total(truncation.terms(terms), tilt).second_derivative, 1.0))
        tilt = min(max(tilt, _LEAST_TILT / spread), _LARGEST_TILT)
        asked = (log_delta, gain, self.tolerance, self.step)
        return LatticeTarget(_attained_cells(terms), upper, tilt, *asked, for_delta, truncation)

    def _bound(self, terms: Terms, ask: Callable[[RDP], Interval]) -> float:
        """Return the Renyi bound where a lattice can tell more of what is attained, or raise."""
        known = _attained_cells(terms)
        if len(known) < len(terms) or all(loss.closed_form_profile for loss, _ in known):
            self._cell_terms(terms)  # Refuses.
        return ask(RDP()).upper

    def _cell_terms(self, terms: Terms) -> CellTerms:
        cells: CellTerms = ()
        for loss, count in terms:
            if isinstance(loss, AnalyticLoss) and loss.out_of_range:
                raise self.refuse(type(loss).__name__, "its parameters are out of range")
            if not isinstance(loss, CellLoss):
                raise self.refuse(type(loss).__name__, _UNKNOWN)
            cells = (*cells, (loss, count))
        return cells


def _tilted_or_split(
    target: LatticeTarget, read: AnswerOf, epsilon: float | None
) -> Interval | None:
    """Return the lattices' interval, tilted or with a split tail; None where they overflow."""
    other = cache(lambda: split_tail(target, epsilon) if target.step is None else None)
    found = _refined(target, read, lambda: other() is None)
    narrow = found is not None and found.relative_width <= target.tolerance
    split = None if narrow else other()
    answer = None if split is None else _refined(split, read)
    if split and not (answer and answer.relative_width <= target.tolerance):
        found = _refined(target, read) or found
    if answer is None or found is None:
        return answer or found
    return answer.within(found)


def _refined(
    target: LatticeTarget, read: AnswerOf, retry: Callable[[], bool] = lambda: True
) -> Interval | None:
    try:
        with np.errstate(invalid="raise", over="raise"):
            return refined(target, read, retry)
    except ArithmeticError:
        return None


def _all_cells(terms: Terms) -> bool:
    return all(isinstance(loss, CellLoss) for loss, _ in expanded(terms))


def _attained_cells(terms: Terms) -> tuple[tuple[CellLoss, int], ...]:
    known = ((loss.attained, count) for loss, count in terms)
    return tuple((loss, count) for loss, count in known if isinstance(loss, CellLoss))


def _attained_alone(terms: Terms, first: Terms) -> Terms:
    """Return all attained losses, by cells; none unless both share their dominating losses."""
    one, other = (merged(((loss.dominating, n),) for loss, n in t) for t in (terms, first))
    known = _attained_cells(terms)
    plain = all(loss.finite is loss and loss.constant is None for loss, _ in (*known, *terms))
    alone = plain and one == other and len(known) == len(terms) and known != terms
    return known if alone else ()


def _may_be_less(terms: Terms) -> bool:
    """Return whether what choices of each run cost may be more than the sum of what each does."""
    known = (
        (adaptive_upper(loss.dominating, count), loss.dominating, count) for loss, count in terms
    )
    return any(one is not None and one.is_above(loss, count) for one, loss, count in known)


def _sharpened(terms: Terms, ask: Callable[[Terms], Interval]) -> Interval:
    """Return the upper end of the dominating losses, the lower end of the attained ones.

    Each is narrow on a lattice of its own, where both on one show a width that no step takes away.
    """
    known = _attained_cells(terms)
    if not known or known == terms:
        return ask(terms)
    above = ((loss.dominating, count) for loss, count in terms)
    joined = ((adaptive_loss(loss, count), loss, count) for loss, count in above)
    upper = ask(tuple((one, 1) if one else (loss, count) for one, loss, count in joined)).upper
    return Interval(min(ask(known).lower, upper), upper, upper)


def _raised(found: Interval, least: Callable[[], float]) -> Interval:
    """Return an interval, if wide with a lower end that parts of the plan may raise."""
    if found.relative_width <= _WIDE:
        return found
    return found.within(Interval(min(least(), found.upper), found.upper, found.upper))


def _within_bounds(found: Interval | None, most: float, bound: Callable[[], Interval]) -> Interval:
    """Return what is at most ``most``; where there is none or it is wide, the Renyi bound too."""
    if found is None:
        return bound()
    found = found.within(Interval(0.0, most, most))
    return found.within(bound()) if found.relative_width > _WIDE else found


def _deltas(low: LatticeSum | None, high: LatticeSum, epsilon: float) -> Interval:
    lower, upper = (low.lower(epsilon) if low else -math.inf), high.upper(epsilon)
    lower -= OUTWARD_8 * (abs(lower) + 4.0)
    upper += OUTWARD_8 * (abs(upper) + 4.0)
    ends = down(math.exp(min(lower, 0.0))), min(up(math.exp(min(upper, 0.0))), 1.0)
    return Interval(ends[0], 0.5 * (ends[0] + ends[1]), ends[1])


def _epsilons(low: LatticeSum | None, high: LatticeSum, delta: float, bound: float) -> Interval:
    """Return epsilon between the two compositions, searched for from an upper bound on."""
    least, most = log_readings(delta)
    slack = OUTWARD_8 * (abs(least) + 4.0)
    slope = -high.tilt
    upper = _crossing(lambda eps: high.upper(eps) - (least - slack), bound, slope, 1.0)
    if low is None:
        return Interval(0.0, upper, upper)
    lower = _crossing(lambda eps: low.lower(eps) - (most + slack), upper, slope, -1.0)
    return Interval(lower, upper, upper)


def _crossing(excess: Callable[[float], float], guess: float, slope: float, side: float) -> float:
    """Return a zero of a falling excess, from its negative (1) or its positive (-1) side."""
    excess = cache(excess)
    if side > 0.0 and excess(0.0) <= 0.0:
        return 0.0
    start = guess if 0.0 < guess < math.inf else 1.0
    off, stride = excess(start) / slope, -0.1 / slope
    if abs(off) < 0.5 * start:
        start, stride = start - off, min(0.1 * abs(off) - 1e-6 / slope, stride)
    return falling_crossing(excess, start, side, stride=stride, tolerance=4.0 * ULP * start)
