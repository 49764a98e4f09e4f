"""M, B and delta in balls, against mpmath; a bad choice of a path never excludes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

flint = pytest.importorskip("flint")
from hockeystick.verifier import balls, integrals, moments, plans  # noqa: E402

SMALL: Final = Fraction(1, 50)
NOISE: Final = Fraction(11, 10)
WAYS: Final = ("remove", "add", "replace")
# Near the real axis and far up, to the left and to the right.
PLACES: Final = (1.5, 4 + 0.5j, 3 + 9j, 9 + 60j, -2.5 + 20j)


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


def moment_of_sampled_gaussian(way: str, start: float | None = None) -> Callable[[complex], Any]:
    """Return M by mpmath's quadrature, on the real axis."""
    q, s = mpmath.mpf(1) / 50, mpmath.mpf(11) / 10

    def log_w(x: Any) -> Any:
        return mpmath.log1p(q * mpmath.expm1(x / s - 1 / (2 * s * s)))

    def density(x: Any, z: complex) -> Any:
        first = log_w(x)
        power = {
            "remove": (z + 1) * first,
            "add": -z * first,
            "replace": first + z * (first - log_w(-x)),
        }
        return mpmath.npdf(x) * mpmath.exp(power[way])

    def moment(z: complex) -> Any:
        first = -14 if start is None else start
        edges = [first + (26 - first) * mpmath.mpf(k) / 24 for k in range(25)]
        return mpmath.quad(lambda x: density(x, mpmath.mpc(z)), edges, maxdegree=5)

    return moment


@pytest.mark.parametrize("z", PLACES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_the_moment_of_a_sampled_gaussian_is_in_its_ball(way: str, z: complex) -> None:
    z = complex(z)
    truth = moment_of_sampled_gaussian(way)(z)
    loss = plans.sampled(SMALL, NOISE, way)
    box = balls.Box(z.real - 0.3, z.real + 0.4, max(z.imag - 0.5, 0.0), z.imag + 0.2)
    nodes = loss.on(box, 60)
    found = nodes.moment(balls.point(z))
    assert holds(found, truth)
    assert float(abs(found).rad()) < 1e-12 * max(1.0, abs(complex(truth)))
    assert nodes.bound(z.real, z.imag) >= abs(found).lower()


@pytest.mark.parametrize("way", WAYS)
@given(
    height=st.floats(0.0, 3.0),
    join=st.floats(-3.0, 6.0),
    c=st.floats(-3.0, 12.0),
    y=st.floats(0.0, 60.0),
)
@settings(max_examples=10)
def test_no_path_excludes_the_moment(
    way: str, height: float, join: float, c: float, y: float
) -> None:
    flint.ctx.prec = 150
    density = moments.SampledGaussian(SMALL, NOISE, way)
    sign = -1 if way == "add" else 1
    up = density.curve(flint.arb(-9), flint.arb(sign * height), flint.arb(join))(16.0)
    density.path = lambda box, digits: [up]  # type: ignore[method-assign]
    loss = moments.DensityLoss([density])
    box = balls.Box(c, c, y, y)
    try:
        found = loss.on(box, 50).moment(balls.point(complex(c, y)))
    except balls.NotCovered:
        return
    usual = plans.sampled(SMALL, NOISE, way).on(box, 50).moment(balls.point(complex(c, y)))
    assert found.real.overlaps(usual.real)
    assert found.imag.overlaps(usual.imag)


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


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(12)])
def test_the_sum_and_the_integral_agree_for_many_runs_of_laplace_noise(scale: Fraction) -> None:
    epsilon, count = 250 / scale / 8, 250
    losses = [(plans.sampled_laplace(scale, Fraction(1), "remove"), count)]
    total = integrals.laplace_sum(scale, count, epsilon)
    c, _ = integrals.saddle(losses, integrals.Kernel(epsilon))
    goal = math.log(float(total)) - 20 * balls.LN2
    found, full = integrals.integral(losses, [integrals.Kernel(epsilon)], c, 40, goal)
    assert full
    assert found[0].overlaps(total)


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
