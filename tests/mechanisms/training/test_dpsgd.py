"""The DP-SGD plan: what is asked of its parameters, and what it comes down to."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick._validate import PARAMETERS
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import DPSGD, Gaussian, PoissonSubsampled

TUTORIAL = {"examples": 60_000, "batch_size": 256, "epochs": 60, "noise_multiplier": 1.1}


def plan(**changes: Any) -> DPSGD:
    """Return the tutorial's plan with some parameters changed."""
    return DPSGD(**{**TUTORIAL, **changes})


def typical(name: str) -> st.SearchStrategy[float]:
    """Return a strategy for the typical values of a parameter."""
    low, high = PARAMETERS[name].typical
    return st.integers(int(low), int(high)) if PARAMETERS[name].whole else st.floats(low, high)


def test_the_tutorial_comes_down_to_a_repeated_subsampled_gaussian() -> None:
    step = PoissonSubsampled(Gaussian(1.1), Fraction(256, 60_000))
    assert plan().mechanism == step**14_063
    assert plan(adjacency="zero-out").mechanism == (
        PoissonSubsampled(Gaussian(1.1), Fraction(256, 60_000), "zero-out") ** 14_063
    )


def test_what_was_given_is_kept_and_what_was_not_is_none() -> None:
    given_ = plan()
    assert (given_.examples, given_.batch_size, given_.epochs) == (60_000, 256, 60)
    assert given_.rate is None
    assert given_.steps is None


def test_a_parameter_can_be_replaced() -> None:
    assert dataclasses.replace(plan(), noise_multiplier=2) == plan(noise_multiplier=2)
    by_steps = dataclasses.replace(plan(), epochs=None, steps=100)
    assert by_steps.total_steps == 100


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 100}, "give epochs or steps, not both; got epochs = 60, steps = 100"),
        ({"rate": 0.01}, "give batch_size or rate, not both; got batch_size = 256, rate = 0.01"),
    ],
)
def test_of_two_ways_to_say_the_same_only_one_is_taken(changes: Any, message: str) -> None:
    with pytest.raises(IncompatibleError) as caught:
        plan(**changes)
    assert str(caught.value) == message


def test_parameters_can_only_be_given_by_name() -> None:
    kind: Any = DPSGD
    with pytest.raises(TypeError):
        kind(1.1, 60_000)


def test_the_smallest_rate_and_the_most_epochs_together_are_refused_and_not_overflown() -> None:
    with pytest.raises(ParameterError, match=r"^epochs must be so few"):
        DPSGD(noise_multiplier=1, rate=5e-324, epochs=1.7e308)


def test_the_size_of_the_training_set_may_go_with_a_rate() -> None:
    assert plan(batch_size=None, rate=0.01).sampling_rate == 0.01


@given(typical("examples"), st.data())
def test_the_rate_is_the_correctly_rounded_quotient(examples: Any, data: Any) -> None:
    batch_size = data.draw(st.integers(1, examples))
    rate = plan(examples=examples, batch_size=batch_size).sampling_rate
    error = abs(Fraction(rate) - Fraction(batch_size, examples))
    assert error <= Fraction(math.ulp(rate)) / 2


@given(typical("examples"), typical("batch_size"), st.decimals(0, 500, places=3))
def test_the_steps_are_the_smallest_number_that_covers_the_epochs(
    examples: Any, batch_size: Any, epochs: Any
) -> None:
    batch_size = min(batch_size, examples)
    steps = plan(examples=examples, batch_size=batch_size, epochs=float(epochs)).total_steps
    assert steps * batch_size >= Fraction(epochs) * examples
    assert steps == 0 or (steps - 1) * batch_size < Fraction(epochs) * examples


@pytest.mark.parametrize(
    ("changes", "steps", "words"),
    [
        ({}, 14063, "ceil(60 * 60000 / 256) = 14063: a partial last step is a whole release"),
        ({"batch_size": 600}, 6000, "= epochs * examples / batch_size = 60 * 60000 / 600 = 6000"),
        ({"epochs": 0.1, "examples": 100, "batch_size": 1}, 10, "0.1 * 100 / 1 = 10"),
        ({"epochs": 5 / 3, "examples": 3, "batch_size": 1}, 5, "last digit of what was given"),
        ({"epochs": 1, "batch_size": None, "rate": 1 / 3}, 3, "last digit of what was given"),
        ({"epochs": 1, "batch_size": None, "rate": 0.333333}, 4, "partial last step is a whole"),
        ({"epochs": 1, "batch_size": None, "rate": 0.1}, 10, "= epochs / rate = 1 / 0.1 = 10"),
        ({"epochs": 1e-9}, 1, "a partial last step is a whole release"),
        ({"epochs": 0.1, "batch_size": None, "rate": 0.5}, 1, "ceil(0.1 / 0.5) = 1"),
        ({"epochs": 0}, 0, "0 * 60000 / 256 = 0"),
        ({"epochs": None, "steps": 14_062}, 14062, "steps = 14062, as planned"),
    ],
)
def test_the_rule_for_the_steps_is_said_with_its_numbers(
    changes: Any, steps: int, words: str
) -> None:
    changed = plan(**changes)
    assert changed.total_steps == steps
    assert words in changed.steps_rule


def test_two_examples_in_very_many_still_make_a_partial_step() -> None:
    examples, batch_size, epochs = 10**15 - 1, 1001, 1000
    whole, left = divmod(epochs * examples, batch_size)
    assert left == 2
    assert plan(examples=examples, batch_size=batch_size, epochs=epochs).total_steps == whole + 1


@pytest.mark.parametrize("length", [{"steps": 0}, {"epochs": 0}])
def test_a_plan_without_steps_releases_nothing(length: Any) -> None:
    empty = plan(**{"epochs": None, **length})
    assert empty.mechanism == PoissonSubsampled(Gaussian(1.1), Fraction(256, 60_000)) ** 0


def test_at_rate_one_nothing_is_sampled() -> None:
    whole = plan(batch_size=60_000)
    assert whole.sampling_rate == 1
    assert whole.mechanism == Gaussian(1.1) ** 60
    assert whole.adjacency is Adjacency.ADD_REMOVE


def test_under_replace_one_the_sensitivity_is_twice_the_clipping_norm() -> None:
    replaced = plan(batch_size=60_000, adjacency="replace-one")
    assert replaced.mechanism == Gaussian(0.55) ** 60
    assert replaced.adjacency is Adjacency.REPLACE_ONE
    assert any("twice the clipping norm" in text for text in replaced.assumptions)


def test_poisson_batches_with_a_replaced_example_keep_their_noise() -> None:
    replaced = plan(adjacency="replace-one")
    step = PoissonSubsampled(Gaussian(1.1), Fraction(256, 60_000), "replace-one")
    assert replaced.mechanism == step**14_063
    assert any("twice the clipping norm" in text for text in replaced.assumptions)


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_a_user_with_several_examples_is_a_group_in_each_sample(adjacency: str) -> None:
    plan = hs.DPSGD(
        examples=1000,
        batch_size=10,
        steps=20,
        noise_multiplier=2.0,
        examples_per_user=3,
        adjacency=adjacency,
    )
    group = hs.mechanisms.PoissonSubsampledGroup(hs.Gaussian(2.0), Fraction(1, 100), 3, adjacency)
    assert plan.mechanism == group**20
    assert "users with 3 examples" in str(plan)
    assert "up to 3 examples, all of one user" in plan.assumptions[0]
    alone = hs.DPSGD(
        examples=1000, batch_size=10, steps=20, noise_multiplier=2.0, adjacency=adjacency
    )
    assert hs.epsilon(alone, 1e-6).upper < hs.epsilon(plan, 1e-6).lower
    with pytest.raises(hs.errors.IncompatibleError, match="protect the same"):
        plan @ alone


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_full_batch_holds_all_of_a_user(adjacency: str) -> None:
    plan = hs.DPSGD(
        examples=100,
        sampling="full-batch",
        steps=5,
        noise_multiplier=40.0,
        examples_per_user=4,
        adjacency=adjacency,
    )
    move = 4 if adjacency == "add-remove" else 8
    assert hs.epsilon(plan, 1e-6).upper == pytest.approx(
        hs.epsilon(hs.Gaussian(40.0 / move) ** 5, 1e-6).upper, rel=1e-9
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sampling": "fixed-size"}, r"sampling 'fixed-size'.* in Python, .*tradeoff\(plan\)\.gro"),
        (
            {"sampling": "shuffle", "adjacency": "zero-out"},
            r"no analysis with sampling 'shuffle'.* ask for a group of records: --group 2, or in "
            r"Python plan\.for_group\(2\)$",
        ),
        ({"batch_cap": 20}, "leave out batch_cap"),
        ({"clipping": "batch"}, "clip each example on its own"),
        ({"examples_per_user": 1001}, "at most the number of examples, 1,000"),
        ({"examples_per_user": 0}, "examples_per_user must be"),
        ({"examples_per_user": 1.5}, "examples_per_user must be"),
    ],
)
def test_users_with_several_examples_are_refused_elsewhere(
    changes: dict[str, Any], reason: str
) -> None:
    given = {"examples": 1000, "batch_size": 10, "epochs": 1, "noise_multiplier": 1.0}
    with pytest.raises(hs.errors.HockeystickError, match=reason):
        hs.DPSGD(**{**given, "examples_per_user": 2, **changes})


def test_users_keep_their_examples_with_schedules() -> None:
    schedule = hs.schedules.Linear(0.001)
    plan = hs.DPSGD(
        rate=0.01, steps=3, noise_multiplier=2.0, schedule=schedule, examples_per_user=3
    )
    parts = plan.mechanism.expanded
    assert "groups of 3" in str(parts)


def test_a_group_has_what_one_user_with_so_many_examples_costs() -> None:
    plan = hs.DPSGD(noise_multiplier=2.0, rate=0.01, steps=5, extra=hs.Gaussian(9.0))
    grown = plan.for_group(3)
    assert grown == hs.DPSGD(
        noise_multiplier=2.0, rate=0.01, steps=5, examples_per_user=3, extra=hs.Gaussian(3.0)
    )
    step = hs.mechanisms.PoissonSubsampledGroup(hs.Gaussian(2.0), Fraction(1, 100), 3)
    assert grown.expanded == step**5 @ hs.Gaussian(3.0)
    with pytest.raises(hs.errors.NoGroupFormError, match="PoissonSubsampledGroup describes"):
        hs.PoissonSubsampled(hs.Gaussian(2.0), 0.01).for_group(3)
