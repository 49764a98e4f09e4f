"""What a float is read as: its own value, and the decimal that it prints as."""

import math
from fractions import Fraction

import pytest

from hockeystick.numerics import log_of, log_readings
from hockeystick.numerics.multiprecision import mp

NEXT_TO_1 = [1.0 - k * 2.0**-53 for k in (1, 2, 3, 5, 8, 26, 1000, 2**40)]
SUBNORMAL = [5e-324, 1e-323, 3.5e-322, 1e-310]


@pytest.mark.parametrize("value", [*NEXT_TO_1, *SUBNORMAL, 1e-300, 1e-5, 0.3, 0.5, 0.7])
def test_logarithms_of_both_readings_are_right_to_a_few_ulp(value: float) -> None:
    with mp.workdps(60):
        exact = sorted((mp.log(mp.mpf(value)), mp.log(mp.mpf(repr(value)))))
        for found, true in zip(log_readings(value), exact, strict=True):
            assert abs(found - true) <= 4 * mp.mpf(2) ** -52 * abs(true)


def test_next_to_1_the_readings_differ_from_their_first_digits_on() -> None:
    least, most = log_readings(0.9999999999999994)
    assert least == pytest.approx(-6e-16, rel=1e-9)
    assert most == pytest.approx(-5.5511e-16, rel=1e-4)


@pytest.mark.parametrize("bits", [60, 300, 3000])
def test_logarithms_of_fractions_with_long_terms_are_right_to_a_few_ulp(bits: int) -> None:
    for share in (0.4, 0.03, 1e-300):
        value = Fraction(share) + Fraction(1, 3**bits)
        with mp.workdps(60):
            true = mp.log(mp.mpf(value.numerator) / value.denominator)
            assert abs(log_of(value) - true) <= 2 * mp.mpf(2) ** -52 * abs(true)


def test_the_logarithm_of_1_is_0() -> None:
    assert log_of(Fraction(1)) == 0.0
    assert log_of(Fraction(1, 10**400)) == pytest.approx(-400 * math.log(10.0))
