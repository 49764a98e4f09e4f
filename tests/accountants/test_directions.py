"""Two directions that are asked in turn: the larger one is the answer, whichever comes first."""

import math

import pytest

import hockeystick as hs
from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.contour import Contour
from hockeystick.privacy_loss import Composition

PLANS = (
    hs.PoissonSubsampled(hs.Gaussian(1.1), rate=256 / 60_000) ** 14_062,
    hs.PoissonSubsampled(hs.Gaussian(2.0), rate=0.5) ** 100,
    hs.PoissonSubsampled(hs.Gaussian(30.0), rate=0.01) ** 10**6,
)
each_plan = pytest.mark.parametrize("plan", PLANS, ids=str)


@each_plan
def test_the_order_of_the_directions_does_not_matter(plan: hs.Mechanism) -> None:
    cost = composition_of(plan, "contour")
    turned = Composition(cost.adding, cost.removing)
    accountant = Contour()
    epsilons = [accountant.epsilon(one, 1e-5) for one in (cost, turned)]
    deltas = [accountant.delta(one, epsilons[0].estimate) for one in (cost, turned)]
    for first, second in (epsilons, deltas):
        assert first.upper == pytest.approx(second.upper, rel=1e-8)
        assert first.lower == pytest.approx(second.lower, rel=1e-8)


@each_plan
def test_the_answer_is_that_of_the_direction_that_costs_more(plan: hs.Mechanism) -> None:
    cost = composition_of(plan, "contour")
    accountant = Contour()
    found = accountant.epsilon(cost, 1e-6)
    alone = [accountant.epsilon_of(terms, 1e-6) for terms in cost.directions]
    assert found.upper >= max(one.lower for one in alone)
    assert found.lower <= max(one.upper for one in alone)
    assert found.upper == pytest.approx(max(one.upper for one in alone), rel=1e-8)


@each_plan
def test_a_direction_is_below_only_where_its_delta_is(plan: hs.Mechanism) -> None:
    cost = composition_of(plan, "contour")
    accountant = Contour()
    for terms in cost.directions:
        delta = accountant.delta_of(terms, 1.0)
        assert accountant._is_below(terms, 1.0, math.log(delta.upper) + 0.05)
        assert not accountant._is_below(terms, 1.0, math.log(delta.lower))
