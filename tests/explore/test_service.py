"""What the two processes answer together, and that neither holds the other up."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.explore import State
from hockeystick.explore.lanes import Lane
from hockeystick.explore.service import Service
from hockeystick.io import PlanFile
from hockeystick.numerics.numerals import at_most

pytest.importorskip("bokeh", reason="the page needs Bokeh")

NINE = PlanFile(plan=hs.DPSGD(rate=1, steps=9, noise_multiplier=4), delta=1e-5, title="Nine")


def served(file: PlanFile, visit: Callable[[Service], Awaitable[None]]) -> None:
    async def run() -> None:
        service = Service(State(file))
        try:
            await visit(service)
        finally:
            service.stop()

    asyncio.run(run())


async def parts_of(service: Service, fine: bool = False, **values: Any) -> dict[str, Any]:
    return {one["part"]: one async for one in service.answers(values, fine=fine)}


def test_every_part_is_the_library_answer() -> None:
    async def visit(service: Service) -> None:
        for fine in (False, True):
            found = await parts_of(service, fine, noise_multiplier=5)
            answer = hs.epsilon(hs.DPSGD(rate=1, steps=9, noise_multiplier=5), delta=1e-5)
            assert found["headline"]["epsilon"] == at_most(answer.upper)
            assert found["course"]["columns"]["upper"][-1] == answer.upper
            assert {*found} == {"plan", "headline", "trade-off", "course", "noise"}
        solved = await service.solve({}, "noise_multiplier", 1.5)
        assert "within 1.5" in solved["words"]
        report = await service.report({"noise_multiplier": 5})
        assert isinstance(report, str)
        assert f"epsilon ≤ {at_most(answer.upper)}" in report

    served(NINE, visit)


def test_a_question_that_nobody_waits_for_is_stopped_and_the_next_is_answered() -> None:
    async def run() -> None:
        lane = Lane()
        try:
            assert await lane.ask(abs, -1) == 1
            asked = asyncio.ensure_future(lane.ask(time.sleep, 600))
            await asyncio.sleep(0.1)
            asked.cancel()
            assert await asyncio.wait_for(lane.ask(abs, -2), 60) == 2
        finally:
            lane.stop()

    asyncio.run(run())
