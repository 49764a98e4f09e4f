"""Checks of values by name: what is accepted, what it becomes, and what is said when it is not."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from hockeystick._validate import MAX_COUNT, PARAMETERS, choice, count, real
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError

COUNTS = sorted(name for name, domain in PARAMETERS.items() if domain.high == MAX_COUNT)
NOT_NUMBERS = [
    *(None, True, False, np.True_, "1", "", b"1", 1 + 0j, np.complex128(1)),
    *(math.nan, np.float32("nan"), Decimal("nan"), Decimal("snan"), mpmath.nan),
    *([1], np.array(1.0), np.array([1]), {}, object(), float),
]


def cleaned(name: str, value: Any) -> float:
    return (count if PARAMETERS[name].whole else real)(name, value)


@pytest.mark.parametrize("name", PARAMETERS)
def test_what_is_not_a_number_is_refused_everywhere(name: Any) -> None:
    for value in NOT_NUMBERS:
        with pytest.raises(ParameterError) as caught:
            cleaned(name, value)
        assert caught.value.name == name
        assert caught.value.value is value
        assert caught.value.allowed == PARAMETERS[name].allowed


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("value", [-1, -1e-300, -math.inf, -(10**400), Decimal("-1")])
def test_negative_numbers_are_refused_everywhere(name: Any, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be "):
        cleaned(name, value)


@pytest.mark.parametrize("name", PARAMETERS)
def test_both_ends_are_allowed_unless_they_are_open(name: Any) -> None:
    domain = PARAMETERS[name]
    assert cleaned(name, domain.low) == domain.low
    if domain.high_open:
        with pytest.raises(ParameterError):
            cleaned(name, domain.high)
    else:
        assert cleaned(name, domain.high) == domain.high


@pytest.mark.parametrize(
    "value",
    [0.5, np.float64(0.5), np.float16(0.5), Fraction(1, 2), Decimal("0.5"), mpmath.mpf(0.5)],
)
def test_every_kind_of_real_number_becomes_a_python_float(value: Any) -> None:
    number = real("rate", value)
    assert type(number) is float
    assert number == 0.5


def test_negative_zero_becomes_zero() -> None:
    assert math.copysign(1, real("delta", -0.0)) == 1


@pytest.mark.parametrize(
    "value", [10**400, Decimal("1e400"), mpmath.mpf("1e-400"), Fraction(1, 10**400)]
)
def test_what_a_float_cannot_hold_is_refused_and_not_made_zero_or_infinite(value: Any) -> None:
    with pytest.raises(ParameterError, match="or inf, within the range of a float; got "):
        real("epsilon", value)


@pytest.mark.parametrize(
    "value", [10_000, 1e4, np.int32(10_000), np.float32(1e4), Fraction(10_000), Decimal("1e4")]
)
def test_every_kind_of_whole_number_becomes_a_python_int(value: Any) -> None:
    number = count("steps", value)
    assert type(number) is int
    assert number == 10_000


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize(
    "value",
    [0.5, Fraction(3, 2), Decimal("2.5"), Decimal("1e400000"), MAX_COUNT + 1, 1e300, math.inf],
)
def test_a_count_that_is_no_integer_of_its_domain_is_refused(name: Any, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be an integer from . to 10\\^15; got "):
        count(name, value)


@pytest.mark.parametrize("member", Adjacency)
def test_an_adjacency_is_accepted_as_member_and_as_text(member: Any) -> None:
    assert choice("adjacency", member, Adjacency) is member
    assert choice("adjacency", str(member), Adjacency) is member
    assert choice("adjacency", np.str_(member), Adjacency) is member
