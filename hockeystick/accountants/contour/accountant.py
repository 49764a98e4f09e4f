"""The accountant on top of the contour integral."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, final

import numpy as np

from hockeystick.accountants.base import TOLERANCE, DirectedAccountant, Interval, Kind, Many, worse
from hockeystick.accountants.closed_form import are_dominated_by_closed_form, closed_delta_upper
from hockeystick.accountants.contour.ways import AnalyticPairs
from hockeystick.accountants.orders import optimal_order, optimal_order_at
from hockeystick.accountants.rdp import RDP
from hockeystick.numerics import down, log_readings, up
from hockeystick.privacy_loss import (
    AnalyticLoss,
    Composition,
    GaussianSequenceLoss,
    Terms,
    expanded,
    largest_loss,
)

if TYPE_CHECKING:
    from hockeystick.accountants.contour._integral import Integral
    from hockeystick.accountants.contour._line import AnalyticTerms
    from hockeystick.accountants.contour.ways import LineGuess
    from hockeystick.results import Quantity

# The largest relative error of delta with which an integral is used instead of Renyi bounds.
_MOST_RELATIVE_ERROR: Final = 0.5
_OUTWARD: Final = 2.0**-50
_TRIES: Final = 12
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
        first, *rest = composition.directions
        if not rest or not self._is_plain(composition):
            return super().epsilon(composition, delta)
        found = self.epsilon_of(first, delta)
        # At 0 the divergence is the total variation distance, that of (P, Q) and of (Q, P).
        if found.upper == 0.0 and _are_opposite(first, rest[0]):
            return found
        if self._is_below(rest[0], found.lower, log_readings(delta)[0]):
            return found
        return worse([found, self.epsilon_of(rest[0], delta)])

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        """Return the larger of the two directions; the other alone if one is provably smaller."""
        first, *rest = composition.directions
        if not rest or not self._is_plain(composition) or not 0.0 < epsilon < _LARGEST_EPSILON:
            return super().delta(composition, epsilon)
        found = self.delta_of(first, epsilon)
        if found.lower > 0.0 and self._is_below(rest[0], epsilon, math.log(found.lower)):
            return found
        return worse([found, self.delta_of(rest[0], epsilon)])

    def many(self, composition: Composition, quantity: Quantity, values: Sequence[float]) -> Many:
        """Return those answers of one direction that few integrals give, the other being below."""
        first, *rest = composition.directions
        if not rest or not self._is_plain(composition):
            return {}
        both = [self.analytic_terms(one) for one in (first, *rest)]
        if not all(both):
            return {}
        from hockeystick.accountants.contour._digits import are_below, deltas_of, epsilons_of

        asked = np.array(sorted(set(values)))
        if quantity == "epsilon":
            ends = epsilons_of(both[0], asked)
            epsilons, log_deltas = ends[0], np.log(asked * (1.0 - _OUTWARD))
        else:
            ends = deltas_of(both[0], asked, _LEAST_LOG_DELTA)
            with np.errstate(divide="ignore"):
                epsilons, log_deltas = asked, np.log(ends[0])
        known = np.flatnonzero(np.isfinite(log_deltas) & np.isfinite(epsilons))
        below = epsilons[known] >= largest_loss(rest[0])
        below |= are_below(both[1], epsilons[known], log_deltas[known])
        return {
            float(asked[k]): (self, Interval(*map(float, ends[:, k])).ordered())
            for k in known[below]
        }

    def _is_plain(self, composition: Composition) -> bool:
        """Return whether all losses have an analytic cgf, with nothing to be split off."""
        both = (*composition.removing, *composition.adding)
        return all(isinstance(loss, AnalyticLoss) and not loss.out_of_range for loss, _ in both)

    def _is_below(self, terms: Terms, epsilon: float, log_delta: float) -> bool:
        """Return whether one direction's delta at an epsilon is proven to be below, by one line."""
        from hockeystick.accountants.contour.search import upper_log_delta

        if epsilon >= largest_loss(terms):
            return True
        lines = self.analytic_terms(terms)
        return epsilon > 0.0 and upper_log_delta(lines, epsilon, log_delta) < log_delta

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        pairs = AnalyticPairs.of(terms)
        if pairs and not are_dominated_by_closed_form(terms):
            order = optimal_order(pairs.dominating, math.log(delta))
            return self._between(pairs, order, lambda one: _QUICK.epsilon_of(one, delta))
        from hockeystick.accountants.contour.search import integral_for_delta

        lines = self.analytic_terms(terms)
        found = integral_for_delta(lines, math.log(delta)) if lines else None
        proven = found and _epsilon_interval(found.integral, found.epsilon, delta)
        one_by_one = expanded(terms)
        if proven is None and one_by_one != terms:
            return self.epsilon_of(one_by_one, delta)
        bound = proven or RDP().epsilon_of(terms, delta)
        if not lines or not self.smooths or bound.is_narrow(self.tolerance):
            return bound
        from hockeystick.accountants.contour.ways import smoothed_epsilon

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
        from hockeystick.accountants.contour.search import integral_for_epsilon

        found = None
        if lines:
            least = _LEAST_LOG_DELTA
            found = integral_for_epsilon(lines, epsilon, least=least, guess=self.guess)
        value = None if found is None else found.integral.delta(epsilon)
        one_by_one = expanded(terms)
        if value is None and one_by_one != terms:
            return self.delta_of(one_by_one, epsilon)
        if value is None or not value.relative_error <= _MOST_RELATIVE_ERROR:
            return self._narrowed(RDP().delta_of(terms, epsilon), lines, epsilon)
        lower, middle, upper = (value.log(end) for end in ("lower", "estimate", "upper"))
        slack = _OUTWARD * (abs(value.log_scale) + 4.0)
        proven = Interval(
            down(math.exp(lower - slack)),
            min(math.exp(middle), 1.0),
            min(up(math.exp(upper + slack)), 1.0),
        ).ordered()
        return self._narrowed(proven, lines, epsilon)

    def _between(
        self, pairs: AnalyticPairs, order: float, read: Callable[[Terms], Interval]
    ) -> Interval:
        """Return the interval between an attained and a dominating pair, or raise."""
        found = pairs.between(order, read)
        if found is None:
            raise self.refuse("the plan", "the transform of a pair that dominates it hardly decays")
        return found

    def _narrowed(self, bound: Interval, lines: AnalyticTerms, epsilon: float) -> Interval:
        """Return delta of one direction: the bound if it is narrow, else smoothed within it."""
        if not lines or not self.smooths or bound.is_narrow(self.tolerance):
            return bound
        from hockeystick.accountants.contour.ways import smoothed_delta

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
            if (
                answer is None
                and quantity == "epsilon"
                and self.epsilon_of(terms, value).upper == 0.0
            ):
                answer = Interval.point(0.0)
            if answer is None:
                raise self.refuse("the plan", f"{digits} digits take too long; ask for fewer")
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


def _are_opposite(terms: Terms, others: Terms) -> bool:
    """Return whether the one are the losses of (P, Q) and the others, in order, of (Q, P)."""
    return tuple((loss.opposite, count) for loss, count in terms) == tuple(others)


def _epsilon_interval(integral: Integral, estimate: float, delta: float) -> Interval | None:
    """Return the proven interval around an estimated epsilon, or None where nothing is proven."""
    least, most = log_readings(delta)
    slack = _OUTWARD * (abs(least) + 4.0)
    here = integral.delta(estimate)
    if here.relative_error > _MOST_RELATIVE_ERROR or here.derivative >= 0.0:
        return None
    margin = (here.relative_error + slack + (most - least)) * here.estimate / -here.derivative
    margin += 4.0 * _OUTWARD * estimate
    for _ in range(_TRIES):
        upper, lower = estimate + margin, max(estimate - margin, 0.0)
        if estimate == 0.0 and here.log("upper") <= least - slack:
            upper = 0.0
        high, low = integral.each(upper, lower)
        if high.log("upper") <= least - slack and (
            lower == 0.0 or low.log("lower") >= most + slack
        ):
            return Interval(lower, estimate, upper)
        margin *= 1.5
    return None
