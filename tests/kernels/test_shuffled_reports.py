"""Binomial masses and those of the stronger clones' pair: against mpmath."""

import math

import numpy as np
import pytest

from hockeystick.kernels import shuffled_reports as fast
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import shuffled_reports as slow


@pytest.mark.parametrize(
    ("trials", "odds"), [(0, 0.5), (1, 3.0), (40, 0.2), (300, 1.0), (500, 1e-3), (200, 40.0)]
)
def test_binomial_masses_are_right_to_a_few_units_in_the_last_place_per_step(
    trials: int, odds: float
) -> None:
    first, mass = fast.binomial(trials, odds)
    with mp.workdps(40):
        truth = slow.binomial(trials, mp.mpf(odds))
        left_out = [p for k, p in enumerate(truth) if not first <= k < first + mass.size]
        assert mp.fsum(left_out) <= trials * fast.RAREST
        for k, found in enumerate(mass, first):
            assert abs(found / truth[k] - 1) <= 2.0**-52 * (16.0 * mass.size + 64.0)


def test_what_is_rarer_than_the_least_is_left_out_on_both_sides() -> None:
    first, mass = fast.binomial(10**6, 1.0)
    assert first > 0
    assert first + mass.size < 10**6
    assert max(mass[0], mass[-1]) < fast.RAREST
    assert abs(float(mass.sum()) - 1.0) < 1e-12


@pytest.mark.parametrize(
    ("totals", "common", "difference"), [(1, 0.5, 0.5), (7, 0.3, 0.6), (40, 1.0, 0.1)]
)
def test_outputs_fall_into_the_cells_of_their_losses(
    totals: int, common: float, difference: float
) -> None:
    cuts = np.tanh(0.5 * np.array([-1.3, -0.4, -0.05, 0.03, 0.6, 1.7]))
    given = np.array([[float(totals)], [common], [difference]])
    p, q, terms = fast.clone_masses(given[0], given[1], given[2], cuts)
    with mp.workdps(40):
        masses = slow.clone_masses(totals, mp.mpf(common), mp.mpf(difference))
        expected = [[mp.zero, mp.zero] for _ in range(cuts.size + 1)]
        for one, other in masses:
            cell = int(np.searchsorted(cuts, math.tanh(0.5 * float(mp.log(one / other)))))
            expected[cell][0] += one
            expected[cell][1] += other
        for k, (one, other) in enumerate(expected):
            assert p[k] == pytest.approx(float(one), rel=1e-13, abs=1e-300)
            assert q[k] == pytest.approx(float(other), rel=1e-13, abs=1e-300)
    assert terms.sum() == totals + 1


def test_masses_of_several_totals_add_up() -> None:
    cuts = np.linspace(-0.5, 0.5, 9)
    each = [
        fast.clone_masses(np.array([t]), np.array([0.2]), np.array([0.7]), cuts) for t in (3.0, 8.0)
    ]
    both = fast.clone_masses(np.array([3.0, 8.0]), np.full(2, 0.2), np.full(2, 0.7), cuts)
    for k in range(3):
        assert both[k] == pytest.approx(each[0][k] + each[1][k], rel=1e-14)
