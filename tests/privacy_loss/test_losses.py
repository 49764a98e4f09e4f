"""The losses of one run, against exact formulas in mpmath."""

import math
from fractions import Fraction
from typing import Any

import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.profiles import exact, reciprocal
from hockeystick.privacy_loss import GaussianLoss, NoiselessLoss, SampledGaussianLoss

RATES: tuple[float | Fraction, ...] = (1e-20, 1e-6, Fraction(256, 60_000), 0.1, 0.999)


def removing_cumulant(rate: float | Fraction, noise: float, order: int) -> Any:
    """Return K(order - 1) of removing, by the binomial sum for integer orders."""
    with mp.workdps(60 + 2 * order):
        p, mu = exact(rate), reciprocal(noise)
        terms = [
            mp.binomial(order, k)
            * ((1 - p) ** (order - k) * p**k)
            * mp.expm1(k * (k - 1) * mu**2 / 2)
            for k in range(2, order + 1)
        ]
        return mp.log1p(mp.fsum(terms))


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("noise", [0.1, 0.7, 1.1, 6.0, 1e4])
@pytest.mark.parametrize("order", [2, 3, 9, 40])
def test_the_cumulant_at_integer_orders_is_the_binomial_sum_within_its_error(
    rate: float | Fraction, noise: float, order: int
) -> None:
    loss = SampledGaussianLoss(rate, noise, removing=True)
    found = loss.cgf_bounds(order - 1.0)
    truth = removing_cumulant(rate, noise, order)
    with mp.workdps(40):
        assert abs(mp.mpf(found.midpoint) - truth) <= found.radius
    if not loss.out_of_range and noise > 0.1:  # at 0.1 the convex bound may stand in
        assert found.radius <= 1e-12 * found.midpoint + 1e-14


@pytest.mark.parametrize("rate", [1e-200, 1e-40, 0.01, 1 - 2**-52])
@pytest.mark.parametrize("noise", [1e-3, 0.01, 1.0, 1e7])
@pytest.mark.parametrize("order", [2, 5])
def test_beyond_the_reach_of_quadrature_the_convex_bound_holds_the_truth(
    rate: float, noise: float, order: int
) -> None:
    loss = SampledGaussianLoss(rate, noise, removing=True)
    found = loss.cgf_bounds(order - 1.0)
    truth = removing_cumulant(rate, noise, order)
    with mp.workdps(40):
        assert abs(mp.mpf(found.midpoint) - truth) <= found.radius


@pytest.mark.parametrize(
    ("p", "s", "epsilon", "removing", "delta"),
    [
        ("0.01", 1.0, "1", True, "2.73200926154613113569168569554e-9"),
        ("0.1", 2.0, "0.2", True, "2.88571111801261534128e-4"),
        ("0.1", 2.0, "0.05", False, "1.54598599391907605115e-3"),
        ("0.01", 1.0, "0.005", False, "9.63144335305304784057e-4"),
    ],
)
def test_one_run_has_the_profile_of_the_formula_sheet(
    p: str, s: float, epsilon: str, removing: bool, delta: str
) -> None:
    with mp.workdps(40):
        found = SampledGaussianLoss(Fraction(p), s, removing).delta(mp.mpf(epsilon))
        assert mp.almosteq(found, mp.mpf(delta), rel_eps=mp.mpf(10) ** -20)


@pytest.mark.parametrize("p", [0.01, 0.6])
def test_adding_loses_nothing_beyond_its_supremum(p: float) -> None:
    loss = SampledGaussianLoss(p, 1.0, removing=False)
    assert loss.supremum >= -math.log1p(-p)
    assert loss.supremum == pytest.approx(-math.log1p(-p), rel=1e-14)
    with mp.workdps(30):
        assert loss.delta(mp.mpf(loss.supremum)) == 0
        assert loss.delta(mp.mpf(loss.supremum) * (1 - mp.mpf(10) ** -3)) > 0


def test_the_gaussian_line_is_its_closed_form_within_the_error() -> None:
    loss = GaussianLoss(1.1)
    values = loss.line(2.5, 0.75, 20)
    with mp.workdps(40):
        for k, truth in enumerate(loss.reference_line(2.5, 0.75, 20)):
            off = mp.mpc(float(values.real[k]), float(values.imag[k])) - truth
            assert abs(off) <= values.error[k]


@pytest.mark.parametrize("y", [0.0, 0.1, 3.0, 100.0])
def test_the_gaussian_decay_is_rounded_down(y: float) -> None:
    with mp.workdps(40):
        truth = (reciprocal(1.1) * mp.mpf(y)) ** 2 / 2
    assert GaussianLoss(1.1).decay(2.0).exponent(y) <= truth


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.28, 0.3, 5.0])
def test_a_release_without_noise_has_the_profile_of_its_two_points(epsilon: float) -> None:
    with mp.workdps(30):
        assert NoiselessLoss(0.25, True).delta(mp.mpf(epsilon)) == mp.mpf("0.25")
        adding = max(0.0, 1 - math.exp(epsilon) * 0.75)
        assert float(NoiselessLoss(0.25, False).delta(mp.mpf(epsilon))) == pytest.approx(adding)


@pytest.mark.parametrize(
    ("rate", "noise", "c"),
    [(0.999, 2 / 3, 100.0), (0.5, 1.0, 1000.0), (0.05, 2 / 3, 1000.0), (0.01, 0.2, 300.0)],
)
def test_the_fast_cumulant_is_the_proven_one_where_adding_narrows_the_density(
    rate: float, noise: float, c: float
) -> None:
    loss = SampledGaussianLoss(rate, noise, removing=False)
    proven = loss.cgf_bounds(c)
    assert proven.radius < 1e-9 * proven.midpoint
    assert loss.cgf_estimate(c).value == pytest.approx(proven.midpoint, rel=1e-12)


@pytest.mark.parametrize(
    "rate",
    [0.25, 0.9999999, Fraction(1, 3), Fraction(10**16 - 3, 10**16), 1 - Fraction(10) ** -400],
)
def test_the_largest_loss_when_adding_is_rounded_up(rate: Any) -> None:
    with mp.workdps(60):
        exact = Fraction(rate)
        truth = mp.log(exact.denominator) - mp.log(exact.denominator - exact.numerator)
        for loss in (SampledGaussianLoss(rate, 1.0, False), NoiselessLoss(rate, False)):
            assert truth <= loss.supremum <= truth * (1 + mp.mpf(10) ** -7)
