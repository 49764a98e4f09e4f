"""The DP-SGD plan: what it comes down to, what else it releases, and its users."""

import dataclasses
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick._validate import PARAMETERS
from hockeystick.errors import ParameterError
from hockeystick.io import load_plan
from hockeystick.mechanisms import DPSGD
from hockeystick.mechanisms.training.schedules import MOST_STEPS


def tutorial(**changes: Any) -> DPSGD:
    fields = {"examples": 60_000, "batch_size": 256, "epochs": 60, "noise_multiplier": 1.1}
    return DPSGD(**{**fields, **changes})


def typical(name: str) -> st.SearchStrategy[float]:
    low, high = PARAMETERS[name].typical
    return st.integers(int(low), int(high)) if PARAMETERS[name].whole else st.floats(low, high)


def test_the_smallest_rate_and_the_most_epochs_together_are_refused_and_not_overflown() -> None:
    with pytest.raises(ParameterError, match=r"^epochs must be so few"):
        DPSGD(noise_multiplier=1, rate=5e-324, epochs=1.7e308)


@given(typical("examples"), st.data())
def test_the_rate_is_the_correctly_rounded_quotient(examples: Any, data: Any) -> None:
    batch_size = data.draw(st.integers(1, examples))
    rate = tutorial(examples=examples, batch_size=batch_size).sampling_rate
    error = abs(Fraction(rate) - Fraction(batch_size, examples))
    assert error <= Fraction(math.ulp(rate)) / 2


@given(typical("examples"), typical("batch_size"), st.decimals(0, 500, places=3))
def test_the_steps_are_the_smallest_number_that_covers_the_epochs(
    examples: Any, batch_size: Any, epochs: Any
) -> None:
    batch_size = min(batch_size, examples)
    steps = tutorial(examples=examples, batch_size=batch_size, epochs=float(epochs)).total_steps
    assert steps * batch_size >= Fraction(epochs) * examples
    assert steps == 0 or (steps - 1) * batch_size < Fraction(epochs) * examples


@pytest.mark.parametrize(
    ("changes", "steps", "words"),
    [
        ({}, 14063, "ceil(60 * 60000 / 256) = 14063: a partial last step is a whole release"),
        ({"batch_size": 600}, 6000, "= epochs * examples / batch_size = 60 * 60000 / 600 = 6000"),
        ({"epochs": 5 / 3, "examples": 3, "batch_size": 1}, 5, "last digit of what was given"),
        ({"epochs": 1, "batch_size": None, "rate": 1 / 3}, 3, "last digit of what was given"),
        ({"epochs": 1, "batch_size": None, "rate": 0.333333}, 4, "partial last step is a whole"),
        ({"epochs": 1, "batch_size": None, "rate": 0.1}, 10, "= epochs / rate = 1 / 0.1 = 10"),
        ({"epochs": 0.1, "batch_size": None, "rate": 0.5}, 1, "ceil(0.1 / 0.5) = 1"),
        ({"epochs": 0}, 0, "0 * 60000 / 256 = 0"),
        ({"epochs": None, "steps": 14_062}, 14062, "steps = 14062, as planned"),
    ],
)
def test_the_rule_for_the_steps_is_said_with_its_numbers(
    changes: Any, steps: int, words: str
) -> None:
    changed = tutorial(**changes)
    assert changed.total_steps == steps
    assert words in changed.steps_rule


def test_two_examples_in_very_many_still_make_a_partial_step() -> None:
    examples, batch_size, epochs = 10**15 - 1, 1001, 1000
    whole, left = divmod(epochs * examples, batch_size)
    assert left == 2
    found = tutorial(examples=examples, batch_size=batch_size, epochs=epochs)
    assert found.total_steps == whole + 1


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_a_user_with_several_examples_is_a_group_in_each_sample(adjacency: str) -> None:
    alone = hs.DPSGD(
        examples=1000, batch_size=10, steps=20, noise_multiplier=2.0, adjacency=adjacency
    )
    several = dataclasses.replace(alone, examples_per_user=3)
    group = hs.mechanisms.PoissonSubsampledGroup(hs.Gaussian(2.0), Fraction(1, 100), 3, adjacency)
    assert several.mechanism == group**20
    with pytest.raises(hs.errors.IncompatibleError, match="protect the same"):
        several @ alone


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_full_batch_holds_all_of_a_user(adjacency: str) -> None:
    whole: dict[str, Any] = {"sampling": "full-batch", "examples_per_user": 4, "steps": 5}
    plan = hs.DPSGD(examples=100, noise_multiplier=40.0, adjacency=adjacency, **whole)
    same = hs.Gaussian(40.0 / (4 if adjacency == "add-remove" else 8)) ** 5
    found, truth = hs.epsilon(plan, 1e-6), hs.epsilon(same, 1e-6)
    assert found.upper == pytest.approx(truth.upper, rel=1e-9)


def test_a_group_has_what_one_user_with_so_many_examples_costs() -> None:
    alone = plan(noise_multiplier=2.0, steps=5, extra=hs.Gaussian(9.0))
    grown = alone.for_group(3)
    assert grown == dataclasses.replace(alone, examples_per_user=3, extra=hs.Gaussian(3.0))
    step = hs.mechanisms.PoissonSubsampledGroup(hs.Gaussian(2.0), Fraction(1, 100), 3)
    assert grown.expanded == step**5 @ hs.Gaussian(3.0)
    with pytest.raises(hs.errors.NoGroupFormError, match="PoissonSubsampledGroup describes"):
        hs.PoissonSubsampled(hs.Gaussian(2.0), 0.01).for_group(3)


MEANS = hs.Gaussian(20.0)
COUNTS = hs.Laplace(50.0)


def plan(**changes: Any) -> hs.DPSGD:
    fields = {"noise_multiplier": 1.1, "rate": 0.01, "steps": 400}
    return hs.DPSGD(**{**fields, **changes})


def test_what_else_is_released_is_composed() -> None:
    assert plan(extra=(MEANS,)).mechanism == hs.Composed((plan().mechanism, MEANS))
    both = plan(extra=(MEANS, COUNTS))
    assert both.extra == MEANS @ COUNTS
    assert plan(extra=[MEANS, COUNTS]) == both
    assert plan(extra=(MEANS,)) == plan(extra=MEANS)


def test_another_adjacency_is_refused_as_in_a_composition() -> None:
    replaced = hs.PoissonSubsampled(hs.Gaussian(2.0), 0.1, "replace-one")
    with pytest.raises(hs.errors.IncompatibleError, match="described under one adjacency"):
        plan(extra=replaced)
    assert plan(extra=replaced, adjacency="replace-one").extra == replaced


def test_a_plan_file_has_it_as_a_table_or_an_array(tmp_path: Path) -> None:
    means = '{ mechanism = "Gaussian", noise_multiplier = 20 }'
    counts = '{ mechanism = "Laplace", scale = 50 }'
    path, fields = tmp_path / "plan.toml", "rate = 0.01\nsteps = 400\nnoise_multiplier = 1.1"
    for text, extra in ((counts, COUNTS), (f"[{means}, {counts}]", MEANS @ COUNTS)):
        path.write_text(f"[dpsgd]\n{fields}\nextra = {text}\n")
        assert load_plan(path).plan == plan(extra=extra)


@pytest.mark.parametrize("steps", [MOST_STEPS + 1, 10**15])
def test_more_steps_than_can_be_listed_are_refused_by_name(steps: int) -> None:
    plan = hs.DPSGD(noise_multiplier=2.0, rate=0.001, steps=steps)
    with pytest.raises(hs.errors.ParameterError, match=r"^steps must be at most 10,000,000"):
        _ = plan.noise_multipliers
    assert hs.epsilon(plan, 1e-5).upper > 0.0


NUMBERS: dict[str, Any] = {"examples": 100, "step_size": 0.1, "smoothness": 5.0}
make = hs.mechanisms.LastIterate


def test_a_batch_of_all_records_is_full_and_a_smaller_one_takes_turns() -> None:
    assert make(1, 10, **NUMBERS).batches == "full-batch"
    assert make(1, 10, **NUMBERS).period == 1
    assert make(1, 10, batch_size=30, **NUMBERS).batches == "cyclic"
    assert make(1, 10, batch_size=30, **NUMBERS).period == 4


def test_numbers_mean_their_decimals() -> None:
    run = make(1, 10, convexity=0.3, diameter=0.7, gradient_bound=0.1, **NUMBERS)
    assert run.factors == (Fraction(1, 2), Fraction(97, 100))
    assert run.moves_across == 7000
    assert make(1, 10, **NUMBERS).moves_across is None
    assert make(1, 10, gradient_bound=1, **NUMBERS).moves_across is None
