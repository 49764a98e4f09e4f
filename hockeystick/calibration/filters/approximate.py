"""Budgets of (epsilon, delta): adaptive releases bounded by their sums of epsilon and of rho."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Self, final

from hockeystick._validate import WordEnum
from hockeystick.calibration.filters.costs import (
    NOTHING,
    delta_of,
    epsilon_of,
    rho_of,
    without_failure,
)
from hockeystick.calibration.filters.measures import AdditiveMeasure, root
from hockeystick.calibration.session.runs import Costs
from hockeystick.conversions.convert import convert
from hockeystick.conversions.theorems import bun_steinke, steinke_rho
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.notions import ZCDP, ApproxDP, PureDP
from hockeystick.numerics import decimal, float_above, float_below
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import as_mpf
from hockeystick.numerics.working_precision import working_digits

_DIGITS: Final = 60
# What mpmath may lose in a formula of a few operations, relative to its value, with room to spare.
_KEPT: Final = 1 - Fraction(1, 2**150)
_CLOSE: Final = 1e-12
# Up to this rho, eps tanh(eps/2) is eps^2 / 2 but for one part in 10^12.
_NEGLIGIBLE: Final = 1e-12
# Beyond this epsilon the closed form is all that is asked of a rule.
_LARGEST_EPSILON: Final = 1e12


class Rule(WordEnum):
    """How a budget of (epsilon, delta) is made one of rho.

    - ``CONCENTRATED`` ("concentrated"): epsilon-DP has ``rho = eps tanh(eps/2)``, and the limit is
      the largest rho that ``hs.convert`` proves to be (epsilon, slack)-DP.
    - ``WHITEHOUSE`` ("whitehouse"): the published closed form: ``rho = eps^2 / 2``, and the limit
      is where ``rho + 2 sqrt(rho ln(1/slack))`` is epsilon.
    """

    CONCENTRATED = "concentrated"
    WHITEHOUSE = "whitehouse"


@final
@dataclass(frozen=True, slots=True)
class ApproxDPMeasure(AdditiveMeasure):
    """The costs ``(losses, unbounded, rho, delta)`` of an (epsilon, delta) budget.

    ``losses`` adds up the largest losses of those parts that have one, ``unbounded`` counts the
    others; ``slack`` is the part of delta that the conversion of rho may take, ``failures`` that
    of the releases' own deltas, ``most_rho`` the limit of rho.
    """

    epsilon: Fraction
    slack: Fraction
    failures: Fraction
    most_rho: Fraction
    rule: Rule

    def cost(self, mechanism: Mechanism) -> Costs:
        sums = [NOTHING] * 4
        for part, count in runs_of(mechanism):
            for k, cost in enumerate(self._of_part(part)):
                sums[k] += cost * count
        return tuple(sums)

    def _of_part(self, part: Mechanism) -> Costs:
        """Return the amounts of one part."""
        kept = without_failure(part)
        largest = _largest_loss(kept)
        if isinstance(kept, PureDP) and largest is not None:
            return largest, NOTHING, self._rho_of_epsilon(largest), delta_of(part)
        rho = rho_of(kept)
        if largest is None:
            return NOTHING, Fraction(1), rho, delta_of(part)
        return largest, NOTHING, rho, delta_of(part)

    def _rho_of_epsilon(self, epsilon: Fraction) -> Fraction:
        """Return the rho of pure privacy."""
        square = epsilon * epsilon / 2
        if self.rule is Rule.WHITEHOUSE:
            return square
        # the next float up is above the decimal that is meant
        above = math.nextafter(float(epsilon), math.inf) if epsilon else 0.0
        return min(square, Fraction(steinke_rho(above)))

    @property
    def limits(self) -> Costs:
        return self.epsilon, self.most_rho, self.failures

    def lowered(self, limits: Costs) -> Self:
        """Return the measure with the lower one of both limits for each."""
        losses, rho, delta = map(min, zip(self.limits, limits, strict=True))
        return replace(self, epsilon=losses, most_rho=rho, failures=delta)

    def covers(self, spent: Costs) -> bool:
        """Return whether the deltas are within their limit, and the losses or rho within theirs."""
        losses, unbounded, rho, delta = spent
        bounded = unbounded == 0 and losses <= self.epsilon
        return delta <= self.failures and (bounded or rho <= self.most_rho)

    def guarantee(self, spent: Costs) -> ApproxDP:
        """Return the guarantee of a plan with these costs, by its losses or by its rho."""
        losses, unbounded, rho, delta = spent
        pure = float_above(losses) if unbounded == 0 else math.inf
        nearly = math.inf if self.slack == 0 else self._epsilon_of_rho(rho)
        if pure <= nearly:
            return ApproxDP(pure, min(float_above(delta), 1.0))
        return ApproxDP(nearly, min(float_above(delta + self.slack), 1.0))

    def _epsilon_of_rho(self, rho: Fraction) -> float:
        """Return the epsilon that the rule proves at the slack, rounded up."""
        above = float_above(rho)
        if above in (0.0, math.inf):
            return above
        return _EPSILON[self.rule](above, _below(float(self.slack)))

    def remaining(self, spent: Costs) -> ApproxDP:
        """Return the largest epsilon that one more release may have, and the largest delta."""
        losses, unbounded, rho, delta = spent
        left = max(self.failures - delta, NOTHING)
        pure = float_below(self.epsilon - losses) if unbounded == 0 else 0.0
        nearly = self._largest_epsilon(self.most_rho - rho) if delta <= self.failures else 0.0
        return ApproxDP(max(pure, nearly), float_below(left))

    def _largest_epsilon(self, rho: Fraction) -> float:
        """Return a large epsilon whose rho is at most this one."""
        if rho <= 0:
            return 0.0
        found = root(2 * rho)
        if self.rule is Rule.CONCENTRATED and float(rho) > _NEGLIGIBLE:
            found = max(found, _inverse_of_steinke(float(rho)))
        while self._rho_of_epsilon(decimal(found)) > rho:
            found = math.nextafter(found * (1.0 - 2.0**-50), 0.0)
        return found


def _largest_loss(part: Mechanism) -> Fraction | None:
    """Return the largest loss of one run, None where there is none."""
    try:
        return epsilon_of(part)
    except IncompatibleError:
        return None


def largest_losses(mechanism: Mechanism) -> tuple[Fraction, Fraction]:
    """Return the sum of the largest losses of those parts that have one, and how many have none."""
    sums, unbounded = NOTHING, NOTHING
    for part, count in runs_of(mechanism):
        largest = _largest_loss(without_failure(part))
        if largest is None:
            unbounded += count
        else:
            sums += largest * count
    return sums, unbounded


def approx_dp_measure(budget: ApproxDP, slack: float, rule: Rule) -> ApproxDPMeasure:
    """Return the additive measure of an (epsilon, delta) budget."""
    delta = decimal(budget.delta)
    kept = decimal(slack)
    limit = _LIMIT[rule](budget.epsilon, slack) if budget.epsilon and slack else NOTHING
    return ApproxDPMeasure(decimal(budget.epsilon), kept, delta - kept, limit, rule)


def _whitehouse_limit(epsilon: float, slack: float) -> Fraction:
    """Return the rho at which ``rho + 2 sqrt(rho ln(1/slack))`` is epsilon, rounded down."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(_DIGITS):
        own, log = as_mpf(decimal(epsilon)), -mp.log(as_mpf(decimal(slack)))
        rho = (own / (mp.sqrt(own + log) + mp.sqrt(log))) ** 2
        mantissa, exponent = rho.man_exp
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * _KEPT


def _concentrated_limit(epsilon: float, slack: float) -> Fraction:
    """Return about the largest rho that is proven to be (epsilon, slack)-DP, rounded down."""
    goal, delta = _below(epsilon), _below(slack)
    least = _whitehouse_limit(epsilon, slack)

    def excess(log_rho: float) -> float:
        found = _by_orders(math.exp(log_rho), delta)
        return math.log(found / goal) if found else -math.inf

    if not 0.0 < float(least) or goal == 0.0 or delta == 0.0 or goal > _LARGEST_EPSILON:
        return least
    start = math.log(float(least))
    rho = math.exp(increasing_root(excess, start, stride=0.1, tolerance=_CLOSE))
    while _by_orders(rho, delta) > goal:
        rho *= 1.0 - _CLOSE
    return max(least, decimal(math.nextafter(rho, 0.0)))


def _by_orders(rho: float, delta: float) -> float:
    """Return the least epsilon that is proven of rho-zCDP, rounded up."""
    return convert(ZCDP(rho), ApproxDP, delta=delta).epsilon


def _by_bun_steinke(rho: float, delta: float) -> float:
    """Return the epsilon of Bun and Steinke, rounded up."""
    return bun_steinke(rho, delta=delta)


def _inverse_of_steinke(rho: float) -> float:
    """Return about the epsilon with ``eps tanh(eps/2) = rho``."""

    def excess(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        return math.log(epsilon * math.tanh(0.5 * epsilon) / rho)

    guess = 0.5 * math.log(2.0 * rho)
    return math.exp(increasing_root(excess, guess, tolerance=1e-15, farthest=700.0))


def _below(value: float) -> float:
    """Return the next float down, which is below the decimal that is meant."""
    return math.nextafter(value, 0.0)


_LIMIT: Final = {Rule.CONCENTRATED: _concentrated_limit, Rule.WHITEHOUSE: _whitehouse_limit}
_EPSILON: Final[dict[Rule, Callable[[float, float], float]]] = {
    Rule.CONCENTRATED: _by_orders,
    Rule.WHITEHOUSE: _by_bun_steinke,
}
