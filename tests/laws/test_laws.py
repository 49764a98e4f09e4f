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
from hockeystick.notions import NOTIONS
from tests.examples import DESCRIBED, EXAMPLES, GUARANTEED, STEP

DELTA: Final = 1e-5

# The tests of one mechanism are neighbours, which share its answers.
each_mechanism = pytest.mark.parametrize("plan", EXAMPLES, ids=str, scope="module")


@cache
def answer(plan: hs.Mechanism, accountant: str) -> hs.Certified | hs.Approximate | None:
    try:
        return hs.epsilon(plan, DELTA, accountant=accountant)
    except hs.errors.UnsupportedError:
        return None


def test_every_registered_mechanism_and_notion_has_an_example() -> None:
    assert {type(example).__name__ for example in DESCRIBED} == set(MECHANISMS)
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
    found = answer(STEP**0, accountant)
    assert found is not None
    assert (found.value if isinstance(found, hs.Approximate) else found.upper) == 0.0


@each_mechanism
def test_the_adjacency_of_the_plan_is_that_of_its_answers(plan: hs.Mechanism) -> None:
    for name in ("auto", "rdp"):
        found = answer(plan, name)
        assert found is None or found.adjacency == plan.adjacency
