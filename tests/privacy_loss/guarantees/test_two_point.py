"""The loss of randomized response: against its two outcomes."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import RandomizedResponsePairLoss


def moment(epsilon: float, c: float) -> Any:
    """Return K by its definition, at mpmath's precision."""
    e = mp.mpf(epsilon)
    plus = 1 / (1 + mp.exp(-e))
    return mp.log(plus * mp.exp(c * e) + (1 - plus) * mp.exp(-c * e))


@given(st.floats(-12, 4), st.floats(-8, 8))
def test_the_moments_hold_the_definition(log_epsilon: float, log_c: float) -> None:
    epsilon, c = 10.0**log_epsilon, 10.0**log_c
    with mp.workdps(80):
        truth = moment(epsilon, c)
        found = RandomizedResponsePairLoss(epsilon).cgf_bounds(c)
        assert abs(found.midpoint - truth) <= found.radius
        assert found.radius <= 1e-12 * truth * (1 + 0.25 * min((c + 1) * epsilon, 300))


@pytest.mark.parametrize("epsilon", [-30.0, -2.001, -1.999, 0.0, 0.5, 1.0, 1.999])
@pytest.mark.parametrize("failure", [0.0, 1e-9, 0.25])
def test_delta_is_the_sum_over_its_outcomes(epsilon: float, failure: float) -> None:
    with mp.workdps(40):
        truth, asked = mp.mpf(repr(failure)), mp.mpf(repr(epsilon))
        for value in (2, -2):
            mass = (1 - mp.mpf(repr(failure))) / (1 + mp.exp(-value))
            truth += mass * max(1 - mp.exp(asked - value), 0)
        found = RandomizedResponsePairLoss(2.0, failure).delta(asked)
        assert abs(found - truth) < mp.mpf(10) ** -38
        loss = RandomizedResponsePairLoss(2.0, failure)
        lower, upper = loss.delta(asked, -1), loss.delta(asked, 1)
        assert lower <= found <= upper
        assert (lower < upper) == (epsilon > -2.0 or failure > 0.0)


@pytest.mark.parametrize("epsilon", [2.0, 3.0, 1e300])
def test_beyond_its_epsilon_only_failures_are_left(epsilon: float) -> None:
    assert RandomizedResponsePairLoss(2.0).delta(mp.mpf(epsilon)) == 0
    assert float(RandomizedResponsePairLoss(2.0, 0.25).delta(mp.mpf(epsilon))) == 0.25


def test_the_largest_loss_is_epsilon_unless_it_fails() -> None:
    assert RandomizedResponsePairLoss(2.0).supremum == 2.0
    failing = RandomizedResponsePairLoss(2.0, 1e-9)
    assert failing.supremum == math.inf
    assert failing.cgf_bounds(1.0).midpoint == failing.cgf_estimate(1.0).value == math.inf


def test_a_loss_that_may_be_infinite_has_no_line() -> None:
    assert RandomizedResponsePairLoss(1.0, 1e-9).out_of_range
    assert RandomizedResponsePairLoss(1e-200).out_of_range
    assert not RandomizedResponsePairLoss(1.0).out_of_range
