"""The old names of rooms work, and say what the new ones are."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import hockeystick as hs
from hockeystick._moved import MODULES, NAMES, ROOMS


@pytest.mark.parametrize(("old", "new"), ROOMS.items())
def test_a_room_is_still_found_under_its_old_name_which_says_where_it_went(
    old: str, new: str
) -> None:
    room, moved = import_module(f"hockeystick.{new}"), import_module(f"hockeystick.{old}")
    assert getattr(hs, old) is moved
    for name in room.__all__:
        with pytest.warns(DeprecationWarning, match=f"hockeystick.{old} is now hockeystick.{new}"):
            assert getattr(moved, name) is getattr(room, name)


def _is_from(one: object, module: ModuleType) -> bool:
    return getattr(one, "__module__", "") == module.__name__


@pytest.mark.parametrize(("old", "new"), MODULES.items())
def test_a_module_is_still_found_under_its_old_name_which_says_where_it_went(
    old: str, new: str
) -> None:
    module, moved = import_module(f"hockeystick.{new}"), import_module(f"hockeystick.{old}")
    own = [name for name, one in vars(module).items() if _is_from(one, module)]
    assert own
    for name in own:
        with pytest.warns(DeprecationWarning, match=f"hockeystick.{old} is now hockeystick.{new}"):
            assert getattr(moved, name) is getattr(module, name)


def test_an_import_of_old_is_warned_of_where_it_stands() -> None:
    with pytest.warns(DeprecationWarning, match="is now hockeystick.release") as seen:
        exec("from hockeystick.randomizers import *", given := {"__name__": "theirs"})
    assert given["response_reports"] is import_module("hockeystick.release").response_reports
    assert {warning.filename for warning in seen} == {"<string>"}


def test_what_was_never_there_is_an_error_under_the_old_name_too() -> None:
    moved = import_module("hockeystick.losses")
    with (
        pytest.warns(DeprecationWarning, match="is now hockeystick.privacy_loss"),
        pytest.raises(AttributeError, match=r"hockeystick\.privacy_loss"),
    ):
        moved.nothing  # noqa: B018


def test_a_room_is_not_loaded_before_something_is_taken_from_it() -> None:
    code = "import sys, hockeystick.claims; sys.exit('hockeystick.literature' in sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=600)


@pytest.mark.parametrize(("name", "room"), NAMES.items())
def test_a_name_that_left_the_top_is_still_there_and_says_where_it_went(
    name: str, room: str
) -> None:
    assert name not in hs.__all__
    with pytest.warns(DeprecationWarning, match=f"hockeystick.{name} is now hockeystick.{room}"):
        moved = getattr(hs, name)
    assert moved is getattr(getattr(hs, room), name)


def test_what_was_never_at_the_top_is_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        hs.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("hockeystick.federated", "FedSDP"),
        ("hockeystick.schedules", "Linear"),
        ("hockeystick.mechanisms.schedules", "Linear"),
        ("hockeystick.mechanisms.tuning", "Binomial"),
    ],
)
def test_what_is_there_by_a_shorter_name_can_be_imported_by_it(name: str, taken: str) -> None:
    code = (
        f"import sys, {name}; assert 'mechanisms' in '{name}' or 'numpy' not in sys.modules; "
        f"from {name} import {taken} as one; import {name} as module; from {name} import *; "
        f"assert one is module.{taken} is {name}.{taken} is {taken}"
    )
    asked = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(asked, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
