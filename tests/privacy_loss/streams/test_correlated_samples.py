"""Correlated noise on samples: between integrals, adaptive attacks and other bounds."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import BallsInBins, CyclicPoisson

# Noise and encoders of the games of four rounds: of two bins, and of two groups.
BINS, GROUPS = (1.5, (1.0, 0.7)), (1.25, (1.0, 0.5))
RATE = 0.3
each_direction = pytest.mark.parametrize("removing", [True, False], ids=["removing", "adding"])


def matrix(coefficients: Sequence[float], rounds: int) -> Any:
    padded = [*coefficients, *[0.0] * rounds]
    return np.array(
        [[padded[i - j] if i >= j else 0.0 for j in range(rounds)] for i in range(rounds)]
    )


# Delta at 0.7, removing and adding, by an integral over one coordinate.
@pytest.mark.parametrize(
    ("coefficients", "rounds", "costs"),
    [
        ((1.0,), 6, (0.029890605554313, 0.027035549631767)),
        ((2.0, 1.5, 1.0), 5, (0.48375725129487, 0.4791351207921)),
    ],
)
@pytest.mark.parametrize("way", [0, 1], ids=["removing", "adding"])
def test_the_truth_of_two_bins_is_inside(
    coefficients: tuple[float, ...], rounds: int, costs: tuple[float, float], way: int
) -> None:
    plan = BallsInBins(2.5, coefficients, rounds, bins=2)
    found = hs.accountants.directed_delta(plan, 0.7, ("remove", "add")[way])
    assert found.lower <= costs[way] * (1 + 1e-9)
    assert costs[way] * (1 - 1e-9) <= found.upper
    if (coefficients, rounds) == ((1.0,), 6):
        assert found.upper <= 1.01 * found.lower


# Delta at 0.5, by mpmath's integral over the outputs of one of two independent blocks.
@pytest.mark.parametrize(("rounds", "truth"), [(4, 0.0448765605084988), (3, 0.038313328924163607)])
def test_two_blocks_cost_what_an_integral_over_their_outputs_says(
    rounds: int, truth: float
) -> None:
    plan = CyclicPoisson(GROUPS[0], GROUPS[1], rounds=rounds, cycle=2, rate=RATE)
    found = hs.delta(plan, 0.5)
    assert found.lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-12) <= found.upper
    assert found.relative_width < 1e-8


def test_one_diagonal_is_dp_sgd() -> None:
    plan = CyclicPoisson(1.1, [1], rounds=999, cycle=10, rate=0.02)
    found = hs.epsilon(plan, 1e-6)
    same = hs.epsilon(hs.DPSGD(noise_multiplier=1.1, rate=0.02, steps=100), 1e-6)
    assert found.estimate == pytest.approx(same.estimate, rel=1e-10)
    assert found.lower <= same.upper
    assert same.lower <= found.upper


GRID = np.arange(-5.4, 9.0, 0.36)


Y: Any = np.meshgrid(GRID, GRID, GRID, GRID, indexing="ij", sparse=True)


def density(
    game: tuple[float, tuple[float, ...]], move: Callable[..., Any], base: Any, taken: Sequence[int]
) -> Any:
    """Return the density of all outputs where the example is in these rounds.

    ``move(j, y)`` is what the example adds to its round j and ``base(j, y)`` what all others add,
    by the outputs of the rows before.
    """
    noise, coefficients = game
    full = matrix(coefficients, 4)
    inputs = [base(j, Y) + (move(j, Y) if j in taken else 0.0) for j in range(4)]
    total: Any = 1.0
    for i in range(4):
        mean = sum(full[i, j] * inputs[j] for j in range(i + 1))
        total = total * np.exp(-0.5 * ((Y[i] - mean) / noise) ** 2)
    return total / (noise * math.sqrt(2 * math.pi)) ** 4


def divergence(one: Any, other: Any, epsilon: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum()) * 0.36**4


def always(j: int, y: Any) -> Any:
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
    return 0.0


def drift(j: int, y: Any) -> Any:
    """Return what others add where they look at what was released."""
    return 0.3 * np.tanh(y[j - 1]) if j else 0.0


@each_direction
@pytest.mark.parametrize("base", [nothing, drift])
@pytest.mark.parametrize("move", [always, back, onto, odd])
def test_no_adaptive_example_costs_more_than_the_pair(move: Any, base: Any, removing: bool) -> None:
    # Delta of two bins by an integral, as above.
    truth = 0.25465940628575 if removing else 0.25409335728723
    with_it = sum(0.5 * density(BINS, move, base, rounds) for rounds in ((0, 2), (1, 3)))
    pair = with_it, density(BINS, move, base, ())
    found = divergence(*(pair if removing else pair[::-1]), 0.5)
    assert found <= truth * 1.004
    if move is always:
        assert found >= truth * 0.996
