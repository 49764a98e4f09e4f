"""Bugs planted in a copy of the repository, one at a time, and processes that run with them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "hockeystick"
_LEFT_BEHIND: Final = (".git", ".venv*", "__pycache__", "*_cache", "shared", "wt")


def place_of(old: str, root: Path = ROOT) -> Path:
    """Return the one file of the package that holds a text, which it does once."""
    texts = {
        path: path.read_text(encoding="utf-8") for path in sorted((root / PACKAGE).rglob("*.py"))
    }
    found = [path for path, text in texts.items() for _ in range(text.count(old))]
    if len(found) != 1:
        places = ", ".join(str(path.relative_to(root)) for path in found) or "nowhere"
        raise ValueError(f"a text to be changed is not once in the package, but {places}: {old}")
    return found[0]


class Copy:
    """A copy of the repository that bugs are planted in."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        self._compiled = folder / "compiled"
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*_LEFT_BEHIND))

    @contextmanager
    def planted(self, old: str, new: str) -> Iterator[dict[str, str]]:
        """Plant a bug, give the environment of processes that shall have it, take it out again.

        The file's times are put back as well: caches go by them. A compiled kernel does not notice
        that another one has changed, so that with a bug in a kernel all are compiled afresh.
        """
        path = place_of(old, self.root)
        text, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(text.replace(old, new), encoding="utf-8")
        try:
            with tempfile.TemporaryDirectory() as own:
                yield self.environment(Path(own) if "@njit" in text else self._compiled)
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def environment(self, compiled: Path | None = None) -> dict[str, str]:
        """Return the environment of processes that import the copy."""
        return {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "NUMBA_CACHE_DIR": str(compiled or self._compiled),
        }
