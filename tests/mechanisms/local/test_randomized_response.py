"""The description of randomized response."""

import math
from typing import Any

import pytest

from hockeystick.errors import ParameterError
from hockeystick.mechanisms import RandomizedResponse


def test_two_categories_are_meant_unless_said_otherwise() -> None:
    assert RandomizedResponse(1) == RandomizedResponse(epsilon=1.0, categories=2)
    assert type(RandomizedResponse(1).epsilon) is float


@pytest.mark.parametrize("value", [-1, math.nan, True, "1", None])
def test_any_epsilon_outside_its_domain_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^epsilon must be a number >= 0 or inf"):
        RandomizedResponse(value)


@pytest.mark.parametrize("value", [1, 0, 2.5, math.inf, True, "2", None])
def test_fewer_than_two_categories_or_no_integer_are_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^categories must be an integer from 2 to"):
        RandomizedResponse(1, value)


def test_the_text_gives_epsilon_and_the_categories() -> None:
    mechanism = RandomizedResponse(0.5, 10)
    assert str(mechanism) == "randomized response (epsilon 0.5, 10 categories)"
    assert mechanism.adjacency is None
    assert "e^0.5 times" in mechanism.assumptions[1]
