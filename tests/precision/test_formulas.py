"""Closed forms and lines in arbitrary precision, against other formulas in more digits."""

import random

import pytest

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision.lines import cgf_line, turned_sums
from hockeystick.precision.profiles import gaussian_delta, replaced_gaussian_delta, scaled_phi


def mills(x: mpf) -> mpf:
    """Return ``(1 - Phi(x)) / phi(x)`` for x > 0; far out by its continued fraction."""
    if x < 1000:
        return mp.erfc(x / mp.sqrt(2)) / (2 * mp.npdf(x))
    found = x
    for k in range(400, 0, -1):
        found = x + k / found
    return 1 / found


@pytest.mark.parametrize("size", [1e3, 9.9e5, 1.01e6, 1e9, 1e40, 1e153])
@pytest.mark.parametrize("shift", [-30.0, 0.0, 2.5])
def test_a_tail_times_an_exponential_is_mills_ratio(size: float, shift: float) -> None:
    with mp.workdps(400):
        x = mp.mpf(size)
        found = scaled_phi(x * x / 2 + shift, -x)
        truth = mp.exp(mp.mpf(shift)) * mills(x) / mp.sqrt(2 * mp.pi)
        assert abs(found - truth) < mp.mpf(10) ** -60 * truth


@pytest.mark.parametrize("seed", range(5))
def test_a_gaussian_of_any_mu_has_its_delta_at_so_many_deviations(seed: int) -> None:
    source = random.Random(seed)
    mu, deviations = mp.mpf(10 ** source.uniform(-20, 150)), mp.mpf(source.uniform(1, 30))
    with mp.workdps(360):
        epsilon = mu * mu / 2 + deviations * mu
        truth = mp.npdf(deviations) * (mills(deviations) - mills(deviations + mu))
    with mp.workdps(30):
        found = gaussian_delta(epsilon, mu)
    assert abs(found - truth) < mp.mpf(10) ** -26 * truth


@pytest.mark.parametrize("seed", [0, 4, 8, 32, 36])
def test_a_replaced_example_has_its_delta_however_little_noise_there_is(seed: int) -> None:
    source = random.Random(seed)
    mu = mp.mpf(10 ** source.uniform(0, 10 if seed < 20 else 150))
    p, deviations = mp.mpf(source.random()), mp.mpf(source.uniform(0.5, 20))
    with mp.workdps(800):
        epsilon = mu * mu / 2 + deviations * mu
        factor = (1 - p) / p * mp.exp(mu * mu / 2)
        x = (epsilon / 2 + mp.asinh(factor * mp.sinh(epsilon / 2))) / mu
        below, between, above = (mp.erfc(y / mp.sqrt(2)) / 2 for y in (x - mu, x, x + mu))
        first = (1 - p) * between + p * below
        truth = first - mp.exp(epsilon) * ((1 - p) * between + p * above)
    with mp.workdps(30):
        found = replaced_gaussian_delta(epsilon, p, mu)
    assert 0 < truth < first
    assert abs(found - truth) < mp.mpf(10) ** -26 * truth


@pytest.mark.parametrize("digits", [15, 30, 80])
@pytest.mark.parametrize("spread", [0, 5, 300])
def test_turned_sums_are_those_of_the_exponentials(spread: int, digits: int) -> None:
    source = random.Random(spread + digits)
    with mp.workdps(digits):
        sizes = [mp.mpf(10) ** source.uniform(-spread, spread) for _ in range(40)]
        angles = [mp.mpf(source.uniform(-30, 30)) for _ in sizes]
        found = turned_sums(sizes, angles, 300)
        largest = max(sizes)
        for k in (0, 1, 7, 299):
            with mp.extraprec(60):
                terms = [
                    size * mp.expj(k * angle) for size, angle in zip(sizes, angles, strict=True)
                ]
                truth = mp.fsum(terms)
            # What is summed is rounded once more, to a number of so many digits.
            assert abs(found[k] - truth) <= mp.eps * (largest + 2 * abs(truth))


def test_a_line_of_tiny_losses_keeps_its_digits() -> None:
    # M - 1 is of the order of the square of the losses: 10^-120 here.
    with mp.workdps(30):
        loss = [mp.mpf(10) ** -60 * j for j in range(-3, 5)]
        mass = [mp.mpf(1) / 8 for _ in loss]
        with mp.extraprec(900):
            points = [mp.mpc(2.5, mp.mpf(0.75) * k) for k in range(5)]
            terms = [
                [m * (mp.expm1(z * x) + z * mp.expm1(-x)) for x, m in zip(loss, mass, strict=True)]
                for z in points
            ]
            truth = [mp.log1p(mp.fsum(one)) for one in terms]
        found = cgf_line(loss, mass, 2.5, 0.75, 5)
        for one, true in zip(found, truth, strict=True):
            assert abs(one - true) < 1e-27 * abs(true)
