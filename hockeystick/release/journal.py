"""A file that counts steps durably, for one process at a time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol, final

from hockeystick import _files
from hockeystick.errors import ParameterError

_OF_THIS: Final = (
    "an account of this very plan, of a run that is private or not as this one is, in the same "
    "arithmetic, and on the same ledger by the same key, or on none"
)
_WHOLE: Final = "a file without NULs: this one is damaged, as by a loss of power"
_A_JOURNAL: Final = "the path of a file, an hs.ledger.ReservedRun, or None"


class Counting(Protocol):
    """What counts steps: a ``Journal``, or another that is told of the run's end."""

    counted: int

    @property
    def run(self) -> str:
        """The name of the run."""

    @property
    def path(self) -> str | None:
        """The file, where there is one."""

    @property
    def most(self) -> int:
        """How many steps may be counted; what the last of them is a part of counts in full."""

    def add(self, steps: int) -> None:
        """Count further steps."""

    def finish(self) -> None:
        """Note that the run is over: no further step will be counted."""

    def close(self) -> object:
        """Count no more, and leave the file to others."""


class OpensJournal(Protocol):
    """What may be given in the place of a journal's path: ``hs.ledger.ReservedRun``."""

    def open(self, title: str, first: Callable[[int], Any], most: int, *earlier: str) -> Counting:
        """Return what counts the first of a run's steps, or raise."""


def opened(
    journal: str | os.PathLike[str] | OpensJournal,
    title: str,
    first: Callable[[int], Any],
    most: int,
    *earlier: str,
) -> Counting:
    """Return what counts a run, for this process alone.

    Args:
        journal: The path of a file, or what opens one itself.
        title: What the journal is of.
        first: From a number of steps to the plan of the first so many.
        most: How many steps there are.
        *earlier: What earlier versions called the same.

    Raises:
        ParameterError: If the journal is another run's, or in use, or none.
    """
    if isinstance(journal, str | os.PathLike):
        return Journal(journal, title, *earlier)
    if not callable(getattr(journal, "open", None)):
        raise ParameterError("journal", journal, _A_JOURNAL)
    return journal.open(title, first, most, *earlier)


@final
class Journal:
    """A line that says what is counted and in which run, then one byte for each step.

    A byte is written, and forced to the disk, before the step's noise is drawn: whoever is killed
    at any moment, the machine included, leaves a count that is never below what was released, as
    far as the disk keeps what it says that it has. The file's name in its folder is forced there
    when the journal is opened. That is a write of the disk for each step: some tenths of a
    millisecond to some milliseconds, where all else of an entry is a microsecond.
    """

    __slots__ = ("__weakref__", "_file", "close", "counted", "path", "run")

    most: Final = sys.maxsize

    def __init__(self, path: str | os.PathLike[str], title: str, *earlier: str) -> None:
        self.path = os.fspath(path)
        self._file = _files.locked(path, "journal", 0o600)
        self.close = weakref.finalize(self, self._file.close)
        try:
            self.run, self.counted = self._begun(title, *earlier)
            _files.force_name(os.path.realpath(self.path))
        except (ParameterError, OSError):
            self.close()
            raise

    def add(self, steps: int) -> None:
        """Count further steps, possibly none."""
        if steps:
            self._write(b"." * steps)

    def finish(self) -> None:
        """Write nothing: a count is one at its end as well."""

    def _write(self, text: bytes) -> None:
        """Write all of a text to the disk, or raise: one nearly full takes a part and says so."""
        while text:
            text = text[os.write(self._file.fileno(), text) :]
        _files.force(self._file.fileno())

    def _begun(self, *titles: str) -> tuple[str, int]:
        """Return the run of a file and its count, or begin one; or raise.

        Nothing was counted before the first line was on the disk: where it has no end, as after a
        full disk or a loss of power, the file is begun anew.
        """
        found = self._file.readall()
        whole = re.fullmatch(rb"(.*) ([0-9a-f]{32})\n(\.*)", found)
        if whole is not None and whole[1].decode(errors="replace") in titles:
            return whole[2].decode(), len(whole[3])
        if not any(_is_cut(found, title) for title in titles):
            raise ParameterError("journal", self.path, _WHOLE if b"\0" in found else _OF_THIS)
        self._file.seek(0)
        self._file.truncate()
        run = secrets.token_hex(16)
        self._write(f"{titles[0]} {run}\n".encode())
        return run, 0


def _is_cut(found: bytes, title: str) -> bool:
    """Return whether a file ends within its first line, as one without anything does."""
    head = f"{title} ".encode()
    run = re.escape(head) + rb"[0-9a-f]{0,32}"
    return head.startswith(found) or re.fullmatch(run, found) is not None


def fingerprint(plan: Any) -> str:
    """Return a text that differs for plans that differ: a hash of what ``describe`` says of one."""
    from hockeystick.calibration import describe

    # In the form in which accountants record a plan that ran once.
    steps = [{"count": 1, "mechanism": describe(plan)}]
    text = json.dumps({"kind": "Accountant", "steps": steps, "version": 1}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
