"""What else is released of the data that a training run uses, as part of its plan."""

import json
from typing import Any, Literal, cast

import pytest

import hockeystick as hs
from hockeystick.calibration.budgets.split import with_noise
from hockeystick.io import load_plan

MEANS = hs.Gaussian(20.0)
COUNTS = hs.Laplace(50.0)


def plan(**changes: Any) -> hs.DPSGD:
    """Return a run with some fields changed."""
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


def test_a_tuning_run_may_be_one() -> None:
    first = plan(steps=50)
    found = hs.epsilon(plan(extra=first**8), 1e-5)
    alike = hs.epsilon(plan(steps=800), 1e-5)
    assert found.upper == pytest.approx(alike.upper, rel=1e-9)


def test_a_scheduled_run_keeps_it() -> None:
    schedule = hs.schedules.Piecewise([(300, 1.0), (100, 0.8)])
    scheduled = plan(schedule=schedule, extra=COUNTS)
    assert isinstance(scheduled.mechanism, hs.Composed)
    assert scheduled.mechanism.parts[-1] == COUNTS
    assert len(scheduled.mechanism.parts) == 3


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


def test_a_plan_file_says_how_it_is_written(tmp_path: Any) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("[dpsgd]\nrate = 0.01\nsteps = 4\nnoise_multiplier = 1.1\nextra = 3\n")
    with pytest.raises(hs.HockeystickError, match=r"dpsgd\.extra must be a mechanism"):
        load_plan(path)


def test_a_ledger_keeps_it() -> None:
    from hockeystick.calibration import describe, read_description

    whole = plan(extra=MEANS @ COUNTS)
    assert read_description(json.loads(json.dumps(describe(whole)))) == whole


def test_all_its_noise_is_scaled_together() -> None:
    scaled = with_noise(plan(noise_multiplier=1.5, extra=MEANS), 2.0)
    assert scaled == plan(noise_multiplier=3.0, extra=hs.Gaussian(40.0))


def test_its_own_noise_can_be_solved_for() -> None:
    target = hs.ApproxDP(2.0, 1e-5)
    found = hs.calibrate(plan(extra=hs.Gaussian(5.0)), "noise_multiplier", target)
    assert found.achieved.upper <= 2.0
    assert found.value > hs.calibrate(plan(), "noise_multiplier", target).value
    inner = hs.calibrate(plan(extra=hs.Gaussian(5.0)), "extra.noise_multiplier", target)
    assert inner.achieved.upper <= 2.0
