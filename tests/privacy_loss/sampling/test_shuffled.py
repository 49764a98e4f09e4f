"""Shuffled epochs: against mpmath, and against integrals over all batches where they are few."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import LargestBatchLoss, dominating_pair
from hockeystick.privacy_loss.sampling.shuffled import Shifts, _curve, _edges, _masses

REMOVED, ADDED, LESS, REPLACED = Shifts(2, 1), Shifts(1, 2), Shifts(1, 0), Shifts(2, 0)
BACK = Shifts(0, 2)
# (noise multiplier, steps, shifts)
CASES = [
    (0.5, 1000, REMOVED),
    (1.0, 100, REMOVED),
    (1.0, 100, REPLACED),
    (2.0, 10, LESS),
    (3.0, 5, ADDED),
    (0.1, 20, REMOVED),
    (50.0, 4, REPLACED),
    (1.0, 30, BACK),
]
each_case = pytest.mark.parametrize(("noise", "steps", "shifts"), CASES)


def log_f(z: Any, noise: float, steps: int, shift: int) -> Any:
    """Return ``ln F`` of the largest sum by mpmath."""
    mu = shift / mp.mpf(repr(noise))
    return log_phi(mp.mpf(z) - mu) + (steps - 1) * log_phi(mp.mpf(z))


def log_phi(at: Any) -> Any:
    """Return ``ln Phi`` by mpmath, on the side where it has its digits."""
    return mp.log(mp.ncdf(at)) if at < 0 else mp.log1p(-mp.ncdf(-at))


@each_case
def test_masses_of_the_largest_sum_are_within_their_errors(
    noise: float, steps: int, shifts: Shifts
) -> None:
    edges, _ = _edges(steps, *(shift / noise for shift in shifts))
    for shift in shifts:
        log_p, error = _masses(_curve(edges, steps, shift / noise))
        chosen = np.unique(np.linspace(0, log_p.size - 1, 20).astype(int))
        ends = np.concatenate(([-math.inf], edges, [math.inf]))
        with mp.workdps(350):
            cells = list(pairwise(ends))
            for k in chosen:
                low, high = (
                    (mp.ninf if x < 0 else mp.zero)
                    if math.isinf(x)
                    else log_f(x, noise, steps, shift)
                    for x in cells[k]
                )
                truth = high + mp.log(-mp.expm1(low - high))
                assert abs(truth - log_p[k]) <= error[k]
        assert float(np.median(error)) < 1e-10


def two_batches(noise: float, shifts: Shifts, epsilon: float) -> float:
    """Return delta of two batches' sums together: exact in one of them, an integral over the other.

    With ``u = exp(mu x)`` the likelihood ratio exceeds ``e^eps`` where ``u_1^2 + u_2^2`` is more
    than ``k (u_1 + u_2)``, ``k = e^(eps + 3 mu^2/2)``, or more than ``2 e^(eps + 2 mu^2)``.
    """
    mu = 1.0 / noise
    x = np.linspace(-12.0, 2.0 * mu + 12.0, 400_001)
    u = np.exp(mu * x)
    if shifts == REMOVED:
        k = math.exp(epsilon + 1.5 * mu * mu)
        square = k * k - 4.0 * u * (u - k)
        root = np.sqrt(np.maximum(square, 0.0))
        least, most = 0.5 * (k - root), 0.5 * (k + root)
    else:
        square = 2.0 * math.exp(epsilon + 2.0 * mu * mu) - u * u
        least, most = np.zeros_like(u), np.sqrt(np.maximum(square, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(least > 0.0, np.log(least) / mu, -np.inf)
        high = np.where(most > 0.0, np.log(most) / mu, -np.inf)
    inside = square > 0.0
    masses = []
    for m in (shift * mu for shift in shifts):
        one, other = (np.where(inside, ndtr(low - far) + ndtr(far - high), 1.0) for far in (0.0, m))
        density = np.exp(-0.5 * (x - m) ** 2) * one + np.exp(-0.5 * x * x) * other
        masses.append(0.5 * float(density.sum()) * (x[1] - x[0]) / math.sqrt(2 * math.pi))
    return float(masses[0] - math.exp(epsilon) * masses[1])


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
@pytest.mark.parametrize("noise", [2.5, 1.0, 0.4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_what_two_batches_show_is_inside_the_interval(
    adjacency: str, noise: float, epsilon: float
) -> None:
    truth = two_batches(noise, REMOVED if adjacency == "zero-out" else REPLACED, epsilon)
    found = hs.delta(hs.Shuffled(hs.Gaussian(noise), 2, adjacency), epsilon)
    assert found.lower <= truth * (1 + 1e-9) <= found.upper
    assert found.lower >= 0.3 * truth


def test_clipping_of_whole_batches_costs_what_replacing_an_example_does() -> None:
    removing, adding = dominating_pair(hs.Shuffled(hs.Gaussian(1.0), 10, "zero-out", "batch"))
    replaced = dominating_pair(hs.Shuffled(hs.Gaussian(1.0), 10, "replace-one"))
    assert removing == replaced.removing
    assert adding is not None
    assert isinstance(adding.attained, LargestBatchLoss)
    assert adding.attained.shifts == BACK
    assert dominating_pair(hs.Shuffled(hs.Gaussian(1.0), 10, "replace-one", "batch")) == replaced
    whole = dominating_pair(hs.Shuffled(hs.Gaussian(1.0), 1, "zero-out", "batch"))
    assert whole == dominating_pair(hs.Gaussian(0.5))
