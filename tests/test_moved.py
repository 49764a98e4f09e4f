"""Modules can be imported under their shorter names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hockeystick as hs


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
