"""The subsampled Gaussian without its far outputs: transform, masses and bounds, by quadrature."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import jumps as twin
from hockeystick.precision.profiles import exact, reciprocal
from hockeystick.privacy_loss import SampledGaussianLoss
from hockeystick.privacy_loss.sampling.near_sampled_gaussian import NearSampledGaussianLoss

# Rate, noise, direction, the loss beyond which outputs are far, and the order c of a line.
CUTS = [
    (2e-5, 1.22, True, 0.05, 200.0),
    (5.2e-5, 5.3, True, 7e-4, 20_000.0),
    (4.15e-5, 9.07, True, 1.2e-4, 15_000.0),
    (1.9e-4, 0.6, True, 0.2, 30.0),
    (Fraction(256, 60_000), 1.1, True, 1.0, 6.0),
    (0.3, 0.4, True, 8.0, 1.0),
    (0.5, 20.0, True, 0.05, 50.0),
    (1e-3, 50.0, True, 1e-4, 3_000.0),
    (1e-5, 1.1, False, 3e-3, 20_000.0),
    (5.2e-5, 5.3, False, 3e-4, 20_000.0),
    (0.01, 0.7, False, 5.0, 60.0),
    (0.4, 2.0, False, 3.0, 10.0),
]
cuts = pytest.mark.parametrize(("rate", "noise", "removing", "threshold", "c"), CUTS)


def near_of(
    rate: float | Fraction, noise: float, removing: bool, threshold: float
) -> NearSampledGaussianLoss:
    found = SampledGaussianLoss(rate, noise, removing).near_outputs(threshold, 50.0)
    assert isinstance(found, NearSampledGaussianLoss)
    return found


@cuts
@pytest.mark.parametrize("log_tolerance", [-6.0, -16.0])
def test_a_rule_errs_by_no_more_than_it_claims_on_the_line_and_left_of_it(
    rate: float | Fraction,
    noise: float,
    removing: bool,
    threshold: float,
    c: float,
    log_tolerance: float,
) -> None:
    loss = near_of(rate, noise, removing, threshold)
    rule = loss.rule(c, 3.0 * c, log_tolerance)
    assert rule is not None
    assert rule.log_error <= log_tolerance + 0.7
    finer = replace(
        rule, step=rule.step / 8, first=8 * rule.first - 400, nodes=8 * rule.nodes + 800
    )
    for x, y in ((c, 3.0 * c), (c, 0.0), (0.3 * c, 2.0 * c)):
        coarse, fine = (np.exp(one.real[1] + 1j * one.imag[1]) for one in lines(rule, finer, x, y))
        assert abs(coarse - fine) <= math.exp(rule.log_error) + 1e-11 * abs(fine)


def lines(rule: Any, finer: Any, c: float, y: float) -> Any:
    return rule.line(c, y, 2), finer.line(c, y, 2)


@pytest.mark.parametrize(
    ("rate", "noise", "edge", "width"),
    [
        (2e-5, 1.22, 10.4, 0.05),
        (5e-5, 5.3, 14.3, 0.1),
        (1e-3, 50.0, 37.0, 0.1),
        (1e-3, 1e4, 8.0, 0.1),
        (0.5, 0.3, 3.0, 0.02),
        (1e-8, 0.3, 25.0, 0.02),
        (Fraction(1, 3), 2.0, 0.5, 0.25),
    ],
)
def test_far_masses_lie_within_their_errors(
    rate: float | Fraction, noise: float, edge: float, width: float
) -> None:
    far = NearSampledGaussianLoss(rate, noise, True, edge, width).far
    with mp.workdps(60):
        mu, p = reciprocal(noise), exact(rate)
        scale = mp.sqrt(2 * (1 + mp.mpf(width) ** 2))
        q_mass = mp.erfc(mp.mpf(edge) / scale) / 2
        moved = mp.erfc((mp.mpf(edge) - mu) / scale) / 2
        p_mass = (1 - p) * q_mass + p * moved
        truth = (p_mass, q_mass, p_mass - q_mass)
        for log_mass, mass in zip(far[:3], truth, strict=True):
            assert abs(mp.exp(log_mass) / mass - 1) <= far.error
    assert far.error < 1e-6


@pytest.mark.parametrize(
    ("rate", "noise", "threshold"),
    [(rate, noise, threshold) for rate, noise, removing, threshold, _ in CUTS if removing]
    + [(1e-8, 1.0, 1e-6)],
)
@pytest.mark.parametrize("order", [0.3, 3.0, 30.0, 300.0])
def test_the_bound_of_far_powers_is_one_and_is_close(
    rate: float | Fraction, noise: float, threshold: float, order: float
) -> None:
    loss, order = near_of(rate, noise, True, threshold), order / threshold
    with mp.workdps(20):
        mu = reciprocal(noise)
        truth = mp.log(twin.integral(rate, mu, mp.mpc(-order), loss.edge, loss.width, 1).real)
    assert loss.log_far_power(order) >= truth - 1e-9
    if order * threshold < 100.0 and order * rate < 10.0:
        assert loss.log_far_power(order) <= truth + 2.0
