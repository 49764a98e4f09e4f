"""One run on a lattice: what dominates the loss and what it dominates, at every epsilon."""

import math
from typing import Final

import numpy as np
import pytest

from hockeystick.accountants.prv._discretise import (
    LossOnLattice,
    TiltedMasses,
    cover,
    dominated_masses,
    dominating_masses,
)
from hockeystick.kernels.series import Array
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    Atoms,
    CellLoss,
    GaussianLoss,
    Masses,
    RandomizedResponsePairLoss,
)
from hockeystick.privacy_loss.noise.laplace import LaplaceLoss

LOSSES: Final = {
    "Gaussian": GaussianLoss(1.3),
    "Laplace": LaplaceLoss(0.7),
    "randomized response": RandomizedResponsePairLoss(1.1),
}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
EPSILONS: Final = np.linspace(0.0, 3.0, 61)
TILT: Final = 2.5


def profile(weights: TiltedMasses, step: float, epsilon: float) -> float:
    """Return delta of masses on a lattice, their tilt taken back."""
    points = weights.offset + step * (weights.first + np.arange(weights.weight.size))
    masses = weights.weight * np.exp(weights.log_total - TILT * points)
    return float(masses @ np.maximum(-np.expm1(epsilon - points), 0.0)) + weights.infinity_mass


def truth(loss: GaussianLoss | LaplaceLoss | RandomizedResponsePairLoss, epsilon: float) -> float:
    return float(loss.delta(mp.mpf(epsilon)))


@each_loss
@pytest.mark.parametrize("step", [0.3, 0.04, 1e-3])
@pytest.mark.parametrize("offset", [0.0, 0.0123])
def test_the_lattice_above_dominates_and_the_one_below_is_dominated(
    loss: GaussianLoss | LaplaceLoss | RandomizedResponsePairLoss, step: float, offset: float
) -> None:
    lattice = cover(loss, offset, step, TILT, (-40.0, -40.0))
    up, low = (
        discretize(LossOnLattice(loss, lattice), TILT)
        for discretize in (dominating_masses, dominated_masses)
    )
    for epsilon in EPSILONS.tolist():
        exact, slack = truth(loss, epsilon), 1e-15
        assert (
            profile(up, step, epsilon - up.displacement) * math.exp(up.relative_error)
            >= exact - slack
        )
        assert (
            profile(low, step, epsilon + low.displacement) * math.exp(-low.relative_error)
            <= exact + slack
        )


def test_atoms_on_points_are_exact_in_both() -> None:
    loss = RandomizedResponsePairLoss(1.1)
    lattice = cover(loss, -1.1, 2.2 / 8, TILT, (-40.0, -40.0))
    for discretize in (dominating_masses, dominated_masses):
        weights = discretize(LossOnLattice(loss, lattice), TILT)
        assert np.count_nonzero(weights.weight) == 2
        for epsilon in EPSILONS.tolist():
            assert profile(weights, lattice.step, epsilon) == pytest.approx(
                truth(loss, epsilon), rel=1e-13, abs=1e-15
            )


def test_what_lies_beyond_the_lattice_is_lost_above_and_kept_below() -> None:
    loss = GaussianLoss(0.5)
    lattice = cover(loss, 0.0, 0.05, TILT, (-40.0, math.log(1e-3)))
    up, low = (
        discretize(LossOnLattice(loss, lattice), TILT)
        for discretize in (dominating_masses, dominated_masses)
    )
    assert 1e-4 < up.infinity_mass < 1e-2
    for epsilon in (4.0, 6.0, 8.0):
        assert profile(up, 0.05, epsilon) >= truth(loss, epsilon) >= profile(low, 0.05, epsilon)


class Shy(CellLoss):
    """A loss whose tail has a mass that is not known at all."""

    infimum = -1.0
    supremum = 1.0

    def atoms(self) -> Atoms:
        none = np.zeros(0)
        return Atoms(none, none, none)

    def cells(self, edges: Array) -> Masses:
        """Return an even density on [-1, 1], known but for the cell at the left end."""
        inside = np.clip(edges, -1.0, 1.0)
        with np.errstate(divide="ignore"):
            log_p = np.log(np.diff(inside) / 2.0)
        middle = 0.5 * (inside[:-1] + inside[1:])
        return Masses(log_p, log_p - middle, np.where(inside[1:] < -0.9, math.inf, 1e-15))


def test_a_mass_that_is_not_known_proves_nothing() -> None:
    loss = Shy()
    lattice = cover(loss, 0.0, 0.05, TILT, (-40.0, -40.0))
    assert dominating_masses(LossOnLattice(loss, lattice), TILT).absolute_error == math.inf
