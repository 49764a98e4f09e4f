"""Numbers of the literature on shuffled epochs, and of its approximations, which are no bounds."""

import math
from typing import Any, cast

import pytest

import hockeystick as hs
from hockeystick.conversions.published.shuffling import limit_delta, limit_epsilon, shuffled_group
from hockeystick.mechanisms import Clipping
from hockeystick.numerics.multiprecision import mp


@pytest.mark.parametrize("side", [-1, 0, 1])
def test_the_approximation_is_the_profile_of_one_gaussian(side: int) -> None:
    with mp.workdps(30):
        mu = mp.sqrt((1 + side / mp.sqrt(40)) * 20) / 4
        for epsilon in (0.0, 1.0, 6.0):
            truth = mp.ncdf(mu / 2 - epsilon / mu)
            truth -= mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
            assert limit_delta(4.0, 20, epsilon, side).value == pytest.approx(float(truth), 1e-12)
    epsilon = limit_epsilon(4.0, 20, 1e-6, side).value
    assert limit_delta(4.0, 20, epsilon, side).value == pytest.approx(1e-6, rel=1e-12)
    assert limit_epsilon(4.0, 0.5, 1e-6, -1).value == 0.0 == limit_delta(4.0, 0.5, 1.0, -1).value


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.0, 10, 1e-5), "noise_multiplier"),
        ((1.0, 0.4, 1e-5), "epochs"),
        ((1.0, 10, 0.0), "delta"),
        ((1.0, 10, 1e-5, 2), "side"),
        ((1.0, 10, 1e-5, 0.5), "side"),
    ],
)
def test_the_approximation_names_what_is_wrong(arguments: tuple[float, ...], name: str) -> None:
    with pytest.raises(hs.errors.ParameterError, match=name):
        limit_epsilon(*cast(Any, arguments))


@pytest.mark.parametrize(
    ("clipping", "mu"),
    [("batch", math.sqrt(5 * 8) / 3), (Clipping.INDIVIDUAL, 5 * math.sqrt(8) / 3)],
)
def test_groups_cost_their_root_under_batch_clipping_and_their_size_under_individual(
    clipping: str, mu: float
) -> None:
    found = shuffled_group(hs.Gaussian(3.0), epochs=8, size=5, clipping=clipping)
    assert isinstance(found, hs.GDP)
    assert found.mu == pytest.approx(mu, rel=1e-15)


def test_the_root_is_no_bound_under_individual_clipping() -> None:
    # All of a group of 4 in one of 2 batches, as one in eight shuffles has it: mu = 4, and not 2.
    one_batch = hs.delta(hs.Gaussian(1 / 4), 12.0).lower / 8
    assert one_batch > hs.delta(shuffled_group(hs.Gaussian(1.0), 1, 4, "batch"), 12.0).upper
    assert one_batch < hs.delta(shuffled_group(hs.Gaussian(1.0), 1, 4), 12.0).lower
