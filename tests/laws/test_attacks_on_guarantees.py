"""No attack on concrete data exceeds what a plan was converted to, charged with, or solved for."""

import math
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from tests.oracles.sampled_sums import Attack

ADJACENCIES: Final = ("add-remove", "zero-out", "replace-one")
RATES: Final = (0.02, 0.5, 0.9, 1.0)
EPSILONS: Final = (0.0, 0.5, 2.0, 5.0)
ORDERS: Final = (1.5, 2.0, 6.0)
STEPS: Final = 5
NOISE: Final = 2.0
HUGE: Final = 1e9

each_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
each_rate = pytest.mark.parametrize("rate", RATES)


def sampled(rate: float, adjacency: str, noise: float = NOISE) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise), rate, adjacency)


def holds(guarantee: Notion, attack: Attack, steps: int) -> None:
    """No delta and no divergence of the attack exceeds what the guarantee allows."""
    if isinstance(guarantee, ApproxDP):
        assert attack.delta(guarantee.epsilon, steps) <= guarantee.delta
        return
    if isinstance(guarantee, RenyiDP):
        for order, divergence in guarantee.divergences:
            assert steps * attack.divergence(order) <= divergence
        return
    for epsilon in EPSILONS:
        assert attack.delta(epsilon, steps) <= hs.delta(guarantee, epsilon).upper


def test_the_attack_is_the_exact_delta_of_gaussian_noise_but_for_its_cells() -> None:
    for adjacency, noise in (("add-remove", 1.0), ("replace-one", 2.0)):
        attack = Attack(noise, 1.0, adjacency)
        for epsilon in EPSILONS:
            for steps in (1, STEPS):
                truth = hs.delta(hs.Gaussian(1.0) ** steps, epsilon)
                assert 0.97 * truth.lower <= attack.delta(epsilon, steps) <= truth.upper
        assert attack.divergence(2.0) == pytest.approx(1.0, rel=1e-3)


@each_rate
@each_adjacency
@pytest.mark.parametrize("steps", [1, STEPS])
@pytest.mark.parametrize(
    ("notion", "given"),
    [(GDP, {}), (ZCDP, {}), (TCDP, {"omega": 9.0}), (RenyiDP, {"orders": ORDERS})],
    ids=["GDP", "ZCDP", "TCDP", "RenyiDP"],
)
def test_no_attack_exceeds_a_converted_guarantee(
    notion: type[Notion], given: dict[str, Any], steps: int, adjacency: str, rate: float
) -> None:
    plan = sampled(rate, adjacency) ** steps
    holds(hs.convert(plan, notion, **given), Attack(NOISE, rate, adjacency), steps)


BUDGETS: Final[tuple[tuple[Notion, dict[str, Any]], ...]] = (
    (GDP(HUGE), {}),
    (ZCDP(HUGE), {}),
    (TCDP(HUGE, 9.0), {}),
    (RenyiDP(dict.fromkeys(ORDERS, HUGE)), {}),
    (ApproxDP(HUGE, 1e-4), {}),
    (ApproxDP(HUGE, 1e-4), {"rule": "whitehouse"}),
    (ApproxDP(HUGE, 1e-4), {"slack": 1e-4}),
    (ApproxDP(30.0, 1e-4), {"expected": hs.Gaussian(2.0)}),
)


@each_rate
@each_adjacency
@pytest.mark.parametrize(("budget", "options"), BUDGETS, ids=str)
def test_no_attack_exceeds_what_a_filter_has_charged(
    budget: Notion, options: dict[str, Any], adjacency: str, rate: float
) -> None:
    spending = hs.calibration.Filter(budget, **options)
    for _ in range(STEPS):
        spending.step(sampled(rate, adjacency))
    holds(spending.spent, Attack(NOISE, rate, adjacency), STEPS)


@each_rate
@each_adjacency
@pytest.mark.parametrize(
    "budget",
    [GDP(1.5), ZCDP(1.0), TCDP(1.0, 9.0), RenyiDP({2.0: 1.5}), ApproxDP(4.0, 1e-5)],
    ids=str,
)
def test_no_attack_exceeds_the_budget_of_a_filter_that_is_full(
    budget: Notion, adjacency: str, rate: float
) -> None:
    spending, step = hs.calibration.Filter(budget), sampled(rate, adjacency, 4.0)
    while len(spending) < 200 and spending.fits(step):
        spending.step(step)
    assert len(spending) > 0
    holds(budget, Attack(4.0, rate, adjacency), len(spending))


@each_rate
@each_adjacency
@pytest.mark.parametrize("expected", [None, hs.Gaussian(4.0)], ids=["rho", "orders"])
def test_no_attack_exceeds_an_odometer(
    adjacency: str, rate: float, expected: hs.Mechanism | None
) -> None:
    odometer = hs.calibration.Odometer(1e-4, expected=expected)
    attack = Attack(NOISE, rate, adjacency)
    for steps in range(1, STEPS + 1):
        assert attack.delta(odometer.step(sampled(rate, adjacency)), steps) <= 1e-4


@each_adjacency
@pytest.mark.parametrize("rate", [0.9, 1.0])
@pytest.mark.parametrize("budget", [GDP(1.5), ZCDP(1.0)], ids=str)
def test_no_attack_exceeds_the_budget_that_noise_was_solved_for(
    budget: Any, adjacency: str, rate: float
) -> None:
    step = sampled(rate, adjacency)
    shared = hs.calibration.share_budget(budget, [step] * STEPS).releases[0]
    searched = hs.calibration.grid_search(budget, step, STEPS).releases[0]
    solved = hs.calibrate(step, "noise_multiplier", budget).plan
    for plan, steps in ((shared, STEPS), (searched, STEPS), (solved, 1)):
        assert isinstance(plan, hs.PoissonSubsampled)
        assert isinstance(plan.inner, hs.Gaussian)
        holds(budget, Attack(plan.inner.noise_multiplier, rate, adjacency), steps)


def test_the_worked_examples_of_opposite_records() -> None:
    """At rate 0.9 and noise 1, an opposite record has delta(2) = 0.21274 and D_2 above 1.366 2."""
    step, attack = sampled(0.9, "replace-one", 1.0), Attack(1.0, 0.9, "replace-one")
    assert attack.delta(2.0) == pytest.approx(0.21274, abs=2e-4)
    assert hs.delta(hs.convert(step, GDP), 2.0).upper >= 0.21274
    assert hs.convert(step, ZCDP).rho >= 1.366
    sure = sampled(1.0, "replace-one", 1.0)
    assert not hs.calibration.Filter(RenyiDP({2.0: 1.0})).fits(sure)
    assert dict(hs.convert(sure, RenyiDP, orders=2.0).divergences)[2.0] == pytest.approx(4.0)
    spending = hs.calibration.Filter(ApproxDP(4.0, 1e-5))
    with pytest.raises(hs.errors.BudgetExhausted):
        spending.step(sampled(0.9, "replace-one", 4.0), count=11)
    assert Attack(4.0, 0.9, "replace-one").delta(4.0, 11) > 0.0094
    with pytest.raises(hs.errors.IncompatibleError):
        hs.convert(step, PureDP)
    assert math.isinf(hs.epsilon(step, 0.0).upper)
