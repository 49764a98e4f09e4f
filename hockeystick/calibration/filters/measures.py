"""Additive measures: the cost of a mechanism, and the limit that a budget sets on their sum.

Costs are exact fractions. Numbers that are given mean the decimals that they print as, so that ten
times 0.1 is 1; orders are what they are as floats, and what is computed is rounded up.

Budgets of (epsilon, delta) kept at one Renyi order, which an expected plan chooses.

Let ``S_t(c)`` be the sum of the divergences of order 1 + c of the releases so far, each the largest
of both directions, and L_t the loss of all of them. Given the past, ``E exp(c L)`` of the next
release is at most ``exp(c tau)`` with its divergence tau, so that ``exp(c (L_t - S_t(c)))`` is a
supermartingale from 1, whatever chooses mechanisms, their parameters and the time T to stop. Where
``S_T(c) <= B`` always,

    delta(eps) <= E (1 - e^(eps - L_T))_+ <= sup_l (1 - e^(eps - l))_+ e^(-c (l - B)),

which is Canonne, Kamath and Steinke's ``exp(c (B - eps)) c^c / (1+c)^(1+c)``: B is the limit where
this is the slack.

**No curve of orders is better.** Let a filter keep ``S(c_j) <= B_j`` at several orders, and prove
its delta by weights, as ``E f(L_T) <= slack`` with ``f(l) = slack sum_j w_j e^(c_j (l - B_j))``,
where the w_j add up to 1 and ``f(l) >= (1 - e^(eps - l))_+``. Then ln f is convex and
``ln(1 - e^(eps - l))_+`` concave, so that some line ``c (l - B) + ln slack`` lies between them:
c is a mean ``sum t_j c_j``, and ``c B >= sum t_j c_j B_j + sum t_j ln(t_j / w_j)``. That line
proves that B at the single order 1 + c is (eps, slack)-DP; and since ``c S(c)`` is convex in c,
whatever the curve admits has ``c S(c) <= sum t_j c_j B_j <= c B``: the single order admits it too.

**The order must be fixed in advance.** To go on while *some* order is within its own limit is no
guarantee: outputs then choose which one. ``tests/calibration/filters/test_adversaries.py`` has an
adversary that spends 1.3 times the slack.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final, Self, TypeAlias, final

from hockeystick._validate import WordEnum
from hockeystick.calibration.session.runs import Costs
from hockeystick.conversions import by_losses
from hockeystick.conversions.convert import convert
from hockeystick.conversions.theorems import bun_steinke, canonne_kamath_steinke, steinke_rho
from hockeystick.errors import HockeystickError, IncompatibleError, ParameterError
from hockeystick.mechanisms import Gaussian, Laplace, Mechanism, RandomizedResponse, runs_of
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics import decimal, float_above, float_below, largest_reading
from hockeystick.numerics.multiprecision import working_digits
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import as_mpf, short_up
from hockeystick.privacy_loss.bounds.moments import log_cks_factor

NOTHING: Final = Fraction(0)


def sum_over_parts(mechanism: Mechanism, of_part: Callable[[Mechanism], Fraction]) -> Fraction:
    """Return the sum of the costs of a plan's parts."""
    return sum((of_part(part) * count for part, count in runs_of(mechanism)), NOTHING)


def epsilon_of(part: Mechanism) -> Fraction:
    """Return the largest loss of one run."""
    if isinstance(part, PureDP | RandomizedResponse):
        return decimal(_finite(part.epsilon, part, "PureDP"))
    if isinstance(part, Laplace):
        _finite(math.inf if part.scale == 0.0 else 0.0, part, "PureDP")
        return NOTHING if math.isinf(part.scale) else short_up(1 / decimal(part.scale))
    return largest_reading(convert(part, PureDP).epsilon)


def largest_loss(part: Mechanism) -> Fraction | None:
    """Return the largest loss of one run, None where there is none."""
    try:
        return epsilon_of(part)
    except IncompatibleError:
        return None


def rho_of(part: Mechanism) -> Fraction:
    """Return the rho of one run: the exact sum over its losses, or else by conversion."""
    if isinstance(part, ZCDP):
        return decimal(_finite(part.rho, part, "ZCDP"))
    known = None if isinstance(part, PureDP | ApproxDP) else by_losses.rho_of(part)
    return largest_reading(convert(part, ZCDP).rho) if known is None else short_up(known.value)


def mu_square_of(part: Mechanism) -> Fraction:
    """Return the square of the mu of one run: the exact sum over its losses, or by conversion."""
    known = by_losses.mu_square_of(part)
    return largest_reading(convert(part, GDP).mu) ** 2 if known is None else short_up(known.value)


def divergence_of(part: Mechanism, order: float) -> Fraction:
    """Return the Renyi divergence of one run, the larger one of both directions."""
    if isinstance(part, Gaussian | GDP | ZCDP):
        return rho_of(part) * Fraction(order)
    given = math.inf
    if isinstance(part, RenyiDP):
        given = dict(part.divergences).get(order, math.inf)
    if given < math.inf:
        return decimal(given)
    ((_, divergence),) = convert(part, RenyiDP, orders=order).divergences
    return largest_reading(divergence)


def truncated_rho_of(part: Mechanism, omega: float) -> Fraction:
    """Return the rho of one run for orders up to omega."""
    if isinstance(part, Gaussian | GDP | ZCDP):
        return rho_of(part)
    if isinstance(part, TCDP) and part.omega >= omega:
        return decimal(_finite(part.rho, part, "TCDP"))
    return largest_reading(convert(part, TCDP, omega=omega).rho)


def delta_of(part: Mechanism) -> Fraction:
    """Return the delta of one run: 0 unless it states one."""
    return decimal(part.delta) if isinstance(part, ApproxDP) else NOTHING


def without_failure(part: Mechanism) -> Mechanism:
    """Return a mechanism without its delta."""
    return PureDP(part.epsilon) if isinstance(part, ApproxDP) else part


def divergence_without_failure(part: Mechanism, order: float) -> Fraction:
    """Return the divergence of one run of a part, of an (epsilon, delta) one without its delta."""
    return divergence_of(without_failure(part), order)


def _finite(value: float, part: Mechanism, notion: str) -> float:
    if value == math.inf:
        raise IncompatibleError(
            f"no {notion} is proven to follow from a {part}: it allows everything"
        )
    return value


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
    return Sums((decimal(limit),), (of_part,), lambda sums, rounded: notion(rounded(sums[0])))


def _gdp(squares: Costs, rounded: Rounding) -> GDP:
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
        kept = without_failure(part)
        largest = largest_loss(kept)
        if isinstance(kept, PureDP) and largest is not None:
            return largest, NOTHING, self._rho_of_epsilon(largest), delta_of(part)
        unbounded = Fraction(1) if largest is None else NOTHING
        return largest or NOTHING, unbounded, rho_of(kept), delta_of(part)

    def _rho_of_epsilon(self, epsilon: Fraction) -> Fraction:
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
        losses, unbounded, rho, delta = spent
        pure = float_above(losses) if unbounded == 0 else math.inf
        nearly = math.inf if self.slack == 0 else self._epsilon_of_rho(rho)
        if pure <= nearly:
            return ApproxDP(pure, min(float_above(delta), 1.0))
        return ApproxDP(nearly, min(float_above(delta + self.slack), 1.0))

    def _epsilon_of_rho(self, rho: Fraction) -> float:
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
    kept = decimal(slack)
    limit = _LIMIT[rule](budget.epsilon, slack) if budget.epsilon and slack else NOTHING
    delta = decimal(budget.delta)
    return ApproxDPMeasure((decimal(budget.epsilon), limit, delta - kept), kept, rule)


def _whitehouse_limit(epsilon: float, slack: float) -> Fraction:
    """Return the rho at which ``rho + 2 sqrt(rho ln(1/slack))`` is epsilon, rounded down."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(_DIGITS):
        own, log = as_mpf(decimal(epsilon)), -mp.log(as_mpf(decimal(slack)))
        return _exactly((own / (mp.sqrt(own + log) + mp.sqrt(log))) ** 2) * _KEPT


def _exactly(value: Any) -> Fraction:
    mantissa, exponent = value.man_exp
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


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
    return convert(ZCDP(rho), ApproxDP, delta=delta).epsilon


def _inverse_of_steinke(rho: float) -> float:
    def excess(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        return math.log(epsilon * math.tanh(0.5 * epsilon) / rho)

    guess = 0.5 * math.log(2.0 * rho)
    return math.exp(increasing_root(excess, guess, tolerance=1e-15, farthest=700.0))


def _below(value: float) -> float:
    return math.nextafter(value, 0.0)


_LIMIT: Final = {Rule.CONCENTRATED: _concentrated_limit, Rule.WHITEHOUSE: _whitehouse_limit}
_EPSILON: Final[dict[Rule, Callable[[float, float], float]]] = {
    Rule.CONCENTRATED: _by_orders,
    Rule.WHITEHOUSE: lambda rho, delta: bun_steinke(rho, delta=delta),
}


# The same, relative to its largest term.
_LOST: Final = Fraction(1, 2**150)
# fmt: off
CANDIDATES: Final = (
    1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0, 4.5,
    5.0, 5.5, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 14.0, 16.0, 18.0, 20.0, 24.0, 28.0, 32.0, 40.0,
    48.0, 56.0, 64.0, 80.0, 96.0, 128.0, 192.0, 256.0, 512.0, 1024.0, 4096.0,
)
# fmt: on
# How often the interval around the best candidate is halved, and the digits of what is tried there.
_HALVINGS: Final = 3
_ORDER_DIGITS: Final = 5
_SOME_ORDER: Final = "larger: at no Renyi order does the slack leave any of it"


@final
@dataclass(frozen=True, slots=True)
class OneOrderMeasure(AdditiveMeasure):
    """The costs ``(divergence, delta)`` of an (epsilon, delta) budget at one Renyi order.

    The divergences of the releases, without their failures, add up to at most the divergence that
    is (epsilon, slack)-DP by Canonne, Kamath and Steinke, and the deltas to at most the rest.
    """

    order: float
    slack: Fraction

    def cost(self, mechanism: Mechanism) -> Costs:
        divergence = partial(divergence_without_failure, order=self.order)
        return sum_over_parts(mechanism, divergence), sum_over_parts(mechanism, delta_of)

    def guarantee(self, spent: Costs) -> ApproxDP:
        divergence, delta = float_above(spent[0]), spent[1]
        if divergence == 0.0:
            return ApproxDP(0.0, min(float_above(delta), 1.0))
        slack = float_below(self.slack)
        epsilon = canonne_kamath_steinke(self.order, divergence, delta=slack)
        return ApproxDP(epsilon, min(float_above(delta + self.slack), 1.0))

    def remaining(self, spent: Costs) -> RenyiDP:
        most, failures = self.limits
        left = float_below(most - spent[0]) if spent[1] <= failures else 0.0
        return RenyiDP([(self.order, left)])


def one_order_measure(budget: ApproxDP, slack: float, order: float) -> OneOrderMeasure:
    """Return the measure of an (epsilon, delta) budget at an order."""
    most = divergence_limit(budget.epsilon, slack, order)
    if most is None:
        raise ParameterError("budget", budget, _SOME_ORDER)
    kept = decimal(slack)
    return OneOrderMeasure((most, decimal(budget.delta) - kept), order, kept)


def expected_order(plan: Mechanism, budget: ApproxDP, slack: float) -> float:
    """Return the order at which the budget covers an expected plan most often."""

    def shares_at(orders: Iterable[float]) -> dict[float, Fraction]:
        limits = {order: divergence_limit(budget.epsilon, slack, order) for order in orders}
        known = {order: limit for order, limit in limits.items() if limit is not None}
        return {order: cost / known[order] for order, cost in divergences_at(plan, known).items()}

    shares = shares_at(CANDIDATES)
    if not shares:
        raise ParameterError("budget", ApproxDP(budget.epsilon, slack), _SOME_ORDER)
    best = min(shares, key=lambda order: shares[order])
    for _ in range(_HALVINGS):
        tried = sorted(shares)
        place = tried.index(best)
        beside = (tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)])
        between = [float(f"{0.5 * (best + other):.{_ORDER_DIGITS}g}") for other in beside]
        shares |= shares_at((best, *between))
        best = min(shares, key=lambda order: shares[order])
    return best


def divergences_at(plan: Mechanism, orders: Iterable[float]) -> dict[float, Fraction]:
    """Return the divergences of a plan at the orders where it has one; raise if it has none."""
    found: dict[float, Fraction] = {}
    refusal: HockeystickError | None = None
    for order in orders:
        try:
            found[order] = sum_over_parts(plan, partial(divergence_without_failure, order=order))
        except HockeystickError as error:
            refusal = error
    if not found and refusal is not None:
        raise refusal
    return found


def expected_slack(plan: Mechanism, budget: ApproxDP) -> float:
    """Return the part of delta that an expected plan's own failures leave."""
    failures = sum_over_parts(plan, delta_of)
    if failures == 0 and budget.delta > 0.0:
        return budget.delta
    left = float_below(decimal(budget.delta) - failures)
    if left <= 0.0:
        raise ParameterError("expected", plan, "a plan whose own deltas leave some of the budget's")
    return left


def divergence_limit(epsilon: float, slack: float, order: float) -> Fraction | None:
    """Return the divergence that is (epsilon, slack)-DP, rounded down; None where there is none.

    By ``canonne_kamath_steinke``, ``tau = eps - (ln((a-1)^(a-1) / a^a) - ln slack) / (a-1)``; a
    term that is below 0 is left out.
    """
    from hockeystick.numerics.multiprecision import mp

    if slack == 0.0:
        return None
    with working_digits(_DIGITS):
        c = mp.mpf(order) - 1
        log_slack, factor = mp.log(as_mpf(decimal(slack))), log_cks_factor(c, mp)
        paid = _exactly(max((factor - log_slack) / c, mp.zero))
        size = float((abs(factor) + abs(log_slack)) / c)
    found = decimal(epsilon) - paid - (Fraction(size) + decimal(epsilon)) * _LOST
    return found if found > 0 else None
