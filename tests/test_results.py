"""Answers: intervals in order, printed so that they still hold, and approximations apart."""

import copy
import json
import math
import operator
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.errors import ParameterError
from hockeystick.results import Approximate, Certified

INF = math.inf


def certified(
    lower: Any, estimate: Any, upper: Any, quantity: Any = "epsilon", **more: Any
) -> Certified:
    return Certified(lower, estimate, upper, quantity=quantity, accountant="contour", **more)


def approximate(value: Any, quantity: Any = "epsilon", **more: Any) -> Approximate:
    return Approximate(value, quantity=quantity, accountant="gdp", **more)


def printed(answer: Certified) -> tuple[str, ...]:
    pattern = r"\w+ = (\S+) \(proven in \[(\S+), (\S+)\]; contour(?:, [a-z-]+)?\)"
    match = re.fullmatch(pattern, str(answer))
    assert match, str(answer)
    return match.groups()


def exact(text: str) -> float | Fraction:
    return INF if text == "inf" else Fraction(text)


@pytest.mark.parametrize(
    ("ends", "name"),
    [
        ((2, 1, 3), "lower"),
        ((1, 3, 2), "upper"),
        ((math.nextafter(1, 2), 1, 1), "lower"),
        ((-1, 0, 1), "lower"),
        ((-1e-300, 0, 1), "lower"),
        ((math.nan, 1, 2), "lower"),
        ((1, math.nan, 2), "estimate"),
        ((1, 2, math.nan), "upper"),
        ((1, 2, mpmath.nan), "upper"),
        ((mpmath.mpf(-1), 2, 3), "lower"),
        ((INF, INF, 5), "upper"),
        ((None, 1, 2), "lower"),
        ((1, "2", 3), "estimate"),
        ((1, True, 1), "estimate"),
        ((1, 1, 1 + 0j), "upper"),
        # A float would round these, perhaps across the truth.
        ((Fraction(1, 3), 1, 2), "lower"),
        ((0, 1, 2**53 + 1), "upper"),
    ],
)
def test_an_interval_that_is_none_is_refused_by_the_name_of_its_end(ends: Any, name: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be ") as caught:
        certified(*ends)
    assert caught.value.name == name


@pytest.mark.parametrize("upper", [1 + 2**-52, INF, mpmath.mpf(2)])
def test_a_delta_above_one_is_refused(upper: Any) -> None:
    with pytest.raises(ParameterError, match=r"^upper must be a number from 0 to 1; got "):
        certified(0, 0.5, upper, quantity="delta")


@pytest.mark.parametrize("text", ["0.1", "1e-400", "2.3", "1e-310", "3", "1e400"])
def test_float_of_a_long_interval_is_rounded_up_and_by_no_more_than_it_must(text: Any) -> None:
    with mpmath.workdps(50):
        upper = mpmath.mpf(text)
        number = float(certified(mpmath.mpf(0), upper, upper))
        assert number >= upper
        assert math.nextafter(number, 0) < upper


def test_the_width_is_zero_where_the_ends_are_equal_even_if_infinite() -> None:
    assert certified(INF, INF, INF).width == 0
    assert certified(2, 2, 2).width == 0
    assert certified(1, 2, 4).width == 3
    assert certified(1, 2, INF).width == INF


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            certified(2.381596921, 2.3815969214, 2.381596922, adjacency="add-remove"),
            "epsilon = 2.38160 (proven in [2.3815969209, 2.3815969220]; contour, add-remove)",
        ),
        (certified(0, 0, 0), "epsilon = 0 (proven in [0, 0]; contour)"),
        (certified(INF, INF, INF), "epsilon = inf (proven in [inf, inf]; contour)"),
        (certified(1.25, 2, INF), "epsilon = inf (proven in [1.25, inf]; contour)"),
        (certified(0, 1, 2.5), "epsilon = 2.5 (proven in [0, 2.5]; contour)"),
        (
            certified(0, 0, 1e-300, quantity="delta"),
            "delta = 1e-300 (proven in [0, 1.00001e-300]; contour)",
        ),
        (
            certified(0.1, 0.1, 0.1),
            "epsilon = 0.1 (proven in [0.10000000000000000, 0.10000000000000001]; contour)",
        ),
        (
            certified(1e20, 1e20, 2e20),
            "epsilon = 2e+20 (proven in [1.00000e+20, 2.00000e+20]; contour)",
        ),
    ],
)
def test_an_interval_prints_on_one_line(answer: Any, text: Any) -> None:
    assert str(answer) == text


nonnegative = st.floats(min_value=0, allow_nan=False)


@given(st.tuples(nonnegative, nonnegative, nonnegative).map(sorted))
def test_the_printed_interval_contains_the_interval(ends: Any) -> None:
    answer = certified(*ends)
    headline, lower, upper = map(exact, printed(answer))
    assert lower <= answer.lower
    assert upper >= answer.upper
    is_narrow = answer.upper - answer.lower <= 1e-12 * answer.upper
    assert headline >= min(answer.lower if is_narrow else answer.upper, exact(repr(answer.upper)))


def test_an_interval_is_ready_for_json() -> None:
    answer = certified(1, 2, INF, adjacency="zero-out", assumptions=["It rains."], at=1e-5)
    assert json.loads(json.dumps(answer.as_dict(), allow_nan=False)) == {
        "kind": "certified",
        "quantity": "epsilon",
        "lower": 1.0,
        "estimate": 2.0,
        "upper": "inf",
        "at": {"delta": 1e-05},
        "accountant": "contour",
        "adjacency": "zero-out",
        "assumptions": ["It rains."],
    }


def test_json_keeps_the_digits_of_a_long_interval_and_rounds_them_outwards() -> None:
    with mpmath.workdps(40):
        third = mpmath.mpf(1) / 3
        fields = certified(third, third, third).as_dict()
        mantissa, exponent = third.man_exp
        truth = int(mantissa) * Fraction(2) ** int(exponent)
        assert Fraction(fields["lower"]) <= truth <= Fraction(fields["upper"])
        assert abs(Fraction(fields["estimate"]) - Fraction(1, 3)) < Fraction(1, 10**40)
        assert fields["upper"] != fields["lower"]
        assert certified(mpmath.mpf(0), mpmath.mpf(2), mpmath.inf).as_dict()["upper"] == "inf"


def test_an_approximation_has_no_float_and_says_that_it_is_no_guarantee() -> None:
    answer: Any = approximate(2.381596921, adjacency="add-remove")
    with pytest.raises(TypeError):
        float(answer)
    text = "epsilon ~ 2.38160 (approximation, no guarantee; gdp, add-remove)"
    assert str(answer) == text


@pytest.mark.parametrize("value", [math.nan, -1, None, "2", True, 2])
def test_an_approximation_outside_its_domain_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^value must be a number from 0 to 1; got "):
        approximate(value, quantity="delta")


def test_an_answer_is_equal_to_answers_alone_and_never_silently_unequal_to_a_number() -> None:
    answers: list[Any] = [certified(1, 2, 3), approximate(2.0)]
    for answer in answers:
        for number in (2, 2.0, True, np.float64(2), Fraction(2), Decimal(2), mpmath.mpf(2)):
            for compare in (operator.eq, operator.ne):
                for two in ((answer, number), (number, answer)):
                    with pytest.raises(TypeError, match="is no number: use its upper end"):
                        compare(*two)
        assert answer == copy.copy(answer)
        assert answer in [None, "2", copy.copy(answer)]
        assert answer not in (None, "2", ())
        assert {answer: 1}[copy.copy(answer)] == 1
    assert certified(1, 2, 3, at=1e-5) != certified(1, 2, 3, at=1e-6)
