"""From a coarse lattice to one that is fine enough, or as fine as memory allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from hockeystick.accountants.interval import Interval
from hockeystick.accountants.prv._discretise import above, below
from hockeystick.accountants.prv._enumerate import combinations
from hockeystick.accountants.prv._points import natural_step, parts_for
from hockeystick.accountants.prv._truncation import Truncation
from hockeystick.accountants.prv.lattice import MOST_POINTS, Lattice, Put, compose
from hockeystick.privacy_loss.core.terms import total

if TYPE_CHECKING:
    from hockeystick.privacy_loss import CellLoss

CellTerms: TypeAlias = "Sequence[tuple[CellLoss, int]]"
Read: TypeAlias = "Callable[[LatticeReading | None, LatticeReading], Interval]"

# The least number of points that is worth a transform.
_FEWEST: Final = 2**12
# A lattice that takes this share of what there is of memory is not refined further.
_FULL: Final = 0.5
_ROUNDS: Final = 9
# How much coarser a lattice is tried next where one takes too many points.
_COARSER: Final = 8.0
# A delta smaller by exp of this than it was taken to be asks for another lattice of the same step.
_FAR: Final = 3.0
# Errors other than the lattice's own are kept to about this share of what is asked for.
_SHARE: Final = 1e-3
# A round that leaves more than this of the width is the last but one; it is the last where the
# losses from below and from above differ, and so the interval stays wide.
_HARDLY: Final = 0.8


class LatticeReading(Protocol):
    """What delta is read off: a lattice, or all combinations of atoms."""

    @property
    def tilt(self) -> float:
        """The tilt at which it is narrow."""
        ...

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ln delta."""
        ...

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ln delta; -inf for none."""
        ...


class Question(NamedTuple):
    """What the lattice is for: the losses from below and from above, and about which delta.

    A relative error of the answer is ``gain`` times as much in delta. With a ``step`` there is no
    choice of it; with a ``threshold``, losses above it are split off.
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

    def about(self, found: Interval | None) -> Question:
        """Return a question for delta with what has been found of it."""
        if found is None or not self.for_delta or not 0.0 < found.upper < math.inf:
            return self
        return self._replace(log_delta=min(self.log_delta, math.log(found.upper)))

    @property
    def runs(self) -> float:
        """How many runs there are."""
        return max(math.fsum(count for _, count in self.upper), 1.0)


def refined(question: Question, read: Read, *, patient: bool = True) -> Interval | None:
    """Return what is read off ever finer lattices; the narrowest, None where there is none.

    Without patience it ends where a finer lattice has no lower end either: it is round-off then.
    """
    exact = question.step or natural_step((*question.lower, *question.upper))
    sums = None if exact else _combined(question)
    if sums:
        return read(*sums)
    step = exact if exact and _points(question, exact) <= MOST_POINTS else _first_step(question)
    best: Interval | None = None
    stale = 0 if question.lower == question.upper else 1
    for _ in range(_ROUNDS):
        pair = both(question, step)
        if pair is None:
            if best is not None or step == question.step:
                break
            step *= _COARSER
            continue
        found = read(*pair)
        before = math.inf if best is None else best.relative_width
        best = found if best is None else found.within(best)
        better = question.about(best)
        taken = pair[1].share_of_memory
        if better.log_delta < question.log_delta - _FAR and question.step is None:
            # What is beyond the lattice was chosen for a delta far too large.
            question = better
            continue
        question = better
        stale += 1 if best.relative_width > _HARDLY * before else 0
        done = best.relative_width <= question.tolerance or step == exact
        done = done or (not patient and before < math.inf and best.lower == 0.0)
        if done or stale >= 2 or taken >= _FULL:
            break
        finer = math.sqrt(0.5 * question.tolerance / max(found.relative_width, 1e-300))
        step *= max(min(finer, 0.5), 1.0 / 64.0, 1.01 * taken)
    return best


def _combined(question: Question) -> tuple[LatticeReading | None, LatticeReading] | None:
    """Return all combinations of the atoms, None where there are too many, or more than atoms."""
    upper = combinations(question.upper, question.tilt)
    if upper is None or question.lower == question.upper:
        return None if upper is None else (upper, upper)
    lower = combinations(question.lower, question.tilt) if question.lower else None
    return None if question.lower and lower is None else (lower, upper)


def both(question: Question, step: float) -> tuple[Lattice | None, Lattice] | None:
    """Return the compositions from below and from above on a lattice of about this step.

    None where that takes more points than memory allows.
    """
    log_tolerance = math.log(question.tolerance) - math.log(question.runs)
    log_least = (log_tolerance - 30.0, log_tolerance + math.log(_SHARE) + question.log_delta)
    log_outside = math.log(_SHARE * question.tolerance) - 8.0

    def composed(terms: CellTerms, *puts: Put) -> list[Lattice] | None:
        parts = parts_for(terms, question.tilt, step, log_least, question.truncation)
        return compose(parts, question.tilt, log_outside, puts, question.threshold)

    if question.lower == question.upper:
        found = composed(question.upper, below, above)
        return (found[0], found[1]) if found else None
    upper = composed(question.upper, above)
    lower = composed(question.lower, below) if question.lower and upper else None
    return (lower[0] if lower else None, upper[0]) if upper else None


def _first_step(question: Question) -> float:
    """Return the step at which both ends are about as far apart as asked, by second order."""
    c = question.tilt
    tolerance = 2.0 * question.tolerance * max(question.gain, 1.0)
    wanted = math.sqrt(tolerance / (question.runs * c * (c + 1.0)))
    return min(max(wanted, _window(question) / (MOST_POINTS // 4)), _window(question) / _FEWEST)


def _window(question: Question) -> float:
    """Return about how wide the tilted sum is, or the tilted losses are."""
    c = question.tilt
    curvature = total(question.truncation.terms(question.upper), c).second_derivative
    widest = 0.0
    for loss, _ in question.upper:
        k = question.truncation.cgf_estimate(loss, c)
        lowest = max(loss.infimum, (k.value - 50.0) / c)
        widest = max(
            widest,
            min(loss.supremum, k.first_derivative + 40.0 * math.sqrt(k.second_derivative)) - lowest,
        )
    return max(16.0 * math.sqrt(curvature) + 1.0 / c, widest)


def _points(question: Question, step: float) -> float:
    """Return about how many points a lattice of this step takes."""
    return _window(question) / step
