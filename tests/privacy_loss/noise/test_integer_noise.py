"""Losses of noise on the integers and of staircase noise, against their definitions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import Staircase
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.integer_noise import discrete_gaussian_delta, discrete_gaussian_tail
from hockeystick.privacy_loss import (
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    SkellamLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.core.atomic import LOG_LEAST_MASS
from hockeystick.privacy_loss.noise.laplace import StaircaseLoss


@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("sigma", [0.05, 0.399, 0.401, 0.7, 3.0, 40.0, 300.0])
@pytest.mark.parametrize("c", [1e-9, 0.5, 2.25, 60.0])
def test_the_moments_are_those_of_theta_functions(sigma: float, shift: int, c: float) -> None:
    found = DiscreteGaussianLoss(sigma, shift).cgf_bounds(c)
    with mp.workdps(60):
        square, x = mp.mpf(repr(sigma)) ** 2, mp.mpf(c) * shift
        nome = mp.exp(-1 / (2 * square))
        # theta(x) = exp(-x^2/(2 s^2)) theta_3(i x/(2 s^2)), by Jacobi, without the dual sum.
        ratio = mp.one
        if sigma < 5:
            near = int(mp.nint(x))
            terms = (mp.exp(-((k - x) ** 2) / (2 * square)) for k in range(near - 80, near + 80))
            ratio = mp.fsum(terms) / mp.jtheta(3, 0, nome)
        truth = mp.mpf(c) * (mp.mpf(c) + 1) * shift**2 / (2 * square) + mp.log(ratio)
        assert abs(found.midpoint - truth) <= found.radius
        assert found.radius <= 1e-13 * found.midpoint


def test_its_limit_is_that_of_the_chi_square_divergence() -> None:
    assert DiscreteGaussianLoss(3.0, 2).clt_mu_squared == pytest.approx(
        math.expm1(4 / 9), rel=1e-14
    )


@pytest.mark.parametrize("c", [1.0, 20.0, 60.0])
def test_the_bound_on_what_is_omitted_holds_the_tail(c: float) -> None:
    loss = DiscreteGaussianLoss(2.0, 1)
    last = (loss.atoms().loss.size - 2) // 2
    with mp.workdps(30):
        norm = mp.jtheta(3, 0, mp.exp(mp.mpf(-1) / 8))
        terms = (mp.exp((c * (2 * k + 1) - k**2) / mp.mpf(8)) for k in range(last + 1, last + 400))
        tail = mp.fsum(terms) / norm
        assert mp.log(tail) <= loss.log_omitted_moment(c)
        assert loss.log_omitted_moment(c) <= max(mp.log(tail), LOG_LEAST_MASS) + 1
    assert loss.log_omitted_moment(90.0) == math.inf


@pytest.mark.parametrize(("digits", "k"), [(15, 1), (60, 900), (15, 12_500), (40, 190_000)])
def test_the_integrals_of_wide_noise_are_its_sums(digits: int, k: int) -> None:
    """Of losses above that at k - 1/2, the least is that of the output k."""
    sigma, half = Fraction(10_001), 1 / (2 * Fraction(10_001) ** 2)
    with mp.workdps(digits):
        epsilon = mp.mpf(2 * k * half.numerator) / half.denominator
        own, other = (discrete_gaussian_tail(sigma, one) for one in (k, k + 1))
        found = discrete_gaussian_delta(epsilon, sigma, 1)
        assert abs(found / (own - mp.exp(epsilon) * other) - 1) < mp.mpf(10) ** (9 - digits)


def test_the_largest_loss_is_the_sensitivity_over_the_scale() -> None:
    for scale, shift in ((3.0, 7), (0.1, 3), (1e6, 2)):
        found = DiscreteLaplaceLoss(scale, shift).supremum
        assert shift / scale <= found <= shift / scale * (1 + 2.0**-50)
    assert hs.delta(hs.DiscreteLaplace(3, 2), epsilon=0.667).upper == 0.0


@pytest.mark.parametrize(
    ("variance", "order", "truth"),
    [
        (10.0, 2, 0.099654438453542522904),
        (10.0, 8, 0.36463380820611164586),
        (100.0, 16, 0.07953977601297696448),
    ],
)
def test_renyi_divergences_are_the_known_values(variance: float, order: int, truth: float) -> None:
    found = SkellamLoss(variance, 1).cgf_bounds(order - 1.0)
    assert abs(found.midpoint - truth * (order - 1)) <= found.radius
    assert found.midpoint / (order - 1) == pytest.approx(truth, rel=1e-14)


@pytest.mark.parametrize("shift", [1, 4])
@pytest.mark.parametrize("variance", [1e-300, 1e-9, 0.03, 1.0, 50.0, 3e3])
def test_the_atoms_are_ratios_of_bessel_functions(variance: float, shift: int) -> None:
    atoms = SkellamLoss(variance, shift).atoms()
    size = atoms.loss.size
    last = (size - 1 - shift) // 2
    with mp.workdps(40):
        v = mp.mpf(repr(variance))

        def log_p(k: int) -> mp.mpf:
            return mp.log(mp.besseli(abs(k), v)) - v

        for index in {0, 1, size // 3, size // 2 - 1, size // 2, 2 * size // 3, size - 1}:
            k = index - last - shift
            own, other = log_p(k), log_p(k + shift)
            assert abs(atoms.log_p[index] - own) <= atoms.error[index]
            assert abs(atoms.loss[index] - (own - other)) <= 4 * 2.0**-52 * abs(own - other) + 1e-35
    assert (atoms.error <= 2e-15 * (np.abs(atoms.log_p) + 10.0)).all()


@pytest.mark.parametrize("c", [1.0, 40.0, 120.0])
def test_the_bound_on_what_is_omitted_of_skellam_noise_holds_the_tail(c: float) -> None:
    loss = SkellamLoss(2.0, 3)
    last = (loss.atoms().loss.size - 4) // 2
    with mp.workdps(30):
        p = [mp.besseli(k, 2) * mp.exp(-2) for k in range(last + 1, last + 404)]
        tail = mp.fsum(p[k] * (p[k] / p[k + 3]) ** c for k in range(400))
        assert mp.log(tail) <= loss.log_omitted_moment(c)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "2", "4"])
@pytest.mark.parametrize(("variance", "shift"), [(3.0, 1), (40.0, 5)])
def test_delta_is_a_sum_over_bessel_functions(variance: float, shift: int, epsilon: str) -> None:
    with mp.workdps(40):
        level, v = mp.mpf(epsilon), mp.mpf(variance)
        p = [mp.besseli(k, v) * mp.exp(-v) for k in range(400)]
        terms = (p[abs(k)] - mp.exp(level) * p[abs(k + shift)] for k in range(-20, 350))
        truth = mp.fsum(max(term, 0) for term in terms)
        found = SkellamLoss(variance, shift).delta(level)
        assert abs(found - truth) < mp.mpf(10) ** -35 * truth


# More than the mass of the steps that are left out.
LEFT_OUT = mp.mpf("1e-14")


def most(epsilon: Any, gamma: Any) -> Any:
    """Return the mass of the outputs whose loss is epsilon.

    The density is h e^-k on [k, k + gamma) and h e^-(k+1) on [k + gamma, k + 1), either side of 0.
    One to the right, it is e^-epsilon times as high up to min(gamma, 1 - gamma), as high up to
    max(gamma, 1 - gamma), and e^epsilon times as high from there on.
    """
    small = mp.exp(-epsilon)
    height = (1 - small) / (2 * (gamma + small * (1 - gamma)))
    return mp.mpf(0.5) + height * min(gamma, 1 - gamma)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3.5"])
@pytest.mark.parametrize("gamma", [None, "0.1", "0.45", "0.5", "1"])
@pytest.mark.parametrize("level", ["-1.5", "-0.1", "0", "0.2", "0.9", "2.8"])
def test_delta_is_the_integral_of_the_densities_one_sensitivity_apart(
    epsilon: str, gamma: str | None, level: str
) -> None:
    plan = Staircase(float(epsilon), None if gamma is None else float(gamma))
    loss = StaircaseLoss(plan.epsilon, plan.gamma)
    assert loss.opposite == loss
    if gamma != "0.5":
        assert dominating_pair(plan) == (loss, loss)
    with mp.workdps(30):
        own, at = mp.mpf(epsilon), mp.mpf(level)
        share = 1 / (1 + mp.exp(own / 2)) if gamma is None else mp.mpf(gamma)
        exact = most(own, share) * max(-mp.expm1(abs(at) - own), 0)
        exact = exact if at >= 0 else 1 - mp.exp(at) * (1 - exact)
        assert abs(loss.delta(at) - exact) < LEFT_OUT
    if at >= 0:
        found = hs.delta(plan, float(level))
        assert found.lower - LEFT_OUT <= exact <= found.upper + LEFT_OUT
        assert found.upper - found.lower <= 1e-13 * found.upper


@pytest.mark.parametrize("gamma", [0.1, 0.4999999999999999, 0.5000000000000001, 1.0])
@pytest.mark.parametrize("epsilon", [1e-9, 50.0])
def test_a_perturbation_encloses_what_its_numbers_may_mean(epsilon: float, gamma: float) -> None:
    """The float and the decimal that it prints as; in units that leave no digit out."""
    loss = StaircaseLoss(epsilon, gamma)
    with mp.workdps(60):
        lower, upper = (loss.delta(mp.mpf(epsilon) / 3, sign * 4) for sign in (-1, 1))
        for reading in (repr(gamma), gamma):
            level = mp.mpf(epsilon) / 3 - mp.mpf(repr(epsilon))
            exact = -most(mp.mpf(repr(epsilon)), mp.mpf(reading)) * mp.expm1(level)
            assert lower < exact < upper
