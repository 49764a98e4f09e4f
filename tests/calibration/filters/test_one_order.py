"""(epsilon, delta) kept at one Renyi order: its limit, its choice, and that it is a guarantee."""

import json
import math
import pickle
import random
from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.calibration.filters.one_order import (
    OneOrderMeasure,
    divergence_limit,
    expected_order,
    expected_slack,
    one_order_measure,
)
from hockeystick.conversions.theorems import canonne_kamath_steinke
from hockeystick.numerics.multiprecision import mp

STEP: Final = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.004)
BUDGET: Final = hs.ApproxDP(8.0, 1e-5)


@pytest.mark.parametrize("order", [1.05, 2.0, 17.0, 1024.0])
@pytest.mark.parametrize("slack", [1e-2, 1e-6, 1e-40])
@pytest.mark.parametrize("epsilon", [0.5, 8.0, 100.0])
def test_the_limit_is_where_the_theorem_says(epsilon: float, slack: float, order: float) -> None:
    with mp.workdps(40):
        a = mp.mpf(order)
        own = (mp.log(mp.mpf(repr(slack))) - (a - 1) * mp.log(a - 1) + a * mp.log(a)) / (a - 1)
        exact = mp.mpf(repr(epsilon)) + min(own, 0)
    found = divergence_limit(epsilon, slack, order)
    if exact <= 0:
        assert found is None
        return
    assert found is not None
    assert found <= Fraction(mp.nstr(exact, 38)) + Fraction(1, 10**30)
    assert math.isclose(found, exact, rel_tol=1e-14)
    assert canonne_kamath_steinke(order, float(found), delta=slack) <= epsilon * (1 + 1e-12)


def test_the_chosen_order_covers_the_plan_most_often() -> None:
    order = expected_order(STEP**14_000, BUDGET, 5e-6)
    counts = {one: _runs(one) for one in (order, 2.0, 3.0, 5.0, 8.0, 16.0)}
    assert max(counts.values()) == counts[order]
    assert counts[order] > 100_000


def _runs(order: float) -> int:
    """Return how many steps fit at an order."""
    limit = divergence_limit(BUDGET.epsilon, 5e-6, order)
    if limit is None:
        return 0
    measure = one_order_measure(BUDGET, 5e-6, order)
    return math.floor(measure.most / measure.cost(STEP)[0])


def test_what_it_covers_is_proven_as_a_plan() -> None:
    order = expected_order(STEP, BUDGET, 5e-6)
    runs = _runs(order)
    assert hs.delta(STEP**runs, 8.0).upper <= 5e-6
    # Sampling counts: without it far fewer runs are covered.
    plain = hs.calibration.Filter(BUDGET)
    assert not plain.fits(hs.Gaussian(1.1), count=runs // 1000)


def test_divergences_and_deltas_have_limits_of_their_own() -> None:
    measure = one_order_measure(BUDGET, 5e-6, 4.0)
    divergence, delta = measure.cost(hs.ApproxDP(0.5, 1e-7) @ hs.Gaussian(4.0))
    assert delta == Fraction(1, 10**7)
    assert divergence == measure.cost(hs.PureDP(0.5))[0] + Fraction(4, 2 * 16)
    assert measure.limits == (measure.most, Fraction(5, 10**6))
    assert measure.covers(measure.limits)
    tiny = Fraction(1, 10**60)
    assert not measure.covers((measure.most + tiny, Fraction(0)))
    assert not measure.covers((Fraction(0), measure.failures + tiny))


def test_lowered_limits_only_fall() -> None:
    measure = one_order_measure(BUDGET, 5e-6, 4.0)
    low = (measure.most / 2, measure.failures * 2)
    assert measure.lowered(low).limits == (measure.most / 2, measure.failures)


def test_what_is_spent_is_a_guarantee_rounded_up() -> None:
    measure = one_order_measure(BUDGET, 5e-6, 4.0)
    assert measure.guarantee((Fraction(0), Fraction(0))) == hs.ApproxDP(0.0, 0.0)
    whole = measure.guarantee(measure.limits)
    assert whole.delta == 1e-5
    assert math.isclose(whole.epsilon, 8.0, rel_tol=1e-12)
    assert measure.remaining(measure.cost(hs.Gaussian(4.0))).divergences[0][0] == 4.0


def test_a_slack_that_leaves_nothing_is_refused() -> None:
    for slack in (0.0, 1e-300):
        with pytest.raises(hs.errors.ParameterError, match="budget must be larger"):
            expected_order(STEP, hs.ApproxDP(1e-3, 1e-5), slack)
    with pytest.raises(hs.errors.ParameterError, match="budget must be larger"):
        one_order_measure(BUDGET, 5e-6, 2.0)
    assert isinstance(one_order_measure(BUDGET, 5e-6, 4.0), OneOrderMeasure)


def test_an_order_between_the_candidates_covers_more() -> None:
    budget, plan = hs.ApproxDP(1.0, 1e-5), STEP**1000
    order = expected_order(plan, budget, 1e-5)
    others = (order * 0.97, order, order * 1.03, 11.0, 12.0, 14.0)
    shares = {}
    for other in others:
        measure = one_order_measure(budget, 1e-5, other)
        shares[other] = measure.cost(STEP)[0] / measure.most
    assert min(shares, key=lambda one: shares[one]) == order


def test_no_curve_of_orders_covers_more_than_the_best_single_order() -> None:
    """Random orders and weights, scaled to what they prove at epsilon and slack."""
    draw = random.Random(6)
    epsilon, slack, step = 3.0, 1e-5, hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.004)
    tried = [1.0 + 0.25 * 1.05**k for k in range(110)]
    known = dict(hs.convert(step, hs.RenyiDP, orders=tried).divergences)
    single = max(float(divergence_limit(epsilon, slack, a) or 0) / known[a] for a in tried)
    gaps = [1.02**k * 1e-4 for k in range(600)]
    shares = []
    for _ in range(20):
        orders = draw.sample(tried, draw.randrange(1, 6))
        weights = [draw.random() ** 4 + 1e-12 for _ in orders]
        parts = list(zip(weights, orders, strict=True))

        def covered(runs: float, parts: Any = parts, total: float = sum(weights)) -> bool:
            return all(
                slack
                * sum(w * math.exp((a - 1) * (epsilon + x - runs * known[a])) for w, a in parts)
                >= -total * math.expm1(-x)
                for x in gaps
            )

        low, high = 0.0, 10.0 * single
        for _ in range(16):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if covered(middle) else (low, middle)
        shares.append(low / single)
    assert 0.5 < max(shares) <= 1.001


def test_a_filter_that_expects_a_plan_counts_sampling_and_says_at_which_order() -> None:
    spending = hs.calibration.Filter(BUDGET, expected=STEP**10_000)
    assert (spending.slack, spending.rule) == (1e-5, None)
    assert spending.order == expected_order(STEP, BUDGET, 1e-5)
    assert spending.fits(STEP, count=100_000)
    assert not spending.fits(STEP, count=150_000)
    spending.step(STEP, count=1000)
    spent: Any = spending.spent
    assert hs.epsilon(STEP**1000, 1e-5).upper < spent.epsilon < BUDGET.epsilon
    assert spending.left == one_order_measure(BUDGET, 1e-5, spending.order).remaining(
        spending._runs.spent
    )
    with pytest.raises(hs.errors.BudgetExhausted):
        spending.step(hs.ApproxDP(0.1, 1e-9))


def test_what_its_expected_plan_does_not_fail_is_slack() -> None:
    plan = STEP**100 @ hs.ApproxDP(0.1, 1e-6) ** 3
    assert expected_slack(STEP, BUDGET) == 1e-5
    assert math.isclose(expected_slack(plan, BUDGET), 7e-6)
    spending = hs.calibration.Filter(BUDGET, expected=plan)
    spending.step(plan)
    assert not spending.fits(hs.ApproxDP(0.1, 1e-7))
    with pytest.raises(hs.errors.ParameterError, match="expected must be a plan whose own deltas"):
        hs.calibration.Filter(BUDGET, expected=hs.ApproxDP(0.1, 1e-5))


@pytest.mark.parametrize(
    ("budget", "options", "match"),
    [
        (hs.ZCDP(1.0), {}, "expected must be left out"),
        (BUDGET, {"rule": "concentrated"}, "expected must be left out"),
        (BUDGET, {"slack": 0.0}, "budget must be larger"),
        (BUDGET, {"slack": 1.0}, "slack must be"),
        (hs.ApproxDP(1.0, 0.0), {}, "expected must be a plan whose own deltas"),
        (hs.ApproxDP(1e-9, 1e-5), {}, "budget must be larger"),
    ],
    ids=str,
)
def test_a_budget_without_an_order_is_refused(
    budget: hs.notions.Notion, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(hs.errors.ParameterError, match=match):
        hs.calibration.Filter(budget, expected=STEP, **options)


def test_a_plan_without_any_divergence_chooses_no_order() -> None:
    with pytest.raises(hs.errors.IncompatibleError):
        hs.calibration.Filter(BUDGET, expected=hs.Gaussian(0.0))


def test_its_state_comes_back_with_its_order() -> None:
    spending = hs.calibration.Filter(BUDGET, expected=STEP**1000)
    spending.step(STEP, count=10)
    text = json.dumps(spending.state_dict(), allow_nan=False)
    found = hs.calibration.Filter.from_state_dict(json.loads(text))
    assert (found.order, found.slack, found.rule) == (spending.order, 1e-5, None)
    assert repr(found) == repr(spending) == repr(pickle.loads(pickle.dumps(spending)))
    other = hs.calibration.Filter(BUDGET, expected=hs.Gaussian(30.0))
    assert other.order != spending.order
    with pytest.raises(hs.errors.ParameterError, match=r"^budget must be that of this filter"):
        other.load_state_dict(found.state_dict())
    for change in ({"order": 1.0}, {"order": "2"}, {"order": math.inf}, {"rule": "whitehouse"}):
        with pytest.raises(hs.errors.ParameterError, match=r"^order must be"):
            hs.calibration.Filter.from_state_dict(spending.state_dict() | change)


@settings(max_examples=5)
@given(
    epsilon=st.floats(0.8, 6.0),
    steps=st.lists(
        st.tuples(st.floats(0.8, 6.0), st.sampled_from([0.004, 0.02, 0.1]), st.integers(1, 400)),
        min_size=1,
        max_size=3,
    ),
)
def test_what_it_admits_never_costs_more_than_its_budget_as_a_plan(
    epsilon: float, steps: list[tuple[float, float, int]]
) -> None:
    budget = hs.ApproxDP(epsilon, 1e-4)
    spending = hs.calibration.Filter(budget, expected=hs.PoissonSubsampled(hs.Gaussian(1.0), 0.01))
    taken: list[hs.Mechanism] = []
    for noise, rate, count in steps:
        step = hs.PoissonSubsampled(hs.Gaussian(noise), rate=rate)
        while count and not spending.fits(step, count=count):
            count //= 2
        if count:
            spending.step(step, count=count)
            taken.append(step**count)
    if taken:
        assert hs.delta(hs.Composed(taken), epsilon).lower <= 1e-4
        spent: Any = spending.spent
        assert hs.delta(hs.Composed(taken), spent.epsilon).lower <= spent.delta
