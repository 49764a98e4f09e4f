"""(epsilon, delta) kept at one Renyi order: its limit, its choice, and that it is a guarantee."""

import math
from fractions import Fraction

import pytest

import hockeystick as hs
from hockeystick.calibration.filters.one_order import (
    OneOrderMeasure,
    divergence_limit,
    expected_order,
    one_order_measure,
)
from hockeystick.conversions.theorems import canonne_kamath_steinke
from hockeystick.numerics.multiprecision import mp

STEP = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.004)
BUDGET = hs.ApproxDP(8.0, 1e-5)


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
