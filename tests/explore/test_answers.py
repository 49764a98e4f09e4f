import pytest

import hockeystick as hs
from hockeystick.explore import State, answers, told
from hockeystick.explore.state import USUAL
from hockeystick.io import PlanFile
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
