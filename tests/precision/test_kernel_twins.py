"""Kernels of noise levels, narrow cells and minorants against their mpmath twins."""

import math
from itertools import pairwise, starmap

import numpy as np
import pytest

from hockeystick.kernels import noise_levels as levels
from hockeystick.kernels import normal_masses as kernel
from hockeystick.kernels import uniform_minorant as minorant
from hockeystick.numerics.multiprecision import mp
from tests.precision import twins


# By Gram and Schmidt on the points over 3: the diagonal, and the ratios of squares beside it.
@pytest.mark.parametrize(
    ("points", "most", "diagonal", "beside"),
    [
        ([0.5], 3, [1 / 6], [0.0]),
        ([-1.0, -1.0, 2.0], 3, [0.0, 1 / 3], [0.0, 2 / 9]),
        (
            [-3.0, -2.25, -0.5, 0.125, 0.125, 1.0, 2.75],
            5,
            [-1 / 12, -0.0796824293, 0.12701709291, -0.27479583283, -0.25190467993],
            [0.0, 0.3566468254, 0.41812591025, 0.13398115327, 0.23179052349],
        ),
    ],
)
def test_the_recurrence_is_that_of_the_orthogonal_polynomials(
    points: list[float], most: int, diagonal: list[float], beside: list[float]
) -> None:
    *found, used = levels.recurrence(np.array(points), 0.0, 3.0, most)
    assert used == len(diagonal)
    assert found[0][:used] == pytest.approx(diagonal, abs=1e-9)
    assert found[1][:used] == pytest.approx(beside, abs=1e-9)


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
        for j, truth in enumerate(starmap(twins.log_mass, pairwise(edges.tolist()))):
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


# Where the slope of the density changes its sign, on a grid that is far finer than 1 and 1/mu.
@pytest.mark.parametrize(
    ("p", "mu", "w", "modes"),
    [
        (0.01, 1.0, -6.0, (1, -1.0111197978, 0.0, 0.0)),
        (0.01, 1.0, 1.05, (1, -0.9953686666, 0.0, 0.0)),
        (0.01, 1.0, 7.0, (1, -0.9816779335, 0.0, 0.0)),
        (0.3, 0.66, -6.0, (1, -1.1250511989, 0.0, 0.0)),
        (0.3, 0.66, 1.05, (1, -0.3727584374, 0.0, 0.0)),
        (0.3, 0.66, 7.0, (1, 3.3396439642, 0.0, 0.0)),
        (1e-4, 4.0, -6.0, (1, -4.0, 0.0, 0.0)),
        (1e-4, 4.0, 1.05, (1, -4.0, 0.0, 0.0)),
        (1e-4, 4.0, 7.0, (2, -4.0, 28.0, 4.0291188365)),
    ],
)
def test_modes_are_all_the_modes(
    p: float, mu: float, w: float, modes: tuple[int, float, float, float]
) -> None:
    assert minorant.modes(p, mu, w) == pytest.approx(modes, abs=3e-9)
