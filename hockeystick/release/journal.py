"""A file that counts steps durably, for one process at a time."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol, final

from hockeystick.errors import ParameterError

_OF_THIS: Final = (
    "an account of this very plan, of a run that is private or not as this one is, in the same "
    "arithmetic, and on the same ledger by the same key, or on none"
)
_A_JOURNAL: Final = "the path of a file, an hs.ledger.ReservedRun, or None"
_FREE: Final = "one that no other loop has open, in this process or another one"
_LOCKING: Final = "on a file system that locks files, so that no other process counts there"


class Counting(Protocol):
    """What counts steps: a ``Journal``, or another that is told of the run's end."""

    counted: int

    @property
    def run(self) -> str:
        """The name of the run."""

    @property
    def path(self) -> str | None:
        """The file, where there is one."""

    def add(self, steps: int) -> None:
        """Count further steps."""

    def finish(self) -> None:
        """Note that the run is over: no further step will be counted."""

    def close(self) -> object:
        """Count no more, and leave the file to others."""


class OpensJournal(Protocol):
    """What may be given in the place of a journal's path: ``hs.ledger.ReservedRun``."""

    def open(self, title: str, first: Callable[[int], Any], most: int) -> Counting:
        """Return what counts the first of a run's steps, or raise."""


def opened(
    journal: str | os.PathLike[str] | OpensJournal,
    title: str,
    first: Callable[[int], Any],
    most: int,
) -> Counting:
    """Return what counts a run, for this process alone.

    Args:
        journal: The path of a file, or what opens one itself.
        title: What the journal is of.
        first: From a number of steps to the plan of the first so many.
        most: How many steps there are.

    Raises:
        ParameterError: If the journal is another run's, or in use, or none.
    """
    if isinstance(journal, str | os.PathLike):
        return Journal(journal, title)
    if not callable(getattr(journal, "open", None)):
        raise ParameterError("journal", journal, _A_JOURNAL)
    return journal.open(title, first, most)


@final
class Journal:
    """A line that says what is counted and in which run, then one byte for each step.

    A byte is written, and forced to the disk, before the step's noise is drawn: whoever is killed
    at any moment, the machine included, leaves a count that is never below what was released, as
    far as the disk keeps what it says that it has. The file's name in its folder is forced there
    when the journal is opened. That is a write of the disk for each step: some tenths of a
    millisecond to some milliseconds, where all else of an entry is a microsecond.
    """

    __slots__ = ("__weakref__", "_descriptor", "close", "counted", "path", "run")

    def __init__(self, path: str | os.PathLike[str], title: str) -> None:
        self.path = os.fspath(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags, 0o600)
        self.close = weakref.finalize(self, os.close, self._descriptor)
        try:
            _lock(self._descriptor, self.path)
            self.run, self.counted = self._begun(title)
            _force_folder(self.path)
        except (ParameterError, OSError):
            self.close()
            raise

    def add(self, steps: int) -> None:
        """Count further steps, possibly none."""
        self._write(b"." * steps)

    def finish(self) -> None:
        """Write nothing: a count is one at its end as well."""

    def _write(self, text: bytes) -> None:
        """Write all of a text to the disk, or raise: one nearly full takes a part and says so."""
        if not text:
            return
        while text:
            text = text[os.write(self._descriptor, text) :]
        _force(self._descriptor)

    def _begun(self, title: str) -> tuple[str, int]:
        """Return the run of a file and its count, or begin one; or raise."""
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            found = file.read()
        if not found:
            run = secrets.token_hex(16)
            self._write(f"{title} {run}\n".encode())
            return run, 0
        line, _, dots = found.partition(b"\n")
        said, _, run = line.decode(errors="replace").rpartition(" ")
        if said != title or dots.strip(b"."):
            raise ParameterError("journal", self.path, _OF_THIS)
        return run, len(dots)


def _force(descriptor: int) -> None:
    """Have the system put what was written on the disk, and ask it not to leave that to a cache."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def _force_folder(path: str | bytes) -> None:
    """Have the system put a new file's name on the disk; Windows does so by itself."""
    if sys.platform == "win32":
        return
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _lock(descriptor: int, path: str) -> None:
    """Take a file for this process until it is closed, or raise."""
    try:
        if sys.platform == "win32":
            import msvcrt

            # A byte beyond all that are written: the lock is about the file as a whole.
            os.lseek(descriptor, 2**30, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        taken = error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
        raise ParameterError("journal", path, _FREE if taken else _LOCKING) from error
