"""Composition by transforms: every error bound holds against sums without transforms."""

import math

import numpy as np
import pytest
from scipy.fft import irfft, next_fast_len, rfft

from hockeystick.accountants.prv import lattice
from hockeystick.accountants.prv._discretise import Weights, above, below
from hockeystick.accountants.prv._points import natural_step, parts_for
from hockeystick.accountants.prv.lattice import Lattice, Put, compose
from hockeystick.losses import CellLoss, GaussianLoss, TwoPointLoss
from hockeystick.losses.laplace import LaplaceLoss

TAILS = (-60.0, -60.0)


def composed(
    terms: list[tuple[CellLoss, int]],
    tilt: float,
    step: float,
    put: Put = above,
    log_outside: float = -40.0,
) -> Lattice:
    """Return the composition that dominates, or the one put otherwise."""
    found = compose(parts_for(terms, tilt, step, TAILS), tilt, log_outside, put)
    assert found is not None
    return found


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
    allowed = lattice._TRANSFORM * math.log2(size)
    exact = rfft(values.astype(np.longdouble))
    error = np.linalg.norm((rfft(values) - exact).astype(np.complex128))
    assert error <= allowed * np.linalg.norm(exact.astype(np.complex128)) / 4.0
    spectrum = exact.astype(np.complex128)
    back = irfft(spectrum.astype(np.clongdouble), size).astype(np.float64)
    assert np.linalg.norm(irfft(spectrum, size) - back) <= allowed * np.linalg.norm(back) / 4.0


def masses(one: Weights) -> np.ndarray:
    """Return masses in extended precision."""
    return one.weight.astype(np.longdouble)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 30])
def test_powers_are_repeated_convolutions_within_the_round_off(count: int) -> None:
    loss, tilt, step = LaplaceLoss(1.0), 1.5, 0.05
    found = composed([(loss, count)], tilt, step)
    part = parts_for([(loss, count)], tilt, step, TAILS)[0]
    one = above(loss, part.steps, tilt)
    exact = np.ones(1, dtype=np.longdouble)
    for _ in range(count):
        exact = np.convolve(exact, masses(one))
    first = round((found.start - count * one.offset) / found.step)
    wrapped = np.zeros(found.mass.size, dtype=np.longdouble)
    places = (np.arange(exact.size) + count * one.first - first) % found.mass.size
    np.add.at(wrapped, places, exact)
    assert np.linalg.norm((found.mass - wrapped).astype(float)) <= found.round_off
    outside = (np.arange(exact.size) + count * one.first - first) // found.mass.size != 0
    assert float(exact[outside].sum()) <= found.folded


def test_what_lies_outside_the_window_is_no_more_than_said() -> None:
    loss, tilt = GaussianLoss(1.0), 0.4
    narrow, wide = (composed([(loss, 9)], tilt, 0.02, above, end) for end in (-7.0, -60.0))
    points = wide.start + wide.step * np.arange(wide.mass.size)
    end = narrow.start + narrow.step * narrow.mass.size
    outside = wide.mass[(points < narrow.start - 1e-9) | (points >= end)].sum()
    assert 0.0 < outside <= narrow.folded <= 4.0 * math.exp(-7.0)


def test_many_different_losses_are_composed_one_by_one() -> None:
    terms: list[tuple[CellLoss, int]] = [(LaplaceLoss(2.0 + 0.1 * k), 1 + k) for k in range(5)]
    forward, backward = composed(terms, 1.0, 0.01), composed(terms[::-1], 1.0, 0.01)
    for epsilon in (0.5, 2.0, 4.0):
        assert forward.upper(epsilon) == pytest.approx(backward.upper(epsilon), rel=1e-4)
        low = composed(terms, 1.0, 0.01, below)
        assert low.lower(epsilon) < forward.upper(epsilon)


def test_losses_with_one_spacing_have_a_natural_step() -> None:
    assert natural_step([(TwoPointLoss(0.5), 3)]) == pytest.approx(1.0)
    assert natural_step([(TwoPointLoss(0.5), 3), (TwoPointLoss(0.25), 3)]) == pytest.approx(0.5)
    assert natural_step([(TwoPointLoss(0.5), 3), (TwoPointLoss(0.3), 3)]) is None
    assert natural_step([(LaplaceLoss(0.5), 3)]) is None


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.7, 3.9])
def test_a_lattice_of_atoms_has_the_binomial_sums(epsilon: float) -> None:
    terms: list[tuple[CellLoss, int]] = [(TwoPointLoss(0.4), 10)]
    up, low = (composed(terms, 2.0, 0.8, put) for put in (above, below))
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
    assert compose(parts_for([(loss, 2)], 1e-9, 0.1, TAILS), 1e-9, -40.0, above) is None
    assert (
        compose(parts_for([(GaussianLoss(1.0), 10**15)], 1.0, 0.1, TAILS), 1.0, -9.0, above) is None
    )
