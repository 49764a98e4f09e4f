"""Files that whatever ends a process leaves right: locked, forced to the disk, replaced whole."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from typing import Final

from hockeystick.errors import ParameterError

_FREE: Final = "one that no other run has open, in this process or another one"
_LOCKING: Final = "on a file system that locks files, so that no other process writes there"
_LOCKED: Final = weakref.WeakSet[FileIO]()


def check_path(path: str | os.PathLike[str], name: str) -> None:
    """Raise where a path is that of something else than a file, or of nothing that may be one."""
    try:
        found = bool(os.fspath(path)) and stat.S_ISREG(os.stat(path).st_mode)
    except OSError:  # it is not there, or cannot be reached: whoever opens it says which
        return
    except ValueError:
        found = False
    if not found:
        raise ParameterError(name, os.fspath(path), "the path of a file")


def locked(path: str | os.PathLike[str], name: str, mode: int = 0o666) -> FileIO:
    """Return a file, made where there is none, that nobody else locks until it is closed.

    The lock is that of what was opened here (``flock``), not the process's (``lockf``): a second
    one in the same process is refused too, and closing another descriptor does not end it. A forked
    process closes its copy at once: the process that opened the file alone holds it.

    Raises:
        ParameterError: If it is locked, or cannot be, or is no file; of that name.
        OSError: If it cannot be opened.
    """
    check_path(path, name)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    file = FileIO(os.open(path, flags, mode), "r+")
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**30)  # beyond all that is written: the lock is about the file as a whole
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        taken = error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
        allowed = _FREE if taken else _LOCKING
        raise ParameterError(name, os.fspath(path), allowed) from error
    if not _is_at(path, file):  # whoever had it before has removed or replaced it meanwhile
        file.close()
        return locked(path, name, mode)
    _LOCKED.add(file)
    return file


def _is_at(path: str | os.PathLike[str], file: FileIO) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _leave_to_parent() -> None:
    """Close a forked process's copies of what its parent has locked."""
    for file in list(_LOCKED):
        file.close()


if hasattr(os, "register_at_fork"):  # all systems but Windows
    os.register_at_fork(after_in_child=_leave_to_parent)


def force(descriptor: int) -> None:
    """Have the system put what was written on the disk, and ask it not to leave that to a cache."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def force_name(path: str | os.PathLike[str]) -> None:
    """Have the system put a file's name in its folder on the disk; Windows does so by itself."""
    if sys.platform == "win32":
        return
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield where to write a file that is then on the disk: whole, or else as it was before.

    A symbolic link stays one, and so do the mode of what is replaced and the ending of its name.
    """
    target = os.path.realpath(path)
    part = f"{target}.{secrets.token_hex(4)}.part{os.path.splitext(target)[1]}"
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        with suppress(FileNotFoundError):
            shutil.copymode(target, part)
        yield part
        with open(part, "r+b") as file:
            force(file.fileno())
        os.replace(part, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise
    force_name(target)
