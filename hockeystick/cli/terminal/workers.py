"""Processes to ask in, which leave the terminal's interrupts to the command that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Final

from hockeystick._spawning import Spawning
from hockeystick._validate import Domain

WORKERS: Final = Domain(symbol="w", low=1, high=1024, typical=(1, 64), whole=True)


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """Yield so many processes to ask in, None where this one is enough."""
    if workers == 1:
        yield None
        return
    executor = ProcessPoolExecutor(workers, mp_context=Spawning(), initializer=_work)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _work() -> None:
    """Prepare a worker: the terminal's interrupts are for its parent, without which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def leave() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
