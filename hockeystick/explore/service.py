"""Who answers what: the quick questions of a state at once, the slow ones one by one."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, final

from hockeystick.answers import in_words
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.explore import answers, told
from hockeystick.explore.lanes import Lane, Refused, StoppedError
from hockeystick.explore.state import State, moved
from hockeystick.reports import Subject, investigate, page
from hockeystick.results import Certified

# A bound that is proven soon is shown where the best answer takes longer than this.
_PATIENCE_SECONDS: Final = 0.3
_SOLVED: Final = ("noise_multiplier", "epochs", "steps")


@final
class Service:
    """Answers for a page, by two processes: whatever one of them computes, the other is free.

    Args:
        state: What the page begins with.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self._patient, self._ready = Lane(), Lane()
        self._quick: set[tuple[object, ...]] = set()
        self._warming: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Stop the processes."""
        self._patient.stop()
        self._ready.stop()

    async def answers(self, values: Mapping[str, Any], *, fine: bool) -> AsyncIterator[told.Told]:
        """Yield what is proven of the state with these values, part by part as it is known.

        Args:
            values: The numbers and choices of the page.
            fine: Whether curves have many points, and both of their ends.
        """
        try:
            state = moved(self.state, values)
        except HockeystickError as error:
            yield told.refused_told("plan", str(error))
            return
        yield told.plan_told(state, in_words(state.plan), not self._is_quick(state))
        asked = self._parts if self._is_quick(state) else self._slow_parts
        async for part in asked(state, fine):
            yield part
        self._warm(state)

    async def solve(self, values: Mapping[str, Any], name: str, target: Any) -> told.Told:
        """Return the number with which the state meets a target epsilon, or why there is none."""
        try:
            state = moved(self.state, values)
            if name not in _SOLVED:
                raise ParameterError("name", name, f"one of {', '.join(_SOLVED)}")
        except HockeystickError as error:
            return told.refused_told("solved", str(error))
        found = await self._lane(state).ask(answers.solved, state, name, target)
        if isinstance(found, Refused):
            return told.refused_told("solved", found.message)
        return told.solved_told(found, float(target), state.delta)

    async def report(self, values: Mapping[str, Any]) -> str | Refused:
        """Return the page for whoever approves the state as a release."""
        try:
            state = moved(self.state, values)
        except HockeystickError as error:
            return Refused(str(error))
        line = told.command_of(state)
        told_of = told.plan_told(state, (), False)["toml"]
        subject = Subject(
            plan=state.plan,
            delta=state.delta,
            title=state.file.title,
            source=state.file.source,
            notes=state.file.notes,
            file_name=None if told_of is None else told.FILE_NAME,
            file_content=None if told_of is None else told_of.encode(),
            commands=(line,),
        )
        written: str | Refused = await self._patient.ask(reported, subject)
        return written

    async def _parts(self, state: State, fine: bool) -> AsyncIterator[told.Told]:
        """Yield the parts of a state whose answers are quick: each is one question."""
        unit, stages = answers.stages_of(state, fine)
        asked = [
            self._headline(state),
            self._attack(state, fine),
            self._curve("course", stages, state, unit),
            self._noises(state, fine),
        ]
        async for part in _as_completed(asked):
            yield part

    async def _slow_parts(self, state: State, fine: bool) -> AsyncIterator[told.Told]:
        """Yield the parts of a state whose answers may be slow: a bound first, curves by points."""
        best = asyncio.ensure_future(self._patient.ask(answers.headline, state.plan, state.delta))
        try:
            await asyncio.wait([best], timeout=_PATIENCE_SECONDS)
            if not best.done():
                async for part in self._sooner(state, best):
                    yield part
            found = await best
        finally:
            best.cancel()
        if isinstance(found, Refused):
            yield told.refused_told("headline", found.message)
            return
        is_quick = found.accountant in answers.QUICK
        yield told.headline_told(state, found, is_slow=not is_quick)
        if is_quick:
            self._quick.add(_kind(state))
            async for part in self._parts(state, fine):
                yield part
            return
        async for part in self._by_points(state):
            yield part

    async def _sooner(self, state: State, best: asyncio.Future[Any]) -> AsyncIterator[told.Told]:
        """Yield a bound that is proven sooner than the best answer, if there is one."""
        lane = self._ready
        bound = asyncio.ensure_future(lane.ask(answers.first_bound, state.plan, state.delta))
        try:
            await asyncio.wait([bound, best], return_when=asyncio.FIRST_COMPLETED)
            if bound.done() and not best.done() and isinstance(bound.result(), Certified):
                yield told.headline_told(state, bound.result(), is_final=False, is_slow=True)
        finally:
            bound.cancel()

    async def _by_points(self, state: State) -> AsyncIterator[told.Told]:
        """Yield the attack's part and curves that grow point by point."""
        yield await self._attack(state, False)
        unit, stages = answers.stages_of(state, False)
        for name, asked, label in (
            ("course", stages, unit),
            ("noise", answers.noises_of(state, False), ""),
        ):
            found: list[Any] = []
            for at, one in enumerate(asked, 1):
                found += await self._patient.ask(answers.points, (one,), state.delta)
                yield told.curve_told(name, found, unit=label, done=at == len(asked))

    async def _headline(self, state: State) -> told.Told:
        """Return epsilon."""
        found = await self._lane(state).ask(answers.headline, state.plan, state.delta)
        if isinstance(found, Refused):
            return told.refused_told("headline", found.message)
        is_slow = found.accountant not in answers.QUICK
        if is_slow:
            self._quick.discard(_kind(state))
        return told.headline_told(state, found, is_slow=is_slow)

    async def _attack(self, state: State, fine: bool) -> told.Told:
        """Return what an attacker could learn."""
        lane = self._lane(state, likes=None if fine else self._ready)
        found = await lane.ask(answers.attack, state.plan, fine)
        if isinstance(found, Refused):
            return told.refused_told("trade-off", found.message)
        return told.attack_told(found)

    async def _curve(self, name: str, stages: Sequence[Any], state: State, unit: str) -> told.Told:
        """Return a curve, asked as one question."""
        found = await self._lane(state).ask(answers.points, stages, state.delta)
        return told.curve_told(name, found, unit=unit)

    async def _noises(self, state: State, fine: bool) -> told.Told:
        """Return the curve over the noise, half of it asked of either lane."""
        asked = answers.noises_of(state, fine)
        lanes = (self._lane(state), self._lane(state, likes=None if fine else self._ready))
        halves = await asyncio.gather(
            *(
                lane.ask(answers.points, asked[start::2], state.delta)
                for start, lane in enumerate(lanes)
            )
        )
        found = sorted((one for half in halves for one in half), key=lambda one: one.at)
        return told.curve_told("noise", found)

    def _lane(self, state: State, *, likes: Lane | None = None) -> Lane:
        """Return who is asked: the lane of that kind of question, as it may have kept the answer.

        The ready lane is asked nothing that may take long; what it has not loaded takes long.
        """
        if not self._is_quick(state):
            return self._patient
        first = self._patient if likes is None else likes
        lanes = (first, *(one for one in (self._ready, self._patient) if one is not first))
        free = [one for one in lanes if one.is_warm and not one.is_letting_go]
        return free[0] if free else self._patient

    def _is_quick(self, state: State) -> bool:
        """Return whether plans of this kind were answered by a quick accountant."""
        return _kind(state) in self._quick

    def _warm(self, state: State) -> None:
        """Let the ready lane load what answers take, while nobody waits for it."""
        if not self._is_quick(state):
            return
        self._patient.is_warm = True
        is_warming = self._warming is not None and not self._warming.done()
        if not (self._ready.is_warm or is_warming):
            self._warming = asyncio.ensure_future(self._warmed(state))

    async def _warmed(self, state: State) -> None:
        """Ask the ready lane a state's questions."""
        with suppress(StoppedError):
            await self._ready.ask(answers.headline, state.plan, state.delta)
            await self._ready.ask(answers.attack, state.plan, False)
            self._ready.is_warm = True


def reported(subject: Subject) -> str:
    """Return a report's page, which bears today's date."""
    return page(investigate(subject), dt.datetime.now(dt.UTC).date())


def _kind(state: State) -> tuple[object, ...]:
    """Return what decides whether a plan's answers are quick, as far as the page moves it."""
    training = state.training
    if training is None:
        return (state.plan,)
    return (training.sampling, training.adjacency, training.clipping)


async def _as_completed(asked: Sequence[Any]) -> AsyncIterator[told.Told]:
    """Yield what is asked as it is answered; stop asking where nobody listens any more."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        for task in tasks:
            task.cancel()
