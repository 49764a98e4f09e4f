"""The largest loss of a composition: exact where each part's is a quotient of given numbers."""

from fractions import Fraction
from functools import reduce
from operator import matmul
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.numerics.rounding import float_down, float_up

# Every exact largest loss, of a float's own value or of the decimal that it prints as.
LARGEST: dict[str, Any] = {
    "PureDP": lambda value: value,
    "RandomizedResponse": lambda value: value,
    "Laplace": lambda value: 1 / value,
}
parts = st.lists(
    st.tuples(
        st.sampled_from(sorted(LARGEST)),
        st.floats(1e-3, 1e3),
        st.integers(1, 10**6),
    ),
    min_size=1,
    max_size=4,
)


@given(parts)
def test_at_delta_0_the_ends_are_the_exact_sum_rounded_once(drawn: Any) -> None:
    plan = reduce(matmul, (getattr(hs, name)(value) ** runs for name, value, runs in drawn))
    sums = [
        sum(runs * LARGEST[name](reading(value)) for name, value, runs in drawn)
        for reading in (Fraction, lambda value: Fraction(repr(value)))
    ]
    answer = hs.epsilon(plan, delta=0)
    assert answer.lower == float_down(min(sums))
    assert answer.upper == float_up(max(sums))


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
