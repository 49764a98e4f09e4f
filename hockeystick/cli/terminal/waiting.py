"""A sign of life on the terminal, for what takes longer than a moment.

Where standard error is no terminal, as in a captured run, a few lines say for how long it runs.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hockeystick.cli.terminal.captured import first_line_seconds, say

_PATIENCE_SECONDS: Final = 2.0


@contextmanager
def waiting(
    what: str, patience: float = _PATIENCE_SECONDS, first_line: float | None = None
) -> Iterator[None]:
    """Show what is under way, and for how long, once it has taken longer than the patience.

    It goes to standard error, and is wiped out at the end where that is a terminal; elsewhere it is
    a line, the first after some seconds more.
    """
    if sys.stderr is None:
        yield
        return
    done = threading.Event()
    first = first_line_seconds() if first_line is None else first_line
    shown, after = (_sign, patience) if sys.stderr.isatty() else (_lines, first)
    sign = threading.Thread(target=shown, args=(what, after, done), daemon=True)
    sign.start()
    try:
        yield
    finally:
        done.set()
        sign.join()


def _lines(what: str, first: float, done: threading.Event) -> None:
    """Say on a line of its own for how long it runs, ever more rarely, until all is done."""
    spent, more = 0.0, first
    while not done.wait(more if more < math.inf else None):
        spent += more
        more = spent
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
