"""Sinh-normal noise on vectors: a proven bound, what of the paper's claim fails, and the draw."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.mechanisms import SinhNormal
from hockeystick.release import sinh_normal_divergences, sinh_normal_vector
from tests.release.bits import none_left

CASES = [(0.1, 40.0), (0.1, 10.0), (0.5, 5.0), (0.04, 5.0), (0.9, 2.0), (3.0, 1.0)]


def divergence(rho: Any, width: Any, order: Any, shift: Any) -> float:
    """Return one entry's divergence by quadrature in the noise's own unit."""

    def log_density(z: Any) -> Any:
        square = rho * width**2 * np.sinh(z / width) ** 2
        return 0.5 * math.log(rho / math.pi) + np.log(np.cosh(z / width)) - square

    def both(z: Any) -> Any:
        return order * log_density(z - shift) + (1 - order) * log_density(z)

    reach = width * math.asinh(40 / math.sqrt(2 * rho) / width)
    points = np.linspace(-reach, reach + shift, 20_001)
    top = float(both(points).max())
    total = float(integrate.simpson(np.exp(both(points) - top), x=points))
    return float((top + math.log(total)) / (order - 1))


@pytest.mark.parametrize(("rho", "width"), CASES)
@pytest.mark.parametrize("entries", [1, 2, 9])
def test_the_bound_covers_a_shift_however_it_is_spread(rho: Any, width: Any, entries: Any) -> None:
    found = sinh_normal_divergences(SinhNormal(rho, width)).divergences
    for order, bound in found[:: len(found) // 5]:
        own = entries * divergence(rho, width, order, 1 / math.sqrt(entries))
        assert own <= bound * (1 + 1e-9)


def test_a_shift_that_is_not_spread_evenly_is_covered() -> None:
    shifts = np.array([0.9, 0.4, 0.1, 0.1])
    assert (shifts**2).sum() <= 1
    for order, bound in sinh_normal_divergences(SinhNormal(0.1, 6.0)).divergences[::16]:
        assert sum(divergence(0.1, 6.0, order, shift) for shift in shifts) <= bound


@pytest.mark.parametrize("entries", [1, 4, 64])
@pytest.mark.parametrize(("rho", "width"), [(0.1, 10.0), (0.5, 3.0)])
def test_what_is_charged_covers_vectors_whose_cost_is_exact(
    rho: Any, width: Any, entries: Any
) -> None:
    bound = sinh_normal_divergences(SinhNormal(rho, width))
    spread = SinhNormal(rho / entries, width * math.sqrt(entries)) ** entries
    for delta in (1e-2, 1e-5, 1e-9):
        assert hs.epsilon(spread, delta).lower <= hs.epsilon(bound, delta).upper


def test_what_is_charged_is_the_bound_for_vectors() -> None:
    account, noise = hs.Accountant(), SinhNormal(0.3, 5)
    sinh_normal_vector(noise, [1.0, 2.0], 1, charge=account)
    assert hs.epsilon(account.plan, 1e-5).upper == (
        hs.epsilon(sinh_normal_divergences(noise), 1e-5).upper
    )


@pytest.mark.parametrize(
    ("budget", "error"),
    [
        (hs.RenyiDP({2.0: 0.01}), BudgetExhausted),
        (hs.ApproxDP(epsilon=0.1, delta=1e-6), IncompatibleError),
    ],
)
def test_a_filter_that_refuses_leaves_nothing_released(budget: Any, error: Any) -> None:
    charge = hs.calibration.Filter(budget)
    with pytest.raises(error):
        sinh_normal_vector(SinhNormal(0.3, 5), [1.0], 1, charge=charge, bits=none_left)


@pytest.mark.parametrize(
    "mechanism",
    [hs.Gaussian(1), SinhNormal(math.inf, 3), SinhNormal(10.0, 0.4), SinhNormal(0.1, 1e13)],
)
def test_noise_that_the_bound_does_not_cover_is_refused(mechanism: Any) -> None:
    with pytest.raises(ParameterError, match=r"^mechanism"):
        sinh_normal_divergences(mechanism)
    with pytest.raises(ParameterError, match=r"^mechanism"):
        sinh_normal_vector(mechanism, [1.0], 1, bits=none_left)
