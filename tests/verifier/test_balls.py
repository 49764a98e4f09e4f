"""M, B and delta in balls, against mpmath; a bad choice of a path never excludes them."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

flint = pytest.importorskip("flint")
from hockeystick.verifier import balls, integrals, moments, plans  # noqa: E402


@pytest.fixture(autouse=True)
def _digits() -> Any:
    before = flint.ctx.prec
    flint.ctx.prec = 150
    with mpmath.workdps(32):
        yield
    flint.ctx.prec = before


def holds(ball: Any, value: mpmath.mpc) -> bool:
    """Return whether a ball holds a number that mpmath found to 25 digits."""
    real, imaginary = (flint.arb(mpmath.nstr(part, 25)) for part in (value.real, value.imag))
    near = flint.arb(0, 10.0**-22 * max(1.0, abs(complex(value))))
    return bool(ball.real.overlaps(real + near) and ball.imag.overlaps(imaginary + near))


def delta_of_gaussian(mu: float, epsilon: float) -> mpmath.mpf:
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    first = mpmath.ncdf(mu / 2 - epsilon / mu)
    return first - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("c", [0.2, 1.0, 3.0, 9.0])
@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 2), Fraction(6)])
def test_any_line_gives_the_delta_of_a_gaussian(epsilon: Fraction, c: float) -> None:
    losses = [(moments.GaussianLoss(Fraction(1, 4)), 16)]
    truth = mpmath.mpc(delta_of_gaussian(1.0, float(epsilon)))
    goal = math.log(float(truth.real)) - 40 * balls.LN2
    found, full = integrals.integral(losses, [integrals.Kernel(epsilon)], c, 60, goal)
    assert full
    assert holds(flint.acb(found[0]), truth)
    assert float(found[0].rad()) < 1e-9 * float(truth.real)


def delta_of_laplace(a: Any, count: int, epsilon: Any) -> Any:
    """Return delta of a few runs, by conditioning on the loss of one of them."""
    if count == 1:
        return -mpmath.expm1(min((epsilon - a) / 2, 0) if epsilon > -a else epsilon)
    corners = {epsilon - j * a for j in range(1 - count, count)}
    edges = [-a, *sorted(x for x in corners if abs(x) < a), a]
    inner = mpmath.quad(
        lambda x: mpmath.exp((x - a) / 2) / 4 * delta_of_laplace(a, count - 1, epsilon - x), edges
    )
    ends = delta_of_laplace(a, count - 1, epsilon - a) / 2
    return inner + ends + mpmath.exp(-a) * delta_of_laplace(a, count - 1, epsilon + a) / 2


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(3, 10), Fraction(1, 2)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_runs_of_laplace_noise_are_a_finite_sum(count: int, epsilon: Fraction) -> None:
    a = mpmath.mpf(1) / 4
    with mpmath.workdps(18):
        truth = delta_of_laplace(a, count, mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    found = integrals.laplace_sum(Fraction(4), count, epsilon)
    assert float(found.rad()) < 1e-25
    assert float(abs(found - flint.arb(mpmath.nstr(truth, 18)))) < 1e-14


@pytest.mark.parametrize("count", [1, 7, 60])
def test_a_lattice_of_losses_gives_the_binomial_sum(count: int) -> None:
    loss = plans.randomized_response(Fraction(1, 2), 2)
    epsilon = Fraction(7, 10)
    least = Fraction(1) if count % 2 == 0 else Fraction(3, 2)
    kernel = integrals.LatticeKernel(epsilon, Fraction(1), least)
    p = mpmath.exp(0.5) / (1 + mpmath.exp(0.5))
    ups = [k for k in range(count + 1) if 2 * k - count > 1.4]
    truth = sum(
        mpmath.binomial(count, k)
        * p**k
        * (1 - p) ** (count - k)
        * -mpmath.expm1(mpmath.mpf("0.7") - mpmath.mpf(2 * k - count) / 2)
        for k in ups
    )
    goal = -40 * balls.LN2
    found, full = integrals.integral([(loss, count)], [kernel], 1.0, 60, goal)
    assert full
    assert holds(flint.acb(found[0]), mpmath.mpc(truth))
