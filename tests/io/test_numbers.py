"""Numbers in texts keep their range, and a quotient is a number."""

from decimal import Decimal

import pytest

from hockeystick.io import parse


@pytest.mark.parametrize(
    ("text", "number"),
    [("1/60000", 1 / 60_000), ("1e-3/4", 0.00025), ("6/3", 2.0), ("-1/2", -0.5), ("7", 7)],
)
def test_a_quotient_is_the_float_next_to_it(text: str, number: float) -> None:
    assert parse(text) == number


@pytest.mark.parametrize(
    "text", ["1/0", "1/", "/2", "a/b", "1/2/3", "inf/2", "1e300/1e-300", "1/inf"]
)
def test_what_is_no_quotient_stays_a_text(text: str) -> None:
    assert parse(text) == text


def test_what_floats_cannot_hold_stays_exact() -> None:
    assert (parse("1e-400"), parse("1e400")) == (Decimal("1e-400"), Decimal("1e400"))
