"""Numbers in texts keep their range, and a quotient is a number."""

from decimal import Decimal

import pytest

import hockeystick as hs
from hockeystick.io import parse, parse_plan


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


def test_a_number_in_quotes_is_told_to_go_without_them() -> None:
    with pytest.raises(hs.errors.PlanFileError, match=r"\(write 60, without quotes\)"):
        parse_plan("DPSGD(noise_multiplier=1, examples='60', batch_size=6, epochs=1)")


def test_what_floats_cannot_hold_stays_exact() -> None:
    assert (parse("1e-400"), parse("1e400")) == (Decimal("1e-400"), Decimal("1e400"))
