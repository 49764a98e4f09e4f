"""The last iterate of noisy gradient descent: its Gaussian, and concrete runs below it."""

import math
from typing import Any, cast

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import DominatedLoss, GaussianLoss, NoiselessLoss, dominating_pair

FULL: dict[str, Any] = {"examples": 100, "step_size": 0.1, "smoothness": 10.0}
CYCLE: dict[str, Any] = {"batch_size": 10, **FULL}
MNIST: dict[str, Any] = {"examples": 60_000, "batch_size": 1500, "step_size": 0.05}


def last(noise: float, steps: int, **numbers: Any) -> hs.Mechanism:
    return hs.mechanisms.LastIterate(noise, steps, **numbers)


def mus(plan: hs.Mechanism) -> tuple[float, float]:
    """Return the ends of mu of a Gaussian; 0 for no lower end."""
    loss = dominating_pair(plan).removing
    if isinstance(loss, DominatedLoss):
        below = cast(GaussianLoss | None, loss.attained_case)
        return below.mu if below else 0.0, cast(GaussianLoss, loss.dominating).mu
    return cast(GaussianLoss, loss).mu, cast(GaussianLoss, loss).mu


@pytest.mark.parametrize("convexity", [0.0, 0.1, 3.0, 10.0])
@pytest.mark.parametrize("steps", [1, 2, 17, 4000])
def test_full_batches_have_the_exact_law_of_quadratic_losses(convexity: float, steps: int) -> None:
    # w <- c w + 2/s + N(0, 1) from one data set, and without 2/s from the other.
    with mp.workdps(40):
        c = 1 - mp.mpf("0.1") * mp.mpf(str(convexity))
        signal = variance = mp.mpf(0)
        for _ in range(steps):
            signal, variance = c * signal + mp.mpf(2) / 3, c * c * variance + 1
        truth = float(signal / mp.sqrt(variance))
    low, high = mus(last(3.0, steps, convexity=convexity, **FULL))
    assert low == high == pytest.approx(truth, rel=1e-15)


def test_cyclic_batches_have_the_bound_of_the_paper() -> None:
    # Bok, Su and Altschuler 2024, in the numbers of their logistic regression:
    # L/(b sigma) is 10/(1500/100), as their program has it.
    for strength in (0.002, 0.004):
        for epochs in (1, 2, 50, 200):
            c, n = 1 - 0.05 * strength, 40
            rest = c ** (2 * n - 2) * (1 - c**2) / (1 - c**n) ** 2
            rest *= (1 - c ** (n * (epochs - 1))) / (1 + c ** (n * (epochs - 1)))
            run = last(3.0, n * epochs, convexity=strength, smoothness=20.0, **MNIST)
            low, high = mus(run)
            assert low == high == pytest.approx(math.sqrt(1 + rest) * 2 / 3, rel=1e-9)


def test_regularised_logistic_regression_costs_what_the_papers_program_says() -> None:
    found = [
        round(
            hs.epsilon(last(3.0, 40 * epochs, convexity=m, smoothness=20.0, **MNIST), 1e-5).upper, 2
        )
        for m in (0.002, 0.004)
        for epochs in (50, 100, 200)
    ]
    assert found == [4.34, 5.60, 7.58, 4.32, 5.51, 7.09]


def test_a_partial_epoch_has_the_uses_of_the_last_batch() -> None:
    assert mus(last(2.0, 41, **CYCLE))[1] == mus(last(2.0, 50, **CYCLE))[1]
    assert mus(last(2.0, 7, **CYCLE)) == (1.0, 1.0)


def test_cyclic_batches_of_all_records_are_full_batches() -> None:
    cyclic = last(2.0, 9, batches="cyclic", convexity=1.0, **FULL)
    assert mus(cyclic) == mus(last(2.0, 9, convexity=1.0, **FULL))


def test_whoever_is_zeroed_or_added_moves_half_as_far() -> None:
    replaced = mus(last(2.0, 9, convexity=1.0, **FULL))
    for adjacency in ("zero-out", "add-remove"):
        assert mus(last(1.0, 9, convexity=1.0, adjacency=adjacency, **FULL)) == replaced


def test_the_diameter_counts_in_steps_of_one_record() -> None:
    # D / (eta C / n) = 0.06 * 100 / (0.1 * 5) = 12 of one record's gradients, 6 of its moves by 2.
    run = last(3.0, 1000, diameter=0.06, gradient_bound=5.0, **FULL)
    assert mus(run) == pytest.approx((0.0, math.sqrt(4 * 6) * 2 / 3), rel=1e-14)
    assert mus(run)[1] < mus(last(3.0, 1000, **FULL))[1] / 6


def test_no_noise_reveals_and_no_step_releases_nothing() -> None:
    revealing = (NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    assert dominating_pair(last(0.0, 5, **FULL)) == revealing
    assert dominating_pair(last(math.inf, 5, **FULL)) == (None, None)
    assert dominating_pair(last(1.0, 0, **FULL)) == (None, None)
    with pytest.raises(hs.errors.UnsupportedError, match="from 1e-300 on, or 0"):
        hs.epsilon(last(5e-324, 3, **FULL), 1e-5)


def test_quadratics_that_turn_around_in_each_step_have_no_lower_end() -> None:
    turning: dict[str, Any] = {"examples": 5, "step_size": 0.15, "smoothness": 10.0}
    assert mus(last(2.0, 9, convexity=10.0, **turning))[0] == 0.0
    low, high = mus(last(2.0, 9, convexity=9.0, **turning))
    assert low == high
