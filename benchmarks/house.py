"""The house in numbers: imports, circles, and the walks of five questions through files and calls.

`python -m benchmarks.house` prints the walks. A room is what lies directly in the package; which
room is above which is read from the import contract in setup.cfg.
"""

from __future__ import annotations

import ast
import io
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final
from unittest.mock import patch

import hockeystick as hs

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "hockeystick"
FILES: Final = sorted(PACKAGE.rglob("*.py"))
WHERE: Final = ("at the top", "in functions", "for types only")
PLAN: Final = "hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)"
TOML: Final = str(ROOT / "examples/mnist-tutorial.toml")


@dataclass(frozen=True)
class Import:
    """A module that imports another, or a name of it, and where in the file it does."""

    source: str
    target: str
    name: str
    where: str


def module_of(file: Path) -> str:
    """Return a file's module."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES: Final = frozenset(map(module_of, FILES))


def room_of(module: str) -> str:
    """Return the room of a module of the package; "" for the package itself."""
    return (*module.split("."), "")[1]


def imports_of(file: Path) -> Iterator[Import]:
    """Yield what a file imports, of any package; the package writes no relative imports."""
    stack: list[tuple[ast.AST, str]] = [(ast.parse(file.read_text(encoding="utf-8")), WHERE[0])]
    while stack:
        node, where = stack.pop()
        if isinstance(node, ast.Import):
            for one in node.names:
                yield Import(module_of(file), one.name, "", where)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                inner = f"{node.module}.{one.name}"
                target, name = (inner, "") if inner in MODULES else (node.module, one.name)
                yield Import(module_of(file), target, name, where)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack += ((one, WHERE[2]) for one in node.body)
            stack += ((one, where) for one in node.orelse)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            stack += ((one, WHERE[1] if inside else where) for one in ast.iter_child_nodes(node))


def circles(imports: list[Import]) -> list[list[str]]:
    """Return the sets of modules that all reach one another."""
    arrows: dict[str, set[str]] = {module: set() for module in MODULES}
    for one in imports:
        if one.target in MODULES and one.target != one.source:
            arrows[one.source].add(one.target)

    def reached(start: str) -> frozenset[str]:
        found, ahead = set[str](), [start]
        while ahead:
            for module in arrows[ahead.pop()] - found:
                found.add(module)
                ahead.append(module)
        return frozenset(found)

    reach = {module: reached(module) for module in MODULES}
    groups = {
        frozenset(other for other in reach[module] if module in reach[other]) for module in MODULES
    }
    return sorted(map(sorted, groups - {frozenset[str]()}))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private(imports: list[Import]) -> tuple[list[Import], list[Import]]:
    """Return the imports across rooms of private modules inside a room, and of private names."""
    across = [
        one
        for one in imports
        if one.target in MODULES and room_of(one.source) not in ("", room_of(one.target))
    ]
    modules = [one for one in across if any(map(is_private, one.target.split(".")[2:]))]
    return modules, [one for one in across if is_private(one.name)]


def above() -> dict[str, int]:
    """Return each room's floor, the highest first."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    layers = setup["importlinter:contract:layers"]["layers"].strip().splitlines()
    return {
        room.strip("() "): floor
        for floor, layer in enumerate(layers)
        for room in re.split("[:|]", layer)
        if not layer.strip().startswith("#")
    }


def walk(ask: Callable[[], Any]) -> str:
    """Return through how many files and calls an answer goes, and how often it climbs."""
    ask()  # whatever is loaded or kept the first time
    floors, files = above(), Counter[str]()
    climbs: Counter[tuple[str, str]] = Counter()

    def place(frame: FrameType) -> str:
        return frame.f_code.co_filename.removeprefix(f"{PACKAGE}/")

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return
        files[place(frame)] += 1
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(str(PACKAGE)):
            caller = caller.f_back
        if caller is not None:
            here, there = (place(one).split("/")[0].removesuffix(".py") for one in (caller, frame))
            if floors.get(there, 99) < floors.get(here, -1):
                climbs[here, there] += 1

    sys.setprofile(seen)
    try:
        ask()
    finally:
        sys.setprofile(None)
    up = ", ".join(f"{here} to {there} {n}" for (here, there), n in climbs.most_common())
    told = f"{len(files)} files, {files.total()} calls, {climbs.total()} climbs"
    return f"{told} ({up})" if up else told


def command() -> None:
    """Answer a plan file as the command does."""
    words = ["hockeystick", "epsilon", TOML]
    with patch.object(sys, "argv", words), redirect_stdout(io.StringIO()), suppress(SystemExit):
        runpy.run_module("hockeystick", run_name="__main__")


def walks() -> Iterator[str]:
    """Yield a line for each of the questions that everybody asks."""
    for text in (
        f"hs.epsilon({PLAN}, 1e-5)",
        f"hs.calibrate({PLAN}, 'noise_multiplier', hs.ApproxDP(2, 1e-5))",
        "hs.convert(hs.ZCDP(0.5), hs.ApproxDP, delta=1e-6)",
        f"hs.tradeoff({PLAN})(0.1)",
    ):
        yield f"{text}: {walk(partial(eval, text, {'hs': hs}))}"
    yield f"hockeystick epsilon PLAN.toml: {walk(command)}"


if __name__ == "__main__":
    for line in walks():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
