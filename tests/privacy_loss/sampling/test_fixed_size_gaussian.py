from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hockeystick.accountants.contour import Contour
from hockeystick.kernels import fixed_size_gaussian as kernel
from hockeystick.numerics.multiprecision import mp, mpc, mpf
from hockeystick.precision import fixed_size_gaussian as reference
from hockeystick.precision.profiles import exact
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss

CONTOUR = Contour()
LOSSES = [
    FixedSizeGaussianLoss(0.01, 1.0),
    FixedSizeGaussianLoss(Fraction(16, 600), 1.0),
    FixedSizeGaussianLoss(1e-6, 0.9),
    FixedSizeGaussianLoss(0.1, 0.25),
    FixedSizeGaussianLoss(0.5, 7.0),
    FixedSizeGaussianLoss(0.9999, 0.6),
]


def covers(real: float, imag: float, error: float, truth: mpc) -> bool:
    """Return whether the true M is within ``exp(error) - 1`` of the value, relative to it."""
    return bool(abs(mp.exp(truth - mp.mpc(real, imag)) - 1) <= mp.expm1(error))


@pytest.mark.parametrize(
    ("rate", "noise", "order", "divergence"),
    [
        (0.01, 1.0, 2.0, 2.806392913427391081e-4),
        (0.01, 1.0, 8.0, 1.25882771219992459e-3),
        (0.01, 4.0, 8.0, 3.082261762888758295e-5),
    ],
)
def test_the_renyi_divergence_has_its_known_values(
    rate: float, noise: float, order: float, divergence: float
) -> None:
    loss = FixedSizeGaussianLoss(rate, noise)
    assert loss.cgf_estimate(order - 1.0).value / (order - 1.0) == pytest.approx(
        divergence, rel=1e-13
    )
    value, error = loss.cgf_bounds(order - 1.0)
    assert abs(value / (order - 1.0) - divergence) <= error + 1e-16 * divergence
    assert error < 1e-11 * value


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_kernel_and_its_twin_agree(loss: FixedSizeGaussianLoss) -> None:
    rule = loss.rule(2.0, 10.0, -36.0)
    assert rule is not None
    real, imag, error = rule.line(2.0, 2.5, 5)
    with mp.workdps(30):
        for k, one in enumerate(rule.reference_line(2.0, 2.5, 5)):
            assert covers(real[k], imag[k], error[k], one)


@pytest.mark.parametrize("c", [0.1, 2.0, 30.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_decay_holds_above_every_height(loss: FixedSizeGaussianLoss, c: float) -> None:
    decay, k = loss.decay(c), loss.cgf_estimate(c)
    step, count = 0.1 / math.sqrt(k.second_derivative), 60
    rule = loss.rule(c, count * step, k.value - 36.0)
    assert rule is not None
    real, _, error = rule.line(c, step, count)
    falls = real[0] + error[0] - real - np.minimum(error, 2.0)
    exponents = [decay.exponent(j * step) for j in range(1, count)]
    assert exponents == sorted(exponents)
    known = error[1:] < 0.5
    assert known[:30].all()
    assert all(np.array(exponents)[known] <= (falls[1:] + 2.0 * error[1:] + 1e-12)[known])
    # The first steps are in the parabola ln|M| = -K'' v^2 / 2, which the layers follow.
    assert exponents[4] > 0.05 * falls[5]


@pytest.mark.parametrize(
    ("rate", "runs", "epsilon", "delta"),
    [
        (0.01, 1000, 1.0, 9.9054377995653515758e-3),
        (0.01, 1000, 2.0, 3.9311878558741735944e-5),
        (Fraction(16, 600), 3534, 8.0, 0.0183788206638339704),
        (Fraction(16, 600), 3534, 16.0, 2.29760306083325594e-7),
    ],
)
def test_known_compositions(
    rate: float | Fraction, runs: int, epsilon: float, delta: float
) -> None:
    terms = ((FixedSizeGaussianLoss(rate, 1.0), runs),)
    answer = CONTOUR.delta_of(terms, epsilon)
    assert answer.lower <= delta <= answer.upper
    assert answer.upper / answer.lower < 1.0 + 1e-10
    back = CONTOUR.epsilon_of(terms, delta)
    assert back.lower <= epsilon <= back.upper
    assert back.upper / back.lower < 1.0 + 1e-10


@pytest.mark.parametrize(
    ("rate", "noise"), [(1e-11, 1.0), (0.01, 1e4), (0.3, 0.01), (1.0 - 1e-9, 1.0)]
)
def test_out_of_reach_of_the_quadrature_the_convex_bound_holds(rate: float, noise: float) -> None:
    loss = FixedSizeGaussianLoss(rate, noise)
    assert loss.out_of_range
    assert not loss.quadrature_available(1.0)
    value, error = loss.cgf_bounds(1.0)
    mu = 1.0 / noise
    assert 0.0 <= value - error
    gaussian = mp.log1p(exact(rate) * mp.expm1(mp.mpf(mu) ** 2))
    assert value + error == pytest.approx(float(gaussian), rel=1e-9)
    assert CONTOUR.delta_of(((loss, 3),), 0.5).upper <= 1.0


def test_no_answer_costs_an_endless_line() -> None:
    loss = FixedSizeGaussianLoss(0.01, 1.0)
    assert not loss.quadrature_available(1e9)
    assert loss.rule(1e9, 0.0, 0.0) is None
    assert loss.rule(1.0, 0.0, -1e6) is None
    assert loss.tail_split(1.0) is None
    assert loss.supremum == math.inf


def test_the_bound_of_the_integrand_holds_in_a_box_and_is_near_in_a_small_one() -> None:
    rng = np.random.default_rng(0)
    least = math.inf
    for _ in range(120):
        p, mu, c = 10.0 ** rng.uniform((-4, -1, -1), (-0.1, 0.4, 1.2))
        height = rng.choice((0.0, 8.0 * c))
        x, y = rng.uniform(0.0, 6.0), rng.uniform(0.0, 0.9) * math.pi / mu
        size = rng.choice((1e-6, 0.1))
        bound = kernel.log_box_bound(p, mu, c, height, x - size, x + size, max(y - size, 0.0), y)
        place = x + rng.uniform(-size, size, 9) + 1j * rng.uniform(max(y - size, 0.0), y, 9)
        place[:2] = x + size + 1j * y, x - size + 1j * y
        a = np.log1p(p * np.expm1(mu * place))
        # The turn of r counts most where the imaginary part of z has the sign of its power.
        for z in (c + 1j * height, c - 1j * height):
            logs = (-0.5 * (place + 0.5 * mu) ** 2).real - 0.5 * math.log(2.0 * math.pi)
            with np.errstate(divide="ignore"):
                logs += np.log(np.abs(np.expm1((1.0 + z) * a) * np.expm1(-z * a)))
            assert float(logs.max()) <= bound
            least = min(least, bound - float(logs.max()))
    assert least < 0.05


def test_the_quadrature_of_a_panel_errs_less_than_its_bound() -> None:
    p, mu, c, count = 0.1, 1.3, 3.0, 6
    offset, weight = (np.array(one, dtype=float) for one in reference.gauss_legendre(count))
    for start, half in ((0.0, 0.5), (1.0, 1.0), (3.0, 0.7), (5.0, 1.5)):
        with mp.workdps(30):

            def term(x: mpf) -> mpf:
                a = mp.log1p(mp.mpf(p) * mp.expm1(mp.mpf(mu) * x))
                factor = mp.expm1((1 + c) * a) * -mp.expm1(-c * a)
                return factor * mp.npdf(x + mp.mpf(mu) / 2)

            points = [start + half * mp.mpf(float(one)) for one in offset]
            rule = mp.fsum(half * float(w) * term(x) for x, w in zip(points, weight, strict=True))
            miss = abs(rule - mp.quad(term, [start, start + 2 * half]))
        bound = kernel.log_panel_error(p, mu, c, 0.0, start + half, half, count)
        assert float(mp.log(miss)) <= bound < float(mp.log(miss)) + 16.0
