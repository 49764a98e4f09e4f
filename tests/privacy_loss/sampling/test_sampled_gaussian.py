"""The subsampled Gaussian: moments, the far outputs, the tail, many noises, by mpmath."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.profiles import exact, reciprocal
from hockeystick.privacy_loss import GaussianLoss, NoiselessLoss, SampledGaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import (
    NearSampledGaussianLoss,
    SampledGaussianTailSplit,
)
from tests.precision.twins import sampled_gaussian_cumulant

RATES: tuple[float | Fraction, ...] = (
    *(1e-305, 1e-40, 1e-20, 1e-6, 0.1, 0.5, 0.99, 1.0 - 2.0**-52),
    Fraction(256, 60_000),
)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("noise", [0.001, 0.05, 0.1, 0.7, 1.1, 6.0, 1e4, 1e7])
def test_the_cumulant_at_integer_orders_is_the_binomial_sum_within_its_error(
    rate: float | Fraction, noise: float
) -> None:
    loss = SampledGaussianLoss(rate, noise, removing=True)
    for order in (2, 5, 40):
        found = loss.cgf_bounds(order - 1.0)
        truth = sampled_gaussian_cumulant(rate, noise, order)
        with mp.workdps(40):
            assert abs(mp.mpf(found.midpoint) - truth) <= found.radius
        if not loss.out_of_range and noise > 0.1:  # at 0.1 the convex bound may stand in
            assert found.radius <= 1e-12 * found.midpoint + 1e-14
        if noise < 0.1 and rate > 1e-20:
            assert found.radius <= 1e-8 * found.midpoint


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


@pytest.mark.parametrize(("noise", "order"), [(1e-300, 2.0), (1e-150, 1e10), (0.1, 1e300)])
def test_what_no_float_can_hold_is_infinite_and_never_nan(noise: float, order: float) -> None:
    assert SampledGaussianLoss(0.05, noise, True).cgf_bounds(order - 1.0).midpoint == math.inf
    with pytest.raises(hs.errors.IncompatibleError, match="infinite, or nothing is known"):
        hs.convert(hs.PoissonSubsampled(hs.Gaussian(noise), 0.05), hs.RenyiDP, orders=[order])


def split_at(rate: float, noise: float, edge: float, width: float) -> SampledGaussianTailSplit:
    """Return what is split by a window of one's own."""
    loss = SampledGaussianLoss(rate, noise, removing=True)
    return SampledGaussianTailSplit(loss, NearSampledGaussianLoss(rate, noise, True, edge, width))


# Steps as wide as the normal density itself allows, and sums that are too small: of A, or because
# that of the weights, which stands for 1, is too large.
# The last is ln A, by quadrature.
@pytest.mark.parametrize(
    ("rate", "noise", "edge", "c", "log_tolerance", "truth"),
    [
        (0.3417, 2.1, 0.5818661246234291, 2.0, -8.0, -0.57249811366786241),
        (0.4883, 48.0, 1.1826932119268225, 73.0, -8.0, -0.35519218647143221),
        (
            *(0.22008038637276447, 226.48507289432476, 47.32769966645332, 287.13874251746716),
            *(-19.05923, -0.0036247052644430419),
        ),
    ],
)
def test_the_upper_bound_of_the_bulk_counts_the_errors_of_its_sums(
    rate: float, noise: float, edge: float, c: float, log_tolerance: float, truth: float
) -> None:
    jumps = split_at(rate, noise, edge, 0.12 * noise)
    assert truth <= jumps.bulk_upper(c, log_tolerance)


# The logarithm of the share by quadrature, and by how much its bound may exceed it.
@pytest.mark.parametrize(
    ("rate", "noise", "threshold", "c", "y", "share", "slack"),
    [
        (1e-4, 1.5, 0.05, 5.0, 6.0, -48.449733127352244, 1.6),
        (3.2e-4, 1.5, 0.4, 6.0, 2.0, -63.168583049802479, 1.7),
        (1e-8, 0.4, 1e-3, 3.0, 2.0, -19.809312662435422, 1.0),
        (0.3, 20.0, 0.1, 59.0, 20.0, -3.7328830080869311, 3.9),
        (0.3, 0.5, 5.0, 0.3, 3.0, -4.8385882632069709, 2.0),
        (0.05, 3.0, 0.1, 0.01, 1.0, -7.7320401419754303, 1.5),
    ],
)
def test_the_share_of_large_losses_is_never_above_its_bound(
    rate: float, noise: float, threshold: float, c: float, y: float, share: float, slack: float
) -> None:
    jumps = SampledGaussianLoss(rate, noise, removing=True).tail_split(threshold)
    assert jumps is not None
    assert share <= -jumps.decay(c).exponent(y) <= share + slack


# A wide window: the height, not the window, says how fine the nodes have to be.
@pytest.mark.parametrize(
    ("y", "truth"),
    [
        (1.0, 0.3661438495533237 + 0.11596321694781712744j),
        (15.0, -0.019021326798875405075 - 0.015579544805050916876j),
    ],
)
@pytest.mark.parametrize("log_tolerance", [-2.0, -8.0])
def test_a_coarse_rule_owns_up_to_its_error(y: float, truth: complex, log_tolerance: float) -> None:
    jumps = split_at(0.3, 1.0, 1.0, 2.0)
    rule = jumps.rule(0.5, y, math.log(0.43556004049328057643) + log_tolerance)
    assert rule is not None
    found = rule.line(0.5, y, 2)
    off = abs(complex(found.real[1], found.imag[1]) - truth * math.exp(-found.scale))
    assert 1e-4 * found.error[1] < off <= found.error[1]
    assert found.error[1] <= 2.1 * math.exp(log_tolerance) * found.real[0]


def test_a_rule_that_would_take_too_many_nodes_is_none() -> None:
    narrow = split_at(1e-4, 1.5, 6.0, 1e-6)
    assert narrow.rule(5.0, 6.0, -30.0) is None
    assert narrow.bulk_upper(5.0, -24.0) == math.inf


def test_a_tail_is_split_off_below_the_far_outputs_of_removing_only() -> None:
    near = SampledGaussianLoss(1e-3, 0.6, removing=True).near_outputs(2.0, 60.0)
    assert near is not None
    split = near.tail_split(0.1)
    assert split is not None
    assert split.top == (near.edge, near.width)
    assert near.tail_split(2.5) is None
    adding = SampledGaussianLoss(1e-3, 0.6, removing=False).near_outputs(2.0, 60.0)
    assert adding is not None
    assert adding.tail_split(0.1) is None


# Rate, noise, direction, the loss beyond which outputs are far, and the order c of a line.
CUTS = [
    (2e-5, 1.22, True, 0.05, 200.0),
    (Fraction(256, 60_000), 1.1, True, 1.0, 6.0),
    (0.3, 0.4, True, 8.0, 1.0),
    (1e-3, 50.0, True, 1e-4, 3_000.0),
    (1e-5, 1.1, False, 3e-3, 20_000.0),
    (0.4, 2.0, False, 3.0, 10.0),
]


def near_of(
    rate: float | Fraction, noise: float, removing: bool, threshold: float
) -> NearSampledGaussianLoss:
    found = SampledGaussianLoss(rate, noise, removing).near_outputs(threshold, 50.0)
    assert isinstance(found, NearSampledGaussianLoss)
    return found


@pytest.mark.parametrize(("rate", "noise", "removing", "threshold", "c"), CUTS)
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
        lines = (one.line(x, y, 2) for one in (rule, finer))
        coarse, fine = (np.exp(one.real[1] + 1j * one.imag[1]) for one in lines)
        assert abs(coarse - fine) <= math.exp(rule.log_error) + 1e-11 * abs(fine)


@pytest.mark.parametrize(
    ("rate", "noise", "edge", "width"),
    [
        (1e-3, 50.0, 37.0, 0.1),
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


# The logarithm of the integral of the powers beyond the edge, by quadrature.
@pytest.mark.parametrize(
    ("rate", "noise", "threshold", "order", "truth"),
    [
        (2e-5, 1.22, 0.05, 0.3, -53.183379868544387),
        (2e-5, 1.22, 0.05, 30.0, -81.910222727649911),
        (0.3, 0.4, 8.0, 0.3, -15.0219785820981),
        (1e-8, 1.0, 1e-6, 0.3, -16.032811284381936),
        (1e-8, 1.0, 1e-6, 30.0, -47.592264619892723),
    ],
)
def test_the_bound_of_far_powers_is_one_and_is_close(
    rate: float, noise: float, threshold: float, order: float, truth: float
) -> None:
    loss, order = near_of(rate, noise, True, threshold), order / threshold
    assert loss.log_far_power(order) >= truth - 1e-9
    if order * threshold < 100.0 and order * rate < 10.0:
        assert loss.log_far_power(order) <= truth + 2.0
