"""The largest divergence of a run of comparisons: against value iteration and random runs."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.selection.threshold_run import RunProfile, run_profile

Array = NDArray[np.float64]
# The unit, and s+ and s- in units.
STEPS = [(0.05, 4, 4), (0.05, 8, 0), (0.05, 6, 2), (0.3, 3, 1), (2.0, 5, 0), (1e-7, 7, 1)]
each_step = pytest.mark.parametrize("steps", STEPS, ids=str)


def found_for(steps: tuple[float, int, int]) -> RunProfile:
    """Return the bounds."""
    found = run_profile(*steps)
    assert found is not None
    return found


def iterated(steps: tuple[float, int, int], rounds: int) -> tuple[Array, Array]:
    """Return V_n by its definition at both corners, at the logarithms of x."""
    unit, plus, minus = steps
    far = 60 * max(plus, minus)
    at = np.arange(-far, far + 1) * unit
    x = np.exp(at)
    value = np.maximum(1 - x, 0.0)
    for _ in range(rounds):
        best = value.copy()
        for step in (plus, -minus):
            a, b = 1 / (1 + math.exp(step * unit)), 1 / (1 + math.exp(-step * unit))
            later = np.interp(at + step * unit, at, value, left=np.nan, right=0.0)
            later = np.where(np.isnan(later), 1 - np.exp(at + step * unit), later)
            best = np.maximum(best, np.maximum((1 - a) - x * (1 - b), 0.0) + a * later)
        value = best
    return np.asarray(at), np.asarray(value)


@each_step
def test_the_bound_is_that_of_many_comparisons(steps: tuple[float, int, int]) -> None:
    at, value = iterated(steps, 55)
    middle = slice(at.size // 2 - 12, at.size // 2 + 13)
    truth = value[middle] - np.maximum(1 - np.exp(at[middle]), 0.0)
    bound = found_for(steps).at(at[middle])
    assert (truth <= bound + 1e-14).all()
    assert (bound <= truth * (1 + 1e-8) + 1e-10 * truth.max()).all()


def test_without_s_minus_it_is_a_geometric_number_of_randomized_responses() -> None:
    step, profile = 0.4, found_for((0.05, 8, 0))
    with mp.workdps(30):
        w = 1 / (1 + mp.exp(-mp.mpf(step)))
        for at in (-1.2, -0.4, 0.0, 0.2, 0.35):
            x = mp.exp(at)
            terms = (
                w * (1 - w) ** (i - 1) * max(1 - x * mp.exp((i - 2) * mp.mpf(step)), 0)
                for i in range(1, 200)
            )
            truth = float(mp.fsum(terms) - max(1 - x, mp.zero))
            assert truth <= float(profile.at(np.array([at]))[0]) <= truth * (1 + 1e-9)
    assert profile.at(np.array([0.4001, 3.0])).max() == 0.0


def runs(rng: np.random.Generator, plus: float, minus: float, length: int) -> tuple[Array, Array]:
    """Return the probabilities of the outcomes of a random run with pairs in the quadrilateral."""
    corners = np.array(
        [
            (0.0, 0.0),
            (1.0, 1.0),
            (1 / (1 + math.exp(plus)), 1 / (1 + math.exp(-plus))),
            (1 / (1 + math.exp(-minus)), 1 / (1 + math.exp(minus))),
        ]
    )
    pairs = rng.dirichlet(np.full(4, 0.3), length) @ corners
    left = np.cumprod(np.vstack((np.ones(2), pairs)), axis=0)
    first = left[:-1] * (1 - pairs)
    return np.append(first[:, 0], left[-1, 0]), np.append(first[:, 1], left[-1, 1])


@each_step
def test_no_run_exceeds_the_bound(steps: tuple[float, int, int]) -> None:
    unit, plus, minus = steps
    profile, rng = found_for(steps), np.random.default_rng(1)
    for length in (1, 2, 3, 8, 30):
        for _ in range(10):
            p, q = runs(rng, plus * unit, minus * unit, length)
            for at in rng.uniform(-4 * plus * unit, 4 * plus * unit, 5):
                x = math.exp(at)
                z = float(np.maximum(p - x * q, 0.0).sum()) - max(1 - x, 0.0)
                assert z <= float(profile.at(np.array([at]))[0]) + 4e-16 * max(x, 1.0)


def test_a_large_s_minus_has_no_bound() -> None:
    assert run_profile(0.5, 10, 4) is None


def test_comparisons_with_laplace_noise_lie_in_the_quadrilateral() -> None:
    def below(x: float) -> float:
        return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2

    def inside(a: float, b: float, s: float, t: float) -> bool:
        pairs = ((b, a, s), (1 - a, 1 - b, s), (a, b, t), (1 - b, 1 - a, t))
        return all(u <= v * math.exp(e) + 1e-15 for u, v, e in pairs)

    for x in np.linspace(-3.0, 3.0, 61):
        for move in np.linspace(-0.3, 0.9, 25):
            plus, minus = max(move, 0.0), max(-move, 0.0)
            assert inside(below(x), below(x + move), plus, minus)
