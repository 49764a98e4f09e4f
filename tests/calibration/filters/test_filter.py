"""Filters: nothing is overspent, nothing that fits is refused, by exact sums in another way."""

import json
import math
import pickle
import time
from fractions import Fraction
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.calibration.filters.filter import _plus
from hockeystick.calibration.filters.measures import divergence_limit, one_order_measure
from hockeystick.conversions.theorems import canonne_kamath_steinke
from hockeystick.numerics.multiprecision import mp
from tests.calibration.session.test_accountant import THREADS, at_once

SAMPLED: Final = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.004)
# A budget that a Renyi order keeps, where a plan is expected.
OF_AN_ORDER: Final = hs.ApproxDP(8.0, 1e-5)
# The known value: sqrt(2 ln(1e6) 100 * 0.05^2) + 100 * 0.05^2 / 2.
WHITEHOUSE: Final = mp.mpf("2.753260884878465989")


def steps_taken(
    spending: hs.calibration.Filter, mechanism: hs.Mechanism, *, most: int = 10_000
) -> int:
    """Return how often a mechanism fits, one run after the other."""
    for taken in range(most):
        try:
            spending.step(mechanism)
        except hs.errors.BudgetExhausted:
            return taken
    raise AssertionError("the budget never ends")


@pytest.mark.parametrize(
    ("budget", "mechanism", "runs"),
    [
        (hs.ZCDP(1.0), hs.ZCDP(0.1), 10),
        (hs.ZCDP(1.0), hs.Gaussian(10.0), 200),
        (hs.ZCDP(0.56), hs.DiscreteGaussian(2.5), 7),
        (hs.ZCDP(0.3), hs.GDP(0.1), 60),
        (hs.TCDP(1.0, 30.0), hs.TCDP(0.1, 30.0), 10),
        (hs.TCDP(1.0, 30.0), hs.Gaussian(10.0), 200),
        (hs.GDP(1.0), hs.GDP(0.1), 100),
        (hs.GDP(0.5), hs.Gaussian(20.0), 100),
        (hs.PureDP(1.0), hs.PureDP(0.1), 10),
        (hs.PureDP(1.0), hs.Laplace(10.0), 10),
        (hs.RenyiDP({2: 1.0}), hs.Gaussian(10.0), 100),
        (hs.RenyiDP({2: 1.0, 8: 2.0}), hs.Gaussian(10.0), 50),
        (hs.RenyiDP({2: 1.0, 8: math.inf}), hs.Gaussian(10.0), 100),
        (hs.ApproxDP(1.0, 0.0), hs.PureDP(0.1), 10),
        (hs.ApproxDP(1.0, 1e-6), hs.ApproxDP(0.01, 1e-7), 5),
    ],
    ids=str,
)
def test_exactly_as_many_steps_fit_as_in_decimals(
    budget: hs.notions.Notion, mechanism: hs.Mechanism, runs: int
) -> None:
    spending = hs.calibration.Filter(budget)
    assert steps_taken(spending, mechanism) == runs
    assert len(spending) == runs
    assert hs.calibration.Filter(budget).fits(mechanism, count=runs)
    assert not hs.calibration.Filter(budget).fits(mechanism, count=runs + 1)


def test_the_published_theorem_spends_its_published_sum() -> None:
    step = hs.PureDP(0.05)
    above = hs.calibration.Filter(
        hs.ApproxDP(2.753260884878466, 1e-6), slack=1e-6, rule="whitehouse"
    )
    below = hs.calibration.Filter(
        hs.ApproxDP(2.7532608848784655, 1e-6), slack=1e-6, rule="whitehouse"
    )
    above.step(step, count=100)
    assert not above.fits(step)
    assert not below.fits(step, count=100)
    assert below.fits(step, count=99)
    spent = above.spent
    assert isinstance(spent, hs.ApproxDP)
    assert WHITEHOUSE <= spent.epsilon <= WHITEHOUSE * (1 + mp.mpf(2) ** -50)
    assert spent.delta == 1e-6


def test_a_refusal_says_what_was_asked_spent_and_left_and_charges_nothing() -> None:
    spending = hs.calibration.Filter(hs.ZCDP(0.5))
    spending.step(hs.Gaussian(2), count=3)
    with pytest.raises(hs.errors.BudgetExhausted) as found:
        spending.step(hs.Gaussian(2), count=2)
    error = found.value
    assert isinstance(error, hs.HockeystickError)
    assert error.asked == hs.ZCDP(0.25)
    assert error.spent == hs.ZCDP(0.375)
    assert error.left == hs.ZCDP(0.125)
    assert error.step == "Gaussian (noise multiplier 2) x 2"
    for part in ("x 2", "ZCDP(rho=0.25)", "ZCDP(rho=0.375)", "ZCDP(rho=0.125)"):
        assert part in str(error)
    copied = pickle.loads(pickle.dumps(error))
    assert str(copied) == str(error)
    assert len(spending) == 3
    assert spending.step(hs.Gaussian(2)) == hs.ZCDP(0.0)


@pytest.mark.parametrize(
    ("budget", "mechanism"),
    [
        (hs.PureDP(1.0), hs.Gaussian(1.0)),
        (hs.PureDP(1.0), hs.Laplace(0.0)),
        (hs.PureDP(1.0), hs.ApproxDP(0.1, 1e-9)),
        (hs.GDP(1.0), hs.ZCDP(0.1)),
        (hs.GDP(1.0), hs.Gaussian(0.0)),
        (hs.ZCDP(1.0), hs.Gaussian(0.0)),
        (hs.ZCDP(1.0), hs.ApproxDP(0.1, 1e-9)),
        (hs.ZCDP(1.0), hs.TCDP(0.1, 9.0)),
        (hs.ZCDP(1.0), hs.mechanisms.RevealedSample(hs.Gaussian(0.0), 0.1)),
        (hs.TCDP(1.0, 9.0), hs.TCDP(0.1, 8.0)),
        (hs.RenyiDP({2: 1}), hs.Gaussian(0.0)),
        (hs.RenyiDP({2: 1}), hs.RenyiDP({1.5: 1})),
        (hs.ApproxDP(1.0, 1e-5), hs.PureDP(math.inf)),
        (hs.ApproxDP(1.0, 1e-5), hs.Gaussian(0.0)),
        (hs.ApproxDP(1.0, 1e-5), hs.PureDP(0.1) @ hs.PureDP(math.inf)),
    ],
    ids=str,
)
def test_what_has_no_known_cost_is_an_error_and_never_free(
    budget: hs.notions.Notion, mechanism: hs.Mechanism
) -> None:
    spending = hs.calibration.Filter(budget)
    for ask in (spending.step, spending.fits):
        with pytest.raises(hs.errors.IncompatibleError, match="is proven to follow from"):
            ask(mechanism)
    assert len(spending) == 0


@pytest.mark.parametrize(
    ("name", "budget", "options"),
    [
        ("budget", 1.0, {}),
        ("budget", hs.Gaussian(1.0), {}),
        ("budget", hs.ZCDP(math.inf), {}),
        ("budget", hs.ApproxDP(1.0, 1.0), {}),
        ("budget", hs.RenyiDP({2: math.inf}), {}),
        ("slack", hs.ApproxDP(1.0, 1e-6), {"slack": -1e-9}),
        ("slack", hs.ApproxDP(1.0, 1e-6), {"slack": 2e-6}),
        ("slack", hs.ApproxDP(1.0, 1e-6), {"slack": "1e-7"}),
        ("slack", hs.ZCDP(1.0), {"slack": 0.0}),
        ("rule", hs.ApproxDP(1.0, 1e-6), {"rule": "basic"}),
        ("rule", hs.ZCDP(1.0), {"rule": "whitehouse"}),
        ("expected", hs.ZCDP(1.0), {"expected": SAMPLED}),
        ("expected", OF_AN_ORDER, {"expected": SAMPLED, "rule": "concentrated"}),
        ("expected", hs.ApproxDP(1.0, 0.0), {"expected": SAMPLED}),
        ("budget", OF_AN_ORDER, {"expected": SAMPLED, "slack": 0.0}),
        ("slack", OF_AN_ORDER, {"expected": SAMPLED, "slack": 1.0}),
        ("budget", hs.ApproxDP(1e-9, 1e-5), {"expected": SAMPLED}),
        ("budget", hs.ApproxDP(1e-3, 1e-5), {"expected": SAMPLED, "slack": 1e-300}),
    ],
    ids=str,
)
def test_terms_that_are_none_are_refused_by_name(name: str, budget: Any, options: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        hs.calibration.Filter(budget, **options)
    with pytest.raises(hs.errors.IncompatibleError):
        hs.calibration.Filter(OF_AN_ORDER, expected=hs.Gaussian(0.0))


@pytest.mark.parametrize(
    ("budget", "step"),
    [
        (hs.ApproxDP(1.0, 1e-6), hs.Gaussian(1e-3)),
        (hs.ApproxDP(1.0, 1e-6), hs.PureDP(1e300)),
        (hs.ApproxDP(1e300, 1e-6), hs.ZCDP(1e300)),
        (hs.ApproxDP(1e-300, 1e-300), hs.PureDP(1e-301)),
        (hs.ApproxDP(0.0, 0.0), hs.PureDP(5e-324)),
        (hs.GDP(1.0), hs.GDP(1e300)),
        (hs.GDP(1e-200), hs.Gaussian(1e201)),
        (hs.ZCDP(5e-324), hs.ZCDP(5e-324)),
        (hs.PureDP(1.0), hs.Laplace(1e-300)),
        (hs.RenyiDP({2: 1.0}), hs.Gaussian(1e-200)),
        (hs.ApproxDP(1.0, 0.5), hs.ApproxDP(0.1, 1.0)),
    ],
    ids=str,
)
def test_numbers_at_the_ends_of_floats_are_charged_or_refused_and_never_overspent(
    budget: hs.notions.Notion, step: hs.Mechanism
) -> None:
    spending = hs.calibration.Filter(budget)
    with pytest.raises(hs.errors.BudgetExhausted):
        spending.step(step, count=10**15)
    assert len(spending) == 0
    if spending.fits(step):
        spending.step(step)
        assert spending.fits(spending.left)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (hs.RenyiDP({2: 1.0, 8.5: 4, 64: 40}), None),
        (hs.ZCDP(0.5), None),
        (hs.TCDP(0.5, 20.0), None),
        (hs.GDP(1.0), None),
        (hs.PureDP(2.0), None),
        (hs.ApproxDP(2.0, 1e-6), None),
        (OF_AN_ORDER, SAMPLED**1000),
    ],
    ids=str,
)
def test_a_state_comes_back_through_json(budget: hs.notions.Notion, expected: Any) -> None:
    spending = hs.calibration.Filter(budget, expected=expected)
    spending.step(hs.PureDP(0.1), count=2)
    spending.step(hs.RandomizedResponse(0.2))
    text = json.dumps(spending.state_dict(), allow_nan=False)
    found = hs.calibration.Filter.from_state_dict(json.loads(text))
    assert repr(found) == repr(spending)
    for term in ("budget", "slack", "rule", "order", "spent", "left"):
        assert getattr(found, term) == getattr(spending, term)
    assert len(found) == 3
    assert json.dumps(found.state_dict()) == text
    assert repr(pickle.loads(pickle.dumps(spending))) == repr(spending)
    spending.step(found.left)
    spending.load_state_dict(json.loads(text))
    assert spending.left == found.left


def test_a_state_of_other_terms_is_refused() -> None:
    made, failing = hs.calibration.Filter, hs.ApproxDP(1, 1e-6)
    for name, one, other in (
        ("budget", made(hs.ZCDP(0.1)), made(hs.ZCDP(1.0))),
        ("rule", made(failing, rule="whitehouse"), made(failing, rule="concentrated")),
        (
            "order",
            made(OF_AN_ORDER, expected=SAMPLED**1000),
            made(OF_AN_ORDER, expected=hs.Gaussian(30.0)),
        ),
    ):
        with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
            one.load_state_dict(other.state_dict())


def test_a_state_that_spent_too_much_is_read_and_covers_nothing_more() -> None:
    state = hs.calibration.Filter(hs.ZCDP(0.1)).state_dict()
    state["steps"] = [{"mechanism": {"type": "Gaussian", "noise_multiplier": 1.0}, "count": 2}]
    found = hs.calibration.Filter.from_state_dict(state)
    assert found.spent == hs.ZCDP(1.0)
    assert found.left == hs.ZCDP(0.0)
    assert not found.fits(hs.ZCDP(1e-9))
    assert found.fits(hs.ZCDP(0))
    assert found.step(hs.ZCDP(0)) == hs.ZCDP(0.0)
    assert len(found) == 3


@pytest.mark.parametrize(
    ("terms", "changes"),
    [
        (
            {"budget": hs.ZCDP(1.0)},
            [("version", 2), ("kind", "Accountant"), ("more", 1), ("slack", 1)],
        ),
        (
            {"budget": OF_AN_ORDER, "expected": SAMPLED},
            [("order", 1.0), ("order", "2"), ("order", math.inf), ("rule", "whitehouse")],
        ),
    ],
)
def test_what_is_no_state_is_refused(terms: dict[str, Any], changes: list[Any]) -> None:
    state = hs.calibration.Filter(**terms).state_dict()
    for name, value in changes:
        with pytest.raises(hs.errors.ParameterError):
            hs.calibration.Filter.from_state_dict({**state, name: value})


@pytest.mark.parametrize("budget", [hs.ZCDP(1.0), hs.ApproxDP(3.0, 1e-6)], ids=str)
def test_eight_threads_never_overspend_and_lose_no_step(
    budget: hs.notions.Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plus(*amounts: Any) -> Any:
        found = _plus(*amounts)
        time.sleep(0)
        return found

    monkeypatch.setattr("hockeystick.calibration.filters.filter._plus", plus)
    spending, step = hs.calibration.Filter(budget), hs.ZCDP(0.001)
    most = steps_taken(hs.calibration.Filter(budget), step)
    taken: list[bool] = []

    def work() -> None:
        for _ in range(2 * most // THREADS):
            try:
                spending.step(step)
                taken.append(True)
            except hs.errors.BudgetExhausted:
                taken.append(False)

    at_once(work)
    assert sum(taken) == most == len(spending)
    assert len(taken) == 2 * most // THREADS * THREADS
    alone = hs.calibration.Filter(budget)
    alone.step(step, count=most)
    assert (spending.spent, spending.left) == (alone.spent, alone.left)


# (epsilon, delta) kept at one Renyi order.


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
    measure = one_order_measure(OF_AN_ORDER, 5e-6, 4.0)
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
    measure = one_order_measure(OF_AN_ORDER, 5e-6, 4.0)
    assert measure.guarantee((Fraction(0), Fraction(0))) == hs.ApproxDP(0.0, 0.0)
    whole = measure.guarantee(measure.limits)
    assert whole.delta == 1e-5
    assert math.isclose(whole.epsilon, 8.0, rel_tol=1e-12)
    assert measure.remaining(measure.cost(hs.Gaussian(4.0))).divergences[0][0] == 4.0
    most, failures = measure.limits
    assert measure.lowered((most / 2, failures * 2)).limits == (most / 2, failures)
