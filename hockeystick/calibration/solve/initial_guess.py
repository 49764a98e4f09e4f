"""An initial guess, unproven, by the saddle-point formula and the contour integral or a lattice.

No answer depends on it; it saves the search most of its proven evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.orders import saddle, saddle_log_delta
from hockeystick.calibration.solve.constraints import EpsilonConstraint
from hockeystick.calibration.solve.parameter import Parameter
from hockeystick.errors import HockeystickError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss import Composition, Terms
from hockeystick.privacy_loss.core.terms import total

_STRIDE: Final = 0.5
_COARSE: Final = 1e-4
_FAIR: Final = 5e-3
_LARGEST_LOG: Final = 60.0
_ROUNDS: Final = 7
# The largest relative error of an integral that is used.
_MOST_RELATIVE_ERROR: Final = 0.5
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


@dataclass(slots=True)
class InitialGuess:
    """ln delta at the target's epsilon, less the target's, as the parameter of a plan changes.

    A ``position`` here has the sign with which the plan's epsilon increases. The direction of the
    larger delta is chosen at the first one; ``log_c`` is the last saddle, where the next begins;
    ``few_hits`` says that the saddle-point formula is poor at the limit.
    """

    parameter: Parameter
    epsilon: float
    delta: float
    with_spent: Callable[[Mechanism], Mechanism]
    worst: int | None = None
    log_c: float = 1.5
    few_hits: bool = False

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
        if self.worst is None:
            sizes = [self._by_saddle(terms) for terms in directions]
            self.worst = sizes.index(max(sizes))
        return directions[min(self.worst, len(directions) - 1)]

    def by_saddle(self, position: float) -> float:
        """Return the estimate by the saddle-point formula."""
        return self._by_saddle(self.terms(position))

    def _by_saddle(self, terms: Terms) -> float:
        """Return the estimate of one direction."""
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

    def by_contour(self, position: float) -> tuple[float, float] | None:
        """Return the estimate by a contour integral and its error; None where none is cheap."""
        from hockeystick.accountants.contour.search import integral_for_epsilon

        lines = Contour().analytic_terms(self.terms(position))
        found = lines and integral_for_epsilon(
            lines, self.epsilon, quick=not self.few_hits, guess=self.log_delta
        )
        value = None if not found else found.integral.delta(self.epsilon)
        if value is None or not value.relative_error < _MOST_RELATIVE_ERROR:
            return None
        return value.log("estimate") - self.log_delta, value.relative_error

    def by_lattice(self, position: float) -> float:
        """Return ln of epsilon over the one asked for, by a coarse lattice."""
        from hockeystick.accountants.prv import PRV

        found = (
            PRV(tolerance=_LATTICE_TOLERANCE).epsilon(self.composition(position), self.delta).upper
        )
        return math.log(found / self.epsilon) if found else -math.inf

    def by_outputs(self, position: float) -> float:
        """Return ln of epsilon over the one asked for, by the accountant's own first guess."""
        from hockeystick.accountants.contour.search import guess_for_delta

        lines = Contour().analytic_terms(self.terms(position))
        found = guess_for_delta(lines, self.log_delta) if lines else math.inf
        return math.log(found / self.epsilon) if found else -math.inf

    def guess(self, start: float) -> float:
        """Return the position of the limit by the saddle-point formula, or where it fails another.

        The direction that costs more is chosen anew once the limit is about known.
        """
        from hockeystick.accountants.contour.search import is_formula_poor

        first = near = -self.parameter.safer * self.parameter.position(start)
        for _ in range(2):
            self.worst = None
            near = increasing_root(
                self.by_saddle, near, stride=_STRIDE, tolerance=_COARSE, farthest=_LARGEST_LOG
            )
        lines = Contour().analytic_terms(self.terms(near))
        nowhere = abs(near) >= _LARGEST_LOG
        self.few_hits = nowhere or is_formula_poor(lines, self.epsilon)
        if not self.few_hits:
            return near
        return increasing_root(
            self.by_outputs,
            first if nowhere else near,
            stride=_STRIDE,
            tolerance=_FAIR,
            farthest=_LARGEST_LOG,
        )


def initial_guess(
    parameter: Parameter,
    constraint: EpsilonConstraint,
    with_spent: Callable[[Mechanism], Mechanism],
    tolerance: float,
) -> tuple[float, float] | None:
    """Return a guess of the position of the limit and of its error; None where there is none."""
    if not (0.0 < constraint.delta < 1.0 and constraint.limit < math.inf):
        return None
    search = InitialGuess(parameter, constraint.limit, constraint.delta, with_spent)
    try:
        near = search.guess(parameter.start())
        derivative = (search.by_saddle(near + 2.0**-8) - search.by_saddle(near - 2.0**-8)) * 2.0**7
        if not 0.0 < derivative < math.inf:
            return None
        return _by_secants(search, near, derivative, tolerance) or _by_lattices(search, near)
    except (HockeystickError, ArithmeticError, ValueError):
        return None


def _by_lattices(search: InitialGuess, near: float) -> tuple[float, float]:
    """Return the position by coarse lattices, and an estimate of its error."""
    found = increasing_root(
        search.by_lattice,
        near,
        stride=_STRIDE,
        tolerance=_POSITION_TOLERANCE,
        farthest=_LARGEST_LOG,
    )
    return -search.parameter.safer * found, _POSITION_TOLERANCE


def _by_secants(
    search: InitialGuess, near: float, derivative: float, tolerance: float
) -> tuple[float, float] | None:
    """Return the position by secants on the contour integral, and an estimate of its error.

    None where no integral confirms the saddle-point formula, which can be far off for few runs.
    """
    uncertainty, before = math.inf, None
    for _ in range(_ROUNDS):
        found = search.by_contour(near)
        if found is None:
            break
        value, error = found
        if before is not None and near != before[0]:
            derivative = (value - before[1]) / (near - before[0])
        if not 0.0 < derivative < math.inf:
            break
        change = -value / derivative
        # A secant's error is about the product of its ends' distances from the root.
        uncertainty = abs(change) * (
            abs(change) if before is None else abs(near - before[0]) + abs(change)
        )
        uncertainty += error / derivative
        before, near = (near, value), near + change
        if uncertainty < 0.05 * tolerance:
            break
    return (
        (-search.parameter.safer * near, uncertainty)
        if uncertainty < _LARGEST_UNCERTAINTY
        else None
    )
