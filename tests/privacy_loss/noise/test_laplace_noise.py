"""Losses of Laplace noise in one and more dimensions and of sinh-normal noise, by mpmath."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.multivariate_laplace import bessel_of
from hockeystick.precision.profiles import sinh_normal_delta
from hockeystick.privacy_loss import LaplaceLoss, MultivariateLaplaceLoss, SinhNormalLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import UncertainEdges, exact_edges


@pytest.mark.parametrize("scale", [0.01, 0.5, 4.0, 1e5])
@pytest.mark.parametrize("c", [0.01, 2.0, 70.0])
def test_the_line_holds_the_closed_form(scale: float, c: float) -> None:
    loss, step = LaplaceLoss(scale), 0.37 * scale
    values = loss.line(c, step, 60)
    with mp.workdps(60):
        for k, truth in enumerate(loss.reference_line(c, step, 60)):
            turned = (values.imag[k] - truth.imag) / (2 * mp.pi)
            away = abs(turned - mp.nint(turned)) * 2 * mp.pi
            assert mp.hypot(values.real[k] - truth.real, away) <= values.error[k]
            assert values.real[k] <= values.real[0] + 2 * values.error[0] + values.error[k]
    assert loss.decay(c).exponent(1e3) == 0.0


# (scale, dimension): two dimensions, where the density rises to the ends; three, where it is cut
# off; many, at distances of both kinds.
NOISES = [(1.0, 2), (0.4, 3), (3 / 11, 11), (2.0, 11), (0.1, 101), (0.02, 4)]
each_noise = pytest.mark.parametrize(("scale", "dimension"), NOISES)


def distance(scale: float) -> Any:
    """Return e, of a scale read as a decimal."""
    return 1 / mp.mpf(repr(scale))


@pytest.mark.parametrize("dimension", [2, 3, 4, 11, 150, 401])
@pytest.mark.parametrize("half", ["0.001", "0.7", "40", "3000"])
def test_the_ratio_is_a_quotient_of_bessel_functions(dimension: int, half: str) -> None:
    with mp.workdps(30):
        a, order = mp.mpf(half), mp.mpf(dimension) / 2
        truth = (dimension - 1) / a * mp.besselk(order, a) / mp.besselk(order - 1, a)
        assert abs(bessel_of(dimension, a) / truth - 1) < mp.mpf(10) ** -27


def test_a_cell_as_narrow_as_a_billionth_keeps_its_digits() -> None:
    edges = np.array([0.3, 0.3 + 1e-9])
    masses = MultivariateLaplaceLoss(0.4, 3).cells(edges)
    with mp.workdps(40):
        a, bessel = mp.mpf("1.25"), mp.mpf("1.6") * mp.mpf("1.8")
        density = lambda t: mp.exp(a * t) * (bessel + 1 - t * t)  # noqa: E731
        ends = [mp.mpf(float(edge)) / (2 * a) for edge in edges]
        mass = mp.quad(density, ends) / mp.quad(density, [-1, 1])
        assert abs(masses.log_p[0] - mp.log(mass)) <= masses.error[0] < 1e-12


@each_noise
def test_uncertain_edges_are_covered_by_the_error(scale: float, dimension: int) -> None:
    loss = MultivariateLaplaceLoss(scale, dimension)
    given = exact_edges(loss.reach * np.linspace(-0.8, 0.8, 60))
    moved = 1e-7 * loss.reach
    unsure = given._replace(
        error=np.full_like(given.at, moved), width_error=np.full_like(given.width, 0.02)
    )
    wide = loss.uncertain_cells(unsure)
    for way in (1.0, -1.0):
        shift = way * moved * np.resize([1.0, -1.0, 0.3], given.at.size)
        other = loss.cells(given.at + shift)
        for one, two in ((wide.log_p, other.log_p), (wide.log_q, other.log_q)):
            assert (np.abs(one - two) <= wide.error + other.error).all()


def test_an_edge_next_to_an_end_that_is_not_known_makes_an_error_that_says_so() -> None:
    loss = MultivariateLaplaceLoss(1.0, 3)
    at = np.array([0.5, 1.0 - 1e-12, 1.0])
    edges = UncertainEdges(at, np.array([0.0, 1e-12, 0.0]), np.diff(at), np.full(2, 1e-15))
    assert loss.uncertain_cells(edges).error[1] == math.inf


@each_noise
def test_edges_some_ulps_from_an_end_are_moved_there_and_lose_no_mass(
    scale: float, dimension: int
) -> None:
    loss = MultivariateLaplaceLoss(scale, dimension)
    near = loss.reach * (1.0 - 2.0**-52 * np.array([400.0, 60.0, 31.0, 9.0, 2.0, 0.0, -2.0]))
    edges = np.concatenate((-near[::-1], near))
    masses = loss.cells(edges)
    for log in (masses.log_p, masses.log_q):
        assert math.fsum(np.exp(log)) == pytest.approx(1.0, abs=1e-11)
    # Of what is less likely than any float nothing need be known.
    assert (masses.error < math.inf)[masses.log_p > -900.0].all()
    assert loss.endpoint_tolerance >= 341 * 2.0**-52 * loss.reach


@pytest.mark.parametrize("order", [0.5, 3.0, 40.0])
def test_moments_are_quotients_of_bessel_functions(order: float) -> None:
    loss = MultivariateLaplaceLoss(3 / 11, 11)
    found = loss.cgf_bounds(order)
    with mp.workdps(30):
        a = distance(3 / 11) / 2
        bessel = 10 / a * mp.besselk(5.5, a) / mp.besselk(4.5, a)

        def total(b: Any) -> Any:
            rise = 2 / b * mp.besseli(5.5, b) * mp.gamma(6)
            return (2 / b) ** 4.5 * (bessel * mp.gamma(5) * mp.besseli(4.5, b) + rise)

        truth = mp.log(total(a * (1 + 2 * mp.mpf(order))) / total(a))
        assert abs(found.midpoint - truth) <= found.radius
    assert found.radius < 1e-5 * found.midpoint


# The last but one is at the end of the condition 1/sqrt(rho) <= width, with tails at their worst.
BENT = [("0.1", "40"), ("0.01", "10"), ("25", "3"), ("4", "0.5"), ("1e-6", "1e6")]
each_bent_noise = pytest.mark.parametrize(("rho", "width"), BENT)


def loss_of(rho: str, width: str) -> SinhNormalLoss:
    return SinhNormalLoss(float(rho), float(width))


@each_bent_noise
def test_a_perturbation_covers_every_other_reading_of_the_parameters(rho: str, width: str) -> None:
    half_unit = Fraction(1, 2**53)
    with mp.workdps(30):
        low, high = (loss_of(rho, width).delta(mp.one, perturbation) for perturbation in (-1, 1))
        for side in (-1, 1):
            for other in (-1, 1):
                read = (
                    Fraction(rho) * (1 + side * half_unit),
                    Fraction(width) * (1 + other * half_unit),
                )
                assert low < sinh_normal_delta(mp.one, *read) < high


@each_bent_noise
def test_moments_are_infinite_from_this_order_on(rho: str, width: str) -> None:
    loss = loss_of(rho, width)
    end = 1.0 / math.expm1(2.0 / loss.width)
    assert loss.cgf_bounds(end * (1.0 + 1e-9)).midpoint == math.inf
    assert loss.cgf_bounds(end * (1.0 - 1e-9)).radius < math.inf
    beyond = loss.cgf_estimate(end * 1.1)
    assert 600.0 < 1.1 * end * beyond.first_derivative - beyond.value < math.inf


@pytest.mark.parametrize(
    ("rho", "width", "c", "divergence"),
    [
        ("0.1", "40", 3.0, "0.404428217127572649765670185575"),
        ("0.1", "10", 0.2, "0.127069520380539714540031309384"),
    ],
)
def test_the_divergences_are_the_published_check_values(
    rho: str, width: str, c: float, divergence: str
) -> None:
    found = loss_of(rho, width).cgf_bounds(c)
    with mp.workdps(30):
        truth = mp.mpf(divergence) * mp.mpf(c)
        assert abs(found.midpoint - truth) <= found.radius < 1e-13 * found.midpoint
