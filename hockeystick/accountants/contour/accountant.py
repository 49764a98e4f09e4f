"""The accountant on top of the contour integral.

Losses known between two pairs, an attained and a dominating one, both with an analytic cgf.

Under replace-one adjacency, say, each of many runs has the larger loss of both directions, which
no data set attains in all of them. The composition of dominating pairs dominates that of the plan,
which dominates that of attained pairs (Zhu, Dong and Wang 2022, theorem 10): epsilon and delta are
at most those of the former and at least those of the latter.

Gaussian-smoothed bounds, for plans whose transform does not decay along a line.

Let ``delta_w`` belong to the plan and one release more, of a Gaussian of ``mu = w``. Releasing more
never costs less, so that ``delta <= delta_w``. And with R the likelihood ratio under Q and
``x = e^eps``, ``delta_w`` is the mean over R of the Black-Scholes price of a call of strike x and
volatility w, whose second derivative in w is at least ``-(w/4) sqrt(R x / 2 pi) exp(-m^2/2w^2)``,
``m = ln(R/x)``; integrated twice,

    delta >= 2 delta_w - delta_2w - w^3/10 E_P[exp(-m/2 - m^2/8w^2)],

and the last mean is at most ``exp(K(c) - c eps + 2 w^2 (c + 1/2)^2)``. Both are off by about
``w^2 c (c+1)``, relative to delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, final

import numpy as np

from hockeystick.accountants.base import (
    TOLERANCE,
    DirectedAccountant,
    Interval,
    Kind,
    Many,
    SettledInterval,
    worse,
)
from hockeystick.accountants.closed_form import closed_delta_upper, dominating_closed_form
from hockeystick.accountants.contour._far_outputs import AnalyticTerms, ContourTarget
from hockeystick.accountants.contour._integral import (
    MOST_RELATIVE_ERROR,
    Integral,
    choose_contour,
    integrate,
    rules_for,
)
from hockeystick.accountants.contour.search import (
    LineGuess,
    integral_for_delta,
    integral_for_epsilon,
    upper_log_delta,
)
from hockeystick.accountants.rdp import RDP, optimal_order, optimal_order_at, saddle
from hockeystick.numerics import down, log_readings, up
from hockeystick.numerics.roots import falling_crossing
from hockeystick.numerics.rounding import OUTWARD_8, OUTWARD_32
from hockeystick.privacy_loss import (
    AnalyticLoss,
    Composition,
    GaussianLoss,
    GaussianSequenceLoss,
    Terms,
    expanded,
    largest_loss,
)
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.composition import Lines, total

if TYPE_CHECKING:
    from hockeystick.results import Quantity

# Ends of this relative width are as sharp as those of a fine lattice.
_SHARP: Final = 1e-6
# A transform that falls by less than exp of this, far out, has no end that is sharp: the unproven
# estimate by which no line is sought in vain.
_LEAST_DECAY: Final = 20.0
_FAR_OUT: Final = 1e6


class AnalyticPairs(NamedTuple):
    """The attained and the dominating losses of one direction, with their counts."""

    attained: Terms
    dominating: Terms

    @classmethod
    def of(cls, terms: Terms) -> AnalyticPairs | None:
        """Return the pairs; None where they are the same, or one has no analytic cgf.

        A loss that has one of its own is exact.
        """
        if all(isinstance(loss, AnalyticLoss) for loss, _ in terms):
            return None
        known = ((one if isinstance(one, AnalyticLoss) else one.attained, n) for one, n in terms)
        attained = tuple((found, n) for one, n in known if one and (found := one.analytic))
        dominating = tuple((found, n) for one, n in terms if (found := one.analytic))
        sharp = len(attained) == len(dominating) == len(terms)
        return cls(attained, dominating) if sharp else None

    def decay(self, order: float) -> float:
        """Return by how much the dominating transform falls far out, in its logarithm."""
        losses = [(one, n) for loss, n in self.dominating if (one := loss.analytic)]
        if not all(one.quadrature_available(order) for one, _ in losses):
            return 0.0
        return math.fsum(n * one.decay(order).exponent(_FAR_OUT) for one, n in losses)


def _is_sharp(interval: Interval) -> bool:
    """Return whether no effort would change an end by much."""
    return interval.upper < math.inf and interval.is_narrow(_SHARP)


# Beyond this epsilon only the monotonicity of delta is used.
_LARGEST_EPSILON: Final = 1e6
# Natural logarithm of a delta below all floats.
_LEAST_LOG_DELTA: Final = -760.0


@final
@dataclass(frozen=True)
class Contour(DirectedAccountant):
    """The exact answer, as an interval whose every error is bounded.

    Aliasing is bounded by Chernoff's inequality at a second and a third order, the truncation by a
    uniform minorant of the tilted density, the quadrature by the integrand's size on a strip, and
    round-off by counting operations. Where that takes too long a line, the interval is that of
    Renyi divergences and of the single run that costs most; unless ``smooths`` is False, it is then
    narrowed by Gaussian smoothing, which may take seconds. A guess of the line proves nothing; it
    saves ``delta`` some time.

    References:
        Alghamdi, Gomez, Asoodeh, Calmon, Kosut and Sankar, "The Saddle-Point Method in Differential
        Privacy", ICML 2023, theorem 3.1 (delta as one integral); the bounds of its errors are this
        package's own.
    """

    tolerance: float = TOLERANCE
    smooths: bool = True
    guess: LineGuess | None = None
    name: ClassVar[str] = "contour"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "exact contour integral with all errors bounded"
    has_digits: ClassVar[bool] = True

    def within(self, tolerance: float) -> Contour:
        return Contour(tolerance, self.smooths, self.guess)

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        """Return the larger of the two directions; the other alone if one is provably smaller."""
        lines = composition.analytic
        if not lines or not all(lines):
            return super().epsilon(composition, delta)
        found = self._epsilon_along(lines[0], lines[0], delta)
        if len(lines) == 1 or self._is_below(lines[1], found.lower, log_readings(delta)[0]):
            return found
        # At 0 the divergence is the total variation distance, that of (P, Q) and of (Q, P).
        if found.upper == 0.0 and tuple((one.opposite, n) for one, n in lines[0]) == lines[1]:
            return found
        return worse([found, self._epsilon_along(lines[1], lines[1], delta)])

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        """Return the larger of the two directions; the other alone if one is provably smaller."""
        lines = composition.analytic
        if not lines or not 0.0 < epsilon < _LARGEST_EPSILON:
            return super().delta(composition, epsilon)
        found = self.delta_of(lines[0], epsilon)
        if len(lines) == 1 or (
            found.lower > 0.0 and self._is_below(lines[1], epsilon, math.log(found.lower))
        ):
            return found
        return worse([found, self.delta_of(lines[1], epsilon)])

    def many(self, composition: Composition, quantity: Quantity, values: Sequence[float]) -> Many:
        both = composition.analytic
        if len(both) < 2 or not all(both):
            return {}
        from hockeystick.accountants.contour.many import are_below, deltas_of, epsilons_of

        asked = np.array(sorted(set(values)))
        if quantity == "epsilon":
            ends = epsilons_of(both[0], asked)
            epsilons, log_deltas = ends[0], np.log(asked * (1.0 - OUTWARD_8))
        else:
            ends = deltas_of(both[0], asked, _LEAST_LOG_DELTA)
            with np.errstate(divide="ignore"):
                epsilons, log_deltas = asked, np.log(ends[0])
        known = np.flatnonzero(np.isfinite(log_deltas) & np.isfinite(epsilons))
        below = epsilons[known] >= largest_loss(both[1])
        below |= are_below(both[1], epsilons[known], log_deltas[known])
        return {
            float(asked[k]): (self, Interval(*map(float, ends[:, k])).ordered())
            for k in known[below]
        }

    def _is_below(self, terms: Lines, epsilon: float, log_delta: float) -> bool:
        """Return whether one direction's delta at an epsilon is proven to be below, by one line."""
        if epsilon >= largest_loss(terms):
            return True
        return epsilon > 0.0 and upper_log_delta(terms, epsilon, log_delta) < log_delta

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        pairs = AnalyticPairs.of(terms)
        if pairs and not dominating_closed_form(terms):
            order = optimal_order(pairs.dominating, math.log(delta))
            return self._between(pairs, order, lambda one: _QUICK.epsilon_of(one, delta))
        return self._epsilon_along(terms, self.analytic_terms(terms), delta)

    def _epsilon_along(self, terms: Terms, lines: AnalyticTerms, delta: float) -> Interval:
        """Return epsilon by the losses' lines; by Renyi divergences where these are too long."""
        found = integral_for_delta(lines, math.log(delta)) if lines else None
        proven = found and found.integral.epsilon_interval(found.epsilon, delta)
        if proven is None and (one_by_one := expanded(terms)) != terms:
            return self.epsilon_of(one_by_one, delta)
        bound = proven or RDP().epsilon_of(terms, delta)
        if not lines or not self.smooths or bound.is_narrow(self.tolerance):
            return bound
        smoothed = smoothed_epsilon(lines, delta, self.tolerance)
        return smoothed.within(bound) if smoothed else bound

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        pairs = AnalyticPairs.of(terms)
        if pairs and closed_delta_upper(terms, epsilon) == math.inf:
            order = optimal_order_at(pairs.dominating, epsilon)
            ends = self._between(pairs, order, lambda one: _QUICK.delta_of(one, epsilon))
            return ends._replace(estimate=0.5 * (ends.lower + ends.upper))
        lines = self.analytic_terms(terms)
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        least, guess = _LEAST_LOG_DELTA, self.guess
        found = integral_for_epsilon(lines, epsilon, least=least, guess=guess) if lines else None
        value = found and found.integral.delta(epsilon)
        if value is None and (one_by_one := expanded(terms)) != terms:
            return self.delta_of(one_by_one, epsilon)
        if value is None or not value.relative_error <= MOST_RELATIVE_ERROR:
            return self._narrowed(RDP().delta_of(terms, epsilon), lines, epsilon)
        return self._narrowed(value.interval, lines, epsilon)

    def _between(
        self, pairs: AnalyticPairs, order: float, read: Callable[[Terms], Interval]
    ) -> Interval:
        """Return the interval between both pairs; ``order`` is about the upper one's best."""
        if pairs.decay(order) >= _LEAST_DECAY:
            upper = read(pairs.dominating)
            lower = read(pairs.attained) if _is_sharp(upper) else upper
            if _is_sharp(lower):
                return SettledInterval(lower.lower, upper.upper, upper.upper)
        raise self.refuse("the plan", "the transform of a pair that dominates it hardly decays")

    def _narrowed(self, bound: Interval, lines: AnalyticTerms, epsilon: float) -> Interval:
        """Return delta of one direction: the bound if it is narrow, else smoothed within it."""
        if not lines or not self.smooths or bound.is_narrow(self.tolerance):
            return bound
        smoothed = smoothed_delta(lines, epsilon, self.tolerance)
        return smoothed.within(bound) if smoothed else bound

    def digits(
        self, composition: Composition, quantity: Quantity, value: float, digits: int
    ) -> Interval:
        from hockeystick.accountants.contour._digits import digits_of

        found = []
        for terms in map(expanded, composition.directions):
            if any(isinstance(loss, GaussianSequenceLoss) for loss, _ in terms):
                raise self.refuse("the plan", "this many levels of noise take too long one by one")
            if quantity == "delta" and value >= largest_loss(terms):
                found.append(Interval.point(0.0))
                continue
            lines = self.analytic_terms(terms)
            if not lines:
                raise self.refuse("the plan", "its noise or rate is out of reach of the quadrature")
            answer = digits_of(lines, quantity, value, digits)
            if answer is None:
                if quantity != "epsilon" or self.epsilon_of(terms, value).upper != 0.0:
                    raise self.refuse("the plan", f"{digits} digits take too long; ask for fewer")
                answer = Interval.point(0.0)
            found.append(answer)
        return worse(found)

    def analytic_terms(self, terms: Terms) -> AnalyticTerms:
        """Return the terms as losses with a line, or nothing where one is out of reach."""
        lines = []
        for loss, count in terms:
            if not isinstance(loss, AnalyticLoss):
                reason = "the transform of one of its parts is not known on vertical lines"
                raise self.refuse(type(loss).__name__, reason)
            lines.append((loss, count))
        return () if any(loss.out_of_range for loss, _ in lines) else tuple(lines)


_QUICK: Final = Contour(smooths=False)


# The largest width of the smoothing in units of 1/c, the most nodes, and the most terms summed.
_LARGEST_WIDTH: Final = 0.1
_MOST_NODES: Final = 1_500_000
_MOST_WORK: Final = 300_000_000
# The largest order that a line is chosen at.
_LARGEST_ORDER: Final = 1e8
# Each error of an integral, relative to that of the smoothing.
_QUADRATURE_SHARE: Final = 0.01
_FIRST_ERROR: Final = 1e-2
_LAST_ERRORS: Final = (1.0, 0.1, 0.01)


@dataclass(frozen=True)
class Smoothed:
    """The plan with a Gaussian of ``mu = w`` more, and with one of twice as much."""

    width: float
    once: Integral
    twice: Integral

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ln delta."""
        return _log_upper(self.once, epsilon) + self._slack(epsilon)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ln delta; -inf for none."""
        one, two = self.once.delta(epsilon).log("lower"), _log_upper(self.twice, epsilon)
        if not -math.inf < one <= two < math.inf:
            return -math.inf
        rest = self._log_remainder(epsilon)
        value = 2.0 - math.exp(min(two - one, 1.0)) - math.exp(min(rest - one, 1.0))
        value -= OUTWARD_32 * (abs(one) + 4.0)
        return one + math.log(value) - self._slack(epsilon) if value > 0.0 else -math.inf

    def _log_remainder(self, epsilon: float) -> float:
        """Return ln of the bound ``w^3/10 E[...]`` of the remainder."""
        c, w = self.once.line.c, self.width
        cgf = float(self.once.real[0] + self.once.error[0])
        return cgf - c * epsilon + math.log(0.1 * w**3) + 2.0 * (w * (c + 0.5)) ** 2

    def _slack(self, epsilon: float) -> float:
        """Return a bound of the round-off of the logarithms."""
        scale = abs(float(self.once.real[0])) + self.once.line.c * epsilon
        return OUTWARD_32 * (scale + 4.0)


def smoothed_delta(terms: AnalyticTerms, epsilon: float, tolerance: float) -> Interval | None:
    """Return delta to about a relative width, None where that takes too long a line."""
    order = optimal_order_at(terms, epsilon)
    log_delta = total(terms, order).value - order * epsilon + log_cks_factor(order)
    found: Interval | None = None
    for delta_error in _delta_errors(tolerance):
        pair = _smoothed(terms, epsilon, log_delta, delta_error)
        if pair is None:
            return found
        lower, upper = pair.lower(epsilon), pair.upper(epsilon)
        if not upper < math.inf:
            return found
        ends = down(math.exp(min(lower, 0.0))), min(up(math.exp(min(upper, 0.0))), 1.0)
        new = Interval(ends[0], 0.5 * (ends[0] + ends[1]), ends[1])
        found = new if found is None else new.within(found)
        if found.relative_width <= tolerance:
            return found
        log_delta = upper
    return found


def smoothed_epsilon(terms: AnalyticTerms, delta: float, tolerance: float) -> Interval | None:
    """Return epsilon to about a relative width, None where that takes too long a line."""
    log_delta = math.log(delta)
    order = optimal_order(terms, log_delta)
    epsilon = (total(terms, order).value - log_delta + log_cks_factor(order)) / order
    if epsilon <= 0.0:
        return None
    found: Interval | None = None
    for delta_error in _delta_errors(tolerance):
        gain = max(order * epsilon, 1.0)
        pair = _smoothed(terms, epsilon, log_delta, min(delta_error * gain, _FIRST_ERROR))
        new = pair and _smoothed_ends(pair, epsilon, delta)
        if not new:
            return found
        found = new if found is None else new.within(found)
        if found.relative_width <= tolerance:
            return found
        epsilon = found.upper
    return found


def _delta_errors(tolerance: float) -> tuple[float, ...]:
    """Return the relative errors of delta to aim for in turn, up to the tolerance and below."""
    between = math.sqrt(_FIRST_ERROR * tolerance)
    return (_FIRST_ERROR, between, *(share * tolerance for share in _LAST_ERRORS))


def _smoothed(
    terms: AnalyticTerms, epsilon: float, log_delta: float, delta_error: float
) -> Smoothed | None:
    """Return both integrals, for about a relative error of delta; None if they take too long."""
    c = saddle(terms, epsilon)
    if c > _LARGEST_ORDER:
        return None
    # A width that is a short fraction makes the added noise an exact number.
    width = min(math.sqrt(delta_error / (3.0 * c * (c + 1.0))), _LARGEST_WIDTH / c)
    accuracy = -math.log(_QUADRATURE_SHARE * delta_error)
    integrals = []
    for factor in (1, 2):
        added = GaussianLoss(1 / (factor * Fraction(width)))
        both = (*terms, (added, 1))
        target = ContourTarget(epsilon, log_delta, accuracy)
        line = choose_contour(both, saddle(both, epsilon), target, _MOST_NODES)
        rules = line and rules_for(both, line, target)
        if not line or not rules or line.last * sum(one.nodes for one in rules) > _MOST_WORK:
            return None
        integrals.append(integrate(both, line, rules))
    return Smoothed(width, *integrals)


def _log_upper(integral: Integral, epsilon: float) -> float:
    found = integral.delta(epsilon)
    return found.log("upper") if 0.0 < found.upper < math.inf else math.inf


def _smoothed_ends(pair: Smoothed, guess: float, delta: float) -> Interval | None:
    least, most = log_readings(delta)
    slack = OUTWARD_32 * (abs(least) + 4.0)
    if pair.upper(0.0) <= least - slack:
        return Interval.point(0.0)
    near = {"stride": 0.1 / pair.once.line.c, "tolerance": 1e-15 * guess}
    upper = falling_crossing(lambda eps: pair.upper(eps) - least + slack, guess, 1.0, **near)
    lower = falling_crossing(lambda eps: pair.lower(eps) - most - slack, guess, -1.0, **near)
    return Interval(lower, upper, upper) if upper < math.inf else None
