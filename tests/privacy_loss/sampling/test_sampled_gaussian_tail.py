"""The large losses of the subsampled Gaussian apart from the small ones, against quadrature."""

import math
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from hockeystick.kernels import near_outputs, sampled_gaussian
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import jumps as twin
from hockeystick.precision.profiles import exact, reciprocal
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
def test_the_bulk_is_that_of_quadrature(
    rate: float | Fraction, noise: float, threshold: float, c: float
) -> None:
    jumps = jumps_of(rate, noise, threshold)
    with mp.workdps(20):
        exact = float(mp.log(truth(jumps, -1, c)))
    assert jumps.bulk(c).value == pytest.approx(exact, abs=1e-7)
    upper = jumps.bulk_upper(c, -30.0)
    # Large losses beyond the last node are not taken off.
    assert exact <= upper + 1e-15
    assert upper <= exact + 2e-8


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


def test_the_upper_bound_of_the_bulk_holds_where_hardly_anything_is_small() -> None:
    for edge, log_tolerance in ((-4.0, -5.0), (-6.0, -24.0), (-8.0, -24.0)):
        jumps = split_at(2e-7, 1.0, edge, 0.5)
        with mp.workdps(20):
            assert mp.log(truth(jumps, -1, 1.0)) <= jumps.bulk_upper(1.0, log_tolerance)


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


def worst_share(jumps: SampledGaussianTailSplit, c: float, y: float) -> float:
    """Return the largest true error over the claimed one, on a line of three points up to y."""
    with mp.workdps(20):
        exact = [truth(jumps, 1, c, v) for v in (0.0, 0.5 * y, y)]
        rule = jumps.rule(c, y, float(mp.log(exact[0])) - 32.0)
        assert rule is not None
        found = rule.line(c, 0.5 * y, 3)
        assert (found.error <= 1e-4 * found.real[0]).all()
        factor = mp.exp(-mp.mpf(found.scale))
        return max(
            float(abs(mp.mpc(float(re), float(im)) - factor * value) / mp.mpf(float(error)))
            for re, im, error, value in zip(*found[1:], exact, strict=True)
        )


@lines
def test_the_line_of_a_rule_lies_within_its_error(
    rate: float | Fraction, noise: float, threshold: float, c: float, y: float, slack: float
) -> None:
    assert worst_share(jumps_of(rate, noise, threshold), c, y) <= 1.0


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


@pytest.mark.parametrize("kernel", ["windows", "nodes"])
def test_an_error_in_the_weights_is_counted(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = near_outputs if kernel == "windows" else sampled_gaussian
    as_it_is, off = getattr(module, kernel), 1e-7

    def inexact(*arguments: Any) -> tuple[Any, ...]:
        found = as_it_is(*arguments)
        if kernel == "windows":
            return found[0] + off, found[1] + off
        return found[0], found[1] - off, found[2], found[3] + off

    monkeypatch.setattr(module, kernel, inexact)
    assert 0.5 < worst_share(jumps_of(1e-4, 1.5, 0.05), 5.0, 6.0) <= 1.0 + 1e-6


def test_a_rule_that_would_take_too_many_nodes_is_none() -> None:
    narrow = split_at(1e-4, 1.5, 6.0, 1e-6)
    assert narrow.rule(5.0, 6.0, -30.0) is None
    assert narrow.bulk_upper(5.0, -24.0) == math.inf


# Two windows: rate, noise, the two thresholds, c and y; what lies between is held to quadrature.
BETWEEN = [
    (1e-3, 0.6, 0.1, 2.0, 6.0, 60.0),
    (1e-4, 1.5, 0.05, 0.4, 25.0, 90.0),
    (4e-5, 0.35, 1.0, 9.0, 1.5, 12.0),
    (0.02, 2.0, 0.05, 0.3, 30.0, 120.0),
]


def between(split: SampledGaussianTailSplit, c: float, v: float) -> Any:
    """Return ``E[W V exp(z L)]`` under P at c + i v by quadrature over the output."""
    small, (top, top_width) = small_of(split), split.top
    p, mu, w = exact(small.rate), reciprocal(small.noise_multiplier), mp.mpc(1 + mp.mpf(c), v)

    def integrand(u: Any) -> Any:
        ratio = mp.log1p(p * mp.expm1(mu * u - mu * mu / 2))
        logs = twin.log_normal_cdf((u - small.edge) / mp.mpf(small.width))
        logs += twin.log_normal_cdf((top - u) / mp.mpf(top_width))
        return mp.exp(w * ratio - u * u / 2 + logs) / mp.sqrt(2 * mp.pi)

    first, last = small.edge - 14 * small.width, top + 20 * top_width
    cells = 120
    cuts = [first + k * (mp.mpf(last) - first) / cells for k in range(cells + 1)]
    return mp.quad(integrand, cuts, method="gauss-legendre")


def split_between(
    rate: float, noise: float, low: float, high: float
) -> tuple[NearSampledGaussianLoss, SampledGaussianTailSplit]:
    near = SampledGaussianLoss(rate, noise, removing=True).near_outputs(high, 60.0)
    assert near is not None
    split = near.tail_split(low)
    assert split is not None
    assert split.top == (near.edge, near.width)
    return near, split


@pytest.mark.parametrize(("rate", "noise", "low", "high", "c", "y"), BETWEEN)
def test_what_lies_between_two_windows_is_that_of_quadrature(
    rate: float, noise: float, low: float, high: float, c: float, y: float
) -> None:
    near, split = split_between(rate, noise, low, high)
    with mp.workdps(25):
        values = [between(split, c, v) for v in (0.0, y)]
        rule = split.rule(c, y, float(mp.log(values[0].real)) - 30.0)
        assert rule is not None
        found = rule.line(c, y, 2)
        for k, truth_there in enumerate(values):
            off = mp.mpc(float(found.real[k]), float(found.imag[k])) * mp.exp(found.scale)
            assert abs(off - truth_there) <= float(found.error[k]) * mp.exp(found.scale)
        share = float(mp.log(abs(values[1]))) - near.cgf_bounds(c).midpoint
    assert share <= -split.decay(c).exponent(y) <= share + 12.0
    assert found.error[0] <= 1e-8 * found.real[0]


def test_a_tail_is_split_off_below_the_far_outputs_of_removing_only() -> None:
    near, _ = split_between(1e-3, 0.6, 0.1, 2.0)
    assert near.tail_split(2.5) is None
    adding = SampledGaussianLoss(1e-3, 0.6, removing=False).near_outputs(2.0, 60.0)
    assert adding is not None
    assert adding.tail_split(0.1) is None
