"""Processes that answer: the page waits for none, and one that nobody waits for is stopped."""

from __future__ import annotations

import asyncio
import signal
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final, final

from hockeystick._spawning import Spawning
from hockeystick.errors import HockeystickError

# How long a question may go on that nobody waits for any longer: what is quick takes less, even
# where the machine is busy, and starting a process takes about as long.
_GRACE_SECONDS: Final = 1.5


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """Why the library gives no answer, in its own words."""

    message: str


class StoppedError(Exception):
    """The process was stopped before it answered."""


@final
class Lane:
    """One process, which is asked one question at a time.

    A question is a function and what it is told, both of which another process can be sent. One
    whose asker is cancelled may go on for a moment; then its process is stopped, and another one
    is started in its place.

    Attributes:
        is_warm: Whether its process has loaded what answers take; whoever warms it says so.
        is_letting_go: Whether it is busy with what nobody waits for.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lane")
        self.is_warm = False
        self.is_letting_go = False
        self._start()

    async def ask(self, function: Callable[..., Any], *told: Any) -> Any:
        """Return what a function returns, or ``Refused`` where the library has no answer.

        Raises:
            StoppedError: If the lane is stopped.
        """
        async with self._turn:
            loop = asyncio.get_running_loop()
            answer = loop.run_in_executor(self._thread, self._exchange, function, told)
            try:
                return await asyncio.shield(answer)
            except asyncio.CancelledError:
                self.is_letting_go = True
                await self._let_go(answer)
                self.is_letting_go = False
                raise

    def stop(self) -> None:
        """Stop the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self._ours.close()
        self._thread.shutdown(wait=False)

    def _start(self) -> None:
        """Start a process."""
        self.is_warm = False
        context = Spawning()
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_answer_all, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def _exchange(self, function: Callable[..., Any], told: tuple[Any, ...]) -> Any:
        """Send a question and return the answer, in a thread of its own."""
        try:
            self._ours.send((function, told))
            return self._ours.recv()
        except (EOFError, OSError):
            raise StoppedError from None

    async def _let_go(self, answer: asyncio.Future[Any]) -> None:
        """Wait a moment for an answer that nobody needs, then stop the process that computes it."""
        await asyncio.wait([answer], timeout=_GRACE_SECONDS)
        if not answer.done():
            self._process.kill()
            await asyncio.wait([answer])
            self._ours.close()
            self._start()
        answer.exception()


def _answer_all(pipe: Connection) -> None:
    """Answer questions until nobody asks any more; an interrupt is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from hockeystick.kernels import compiled

    compiled.load()
    while True:
        try:
            function, told = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(function(*told))
        except HockeystickError as error:
            pipe.send(Refused(str(error)))
        except Exception as error:
            traceback.print_exc()
            pipe.send(Refused(f"there is no answer: {type(error).__name__}: {error}"))
