"""Balls in bins with correlated noise: between integrals, adaptive attacks and other bounds."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import BallsInBins
from hockeystick.numerics.multiprecision import mp

each_direction = pytest.mark.parametrize("removing", [True, False], ids=["removing", "adding"])


def direction(removing: bool) -> str:
    """Return the word for a direction."""
    return "remove" if removing else "add"


def matrix(coefficients: Sequence[float], rounds: int) -> Any:
    """Return the lower triangular Toeplitz matrix."""
    padded = [*coefficients, *[0.0] * rounds]
    return np.array(
        [[padded[i - j] if i >= j else 0.0 for j in range(rounds)] for i in range(rounds)]
    )


def gram(coefficients: Sequence[float], rounds: int, bins: int) -> Any:
    """Return the inner products of the bins' means, by the matrix."""
    full = matrix(coefficients, rounds)
    means = np.array([full[:, r::bins].sum(axis=1) for r in range(bins)])
    return means @ means.T


def two_bins(products: Any, noise: float, epsilon: float, *, removing: bool) -> Any:
    """Return delta of two bins: an integral over one coordinate, the other one in closed form."""
    own, both, other = (
        mp.mpf(float(v)) / mp.mpf(noise) ** 2 for v in products[[0, 0, 1], [0, 1, 1]]
    )
    level = mp.exp(epsilon if removing else -epsilon)
    slope, left = both / mp.sqrt(own), mp.sqrt(other - both**2 / own)

    def inside(x: Any) -> Any:
        first = mp.exp(mp.sqrt(own) * x - own / 2)
        forward = mp.exp(slope * x - slope**2 / 2)
        strike = 2 * level - first
        if strike <= 0:
            return mp.npdf(x) * (forward - strike if removing else 0)
        d = mp.log(forward / strike) / left
        call = forward * mp.ncdf(d + left / 2) - strike * mp.ncdf(d - left / 2)
        return mp.npdf(x) * (call if removing else call - forward + strike)

    kink = (mp.log(2 * level) + own / 2) / mp.sqrt(own)
    points = sorted({mp.mpf(-16), mp.mpf(-4), mp.mpf(0), kink - 1, kink, kink + 1, mp.mpf(24)})
    total = mp.quad(inside, points) / 2
    return total if removing else total / level


@each_direction
@pytest.mark.parametrize("epsilon", [0.0, 0.7])
@pytest.mark.parametrize(
    ("coefficients", "rounds"), [((1.0,), 6), ((1.0, 0.5), 4), ((2.0, 1.5, 1.0), 5), ((1.0,), 5)]
)
def test_the_truth_of_two_bins_is_inside(
    coefficients: tuple[float, ...], rounds: int, epsilon: float, removing: bool
) -> None:
    plan = BallsInBins(2.5, coefficients, rounds, bins=2)
    found = hs.accountants.directed_delta(plan, epsilon, direction(removing))
    with mp.workdps(20):
        truth = two_bins(gram(coefficients, rounds, 2), 2.5, epsilon, removing=removing)
    assert found.lower <= float(truth) * (1 + 1e-9)
    assert float(truth) * (1 - 1e-9) <= found.upper
    if (coefficients, rounds) == ((1.0,), 6):
        assert found.upper <= 1.01 * found.lower


# The game of four rounds and two bins, an output a grid's point.
GRID = np.arange(-5.4, 9.0, 0.4)
Z, TWO = 1.5, (1.0, 0.7)


def cost_of(move: Callable[..., Any], base: Callable[..., Any], *, removing: bool) -> float:
    """Return a hockey-stick divergence at 0.5 by a sum over all outputs."""
    y = np.meshgrid(GRID, GRID, GRID, GRID, indexing="ij", sparse=True)
    with_it = 0.5 * (density(y, move, base, 0) + density(y, move, base, 1))
    without = density(y, move, base, None)
    one, other = (with_it, without) if removing else (without, with_it)
    return float(np.maximum(one - math.exp(0.5) * other, 0).sum()) * 0.4**4


def density(y: Any, move: Any, base: Any, bin_: int | None) -> Any:
    """Return the density of all outputs where the example is in a bin."""
    full = matrix(TWO, 4)
    inputs = [base(j, y) + (move(j, y) if j % 2 == bin_ else 0.0) for j in range(4)]
    total: Any = 1.0
    for i in range(4):
        mean = sum(full[i, j] * inputs[j] for j in range(i + 1))
        total = total * np.exp(-0.5 * ((y[i] - mean) / Z) ** 2) / (Z * math.sqrt(2 * math.pi))
    return total


def always(j: int, y: Any) -> Any:
    """Return one unit in every round."""
    return 1.0


def back(j: int, y: Any) -> Any:
    """Return a unit to the side where the outputs before were."""
    return np.where(sum(y[:j]) > 0.0, 1.0, -1.0) if j else 1.0


def onto(j: int, y: Any) -> Any:
    """Return more the more of the example the outputs before show."""
    return np.clip(sum(y[:j]), -1.0, 1.0) if j else 1.0


def odd(j: int, y: Any) -> Any:
    """Return what tells the bins apart by the sign."""
    return -1.0 if j % 2 else 1.0


def nothing(j: int, y: Any) -> Any:
    """Return nothing."""
    return 0.0


def drift(j: int, y: Any) -> Any:
    """Return what others add where they look at what was released."""
    return 0.3 * np.tanh(y[j - 1]) if j else 0.0


@each_direction
@pytest.mark.parametrize("base", [nothing, drift])
@pytest.mark.parametrize("move", [always, back, onto, odd])
def test_no_adaptive_example_costs_more_than_the_pair(move: Any, base: Any, removing: bool) -> None:
    with mp.workdps(15):
        truth = float(two_bins(gram(TWO, 4, 2), Z, 0.5, removing=removing))
    found = cost_of(move, base, removing=removing)
    assert found <= truth * 1.004
    if move is always:
        assert found >= truth * 0.996
