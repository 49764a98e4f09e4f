"""The largest loss of a composition: exact where each part's is a quotient of given numbers."""

from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.numerics.rounding import float_down, float_up


@pytest.mark.parametrize(
    ("plan", "shown"),
    [
        (hs.Laplace(2) ** 3, "1.5"),
        (hs.PureDP(0.5) ** 3 @ hs.Laplace(4), "1.75"),
        (hs.PureDP(0.1), "0.1"),
        (hs.DiscreteLaplace(scale=4, sensitivity=2) ** 3, "1.5"),
    ],
    ids=str,
)
def test_where_the_sum_has_few_digits_these_are_shown(plan: Any, shown: str) -> None:
    assert str(hs.epsilon(plan, delta=0)).startswith(f"epsilon = {shown} at delta = 0 (proven in [")


def test_a_part_known_up_to_rounding_only_is_rounded_up() -> None:
    sampled = hs.PoissonSubsampled(hs.Laplace(2), rate=0.1)
    alone, both = (hs.epsilon(one, delta=0) for one in (sampled, sampled @ hs.PureDP(0.5)))
    assert both.lower <= alone.upper + 0.5 <= both.upper * (1 + 1e-14)
    assert both.lower > 0.5 + alone.lower * (1 - 1e-12)


def test_a_number_beyond_the_floats_is_rounded_to_their_ends() -> None:
    beyond = Fraction(2) ** 1100
    assert float_up(beyond) == float("inf")
    assert float_down(beyond) == float_down(Fraction(1.7976931348623157e308))
