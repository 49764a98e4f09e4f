"""What a plan is converted to, or charged with, is never below what the plan surely costs.

The law is enumerated: every registered mechanism under every adjacency that it takes, at its own
rate, at rate 0, nearly 1 and exactly 1, and nested; against every notion, every filter and the
odometer. The judge is the certified lower end of the plan's own delta, which the lattice and the
contour compute from the pair of losses, and no conversion takes part in.
"""

import dataclasses
import math
import operator
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import GDP, NOTIONS, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from tests.examples import EXAMPLES

RATES: Final = (0.0, 0.9, 1.0)
EPSILONS: Final = (0.7, 3.0)
DELTA: Final = 1e-5
GIVEN: Final[dict[str, dict[str, Any]]] = {
    "ApproxDP": {"delta": DELTA},
    "TCDP": {"omega": 9.0},
    "RenyiDP": {"orders": (1.5, 8.0)},
}
BUDGETS: Final[tuple[tuple[Notion, dict[str, Any]], ...]] = (
    (PureDP(1e9), {}),
    (GDP(1e9), {}),
    (ZCDP(1e9), {}),
    (TCDP(1e9, 9.0), {}),
    (RenyiDP({1.5: 1e9, 8.0: 1e9}), {}),
    (ApproxDP(1e9, 1e-4), {"slack": 0.0}),
    (ApproxDP(1e9, 1e-4), {"slack": DELTA}),
    (ApproxDP(1e9, 1e-4), {"slack": DELTA, "rule": "whitehouse"}),
)


def _variants(plan: Any) -> Iterator[hs.Mechanism]:
    """The plan under every adjacency and at every rate that it takes."""
    names = {field.name for field in dataclasses.fields(plan)}
    for adjacency in (plan.adjacency, *hs.Adjacency):
        for rate in (None, *RATES):
            asked: dict[str, Any] = {} if rate is None else {"rate": rate}
            if adjacency != plan.adjacency:
                asked["adjacency"] = adjacency
            if asked.keys() <= names:
                try:
                    yield dataclasses.replace(plan, **asked)
                except hs.HockeystickError:
                    continue


def _nested() -> Iterator[hs.Mechanism]:
    """Sampled noise inside whatever takes it."""
    for adjacency in hs.Adjacency:
        for rate in RATES:
            one = hs.PoissonSubsampled(hs.Gaussian(1.5), rate, adjacency)
            yield one**3 @ hs.Gaussian(2.0)
            yield hs.Parallel((one, hs.Gaussian(2.5)))
            yield hs.Parallel((one**2, hs.Gaussian(2.5))) ** 2 @ hs.PureDP(0.3)
            yield hs.mechanisms.RevealedSample(one, 0.5)
            yield hs.federated.RevealedRound(one**2 @ one, 0.6)
            yield hs.FDP(hs.tradeoff(one**2))
            yield hs.DPSGD(noise_multiplier=1.5, rate=rate, steps=2, adjacency=adjacency)
            yield hs.federated.FedSDP(
                noise_multiplier=1.5,
                total_clients=10,
                clients_per_round=max(round(10 * rate), 1),
                rounds=2,
                sampling="poisson",
                adjacency=adjacency,
            )
            yield hs.federated.FedCDP(
                noise_multiplier=1.5,
                total_clients=10,
                clients_per_round=max(round(10 * rate), 1),
                examples_per_client=10,
                batch_size=10,
                local_steps=1,
                rounds=2,
                sampling="poisson",
                adjacency=adjacency,
            )
    for mechanism in (hs.Laplace(1.0), hs.DiscreteGaussian(2.0), hs.RandomizedResponse(1.0)):
        for rate in RATES:
            yield hs.PoissonSubsampled(mechanism, rate, "zero-out") ** 2 @ hs.Exponential(0.5)
            yield hs.mechanisms.RevealedSample(mechanism, rate)
    yield hs.mechanisms.RandomStopping(
        hs.PoissonSubsampled(hs.Gaussian(4.0), 1.0, "replace-one"),
        hs.mechanisms.tuning.TruncatedNegativeBinomial(1.0, 0.2),
    )


PLANS: Final = tuple(
    dict.fromkeys([*(one for plan in EXAMPLES for one in _variants(plan)), *_nested()])
)


def _each(plans: Iterable[hs.Mechanism]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "plan", [pytest.param(plan, id=f"{plan} {plan.adjacency or ''}".strip()) for plan in plans]
    )


each_plan = _each(PLANS)
# Whether a rule applies is the business of the mechanism, hardly of its rate.
each_kind = _each(dict.fromkeys([*EXAMPLES, *_nested()]))


@cache
def surely(plan: hs.Mechanism, epsilon: float) -> float:
    """The certified lower end of the plan's delta."""
    return hs.delta(plan, epsilon).lower


@cache
def allowed(guarantee: Notion, epsilon: float) -> float:
    """The most that a guarantee allows."""
    return hs.delta(guarantee, epsilon).upper


def numbers(guarantee: Notion) -> tuple[float, ...]:
    """What allows more where it is larger; nothing for a function."""
    if isinstance(guarantee, RenyiDP):
        return tuple(size for _, size in guarantee.divergences)
    if isinstance(guarantee, ApproxDP):
        return guarantee.epsilon, guarantee.delta
    names = ("epsilon", "mu", "rho")
    return tuple(getattr(guarantee, name) for name in names if hasattr(guarantee, name))


def _guarantees(plan: hs.Mechanism) -> Iterator[Notion]:
    """What the plan is converted to, and what is charged for it."""
    refused = (hs.errors.IncompatibleError, hs.errors.UnsupportedError)
    for target in NOTIONS:
        with suppress(*refused):
            yield hs.convert(plan, target, **GIVEN.get(target, {}))
    for budget, options in BUDGETS:
        spending = hs.calibration.Filter(budget, **options)
        # Without slack nothing but the largest loss pays, which there may not be.
        with suppress(
            *refused, *((hs.errors.BudgetExhausted,) if options.get("slack") == 0.0 else ())
        ):
            spending.step(plan)
            yield spending.spent
    odometer = hs.calibration.Odometer(DELTA)
    with suppress(*refused):
        yield ApproxDP(odometer.step(plan), DELTA)


def check(plan: hs.Mechanism, guarantee: Notion) -> None:
    """The guarantee allows what the plan surely costs."""
    if isinstance(guarantee, ApproxDP):
        if guarantee.epsilon < math.inf:
            assert surely(plan, guarantee.epsilon) <= guarantee.delta
        return
    for epsilon in EPSILONS:
        assert surely(plan, epsilon) <= allowed(guarantee, epsilon) * (1 + 1e-12), epsilon


def test_every_mechanism_notion_and_adjacency_is_asked() -> None:
    kinds = {type(plan).__name__ for plan in PLANS}
    assert kinds >= set(MECHANISMS) | set(NOTIONS)
    for kind in (hs.PoissonSubsampled, hs.DPSGD, hs.federated.FedSDP, hs.federated.FedCDP):
        shown = {plan.adjacency for plan in PLANS if isinstance(plan, kind)}
        assert shown == set(hs.Adjacency), kind


@each_plan
def test_no_guarantee_is_below_what_the_plan_surely_costs(plan: hs.Mechanism) -> None:
    """Conversions, filters and the odometer; what allows more than another one holds with it."""
    known: dict[type[Notion], list[tuple[float, ...]]] = {}
    for guarantee in _guarantees(plan):
        size = numbers(guarantee)
        seen = known.setdefault(type(guarantee), [])
        if not any(size and all(map(operator.ge, size, other)) for other in seen):
            check(plan, guarantee)
            seen.append(tuple(number * (1 - 1e-12) for number in size))


@each_kind
def test_what_the_accountants_know_of_rho_is_known_to_the_conversion_and_the_filter(
    plan: hs.Mechanism,
) -> None:
    """No false refusal: where accountant "zcdp" has an answer, TCDP up to order 1.5 has one."""
    try:
        hs.delta(plan, 1.0, accountant="zcdp")
    except hs.errors.UnsupportedError:
        return
    if hs.delta(plan, math.inf).upper == 0.0:
        found = hs.convert(plan, TCDP, omega=1.05)
        assert found.rho < math.inf
        spending = hs.calibration.Filter(TCDP(1e9, 1.05))
        spending.step(plan)
