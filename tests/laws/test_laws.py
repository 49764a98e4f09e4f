"""What every mechanism and every accountant must have; `test_random_plans` has the laws.

A mechanism without an example, or with a number whose direction is not stated, fails here.
"""

import dataclasses
from functools import cache
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.accountants import ACCOUNTANTS
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import NOTIONS, ZCDP, ApproxDP, PureDP
from tests.examples import DESCRIBED, EXAMPLES, GUARANTEED, STEP, TRAINING

DELTA: Final = 1e-5
EPSILON: Final = 0.7

# Plans composed of more than one kind of loss.
COMPOSITIONS: Final[tuple[hs.Mechanism, ...]] = (
    STEP**300 @ hs.Gaussian(8.0),
    hs.Laplace(2.0) ** 5 @ hs.RandomizedResponse(0.6),
    hs.Gaussian(5.0) @ ZCDP(0.05),
    ApproxDP(0.1, 1e-15) ** 20 @ PureDP(0.2) @ ApproxDP(0.0, 1e-14),
    hs.mechanisms.RevealedSample(hs.Gaussian(2.0), 0.4) @ hs.Gaussian(4.0) ** 3,
    hs.Parallel((STEP**50, TRAINING), split="client") @ hs.Gaussian(6.0),
)

# The tests of one mechanism are neighbours, which share its answers.
each_mechanism = pytest.mark.parametrize("plan", EXAMPLES, ids=str, scope="module")


@cache
def answer(
    plan: hs.Mechanism, accountant: str, quantity: str = "epsilon", value: float = DELTA
) -> hs.Certified | hs.Approximate | None:
    """Return an accountant's answer, or None where it knows no analysis."""
    question = hs.epsilon if quantity == "epsilon" else hs.delta
    try:
        return question(plan, value, accountant=accountant)
    except hs.errors.UnsupportedError:
        return None


def ends(found: hs.Certified | hs.Approximate | None) -> tuple[float, ...] | None:
    if found is None:
        return None
    if isinstance(found, hs.Approximate):
        return (found.value,)
    return (found.lower, found.estimate, found.upper)


def test_every_registered_mechanism_has_an_example() -> None:
    assert {type(example).__name__ for example in DESCRIBED} == set(MECHANISMS)


def test_every_registered_notion_has_an_example() -> None:
    assert [type(example).__name__ for example in GUARANTEED] == list(NOTIONS)


@each_mechanism
def test_a_description_says_of_every_number_which_way_the_cost_goes(plan: Any) -> None:
    stated = [*plan.rises_with, *plan.falls_with, *plan.unordered]
    values = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    numbers = {
        name
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    assert len(stated) == len(set(stated))
    assert numbers <= set(stated) <= set(values)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_every_accountant_finds_that_no_run_costs_nothing(accountant: str) -> None:
    assert ends(answer(STEP**0, accountant)) in ((0.0,), (0.0, 0.0, 0.0))


# One tuning alone is what "selection" is for.
@pytest.mark.parametrize("accountant", [name for name in ACCOUNTANTS if name != "selection"])
def test_every_accountant_answers_for_a_composition(accountant: str) -> None:
    assert any(answer(plan, accountant) is not None for plan in COMPOSITIONS)


@each_mechanism
def test_the_adjacency_of_the_plan_is_that_of_its_answers(plan: hs.Mechanism) -> None:
    for name in ("auto", "rdp"):
        found = answer(plan, name)
        assert found is None or found.adjacency == plan.adjacency


def test_zero_out_costs_what_add_remove_costs() -> None:
    noise = hs.Gaussian(2.0)
    one = hs.epsilon(hs.PoissonSubsampled(noise, 0.05, "zero-out") ** 50, DELTA)
    other = hs.epsilon(hs.PoissonSubsampled(noise, 0.05) ** 50, DELTA)
    assert ends(one) == ends(other)


def test_replacing_costs_what_half_the_noise_does() -> None:
    replacing = hs.DPSGD(noise_multiplier=6, rate=1, steps=9, adjacency="replace-one")
    assert ends(hs.epsilon(replacing, DELTA)) == ends(hs.epsilon(hs.Gaussian(3) ** 9, DELTA))
