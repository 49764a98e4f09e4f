"""A sign of life on the terminal, for what takes longer than a moment.

Where standard error is no terminal, as in a captured run, a few lines say for how long it runs, and
one that kernels are compiled, where that takes longer than a moment.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from hockeystick.cli.terminal.captured import FIRST_LINE_SECONDS, say

_PATIENCE_SECONDS: Final = 2.0


@contextmanager
def waiting(
    what: str, patience: float = _PATIENCE_SECONDS, first_line: float = FIRST_LINE_SECONDS
) -> Iterator[None]:
    """Show what is under way, and for how long, once it has taken longer than the patience.

    It goes to standard error, and is wiped out at the end where that is a terminal; elsewhere it is
    a line, the first after some seconds more.
    """
    if sys.stderr is None:
        yield
        return
    done = threading.Event()
    shown = _sign if sys.stderr.isatty() else partial(_lines, first=first_line)
    sign = threading.Thread(target=shown, args=(what, patience, done), daemon=True)
    sign.start()
    try:
        yield
    finally:
        done.set()
        sign.join()


def _lines(what: str, patience: float, done: threading.Event, *, first: float) -> None:
    """Say once that kernels are compiled, and ever more rarely for how long all of it runs."""
    from hockeystick.kernels.compiled import COMPILATIONS

    spent, after, step, compiling = 0.0, first, min(first, 0.5), 0.0
    while not done.wait(step):
        spent += step
        if COMPILATIONS.under_way and compiling <= patience:
            compiling += step
            if compiling > patience:
                say("compiling, once after installing")
        if spent >= after:
            after = 2.0 * spent
            say(f"{what}, under way for {spent:.0f} s")


def _sign(what: str, patience: float, done: threading.Event) -> None:
    """Wait out the patience, then show the sign until all is done."""
    if done.wait(patience):
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from hockeystick.cli.terminal.compiling import Compiling

    columns = (
        SpinnerColumn("line"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        Compiling(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(f"{what} (Ctrl-C stops)", total=None)
        done.wait()
