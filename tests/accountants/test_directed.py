"""One ordered pair at a time."""

import math

import pytest

import hockeystick as hs
from hockeystick.accountants import directed_delta
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.contour import Contour


@pytest.mark.parametrize("epsilon", [-2.0, -0.5, 0.0, 0.7, 3.0])
def test_outcomes_are_told_apart_by_their_masses(epsilon: float) -> None:
    """FDP of T(P, Q), whose adding direction is (P, Q), composed twice by listing all outcomes."""
    p, q = [0.7, 0.2, 0.1], [0.1, 0.3, 0.6]
    plan = hs.FDP(hs.tradeoffs.discrete_tradeoff(p, q)) ** 2
    first = [(a * b, c * d) for a, c in zip(p, q, strict=True) for b, d in zip(p, q, strict=True)]
    truths = {
        "add": sum(max(a - math.exp(epsilon) * b, 0.0) for a, b in first),
        "remove": sum(max(b - math.exp(epsilon) * a, 0.0) for a, b in first),
    }
    for direction, truth in truths.items():
        found = directed_delta(plan, epsilon, direction)
        assert found.lower <= truth * (1 + 1e-13) + 1e-16
        assert truth <= found.upper * (1 + 1e-13) + 1e-16
        assert found.upper - found.lower < 1e-4


def test_far_below_zero_it_is_next_to_one_but_not_proven_to_be_one() -> None:
    found = directed_delta(hs.Gaussian(1), -800.0, "remove")
    assert found.lower < 1.0 == found.upper


def test_an_approximation_stays_one() -> None:
    for epsilon in (0.5, -0.5):
        found = directed_delta(hs.Gaussian(2) ** 4, epsilon, "add", accountant="gdp")
        assert isinstance(found, hs.Approximate)
        assert found.value == pytest.approx(directed_delta(hs.Gaussian(1), epsilon, "add").upper)


TWO_SIDED = (
    hs.PoissonSubsampled(hs.Gaussian(1.1), rate=256 / 60_000) ** 14_062,
    hs.PoissonSubsampled(hs.Gaussian(2.0), rate=0.5) ** 100,
    hs.PoissonSubsampled(hs.Gaussian(30.0), rate=0.01) ** 10**6,
)


@pytest.mark.parametrize("plan", TWO_SIDED, ids=str)
def test_the_answer_is_that_of_the_direction_that_costs_more(plan: hs.Mechanism) -> None:
    cost, accountant = composition_of(plan, "contour"), Contour()
    found = accountant.epsilon(cost, 1e-6)
    alone = [accountant.epsilon_of(terms, 1e-6) for terms in cost.directions]
    assert max(one.lower for one in alone) <= found.upper
    assert found.lower <= max(one.upper for one in alone)
    assert found.upper == pytest.approx(max(one.upper for one in alone), rel=1e-8)
    for terms in cost.analytic:
        delta = accountant.delta_of(terms, 1.0)
        assert accountant._is_below(terms, 1.0, math.log(delta.upper) + 0.05)
        assert not accountant._is_below(terms, 1.0, math.log(delta.lower))
