"""A bar on the terminal, with rate and time left, for what takes longer than a moment.

Where standard error is no terminal, as in a captured run, a few lines say how far things are.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from hockeystick.cli.terminal.captured import FIRST_LINE_SECONDS, say
from hockeystick.cli.terminal.waiting import waiting

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE_SECONDS: Final = 2.0


class Tell(Protocol):
    """What is told how many of how many are done, and optionally what is under way."""

    def __call__(self, done: int, total: int, now: str = "", /) -> None:
        """Show it."""


@contextmanager
def bar(
    what: str, patience: float = _PATIENCE_SECONDS, first_line: float = FIRST_LINE_SECONDS
) -> Iterator[Tell]:
    """Yield what to tell how many of how many are done; show it once the patience is over.

    It goes to standard error, and is wiped out at the end where that is a terminal; elsewhere it is
    a line, the first after some seconds more.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        with waiting(what, patience, first_line=math.inf):
            yield _unseen if sys.stderr is None else _lines(what, first_line)
        return
    progress = _bar()
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


def _unseen(done: int, total: int, now: str = "", /) -> None:
    """Tell nobody."""


def _lines(what: str, first: float) -> Tell:
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


def _bar() -> Progress:
    """Return a bar that is not shown yet."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    from hockeystick.cli.terminal.compiling import Compiling

    class Rate(ProgressColumn):
        """How many a second."""

        def render(self, task: Any) -> Text:
            """Return the rate in words."""
            speed = task.finished_speed or task.speed
            return Text(
                "" if not speed else f"{speed:,.3g}/s" if speed < 100 else f"{speed:,.0f}/s"
            )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
        TextColumn("left"),
        Compiling(),
        console=Console(stderr=True),
        transient=True,
    )
