"""From a coarse lattice to one that is fine enough, or as fine as memory allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from hockeystick.accountants.interval import Interval
from hockeystick.accountants.prv._discretise import dominated_masses, dominating_masses
from hockeystick.accountants.prv._enumerate import combinations
from hockeystick.accountants.prv._points import natural_step, parts_for
from hockeystick.accountants.prv._truncation import Truncation
from hockeystick.accountants.prv.lattice import MOST_POINTS, Discretization, Lattice, compose
from hockeystick.privacy_loss.core.terms import total

if TYPE_CHECKING:
    from hockeystick.privacy_loss import CellLoss

CellTerms: TypeAlias = "Sequence[tuple[CellLoss, int]]"
Reader: TypeAlias = "Callable[[LatticeReading | None, LatticeReading], Interval]"

# The least number of points of a first lattice.
_LEAST_POINTS: Final = 2**12
# A lattice that takes this share of the memory allowed is not refined further.
_LARGEST_SHARE_OF_MEMORY: Final = 0.5
_ROUNDS: Final = 9
# The factor by which the step grows where a lattice takes too many points.
_COARSENING: Final = 8.0
# A delta below its guess by more than exp of this takes another lattice of the same step.
_LOG_DELTA_OFF: Final = 3.0
# Errors other than those of rounding to the lattice are kept to this share of the tolerance.
_SHARE_OF_OTHER_ERRORS: Final = 1e-3
# A round that leaves more than this of the width is without gain. Two such rounds end the search,
# or one where the attained losses are not the dominating ones: the interval then stays wide.
_NO_GAIN: Final = 0.8


class LatticeReading(Protocol):
    """Bounds of ln delta: by a lattice, or by all combinations of atoms."""

    @property
    def tilt(self) -> float:
        """The tilt at which the bounds are narrow."""
        ...

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ln delta."""
        ...

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ln delta; -inf for none."""
        ...


class LatticeTarget(NamedTuple):
    """What the lattice is chosen for: attained and dominating losses, and about which delta.

    A relative error of the answer is ``gain`` times as much in delta. A ``step`` is kept to; with a
    ``threshold``, losses above it are split off.
    """

    lower: CellTerms
    upper: CellTerms
    tilt: float
    log_delta: float
    gain: float
    tolerance: float
    step: float | None
    for_delta: bool
    truncation: Truncation
    threshold: float | None = None

    def about(self, found: Interval | None) -> LatticeTarget:
        """Return the target, its delta no more than the upper end found where delta is sought."""
        if found is None or not self.for_delta or not 0.0 < found.upper < math.inf:
            return self
        return self._replace(log_delta=min(self.log_delta, math.log(found.upper)))

    @property
    def runs(self) -> float:
        """The number of runs, at least 1."""
        return max(math.fsum(count for _, count in self.upper), 1.0)


def refined(
    target: LatticeTarget, read: Reader, *, retry_zero_lower: bool = True
) -> Interval | None:
    """Return the narrowest interval of ever finer lattices, None where there is none.

    Without ``retry_zero_lower`` the second lattice with a lower end of 0 is the last: round-off has
    then hidden what is asked for.
    """
    exact = target.step or natural_step((*target.lower, *target.upper))
    sums = None if exact else _combined(target)
    if sums:
        return read(*sums)
    step = exact if exact and _points(target, exact) <= MOST_POINTS else _first_step(target)
    best: Interval | None = None
    rounds_without_gain = 0 if target.lower == target.upper else 1
    for _ in range(_ROUNDS):
        pair = dominated_and_dominating(target, step)
        if pair is None:
            if best is not None or step == target.step:
                break
            step *= _COARSENING
            continue
        found = read(*pair)
        before = math.inf if best is None else best.relative_width
        best = found if best is None else found.within(best)
        better = target.about(best)
        taken = pair[1].share_of_memory
        if better.log_delta < target.log_delta - _LOG_DELTA_OFF and target.step is None:
            # The tails beyond the lattice were chosen for a delta far too large.
            target = better
            continue
        target = better
        rounds_without_gain += 1 if best.relative_width > _NO_GAIN * before else 0
        done = best.relative_width <= target.tolerance or step == exact
        done = done or (not retry_zero_lower and before < math.inf and best.lower == 0.0)
        if done or rounds_without_gain >= 2 or taken >= _LARGEST_SHARE_OF_MEMORY:
            break
        finer = math.sqrt(0.5 * target.tolerance / max(found.relative_width, 1e-300))
        step *= max(min(finer, 0.5), 1.0 / 64.0, 1.01 * taken)
    return best


def _combined(target: LatticeTarget) -> tuple[LatticeReading | None, LatticeReading] | None:
    """Return all combinations of the atoms; None for too many, or losses that are not atomic."""
    upper = combinations(target.upper, target.tilt)
    if upper is None or target.lower == target.upper:
        return None if upper is None else (upper, upper)
    lower = combinations(target.lower, target.tilt) if target.lower else None
    return None if target.lower and lower is None else (lower, upper)


def dominated_and_dominating(
    target: LatticeTarget, step: float
) -> tuple[Lattice | None, Lattice] | None:
    """Return the dominated and the dominating composition on a lattice of about this step.

    None where that takes more points than memory allows.
    """
    log_tolerance = math.log(target.tolerance) - math.log(target.runs)
    log_least = (
        log_tolerance - 30.0,
        log_tolerance + math.log(_SHARE_OF_OTHER_ERRORS) + target.log_delta,
    )
    log_outside = math.log(_SHARE_OF_OTHER_ERRORS * target.tolerance) - 8.0

    def composed(terms: CellTerms, *discretizations: Discretization) -> list[Lattice] | None:
        parts = parts_for(terms, target.tilt, step, log_least, target.truncation)
        return compose(parts, target.tilt, log_outside, discretizations, target.threshold)

    if target.lower == target.upper:
        found = composed(target.upper, dominated_masses, dominating_masses)
        return (found[0], found[1]) if found else None
    upper = composed(target.upper, dominating_masses)
    lower = composed(target.lower, dominated_masses) if target.lower and upper else None
    return (lower[0] if lower else None, upper[0]) if upper else None


def _first_step(target: LatticeTarget) -> float:
    """Return the step whose errors, of second order in it, are about the tolerance."""
    c = target.tilt
    tolerance = 2.0 * target.tolerance * max(target.gain, 1.0)
    wanted = math.sqrt(tolerance / (target.runs * c * (c + 1.0)))
    return min(max(wanted, _window(target) / (MOST_POINTS // 4)), _window(target) / _LEAST_POINTS)


def _window(target: LatticeTarget) -> float:
    """Return an estimate of the width of the tilted sum, or of the widest tilted loss."""
    c = target.tilt
    curvature = total(target.truncation.terms(target.upper), c).second_derivative
    widest = 0.0
    for loss, _ in target.upper:
        k = target.truncation.cgf_estimate(loss, c)
        lowest = max(loss.infimum, (k.value - 50.0) / c)
        widest = max(
            widest,
            min(loss.supremum, k.first_derivative + 40.0 * math.sqrt(k.second_derivative)) - lowest,
        )
    return max(16.0 * math.sqrt(curvature) + 1.0 / c, widest)


def _points(target: LatticeTarget, step: float) -> float:
    """Return an estimate of the number of points of a lattice of this step."""
    return _window(target) / step
