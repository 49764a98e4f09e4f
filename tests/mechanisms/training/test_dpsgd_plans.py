"""The DP-SGD plan: what it comes down to, what else it releases, and its users."""

import math
from fractions import Fraction
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick._validate import PARAMETERS
from hockeystick.errors import ParameterError
from hockeystick.io import load_plan
from hockeystick.mechanisms import DPSGD, Gaussian, PoissonSubsampled
from hockeystick.mechanisms.training.schedules import MOST_STEPS

TUTORIAL = {"examples": 60_000, "batch_size": 256, "epochs": 60, "noise_multiplier": 1.1}


def tutorial(**changes: Any) -> DPSGD:
    return DPSGD(**{**TUTORIAL, **changes})


def typical(name: str) -> st.SearchStrategy[float]:
    """Return a strategy for the typical values of a parameter."""
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
    changed = tutorial(**changes)
    assert changed.total_steps == steps
    assert words in changed.steps_rule


def test_two_examples_in_very_many_still_make_a_partial_step() -> None:
    examples, batch_size, epochs = 10**15 - 1, 1001, 1000
    whole, left = divmod(epochs * examples, batch_size)
    assert left == 2
    assert (
        tutorial(examples=examples, batch_size=batch_size, epochs=epochs).total_steps == whole + 1
    )


@pytest.mark.parametrize("length", [{"steps": 0}, {"epochs": 0}])
def test_a_plan_without_steps_releases_nothing(length: Any) -> None:
    empty = tutorial(**{"epochs": None, **length})
    assert empty.mechanism == PoissonSubsampled(Gaussian(1.1), Fraction(256, 60_000)) ** 0


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_a_user_with_several_examples_is_a_group_in_each_sample(adjacency: str) -> None:
    tutorial = hs.DPSGD(
        examples=1000,
        batch_size=10,
        steps=20,
        noise_multiplier=2.0,
        examples_per_user=3,
        adjacency=adjacency,
    )
    group = hs.mechanisms.PoissonSubsampledGroup(hs.Gaussian(2.0), Fraction(1, 100), 3, adjacency)
    assert tutorial.mechanism == group**20
    assert "users with 3 examples" in str(tutorial)
    assert "up to 3 examples, all of one user" in tutorial.assumptions[0]
    alone = hs.DPSGD(
        examples=1000, batch_size=10, steps=20, noise_multiplier=2.0, adjacency=adjacency
    )
    assert hs.epsilon(alone, 1e-6).upper < hs.epsilon(tutorial, 1e-6).lower
    with pytest.raises(hs.errors.IncompatibleError, match="protect the same"):
        tutorial @ alone


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_full_batch_holds_all_of_a_user(adjacency: str) -> None:
    tutorial = hs.DPSGD(
        examples=100,
        sampling="full-batch",
        steps=5,
        noise_multiplier=40.0,
        examples_per_user=4,
        adjacency=adjacency,
    )
    move = 4 if adjacency == "add-remove" else 8
    assert hs.epsilon(tutorial, 1e-6).upper == pytest.approx(
        hs.epsilon(hs.Gaussian(40.0 / move) ** 5, 1e-6).upper, rel=1e-9
    )


def test_a_group_has_what_one_user_with_so_many_examples_costs() -> None:
    tutorial = hs.DPSGD(noise_multiplier=2.0, rate=0.01, steps=5, extra=hs.Gaussian(9.0))
    grown = tutorial.for_group(3)
    assert grown == hs.DPSGD(
        noise_multiplier=2.0, rate=0.01, steps=5, examples_per_user=3, extra=hs.Gaussian(3.0)
    )
    step = hs.mechanisms.PoissonSubsampledGroup(hs.Gaussian(2.0), Fraction(1, 100), 3)
    assert grown.expanded == step**5 @ hs.Gaussian(3.0)
    with pytest.raises(hs.errors.NoGroupFormError, match="PoissonSubsampledGroup describes"):
        hs.PoissonSubsampled(hs.Gaussian(2.0), 0.01).for_group(3)


MEANS = hs.Gaussian(20.0)
COUNTS = hs.Laplace(50.0)


def plan(**changes: Any) -> hs.DPSGD:
    fields = {"noise_multiplier": 1.1, "rate": 0.01, "steps": 400}
    return hs.DPSGD(**{**fields, **changes})


@pytest.mark.parametrize("accountant", ["auto", "rdp", "prv"])
def test_it_costs_what_the_composition_costs(accountant: Literal["auto", "rdp", "prv"]) -> None:
    whole, composed = plan(extra=MEANS), plan() @ MEANS
    assert whole.mechanism == hs.Composed((plan().mechanism, MEANS))
    found, same, alone = (
        hs.epsilon(one, 1e-5, accountant=accountant) for one in (whole, composed, plan())
    )
    assert (found.lower, found.upper) == (same.lower, same.upper)
    assert found.upper > alone.upper


def test_several_are_composed_and_one_in_a_tuple_is_itself() -> None:
    both = plan(extra=(MEANS, COUNTS))
    assert both.extra == MEANS @ COUNTS
    assert plan(extra=[MEANS, COUNTS]) == both
    assert plan(extra=(MEANS,)) == plan(extra=MEANS)
    assert hs.epsilon(both, 1e-5).upper == hs.epsilon(plan() @ MEANS @ COUNTS, 1e-5).upper


def test_another_adjacency_is_refused_as_in_a_composition() -> None:
    replaced = hs.PoissonSubsampled(hs.Gaussian(2.0), 0.1, "replace-one")
    with pytest.raises(hs.errors.IncompatibleError, match="described under one adjacency"):
        plan(extra=replaced)
    assert plan(extra=replaced, adjacency="replace-one").extra == replaced


@pytest.mark.parametrize("extra", ["Gaussian", 1.0, (), [], {"mechanism": "Gaussian"}])
def test_what_is_no_mechanism_is_refused(extra: object) -> None:
    with pytest.raises(
        hs.errors.ParameterError, match="extra must be a mechanism, or several in a tuple"
    ):
        plan(extra=cast(Any, extra))


def test_what_is_no_mechanism_in_a_tuple_is_refused_by_its_place() -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"extra\[1\] must be a mechanism"):
        plan(extra=cast(Any, (MEANS, 2.0)))


@pytest.mark.parametrize(
    ("text", "extra"),
    [
        ('{ mechanism = "Laplace", scale = 50 }', COUNTS),
        (
            '[{ mechanism = "Gaussian", noise_multiplier = 20 }, '
            '{ mechanism = "Laplace", scale = 50 }]',
            MEANS @ COUNTS,
        ),
    ],
)
def test_a_plan_file_has_it_as_a_table_or_an_array(
    tmp_path: Any, text: str, extra: hs.Mechanism
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f"[dpsgd]\nrate = 0.01\nsteps = 400\nnoise_multiplier = 1.1\nextra = {text}\n")
    assert load_plan(path).plan == plan(extra=extra)


def test_its_own_noise_can_be_solved_for() -> None:
    target = hs.ApproxDP(2.0, 1e-5)
    found = hs.calibrate(plan(extra=hs.Gaussian(5.0)), "noise_multiplier", target)
    assert found.achieved.upper <= 2.0
    assert found.value > hs.calibrate(plan(), "noise_multiplier", target).value
    inner = hs.calibrate(plan(extra=hs.Gaussian(5.0)), "extra.noise_multiplier", target)
    assert inner.achieved.upper <= 2.0


SCHEDULE = hs.schedules.Linear(end=0.5)


def federated(rounds: int) -> hs.federated.FedAlphaCDP:
    """A plan with so many rounds, each with noise of its own."""
    return hs.federated.FedAlphaCDP(
        noise_multiplier=15.0,
        total_clients=1000,
        clients_per_round=100,
        examples_per_client=50,
        batch_size=5,
        local_steps=100,
        rounds=rounds,
        sampling="poisson",
        schedule=SCHEDULE,
    )


@pytest.mark.parametrize("steps", [MOST_STEPS + 1, 10**15])
def test_more_steps_than_can_be_listed_are_refused_by_name(steps: int) -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^rounds must be at most 10,000,000"):
        federated(steps)
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
