"""The flags that all commands of ``hockeystick ledger`` share, and the ledgers that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

import hockeystick as hs
from hockeystick import _validate
from hockeystick.cli.flags import defaults
from hockeystick.errors import LedgerError, ParameterError
from hockeystick.io import parse

if TYPE_CHECKING:
    from hockeystick.ledger import Ledger

_Command = TypeVar("_Command", bound=Callable[..., Any])

VARIABLE: Final = "HOCKEYSTICK_LEDGER"
_URL: Final = (
    "The ledger: a SQLite file, or postgresql://USER@HOST/DATABASE; by default what the "
    f"environment's {VARIABLE} says."
)
_DELTA: Final = (
    "Show rho, mu or divergences in epsilon at this delta too; a budget that has a delta is shown "
    "at its own."
)
delta_flag = click.option("--delta", metavar="D", help=_DELTA)
by_flag = click.option("--by", metavar="NAME", help="Who asks; by default the system's user.")
note_flag = click.option("--note", default="", metavar="TEXT", help="Why, for the entry.")


def place_flags(command: _Command) -> _Command:
    """Add where the ledger is, and how long to wait for others that write it."""
    wait = click.option(
        "--timeout", default="30", metavar="S", help="Seconds to wait for others; 30 by default."
    )
    return click.option("--ledger", "url", envvar=VARIABLE, metavar="URL", help=_URL)(wait(command))


def writing_flags(command: _Command) -> _Command:
    """Add the same, and who writes, and why."""
    return place_flags(by_flag(note_flag(command)))


def opened(url: str | None, dataset: str, timeout: str, **options: Any) -> Ledger:
    """Return a dataset of the ledger that the flags name."""
    seconds: Any = parse(timeout)
    return hs.Ledger(named(url), dataset, timeout=seconds, **options)


def all_opened(url: str | None, datasets: Iterable[str], timeout: str) -> list[Ledger]:
    """Return datasets to be read, all where none are named."""
    seconds: Any = parse(timeout)
    names = tuple(datasets) or hs.ledger.datasets(named(url), timeout=seconds)
    return [opened(url, name, timeout, read_only=True) for name in dict.fromkeys(names)]


def delta_of(text: str | None) -> float | None:
    """Return the delta at which budgets without one are shown: the flag's, or else a default."""
    value = defaults.default("delta") if text is None else parse(text)
    if value is None:
        return None
    if not 0.0 < _validate.real("delta", value) < 1.0:
        raise ParameterError("delta", value, "above 0 and below 1")
    return float(value)


def named(url: str | None) -> str:
    """Return where the ledger is, or raise where nobody says."""
    if not url:
        raise click.UsageError(f"Missing --ledger, or {VARIABLE} in the environment")
    return url


@contextmanager
def told_on_failure(key: str) -> Iterator[None]:
    """Add to what is said under which key something may be reserved, where it ends badly."""
    try:
        yield
    except (KeyboardInterrupt, OSError, LedgerError) as error:
        error.add_note(
            f"{key!r} may be reserved: ask again with --key and --resume, which charges once"
        )
        raise
