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


def _classes() -> list[type]:
    """Return the public classes of all modules but those that need what a test may not have."""
    found = []
    for file in FILES:
        dotted = ".".join(file.relative_to(house.ROOT).with_suffix("").parts)
        if "adapters" in dotted or dotted.endswith("__main__") or "verifier" in dotted:
            continue
        kinds = vars(importlib.import_module(dotted.removesuffix(".__init__"))).values()
        own = [one for one in kinds if isinstance(one, type) and one.__module__ == dotted]
        found += [one for one in own if one.__name__[0] != "_"]
    return found


def test_what_is_public_of_a_class_is_documented_there_or_where_it_is_first() -> None:
    made = (FunctionType, property, cached_property, classmethod, staticmethod)
    classes = _classes()
    protocols = [one for one in classes if getattr(one, "_is_protocol", False)]
    undocumented = []
    for kind in classes:
        fields = (vars(base).get("__annotations__", ()) for base in kind.__mro__)
        held = {*dir(kind)}.union(*fields)
        kept = [one for one in protocols if {x for x in vars(one) if x[0] != "_"} <= held]
        public = [name for name, has in vars(kind).items() if isinstance(has, made)]
        undocumented += [
            f"{kind.__module__}.{kind.__name__}.{name}"
            for name in public
            if name[0] != "_"
            and not any(
                getattr(vars(base).get(name), "__doc__", "") for base in (*kind.__mro__, *kept)
            )
        ]
    assert undocumented == []
