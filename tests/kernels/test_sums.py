"""Sums in compiled loops: along a line, of integers, counts and noise levels, against mpmath."""

import math
from typing import Any

import numpy as np
import pytest

from hockeystick.kernels import comparison_runs as kernel
from hockeystick.kernels import contour_sums, noise_levels, series
from hockeystick.kernels import shuffled_reports as counts
from hockeystick.kernels.integer_sums import LANES, add_rounded
from hockeystick.numerics.multiprecision import mp
from tests.precision import twins as twin

C, STEP, SIZE = 3.0, 0.5, 40


Z = C + STEP * 1j * np.arange(SIZE)
# K of a Gaussian of mu = 1 along a line, an error of it, and weights.
K = 0.5 * Z * (1.0 + Z)
LINE = K.real.copy(), K.imag.copy(), np.full(SIZE, 1e-13)
WEIGHT = contour_sums.weights(C, STEP, SIZE)


def exact(epsilon: float) -> tuple[mp.mpf, mp.mpf]:
    found = slope = mp.zero
    for k in range(SIZE):
        z = mp.mpc(C, STEP * k)
        term = mp.exp(z * (1 + z) / 2 - mp.mpf(epsilon) * z) / (z * (1 + z)) * STEP / mp.pi
        term = term / 2 if k == 0 else term
        found, slope = found + mp.re(term), slope - mp.re(term * z)
    return found, slope


@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.3, 2.0, 3.5, 6.0])
def test_the_sum_is_within_its_error_of_that_by_mpmath(epsilon: float) -> None:
    real, imag, error = LINE
    none, nothing = np.zeros((0, 2)), np.zeros(SIZE)
    at = np.array([epsilon])
    found, growth = contour_sums.deltas(
        (C, STEP, 0.0), none, WEIGHT, nothing, real, imag, error, at
    )
    scale, lower, estimate, upper, slope = found[:, 0]
    with mp.workdps(40):
        truth, change = exact(epsilon)
        unit = mp.exp(scale)
        assert lower * unit <= truth <= upper * unit
        assert estimate == pytest.approx(float(truth / unit), rel=1e-9, abs=1e-13)
        assert slope == pytest.approx(float(change / unit), rel=1e-9, abs=1e-12)
    rough = contour_sums.estimates((C, STEP), WEIGHT, real, imag, at)
    assert (rough == found[[0, 2, 4]]).all()
    # What K may err by is all but the whole of the error.
    assert 1e-15 < (upper - lower) / 2 < 1e-12
    assert growth[0] == pytest.approx(1.0, abs=1e-11)


def test_truncation_and_aliases_widen_the_ends() -> None:
    real, imag, error = LINE
    values = WEIGHT, np.zeros(SIZE), real, imag, 0.0 * error, np.array([2.0])
    gap = 2.0
    order = C + gap * STEP / (2.0 * math.pi)
    k = 0.5 * order * (1.0 + order)
    (narrow, _), (wide, _) = (
        contour_sums.deltas((C, STEP, rest), one, *values)
        for rest, one in ((0.0, np.zeros((0, 2))), (1e-3, np.array([[order, k]])))
    )
    scale = narrow[0, 0]
    chernoff = k - order * 2.0 - order * math.log1p(1 / order) - math.log1p(order)
    alias = math.exp(chernoff - gap - scale) / -math.expm1(-gap)
    assert wide[3, 0] - narrow[3, 0] == pytest.approx(1e-3, rel=1e-9)
    assert narrow[1, 0] - wide[1, 0] == pytest.approx(1e-3 + alias, rel=1e-6)


def test_an_error_of_the_weight_counts_in_full() -> None:
    real, imag, error = LINE
    unsure = np.zeros(SIZE)
    unsure[0] = 1e-3
    none, at = np.zeros((0, 2)), np.array([2.0])
    found, _ = contour_sums.deltas(
        (C, STEP, 0.0), none, WEIGHT, unsure, real, imag, 0.0 * error, at
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


ROWS = 5


def _added(rows: Any, scales: Any, weights: Any) -> tuple[Any, Any]:
    sums, squares = np.zeros((len(weights), rows.shape[1])), np.zeros((len(rows), LANES))
    add_rounded(rows, scales, weights, sums, squares)
    return sums, squares.sum(axis=1)


@pytest.mark.parametrize("entries", [0, 1, LANES - 1, LANES, LANES + 1, 1024, 1025, 2500])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_and_squares_are_those_of_pythons_integers(dtype: Any, entries: int) -> None:
    source = np.random.default_rng(entries)
    rows = source.standard_normal((ROWS, entries)).astype(dtype)
    scales = source.uniform(0, 2.0**20, ROWS)
    weights = np.array([[1.0, 1, 1, 1, 1], [0, 1, 0, 0, 1], [0, 0, 0, 0, 0]])
    whole = [
        [round(one * scale) for one in row]
        for row, scale in zip(rows.tolist(), scales, strict=True)
    ]
    sums, squares = _added(rows, scales, weights)
    for found, chosen in zip(sums, weights, strict=True):
        kept = [row for row, weight in zip(whole, chosen, strict=True) if weight]
        assert found.tolist() == [sum(row[place] for row in kept) for place in range(entries)]
    assert squares.tolist() == [sum(one * one for one in row) for row in whole]


def test_halves_go_to_even_integers_and_what_is_no_number_is_in_no_other_sum() -> None:
    halves, _ = _added(
        np.array([[0.5, 1.5, -2.5, 0.49999999999999994]]), np.ones(1), np.ones((1, 1))
    )
    assert halves.tolist() == [[0, 2, -2, 0]]
    rows = np.array([[np.nan, 1.0], [np.inf, 1.0], [3.0, 4.0]])
    sums, squares = _added(rows, np.ones(3), np.array([[0.0, 0.0, 1.0]]))
    assert sums.tolist() == [[3, 4]]
    assert not (squares[:2] <= 2.0**44).any()
    assert squares[2] == 25


@pytest.mark.parametrize("comparisons", [1, 40])
def test_floats_are_above_the_twin_by_no_more_than_is_said(comparisons: int) -> None:
    rng = np.random.default_rng(comparisons)
    places, count = 30, 12
    gain = rng.uniform(0.0, 1e-3, (count, places)) * (rng.random((count, places)) < 0.4)
    starts, offsets = rng.integers(0, 20, count), rng.integers(-40, 41, count)
    spans = np.stack([np.arange(count), starts, starts + rng.integers(0, 11, count), offsets], 1)
    low = rng.uniform(0.0, 1.0, count) * rng.choice([1.0, 1e-30, 0.0], count)
    high = (1.0 - low) * rng.uniform(0.0, 1.0, count)
    found = kernel.run_excess(gain, spans, low, high, 42, comparisons)
    with mp.workdps(40):
        exact = twin.run_excess(
            [list(map(mp.mpf, row)) for row in gain.tolist()],
            [tuple(row) for row in spans.tolist()],
            [(mp.mpf(one), mp.mpf(other)) for one, other in zip(low, high, strict=True)],
            comparisons,
        )
        for one, truth in zip(found.tolist(), exact, strict=True):
            most = truth * (1 + comparisons * mp.mpf(2) ** -49) + 2 * comparisons * kernel.LEAST
            assert truth <= one <= most
    assert len(set(found.tolist())) > 5


@pytest.mark.parametrize(
    ("trials", "odds"), [(0, 0.5), (1, 3.0), (40, 0.2), (300, 1.0), (500, 1e-3), (200, 40.0)]
)
def test_binomial_masses_are_right_to_a_few_units_in_the_last_place_per_step(
    trials: int, odds: float
) -> None:
    first, mass = counts.binomial(trials, odds)
    with mp.workdps(40):
        truth = twin.binomial(trials, mp.mpf(odds))
        left_out = [p for k, p in enumerate(truth) if not first <= k < first + mass.size]
        assert mp.fsum(left_out) <= trials * counts.RAREST
        for k, found in enumerate(mass, first):
            assert abs(found / truth[k] - 1) <= 2.0**-52 * (16.0 * mass.size + 64.0)


@pytest.mark.parametrize(
    ("totals", "common", "difference"), [(1, 0.5, 0.5), (7, 0.3, 0.6), (40, 1.0, 0.1)]
)
def test_outputs_fall_into_the_cells_of_their_losses(
    totals: int, common: float, difference: float
) -> None:
    cuts = np.tanh(0.5 * np.array([-1.3, -0.4, -0.05, 0.03, 0.6, 1.7]))
    given = np.array([[float(totals)], [common], [difference]])
    p, q, terms = counts.clone_masses(given[0], given[1], given[2], cuts)
    with mp.workdps(40):
        more = [common + 2 * mp.mpf(difference) * x / totals for x in range(totals + 1)]
        expected = [[mp.zero, mp.zero] for _ in range(cuts.size + 1)]
        for x, mass in enumerate(twin.binomial(totals, mp.one)):
            one, other = mass * more[x], mass * more[totals - x]
            cell = int(np.searchsorted(cuts, math.tanh(0.5 * float(mp.log(one / other)))))
            expected[cell][0] += one
            expected[cell][1] += other
        for k, (one, other) in enumerate(expected):
            assert p[k] == pytest.approx(float(one), rel=1e-13, abs=1e-300)
            assert q[k] == pytest.approx(float(other), rel=1e-13, abs=1e-300)
    assert terms.sum() == totals + 1


def test_as_many_nodes_as_points_are_the_points_with_equal_weights() -> None:
    points = np.array([-0.3, -0.1, 0.0, 0.2, 0.7, 0.9])
    diagonal, beside, used = noise_levels.recurrence(points, 0.3, 0.6, points.size)
    assert used == points.size
    off = np.sqrt(beside[1:])
    places, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    assert 0.3 + 0.6 * places == pytest.approx(points, abs=1e-12)
    assert vectors[0] ** 2 == pytest.approx(np.full(points.size, 1 / points.size), rel=1e-10)
