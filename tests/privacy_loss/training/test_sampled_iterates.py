"""The last iterate on random batches: runs of all batches stay within the bound of every split."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.privacy_loss.training.sampled_iterates import SampledIterates
from tests.privacy_loss.training.test_last_iterate import Grid

EPSILONS = (0.0, 0.1, 0.3, 0.7, 1.5)


def last(noise: float, steps: int, **numbers: Any) -> hs.Mechanism:
    return hs.mechanisms.LastIterate(noise, steps, batches="fixed-size", **numbers)


def divergence(one: Any, other: Any, epsilon: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


def laws(
    steps: int, rate: float, pulls: tuple[float, float], bend: float, ends: Any = None
) -> list[Any]:
    """Return the last models of two data sets: others pull by -1/4, the record as stated."""
    grid = Grid(12.0)
    found = []
    for pull in pulls:
        mass = grid.start(0.0)
        for t in range(steps):
            centre = 0.5 * (-1) ** t
            moved = grid.axis - bend * np.clip(grid.axis - centre, -1.5, 1.5) - 0.25
            without = grid.after(mass, moved, ends)
            mass = (1 - rate) * without + rate * grid.after(mass, moved + 0.25 + pull, ends)
        found.append(mass)
    return found


@pytest.mark.parametrize("diameter", [0.5, 3.0])
def test_no_linear_losses_in_an_interval_cost_more_than_the_bound(diameter: float) -> None:
    one, other = laws(15, 0.5, (0.25, -0.25), 0.0, (-diameter / 2, diameter / 2))
    numbers: dict[str, Any] = {"examples": 2, "batch_size": 1, "step_size": 1.0, "smoothness": 1.0}
    plan = last(4.0, 15, diameter=diameter, gradient_bound=0.25, **numbers)
    free = last(4.0, 15, **numbers)
    for epsilon in EPSILONS[:3]:
        found = hs.delta(plan, epsilon)
        assert divergence(one, other, epsilon) <= found.upper + 1e-3
        assert found.lower == 0.0
        assert found.upper <= hs.delta(free, epsilon).upper * (1 + 1e-6)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("convexity", [0.0, 0.3, 1.0])
def test_the_exact_law_of_quadratic_losses_is_between_the_ends(
    adjacency: str, convexity: float
) -> None:
    # Six steps at rate 1/3, factor c, reset before them: 64 Gaussians against one.
    steps, noise, rate = 6, 2.5, 1 / 3
    u = 2.0 if adjacency == "replace-one" else 1.0
    plan = last(
        noise,
        steps,
        examples=3,
        batch_size=1,
        step_size=1.0,
        smoothness=1.0,
        convexity=convexity,
        adjacency=adjacency,
    )
    c = 1 - convexity
    size = noise * math.sqrt(sum(c ** (2 * k) for k in range(steps)))
    x = np.linspace(-12.0, 22.0, 40_001)
    mixed = np.zeros(x.size - 1)
    for hit in itertools.product((0, 1), repeat=steps):
        moved = u * sum(h * c**k for k, h in enumerate(hit)) / size
        mixed += math.prod(rate if h else 1 - rate for h in hit) * np.diff(ndtr(x - moved))
    alone = np.diff(ndtr(x))
    for epsilon in EPSILONS:
        found = hs.delta(plan, epsilon)
        truth = max(divergence(mixed, alone, epsilon), divergence(alone, mixed, epsilon))
        assert truth <= found.upper + 1e-9
        assert found.lower <= truth + 1e-6 or 0 < c < 1


def test_a_sample_of_all_records_is_a_full_batch() -> None:
    numbers: dict[str, Any] = {"examples": 9, "step_size": 0.1, "smoothness": 1.0}
    found = hs.epsilon(last(3.0, 7, **numbers), 1e-5)
    full = hs.epsilon(hs.mechanisms.LastIterate(3.0, 7, **numbers), 1e-5)
    assert (found.lower, found.upper) == (full.lower, full.upper)


def test_the_gaussian_of_a_split_covers_the_shifts_of_the_theorem() -> None:
    c, w = Fraction(9, 10), Fraction(1, 2)
    for across, apart in ((None, 2 * sum(c**k for k in range(6))), (Fraction(3), Fraction(3))):
        sampled = SampledIterates(c, Fraction(0), Fraction(1, 4), 10, Fraction(5), 2, across)
        # Four steps after the hidden six, the last three of them with shifts a_i = x c^(3-i).
        z = c * Fraction(apart)
        x = c**3 * z / sum((c ** (2 * k) for k in range(3)), Fraction(0))
        shifts = [x * c**2, x * c, x]
        for shift in shifts:
            z = c * z - shift
        assert z == 0
        square = sum((a**2 for a in shifts), Fraction(0)) / (25 * (1 - w**2))
        noise = sampled._gaussian_noise(4, 3, w)
        assert 0 <= square**-1 - noise**2 < Fraction(1, 10**30) * noise**2
