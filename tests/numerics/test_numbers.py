"""Numbers as text, readings of floats, and the one root finder."""

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.numerics import log_of, log_readings
from hockeystick.numerics import numerals as numerals
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.roots import increasing_root, increasing_root_by_newton

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
    shown = Fraction(numerals.formatted(value, spec).strip())
    few = len(Decimal(repr(value)).normalize().as_tuple().digits) <= numerals.HEADLINE_DIGITS
    assert shown >= Fraction(repr(value) if few else value)
    unrounded = Fraction(format(value, spec).strip())
    assert shown - unrounded <= abs(unrounded) / 10 + 1


@pytest.mark.parametrize(
    ("spec", "up", "down"),
    [
        ("g", "0.852980", "0.852979"),
        ("f", "0.852980", "0.852979"),
        ("e", "8.529793e-01", "8.529792e-01"),
        (">12.2e", "    8.53e-01", "    8.52e-01"),
        ("<12", "0.852980    ", "0.852979    "),
        ("%", "85.297923%", "85.297922%"),
    ],
)
def test_a_format_without_a_precision_has_six_digits(spec: str, up: str, down: str) -> None:
    value = 0.85297922522699982
    assert numerals.formatted(value, spec) == up
    assert numerals.formatted(value, spec, ROUND_FLOOR) == down
    assert numerals.formatted(INF, ".3f") == "inf"
    with pytest.raises(ValueError, match="invalid format string"):
        numerals.formatted(value, "q")


NEXT_TO_1 = [1.0 - k * 2.0**-53 for k in (1, 2, 3, 5, 8, 26, 1000, 2**40)]
SUBNORMAL = [5e-324, 1e-323, 3.5e-322, 1e-310]


@pytest.mark.parametrize("value", [*NEXT_TO_1, *SUBNORMAL, 1e-300, 1e-5, 0.3, 0.5, 0.7])
def test_logarithms_of_both_readings_are_right_to_a_few_ulp(value: float) -> None:
    with mp.workdps(60):
        exact = sorted((mp.log(mp.mpf(value)), mp.log(mp.mpf(repr(value)))))
        for found, true in zip(log_readings(value), exact, strict=True):
            assert abs(found - true) <= 4 * mp.mpf(2) ** -52 * abs(true)


@pytest.mark.parametrize("bits", [60, 3000])
def test_logarithms_of_fractions_with_long_terms_are_right_to_a_few_ulp(bits: int) -> None:
    for share in (0.4, 0.03, 1e-300):
        value = Fraction(share) + Fraction(1, 3**bits)
        with mp.workdps(60):
            true = mp.log(mp.mpf(value.numerator) / value.denominator)
            assert abs(log_of(value) - true) <= 2 * mp.mpf(2) ** -52 * abs(true)
    assert log_of(Fraction(1)) == 0.0
    assert log_of(Fraction(1, 10**400)) == pytest.approx(-400 * math.log(10.0))


Function = Callable[[float], float]
# Functions with their derivatives and roots.
FUNCTIONS: dict[str, tuple[Function, Function, float]] = {
    "line": (lambda x: x - 3.25, lambda x: 1.0, 3.25),
    "cubic": (lambda x: (x + 1.5) ** 3, lambda x: 3.0 * (x + 1.5) ** 2, -1.5),
    "exponential": (
        lambda x: math.exp(min(x, 600.0)) - 1e40,
        lambda x: math.exp(min(x, 600.0)),
        40 * math.log(10),
    ),
    "saturating": (
        lambda x: math.atan(1e6 * (x - 0.1)),
        lambda x: 1e6 / (1.0 + 1e12 * (x - 0.1) ** 2),
        0.1,
    ),
    "sign only": (lambda x: math.inf if x > 7.0 else -math.inf, lambda x: 0.0, 7.0),
    "infinite on one side": (
        lambda x: math.log(x - 1.0) if x > 1.0 else -math.inf,
        lambda x: 1.0 / (x - 1.0) if x > 1.0 else 0.0,
        2.0,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("guess", [-50.0, 0.0, 1.4, 33.0])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
def test_the_root_is_found_to_the_tolerance_from_any_guess(
    name: str, guess: float, tolerance: float
) -> None:
    function, derivative, root = FUNCTIONS[name]
    flat = 1e-4 if name == "cubic" else 0.0  # the floats cubed underflow near the root
    found = increasing_root(function, guess, tolerance=tolerance)
    assert abs(found - root) <= tolerance + flat + 4 * math.ulp(root)
    near = increasing_root_by_newton(
        lambda x: (function(x), derivative(x)), guess, last_step=tolerance, farthest=150.0
    )
    assert abs(near - root) <= 4.0 * tolerance + flat + 4 * math.ulp(root)
    assert near <= root or name != "sign only"


@pytest.mark.parametrize(("sign", "end"), [(-1.0, 60.0), (1.0, -60.0)])
def test_without_a_sign_change_the_answer_is_the_farthest_point(sign: float, end: float) -> None:
    assert increasing_root(lambda _: sign, 1.5, tolerance=1e-6, farthest=60.0) == end
