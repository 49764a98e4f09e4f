"""Checks of values by name: what is accepted, what it becomes, and the errors for what is not."""

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick._validate import MAX_COUNT, PARAMETERS, choice, count, real
from hockeystick.adjacency import Adjacency
from hockeystick.errors import HockeystickError, ParameterError, UnsupportedError, hint, same_name

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


@pytest.mark.parametrize(
    "error",
    [
        ParameterError("rate", 1.5, "a number from 0 to 1"),
        UnsupportedError("rdp", "parts[1] (Gaussian)", "there is no analysis"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_is_caught_by_the_base_and_survives_pickle_and_copy(error: Any) -> None:
    assert isinstance(error, HockeystickError)
    for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert (type(twin), str(twin), vars(twin)) == (type(error), str(error), vars(error))


class _Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (10**40, "an integer of 133 bits"),
        (-(10**5000), "a negative integer of 16610 bits"),
        ((10**5000,), "an unprintable tuple"),
        (_Unprintable(), "an unprintable _Unprintable"),
        ("x" * 1000, "'" + "x" * 76 + "..."),
        ("two\nlines", r"'two\nlines'"),
        (2**127, str(2**127)),
    ],
    ids=["big", "negative", "nested", "unprintable", "long", "newline", "not-so-big"],
)
def test_the_value_is_shown_in_one_short_line_whatever_it_is(value: Any, shown: Any) -> None:
    assert str(ParameterError("rate", value, "small")) == f"rate must be small; got {shown}"


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("noise_multiplyer", ["noise_multiplier", "rate"], "noise_multiplier"),
        ("sigma", ["noise_multiplier", "rate"], "noise_multiplier"),
        ("T", ["rate", "steps"], "steps"),
        ("n", ["rate"], None),
        ("unbounded", ["add-remove", "replace-one"], "add-remove"),
        ("Batch-Size", ["batch_size"], "batch_size"),
        ("xyz", ["rate", "steps"], None),
    ],
)
def test_the_name_that_is_meant_is_found(name: str, names: list[str], found: str | None) -> None:
    assert hint(name, names) == ("" if found is None else f" (did you mean {found!r}?)")


def test_capitals_and_dashes_make_no_other_name() -> None:
    assert same_name("zcdp", ["PureDP", "ZCDP"]) == "ZCDP"
    assert same_name("Closed_Form", ["closed-form"]) == "closed-form"
    assert same_name("rho", ["ZCDP"]) == "rho"


def test_an_error_names_what_is_near() -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"\(did you mean 'poisson'\?\)"):
        hs.DPSGD(rate=0.1, steps=9, noise_multiplier=1, sampling="poison")
    with pytest.raises(AttributeError, match="nothing"):
        hs.nothing  # type: ignore[attr-defined]  # noqa: B018
