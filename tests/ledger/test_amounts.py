"""Amounts are shown rounded to their safe side."""

import pytest

from hockeystick.ledger.amounts import downward, upward


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (0.1, "0.1", "0.1"),
        (1.23456789, "1.23456", "1.23457"),
        (5e-7, "5e-07", "5e-07"),
        (float("inf"), "inf", "inf"),
    ],
)
def test_numbers_are_rounded_as_the_decimals_they_print_as(
    value: float, low: str, high: str
) -> None:
    assert (downward(value), upward(value)) == (low, high)
