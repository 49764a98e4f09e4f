"""Mixtures by a public coin against the joint distribution of coin and output."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.tradeoffs.functions.piecewise import IDENTITY, ApproxTradeOff, discrete_tradeoff
from hockeystick.tradeoffs.operations.mixture import mixture

RATES = np.array([0.0, 1e-6, 0.01, 0.2, 0.5, 0.9, 0.999, 1.0])


@pytest.mark.parametrize("seed", range(4))
def test_a_public_coin_is_part_of_the_output(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q, r, s = (rng.dirichlet(np.ones(4)) for _ in range(4))
    parts = [(0.25, discrete_tradeoff(p, q)), (0.75, discrete_tradeoff(r, s))]
    joint = discrete_tradeoff(np.r_[0.25 * p, 0.75 * r], np.r_[0.25 * q, 0.75 * s])
    f = mixture(parts)
    lower, upper = f.bounds(RATES)
    low, high = joint.bounds(RATES)
    assert (lower <= high).all()
    assert (low <= upper).all()
    epsilon = np.array([0.0, 0.5, 2.0])
    for ours, theirs in ((f.forward, joint.forward), (f.backward, joint.backward)):
        assert np.allclose(ours.at(epsilon).upper, theirs.at(epsilon).upper, rtol=1e-12)


def test_the_largest_loss_is_that_of_any_part() -> None:
    f = mixture([(0.5, ApproxTradeOff(0.5, 0.0)), (0.5, ApproxTradeOff(2.0, 0.0))])
    assert f.forward.supremum >= 2.0
    found, worst = f.delta(1.0), ApproxTradeOff(2.0, 0.0).delta(1.0)
    assert found.upper >= 0.5 * worst.lower > 0.0
    assert found.lower <= 0.5 * worst.upper


def test_equal_parts_are_one() -> None:
    f = hs.tradeoffs.GaussianTradeOff(1.0)
    assert mixture([(0.3, f), (0.7, hs.tradeoffs.GaussianTradeOff(1.0))]) is f
    assert mixture([(1.0, f), (0.0, IDENTITY)]) is f


def test_the_sum_of_the_weights_widens_the_ends() -> None:
    f = mixture([(0.1 + 1e-14, ApproxTradeOff(1.0, 0.1)), (0.9, ApproxTradeOff(1.0, 0.2))])
    values = f.forward.at(np.array([2.0]))
    assert values.lower[0] < 0.19 < values.upper[0]
    assert values.upper[0] - values.lower[0] >= 1e-15


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [(0.5, hs.tradeoffs.GaussianTradeOff(1.0))],
        [(0.5, hs.tradeoffs.GaussianTradeOff(1.0)), (0.6, hs.tradeoffs.GaussianTradeOff(2.0))],
        [(1.0, 3.0)],
        [(1.0,)],
        None,
    ],
)
def test_what_is_no_mixture_is_refused(parts: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="parts must be pairs"):
        mixture(parts)


@pytest.mark.parametrize("weight", [-0.5, float("nan"), "1"])
def test_bad_weights_are_refused(weight: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="weight must be a number from 0 to 1"):
        mixture([(weight, hs.tradeoffs.GaussianTradeOff(1.0))])
