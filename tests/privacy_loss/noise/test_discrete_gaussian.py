"""The loss of discrete Gaussian noise."""

import math
from fractions import Fraction

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.integer_noise import discrete_gaussian_delta, discrete_gaussian_tail
from hockeystick.privacy_loss import DiscreteGaussianLoss, WideDiscreteGaussianLoss
from hockeystick.privacy_loss.core.atomic import LOG_LEAST_MASS


@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.399, 0.401, 0.7, 3.0, 40.0, 300.0])
@pytest.mark.parametrize("c", [1e-9, 0.01, 0.5, 1.0, 2.25, 60.0])
def test_the_moments_are_those_of_theta_functions(sigma: float, shift: int, c: float) -> None:
    found = DiscreteGaussianLoss(sigma, shift).cgf_bounds(c)
    with mp.workdps(60):
        square, x = mp.mpf(repr(sigma)) ** 2, mp.mpf(c) * shift
        nome = mp.exp(-1 / (2 * square))
        # theta(x) = exp(-x^2/(2 s^2)) theta_3(i x/(2 s^2)), by Jacobi, without the dual sum.
        if sigma < 5:
            near = mp.nint(x)
            theta = mp.fsum(
                mp.exp(-((k - x) ** 2) / (2 * square))
                for k in range(int(near) - 80, int(near) + 80)
            )
            norm = mp.jtheta(3, 0, nome)
            ratio = theta / norm
        else:
            ratio = mp.one
        truth = mp.mpf(c) * (mp.mpf(c) + 1) * shift**2 / (2 * square) + mp.log(ratio)
        assert abs(found.midpoint - truth) <= found.radius
        assert found.radius <= 1e-13 * found.midpoint


def test_its_limit_is_that_of_the_chi_square_divergence() -> None:
    assert DiscreteGaussianLoss(3.0, 2).clt_mu_squared == pytest.approx(
        math.expm1(4 / 9), rel=1e-14
    )


@pytest.mark.parametrize("sigma", [0.01, 0.5, 6.0, 250.0])
def test_what_is_not_listed_is_as_small_as_promised(sigma: float) -> None:
    loss = DiscreteGaussianLoss(sigma, 1)
    size = loss.atoms().loss.size
    last = (size - 2) // 2
    with mp.workdps(30):
        half = 1 / (2 * mp.mpf(repr(sigma)) ** 2)
        rest = 2 * mp.fsum(mp.exp(-(k**2) * half) for k in range(last + 1, last + 400))
        assert mp.log(rest) < LOG_LEAST_MASS


@pytest.mark.parametrize("shift", [1, 4])
@pytest.mark.parametrize("sigma", [0.03, 0.39, 0.41, 3.3, 77.7])
def test_the_atoms_are_those_of_the_definition_as_far_as_they_are_listed(
    sigma: float, shift: int
) -> None:
    atoms = DiscreteGaussianLoss(sigma, shift).atoms()
    size = atoms.loss.size
    last = (size - 1 - shift) // 2
    with mp.workdps(50):
        half = 1 / (2 * mp.mpf(repr(sigma)) ** 2)
        reach = 20 + int(15 * sigma)
        norm = mp.fsum(mp.exp(-(k**2) * half) for k in range(-reach, reach + 1))
        for index in range(0, size, 1 + size // 50):
            k = index - last - shift
            truth = -(k**2) * half - mp.log(norm)
            assert abs(atoms.log_p[index] - truth) <= atoms.error[index]
            loss = (2 * k + shift) * shift * half
            assert abs(atoms.loss[index] - loss) <= 4 * 2.0**-52 * abs(loss)
    assert (atoms.error <= 4e-15 * (abs(atoms.log_p) + 10.0)).all()


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


def test_of_wide_noise_many_runs_are_bounded_and_samples_refused() -> None:
    wide = hs.DiscreteGaussian(30_000.0, sensitivity=30_000)
    one, four = hs.epsilon(wide, 1e-6), hs.epsilon(wide**4, 1e-6)
    exact = hs.epsilon(hs.Gaussian(1.0) ** 4, 1e-6)
    assert one.lower <= four.lower < exact.upper < four.upper < 1.2 * exact.upper
    many = hs.delta(wide, 3.0, digits=30)
    assert many.upper - many.lower < 1e-29 * many.lower
    near = DiscreteGaussianLoss(12_000.0, 12_000).cgf_bounds(0.7)
    assert WideDiscreteGaussianLoss(12_000.0, 12_000).cgf_bounds(0.7) == near
