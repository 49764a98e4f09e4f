"""Gaussian noise on several queries at once, and on second moments."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.adjacency import Adjacency
from hockeystick.numerics.multiprecision import mp

each_adjacency = pytest.mark.parametrize("adjacency", list(Adjacency))


def test_queries_together_cost_what_their_split_says() -> None:
    split = hs.calibration.joint_noise(1.5, inflation=1.01)
    together = hs.mechanisms.JointGaussian((split.gradient, split.query))
    truth = hs.epsilon(hs.Gaussian(1.5), 1e-6)
    found = hs.epsilon(together, 1e-6)
    assert found.upper <= truth.upper * (1 + 1e-15)
    assert found.lower >= truth.lower * (1 - 1e-12)


def test_a_sample_serves_all_the_queries() -> None:
    joint = hs.PoissonSubsampled(hs.mechanisms.JointGaussian((4.0, 4.0, 4.0, 4.0)), 0.05) ** 200
    one = hs.PoissonSubsampled(hs.Gaussian(2.0), 0.05) ** 200
    found, truth = hs.epsilon(joint, 1e-5), hs.epsilon(one, 1e-5)
    assert found.upper == pytest.approx(truth.upper, rel=1e-12)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    # Each with a sample of its own is another plan.
    apart = hs.PoissonSubsampled(hs.Gaussian(4.0), 0.05) ** 800
    assert hs.epsilon(joint, 1e-5).lower > 1.001 * hs.epsilon(apart, 1e-5).upper


def test_queries_at_the_ends() -> None:
    assert hs.epsilon(hs.mechanisms.JointGaussian((2.0, math.inf)), 1e-5).upper == pytest.approx(
        hs.epsilon(hs.Gaussian(2.0), 1e-5).upper, rel=1e-15
    )
    assert hs.epsilon(hs.mechanisms.JointGaussian((math.inf,)), 1e-5).upper == 0.0
    assert hs.epsilon(hs.mechanisms.JointGaussian((0.0, 3.0)), 1e-5).lower == math.inf


def moved(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[float, float]:
    """How far second moments move: over all entries, and on and above the diagonal."""
    change = np.outer(x, x) - np.outer(y, y)
    return float(np.sum(change**2)), float(np.sum(np.triu(change) ** 2))


@each_adjacency
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_no_rows_move_the_second_moments_further_and_some_move_them_as_far(
    adjacency: Adjacency, columns: int
) -> None:
    rng = np.random.default_rng(7)
    square = hs.mechanisms.PrivateCovariance(1.0, columns, adjacency).squared_sensitivity
    replaced = adjacency is Adjacency.REPLACE_ONE
    for _ in range(2000):
        x, y = (row / max(np.linalg.norm(row), 1.0) for row in rng.normal(size=(2, columns)))
        assert max(moved(x, y if replaced else 0 * y)) <= square * (1 + 1e-12)
    axes = np.eye(columns)
    other = axes[1] if replaced and columns > 1 else 0 * axes[0]
    assert moved(axes[0], other) == (square, square)


def test_the_cost_is_that_of_the_frobenius_norm() -> None:
    for adjacency, square in ((Adjacency.ZERO_OUT, 1), (Adjacency.REPLACE_ONE, 2)):
        found = hs.delta(hs.mechanisms.PrivateCovariance(3.0, 20, adjacency), 0.5)
        with mp.workdps(30):
            mu = mp.sqrt(square) / 3
            half = mp.mpf("0.5")
            truth = mp.ncdf(mu / 2 - half / mu) - mp.exp(half) * mp.ncdf(-mu / 2 - half / mu)
        assert found.lower <= truth <= found.upper
        assert found.relative_width < 1e-12
        assert found.adjacency is adjacency


def test_noise_in_units_of_the_radius_itself_costs_its_square_more() -> None:
    # Equation 1.9 of the thesis has R in the place of R^2: at R = 10 a tenth of the noise.
    meant, added = (
        hs.mechanisms.PrivateCovariance(5.0, 30),
        hs.mechanisms.PrivateCovariance(5.0 / 10, 30),
    )
    assert hs.epsilon(meant, 1e-6).upper < 1
    assert hs.epsilon(added, 1e-6).lower > 10


def test_second_moments_at_the_ends() -> None:
    assert hs.epsilon(hs.mechanisms.PrivateCovariance(0.0, 3), 1e-5).lower == math.inf
    assert hs.epsilon(hs.mechanisms.PrivateCovariance(math.inf, 3), 1e-5).upper == 0.0
