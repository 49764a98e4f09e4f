"""Sinh-normal noise on vectors: a proven bound, what of the paper's claim fails, and the draw."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.mechanisms import SinhNormal
from hockeystick.release import sinh_normal, sinh_normal_divergences, sinh_normal_vector
from tests.release.bits import none_left, seeded

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


@pytest.mark.parametrize(("rho", "width"), CASES[:3])
def test_the_bound_is_near_one_entrys_own_divergence(rho: Any, width: Any) -> None:
    found = sinh_normal_divergences(SinhNormal(rho, width)).divergences
    for order, bound in found[:: len(found) // 5]:
        assert bound <= 1.15 * divergence(rho, width, order, 1.0)


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
    """A shift of 1/sqrt(n) in each of n entries is n runs of a scaled mechanism."""
    bound = sinh_normal_divergences(SinhNormal(rho, width))
    spread = SinhNormal(rho / entries, width * math.sqrt(entries)) ** entries
    for delta in (1e-2, 1e-5, 1e-9):
        assert hs.epsilon(spread, delta).lower <= hs.epsilon(bound, delta).upper


@pytest.mark.parametrize(
    ("rho", "width", "epsilon"), [(0.1, 10.0, 0), (0.1, 5.0, 0), (0.5, 3, 0.5)]
)
def test_the_account_of_one_number_is_no_bound_for_vectors(
    rho: Any, width: Any, epsilon: Any
) -> None:
    one = SinhNormal(rho, width)
    spread = SinhNormal(rho / 16, width * 4) ** 16
    assert hs.delta(spread, epsilon).lower > hs.delta(one, epsilon).upper


def test_at_the_same_variance_the_gaussian_costs_many_entries_less() -> None:
    rho, width = 0.1, 5.0
    arsinh = stats.norm(scale=math.sqrt(0.5 / rho)).expect(
        lambda n: (width * math.asinh(n / width)) ** 2
    )
    spread = SinhNormal(rho / 64, width * 8) ** 64
    same = hs.Gaussian(math.sqrt(arsinh))
    for delta in (0.1, 1e-2, 1e-5, 1e-9):
        assert hs.epsilon(same, delta).upper < hs.epsilon(spread, delta).lower


def test_wide_noise_costs_what_gaussian_noise_does() -> None:
    found = sinh_normal_divergences(SinhNormal(0.25, 1e6)).divergences
    assert all(0.25 * order <= bound <= 0.25 * order * (1 + 1e-3) for order, bound in found[:40])


def test_more_noise_costs_less_at_every_order() -> None:
    least = dict(sinh_normal_divergences(SinhNormal(0.2, 10)).divergences)
    for other in (SinhNormal(0.3, 10), SinhNormal(0.2, 8)):
        more = dict(sinh_normal_divergences(other).divergences)
        shared = least.keys() & more.keys()
        assert len(shared) > 5
        assert all(least[order] < more[order] for order in shared)


def test_one_entry_is_drawn_as_a_number_is() -> None:
    noise = SinhNormal(0.3, 5)
    one, many = (
        release(noise, [2.5], 1, bits=seeded(1)) for release in (sinh_normal, sinh_normal_vector)
    )
    assert np.array_equal(one, many)


def test_the_noise_covers_what_rounding_to_the_grid_adds_to_the_distance() -> None:
    """With the same bits, an entry of 100 has noise for 10 steps more than S, and one for 1."""
    noise = SinhNormal(0.3, 5)
    one = sinh_normal(noise, [0.0], 1, bits=seeded(1))[0]
    many = sinh_normal_vector(noise, np.zeros(100), 1, bits=seeded(1))[0]
    assert abs(one) > 0.3
    assert many / one - 1 == pytest.approx(9 / 2**20, rel=0.2)


def test_each_entry_has_the_noise_of_its_width_and_rho() -> None:
    rho, width, sensitivity = 0.3, 2.0, 4.0
    drawn = sinh_normal_vector(
        SinhNormal(rho, width), np.full(400, 7.0), sensitivity, bits=seeded(2)
    )
    normal = np.sinh((drawn - 7) / (width * sensitivity)) * width * math.sqrt(2 * rho)
    assert stats.kstest(normal, "norm").pvalue > 1e-6
    assert 1e-6 < stats.chi2.sf(float((normal**2).sum()), 400) < 1 - 1e-6


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
    """By a filter of divergences; one of epsilon and delta has no account of a few orders."""
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
