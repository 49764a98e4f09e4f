"""Cyclic Poisson samples of banded encoders: against integrals, adaptive attacks and a peer."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import CyclicPoisson
from hockeystick.numerics.multiprecision import mp

Z, RATE, TWO = 1.25, 0.3, (1.0, 0.5)


def sampled_delta(mu: Any, rate: Any, epsilon: Any) -> Any:
    """Return E_P[(1 - e^eps Q/P)_+] of ``(1-q) N(0,1) + q N(mu,1)`` against N(0,1), any epsilon."""
    level = mp.exp(epsilon) - 1 + rate
    if level <= 0:
        return 1 - mp.exp(epsilon)
    edge = mp.log(level / rate) / mu + mu / 2
    return (1 - rate - mp.exp(epsilon)) * mp.ncdf(-edge) + rate * mp.ncdf(mu - edge)


def two_blocks(mus: tuple[Any, Any], rate: Any, epsilon: Any) -> Any:
    """Return the same of two independent blocks, one integrated over, the other in closed form."""
    first, second = mus

    def inside(x: Any) -> Any:
        ratio = 1 - rate + rate * mp.exp(first * x - first * first / 2)
        return mp.npdf(x) * ratio * sampled_delta(second, rate, epsilon - mp.log(ratio))

    return mp.quad(inside, mp.linspace(-14, 18, 65))


def norm(coefficients: tuple[float, ...]) -> Any:
    """Return the norm of a column."""
    return mp.sqrt(mp.fsum(mp.mpf(value) ** 2 for value in coefficients))


@pytest.mark.parametrize(("rounds", "last"), [(4, TWO), (3, TWO[:1])])
def test_two_blocks_cost_what_an_integral_over_their_outputs_says(
    rounds: int, last: tuple[float, ...]
) -> None:
    plan = CyclicPoisson(Z, TWO, rounds=rounds, cycle=2, rate=RATE)
    found = hs.delta(plan, 0.5)
    assert isinstance(found, hs.Certified)
    with mp.workdps(25):
        truth = two_blocks((norm(TWO) / Z, norm(last) / Z), mp.mpf("0.3"), mp.mpf("0.5"))
        assert found.lower <= truth * (1 + mp.mpf("1e-12"))
        assert truth * (1 - mp.mpf("1e-12")) <= found.upper
    assert found.relative_width < 1e-8


# The game of four rounds, an output a grid's point: row i is base_i + sum_j C_ij x_j + noise.
GRID = np.arange(-5.4, 8.0, 0.36)
MATRIX = np.array([[1, 0, 0, 0], [0.5, 1, 0, 0], [0, 0.5, 1, 0], [0, 0, 0.5, 1]])


def cost_of(group: int, move: Callable[..., Any], base: Callable[..., Any]) -> tuple[float, float]:
    """Return both hockey-stick divergences at 0.5, by a sum over all outputs and all coins.

    ``move(j, y)`` is what the example adds to its round j and ``base(j, y)`` what all others add,
    by the outputs of the rows before.
    """
    y = np.meshgrid(GRID, GRID, GRID, GRID, indexing="ij", sparse=True)
    places = [j for j in range(4) if j % 2 == group]
    density_p: Any = 0.0
    for coins in range(4):
        taken = [j for k, j in enumerate(places) if coins >> k & 1]
        weight = RATE ** len(taken) * (1 - RATE) ** (2 - len(taken))
        density_p = density_p + weight * density(y, move, base, taken)
    density_q = density(y, move, base, [])
    cell, factor = 0.36**4, math.exp(0.5)
    removing = np.maximum(density_p - factor * density_q, 0).sum() * cell
    adding = np.maximum(density_q - factor * density_p, 0).sum() * cell
    return float(removing), float(adding)


def density(y: Any, move: Any, base: Any, taken: list[int]) -> Any:
    """Return the density of all outputs where the example is in these rounds."""
    inputs = [base(j, y) + (move(j, y) if j in taken else 0.0) for j in range(4)]
    total: Any = 1.0
    for i in range(4):
        mean = sum(MATRIX[i, j] * inputs[j] for j in range(i + 1))
        total = total * np.exp(-0.5 * ((y[i] - mean) / Z) ** 2) / (Z * math.sqrt(2 * math.pi))
    return total


def always(j: int, y: Any) -> Any:
    """Return one unit in every round."""
    return 1.0


def nothing(j: int, y: Any) -> Any:
    """Return nothing."""
    return 0.0


def back(j: int, y: Any) -> Any:
    """Return a unit to the side where the outputs before were."""
    return np.where(sum(y[:j]) > 0.0, 1.0, -1.0) if j else 1.0


def onto(j: int, y: Any) -> Any:
    """Return more the more of the example the outputs before show."""
    return np.clip(sum(y[:j]), -1.0, 1.0) if j else 1.0


def drift(j: int, y: Any) -> Any:
    """Return what others add where they look at what was released."""
    return 0.3 * np.tanh(y[j - 1]) if j else 0.0


@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize("base", [nothing, drift])
@pytest.mark.parametrize("move", [always, back, onto])
def test_no_adaptive_example_of_any_group_costs_more(move: Any, base: Any, group: int) -> None:
    upper = float(hs.delta(CyclicPoisson(Z, TWO, rounds=4, cycle=2, rate=RATE), 0.5).upper)
    found = max(cost_of(group, move, base))
    assert found <= upper * 1.002
    if (move, group) == (always, 0):
        assert found >= upper * 0.998


def test_an_example_whose_noise_is_not_over_costs_more_than_its_blocks() -> None:
    """With more diagonals than groups: the oracle sees what the refusal is for."""
    blocks = hs.PoissonSubsampled(hs.Gaussian(Z / math.sqrt(1.25)), RATE) ** 4
    y = np.meshgrid(GRID, GRID, GRID, GRID, indexing="ij", sparse=True)
    density_p: Any = 0.0
    for coins in range(16):
        taken = [j for j in range(4) if coins >> j & 1]
        weight = RATE ** len(taken) * (1 - RATE) ** (4 - len(taken))
        density_p = density_p + weight * density(y, always, nothing, taken)
    rest = np.maximum(density_p - math.exp(3.0) * density(y, always, nothing, []), 0)
    assert rest.sum() * 0.36**4 > 1.5 * float(hs.delta(blocks, 3.0).upper)


def test_one_diagonal_is_dp_sgd() -> None:
    plan = CyclicPoisson(1.1, [1], rounds=999, cycle=10, rate=0.02)
    found = hs.epsilon(plan, 1e-6)
    same = hs.epsilon(hs.DPSGD(noise_multiplier=1.1, rate=0.02, steps=100), 1e-6)
    assert isinstance(found, hs.Certified)
    assert isinstance(same, hs.Certified)
    assert found.estimate == pytest.approx(same.estimate, rel=1e-10)
    assert found.lower <= same.upper
    assert same.lower <= found.upper


@pytest.mark.parametrize("rounds", [11, 12, 13])
def test_whole_groups_are_a_matrix_factorization(rounds: int) -> None:
    plan = CyclicPoisson(4.0, (1, 0.5, 0.375), rounds=rounds, cycle=4, rate=1)
    encoder = hs.mechanisms.Encoder.toeplitz(
        (1, 0.5, 0.375), rounds, participations=rounds, separation=4
    )
    same = hs.delta(hs.mechanisms.MatrixFactorization(4.0, encoder), 1.0)
    assert float(hs.delta(plan, 1.0)) == pytest.approx(float(same), rel=1e-12)


@pytest.mark.parametrize(
    ("noise", "coefficients", "rate", "epsilon"),
    [
        (math.inf, TWO, 0.1, 0.0),
        (2.0, (0.0, 0.0), 0.1, 0.0),
        (2.0, TWO, 0.0, 0.0),
        (0.0, TWO, 0.1, math.inf),
    ],
)
def test_nothing_or_everything_is_released(
    noise: float, coefficients: tuple[float, ...], rate: float, epsilon: float
) -> None:
    plan = CyclicPoisson(noise, coefficients, rounds=20, cycle=4, rate=rate)
    assert float(hs.epsilon(plan, 1e-5)) == epsilon
