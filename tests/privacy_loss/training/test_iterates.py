"""The last iterate of noisy gradient descent: its law, and concrete runs below its bound."""

import math
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.training import SampledIterates
from tests.privacy_loss.decentralised.test_decentralised import mus

FULL: dict[str, Any] = {"examples": 100, "step_size": 0.1, "smoothness": 10.0}
CYCLE: dict[str, Any] = {"batch_size": 10, **FULL}
MNIST: dict[str, Any] = {"examples": 60_000, "batch_size": 1500, "step_size": 0.05}


def last(noise: float, steps: int, **numbers: Any) -> hs.Mechanism:
    return hs.mechanisms.LastIterate(noise, steps, **numbers)


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


def test_a_partial_epoch_has_the_uses_of_the_last_batch() -> None:
    assert mus(last(2.0, 41, **CYCLE))[1] == mus(last(2.0, 50, **CYCLE))[1]
    assert mus(last(2.0, 7, **CYCLE)) == (1.0, 1.0)


def test_whoever_is_zeroed_or_added_moves_half_as_far() -> None:
    replaced = mus(last(2.0, 9, convexity=1.0, **FULL))
    for adjacency in ("zero-out", "add-remove"):
        assert mus(last(1.0, 9, convexity=1.0, adjacency=adjacency, **FULL)) == replaced


def test_the_diameter_counts_in_steps_of_one_record() -> None:
    # D / (eta C / n) = 0.06 * 100 / (0.1 * 5) = 12 of one record's gradients, 6 of its moves by 2.
    run = last(3.0, 1000, diameter=0.06, gradient_bound=5.0, **FULL)
    assert mus(run) == pytest.approx((0.0, math.sqrt(4 * 6) * 2 / 3), rel=1e-14)
    assert mus(run)[1] < mus(last(3.0, 1000, **FULL))[1] / 6


def test_quadratics_that_turn_around_in_each_step_have_no_lower_end() -> None:
    turning: dict[str, Any] = {"examples": 5, "step_size": 0.15, "smoothness": 10.0}
    assert mus(last(2.0, 9, convexity=10.0, **turning))[0] == 0.0
    low, high = mus(last(2.0, 9, convexity=9.0, **turning))
    assert low == high


# Delta of w <- [w +- 1/4 + N(0, 1)] in an interval, +- in every third step or all, on a grid.
@pytest.mark.parametrize(
    ("diameter", "period", "costs"),
    [
        (0.5, 1, ((0.0, 0.234465), (0.2, 0.162519), (0.5, 0.035804))),
        (6.0, 1, ((0.0, 0.666209), (0.2, 0.631594), (0.5, 0.574961))),
        (2.0, 3, ((0.0, 0.192560), (0.2, 0.121391), (0.5, 0.045023))),
    ],
)
def test_no_linear_losses_in_an_interval_cost_more_than_the_bound(
    diameter: float, period: int, costs: tuple[tuple[float, float], ...]
) -> None:
    flat: dict[str, Any] = {"batch_size": 1, "step_size": 1.0, "smoothness": 1.0}
    plan = last(4.0, 20 * period, examples=period, diameter=diameter, gradient_bound=0.25, **flat)
    for epsilon, cost in costs:
        assert cost <= hs.delta(plan, epsilon).upper
    assert costs[0][1] > 0.4 * hs.delta(plan, 0.0).upper


def sampled(noise: float, steps: int, **numbers: Any) -> hs.Mechanism:
    return hs.mechanisms.LastIterate(noise, steps, batches="fixed-size", **numbers)


# Six steps at rate 1/3, factor 1 - convexity, reset before them: 64 Gaussians against one.
@pytest.mark.parametrize(
    ("adjacency", "convexity", "costs"),
    [
        ("replace-one", 0.0, (0.248275381, 0.159509705, 0.014759242)),
        ("replace-one", 0.3, (0.215154290, 0.127309386, 0.007987527)),
        ("zero-out", 0.0, (0.128656973, 0.040464503, 1.348392e-05)),
        ("zero-out", 1.0, (0.052839806, 0.002723977, 3.811939e-11)),
    ],
)
def test_the_exact_law_of_quadratic_losses_is_between_the_ends(
    adjacency: str, convexity: float, costs: tuple[float, ...]
) -> None:
    flat: dict[str, Any] = {"batch_size": 1, "step_size": 1.0, "smoothness": 1.0}
    plan = sampled(2.5, 6, examples=3, convexity=convexity, adjacency=adjacency, **flat)
    for epsilon, cost in zip((0.0, 0.3, 1.5), costs, strict=True):
        found = hs.delta(plan, epsilon)
        assert cost <= found.upper
        assert found.lower <= cost + 1e-6 or 0 < convexity < 1


def test_the_gaussian_of_a_split_covers_the_shifts_of_the_theorem() -> None:
    c, w = Fraction(9, 10), Fraction(1, 2)
    for across, apart in ((None, 2 * sum(c**k for k in range(6))), (Fraction(3), Fraction(3))):
        sampled = SampledIterates(c, Fraction(0), Fraction(1, 4), 10, Fraction(5), 2, across)
        # Four steps after the hidden six, the sampled three of them with shifts a_i = x c^(3-i).
        z = c * Fraction(apart)
        x = c**3 * z / sum((c ** (2 * k) for k in range(3)), Fraction(0))
        shifts = [x * c**2, x * c, x]
        for shift in shifts:
            z = c * z - shift
        assert z == 0
        square = sum((a**2 for a in shifts), Fraction(0)) / (25 * (1 - w**2))
        noise = sampled._gaussian_noise(4, 3, w)
        assert 0 <= square**-1 - noise**2 < Fraction(1, 10**30) * noise**2


# Delta of models in an interval that a record pulls up or down, and another one down, on a grid.
@pytest.mark.parametrize(
    ("diameter", "costs"),
    [
        (0.5, ((0.0, 0.121452), (0.1, 0.085878), (0.3, 0.014614))),
        (3.0, ((0.0, 0.247656), (0.1, 0.214962), (0.3, 0.154943))),
    ],
)
def test_no_linear_losses_on_random_batches_cost_more_than_the_bound(
    diameter: float, costs: tuple[tuple[float, float], ...]
) -> None:
    numbers: dict[str, Any] = {"examples": 2, "batch_size": 1, "step_size": 1.0, "smoothness": 1.0}
    plan = sampled(4.0, 15, diameter=diameter, gradient_bound=0.25, **numbers)
    free = sampled(4.0, 15, **numbers)
    for epsilon, cost in costs:
        found = hs.delta(plan, epsilon)
        assert cost <= found.upper + 1e-3
        assert found.lower == 0.0
        assert found.upper <= hs.delta(free, epsilon).upper * (1 + 1e-6)
