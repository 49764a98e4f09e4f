import pytest

import hockeystick as hs
from hockeystick.errors import HockeystickError, IncompatibleError, ParameterError
from hockeystick.explore import State, moved
from hockeystick.explore.controls import choices_of, sliders_of
from hockeystick.explore.state import USUAL
from hockeystick.io import PlanFile

RUN = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1.237)
STATE = State(USUAL)


def test_what_was_not_moved_stays() -> None:
    schedule = hs.schedules.Linear(2.0)
    run = hs.DPSGD(
        rate=0.01, steps=100, noise_multiplier=2, schedule=schedule, extra=hs.Gaussian(9)
    )
    state = moved(State(PlanFile(plan=run, delta=1e-7, title="t")), {"noise_multiplier": 3})
    assert state.training == hs.DPSGD(
        rate=0.01, steps=100, noise_multiplier=3, schedule=schedule, extra=hs.Gaussian(9)
    )
    assert (state.delta, state.file.title) == (1e-7, "t")


def test_the_one_training_run_of_a_composition_is_moved_in_its_place() -> None:
    plan = hs.Composed([hs.Gaussian(4), RUN, hs.Gaussian(5)])
    state = moved(State(PlanFile(plan=plan)), {"steps": 10})
    run = hs.DPSGD(rate=0.01, steps=10, noise_multiplier=1.237)
    assert state.plan == hs.Composed([hs.Gaussian(4), run, hs.Gaussian(5)])


@pytest.mark.parametrize("plan", [hs.Gaussian(4) ** 3, hs.Composed([RUN, RUN, hs.Laplace(1)])])
def test_of_a_plan_without_one_training_run_delta_alone_moves(plan: hs.Mechanism) -> None:
    state = State(PlanFile(plan=plan))
    assert [one.name for one in sliders_of(state)] == ["delta"]
    assert choices_of(state) == ()
    assert moved(state, {"delta": 1e-8}).delta == 1e-8
    with pytest.raises(ParameterError, match="one of delta"):
        moved(state, {"noise_multiplier": 2})


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"noise_multiplier": -1}, ParameterError, "noise_multiplier must be"),
        ({"noise_multiplier": "1"}, ParameterError, "noise_multiplier must be"),
        ({"noise_multiplier": None}, HockeystickError, "noise_multiplier"),
        ({"batch_size": 0.5}, ParameterError, "batch_size must be"),
        ({"delta": True}, ParameterError, "delta must be"),
        ({"extra": 1}, ParameterError, "name must be one of"),
        ({"sampling": "shuffle"}, IncompatibleError, "no analysis under add-remove"),
    ],
)
def test_what_the_library_refuses_is_refused(values: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        moved(STATE, values)  # type: ignore[arg-type]


@pytest.mark.parametrize("file", [USUAL, PlanFile(plan=RUN, delta=3.3e-7)])
def test_sliders_stop_at_increasing_numbers_and_at_the_plan_own_one(file: PlanFile) -> None:
    state = State(file)
    for slider in sliders_of(state):
        assert list(slider.values) == sorted(set(slider.values))
        assert slider.value in slider.values
        assert moved(state, {slider.name: slider.values[0]}) is not None
        assert moved(state, {slider.name: slider.values[-1]}) is not None
