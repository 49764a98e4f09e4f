"""The page without its server: what is proven, asked once at a time, and shown of the last plan."""

import html
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.io import PlanFile
from hockeystick.numerics.numerals import at_most

pytest.importorskip("bokeh", reason="the page needs Bokeh")

from bokeh.document import Document

from hockeystick._spawning import Spawning
from hockeystick.explore import page

QUERIES = PlanFile(plan=hs.Gaussian(4) ** 10, delta=1e-6)
NINE = PlanFile(plan=hs.DPSGD(rate=1, steps=9, noise_multiplier=4), delta=1e-5, title="<Nine>")


class Pool:
    """Answers in this process, once it is told to."""

    def __init__(self, _processes: int, *, initializer: Callable[[], None]) -> None:
        self.waiting: list[Callable[[], None]] = []

    def apply_async(
        self,
        question: Callable[..., Any],
        told: tuple[Any, ...],
        callback: Callable[[Any], None],
        error_callback: Callable[[Any], None],
    ) -> None:
        def answer() -> None:
            try:
                callback(question(*told))
            except hs.HockeystickError as error:
                error_callback(error)

        self.waiting.append(answer)

    def terminate(self) -> None:
        self.waiting.clear()


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spawning, "Pool", lambda _, *own, **named: Pool(*own, **named))


def shown(file: PlanFile) -> Any:
    return page.Page(file, Document())


def answered(seen: Any) -> None:
    """Answer the one question that waits, and all that follow from it."""
    while seen.pool.waiting:
        (answer,) = seen.pool.waiting
        seen.pool.waiting.clear()
        answer()
        for one in seen.document.session_callbacks:
            if type(one).__name__ == "NextTickCallback":
                seen.document.remove_next_tick_callback(one)
                one.callback()


def test_no_dot_of_the_trade_off_curve_is_above_what_is_proven() -> None:
    for file in (QUERIES, page.USUAL):
        dots = page.proven(file.plan, 1e-5)[2]
        highest = hs.tradeoff(file.plan).bounds(dots["x"])[1]
        assert all(low <= most for low, most in zip(dots["y"], highest, strict=True))


def test_every_number_is_the_library_answer() -> None:
    seen = shown(NINE)
    answered(seen)
    seen.controls["noise_multiplier",].value = "5"
    answered(seen)
    most = hs.epsilon(hs.DPSGD(rate=1, steps=9, noise_multiplier=5), delta=1e-5).upper
    assert f"epsilon ≤ {at_most(most)} " in seen.answer.text
    assert "noise_multiplier = 5" in seen.told.text
    assert "&lt;Nine&gt;" in seen.told.text
    drawn = page.curves(seen.plan, seen.delta)
    assert (drawn["course"]["x"][-1], drawn["course"]["y"][-1]) == (9, most)
    assert drawn["noise"]["y"] == sorted(drawn["noise"]["y"], reverse=True)


def test_what_is_solved_for_meets_the_target() -> None:
    seen = shown(NINE)
    answered(seen)
    seen._ask(page.solved, ("noise_multiplier",), 1.5)
    answered(seen)
    assert hs.epsilon(seen.plan, delta=1e-5).upper <= 1.5
    assert float(seen.controls["noise_multiplier",].value) == seen.plan.noise_multiplier


@pytest.mark.parametrize(("path", "text"), [(("noise_multiplier",), "-1"), ((), "2"), ((), "x>")])
def test_what_is_refused_is_said_and_the_plan_stays(path: tuple[str, ...], text: str) -> None:
    seen = shown(NINE)
    answered(seen)
    seen.controls[path].value = text
    assert "must be" in seen.notice.text
    assert html.escape(text) in seen.notice.text
    assert (seen.plan, seen.delta) == (NINE.plan, NINE.delta)


def test_one_question_is_asked_at_a_time_and_the_last_plan_is_next() -> None:
    seen = shown(NINE)
    for noise in ("5", "6", "7"):
        seen.controls["noise_multiplier",].value = noise
        assert len(seen.pool.waiting) == 1
    answered(seen)
    assert seen.shown[page.proven][0].noise_multiplier == 7


def test_what_nobody_waits_for_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = shown(NINE)
    first = seen.pool
    seen.controls["steps",].value = "8"
    monkeypatch.setattr(page, "_PATIENCE_SECONDS", -1.0)
    seen._watch()
    assert (first.waiting, len(seen.pool.waiting)) == ([], 1)
    answered(seen)
    assert seen.shown[page.proven][0].steps == 8


@pytest.mark.parametrize("value", [1.237, 0.0, float("inf")])
def test_a_slider_stops_at_round_numbers_and_at_the_present_one(value: float) -> None:
    stops = page.stops_of("noise_multiplier", value)
    assert stops == sorted(stops)
    assert {1.0, 2.5, 9.9} <= {*stops}
    assert (value in stops) == (value < float("inf"))
    assert all(one.is_integer() for one in page.stops_of("steps", 300))
