"""(epsilon, delta) kept at one Renyi order: its limit, its choice, and that it is a guarantee."""

import json
import math
import pickle
from fractions import Fraction
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.calibration.filters.measures import divergence_limit, one_order_measure
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


def test_what_is_spent_is_a_guarantee_rounded_up() -> None:
    measure = one_order_measure(BUDGET, 5e-6, 4.0)
    assert measure.guarantee((Fraction(0), Fraction(0))) == hs.ApproxDP(0.0, 0.0)
    whole = measure.guarantee(measure.limits)
    assert whole.delta == 1e-5
    assert math.isclose(whole.epsilon, 8.0, rel_tol=1e-12)
    assert measure.remaining(measure.cost(hs.Gaussian(4.0))).divergences[0][0] == 4.0
    most, failures = measure.limits
    assert measure.lowered((most / 2, failures * 2)).limits == (most / 2, failures)


@pytest.mark.parametrize(
    ("budget", "options", "match"),
    [
        (hs.ZCDP(1.0), {}, "expected must be left out"),
        (BUDGET, {"rule": "concentrated"}, "expected must be left out"),
        (BUDGET, {"slack": 0.0}, "budget must be larger"),
        (BUDGET, {"slack": 1.0}, "slack must be"),
        (hs.ApproxDP(1.0, 0.0), {}, "expected must be a plan whose own deltas"),
        (hs.ApproxDP(1e-9, 1e-5), {}, "budget must be larger"),
        (hs.ApproxDP(1e-3, 1e-5), {"slack": 1e-300}, "budget must be larger"),
    ],
    ids=str,
)
def test_a_budget_without_an_order_is_refused(
    budget: hs.notions.Notion, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(hs.errors.ParameterError, match=match):
        hs.calibration.Filter(budget, expected=STEP, **options)
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
