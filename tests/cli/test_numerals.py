"""How the commands write numbers."""

import pytest

from hockeystick.cli.durations import seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3e-7, "0 us"),
        (9.96e-4, "996 us"),
        (7.42e-3, "7.4 ms"),
        (0.0994, "99 ms"),
        (0.0997, "100 ms"),
        (0.724, "724 ms"),
        (1.04, "1 s"),
        (99.7, "100 s"),
        (350.0, "350 s"),
    ],
)
def test_a_duration_has_a_unit_and_no_exponent(value: float, text: str) -> None:
    assert seconds(value) == text
