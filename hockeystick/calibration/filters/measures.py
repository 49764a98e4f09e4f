"""Additive measures: the cost of a mechanism, and the limit that a budget sets on their sum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final, Self, TypeAlias, final

from hockeystick._validate import WordEnum
from hockeystick.calibration.filters.costs import (
    NOTHING,
    delta_of,
    divergence_of,
    epsilon_of,
    largest_loss,
    mu_square_of,
    rho_of,
    sum_over_parts,
    truncated_rho_of,
    without_failure,
)
from hockeystick.calibration.session.runs import Costs
from hockeystick.conversions.convert import convert
from hockeystick.conversions.theorems import bun_steinke, steinke_rho
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics import decimal, float_above, float_below
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import as_mpf
from hockeystick.numerics.working_precision import working_digits

Rounding: TypeAlias = Callable[[Fraction], float]

_ROOT_DIGITS: Final = 50
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


@dataclass(frozen=True, slots=True)
class AdditiveMeasure(ABC):
    """Costs that add up over adaptively chosen releases, and the limits on their sums."""

    limits: Costs

    @abstractmethod
    def cost(self, mechanism: Mechanism) -> Costs:
        """Return the cost of one run of a mechanism."""

    def lowered(self, limits: Costs) -> Self:
        """Return the measure with the lower one of both limits for each."""
        return replace(self, limits=tuple(map(min, self.limits, limits)))

    def covers(self, spent: Costs) -> bool:
        """Return whether the sums of the costs are within their limits."""
        return all(sum_ <= limit for sum_, limit in zip(spent, self.limits, strict=True))

    @abstractmethod
    def guarantee(self, spent: Costs) -> Notion:
        """Return a sum of costs as a guarantee, rounded up."""

    @abstractmethod
    def remaining(self, spent: Costs) -> Notion:
        """Return the largest guarantee that one more step may have, rounded down."""


@final
@dataclass(frozen=True, slots=True)
class Sums(AdditiveMeasure):
    """Numbers of the parts that add up; ``notion`` makes a guarantee of them, rounded."""

    of_part: tuple[Callable[[Mechanism], Fraction], ...]
    notion: Callable[[Costs, Rounding], Notion]

    def cost(self, mechanism: Mechanism) -> Costs:
        return tuple(sum_over_parts(mechanism, of_part) for of_part in self.of_part)

    def guarantee(self, spent: Costs) -> Notion:
        return self.notion(spent, float_above)

    def remaining(self, spent: Costs) -> Notion:
        left = tuple(limit - sum_ for limit, sum_ in zip(self.limits, spent, strict=True))
        return self.notion(left, float_below)


def additive_measure(budget: Notion, slack: float | None, rule: Rule | None) -> AdditiveMeasure:
    """Return the additive measure of a budget."""
    match budget:
        case RenyiDP():
            kept = [(order, limit) for order, limit in budget.divergences if limit < math.inf]
            orders = [order for order, _ in kept]
            return Sums(
                tuple(decimal(limit) for _, limit in kept),
                tuple(partial(divergence_of, order=order) for order in orders),
                lambda sums, rounded: RenyiDP(list(zip(orders, map(rounded, sums), strict=True))),
            )
        case ZCDP():
            return _of_one(budget.rho, rho_of, ZCDP)
        case TCDP():
            omega = budget.omega
            part = partial(truncated_rho_of, omega=omega)
            return _of_one(budget.rho, part, lambda rho: TCDP(rho, omega))
        case GDP():
            return Sums((decimal(budget.mu) ** 2,), (mu_square_of,), _gdp)
        case PureDP():
            return _of_one(budget.epsilon, epsilon_of, PureDP)
        case ApproxDP():
            return approx_dp_measure(budget, slack or 0.0, rule or Rule.CONCENTRATED)
        case _:
            raise IncompatibleError(
                f"no filter is known for a {budget}; use RenyiDP, ZCDP, TCDP, GDP, PureDP or "
                "ApproxDP"
            )


def _of_one(
    limit: float, of_part: Callable[[Mechanism], Fraction], notion: Callable[[float], Notion]
) -> Sums:
    """Return the measure of one number, of which a notion is made."""
    return Sums((decimal(limit),), (of_part,), lambda sums, rounded: notion(rounded(sums[0])))


def _gdp(squares: Costs, rounded: Rounding) -> GDP:
    """Return the guarantee of a sum of squares of mu: its root, rounded."""
    square = max(squares[0], NOTHING)
    mu = root(square)
    if rounded is float_above:
        while mu < math.inf and decimal(mu) ** 2 < square:
            mu = math.nextafter(mu, math.inf)
    else:
        while decimal(mu) ** 2 > square:
            mu = math.nextafter(mu, 0.0)
    return GDP(mu)


def root(value: Fraction) -> float:
    """Return the root of a number >= 0, to about the last bit."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(_ROOT_DIGITS):
        return float(mp.sqrt(as_mpf(value)))


@final
@dataclass(frozen=True, slots=True)
class ApproxDPMeasure(AdditiveMeasure):
    """The costs ``(losses, unbounded, rho, delta)`` of an (epsilon, delta) budget.

    ``losses`` adds up the largest losses of those parts that have one, ``unbounded`` counts the
    others. The limits are those of losses, of rho and of the releases' own deltas; ``slack`` is the
    part of delta that the conversion of rho may take.
    """

    slack: Fraction
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
        largest = largest_loss(kept)
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

    def covers(self, spent: Costs) -> bool:
        """Return whether the deltas are within their limit, and the losses or rho within theirs."""
        losses, unbounded, rho, delta = spent
        epsilon, most_rho, failures = self.limits
        bounded = unbounded == 0 and losses <= epsilon
        return delta <= failures and (bounded or rho <= most_rho)

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
        epsilon, most_rho, failures = self.limits
        pure = float_below(epsilon - losses) if unbounded == 0 else 0.0
        nearly = self._largest_epsilon(most_rho - rho) if delta <= failures else 0.0
        return ApproxDP(max(pure, nearly), float_below(failures - delta))

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


def largest_losses(mechanism: Mechanism) -> tuple[Fraction, Fraction]:
    """Return the sum of the largest losses of those parts that have one, and how many have none."""
    sums, unbounded = NOTHING, NOTHING
    for part, count in runs_of(mechanism):
        largest = largest_loss(without_failure(part))
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
    return ApproxDPMeasure((decimal(budget.epsilon), limit, delta - kept), kept, rule)


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
