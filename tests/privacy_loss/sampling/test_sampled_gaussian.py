"""The subsampled Gaussian: moments, the far outputs, the tail, many noises, by mpmath."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import jumps as twin
from hockeystick.precision.profiles import exact, reciprocal
from hockeystick.privacy_loss import GaussianLoss, NoiselessLoss, SampledGaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian_tail import (
    NearSampledGaussianLoss,
    SampledGaussianTailSplit,
)

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
    "rate",
    [0.25, 0.9999999, Fraction(1, 3), Fraction(10**16 - 3, 10**16), 1 - Fraction(10) ** -400],
)
def test_the_largest_loss_when_adding_is_rounded_up(rate: Any) -> None:
    with mp.workdps(60):
        exact = Fraction(rate)
        truth = mp.log(exact.denominator) - mp.log(exact.denominator - exact.numerator)
        for loss in (SampledGaussianLoss(rate, 1.0, False), NoiselessLoss(rate, False)):
            assert truth <= loss.supremum <= truth * (1 + mp.mpf(10) ** -7)


SMALL_RATES: Final = (1e-6, 1e-3, 0.05, 0.5, 0.99)


def ends(noise: float, rate: float, order: float, removing: bool) -> tuple[float, float]:
    found = SampledGaussianLoss(rate, noise, removing).cgf_bounds(order - 1.0)
    return found.midpoint - found.radius, found.midpoint + found.radius


@pytest.mark.parametrize("noise", [0.001, 0.02, 0.05])
def test_noise_out_of_reach_of_a_quadrature_still_has_close_ends(noise: float) -> None:
    with mp.workdps(40):
        for rate, order in itertools.product((*SMALL_RATES, 1.0 - 2.0**-53), (2, 5, 40)):
            low, high = ends(noise, rate, order, removing=True)
            assert low <= removing_cumulant(rate, noise, order) <= high
            assert high - low <= 1e-8 * high


@pytest.mark.parametrize("order", [1.2, 2, 64])
def test_rates_next_to_0_have_ends_too(order: float) -> None:
    # E[r^w] is between its norms, which are the same here: what is not sampled is e^-700 of it.
    with mp.workdps(40):
        power = mp.mpf(order)
        norm = power * (mp.log(mp.mpf("1e-305")) + (power - 1) * 10_000 / 2)
        low, high = ends(0.01, 1e-305, order, removing=True)
        slack = mp.mpf(10) ** -30
        assert low - slack <= max(norm, 0)
        assert norm - slack <= high < math.inf


@pytest.mark.parametrize(("noise", "order"), [(1e-300, 2.0), (1e-150, 1e10), (0.1, 1e300)])
def test_what_no_float_can_hold_is_infinite_and_never_nan(noise: float, order: float) -> None:
    assert SampledGaussianLoss(0.05, noise, True).cgf_bounds(order - 1.0).midpoint == math.inf
    with pytest.raises(hs.errors.IncompatibleError, match="infinite, or nothing is known"):
        hs.convert(hs.PoissonSubsampled(hs.Gaussian(noise), 0.05), hs.RenyiDP, orders=[order])


def jumps_of(rate: float | Fraction, noise: float, threshold: float) -> SampledGaussianTailSplit:
    """Return what ``losses`` itself takes apart above a threshold."""
    jumps = SampledGaussianLoss(rate, noise, removing=True).tail_split(threshold)
    assert jumps is not None
    return jumps


def split_at(rate: float, noise: float, edge: float, width: float) -> SampledGaussianTailSplit:
    """Return what is split by a window of one's own."""
    loss = SampledGaussianLoss(rate, noise, removing=True)
    return SampledGaussianTailSplit(loss, NearSampledGaussianLoss(rate, noise, True, edge, width))


def small_of(jumps: SampledGaussianTailSplit) -> NearSampledGaussianLoss:
    """Return the small losses, which know rate and noise."""
    assert isinstance(jumps.small, NearSampledGaussianLoss)
    return jumps.small


@cache
def truth(jumps: SampledGaussianTailSplit, side: int, c: float, v: float = 0.0) -> Any:
    """Return J (side 1) or A (side -1) at c + i v; several tests ask for the same."""
    loss = small_of(jumps)
    with mp.workdps(20):
        w, mu = mp.mpc(1 + mp.mpf(c), v), reciprocal(loss.noise_multiplier)
        found = twin.integral(loss.rate, mu, w, loss.edge, loss.width, side)
    return found if v else mp.re(found)


def cgf_bounds(jumps: SampledGaussianTailSplit, c: float) -> Any:
    return mp.log(truth(jumps, 1, c) + truth(jumps, -1, c))


BULKS = [
    (1e-4, 1.5, 0.05, 8.0),
    (3.2e-4, 1.5, 0.4, 20.0),
    (1e-8, 0.1, 1e-3, 2.0),
    (1e-8, 0.4, 1e-3, 30.0),
    (1e-5, 20.0, 1e-6, 59.0),
    (0.3, 20.0, 0.1, 59.0),
    (0.3, 20.0, 0.02, 0.01),
    (0.01, 1.0, 2.0, 5.0),
    (Fraction(256, 60_000), 1.1, 1.0, 3.0),
    (0.05, 3.0, 0.1, 0.01),
    (0.2, 10.0, 0.05, 20.0),
]
bulks = pytest.mark.parametrize(("rate", "noise", "threshold", "c"), BULKS)


@bulks
@pytest.mark.parametrize("log_tolerance", [-2.0, -8.0, -15.0, -24.0])
def test_the_upper_bound_of_the_bulk_is_one_at_any_tolerance(
    rate: float | Fraction, noise: float, threshold: float, c: float, log_tolerance: float
) -> None:
    jumps = jumps_of(rate, noise, threshold)
    fine = jumps.bulk_upper(c, -32.0)
    upper = jumps.bulk_upper(c, log_tolerance)
    assert fine - 1e-9 <= upper <= fine + 4.0 * math.exp(log_tolerance) + 1e-9


# Steps as wide as the normal density itself allows, and sums that are too small: of A, or because
# that of the weights, which stands for 1, is too large.
COARSE = [
    (0.3417, 2.1, 0.5818661246234291, 2.0, -8.0),
    (0.4629, 90.9, 45.51903778051871, 77.0, -8.0),
    (0.4883, 48.0, 1.1826932119268225, 73.0, -8.0),
    (0.22008038637276447, 226.48507289432476, 47.32769966645332, 287.13874251746716, -19.05923),
]


@pytest.mark.parametrize(("rate", "noise", "edge", "c", "log_tolerance"), COARSE)
def test_the_upper_bound_of_the_bulk_counts_the_errors_of_its_sums(
    rate: float, noise: float, edge: float, c: float, log_tolerance: float
) -> None:
    jumps = split_at(rate, noise, edge, 0.12 * noise)
    with mp.workdps(20):
        assert mp.log(truth(jumps, -1, c)) <= jumps.bulk_upper(c, log_tolerance)


# The last is by how much the bound of the share may exceed the truth, as a logarithm.
LINES = [
    (1e-4, 1.5, 0.05, 5.0, 6.0, 1.6),
    (3.2e-4, 1.5, 0.4, 6.0, 2.0, 1.7),
    (1e-8, 0.1, 1e-3, 0.01, 0.1, 2.7),
    (1e-8, 0.4, 1e-3, 3.0, 2.0, 1.0),
    (1e-3, 20.0, 1e-3, 0.5, 4.0, 5.0),
    (0.3, 20.0, 0.1, 59.0, 20.0, 3.9),
    (0.01, 1.0, 2.0, 1.0, 5.0, 3.0),
    (Fraction(256, 60_000), 1.1, 1.0, 3.0, 8.0, 1.3),
    (0.3, 0.5, 5.0, 0.3, 3.0, 2.0),
    (0.05, 3.0, 0.1, 0.01, 1.0, 1.5),
]
lines = pytest.mark.parametrize(("rate", "noise", "threshold", "c", "y", "slack"), LINES)


@lines
def test_the_share_of_large_losses_is_never_above_its_bound(
    rate: float | Fraction, noise: float, threshold: float, c: float, y: float, slack: float
) -> None:
    jumps = jumps_of(rate, noise, threshold)
    with mp.workdps(20):
        share = float(mp.log(abs(truth(jumps, 1, c, y))) - cgf_bounds(jumps, c))
    assert share <= -jumps.decay(c).exponent(y) <= share + slack


# A wide window: the height, not the window, says how fine the nodes have to be.
@pytest.mark.parametrize("log_tolerance", [-2.0, -8.0])
@pytest.mark.parametrize("y", [1.0, 15.0])
def test_a_coarse_rule_owns_up_to_its_error(y: float, log_tolerance: float) -> None:
    jumps = split_at(0.3, 1.0, 1.0, 2.0)
    with mp.workdps(20):
        size = truth(jumps, 1, 0.5)
        rule = jumps.rule(0.5, y, float(mp.log(size)) + log_tolerance)
        assert rule is not None
        found = rule.line(0.5, y, 2)
        exact = truth(jumps, 1, 0.5, y) * mp.exp(-mp.mpf(found.scale))
        off = abs(mp.mpc(float(found.real[1]), float(found.imag[1])) - exact)
    assert 1e-4 * found.error[1] < off <= found.error[1]
    assert found.error[1] <= 2.1 * math.exp(log_tolerance) * found.real[0]


def test_a_rule_that_would_take_too_many_nodes_is_none() -> None:
    narrow = split_at(1e-4, 1.5, 6.0, 1e-6)
    assert narrow.rule(5.0, 6.0, -30.0) is None
    assert narrow.bulk_upper(5.0, -24.0) == math.inf


def split_between(
    rate: float, noise: float, low: float, high: float
) -> tuple[NearSampledGaussianLoss, SampledGaussianTailSplit]:
    near = SampledGaussianLoss(rate, noise, removing=True).near_outputs(high, 60.0)
    assert near is not None
    split = near.tail_split(low)
    assert split is not None
    assert split.top == (near.edge, near.width)
    return near, split


def test_a_tail_is_split_off_below_the_far_outputs_of_removing_only() -> None:
    near, _ = split_between(1e-3, 0.6, 0.1, 2.0)
    assert near.tail_split(2.5) is None
    adding = SampledGaussianLoss(1e-3, 0.6, removing=False).near_outputs(2.0, 60.0)
    assert adding is not None
    assert adding.tail_split(0.1) is None


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
        coarse, fine = (
            np.exp(one.real[1] + 1j * one.imag[1]) for one in both_lines(rule, finer, x, y)
        )
        assert abs(coarse - fine) <= math.exp(rule.log_error) + 1e-11 * abs(fine)


def both_lines(rule: Any, finer: Any, c: float, y: float) -> Any:
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
