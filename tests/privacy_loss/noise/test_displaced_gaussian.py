"""A Gaussian that takes an opposite one's place, against one at 0 that does: by quadrature."""

import math
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.privacy_loss import SampledGaussianLoss
from hockeystick.privacy_loss.core.symmetrized import JoinedLoss
from hockeystick.privacy_loss.noise.displaced_gaussian import DisplacedGaussianLoss


def worst(rate: float, noise: float, epsilon: float) -> float:
    """Return the largest divergence over vectors of the unit disc, in one order, on a grid."""
    axis = np.linspace(-9.0, 9.0, 361)
    east, north = np.meshgrid(axis, axis)
    cell = (axis[1] - axis[0]) ** 2 / (2.0 * math.pi)

    def normal(vector: tuple[float, float]) -> np.ndarray:
        moved = (east - vector[0] / noise) ** 2 + (north - vector[1] / noise) ** 2
        made: np.ndarray = np.exp(-0.5 * moved) * cell
        return made

    found = 0.0
    for turn in np.linspace(0.0, math.pi, 7):
        for size in (0.0, 0.5, 1.0):
            other = normal((size * math.cos(turn), size * math.sin(turn)))
            p = (1.0 - rate) * other + rate * normal((1.0, 0.0))
            q = (1.0 - rate) * other + rate * normal((0.0, 0.0))
            found = max(found, float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()))
    return found


@pytest.mark.parametrize("epsilon", [-1.0, -0.3, -0.05, 0.05, 0.4, 1.5])
def test_the_joined_loss_has_the_profile_of_the_worst_vectors_of_a_disc(epsilon: float) -> None:
    rate, noise = 0.3, 0.9
    opposite, alike = DisplacedGaussianLoss(rate, noise), SampledGaussianLoss(rate, noise, True)
    loss = JoinedLoss(opposite, alike, opposite)
    found = loss.cells(np.array([epsilon, 0.0, math.inf] if epsilon < 0.0 else [epsilon, math.inf]))
    above = np.exp(found.log_p) - math.exp(epsilon) * np.exp(found.log_q)
    atom = loss.atoms()
    share = math.exp(atom.log_p[0]) * (1.0 - math.exp(epsilon)) if epsilon < 0.0 else 0.0
    assert above.sum() + share == pytest.approx(worst(rate, noise, epsilon), rel=1e-3)


def test_both_orders_of_the_joined_loss_are_one_pair() -> None:
    opposite, alike = DisplacedGaussianLoss(0.2, 0.7), SampledGaussianLoss(0.2, 0.7, True)
    one, other = JoinedLoss(opposite, alike), JoinedLoss(alike, opposite)
    edges = np.array([-3.0, -0.5, -0.01, 0.02, 0.3, 2.0])
    here, there = one.cells(edges), other.cells(-edges[::-1])
    assert np.exp(here.log_p) == pytest.approx(np.exp(there.log_q[::-1]), rel=1e-10)
    assert np.exp(here.log_q) == pytest.approx(np.exp(there.log_p[::-1]), rel=1e-10)
    assert one.atoms().log_p == pytest.approx(other.atoms().log_p, rel=1e-9)
    assert one.without_attained == one
    assert (one.attained, one.infimum, one.supremum) == (None, -math.inf, math.inf)


def test_numbers_out_of_reach_leave_the_bound_of_a_replacement() -> None:
    far = hs.FixedSizeSubsampled(hs.Gaussian(0.01), 1, 10, "zero-out", clipped=True)
    free = hs.FixedSizeSubsampled(hs.Gaussian(0.01), 1, 10, "zero-out")
    assert not DisplacedGaussianLoss(Fraction(1, 10), 0.02).is_within_reach
    found, known = hs.delta(far, 1.0), hs.delta(free, 1.0)
    assert (found.lower, found.upper) == (known.lower, known.upper)
