"""The description of randomized response."""

from hockeystick.mechanisms import RandomizedResponse


def test_two_categories_are_meant_unless_said_otherwise() -> None:
    assert RandomizedResponse(1) == RandomizedResponse(epsilon=1.0, categories=2)
    assert type(RandomizedResponse(1).epsilon) is float
