"""What a client of private clustering sends, and the server's step."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.release.federated import lloyd_step, sanitized
from tests.release.bits import seeded

PLAN = hs.federated.FederatedClustering(3.0, dimension=3, radius=2.0, rounds=4)
SILENT = hs.federated.FederatedClustering(0.0, dimension=3, radius=2.0, rounds=4)


def test_what_is_sent_before_noise_stays_within_the_radius_of_anything_else() -> None:
    center = [1.0, -2.0, 0.5]
    far = [[1e12, 0, 0], [-1e12, 5, 5], [1.0, 1e100, 0.5], [0.9, -1.9, 0.5]]
    sent = np.array([sanitized(SILENT, one, center) for one in far])
    distances = np.linalg.norm(sent[:, None] - sent[None, :], axis=2)
    assert 1.9999 < distances.max() <= 2.0
    assert sent[3] == pytest.approx(far[3], abs=1e-12)


@pytest.mark.parametrize("radius", [1e-300, 1e-170, 1e-162, 1e150, 1e308])
def test_lengths_whose_squares_are_no_floats_are_clipped_too(radius: float) -> None:
    """Exactly, in fractions."""
    plan = hs.federated.FederatedClustering(0.0, dimension=2, radius=radius, rounds=1)
    for far in ([radius, 0.0], [0.4 * radius, -0.4 * radius], [1e-5, 1.0]):
        sent = [Fraction(one) for one in sanitized(plan, far, [0.0, 0.0]).tolist()]
        assert 4 * sum(one**2 for one in sent) <= Fraction(radius) ** 2


def test_the_length_of_the_noise_is_gamma_with_the_plans_mean() -> None:
    """Shape n and scale nu r / n, directions uniform."""
    bits = seeded(7)
    center = np.array([5.0, 5.0, 5.0])
    noise = np.array([sanitized(PLAN, center, center, bits=bits) - center for _ in range(3000)])
    lengths = np.linalg.norm(noise, axis=1)
    assert stats.kstest(lengths, stats.gamma(3, scale=3.0 * 2.0 / 3).cdf).pvalue > 1e-4
    # On the sphere of R^3 each coordinate is uniform.
    for coordinate in (noise / lengths[:, None]).T:
        assert stats.kstest(coordinate, stats.uniform(-1, 2).cdf).pvalue > 1e-4


def test_each_message_is_charged_for() -> None:
    account = hs.Accountant()
    for _ in range(PLAN.rounds):
        sanitized(PLAN, [1.0, 2.0, 3.0], [0.0, 0.0, 0.0], charge=account)
    assert account.plan == PLAN.mechanism


@pytest.mark.parametrize(
    ("parameters", "center"),
    [
        ([1.0, 2.0], [0.0, 0.0, 0.0]),
        ([1.0, 2.0, math.nan], [0.0, 0.0, 0.0]),
        ([1.0, 2.0, 3.0], [0.0]),
        ([1.7e308, 0.0, 0.0], [-1.7e308, 0.0, 0.0]),
        ("abc", [0.0, 0.0, 0.0]),
    ],
)
def test_bad_vectors_are_told(parameters: Any, center: Any) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError, match=r"parameters|center"):
        sanitized(PLAN, parameters, center, charge=account)
    assert len(account) == 0
    with pytest.raises(ParameterError, match="plan must be"):
        sanitized(hs.Gaussian(1.0), parameters, center)  # type: ignore[arg-type]


def test_lloyds_steps_reach_the_clusters_and_leave_empty_ones() -> None:
    rng = np.random.default_rng(1)
    truth = np.array([[5.0, 6.0], [4.0, -4.5]])
    points = np.repeat(truth, 50, axis=0) + rng.normal(size=(100, 2)) * 0.1
    centers = np.array([[0.0, 1.0], [0.0, -1.0], [900.0, 900.0]])
    for _ in range(2):
        centers, nearest = lloyd_step(points, centers)
    assert np.abs(centers[:2] - truth).max() < 0.1
    assert centers[2].tolist() == [900.0, 900.0]
    assert nearest.tolist() == [0] * 50 + [1] * 50
    for points, centers in (([1.0], [[1.0]]), ([[1.0, 2.0]], [[1.0]]), ([[1.0]], [])):  # type: ignore[assignment]
        with pytest.raises(ParameterError, match=r"points|centers"):
            lloyd_step(points, centers)
