"""Documents whose blocks are run: what they show is what happens."""

from __future__ import annotations

import contextlib
import doctest
import io
import itertools
import re
import shlex
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from hockeystick.cli import main
from hockeystick.cli.sweep import load_grid
from hockeystick.io import load_plan

ROOT: Final = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^\.\. auto(?:class|data|function|module):: (hockeystick\.\S+)$", re.MULTILINE)
_FILE_NAME = re.compile(r"# ([\w.-]+\.toml)\n")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")
_NEEDS = re.compile(r"^% needs: (\S+)$", re.MULTILINE)
_NOW = "you now write"


class Block(NamedTuple):
    """A block of code, and the language that it says it is in."""

    language: str
    text: str


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a document that say their language; directives are none."""
    return [Block(*found) for found in _BLOCK.findall(text)]


def dead_links_of(path: Path) -> list[str]:
    """Return the links of a document that lead to no file, or to no heading or entry of a page."""
    text = path.read_text(encoding="utf-8")
    links = _LINK.findall(_BLOCK.sub("", text))
    inner = [link for link in links if "://" not in link]
    return [link for link in inner if not _leads_somewhere(path, *link.partition("#"))]


def _leads_somewhere(path: Path, name: str, mark: str, anchor: str) -> bool:
    """Return whether a link of a document leads somewhere: to what a page there has, if marked."""
    page = path.parent / name if name else path
    if not mark:
        return page.exists()
    if page.suffix != ".md" or not page.is_file():
        return False
    text = page.read_text(encoding="utf-8")
    return anchor in anchors_of(text) or anchor in anchors_of(_generated().filled(text))


def anchors_of(text: str) -> set[str]:
    """Return what a link to a page may lead to: headings and entries of the package."""
    found: set[str] = set(_ENTRY.findall(text))
    for title in _HEADING.findall(_FENCE.sub("", text)):
        name = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        counted = (f"{name}-{n}" if n else name for n in itertools.count())
        found.add(next(one for one in counted if one not in found))
    return found


@cache
def _generated() -> ModuleType:
    spec = spec_from_file_location("generated", ROOT / "docs" / "_ext" / "generated.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needed_by(text: str) -> list[str]:
    return _NEEDS.findall(text)


def cells_of(text: str) -> list[str]:
    """Return the code in the last column of the tables that say what is now written."""
    found, inside = [], False
    for line in text.splitlines():
        inside = line.startswith("|") and (inside or _NOW in line)
        if inside and _NOW not in line:
            found += _CODE.findall(line.rstrip(" |").rpartition(" | ")[2])
    return found


def steady(text: str) -> str:
    """Return the text without what differs from run to run: times, blanks, the last digits."""
    text = re.sub(r"\b\d+(\.\d+)? (us|ms|s)\b", "TIME", text)
    text = re.sub(r"(\d\.\d{8})\d+", r"\1", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


def shows(shown: str, happened: str) -> bool:
    """Return whether both are the same; a line of three dots stands for any lines."""
    pieces = [re.escape(piece) for piece in re.split(r"^\.\.\.$", steady(shown), flags=re.M)]
    return re.fullmatch(r"(?s:.*)".join(pieces), steady(happened)) is not None


def printed_by(command: str) -> str:
    """Return what ``$ hockeystick ...`` prints, run in this process; it must succeed."""
    prompt, name, *arguments = shlex.split(command)
    assert (prompt, name) == ("$", "hockeystick"), command
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = main(arguments)
    assert status == 0, command
    return printed.getvalue()


def check_command(block: str) -> None:
    command, shown = block.split("\n", 1)
    happened = printed_by(command)
    assert shows(shown, happened), f"{command}\n{happened}"


def check_session(block: str, names: dict[str, Any], source: str) -> int:
    """Assert that a session answers what is shown, and return how many lines it has."""

    class Checker(doctest.OutputChecker):
        def check_output(self, want: str, got: str, optionflags: int) -> bool:
            return super().check_output(steady(want), steady(got), optionflags)

    session = doctest.DocTestParser().get_doctest(block, names, source, source, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS)
    result = runner.run(session, out=report.append, clear_globs=False)
    names.update(session.globs)
    assert result.failed == 0, "".join(report)
    return result.attempted


def check_file(block: str, folder: Path) -> None:
    """Assert that a file in TOML is a plan or a grid; put it into a folder if it has a name."""
    name = _FILE_NAME.match(block)
    path = folder / (name[1] if name else "unnamed.toml")
    path.write_text(block, encoding="utf-8")
    read: Any = load_grid if "[grid]" in block else load_plan
    assert read(path) is not None


def check_page(text: str, folder: Path, source: str) -> None:
    """Assert that all blocks of a page do as they say; sessions go on from block to block."""
    names: dict[str, Any] = {}
    for language, block in blocks_of(text):
        if language == "console":
            check_command(block)
        elif language == "pycon":
            check_session(block, names, source)
        elif language == "toml":
            check_file(block, folder)
    for cell in cells_of(text):
        _run_cell(cell, names)


def _run_cell(cell: str, names: dict[str, Any]) -> None:
    """Run what a cell of a table says is now written."""
    if cell.startswith("hockeystick "):
        printed_by(f"$ {cell}")
    else:
        exec(compile(cell, cell, "exec"), names)
