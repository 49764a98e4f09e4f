"""Filters: nothing is overspent, nothing that fits is refused, by exact sums in another way."""

import json
import math
import pickle
import time
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.calibration.filters.filter import _plus
from hockeystick.numerics.multiprecision import mp
from tests.calibration.session.test_accountant import THREADS, at_once

STEP: Final = hs.PoissonSubsampled(hs.Gaussian(2.0), rate=0.01)
RDP: Final = hs.RenyiDP({2: 1.0, 8.5: 4, 64: 40})
BUDGETS: Final[tuple[hs.notions.Notion, ...]] = (
    RDP,
    hs.ZCDP(0.5),
    hs.TCDP(0.5, 20.0),
    hs.GDP(1.0),
    hs.PureDP(2.0),
    hs.ApproxDP(2.0, 1e-6),
)
# The known value: sqrt(2 ln(1e6) 100 * 0.05^2) + 100 * 0.05^2 / 2.
WHITEHOUSE: Final = mp.mpf("2.753260884878465989")

each_budget = pytest.mark.parametrize("budget", BUDGETS, ids=str)


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
    ],
    ids=str,
)
def test_terms_that_are_none_are_refused_by_name(name: str, budget: Any, options: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        hs.calibration.Filter(budget, **options)


def test_another_adjacency_is_refused() -> None:
    spending = hs.calibration.Filter(hs.ZCDP(1.0))
    spending.step(STEP)
    other = hs.PoissonSubsampled(hs.Gaussian(2.0), 0.01, adjacency="replace-one")
    for ask in (spending.step, spending.fits):
        with pytest.raises(hs.errors.IncompatibleError, match="under one adjacency"):
            ask(other)


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


@each_budget
def test_a_state_comes_back_through_json(budget: hs.notions.Notion) -> None:
    spending = hs.calibration.Filter(budget)
    spending.step(hs.PureDP(0.1), count=2)
    spending.step(hs.RandomizedResponse(0.2))
    text = json.dumps(spending.state_dict(), allow_nan=False)
    found = hs.calibration.Filter.from_state_dict(json.loads(text))
    assert repr(found) == repr(spending)
    assert (found.budget, found.slack, found.rule) == (
        spending.budget,
        spending.slack,
        spending.rule,
    )
    assert (found.spent, found.left, len(found)) == (spending.spent, spending.left, 3)
    assert json.dumps(found.state_dict()) == text
    assert repr(pickle.loads(pickle.dumps(spending))) == repr(spending)
    spending.step(found.left)
    spending.load_state_dict(json.loads(text))
    assert spending.left == found.left


def test_a_state_of_another_budget_is_refused() -> None:
    small, large = hs.calibration.Filter(hs.ZCDP(0.1)), hs.calibration.Filter(hs.ZCDP(1.0))
    with pytest.raises(hs.errors.ParameterError, match=r"^budget must be that of"):
        small.load_state_dict(large.state_dict())
    rules = [
        hs.calibration.Filter(hs.ApproxDP(1, 1e-6), rule=rule)
        for rule in ("whitehouse", "concentrated")
    ]
    with pytest.raises(hs.errors.ParameterError, match=r"^rule must be"):
        rules[0].load_state_dict(rules[1].state_dict())


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
    "change", [{"version": 2}, {"kind": "Accountant"}, {"more": 1}, {"slack": 1}]
)
def test_what_is_no_state_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(hs.errors.ParameterError):
        hs.calibration.Filter.from_state_dict(
            hs.calibration.Filter(hs.ZCDP(1.0)).state_dict() | change
        )


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
