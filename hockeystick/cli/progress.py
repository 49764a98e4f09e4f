"""Signs of life for what takes longer than a moment, and the processes that share the work.

They go to standard error, and are wiped out at the end where that is a terminal; elsewhere, as in a
captured run, a few lines say how far things are, unless HOCKEYSTICK_PROGRESS is off.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from hockeystick._spawning import Spawning
from hockeystick._validate import Domain
from hockeystick.kernels.compiled import COMPILATIONS

if TYPE_CHECKING:
    from rich.progress import Progress

VARIABLE: Final = "HOCKEYSTICK_PROGRESS"
WORKERS: Final = Domain(symbol="w", low=1, high=1024, typical=(1, 64), whole=True)
_OFF: Final = "off"
_COMPILING: Final = "compiling, once after installing"
_PATIENCE_SECONDS: Final = 2.0
FIRST_LINE_SECONDS: Final = 30.0


class Tell(Protocol):
    """What is told how many of how many are done, and optionally what is under way."""

    def __call__(self, done: int, total: int, now: str = "", /) -> None:
        """Show it."""


@contextmanager
def bar(
    what: str, patience: float = _PATIENCE_SECONDS, first_line: float = FIRST_LINE_SECONDS
) -> Iterator[Tell]:
    """Yield what to tell how many of how many are done; show it once the patience is over."""
    if sys.stderr is None or not sys.stderr.isatty():
        with waiting(what, patience, first_line=math.inf):
            yield _unseen if sys.stderr is None else _counted_lines(what, first_line)
        return
    progress = _progress(counted=True)
    task = progress.add_task(f"{what} (Ctrl-C stops)", total=None)
    timer = threading.Timer(patience, progress.start)
    timer.daemon = True
    known = False

    def tell(done: int, total: int, now: str = "", /) -> None:
        nonlocal known
        if now:
            progress.update(task, description=f"{what}: {now} (Ctrl-C stops)")
        if known:
            progress.update(task, completed=done)
            return
        # What was done before is part of the bar, but not of the rate.
        known = True
        progress.reset(task, completed=done, total=total)

    timer.start()
    try:
        yield tell
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


@contextmanager
def waiting(
    what: str, patience: float = _PATIENCE_SECONDS, first_line: float = FIRST_LINE_SECONDS
) -> Iterator[None]:
    """Show what is under way, and for how long, once it has taken longer than the patience."""
    if sys.stderr is None:
        yield
        return
    done = threading.Event()
    shown = _spin if sys.stderr.isatty() else partial(_timed_lines, first=first_line)
    sign = threading.Thread(target=shown, args=(what, patience, done), daemon=True)
    sign.start()
    try:
        yield
    finally:
        done.set()
        sign.join()


def say(line: str) -> None:
    """Print a line on standard error, unless the environment wants none.

    Where nobody reads it, the answer does not depend on it.
    """
    if os.environ.get(VARIABLE, "").strip().lower() == _OFF:
        return
    with suppress(OSError, ValueError):
        click.echo(f"hockeystick: {line}", err=True)


def seconds(value: float) -> str:
    """Return a duration in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            count = value / size
            # What two digits would round to a hundred has three.
            return f"{count:.2g} {unit}" if count < 99.5 else f"{count:.0f} {unit}"
    return f"{value * 1e6:.0f} us"


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


def _unseen(done: int, total: int, now: str = "", /) -> None:
    """Tell nobody."""


def _counted_lines(what: str, first: float) -> Tell:
    """Return what says on a line of its own how many are done, ever more rarely."""
    began, after = time.monotonic(), first

    def tell(done: int, total: int, now: str = "", /) -> None:
        nonlocal after
        spent = time.monotonic() - began
        if spent < after:
            return
        after = 2.0 * spent
        about = f": {now}" if now else ""
        say(f"{what}{about}, {done:,} of {total:,} done after {spent:.0f} s")

    return tell


def _timed_lines(what: str, patience: float, done: threading.Event, *, first: float) -> None:
    """Say once that kernels are compiled, and ever more rarely for how long all of it runs."""
    spent, after, step, compiling = 0.0, first, min(first, 0.5), 0.0
    while not done.wait(step):
        spent += step
        if COMPILATIONS.under_way and compiling <= patience:
            compiling += step
            if compiling > patience:
                say(_COMPILING)
        if spent >= after:
            after = 2.0 * spent
            say(f"{what}, under way for {spent:.0f} s")


def _spin(what: str, patience: float, done: threading.Event) -> None:
    """Wait out the patience, then show the sign until all is done."""
    if done.wait(patience):
        return
    with _progress(counted=False) as progress:
        progress.add_task(f"{what} (Ctrl-C stops)", total=None)
        done.wait()


def _progress(*, counted: bool) -> Progress:
    """Return a bar with rate and time left, or a sign with the time spent; not shown yet."""
    from rich import progress as rich
    from rich.console import Console
    from rich.text import Text

    class Compiling(rich.ProgressColumn):
        """Says that kernels are compiled; what was seen stays, since one follows another."""

        seen = False

        def render(self, task: Any) -> Text:
            self.seen = self.seen or COMPILATIONS.under_way
            return Text(_COMPILING if self.seen else "", style="dim")

    class Rate(rich.ProgressColumn):
        """How many a second."""

        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed or 0.0
            return Text(f"{speed:,.3g}/s" if 0.0 < speed < 100 else f"{speed:,.0f}/s")

    described = rich.TextColumn("{task.description}")
    columns: list[rich.ProgressColumn] = [rich.SpinnerColumn("line"), described]
    columns.append(rich.TimeElapsedColumn())
    if counted:
        columns = [described, rich.BarColumn(bar_width=None), rich.MofNCompleteColumn(), Rate()]
        columns += [rich.TimeRemainingColumn(), rich.TextColumn("left")]
    return rich.Progress(*columns, Compiling(), console=Console(stderr=True), transient=True)
