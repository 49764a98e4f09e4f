"""What the house has come to stays: no circle, nothing private across rooms, no crowded folder."""

from __future__ import annotations

import importlib
from collections import Counter
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType

import pytest

from benchmarks import house
from benchmarks.house import FILES, PACKAGE, WHERE, Import

MOST_FILES = 20
# What stands on trade-off functions computes what their methods are asked, which import it.
LAZY = ("hockeystick.tradeoffs.base", WHERE[1])


@cache
def imports() -> list[Import]:
    return [one for file in FILES for one in house.imports_of(file)]


def test_no_room_imports_a_private_module_or_name_of_another() -> None:
    modules, names = house.private(imports())
    assert not modules
    assert not names


@pytest.mark.parametrize("folder", [PACKAGE, house.ROOT / "tests"])
def test_no_folder_holds_more_files_than_one_can_oversee(folder: Path) -> None:
    flat = Counter(file.parent for file in folder.rglob("*.py"))
    assert {str(one): count for one, count in flat.items() if count > MOST_FILES} == {}


@pytest.mark.parametrize("kinds", range(1, len(WHERE) + 1), ids=WHERE)
def test_modules_import_one_another_in_no_circle(kinds: int) -> None:
    looked_at = [one for one in imports() if (one.source, one.where) != LAZY]
    assert house.circles([one for one in looked_at if one.where in WHERE[:kinds]]) == []


def test_what_is_public_of_a_class_is_documented_there_or_where_it_is_first() -> None:
    undocumented = []
    for file in FILES:
        dotted = ".".join(file.relative_to(house.ROOT).with_suffix("").parts)
        if "adapters" in dotted or dotted.endswith("__main__") or "verifier" in dotted:
            continue  # they need what a test run may not have
        module = importlib.import_module(dotted.removesuffix(".__init__"))
        for kind in vars(module).values():
            if isinstance(kind, type) and (kind.__module__, kind.__name__[0] == "_") == (
                dotted,
                False,
            ):
                made = (FunctionType, property, cached_property, classmethod, staticmethod)
                public = [one for one, has in vars(kind).items() if isinstance(has, made)]
                undocumented += [
                    f"{module.__name__}.{kind.__name__}.{one}"
                    for one in public
                    if one[0] != "_"
                    and not any(
                        getattr(vars(base).get(one), "__doc__", "") for base in kind.__mro__
                    )
                ]
    assert undocumented == []
