"""Kernels of noise levels, narrow cells and minorants against their mpmath twins."""

import math

import numpy as np
import pytest

from hockeystick.kernels import noise_levels as levels
from hockeystick.kernels import normal_masses as kernel
from hockeystick.kernels import uniform_minorant as minorant
from hockeystick.numerics.multiprecision import mp
from tests.precision import twins


@pytest.mark.parametrize(
    ("points", "most"),
    [([0.5], 3), ([-1.0, -1.0, 2.0], 3), ([-3.0, -2.25, -0.5, 0.125, 0.125, 1.0, 2.75], 5)],
)
def test_the_recurrence_is_that_of_the_orthogonal_polynomials(
    points: list[float], most: int
) -> None:
    diagonal, beside, used = levels.recurrence(np.array(points), 0.0, 3.0, most)
    with mp.workdps(40):
        exact = twins.recurrence([mp.mpf(x) for x in points], mp.mpf(0), mp.mpf(3), most)
    assert used == exact[2]
    assert diagonal[:used] == pytest.approx([float(one) for one in exact[0]], abs=1e-9)
    assert beside[:used] == pytest.approx([float(one) for one in exact[1]], abs=1e-9)


@pytest.mark.parametrize("y", [0.0, 0.2, 1.0, 3.0])
def test_the_exponents_of_groups_add_up_run_by_run(y: float) -> None:
    width, mass = np.array([0.2, 1.0, 1.5, 0.7, 1.3]), np.array([0.3, 0.5, 0.4, 0.1, 0.6])
    ends, runs = np.array([2, 3, 5]), np.array([100.0, 1.0, 7.0])
    found = levels.total_exponent(width, mass, ends, runs, y)
    with mp.workdps(25):
        truth = twins.total_exponent(list(width), list(mass), list(ends), list(runs), mp.mpf(y))
        # All of y s/2 is below 2.55, where only the series of sinc is cut, by x^6 / 5040.
        assert truth * (1 - 1e-5) - 1e-12 <= found <= truth * (1 + 1e-12)


ULP = 2.0**-52


@pytest.mark.parametrize(
    ("centre", "half"),
    [
        (1.0 / 0.1, 0.1),
        (math.nextafter(10.0, 0.0), 0.1),
        (0.0, 0.1),
        (2.5, 1e-12),
        (731.0, 3e-5),
        (9e6, 1e-8),
    ],
)
def test_a_narrow_cell_has_its_mass_within_its_error(centre: float, half: float) -> None:
    value, error = kernel.narrow(centre, half, 0.0, 0.0)
    with mp.workdps(40):
        # The cell between two floats is what the kernel is asked for: its ends are exact.
        assert abs(value - twins.narrow(mp.mpf(centre), mp.mpf(half))) <= error
    assert error <= 1e-13 * (1.0 + centre * centre)


@pytest.mark.parametrize(("shift", "wider"), [(1e-6, 0.0), (0.0, 1e-6)])
@pytest.mark.parametrize("half", [1e-3, 0.1])
@pytest.mark.parametrize("centre", [0.5, 9.0, 40.0])
def test_a_cell_that_is_moved_or_widened_is_covered_and_hardly_more(
    centre: float, half: float, shift: float, wider: float
) -> None:
    value, error = kernel.narrow(centre, half, shift, wider)
    with mp.workdps(30):
        truth = twins.narrow(mp.mpf(centre) + shift, mp.mpf(half) * (1 + mp.mpf(wider)))
        assert 0.3 * error <= abs(truth - value) <= error
    assert kernel.narrow(centre, half, 0.0, 0.06)[1] == math.inf


def test_neighbouring_cells_have_their_masses_within_their_errors() -> None:
    edges = np.array([-3e8, -40.0, -2.0, -1.9, -1.75, 0.0, 0.125, 0.25, 7.0, 7.0625, 3e8, 4e8])
    nothing = np.zeros(edges.size)
    width = np.diff(edges)
    value, error, wide = kernel.log_masses(edges, nothing, width, np.zeros(width.size))
    assert wide.tolist() == [*(width > 0.2).tolist()[:-1], False]
    with mp.workdps(30):
        for j, truth in enumerate(twins.log_masses(edges.tolist())):
            if math.isinf(value[j]) and not wide[j]:
                assert truth < -1e15
            elif not wide[j]:
                assert abs(value[j] - truth) <= error[j] + ULP * abs(edges[j]) ** 2


@pytest.mark.parametrize("half", [1e-6, 1e-3, 0.03, 0.1])
@pytest.mark.parametrize("b", [0.0, 1e-5, 0.4, 0.999])
def test_the_moments_near_the_middle_are_integrals(b: float, half: float) -> None:
    terms = kernel.number_of_terms(half)
    flat = kernel.power_series(b * b, 0)
    found = kernel.low_moments(b * b, half, flat, terms)
    with mp.workdps(30):
        for n in (0, 6):
            truth = twins.power_series(mp.mpf(b * b), n)
            assert abs(kernel.power_series(b * b, n) - truth) <= 8 * ULP * truth
        truth = twins.low_moments(mp.mpf(b * b), mp.mpf(half))
        assert abs(found - truth) <= 2.0 * kernel.term_after(half, terms) + 16 * ULP * abs(truth)


@pytest.mark.parametrize("half", [1e-6, 0.03, 0.1])
@pytest.mark.parametrize("b", [1.0, 1.7])
def test_the_moments_further_out_are_integrals(b: float, half: float) -> None:
    terms = kernel.number_of_terms(half)
    found = kernel.high_moments(b, half, terms)
    with mp.workdps(20):
        truth = twins.low_moments(mp.mpf(b) ** 2, mp.mpf(half))
        assert abs(found - truth) <= 2.0 * kernel.term_after(half, terms) + 4 * ULP


@pytest.mark.parametrize(("p", "mu"), [(0.01, 1.0), (0.3, 0.66), (1e-4, 4.0)])
@pytest.mark.parametrize("w", [-6.0, 1.05, 7.0])
def test_modes_are_all_the_modes(p: float, mu: float, w: float) -> None:
    with mp.workdps(15):
        assert minorant.modes(p, mu, w) == pytest.approx(
            [float(one) for one in twins.modes(p, mu, w)], abs=3e-9
        )
