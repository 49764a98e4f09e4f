"""(epsilon, delta) kept at one Renyi order: its limit, its choice, and that it is a guarantee."""

import json
import math
import pickle
from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.calibration.filters.measures import (
    OneOrderMeasure,
    divergence_limit,
    expected_order,
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


def test_divergences_and_deltas_have_limits_of_their_own() -> None:
    measure = one_order_measure(BUDGET, 5e-6, 4.0)
    divergence, delta = measure.cost(hs.ApproxDP(0.5, 1e-7) @ hs.Gaussian(4.0))
    assert delta == Fraction(1, 10**7)
    assert divergence == measure.cost(hs.PureDP(0.5))[0] + Fraction(4, 2 * 16)
    most, failures = measure.limits
    assert failures == Fraction(5, 10**6)
    assert measure.covers(measure.limits)
    tiny = Fraction(1, 10**60)
    assert not measure.covers((most + tiny, Fraction(0)))
    assert not measure.covers((Fraction(0), failures + tiny))


def test_lowered_limits_only_fall() -> None:
    measure = one_order_measure(BUDGET, 5e-6, 4.0)
    most, failures = measure.limits
    assert measure.lowered((most / 2, failures * 2)).limits == (most / 2, failures)


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
    with pytest.raises(hs.errors.ParameterError, match=r"^order must be that of"):
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
