"""Signs of life for what takes longer than a moment, and the processes that share the work.

They go to standard error, and are wiped out at the end where that is a terminal; elsewhere, as in a
captured run, a few lines say how far things are, unless HOCKEYSTICK_PROGRESS is off.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import Final

import click

from hockeystick._spawning import Spawning
from hockeystick._validate import Domain
from hockeystick.kernels.compiled import COMPILATIONS

VARIABLE: Final = "HOCKEYSTICK_PROGRESS"
WORKERS: Final = Domain(symbol="w", low=1, high=1024, typical=(1, 64), whole=True)
_PATIENCE_SECONDS: Final = 2.0
_FIRST_LINE_SECONDS: Final = 30.0


class Progress:
    """What is under way, and how many of how many are done; called to say so."""

    def __init__(self, what: str) -> None:
        self.what, self.now = what, ""
        self.done, self.total = 0, 0

    def __call__(self, done: int, total: int, now: str = "", /) -> None:
        self.done, self.total, self.now = done, total, now

    @property
    def words(self) -> str:
        """What is under way, in words."""
        now = f": {self.now}" if self.now else ""
        many = f", {self.done:,} of {self.total:,} done" if self.total else ""
        compiling = ", compiling, once after installing" if COMPILATIONS.under_way else ""
        return f"{self.what}{now}{many}{compiling}"


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Yield what to tell how many of how many are done; show it once the patience is over."""
    state, ended = Progress(what), threading.Event()
    if sys.stderr is None:
        yield state
        return
    shown = _bar if sys.stderr.isatty() else _lines
    sign = threading.Thread(target=shown, args=(state, ended), daemon=True)
    sign.start()
    try:
        yield state
    finally:
        ended.set()
        sign.join()


def _bar(state: Progress, ended: threading.Event) -> None:
    """Wait out the patience, then show a bar until all is done."""
    if ended.wait(_PATIENCE_SECONDS):
        return
    from rich import progress as rich
    from rich.console import Console

    described = rich.TextColumn("{task.description}")
    columns = (described, rich.BarColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn())
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        while not ended.wait(0.1):
            words = f"{state.words} (Ctrl-C stops)"
            bar.update(task, description=words, completed=state.done, total=state.total or None)


def _lines(state: Progress, ended: threading.Event) -> None:
    """Say ever more rarely how far things are; where nobody reads it, it does not matter."""
    began, after = time.monotonic(), _FIRST_LINE_SECONDS
    while not ended.wait(began + after - time.monotonic()):
        after *= 2.0
        if os.environ.get(VARIABLE, "").strip().lower() != "off":
            spent = time.monotonic() - began
            with suppress(OSError, ValueError):
                click.echo(f"hockeystick: {state.words}, after {spent:.0f} s", err=True)


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """Yield so many processes to ask in, None where this one is enough.

    They leave the terminal's interrupts to the command that started them.
    """
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
