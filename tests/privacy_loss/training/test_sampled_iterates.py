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


# Noise 1 and gradients of norm 1/4: a noise multiplier of 4.
@pytest.mark.parametrize("rate", [Fraction(1, 4), Fraction(3, 4)])
@pytest.mark.parametrize("steps", [1, 2, 5, 12])
@pytest.mark.parametrize("pulls", [(0.25, -0.25), (0.25, 0.0), (-0.25, 0.25)])
def test_no_bent_losses_cost_more_than_any_split(
    rate: Fraction, steps: int, pulls: tuple[float, float]
) -> None:
    adjacency = "zero-out" if 0.0 in pulls else "replace-one"
    one, other = laws(steps, float(rate), pulls, 0.5)
    # A loss of slope 1/2 in the middle and 0 outside: a contraction by 1 at most.
    sampled = SampledIterates(
        Fraction(1), Fraction(1, 2), rate, steps, Fraction(4), 1 if 0.0 in pulls else 2, None
    )
    plans = [
        last(
            4.0,
            steps,
            examples=4,
            batch_size=int(4 * rate),
            step_size=1.0,
            smoothness=0.5,
            adjacency=adjacency,
        )
    ]
    for after, shifted in itertools.combinations_with_replacement(range(1, steps), 2):
        n, m = max(after, shifted), min(after, shifted)
        if (n, m) in {(1, 1), (3, 2), (4, 4), (steps - 1, steps - 1)}:
            noise = sampled._gaussian_noise(n, m, Fraction(3, 4))
            sample = (int(4 * rate), 4)
            plain = hs.FixedSizeSubsampled(hs.Gaussian(2.0), *sample)
            less = hs.FixedSizeSubsampled(hs.Gaussian(1.5), *sample)
            plans.append(plain ** (n - m) @ less**m @ hs.Gaussian(float(noise)))
    for plan, epsilon in itertools.product(plans[:2], EPSILONS[::2]):
        upper = hs.delta(plan, epsilon).upper
        assert divergence(one, other, epsilon) <= upper + 1e-3
        assert divergence(other, one, epsilon) <= upper + 1e-3


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


@pytest.mark.parametrize("convexity", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("steps", [1, 50, 3000])
def test_all_models_cost_no_less(convexity: float, steps: int) -> None:
    numbers: dict[str, Any] = {"examples": 60_000, "batch_size": 1500, "step_size": 0.05}
    plan = last(3.0, steps, smoothness=20.0, convexity=convexity, **numbers)
    released = hs.FixedSizeSubsampled(hs.Gaussian(1.5), 1500, 60_000) ** steps
    found, every = hs.epsilon(plan, 1e-5), hs.epsilon(released, 1e-5)
    assert 0.0 < found.lower <= found.upper <= every.upper * (1 + 1e-5)
    if convexity and steps > 1000:
        assert found.upper < 0.4 * every.upper


def test_a_sample_of_all_records_is_a_full_batch() -> None:
    numbers: dict[str, Any] = {"examples": 9, "step_size": 0.1, "smoothness": 1.0}
    found = hs.epsilon(last(3.0, 7, **numbers), 1e-5)
    full = hs.epsilon(hs.mechanisms.LastIterate(3.0, 7, **numbers), 1e-5)
    assert (found.lower, found.upper) == (full.lower, full.upper)


def test_records_in_almost_all_batches_cost_what_they_cost_in_full_ones() -> None:
    numbers: dict[str, Any] = {"examples": 100, "step_size": 0.1, "smoothness": 10.0}
    found = hs.epsilon(last(30.0, 500, batch_size=99, convexity=2.0, **numbers), 1e-5)
    full = hs.epsilon(hs.mechanisms.LastIterate(30.0, 500, convexity=2.0, **numbers), 1e-5)
    assert found.upper == pytest.approx(full.upper, rel=1e-5)


def test_no_noise_is_refused_and_no_step_releases_nothing() -> None:
    numbers: dict[str, Any] = {"examples": 9, "batch_size": 3, "step_size": 0.1, "smoothness": 1.0}
    with pytest.raises(hs.errors.UnsupportedError, match="random batches without noise"):
        hs.epsilon(last(0.0, 3, **numbers), 1e-5)
    assert hs.epsilon(last(1.0, 0, **numbers), 1e-5).upper == 0.0
    assert hs.epsilon(last(math.inf, 5, **numbers), 1e-5).upper == 0.0


def test_it_composes_with_other_releases() -> None:
    numbers: dict[str, Any] = {"examples": 9, "batch_size": 3, "step_size": 0.1, "smoothness": 1.0}
    run = last(9.0, 30, convexity=1.0, **numbers)
    twice = hs.epsilon(run**2 @ hs.Gaussian(9.0), 1e-5)
    assert hs.epsilon(run, 1e-5).upper < twice.upper
    with pytest.raises(hs.errors.IncompatibleError):
        hs.epsilon(hs.PoissonSubsampled(run, 0.5, "replace-one"), 1e-5)


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
