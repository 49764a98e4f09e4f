"""The large losses of the subsampled Gaussian apart from the small ones, against quadrature."""

import math
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import jumps as twin
from hockeystick.precision.profiles import reciprocal
from hockeystick.privacy_loss import SampledGaussianLoss
from hockeystick.privacy_loss.sampling.near_sampled_gaussian import NearSampledGaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian_tail import SampledGaussianTailSplit


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
    """Return ``ln M(c) = ln (A(c) + J(c))``."""
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
