"""Numbers as text: every end of an interval is shown rounded to its safe side."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.numerics import numerals as numerals

INF = float("inf")


@pytest.mark.parametrize(
    ("lower", "upper", "shown"),
    [
        (2.0, 2.0, ("2", "2")),
        (0.0, 0.0, ("0", "0")),
        (INF, INF, ("inf", "inf")),
        (1.0, INF, ("1", "inf")),
        (1.234561, 1.234782, ("1.23456", "1.23479")),
        (0.0, 1e-300, ("0", "1.00001e-300")),
        (2 / 3, 0.7, ("0.666666", "0.700000")),
    ],
)
def test_an_interval_is_shown_rounded_outwards(
    lower: float, upper: float, shown: tuple[str, str]
) -> None:
    assert numerals.interval(lower, upper) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.1, "0.1"), (1.5, "1.5"), (0.1 + 0.2, "0.300001"), (1e-300, "1e-300"), (1e20, "1e+20")],
)
def test_a_float_of_few_digits_is_shown_as_it_prints(value: float, shown: str) -> None:
    assert numerals.at_most(value) == shown
    assert numerals.at_most(0.123456, 3) == "0.124"
    assert numerals.at_least(0.123456, 3) == "0.123"


@pytest.mark.parametrize(
    ("lower", "upper", "shown"),
    [
        (1.0, 1.0 + 2**-52, "1"),
        (20 - 2**-48, 20 + 2**-48, "20"),
        (1.0, 1.0 + 1e-11, "1.00001"),
        (1 + 2**-52, 1 + 2**-51, "1.00001"),
        (1.0, INF, "inf"),
        (0.0, 1e-300, "1e-300"),
    ],
)
def test_the_number_to_quote_is_short_where_the_interval_is_as_narrow_as_round_off(
    lower: float, upper: float, shown: str
) -> None:
    assert numerals.headline(lower, upper) == shown


@given(st.floats(0, 1e300), st.sampled_from([".0f", ".3f", ".6g", ".2e", "12.4f"]))
def test_a_format_rounds_up(value: float, spec: str) -> None:
    shown = Fraction(numerals.formatted_up(value, spec).strip())
    few = len(Decimal(repr(value)).normalize().as_tuple().digits) <= numerals.HEADLINE_DIGITS
    assert shown >= Fraction(repr(value) if few else value)
    unrounded = Fraction(format(value, spec).strip())
    assert shown - unrounded <= abs(unrounded) / 10 + 1


@pytest.mark.parametrize(("value", "spec", "shown"), [(2.0, ".3f", "2.000"), (INF, ".3f", "inf")])
def test_a_format_is_that_of_python(value: float, spec: str, shown: str) -> None:
    assert numerals.formatted_up(value, spec) == shown


@pytest.mark.parametrize(
    ("spec", "up", "down"),
    [
        ("g", "0.852980", "0.852979"),
        ("f", "0.852980", "0.852979"),
        ("e", "8.529793e-01", "8.529792e-01"),
        (">12.2e", "    8.53e-01", "    8.52e-01"),
        (">12", "    0.852980", "    0.852979"),
        ("<12", "0.852980    ", "0.852979    "),
        ("%", "85.297923%", "85.297922%"),
    ],
)
def test_a_format_without_a_precision_has_six_digits(spec: str, up: str, down: str) -> None:
    value = 0.85297922522699982
    assert (numerals.formatted_up(value, spec), numerals.formatted_down(value, spec)) == (up, down)
    with pytest.raises(ValueError, match="invalid format string"):
        numerals.formatted_up(value, "q")
