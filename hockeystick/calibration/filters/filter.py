"""Filters: budgets that are never overspent, also by releases chosen as one goes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Self, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.calibration.filters.measures import (
    AdditiveMeasure,
    Rule,
    additive_measure,
    expected_order,
    expected_slack,
    one_order_measure,
)
from hockeystick.calibration.session.runs import EVALUATING, Costs, Recorder, Runs, unrolled
from hockeystick.conversions.convert import strength
from hockeystick.errors import BudgetExhausted, ParameterError
from hockeystick.io.codec import describe, read_description
from hockeystick.mechanisms import (
    FixedSizeSubsampled,
    Mechanism,
    PoissonSubsampled,
    TruncatedPoissonSubsampled,
    WithReplacementSubsampled,
    runs_of,
)
from hockeystick.mechanisms.base import checked
from hockeystick.notions import ApproxDP, Notion, PureDP

_REMEMBERED: Final = 256
_UNAMPLIFIED: Final = (
    "without expected= sampling hardly lowers what a step costs: Filter(budget, expected=plan), "
    "with a plan such as the releases will be, counts the amplification"
)
ORDER: Final = Domain("alpha", 1, math.inf, (1.25, 64.0), low_open=True, high_open=True)
_SAMPLED: Final = (
    FixedSizeSubsampled,
    PoissonSubsampled,
    TruncatedPoissonSubsampled,
    WithReplacementSubsampled,
)
_NO_ORDER: Final = "left out: only an ApproxDP budget without a rule has an order"
_FINITE: Final = "a guarantee such as ZCDP(rho=0.5), its numbers finite, delta below 1"


@final
class Filter(Recorder):
    """A budget that is never overspent, also by mechanisms that are chosen from earlier outputs.

    Before each release, ``step`` charges what it costs in the budget's own measure, and refuses
    it where the sum would exceed the budget:

    - ``RenyiDP``: the divergence at each order of the budget; every order is kept.
    - ``ZCDP``, ``TCDP``: rho. ``GDP``: the square of mu. ``PureDP``: epsilon.
    - ``ApproxDP(epsilon, delta)``: the deltas of (epsilon_i, delta_i)-DP releases add up to at most
      ``delta - slack``, and of the rest either the epsilons add up to at most epsilon, or the rhos
      to at most the limit at which rho-zCDP is (epsilon, slack)-DP. With ``expected``, which is for
      sampled releases: the divergences of the rest at one Renyi order, ``order``, to at most what
      is (epsilon, slack)-DP there.

    Guarantees:
        All releases together have the guarantee that is the budget, in exact arithmetic, where
        each mechanism *and its privacy parameters and whether there is another step* may depend on
        everything released before. The budget is fixed in advance. Costs are computed as exact
        fractions, rounded up where they are no fractions.

        For Renyi divergences, rho, and mu^2, a sum that never exceeds the budget is enough:
        ``exp((alpha - 1)(L_t - sum of tau_i))`` is a supermartingale, whichever tau_i are chosen;
        and releases of mu_i-GDP are functions of one Brownian motion, observed for a time of
        sum mu_i^2. For (epsilon, delta), the failures add up by the union bound.

        ``spent`` alone is no guarantee: at a time that is chosen from the outputs, only the budget
        is one. Nothing here reads the data, so refusals reveal nothing.

    Edge cases:
        0 runs, and mechanisms that release nothing, cost 0 and always fit. What no amount is known
        of, such as Gaussian noise for a ``PureDP`` budget, is an error and not a refusal. A step of
        several runs is taken as a whole or not at all. Numbers mean the decimals they print as.

        Without ``expected``, an ``ApproxDP`` budget counts a sampled step by its rho, which
        sampling hardly lowers.

        Any number of threads may step at the same time. A copy, also that of a forked or another
        process, counts for itself: together they may spend the budget several times.

    Args:
        budget: The guarantee to keep: ``RenyiDP``, ``ZCDP``, ``TCDP``, ``GDP``, ``PureDP`` or
            ``ApproxDP``.
        slack: For ``ApproxDP``, the part of delta for the conversion of rho, from 0 to delta; the
            rest pays for the deltas of the releases. By default half, or with ``expected`` what
            that plan's own deltas leave.
        rule: For ``ApproxDP``, "concentrated" (default), or "whitehouse" for the theorem as it is
            published: epsilon-DP counts as ``rho = eps^2 / 2``, and the limit of rho is where
            ``sqrt(2 ln(1/slack) sum eps^2) + sum eps^2 / 2 = epsilon``. It never allows more.
        expected: For ``ApproxDP`` without a rule, a plan such as the releases will be, DP-SGD for
            example. It chooses the order at which the budget covers it most often, before anything
            runs, and binds nobody.

    Raises:
        IncompatibleError: If no filter is known for such a budget, as for f-DP, or the expected
            plan has no finite divergence at any order.

    References:
        Feldman and Zrnic, "Individual Privacy Accounting via a Renyi Filter", NeurIPS 2021 (one
        order); Smith and Thakurta, "Fully Adaptive Composition for Gaussian Differential Privacy",
        2022, and Koskela, Tobaben and Honkela, "Individual Privacy Accounting with Gaussian
        Differential Privacy", ICLR 2023 (mu); Whitehouse, Ramdas, Rogers and Wu, "Fully-Adaptive
        Composition in Differential Privacy", ICML 2023, theorem 1 ((epsilon, delta)); Canonne,
        Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020, proposition 12
        (one order for (epsilon, delta)).

    Example:
        >>> import hockeystick as hs
        >>> spending = hs.calibration.Filter(hs.ZCDP(rho=0.5))
        >>> spending.step(hs.Gaussian(noise_multiplier=2), count=3)
        ZCDP(rho=0.125)
        >>> spending.fits(hs.Laplace(scale=2))
        True
        >>> spending.step(hs.Gaussian(noise_multiplier=1))
        Traceback (most recent call last):
        ...
        hockeystick.errors.BudgetExhausted: the budget does not cover Gaussian (noise multiplier 1)\
: it would cost ZCDP(rho=0.5); spent are ZCDP(rho=0.375), and left for one step ZCDP(rho=0.125)
    """

    __slots__ = ("_cost", "_measure", "budget", "order", "rule", "slack")
    _NAMES = ("budget", "slack", "rule", "order")

    budget: Notion
    order: float | None
    slack: float | None
    rule: Rule | None

    def __init__(
        self,
        budget: Notion,
        *,
        slack: float | None = None,
        rule: Rule | str | None = None,
        expected: Mechanism | None = None,
    ) -> None:
        kept, order = checked_budget(budget), None
        if expected is not None:
            with EVALUATING:
                slack, order = chosen_by(expected, kept, slack, rule)
        self._begin(kept, slack, rule, order)

    def _begin(
        self, budget: Notion, slack: object, rule: Rule | str | None, order: float | None
    ) -> None:
        self.budget, self.order = budget, order
        self.slack, known = checked_options(budget, slack, rule)
        self.rule = known if order is None else None
        with EVALUATING:
            self._measure = measure_of(budget, self.slack, self.rule, order)
        self._cost = lru_cache(maxsize=_REMEMBERED)(self._measure.cost)
        super().__init__(Runs(self._costs(PureDP(0), 1)))

    def step(self, mechanism: Mechanism, *, count: float = 1) -> Notion:
        """Charge for runs of a mechanism that is about to run, or refuse.

        Args:
            mechanism: What is to run; call this before it does.
            count: How many runs, an integer from 0 to 10^15; all of them or none are charged.

        Returns:
            What is left, as ``left``.

        Raises:
            BudgetExhausted: If the budget does not cover it; nothing is charged then.
            IncompatibleError: If its cost in the budget's measure is not known, or it is described
                under another adjacency than what has run.
        """
        once, runs = unrolled(mechanism, count)
        cost = self._costs(once, runs)
        with self._lock:
            self._runs.check(once, runs)
            total = _plus(self._runs.spent, cost)
            if any(cost) and not self._measure.covers(total):
                raise self._refusal(once**runs if runs > 1 else once, cost)
            self._runs.add(once, runs, total)
            return self._remaining(total)

    def fits(self, mechanism: Mechanism, *, count: float = 1) -> bool:
        """Return whether a step would be taken now; another thread may come first.

        Arguments and errors are those of ``step``, but for its refusal.
        """
        once, runs = unrolled(mechanism, count)
        cost = self._costs(once, runs)
        with self._lock:
            self._runs.check(once, runs)
            return not any(cost) or self._measure.covers(_plus(self._runs.spent, cost))

    @property
    def spent(self) -> Notion:
        """What is charged so far, rounded up, as a plan fixed in advance would cost."""
        with self._lock:
            return self._guarantee(self._runs.spent)

    @property
    def left(self) -> Notion:
        """The largest guarantee that one more step may have, rounded down.

        It is of the budget's kind, or the divergence at the order that ``expected`` chose.
        """
        with self._lock:
            return self._remaining(self._runs.spent)

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbours for which the budget is kept; None while no mechanism names them."""
        with self._lock:
            return self._runs.plan.adjacency

    def __repr__(self) -> str:
        return f"<Filter of {self.budget!r}: {len(self)} runs, left {self.left!r}>"

    @classmethod
    def _with_terms(cls, terms: Mapping[str, Any]) -> Self:
        budget, made = checked_budget(read_description(terms["budget"])), cls.__new__(cls)
        made._begin(budget, terms["slack"], terms["rule"], recorded_order(budget, terms))
        return made

    @property
    def _terms(self) -> dict[str, Any]:
        rule = None if self.rule is None else str(self.rule)
        order = {} if self.order is None else {"order": self.order}
        return {"budget": describe(self.budget), "slack": self.slack, "rule": rule, **order}

    def _take_over(self, runs: Runs) -> None:
        """Take over runs, covered or not: a later version may charge more, and covers no more."""
        total = self._runs.spent
        for mechanism, count in runs.counts.items():
            total = _plus(total, self._costs(mechanism, count))
        self._runs = runs.copy(total)

    def _costs(self, mechanism: Mechanism, count: int) -> Costs:
        """Return the costs of several runs: 0 for 0 runs, also where that of one is unknown."""
        with EVALUATING:
            one = self._cost(mechanism if count else PureDP(0))
        return tuple(cost * count for cost in one)

    def _guarantee(self, costs: Costs) -> Notion:
        with EVALUATING:
            return self._measure.guarantee(costs)

    def _remaining(self, costs: Costs) -> Notion:
        with EVALUATING:
            return self._measure.remaining(costs)

    def _refusal(self, asked: Mechanism, cost: Costs) -> BudgetExhausted:
        spent = self._runs.spent
        one, had, left = self._guarantee(cost), self._guarantee(spent), self._remaining(spent)
        amounts = ""
        if type(left) is not type(one):
            # A single step at one order costs far less than it says beside the budget's delta.
            total = self._guarantee(_plus(spent, cost))
            amounts = f"with it all would cost {total!r}, of which {had!r} is spent"
        elif isinstance(left, ApproxDP) and is_sampled(asked):
            amounts = (
                f"it would cost {one!r}; spent are {had!r}, and left for one step {left!r}; "
                f"{_UNAMPLIFIED}"
            )
        return BudgetExhausted(one, had, left, str(asked), amounts)


def _plus(first: Costs, second: Costs) -> Costs:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def checked_budget(budget: object) -> Notion:
    """Return the budget if it is a guarantee that bounds something, or raise."""
    if not isinstance(budget, Notion) or strength(budget) == math.inf:
        raise ParameterError("budget", budget, _FINITE)
    return budget


def checked_options(
    budget: Notion, slack: object, rule: object
) -> tuple[float | None, Rule | None]:
    """Return the options of an (epsilon, delta) budget, which others do not have."""
    if not isinstance(budget, ApproxDP):
        for name, value in (("slack", slack), ("rule", rule)):
            if value is not None:
                raise ParameterError(name, value, "left out: only an ApproxDP budget has it")
        return None, None
    typical = (0.5 * budget.delta, budget.delta)
    domain = Domain(symbol="delta'", low=0, high=budget.delta, typical=typical)
    half = 0.5 * budget.delta if slack is None else slack
    known = Rule.CONCENTRATED if rule is None else _validate.choice("rule", rule, Rule)
    return _validate.real("slack", half, domain), known


def measure_of(
    budget: Notion, slack: float | None, rule: Rule | None, order: float | None
) -> AdditiveMeasure:
    """Return the additive measure of a budget, at one order where it has one."""
    if order is not None and isinstance(budget, ApproxDP):
        return one_order_measure(budget, slack or 0.0, order)
    return additive_measure(budget, slack, rule)


def chosen_by(expected: object, budget: Notion, slack: object, rule: object) -> tuple[float, float]:
    """Return the slack and the order of an (epsilon, delta) budget for an expected plan."""
    if not isinstance(budget, ApproxDP) or rule is not None:
        raise ParameterError("expected", expected, _NO_ORDER)
    plan = checked("expected", expected)
    part = (
        expected_slack(plan, budget) if slack is None else checked_options(budget, slack, None)[0]
    )
    return part or 0.0, expected_order(plan, budget, part or 0.0)


def recorded_order(budget: Notion, state: Mapping[str, Any]) -> float | None:
    """Return the order that a state of a filter tells, None where it has none; or raise."""
    if "order" not in state:
        return None
    if not isinstance(budget, ApproxDP) or state["rule"] is not None:
        raise ParameterError("order", state["order"], _NO_ORDER)
    return _validate.real("order", state["order"], ORDER)


def is_sampled(mechanism: Mechanism) -> bool:
    """Return whether a part of a plan reads a random sample of the data."""
    return any(isinstance(part, _SAMPLED) for part, _ in runs_of(mechanism))
