"""Processes that are started anew, and that no interrupt stops while they import."""

from __future__ import annotations

import signal
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, ClassVar


class _Worker(SpawnProcess):
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


class Spawning(SpawnContext):
    """Starts workers anew: a fork would copy the locks of threads in whatever state they are."""

    Process: ClassVar[Any] = _Worker
