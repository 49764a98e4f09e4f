"""The lattice: one run on it, transforms and their powers, against plain sums."""

import math
from typing import Final

import numpy as np
import pytest
from scipy.fft import irfft, next_fast_len, rfft

import hockeystick as hs
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.prv import sums
from hockeystick.accountants.prv.discretise import (
    TiltedMasses,
    Truncation,
    cover,
    dominated_masses,
    dominating_masses,
)
from hockeystick.accountants.prv.lattice import compose, natural_step, parts_for
from hockeystick.accountants.prv.sums import PointMasses, SparseSpectrum, composed_masses
from hockeystick.accountants.rdp import rough_optimal_order
from hockeystick.kernels.series import Array
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    Atoms,
    CellLoss,
    GaussianLoss,
    Masses,
    RandomizedResponsePairLoss,
)
from hockeystick.privacy_loss.noise.integer_noise import SkellamLoss
from hockeystick.privacy_loss.noise.laplace import LaplaceLoss

TILTED: Final = 2.5


def tilted_profile(weights: TiltedMasses, step: float, epsilon: float) -> float:
    """Return delta of masses on a lattice, their tilt taken back."""
    points = weights.offset + step * (weights.first + np.arange(weights.weight.size))
    masses = weights.weight * np.exp(weights.log_total - TILTED * points)
    return float(masses @ np.maximum(-np.expm1(epsilon - points), 0.0)) + weights.infinity_mass


def test_what_lies_beyond_the_lattice_is_lost_above_and_kept_below() -> None:
    loss = GaussianLoss(0.5)
    lattice = cover(loss, 0.0, 0.05, TILTED, (-40.0, math.log(1e-3)))
    up, low = dominating_masses(loss, lattice, TILTED), dominated_masses(loss, lattice, TILTED)
    assert 1e-4 < up.infinity_mass < 1e-2
    for epsilon in (4.0, 6.0, 8.0):
        truth = float(loss.delta(mp.mpf(epsilon)))
        assert tilted_profile(low, 0.05, epsilon) <= truth <= tilted_profile(up, 0.05, epsilon)


def test_atoms_between_points_are_dominated_and_nearly_kept() -> None:
    loss, step = SkellamLoss(9.0, 1), 0.02
    atoms = loss.atoms()
    low = dominated_masses(loss, cover(loss, 0.0013, step, TILTED, (-300.0, -600.0)), TILTED)
    for epsilon in np.linspace(0.0, 2.0, 9) + low.displacement:
        each = np.exp(atoms.log_p) * -np.expm1(np.minimum(epsilon - atoms.loss, 0.0))
        least = 1.0 - 2.0 * step * (1.0 + epsilon) ** 3
        assert least * each.sum() <= tilted_profile(low, step, epsilon) <= each.sum()


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
    lattice = cover(loss, 0.0, 0.05, TILTED, (-40.0, -40.0))
    assert dominating_masses(loss, lattice, TILTED).absolute_error == math.inf


@pytest.mark.parametrize("size", [64, 1000, 2**14, 3**7 * 5, 2**18])
@pytest.mark.parametrize("shape", ["even", "one", "rough"])
def test_a_transform_errs_by_less_than_is_assumed(size: int, shape: str) -> None:
    size = next_fast_len(size, real=True)
    rng = np.random.default_rng(size)
    values = {
        "even": np.full(size, 1.0 / size),
        "one": np.eye(1, size, 3)[0],
        "rough": rng.random(size) * np.exp(-30.0 * rng.random(size)),
    }[shape]
    allowed = sums.TRANSFORM * math.log2(size)
    exact = rfft(values.astype(np.longdouble))
    error = np.linalg.norm((rfft(values) - exact).astype(np.complex128))
    assert error <= allowed * np.linalg.norm(exact.astype(np.complex128)) / 4.0
    spectrum = exact.astype(np.complex128)
    back = irfft(spectrum.astype(np.clongdouble), size).astype(np.float64)
    assert np.linalg.norm(irfft(spectrum, size) - back) <= allowed * np.linalg.norm(back) / 4.0


def listed(masses: object) -> np.ndarray:
    if isinstance(masses, PointMasses):
        return masses.mass
    assert isinstance(masses, SparseSpectrum)
    spectrum = np.zeros(masses.size // 2 + 1, dtype=complex)
    spectrum[masses.index] = masses.value
    return np.roll(irfft(spectrum, masses.size), -masses.rotation)


@pytest.mark.parametrize("first", [0, 1000, 4090, 4096])
@pytest.mark.parametrize(("c", "step"), [(0.3, 1e-3), (80.0, 1e-3), (3.0, 2.0)])
@pytest.mark.parametrize("inside", [0.0, 3.7])
def test_few_frequencies_have_the_sums_of_the_masses_one_by_one(
    first: int, c: float, step: float, inside: float
) -> None:
    rng = np.random.default_rng(5000)
    weight = np.exp(-(np.linspace(-3.0, 3.0, 40) ** 2)) * rng.uniform(0.5, 1.5, 40)
    one = TiltedMasses(0.0, -7, weight / weight.sum(), 0.0, 0.0, np.zeros(0), 0.0, 0.0)
    few = composed_masses([(one, 5000)], 2**12, 1311)
    assert isinstance(few, SparseSpectrum)
    each = PointMasses(listed(few), few.round_off)
    x = inside * step
    value, error = few.sum_from(first, x, c, step)
    with mp.workdps(30):
        points = [mp.mpf(x) + mp.mpf(step) * j for j in range(few.size - first)]
        factors = [mp.exp(-c * at) * -mp.expm1(-at) for at in points]
        exact = mp.fsum(g * w for g, w in zip(factors, each.mass[first:].tolist(), strict=True))
        # The list itself is rounded.
        slack = mp.fsum(factors) * 1e-17
    assert abs(value - exact) <= error + slack
    assert abs(value - each.sum_from(first, x, c, step)[0]) <= 2.0 * error + slack
    assert error <= 1.1 * sums._norm_of_factor(c, step) * few.round_off


@pytest.mark.parametrize("c", [0.01, 1.0, 40.0])
@pytest.mark.parametrize("step", [1e-3, 0.1, 3.0])
def test_the_norm_of_the_factor_is_bounded(c: float, step: float) -> None:
    at = step * np.arange(1, 10**5) * (1.0 + 1e-9)
    factor = np.exp(-c * at) * -np.expm1(-at)
    assert math.sqrt(float((factor**2).sum())) <= sums._norm_of_factor(c, step)


TAILS = (-60.0, -60.0)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 30])
def test_powers_are_repeated_convolutions_within_the_round_off(count: int) -> None:
    loss, tilt, step = LaplaceLoss(1.0), 1.5, 0.05
    parts = parts_for([(loss, count)], tilt, step, TAILS)
    found, ((_, lattice, _),) = compose(parts, tilt, -40.0, dominating_masses), parts
    assert found is not None
    one = dominating_masses(loss, lattice, tilt)
    exact = np.ones(1, dtype=np.longdouble)
    for _ in range(count):
        exact = np.convolve(exact, one.weight.astype(np.longdouble))
    first = round((found.start - count * one.offset) / found.step)
    size = found.masses.size
    wrapped = np.zeros(size, dtype=np.longdouble)
    places = (np.arange(exact.size) + count * one.first - first) % size
    np.add.at(wrapped, places, exact)
    assert np.linalg.norm((listed(found.masses) - wrapped).astype(float)) <= found.masses.round_off
    outside = (np.arange(exact.size) + count * one.first - first) // size != 0
    assert float(exact[outside].sum()) <= found.mass_error


def test_losses_with_one_spacing_have_a_natural_step() -> None:
    half, quarter, other = ((RandomizedResponsePairLoss(one), 3) for one in (0.5, 0.25, 0.3))
    assert natural_step([half]) == pytest.approx(1.0)
    assert natural_step([half, quarter]) == pytest.approx(0.5)
    assert natural_step([half, other]) is None
    assert natural_step([(LaplaceLoss(0.5), 3)]) is None


def test_a_lattice_of_too_many_points_is_no_lattice() -> None:
    wide = parts_for([(LaplaceLoss(1e-7), 2)], 1e-9, 0.1, TAILS)
    assert compose(wide, 1e-9, -40.0, dominating_masses) is None
    many = parts_for([(GaussianLoss(1.0), 10**15)], 1.0, 0.1, TAILS)
    assert compose(many, 1.0, -9.0, dominating_masses) is None


@pytest.mark.parametrize(
    "plan",
    [hs.Laplace(0.8), hs.Laplace(3.0) ** 30 @ hs.PoissonSubsampled(hs.Gaussian(1.1), 0.02)],
    ids=["Laplace once", "a mixture"],
)
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6])
@pytest.mark.parametrize("question", [("epsilon", 1e-3), ("epsilon", 1e-9), ("delta", 0.9)])
def test_it_is_as_narrow_as_asked_and_agrees_with_the_other_exact_accountants(
    plan: hs.Mechanism, tolerance: float, question: tuple[str, float]
) -> None:
    ask = hs.epsilon if question[0] == "epsilon" else hs.delta
    found = ask(plan, question[1], accountant="prv", tolerance=tolerance)
    other = ask(plan, question[1], tolerance=1e-10)
    assert found.lower <= other.upper
    assert other.lower <= found.upper
    assert found.relative_width <= tolerance


def test_a_loss_cut_at_a_tail_that_does_not_matter_still_has_its_order() -> None:
    mixture = hs.mechanisms.GaussianMixture(2.0, (0.0, 1.0, 2.0), (0.9, 0.07, 0.03))
    terms = composition_of(hs.PoissonSubsampled(mixture, 0.5), "prv").directions[0]
    log_delta = math.log(1e-300)
    order = rough_optimal_order(Truncation.at(terms, log_delta).terms(terms), log_delta)
    assert 30.0 < order < 50.0


def test_a_loss_of_which_only_divergences_are_known_is_refused_by_name() -> None:
    with pytest.raises(hs.errors.UnsupportedError, match="prv"):
        hs.epsilon(hs.ZCDP(0.1) @ hs.Laplace(2.0), 1e-5, accountant="prv")
