from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.explore import State, answers, told
from hockeystick.explore.state import USUAL
from hockeystick.io import PlanFile, load_plan
from hockeystick.numerics.numerals import at_least, at_most

pytest.importorskip("bokeh", reason="the page needs Bokeh")

QUERIES = PlanFile(plan=hs.Gaussian(4) ** 10, delta=1e-6)


def test_no_dot_of_the_trade_off_curve_is_above_what_is_proven() -> None:
    for state in (State(QUERIES), State(USUAL)):
        f = hs.tradeoff(state.plan)
        quick, fine = (answers.attack(state.plan, is_fine).misses for is_fine in (False, True))
        dots = (*quick, *fine)
        highest = f.bounds([one.at for one in dots])[1]
        assert all(one.lower <= most for one, most in zip(dots, highest, strict=True))
        assert [one.at for one in quick] == sorted(one.at for one in quick)
        assert len(quick) > len(answers.READ_AT) * 3


def test_a_dot_moved_up_would_be_above_what_is_proven() -> None:
    f = hs.tradeoff(QUERIES.plan)
    dots = answers.attack(QUERIES.plan, False).misses[:-1]
    assert all(one.lower + 1e-6 > f.bounds(one.at)[1] for one in dots)


def test_true_positive_rates_and_the_advantage_are_upper_ends() -> None:
    found = answers.attack(QUERIES.plan, False)
    f = hs.tradeoff(QUERIES.plan)
    assert found.finds == tuple(f.power(rate) for rate in answers.READ_AT)
    assert found.advantage == hs.delta(QUERIES.plan, epsilon=0).upper


@pytest.mark.parametrize("parts", [(), (hs.Gaussian(30),)])
@pytest.mark.parametrize(("name", "target"), [("noise_multiplier", 1.7), ("steps", 1.1)])
def test_what_is_solved_for_meets_the_target(
    name: str, target: float, parts: tuple[hs.Mechanism, ...]
) -> None:
    run = hs.DPSGD(rate=1, steps=9, noise_multiplier=9)
    plan = hs.Composed([*parts, run]) if parts else run
    state = State(PlanFile(plan=plan, delta=1e-5))
    found = answers.solved(state, name, target)
    again: dict[str, Any] = {"noise_multiplier": 9.0, "steps": 9, name: found.value}
    other = hs.DPSGD(rate=1, **again)
    epsilon = hs.epsilon(hs.Composed([*parts, other]), delta=1e-5)
    assert epsilon.upper <= found.upper <= target
    assert found.upper > 0.9 * target


def test_every_end_is_rounded_outward() -> None:
    state = State(QUERIES)
    answer = hs.Certified(1.23456789, 1.2345679, 1.23456791, quantity="epsilon", accountant="prv")
    words = told.headline_told(state, answer)
    assert words["epsilon"] == at_most(answer.upper) == "1.23457"
    assert words["interval"] == "from 1.234567889 to 1.234567910"
    found = answers.attack(state.plan, False)
    columns = told.attack_told(found)["columns"]
    for one, place, least in zip(found.misses, columns["place"], columns["least"], strict=True):
        assert float(place.removesuffix(" %")) <= 100 * one.at * (1 + 1e-15)
        assert float(least.removesuffix(" %")) <= 100 * one.lower * (1 + 1e-15)
    course = answers.points(answers.stages_of(state, True)[1], state.delta)
    columns = told.curve_told("course", course)["columns"]
    assert columns["most"] == [at_most(one.upper) for one in course]
    assert columns["least"] == [at_least(one.lower) for one in course]


def test_the_plan_file_holds_the_plan(tmp_path: Path) -> None:
    state = State(PlanFile(plan=hs.Composed([USUAL.plan, hs.Gaussian(3) ** 2]), delta=1e-5))
    path = tmp_path / "plan.toml"
    path.write_text(told.plan_told(state, (), False)["toml"], encoding="utf-8")
    assert load_plan(path) == state.file
