"""The file that a command writes: where it may go, and that it is there all at once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from hockeystick import _files
from hockeystick.errors import ParameterError


def out_path(out: str, endings: Collection[str], force: bool, name: str = "out") -> Path:
    """Return where a file goes, or raise before anything takes its time."""
    path = Path(out)
    if path.suffix.lower() not in endings or "\0" in out:
        raise ParameterError(name, out, f"a file name that ends in {' or '.join(endings)}")
    reason = ""
    if path.is_dir():
        reason = "Is a directory"
    elif _followed(path).is_symlink():
        reason = "Too many levels of symbolic links"
    elif not path.parent.is_dir() or not _followed(path).parent.is_dir():
        reason = "No such file or directory"
    if reason:
        raise click.ClickException(f"cannot write {out}: {reason}")
    _refuse_existing(path, force)
    return path


def write_whole(path: Path, text: str, force: bool) -> None:
    """Write a text all at once."""
    with whole(path, force) as part, open(part, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


@contextmanager
def whole(path: Path, force: bool) -> Iterator[Path]:
    """Yield where to write a file that then is there all at once: until it is whole, it is not.

    A symbolic link stays one: the file that it leads to is written.
    """
    try:
        with _files.replacing(path) as part:
            yield Path(part)
            _refuse_existing(path, force)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None


def _followed(path: Path) -> Path:
    """Return the file that a path leads to, through symbolic links; it need not be there."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _refuse_existing(path: Path, force: bool) -> None:
    """Raise where a file would be replaced that nobody said may be."""
    if path.exists() and not force:
        raise click.UsageError(f"{path} is there already; give --force to replace it")
