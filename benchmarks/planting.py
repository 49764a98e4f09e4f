"""Bugs planted in a copy of the repository, one at a time, and processes that run with them."""

import ast
import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "hockeystick"
_DEFINED: Final = re.compile(r"^ *(?:def |class )?(\w+)", re.MULTILINE)
_LEFT_BEHIND: Final = (".git", ".venv*", "__pycache__", "*_cache", "shared", "wt")


def changed(of: str, old: str, new: str, root: Path = ROOT) -> tuple[Path, str]:
    """Return a file of the package and its text with a bug, wherever the definition is by now.

    Args:
        of: A function, class or constant by its qualified name in its module, ``Class.method``.
        old: An expression or statement that it has once, in any layout.
        new: What takes its place.
        root: The repository.
    """
    wanted = ast.dump(_only(old))
    found = [
        (path, text, node)
        for path, text, tree in _modules(root, of.rpartition(".")[2])
        for node in _inside(tree, of.split("."))
        if isinstance(node, ast.expr | ast.stmt) and ast.dump(node) == wanted
    ]
    if len(found) != 1:
        places = ", ".join(f"{path.relative_to(root)}:{node.lineno}" for path, _, node in found)
        raise ValueError(f"not once in {of}, but {places or 'nowhere'}: {old}")
    path, text, node = found[0]
    lines = text.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[: line - 1])) for line in (node.lineno, node.end_lineno or 0)]
    first, last = starts[0] + node.col_offset, starts[1] + (node.end_col_offset or 0)
    inserted = f"({new})" if isinstance(node, ast.expr) else new
    whole = text.encode()
    return path, (whole[:first] + inserted.encode() + whole[last:]).decode()


def _only(text: str) -> ast.expr | ast.stmt:
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def _modules(root: Path, name: str) -> Iterator[tuple[Path, str, ast.AST]]:
    for path in _defining(root).get(name, ()):
        text = path.read_text(encoding="utf-8")
        yield path, text, _parsed(text)


@lru_cache
def _defining(root: Path) -> dict[str, set[Path]]:
    found = defaultdict[str, set[Path]](set)
    for path in sorted((root / PACKAGE).rglob("*.py")):
        for name in _DEFINED.findall(path.read_text(encoding="utf-8")):
            found[name].add(path)
    return found


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.AST:
    return ast.parse(text)


def _inside(tree: ast.AST, names: list[str]) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if names[0] not in _defined(node):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.expr):
                yield from _inside(node, names)
        elif names[1:]:
            yield from _inside(node, names[1:])
        else:
            yield from ast.walk(node)


def _defined(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [one.id for one in targets if isinstance(one, ast.Name)]


class Copy:
    """A copy of the repository that bugs are planted in."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        self._compiled = folder / "compiled"
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*_LEFT_BEHIND))

    @contextmanager
    def planted(self, of: str, old: str, new: str) -> Iterator[dict[str, str]]:
        """Plant a bug, give the environment of processes that shall have it, take it out again.

        The file's times are put back as well: caches go by them. A compiled kernel does not notice
        that another one has changed, so that with a bug in a kernel all are compiled afresh.
        """
        path, bug = changed(of, old, new, self.root)
        text, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(bug, encoding="utf-8")
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
