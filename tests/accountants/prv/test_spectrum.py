"""Transforms, their powers and the sums read off them: against sums without transforms."""

import math

import numpy as np
import pytest
from scipy.fft import irfft, next_fast_len, rfft

from hockeystick.accountants.prv import _spectrum
from hockeystick.accountants.prv._discretise import TiltedMasses
from hockeystick.accountants.prv._spectrum import PointMasses, SparseSpectrum, composed_masses
from hockeystick.numerics.multiprecision import mp


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
    allowed = _spectrum.TRANSFORM * math.log2(size)
    exact = rfft(values.astype(np.longdouble))
    error = np.linalg.norm((rfft(values) - exact).astype(np.complex128))
    assert error <= allowed * np.linalg.norm(exact.astype(np.complex128)) / 4.0
    spectrum = exact.astype(np.complex128)
    back = irfft(spectrum.astype(np.clongdouble), size).astype(np.float64)
    assert np.linalg.norm(irfft(spectrum, size) - back) <= allowed * np.linalg.norm(back) / 4.0


def bell(first: int, points: int, rng: np.random.Generator) -> TiltedMasses:
    """Return rough masses on some points that add up to 1."""
    weight = np.exp(-(np.linspace(-3.0, 3.0, points) ** 2)) * rng.uniform(0.5, 1.5, points)
    weight /= weight.sum()
    return TiltedMasses(0.0, first, weight, 0.0, 0.0, np.zeros(0), 0.0, 0.0)


def both_forms(count: int, rotation: int, size: int = 2**12) -> tuple[SparseSpectrum, PointMasses]:
    """Return many runs by their few frequencies, and one by one."""
    one = bell(-7, 40, np.random.default_rng(count))
    few = composed_masses([(one, count)], size, rotation)
    assert isinstance(few, SparseSpectrum)
    spectrum = np.zeros(size // 2 + 1, dtype=complex)
    spectrum[few.index] = few.value
    return few, PointMasses(np.roll(irfft(spectrum, size), -rotation), few.round_off)


@pytest.mark.parametrize("first", [0, 1, 1000, 2047, 4090, 4096])
@pytest.mark.parametrize(("c", "step"), [(0.3, 1e-3), (2.0, 0.01), (80.0, 1e-3), (3.0, 2.0)])
@pytest.mark.parametrize("inside", [0.0, 0.4, 1.0, 3.7])
def test_few_frequencies_have_the_sums_of_the_masses_one_by_one(
    first: int, c: float, step: float, inside: float
) -> None:
    few, each = both_forms(5000, 1311)
    x = inside * step
    found = few.sum_from(first, x, c, step)
    with mp.workdps(30):
        points = [mp.mpf(x) + mp.mpf(step) * j for j in range(few.size - first)]
        factors = [mp.exp(-c * at) * -mp.expm1(-at) for at in points]
        exact = mp.fsum(g * w for g, w in zip(factors, each.mass[first:].tolist(), strict=True))
        # The list itself is rounded.
        slack = mp.fsum(factors) * 1e-17
    assert abs(found.value - exact) <= found.error + slack
    assert abs(found.value - each.sum_from(first, x, c, step).value) <= 2.0 * found.error + slack
    assert found.error <= 1.1 * _spectrum._norm_of_factor(c, step) * few.round_off


@pytest.mark.parametrize("count", [2000, 10**5, 10**9])
def test_what_is_left_out_is_covered_by_the_round_off(count: int) -> None:
    one = bell(-7, 40, np.random.default_rng(3))
    size, rotation = 2**10, 99
    few = composed_masses([(one, count)], size, rotation)
    assert isinstance(few, SparseSpectrum)
    k = np.arange(size // 2 + 1)
    with mp.workdps(40):
        weight = [mp.mpf(w) for w in one.weight.tolist()]
        index = {int(j): i for i, j in enumerate(few.index)}
        off = mp.zero
        for j in k.tolist():
            turn = [mp.expjpi(mp.mpf(-2 * j * (place - 7)) / size) for place in range(40)]
            exact = mp.fsum(w * t for w, t in zip(weight, turn, strict=True)) ** count
            got = mp.mpc(complex(few.value[index[j]])) if j in index else mp.zero
            off += (1 if j in (0, size // 2) else 2) * abs(got - exact) ** 2
        assert mp.sqrt(off / size) <= few.round_off


def test_masses_are_listed_where_too_many_frequencies_are_left() -> None:
    one = bell(0, 40, np.random.default_rng(1))
    assert isinstance(composed_masses([(one, 1)], 64, 0), PointMasses)
    assert isinstance(composed_masses([(one, 10**6)], 2**14, 0), SparseSpectrum)


@pytest.mark.parametrize("c", [0.01, 1.0, 40.0])
@pytest.mark.parametrize("step", [1e-3, 0.1, 3.0])
def test_the_norm_of_the_factor_is_bounded(c: float, step: float) -> None:
    at = step * np.arange(1, 10**5) * (1.0 + 1e-9)
    factor = np.exp(-c * at) * -np.expm1(-at)
    assert math.sqrt(float((factor**2).sum())) <= _spectrum._norm_of_factor(c, step)
