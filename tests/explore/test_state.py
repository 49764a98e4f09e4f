import hockeystick as hs
from hockeystick.explore import State, moved
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
