"""The loss of multivariate Laplace noise: against quadrature over the length of the noise."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.multivariate_laplace import kappa_of
from hockeystick.privacy_loss import (
    DominatingPair,
    MultivariateLaplaceLoss,
    NoAnalysisError,
    NoiselessLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.core.uncertain_endpoints import UncertainEdges, exact_edges

# (scale, dimension): two dimensions, where the density rises to the ends; three, where it is cut
# off; many, at distances of both kinds.
NOISES = [(1.0, 2), (0.4, 3), (3 / 11, 11), (2.0, 11), (0.1, 101), (0.02, 4)]
each_noise = pytest.mark.parametrize(("scale", "dimension"), NOISES)


def distance(scale: float) -> Any:
    """Return e, of a scale read as a decimal."""
    return 1 / mp.mpf(repr(scale))


def below(c: Any, n: int) -> Any:
    """Return how likely the cosine of a uniform direction in R^n is below c."""
    half = mp.mpf(n - 1) / 2
    return mp.re(mp.betainc(half, half, 0, (1 + c) / 2, regularized=True))


def mean_over_lengths(function: Any, start: Any, n: int) -> Any:
    """Return the mean of a function of a Gamma(n) length above a start."""
    spread = mp.sqrt(n)
    cuts = [start + 2 * spread * k for k in range(6)] + [max(start, n) + 40 * spread + 90]
    return mp.quad(lambda r: mp.exp((n - 1) * mp.log(r) - r - mp.loggamma(n)) * function(r), cuts)


def own_tail(level: Any, scale: float, n: int) -> Any:
    """Return ``P(L > l)``: where ``|u + y| - |y| > l`` of a noise y at angle c to u."""
    e = distance(scale)
    start = (e - level) / 2
    near = mp.gammainc(n, 0, start, regularized=True)
    term = lambda r: below(-(2 * r * level + level**2 - e**2) / (2 * r * e), n)  # noqa: E731
    return near + mean_over_lengths(term, start, n)


def other_tail(level: Any, scale: float, n: int) -> Any:
    """Return ``Q(L > l)``: where ``|x| - |x - u| > l`` of a noise x at angle c to u."""
    e = distance(scale)
    term = lambda r: below(-(2 * r * level - level**2 + e**2) / (2 * r * e), n)  # noqa: E731
    return mean_over_lengths(term, (e + level) / 2, n)


@each_noise
def test_the_cells_are_those_of_quadrature_over_the_length(scale: float, dimension: int) -> None:
    loss = MultivariateLaplaceLoss(scale, dimension)
    edges = loss.reach * np.array([-0.9, -0.2, 0.55, 0.97])
    masses = loss.cells(edges)
    with mp.workdps(40):
        for tail, log in ((own_tail, masses.log_p), (other_tail, masses.log_q)):
            above = [tail(mp.mpf(float(edge)), scale, dimension) for edge in edges]
            for k in range(edges.size - 1):
                mass = above[k] - above[k + 1]
                # A difference of tails has no more digits than they have.
                slack = mp.mpf(10) ** -24 * above[k] / mass
                assert abs(log[k] - mp.log(mass)) <= masses.error[k] + slack
    assert masses.error.max() < 1e-11


@pytest.mark.parametrize(
    ("dimension", "multiplier", "epsilon", "truth"),
    [
        (11, 3, 1, "0.16321"),
        (11, 3, 2, "0.02475"),
        (101, 10, 1, "0.12847"),
        (101, 10, 2, "0.02052"),
    ],
)
def test_known_values_of_delta(dimension: int, multiplier: int, epsilon: int, truth: str) -> None:
    found = hs.delta(hs.mechanisms.MultivariateLaplace(multiplier / dimension, dimension), epsilon)
    assert isinstance(found, hs.Certified)
    assert f"{found.estimate:.5f}" == truth
    assert found.relative_width < 1e-13


@pytest.mark.parametrize("dimension", [2, 3, 4, 11, 150, 401])
@pytest.mark.parametrize("half", ["0.001", "0.7", "40", "3000"])
def test_kappa_is_a_quotient_of_bessel_functions(dimension: int, half: str) -> None:
    with mp.workdps(30):
        a, order = mp.mpf(half), mp.mpf(dimension) / 2
        truth = (dimension - 1) / a * mp.besselk(order, a) / mp.besselk(order - 1, a)
        assert abs(kappa_of(dimension, a) / truth - 1) < mp.mpf(10) ** -27


@each_noise
def test_the_masses_add_up_on_any_grid(scale: float, dimension: int) -> None:
    loss = MultivariateLaplaceLoss(scale, dimension)
    for count in (3, 40, 3001):
        edges = np.linspace(-loss.reach, loss.reach, count)
        edges = np.concatenate(([-math.inf], edges[1:-1], [math.inf]))
        masses = loss.cells(edges)
        for log in (masses.log_p, masses.log_q):
            assert math.fsum(np.exp(log)) == pytest.approx(1.0, abs=1e-11)
        # The loss of each cell is between its ends.
        mean, slack = masses.log_p - masses.log_q, 2.0 * masses.error
        sure = slack < 1.0
        assert (mean + slack >= edges[:-1])[sure].all()
        assert (mean - slack <= edges[1:])[sure].all()


def test_a_cell_as_narrow_as_a_billionth_keeps_its_digits() -> None:
    edges = np.array([0.3, 0.3 + 1e-9])
    masses = MultivariateLaplaceLoss(0.4, 3).cells(edges)
    with mp.workdps(40):
        a, kappa = mp.mpf("1.25"), mp.mpf("1.6") * mp.mpf("1.8")
        density = lambda t: mp.exp(a * t) * (kappa + 1 - t * t)  # noqa: E731
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
        kappa = 10 / a * mp.besselk(5.5, a) / mp.besselk(4.5, a)

        def total(b: Any) -> Any:
            rise = 2 / b * mp.besseli(5.5, b) * mp.gamma(6)
            return (2 / b) ** 4.5 * (kappa * mp.gamma(5) * mp.besseli(4.5, b) + rise)

        truth = mp.log(total(a * (1 + 2 * mp.mpf(order))) / total(a))
        assert abs(found.midpoint - truth) <= found.radius
    assert found.radius < 1e-5 * found.midpoint


def test_in_one_dimension_it_is_laplace_noise() -> None:
    for scale in (0.3, 2.0, 0.0, math.inf):
        assert dominating_pair(hs.mechanisms.MultivariateLaplace(scale, 1)) == dominating_pair(
            hs.Laplace(scale)
        )


def test_without_noise_everything_shows_and_with_infinite_noise_nothing() -> None:
    assert dominating_pair(hs.mechanisms.MultivariateLaplace(math.inf, 3)) == DominatingPair(
        None, None
    )
    shown = dominating_pair(hs.mechanisms.MultivariateLaplace(0.0, 3))
    assert shown == DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))


@pytest.mark.parametrize(("scale", "dimension"), [(1e-8, 3), (1e7, 3), (1.0, 10**9)])
def test_what_floats_do_not_hold_is_refused(scale: float, dimension: int) -> None:
    with pytest.raises(NoAnalysisError, match="is analysed for scales from 1e-07 to 1e\\+06"):
        dominating_pair(hs.mechanisms.MultivariateLaplace(scale, dimension))


@pytest.mark.parametrize(("scale", "dimension"), [(1e-7, 2), (1e6, 2), (1e-4, 3), (1.0, 10**8)])
def test_at_the_ends_of_what_is_analysed_the_masses_add_up(scale: float, dimension: int) -> None:
    loss = MultivariateLaplaceLoss(scale, dimension)
    masses = loss.cells(np.array([-math.inf, 0.0, 0.5 * loss.reach, math.inf]))
    assert math.fsum(np.exp(masses.log_p)) == pytest.approx(1.0, abs=1e-6)
