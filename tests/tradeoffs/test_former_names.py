from __future__ import annotations

import pytest

import hockeystick as hs


@pytest.mark.parametrize(
    ("former", "name"),
    [
        ("NoLoss", "PerfectPrivacy"),
        ("WiderProfile", "IntervalProfile"),
        ("WorseProfile", "MaximumProfile"),
    ],
)
def test_a_former_name_works_and_warns(former: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{former} is now {name}"):
        assert getattr(hs.tradeoffs, former) is getattr(hs.tradeoffs, name)
    assert former not in hs.tradeoffs.__all__


def test_a_name_that_never_was_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="SomeLoss"):
        hs.tradeoffs.SomeLoss  # type: ignore[attr-defined]  # noqa: B018
