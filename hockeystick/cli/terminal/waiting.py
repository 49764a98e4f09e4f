"""A sign of life on the terminal, for what takes longer than a moment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_PATIENCE_SECONDS: Final = 2.0


@contextmanager
def waiting(what: str, patience: float = _PATIENCE_SECONDS) -> Iterator[None]:
    """Show what is under way, and for how long, once it has taken longer than the patience.

    It goes to standard error, only where that is a terminal, and is wiped out at the end.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    sign = threading.Thread(target=_sign, args=(what, patience, done), daemon=True)
    sign.start()
    try:
        yield
    finally:
        done.set()
        sign.join()


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
