"""An initial guess, unproven, by the saddle-point formula and the contour integral or a lattice.

No answer depends on it; it saves the search most of its proven evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from hockeystick.accountants.base import composition_of
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.rdp import saddle, saddle_log_delta
from hockeystick.calibration.solve.fields import Parameter
from hockeystick.calibration.solve.targets import EpsilonConstraint
from hockeystick.errors import HockeystickError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss import AnalyticLoss, Composition, Terms
from hockeystick.privacy_loss.core.composition import total

if TYPE_CHECKING:
    from hockeystick.accountants.contour.search import LineGuess

Estimate: TypeAlias = Callable[[Terms], float]
Point: TypeAlias = tuple[float, float]

_STRIDE: Final = 0.5
_COARSE: Final = 1e-4
_LARGEST_LOG: Final = 60.0
# By how much all runs may exceed one kind of run alone, in ln delta by two formulas, where that is
# to be the start, and the excess that is left.
_FAR_EXCESS: Final = 12.0
_LARGEST_EXCESS: Final = 4.0
_FAIR: Final = 0.1
# Half the distance of the two ends of a difference.
_APART: Final = 2.0**-8
_ROUNDS: Final = 7
# What is left to gain by another secant, over the tolerance or the error of the integral.
_SHARE: Final = 0.05
# The largest relative error of an integral that is used.
_MOST_RELATIVE_ERROR: Final = 0.5
# The largest of one that may end the search at once.
_FINE_ERROR: Final = 1e-8
# The largest uncertainty, in position, of a guess by contour integrals.
_LARGEST_UNCERTAINTY: Final = 0.05
_LEAST: Final = -700.0
# The tolerance of a coarse lattice, and that of the position found by it.
_LATTICE_TOLERANCE: Final = 0.02
_POSITION_TOLERANCE: Final = 0.01
# Newton's method for the saddle: the most steps, the longest one, and the length that ends it.
_STEPS: Final = 8
_LONGEST_STEP: Final = 1.0
_LAST_STEP: Final = 1e-3


class Guess(NamedTuple):
    """Where a limit is, with an estimate of the error, the direction that counts and its line."""

    position: float
    error: float
    direction: int = 0
    line: LineGuess | None = None


@dataclass(slots=True)
class InitialGuess:
    """ln delta at the target's epsilon, less the target's, as the parameter of a plan changes.

    A ``position`` here has the sign with which the plan's epsilon increases. ``estimate`` is the
    formula in use and ``worst`` the direction of the larger delta; ``log_c`` is the last saddle,
    where the next begins; ``line`` is that of the last contour integral.
    """

    parameter: Parameter
    epsilon: float
    delta: float
    with_spent: Callable[[Mechanism], Mechanism]
    estimate: Estimate | None = None
    worst: int = 0
    log_c: float = 1.5
    line: LineGuess | None = None

    @property
    def log_delta(self) -> float:
        """Ln of the delta asked for."""
        return math.log(self.delta)

    def composition(self, position: float) -> Composition:
        """Return the composition of the plan at a position."""
        x = self.parameter.at(-self.parameter.safer * position)
        return composition_of(self.with_spent(self.parameter.make(x)), "auto")

    def terms(self, position: float) -> Terms:
        """Return the losses of the direction that costs more, at a position."""
        directions = self.composition(position).directions
        return directions[min(self.worst, len(directions) - 1)]

    def by_formula(self, position: float) -> float:
        """Return the estimate by the formula in use."""
        return (self.estimate or self.by_saddle)(self.terms(position))

    def by_saddle(self, terms: Terms) -> float:
        """Return the estimate of one direction by the saddle-point formula."""
        if not terms:
            return _LEAST
        c = self._newton(terms) or saddle(terms, self.epsilon)
        self.log_c = math.log(c)
        epsilon, log_delta = saddle_log_delta(terms, c)
        # The derivative of ln delta in epsilon is -c, to first order.
        return log_delta + (epsilon - self.epsilon) * c - self.log_delta

    def _newton(self, terms: Terms) -> float | None:
        """Return the saddle by Newton's method in its logarithm; None if that does not converge."""
        log_c = self.log_c
        for _ in range(_STEPS):
            c = math.exp(log_c)
            k = total(terms, c)
            second = c * k.second_derivative + 1.0 / c + c / ((1.0 + c) * (1.0 + c))
            step = (k.first_derivative - self.epsilon - 1.0 / c - 1.0 / (1.0 + c)) / second
            if not abs(step) < _LONGEST_STEP:
                return None
            log_c -= step
            if abs(step) < _LAST_STEP:
                return math.exp(log_c)
        return None

    def by_single_run(self, terms: Terms) -> float:
        """Return the estimate of one direction by the run that costs most, times its count."""
        from hockeystick.accountants.contour.search import single_run_log_delta

        lines = Contour().analytic_terms(terms)
        return max(single_run_log_delta(lines, self.epsilon), _LEAST) - self.log_delta

    def by_outputs(self, terms: Terms) -> float:
        """Return the same, or without the outputs that delta hardly sees where that is more."""
        from hockeystick.accountants.contour.search import log_delta_without_far_mode

        lines = Contour().analytic_terms(terms)
        if not lines:
            return math.inf
        return log_delta_without_far_mode(lines, self.epsilon, 0.0) - self.log_delta

    def by_contour(self, position: float) -> tuple[float, float] | None:
        """Return the estimate by a contour integral and its error; None where none is cheap."""
        from hockeystick.accountants.contour.search import LineGuess, integral_for_epsilon

        terms = self.terms(position)
        lines, quick = Contour().analytic_terms(terms), not _has_far_outputs(terms)
        line = self.line or LineGuess(self.log_delta, rough=True)
        found = None
        if lines:
            found = integral_for_epsilon(lines, self.epsilon, quick=quick, guess=line)
        if found is None:
            return None
        value = found.integral.delta(self.epsilon)
        if not value.relative_error < _MOST_RELATIVE_ERROR:
            return None
        self.line = found.guess(self.log_delta)
        return value.log("estimate") - self.log_delta, value.relative_error

    def by_lattice(self, position: float) -> float:
        """Return ln of epsilon over the one asked for, by a coarse lattice."""
        from hockeystick.accountants.prv import PRV

        found = (
            PRV(tolerance=_LATTICE_TOLERANCE).epsilon(self.composition(position), self.delta).upper
        )
        return math.log(found / self.epsilon) if found else -math.inf

    def guess(self, start: float) -> float:
        """Return the position of the limit by the first formula that holds there."""
        first = -self.parameter.safer * self.parameter.position(start)
        near = self._single_run_root(first)
        if near is None:
            near = self._root(self.by_saddle, first)
            nowhere = abs(near) >= _LARGEST_LOG
            if nowhere or self._is_saddle_poor(near):
                near = self._root(self.by_outputs, first if nowhere else near)
        return near

    def _single_run_root(self, first: float) -> float | None:
        """Return about the limit by runs alone; None where all have much more than one has."""
        if not any(map(_has_far_outputs, self.composition(first).directions)):
            return None
        near = self._root(self.by_single_run, first)
        if abs(near) >= _LARGEST_LOG:
            return None
        if self.by_saddle(self.terms(near)) > _FAR_EXCESS and not self._is_saddle_poor(near):
            return None
        slope = self.derivative(near)
        for _ in range(_STEPS):
            excess = self.by_outputs(self.terms(near))
            if abs(excess) < _FAIR:
                return near
            if not abs(excess) < _LARGEST_EXCESS or not slope > 0.0:
                break
            near -= excess / slope
        return None

    def derivative(self, position: float) -> float:
        """Return the derivative of the formula in use."""
        return (self.by_formula(position + _APART) - self.by_formula(position - _APART)) / (
            2.0 * _APART
        )

    def _is_saddle_poor(self, position: float) -> bool:
        from hockeystick.accountants.contour.search import is_formula_poor

        return is_formula_poor(Contour().analytic_terms(self.terms(position)), self.epsilon)

    def _root(self, estimate: Estimate, near: float) -> float:
        self.estimate = estimate
        for again in (False, True):
            sizes = [estimate(terms) for terms in self.composition(near).directions]
            worst = sizes.index(max(sizes))
            if again and worst == self.worst:
                break
            self.worst = worst
            near = increasing_root(
                self.by_formula, near, stride=_STRIDE, tolerance=_COARSE, farthest=_LARGEST_LOG
            )
        return near


def initial_guess(
    parameter: Parameter,
    constraint: EpsilonConstraint,
    with_spent: Callable[[Mechanism], Mechanism],
    tolerance: float,
) -> Guess | None:
    """Return a guess of the position of the limit; None where there is none."""
    if not (0.0 < constraint.delta < 1.0 and constraint.limit < math.inf):
        return None
    search = InitialGuess(parameter, constraint.limit, constraint.delta, with_spent)
    try:
        near = search.guess(parameter.start())
        derivative = search.derivative(near)
        if not 0.0 < derivative < math.inf:
            return None
        return _by_secants(search, near, derivative, tolerance) or _by_lattices(search, near)
    except (HockeystickError, ArithmeticError, ValueError):
        return None


def _has_far_outputs(terms: Terms) -> bool:
    """Return whether an output of a loss may be rare and count all the same."""
    return any(
        isinstance(loss, AnalyticLoss) and loss.far_mode(1.0)[1] > -math.inf for loss, _ in terms
    )


def _by_lattices(search: InitialGuess, near: float) -> Guess:
    found = increasing_root(
        search.by_lattice,
        near,
        stride=_STRIDE,
        tolerance=_POSITION_TOLERANCE,
        farthest=_LARGEST_LOG,
    )
    return Guess(-search.parameter.safer * found, _POSITION_TOLERANCE, search.worst)


def _by_secants(
    search: InitialGuess, near: float, derivative: float, tolerance: float
) -> Guess | None:
    """Return the position by interpolating contour integrals; None where none confirms it."""
    uncertainty, points = math.inf, list[Point]()
    for _ in range(_ROUNDS):
        found = search.by_contour(near)
        if found is None:
            break
        value, error = found
        if points and points[-1][0] != near:
            derivative = (value - points[-1][1]) / (near - points[-1][0])
        if not 0.0 < derivative < math.inf:
            break
        points = _falling([*points, (near, value)])
        change = _change(points) if len(points) > 1 else -value / derivative
        # The error is about the product of the points' distances from the root.
        missing = math.prod(abs(near + change - one) for one, _ in points)
        missing *= abs(change) if len(points) == 1 else 1.0
        uncertainty = missing + error / derivative
        near += change
        # The first integral is mostly a rough one.
        first = len(points) == 1
        if uncertainty < _SHARE * tolerance and not (first and error > _FINE_ERROR):
            break
        if not first and missing < _SHARE * error / derivative:
            break
    if not uncertainty < _LARGEST_UNCERTAINTY:
        return None
    return Guess(-search.parameter.safer * near, uncertainty, search.worst, search.line)


def _falling(points: list[Point]) -> list[Point]:
    sizes = [abs(value) for _, value in points[-3:]]
    falls = all(before > 2.0 * after for before, after in pairwise(sizes))
    return points[-3:] if falls else points[-2:]


def _change(points: list[Point]) -> float:
    """Return how far from the last point the root is, the position a polynomial in the value."""
    near = points[-1][0]
    return math.fsum(
        (x - near) * math.prod(other / (other - value) for _, other in points if other != value)
        for x, value in points[:-1]
    )
