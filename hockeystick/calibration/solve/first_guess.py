"""Where to begin: an unproven guess by the saddle point, and the contour integral or a lattice.

Nothing that is answered rests on it; it saves the search most of its proven evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.orders import saddle, saddle_log_delta
from hockeystick.calibration.solve.axis import Axis
from hockeystick.calibration.solve.goals import EpsilonGoal
from hockeystick.errors import HockeystickError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss import Composition, Terms
from hockeystick.privacy_loss.core.terms import total

_STRIDE: Final = 0.5
_COARSE: Final = 1e-4
_LARGEST_LOG: Final = 60.0
_ROUNDS: Final = 5
# An integral that is proven no better than this, relative to delta, says nothing.
_SURE: Final = 0.5
# A guess that is known no better than this, in position, is none.
_CONFIRMED: Final = 0.05
_LEAST: Final = -700.0
# A lattice that knows epsilon to about so much, and how near the limit it is asked for.
_ROUGH: Final = 0.02
_ROUGHLY: Final = 0.01
# Newton's steps on the saddle: how many, which ones are too long to trust, which ones are the last.
_STEPS: Final = 8
_TRUSTED: Final = 1.0
_SETTLED: Final = 1e-3


@dataclass(slots=True)
class InitialGuess:
    """ln delta at the epsilon asked for, less the one asked for, of plans along an axis.

    ``uphill`` positions grow towards what costs more. Which direction costs more is settled at the
    first one; ``log_c`` remembers the last saddle, from which the next one is near.
    """

    axis: Axis
    epsilon: float
    delta: float
    after: Callable[[Mechanism], Mechanism]
    worst: int | None = None
    log_c: float = 1.5

    @property
    def log_delta(self) -> float:
        """Ln of the delta asked for."""
        return math.log(self.delta)

    def composition(self, uphill: float) -> Composition:
        """Return the composition of the plan at a position."""
        x = self.axis.at(-self.axis.safer * uphill)
        return composition_of(self.after(self.axis.make(x)), "auto")

    def terms(self, uphill: float) -> Terms:
        """Return the losses of the direction that costs more, at a position."""
        directions = self.composition(uphill).directions
        if self.worst is None:
            sizes = [self._by_saddle(terms) for terms in directions]
            self.worst = sizes.index(max(sizes))
        return directions[min(self.worst, len(directions) - 1)]

    def by_saddle(self, uphill: float) -> float:
        """Return the estimate by the saddle-point formula."""
        return self._by_saddle(self.terms(uphill))

    def _by_saddle(self, terms: Terms) -> float:
        """Return the estimate of one direction."""
        if not terms:
            return _LEAST
        c = self._newton(terms) or saddle(terms, self.epsilon)
        self.log_c = math.log(c)
        epsilon, log_delta = saddle_log_delta(terms, c)
        # The slope of ln delta in epsilon is -c, to first order.
        return log_delta + (epsilon - self.epsilon) * c - self.log_delta

    def _newton(self, terms: Terms) -> float | None:
        """Return the saddle by Newton's steps in its logarithm; None where they do not settle."""
        log_c = self.log_c
        for _ in range(_STEPS):
            c = math.exp(log_c)
            k = total(terms, c)
            rise = c * k.second_derivative + 1.0 / c + c / ((1.0 + c) * (1.0 + c))
            step = (k.first_derivative - self.epsilon - 1.0 / c - 1.0 / (1.0 + c)) / rise
            if not abs(step) < _TRUSTED:
                return None
            log_c -= step
            if abs(step) < _SETTLED:
                return math.exp(log_c)
        return None

    def by_contour(self, uphill: float) -> tuple[float, float] | None:
        """Return the estimate by a contour integral and its error; None where none is cheap."""
        from hockeystick.accountants.contour.search import integral_for_epsilon

        lines = Contour().analytic_terms(self.terms(uphill))
        found = integral_for_epsilon(lines, self.epsilon, quick=True) if lines else None
        value = None if found is None else found.integral.delta(self.epsilon)
        if value is None or not value.relative_error < _SURE:
            return None
        return value.log("estimate") - self.log_delta, value.relative_error

    def by_lattice(self, uphill: float) -> float:
        """Return ln of epsilon over the one asked for, by a coarse lattice."""
        from hockeystick.accountants.prv import PRV

        found = PRV(tolerance=_ROUGH).epsilon(self.composition(uphill), self.delta).upper
        return math.log(found / self.epsilon) if found else -math.inf

    def guess(self, start: float) -> float:
        """Return where the saddle-point formula has the limit."""
        position = -self.axis.safer * self.axis.position(start)
        return increasing_root(
            self.by_saddle, position, stride=_STRIDE, tolerance=_COARSE, farthest=_LARGEST_LOG
        )


def initial_guess(
    axis: Axis, goal: EpsilonGoal, after: Callable[[Mechanism], Mechanism], tolerance: float
) -> tuple[float, float] | None:
    """Return where the limit seems to be, and how well that is known; None where nothing says so.

    The second number is a distance in position; it is a guess as well.
    """
    if not (0.0 < goal.delta < 1.0 and goal.limit < math.inf):
        return None
    search = InitialGuess(axis, goal.limit, goal.delta, after)
    try:
        near = search.guess(axis.start())
        slope = (search.by_saddle(near + 2.0**-8) - search.by_saddle(near - 2.0**-8)) * 2.0**7
        if not 0.0 < slope < math.inf:
            return None
        return _polished(search, near, slope, tolerance) or _by_lattices(search, near)
    except (HockeystickError, ArithmeticError, ValueError):
        return None


def _by_lattices(search: InitialGuess, near: float) -> tuple[float, float]:
    """Return the position by coarse lattices, and about how well it is known."""
    found = increasing_root(
        search.by_lattice, near, stride=_STRIDE, tolerance=_ROUGHLY, farthest=_LARGEST_LOG
    )
    return -search.axis.safer * found, _ROUGHLY


def _polished(
    search: InitialGuess, near: float, slope: float, tolerance: float
) -> tuple[float, float] | None:
    """Return the position by secants on the contour integral, and how well it is known.

    None where no integral confirms what the saddle-point formula says: with few runs it can be far
    off.
    """
    known, before = math.inf, None
    for _ in range(_ROUNDS):
        found = search.by_contour(near)
        if found is None:
            break
        value, error = found
        if before is not None and near != before[0]:
            slope = (value - before[1]) / (near - before[0])
        if not 0.0 < slope < math.inf:
            break
        moved = -value / slope
        # A secant's error is about the product of its ends' distances from the root.
        known = abs(moved) * (abs(moved) if before is None else abs(near - before[0]) + abs(moved))
        known += error / slope
        before, near = (near, value), near + moved
        if known < 0.05 * tolerance:
            break
    return (-search.axis.safer * near, known) if known < _CONFIRMED else None
