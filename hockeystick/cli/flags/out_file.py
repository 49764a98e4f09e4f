"""The file that a command writes: where it may go, and that it is there all at once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from hockeystick.errors import ParameterError


def out_path(out: str, ending: str, force: bool) -> Path:
    """Return where a file goes, or raise before anything takes its time."""
    path = Path(out)
    if path.suffix.lower() != ending or "\0" in out:
        raise ParameterError("out", out, f"a file name that ends in {ending}")
    if path.is_dir():
        raise click.ClickException(f"cannot write {out}: Is a directory")
    if not path.parent.is_dir():
        raise click.ClickException(f"cannot write {out}: No such file or directory")
    _refuse_existing(path, force)
    return path


def write_whole(path: Path, text: str, force: bool) -> None:
    """Write a file all at once: until it is whole, it is not there."""
    try:
        _replace(path, text, force)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None


def _replace(path: Path, text: str, force: bool) -> None:
    """Write beside a file, and then put that in its place."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=path.parent, suffix=".part", delete=False
    ) as part:
        try:
            part.write(text)
            part.close()
            _refuse_existing(path, force)
            os.chmod(part.name, 0o666 & ~_umask())
            os.replace(part.name, path)
        except BaseException:
            Path(part.name).unlink(missing_ok=True)
            raise


def _refuse_existing(path: Path, force: bool) -> None:
    """Raise where a file would be replaced that nobody said may be."""
    if path.exists() and not force:
        raise click.UsageError(f"{path} is there already; give --force to replace it")


def _umask() -> int:
    """Return the permissions that files do not get, which a temporary file ignores."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
