"""The Poisson-subsampled Gaussian under replace-one: its masses, and that no pair costs more."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.sampling.replaced_gaussian import ReplacedGaussianLoss

CASES = [(0.01, 1.0), (0.5, 0.5), (1e-6, 0.7), (0.9, 20.0), (0.2, 0.15)]
each = pytest.mark.parametrize(("rate", "noise"), CASES)


def output(loss: Any, rate: float, mu: Any) -> Any:
    """Return the output at which the loss is l, by a root of the ratio of densities."""
    low, high = mp.mpf(-200), mp.mpf(200)

    def excess(x: Any) -> Any:
        up, down = (
            mp.log((1 - rate) + rate * mp.exp(side * mu * x - mu * mu / 2)) for side in (1, -1)
        )
        return up - down - loss

    for _ in range(260):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return low


def tail(x: Any) -> Any:
    """Return ``P[N(0,1) > x]``."""
    return mp.erfc(x / mp.sqrt(2)) / 2


@each
@pytest.mark.parametrize("width", [1e-7, 1e-3, 0.3])
def test_cells_have_the_masses_of_both_mixtures(rate: float, noise: float, width: float) -> None:
    loss = ReplacedGaussianLoss(rate, noise)
    starts = [-3.0, -0.5, -1e-3, 0.0, -0.4 * width, 2e-4, 0.02, 1.0, 5.0]
    with mp.workdps(360):
        p, mu = mp.mpf(repr(rate)), 1 / mp.mpf(repr(noise))
        for start in starts:
            edges = np.array([start, start + width])
            found = loss.cells(edges)
            low, high = (output(mp.mpf(edge), p, mu) for edge in edges.tolist())

            def mass(shift: Any, low: Any = low, high: Any = high) -> Any:
                ends = (low - shift, high - shift)
                return tail(ends[0]) - tail(ends[1])

            above = (1 - p) * mass(0) + p * mass(mu)
            below = (1 - p) * mass(0) + p * mass(-mu)
            for got, exact in ((found.log_p, above), (found.log_q, below)):
                assert abs(got[0] - mp.log(exact)) <= found.error[0]
            assert found.error[0] <= 1e-12 + 1e-13 * float(mu + abs(low)) ** 2


@each
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.1, 1.0, 4.0])
def test_the_profile_is_the_difference_of_the_tails(
    rate: float, noise: float, epsilon: float
) -> None:
    loss = ReplacedGaussianLoss(rate, noise)
    with mp.workdps(50):
        p, mu = mp.mpf(repr(rate)), 1 / mp.mpf(repr(noise))
        x = output(mp.mpf(epsilon), p, mu)
        first = (1 - p) * tail(x) + p * tail(x - mu)
        second = (1 - p) * tail(x) + p * tail(x + mu)
        exact = first - mp.exp(mp.mpf(epsilon)) * second
        assert loss.delta(mp.mpf(epsilon)) == pytest.approx(float(exact), rel=1e-13, abs=1e-40)
        masses = loss.cells(np.array([epsilon, math.inf]))
        above = mp.exp(masses.log_p[0]) - mp.exp(mp.mpf(epsilon)) * mp.exp(masses.log_q[0])
        slack = mp.exp(masses.log_p[0]) * 4 * masses.error[0]
        assert abs(above - exact) <= slack


@each
def test_the_loss_is_the_same_backwards(rate: float, noise: float) -> None:
    edges = np.array([-math.inf, -2.0, -0.1, 0.0, 0.1, 2.0, math.inf])
    found = ReplacedGaussianLoss(rate, noise).cells(edges)
    assert found.log_p == pytest.approx(found.log_q[::-1], rel=1e-12, abs=1e-12)
    assert np.exp(found.log_p).sum() == pytest.approx(1.0, rel=1e-12)


def hockey_stick(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    """Return the divergence of two densities on a grid, in units of a cell."""
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.0), (0.5, 0.6), (0.02, 0.5)])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.5, 2.0])
def test_no_two_examples_cost_more_than_opposite_ones(
    rate: float, noise: float, epsilon: float
) -> None:
    axis = np.linspace(-8.0, 8.0, 401)
    x, y = np.meshgrid(axis, axis)
    cell = (axis[1] - axis[0]) ** 2 / (2.0 * math.pi)
    mu = 1.0 / noise

    def density(size: float, angle: float) -> np.ndarray:
        at = (mu * size * math.cos(angle), mu * size * math.sin(angle))
        moved = np.exp(-0.5 * ((x - at[0]) ** 2 + (y - at[1]) ** 2))
        mixed: np.ndarray = cell * ((1.0 - rate) * np.exp(-0.5 * (x**2 + y**2)) + rate * moved)
        return mixed

    bound = float(ReplacedGaussianLoss(rate, noise).delta(mp.mpf(epsilon)))
    found = {
        (size, other, turn): hockey_stick(
            density(size, 0.0), density(other, turn * math.pi), epsilon
        )
        for size, other, turn in itertools.product(
            (0.0, 0.5, 1.0), (0.0, 0.5, 1.0), (0.0, 0.5, 1.0)
        )
    }
    assert max(found.values()) <= found[1.0, 1.0, 1.0] * (1.0 + 1e-12)
    assert found[1.0, 1.0, 1.0] == pytest.approx(bound, rel=2e-3, abs=1e-10)
