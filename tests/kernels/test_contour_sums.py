"""delta from K along a line: against the same sums by mpmath, and within what K may err by."""

import math

import numpy as np
import pytest
from mpmath import mp

from hockeystick.kernels import contour_sums, series

C, STEP, SIZE = 3.0, 0.5, 40


def line() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return K of a Gaussian of mu = 1 along a line, and an error of it."""
    y = STEP * np.arange(SIZE)
    z = C + 1j * y
    k = 0.5 * z * (1.0 + z)
    return k.real.copy(), k.imag.copy(), np.full(SIZE, 1e-13)


def exact(epsilon: float) -> tuple[mp.mpf, mp.mpf]:
    """Return the sum at an epsilon and its derivative, by mpmath."""
    found = slope = mp.zero
    for k in range(SIZE):
        z = mp.mpc(C, STEP * k)
        term = mp.exp(z * (1 + z) / 2 - mp.mpf(epsilon) * z) / (z * (1 + z)) * STEP / mp.pi
        term = term / 2 if k == 0 else term
        found, slope = found + mp.re(term), slope - mp.re(term * z)
    return found, slope


@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.3, 2.0, 3.5, 6.0])
def test_the_sum_is_within_its_error_of_that_by_mpmath(epsilon: float) -> None:
    real, imag, error = line()
    weight = contour_sums.weights(C, STEP, SIZE)
    none, nothing = np.zeros((0, 3)), np.zeros(SIZE)
    at = np.array([epsilon])
    found, growth = contour_sums.deltas(
        (C, STEP, 0.0), none, weight, nothing, real, imag, error, at
    )
    scale, lower, estimate, upper, slope = found[:, 0]
    with mp.workdps(40):
        truth, change = exact(epsilon)
        unit = mp.exp(scale)
        assert lower * unit <= truth <= upper * unit
        assert estimate == pytest.approx(float(truth / unit), rel=1e-9, abs=1e-13)
        assert slope == pytest.approx(float(change / unit), rel=1e-9, abs=1e-12)
    rough = contour_sums.estimates((C, STEP), weight, real, imag, at)
    assert (rough == found[[0, 2, 4]]).all()
    # What K may err by is all but the whole of the error.
    assert 1e-15 < (upper - lower) / 2 < 1e-12
    assert growth[0] == pytest.approx(1.0, abs=1e-11)


def test_the_epsilon_of_a_delta_is_found_or_told_not_to_be() -> None:
    real, imag, _ = line()
    weight = contour_sums.weights(C, STEP, SIZE)
    values = (C, STEP), weight, real, imag
    scale, estimate, _ = contour_sums.estimates(*values, np.array([2.5]))[:, 0]
    log_delta = scale + math.log(estimate)
    epsilon, is_found = contour_sums.epsilon_at(*values, log_delta, 2.2)
    assert is_found
    assert epsilon == pytest.approx(2.5, rel=1e-13)
    # Far from the line the sum is no delta.
    assert not contour_sums.epsilon_at(*values, log_delta, 60.0)[1]


def test_truncation_and_aliases_widen_the_ends() -> None:
    real, imag, error = line()
    weight = contour_sums.weights(C, STEP, SIZE)
    values = weight, np.zeros(SIZE), real, imag, 0.0 * error, np.array([2.0])
    order, gap = 6.0, 2.0
    aliases = np.array([[order, 0.5 * order * (1.0 + order), gap]])
    (narrow, _), (wide, _) = (
        contour_sums.deltas((C, STEP, rest), one, *values)
        for rest, one in ((0.0, aliases[:0]), (1e-3, aliases))
    )
    scale = narrow[0, 0]
    chernoff = 21.0 - order * 2.0 - order * math.log1p(1 / order) - math.log1p(order)
    alias = math.exp(chernoff - gap - scale) / -math.expm1(-gap)
    assert wide[3, 0] - narrow[3, 0] == pytest.approx(1e-3, rel=1e-9)
    assert narrow[1, 0] - wide[1, 0] == pytest.approx(1e-3 + alias, rel=1e-6)


def test_an_error_of_the_weight_counts_in_full() -> None:
    real, imag, error = line()
    weight = contour_sums.weights(C, STEP, SIZE)
    unsure = np.zeros(SIZE)
    unsure[0] = 1e-3
    none, at = np.zeros((0, 3)), np.array([2.0])
    found, _ = contour_sums.deltas(
        (C, STEP, 0.0), none, weight, unsure, real, imag, 0.0 * error, at
    )
    assert found[3, 0] - found[2, 0] == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_logarithms_hold_what_the_sum_may_be(shift: float) -> None:
    rng = np.random.default_rng(7)
    size = 10.0 ** rng.uniform(-8.0, 0.5, 200)
    angle = rng.uniform(-math.pi, math.pi, 200)
    real, imag = size * np.cos(angle), size * np.sin(angle)
    off = 10.0 ** rng.uniform(-16.0, -0.5, 200) * rng.choice([1.0, 1e-9], 200)
    log_real, log_imag, log_error = series.log_values(real, imag, off, shift)
    turn = rng.uniform(-math.pi, math.pi, 200)
    with mp.workdps(40):
        for k in range(200):
            near = mp.mpc(real[k], imag[k]) + mp.mpf(off[k]) * mp.expjpi(turn[k] / math.pi)
            truth = mp.log(1 + near * mp.exp(shift))
            assert mp.re(truth) <= log_real[k] + log_error[k]
            if log_error[k] < 0.5:
                assert abs(truth - mp.mpc(log_real[k], log_imag[k])) <= log_error[k]
