"""The nodes of the subsampled Gaussian, their quadrature, and lines by them, against mpmath."""

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pytest

from hockeystick.kernels import sampled_gaussian as kernel
from hockeystick.kernels import uniform_minorant
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.lines import sampled_gaussian_nodes
from hockeystick.precision.profiles import reciprocal
from hockeystick.privacy_loss import SampledGaussianLoss

RATES: tuple[float | Fraction, ...] = (1e-12, 1e-5, Fraction(256, 60_000), 0.01, 0.97)
NOISES = (0.05, 0.3, 1.1, 300.0)
both_directions = pytest.mark.parametrize("removing", [True, False], ids=["removing", "adding"])


@both_directions
@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("noise", NOISES)
def test_the_errors_claimed_for_nodes_bound_the_true_ones(
    rate: float | Fraction, noise: float, removing: bool
) -> None:
    first, count, step = -80, 240, 0.1875 if noise > 0.1 else 0.75
    found = kernel.nodes(float(rate), 1.0 / noise, removing, first, count, step)
    with mp.workdps(40):
        losses, weights = sampled_gaussian_nodes(
            rate, reciprocal(noise), removing, first, count, step
        )
        for loss, log_weight, loss_error, weight_error, x, w in zip(
            *found, losses, weights, strict=True
        ):
            assert abs(mp.mpf(float(loss)) - x) <= loss_error
            assert abs(mp.expm1(mp.mpf(float(log_weight)) - mp.log(w))) <= weight_error


# ln M at (c, 0), (c, y) and (0.4 c, y/2), by quadrature.
LINES: list[tuple[float, float, bool, float, float, tuple[complex, ...]]] = [
    (
        *(0.01, 1.0, True, 3.0, 12.0),
        (
            0.00108946214673226287,
            -0.012278526961904683 + 0.00367928971940091869j,
            -0.00301973872283022505 + 0.00129203004467844329j,
        ),
    ),
    (
        *(0.2, 0.7, False, 6.0, 9.0),
        (
            0.728921712474196944,
            0.563928899837309833 + 1.48826873525203975j,
            0.103485483705573147 + 0.608934679744231002j,
        ),
    ),
]


@pytest.mark.parametrize(("rate", "noise", "removing", "c_high", "y_high", "truths"), LINES)
@pytest.mark.parametrize("log_tolerance", [-38.0, -12.0])
def test_the_trapezoid_rule_errs_by_no_more_than_it_claims(
    rate: float,
    noise: float,
    removing: bool,
    c_high: float,
    y_high: float,
    truths: tuple[complex, ...],
    log_tolerance: float,
) -> None:
    loss = SampledGaussianLoss(rate, noise, removing)
    rule = loss.rule(c_high, y_high, log_tolerance)
    assert rule is not None
    for (c, k), truth in zip(((c_high, 0), (c_high, 2), (0.4 * c_high, 1)), truths, strict=True):
        values = rule.line(c, y_high / 2, 3)
        off = complex(values.real[k], values.imag[k]) - truth
        off -= 2j * math.pi * round(off.imag / (2 * math.pi))
        assert abs(off) <= values.error[k]
        grown = math.exp(loss.cgf_estimate(c_high).value - loss.cgf_estimate(c).value)
        assert values.error[0] <= 10 * math.exp(log_tolerance) * grown + 1e-11


def integrand(
    u: np.ndarray[Any, Any],
    p: float,
    mu: float,
    w: float,
    modulus: float,
    height: float,
    shift: float,
) -> np.ndarray[Any, Any]:
    """Return what ``|F|`` is at most along ``Im u = shift``, for every z in use."""
    a = np.log1p(p * np.expm1(mu * (u + 1j * shift) - 0.5 * mu * mu))
    power = np.exp(height * a.imag + np.maximum(a.real * max(w, 1.0), a.real * min(w, 0.0)))
    density = np.exp(0.5 * (shift * shift - u * u)) / math.sqrt(2.0 * math.pi)
    return np.asarray(0.5 * density * np.abs(a) ** 2 * (modulus**2 + modulus) * power)


Six: TypeAlias = tuple[float, float, float, float, float, float]
STRIPS: list[Six] = [
    (0.01, 1.0, 4.0, 3.2, 0.0, 0.0),
    (0.01, 1.0, -3.0, 50.0, 40.0, 1.2),
    (0.3, 0.4, 6.0, 5.0, 0.0, 0.9),
    (0.7, 0.1, 30.0, 31.0, 10.0, 3.0),
    (1e-4, 2.0, 1.01, 0.01, 0.0, 1.0),
    (0.9, 1.0, -9.0, 9.0, 0.0, 2.0),
    (0.96, 1.0, -19.0, 3.0, 0.0, 0.87),
    (0.956, 1.46, -0.4, 3.0, 0.0, 0.58),
    (5e-4, 1.75, 1.15, 3.0, 0.0, 0.0),
]


@pytest.mark.parametrize("given", STRIPS, ids=str)
def test_the_bounds_along_a_line_are_never_below_the_integral(given: Six) -> None:
    mu, w = given[1:3]
    high = (2.0 + max(w, 1.0)) * mu + 1.0
    low = min(-1.0, (abs(min(w, 0.0)) + 1.0) * -mu)
    u = np.linspace(low - 15.0, high + 15.0, 20_001)
    mass = integrand(u, *given) * (u[1] - u[0])
    assert math.log(mass.sum()) <= kernel.log_strip_bound(*given, low, high, 400)
    # In turn nearly all of what is outside lies above a range, and below it.
    for ends in ((low - 9.0, high), (low, high + 9.0)):
        outside = math.log(mass[(u < ends[0]) | (u > ends[1])].sum())
        assert outside <= kernel.log_tails(*given, *ends)


def test_what_lies_outside_a_narrow_range_counts_in_the_bound_along_a_line() -> None:
    given = 0.3, 0.01, 1.01, 0.5, 0.0, 0.1
    u = np.linspace(-15.0, 15.0, 20_001)
    mass = integrand(u, *given) * (u[1] - u[0])
    assert math.log(mass.sum()) <= kernel.log_strip_bound(*given, -0.01, 0.04, 20)


def test_a_step_is_cut_and_its_error_rounded_up() -> None:
    source = np.random.default_rng(8)
    for _ in range(300):
        wanted, shift, log_norm = 10.0 ** source.uniform((-4, -1, -2), (1, 1, 2))
        step, log_error = kernel.exact_step(wanted, shift, log_norm)
        assert 0.99 * wanted < step <= wanted
        mantissa = math.frexp(step)[0] * 2.0**9
        assert mantissa == math.floor(mantissa)
        turns = 2.0 * math.pi * shift / step
        truth = math.log(2.0) + log_norm - turns - math.log(-math.expm1(-turns))
        assert truth <= log_error <= truth + 0.01


GRID = [
    (rate, noise, c, removing)
    for rate in (1e-7, 0.01, 0.9)
    for noise in (0.5, 1.5, 6.0)
    for c in (0.05, 1.0, 30.0)
    for removing in (True, False)
]


def falls(loss: SampledGaussianLoss, c: float) -> tuple[np.ndarray[Any, Any], list[float]]:
    """Return heights y, and for each the proven exponent less ln of the largest M beyond it."""
    deviation = math.sqrt(max(loss.cgf_estimate(c).second_derivative, 1e-300))
    count = 400
    step = min(40.0 / deviation, 500.0) / count
    rule = loss.rule(c, count * step, -30.0)
    assert rule is not None
    values = rule.line(c, step, count)
    ratio = np.exp(values.real - values.real[0] - np.minimum(values.error, 1.0))
    ratio[~np.isfinite(values.error)] = 0.0
    largest_beyond = np.maximum.accumulate(ratio[::-1])[::-1]
    heights = step * np.arange(count)
    decay = loss.decay(c)
    return largest_beyond, [decay.exponent(float(y)) for y in heights]


@pytest.mark.parametrize(("rate", "noise", "c", "removing"), GRID)
def test_the_proven_decay_never_exceeds_the_true_one_nor_its_layers_the_density(
    rate: float, noise: float, c: float, removing: bool
) -> None:
    loss = SampledGaussianLoss(rate, noise, removing)
    largest_beyond, exponents = falls(loss, c)
    proven = np.exp(-np.array(exponents))
    assert (largest_beyond <= proven * (1 + 1e-9)).all()
    assert exponents == sorted(exponents)

    log_norm = loss.cgf_estimate(c).value
    width, mass, variation = uniform_minorant.level_sets(
        rate, loss.mu, loss.power(c), False, log_norm, 0.0
    )
    assert (width >= 0.0).all()
    assert (mass >= 0.0).all()
    assert mass.sum() <= 1.0
    assert variation > 0.0
