"""Chebyshev moments, Gauss's rule and sums over noise levels by the kernel, against mpmath."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hockeystick.kernels import noise_levels as kernel
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import noise_levels as twin

# Eighths between -3 and 3: their differences and positions are exact.
eighths = st.lists(st.integers(-24, 24), min_size=1, max_size=30).map(
    lambda points: np.array(sorted(points)) / 8.0
)


@given(eighths, st.integers(1, 8))
@example(np.array([0.5]), 3)
@example(np.array([-1.0, -1.0, 2.0]), 3)
def test_the_recurrence_is_that_of_the_orthogonal_polynomials(
    points: np.ndarray[tuple[int], np.dtype[np.float64]], most: int
) -> None:
    diagonal, beside, used = kernel.recurrence(points, 0.0, 3.0, most)
    with mp.workdps(40):
        exact = twin.recurrence(list(points), mp.mpf(0), mp.mpf(3), most)
    assert used == exact[2]
    assert diagonal[:used] == pytest.approx([float(one) for one in exact[0]], abs=1e-9)
    assert beside[:used] == pytest.approx([float(one) for one in exact[1]], abs=1e-9)


@given(eighths, st.integers(0, 24).map(lambda width: width / 8.0))
def test_cells_end_where_the_next_point_is_too_far(
    points: np.ndarray[tuple[int], np.dtype[np.float64]], width: float
) -> None:
    assert kernel.cell_ends(points, width).tolist() == twin.cell_ends(list(points), width)


@pytest.mark.parametrize("y", [0.0, 0.2, 1.0, 3.0])
def test_the_exponents_of_groups_add_up_run_by_run(y: float) -> None:
    width, mass = np.array([0.2, 1.0, 1.5, 0.7, 1.3]), np.array([0.3, 0.5, 0.4, 0.1, 0.6])
    ends, runs = np.array([2, 3, 5]), np.array([100.0, 1.0, 7.0])
    found = kernel.total_exponent(width, mass, ends, runs, y)
    with mp.workdps(25):
        truth = twin.total_exponent(list(width), list(mass), list(ends), list(runs), mp.mpf(y))
        # All of y s/2 is below 2.55, where only the series of sinc is cut, by x^6 / 5040.
        assert truth * (1 - 1e-5) - 1e-12 <= found <= truth * (1 + 1e-12)


def test_a_span_that_is_too_long_has_no_number() -> None:
    one = np.ones(1)
    assert np.isnan(kernel.total_cgf_estimate(0.01, one, one, True, 5000.0)).all()
