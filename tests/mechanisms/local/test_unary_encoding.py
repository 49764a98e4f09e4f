"""The descriptions of unary encoding and of RAPPOR."""

import math
from typing import Any

import pytest

from hockeystick.errors import ParameterError
from hockeystick.mechanisms import RAPPOR, Encoding, UnaryEncoding


def test_the_encoding_is_symmetric_unless_said_otherwise() -> None:
    assert UnaryEncoding(1) == UnaryEncoding(1.0, "symmetric")
    assert UnaryEncoding(1, "optimized").kind is Encoding.OPTIMIZED


@pytest.mark.parametrize("value", ["optimised", "", 1, None, True])
def test_any_other_kind_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^kind must be one of 'symmetric', 'optimized'"):
        UnaryEncoding(1, value)


@pytest.mark.parametrize("value", [-1, math.nan, True, "1", None])
def test_any_epsilon_outside_its_domain_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^epsilon must be a number >= 0 or inf"):
        UnaryEncoding(value)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, True, "1", None])
def test_any_flip_that_is_no_probability_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^flip must be a number from 0 to 1"):
        RAPPOR(value, 2)


@pytest.mark.parametrize("value", [0, -1, 1.5, math.inf, True, "1", None])
def test_any_number_of_hashes_but_a_positive_integer_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^hashes must be an integer from 1 to"):
        RAPPOR(0.5, value)


def test_the_texts_give_the_parameters() -> None:
    assert str(UnaryEncoding(2)) == "symmetric unary encoding (epsilon 2)"
    assert str(RAPPOR(0.25, 4)) == "RAPPOR (flip 0.25, 4 hashes)"
    for mechanism in (UnaryEncoding(2), RAPPOR(0.25, 4)):
        assert mechanism.adjacency is None
        assert len(mechanism.assumptions) == 1
