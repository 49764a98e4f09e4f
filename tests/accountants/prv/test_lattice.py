"""Composition by transforms: every error bound holds against sums without transforms."""

import math

import numpy as np
import pytest
from scipy.fft import irfft

from hockeystick.accountants.prv._discretise import (
    LossOnLattice,
    TiltedMasses,
    dominated_masses,
    dominating_masses,
)
from hockeystick.accountants.prv._spectrum import PointMasses, SparseSpectrum
from hockeystick.accountants.prv.lattice import (
    Discretization,
    Lattice,
    compose,
    natural_step,
    parts_for,
)
from hockeystick.privacy_loss import CellLoss, GaussianLoss, RandomizedResponsePairLoss
from hockeystick.privacy_loss.noise.laplace import LaplaceLoss

TAILS = (-60.0, -60.0)


def composed(
    terms: list[tuple[CellLoss, int]],
    tilt: float,
    step: float,
    discretize: Discretization = dominating_masses,
    log_outside: float = -40.0,
) -> Lattice:
    """Return the composition that dominates, or the one put otherwise."""
    found = compose(parts_for(terms, tilt, step, TAILS), tilt, log_outside, [discretize])
    assert found is not None
    return found[0]


def listed(found: Lattice) -> np.ndarray:
    if isinstance(found.masses, PointMasses):
        return found.masses.mass
    assert isinstance(found.masses, SparseSpectrum)
    spectrum = np.zeros(found.masses.size // 2 + 1, dtype=complex)
    spectrum[found.masses.index] = found.masses.value
    return np.roll(irfft(spectrum, found.masses.size), -found.masses.rotation)


def masses(one: TiltedMasses) -> np.ndarray:
    return one.weight.astype(np.longdouble)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 30])
def test_powers_are_repeated_convolutions_within_the_round_off(count: int) -> None:
    loss, tilt, step = LaplaceLoss(1.0), 1.5, 0.05
    found = composed([(loss, count)], tilt, step)
    part = parts_for([(loss, count)], tilt, step, TAILS)[0]
    one = dominating_masses(LossOnLattice(loss, part.lattice), tilt)
    exact = np.ones(1, dtype=np.longdouble)
    for _ in range(count):
        exact = np.convolve(exact, masses(one))
    first = round((found.start - count * one.offset) / found.step)
    size = found.masses.size
    wrapped = np.zeros(size, dtype=np.longdouble)
    places = (np.arange(exact.size) + count * one.first - first) % size
    np.add.at(wrapped, places, exact)
    assert np.linalg.norm((listed(found) - wrapped).astype(float)) <= found.masses.round_off
    outside = (np.arange(exact.size) + count * one.first - first) // size != 0
    assert float(exact[outside].sum()) <= found.mass_error


def test_what_lies_outside_the_window_is_no_more_than_said() -> None:
    loss, tilt = GaussianLoss(1.0), 0.4
    narrow, wide = (
        composed([(loss, 9)], tilt, 0.02, dominating_masses, end) for end in (-7.0, -60.0)
    )
    points = wide.start + wide.step * np.arange(wide.masses.size)
    end = narrow.start + narrow.step * narrow.masses.size
    outside = listed(wide)[(points < narrow.start - 1e-9) | (points >= end)].sum()
    assert 0.0 < outside <= narrow.mass_error <= 4.0 * math.exp(-7.0)


def test_losses_with_one_spacing_have_a_natural_step() -> None:
    assert natural_step([(RandomizedResponsePairLoss(0.5), 3)]) == pytest.approx(1.0)
    assert natural_step(
        [(RandomizedResponsePairLoss(0.5), 3), (RandomizedResponsePairLoss(0.25), 3)]
    ) == pytest.approx(0.5)
    assert (
        natural_step([(RandomizedResponsePairLoss(0.5), 3), (RandomizedResponsePairLoss(0.3), 3)])
        is None
    )
    assert natural_step([(LaplaceLoss(0.5), 3)]) is None


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.7, 3.9])
def test_a_lattice_of_atoms_has_the_binomial_sums(epsilon: float) -> None:
    terms: list[tuple[CellLoss, int]] = [(RandomizedResponsePairLoss(0.4), 10)]
    up, low = (
        composed(terms, 2.0, 0.8, discretize)
        for discretize in (dominating_masses, dominated_masses)
    )
    share = 1.0 / (1.0 + math.exp(-0.4))
    exact = math.fsum(
        math.comb(10, k)
        * share**k
        * (1.0 - share) ** (10 - k)
        * max(-math.expm1(epsilon - 0.4 * (2 * k - 10)), 0.0)
        for k in range(11)
    )
    assert low.lower(epsilon) <= math.log(exact) <= up.upper(epsilon)
    assert up.upper(epsilon) - low.lower(epsilon) <= 1e-9


def test_a_lattice_of_too_many_points_is_no_lattice() -> None:
    loss = LaplaceLoss(1e-7)
    assert (
        compose(parts_for([(loss, 2)], 1e-9, 0.1, TAILS), 1e-9, -40.0, [dominating_masses]) is None
    )
    many = parts_for([(GaussianLoss(1.0), 10**15)], 1.0, 0.1, TAILS)
    assert compose(many, 1.0, -9.0, [dominating_masses]) is None
