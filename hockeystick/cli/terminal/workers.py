"""Processes to ask in, which leave the terminal's interrupts to the command that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, ClassVar, Final

from hockeystick._validate import Domain

WORKERS: Final = Domain(symbol="w", low=1, high=1024, typical=(1, 64), whole=True)


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """Yield so many processes to ask in, None where this one is enough."""
    if workers == 1:
        yield None
        return
    executor = ProcessPoolExecutor(workers, mp_context=_Spawning(), initializer=_work)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


class _Worker(SpawnProcess):
    """A process that is started without interrupts, so that none stops it while it imports."""

    def start(self) -> None:
        """Start it; what interrupts this process meanwhile waits until then."""
        if not hasattr(signal, "pthread_sigmask"):
            super().start()
            return
        from multiprocessing.resource_tracker import ensure_running

        # It unblocks interrupts where it starts, so it is there before.
        ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Spawning(SpawnContext):
    """Starts workers anew: a fork would copy the locks of threads in whatever state they are."""

    Process: ClassVar[Any] = _Worker


def _work() -> None:
    """Prepare a worker: the terminal's interrupts are for its parent, without which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def leave() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
