"""Sums of evenly spaced losses against the same sums by mpmath, and which have none."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants.orders import optimal_order
from hockeystick.accountants.prv._convolve import combinations, convolved
from hockeystick.accountants.prv._discretise import TiltedMasses
from hockeystick.accountants.prv._window import NO_TRUNCATION, Truncation, _coarsen, window
from hockeystick.privacy_loss import (
    CellLoss,
    GaussianLoss,
    LaplaceLoss,
    RandomizedResponsePairLoss,
    dominating_pair,
    observed_mixture,
)
from tests.oracles.added_integers import masses_of_sum


def loss_of(plan: hs.Mechanism) -> CellLoss:
    loss = dominating_pair(plan).removing
    assert isinstance(loss, CellLoss)
    return loss


@pytest.mark.parametrize(
    ("sigma", "runs", "epsilon"), [(2.5, 7, 0.4), (2.5, 7, 12.0), (0.6, 5, 3.0), (3.0, 1, 1.0)]
)
def test_delta_of_the_sums_holds_that_of_the_noise_added_up(
    sigma: float, runs: int, epsilon: float
) -> None:
    """The runs' loss is that of the sum of their noises, ``(2 S + n) / (2 sigma^2)``."""
    found = convolved(loss_of(hs.DiscreteGaussian(sigma)), runs, 1.0, most=3000)
    assert found is not None
    least, mass = masses_of_sum(sigma, runs)
    with mp.workdps(60):
        double = 2 * mpf(str(sigma)) ** 2
        losses = [(2 * (least + k) + runs) / double for k in range(len(mass))]
        truth = mp.fsum(
            mpf(p.numerator) / p.denominator * (1 - mp.exp(epsilon - x))
            for x, p in zip(losses, mass, strict=True)
            if x > epsilon
        )
        assert found.lower(epsilon) <= mp.log(truth) <= found.upper(epsilon)
        assert found.upper(epsilon) - found.lower(epsilon) < 1e-9


@pytest.mark.parametrize(
    ("plan", "runs", "most"),
    [
        (hs.DiscreteGaussian(2.5), 7, 1000),
        (hs.mechanisms.Skellam(4.0), 3, 10_000),
        (hs.Laplace(2.0), 3, 10_000),
    ],
)
def test_many_or_uneven_values_are_not_listed(plan: hs.Mechanism, runs: int, most: int) -> None:
    assert convolved(loss_of(plan), runs, 1.0, most=most) is None


def test_what_comes_near_underflow_is_left_out_and_counted() -> None:
    found = convolved(loss_of(hs.DiscreteGaussian(0.7)), 6, 1.0, most=3000)
    assert found is not None
    assert found.mass[found.mass > 0.0].min() > 1e-296
    assert found.mass[0] == 0.0
    assert found.omitted_mass > 0.0


THREE = {1.0: math.exp(1.0), 0.0: 1.0, -1.0: 1.0}
TOTAL = sum(THREE.values())


def by_sequences(count: int, rest: tuple[float, float], epsilon: float) -> float:
    """Return delta of ternary response and one binary one, over every sequence of outcomes."""
    own, win = rest
    delta = 0.0
    for outcomes in itertools.product(THREE, repeat=count):
        p = math.prod(THREE[one] / TOTAL for one in outcomes)
        for loss, q in ((own, win), (-own, 1.0 - win)):
            delta += p * q * max(-math.expm1(epsilon - sum(outcomes) - loss), 0.0)
    return delta


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 1.7, 3.2])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_combinations_are_what_every_sequence_adds_up_to(count: int, epsilon: float) -> None:
    plan = hs.RandomizedResponse(1.0, 3) ** count @ hs.PureDP(0.3)
    exact = by_sequences(count, (0.3, 1.0 / (1.0 + math.exp(-0.3))), epsilon)
    found = hs.delta(plan, epsilon, accountant="prv")
    assert isinstance(found, hs.Certified)
    assert found.lower <= exact * (1.0 + 1e-12)
    assert exact * (1.0 - 1e-12) <= found.upper
    assert found.relative_width <= 1e-11


def test_a_density_or_too_many_combinations_are_left_to_the_lattice() -> None:
    lattice_only: list[tuple[CellLoss, int]] = [(LaplaceLoss(1.0), 2)]
    many: list[tuple[CellLoss, int]] = [
        (RandomizedResponsePairLoss(0.1 + 0.01 * k), 9) for k in range(20)
    ]
    assert combinations(lattice_only, 1.0) is None
    assert combinations(many, 1.0) is None


def test_far_from_where_it_is_tilted_to_the_upper_end_is_loose_not_wrong() -> None:
    terms: list[tuple[CellLoss, int]] = [
        (RandomizedResponsePairLoss(0.5), 2),
        (RandomizedResponsePairLoss(0.3), 1),
    ]
    steep = combinations(terms, 1e6)
    assert steep is not None
    assert steep.upper(0.0) >= 0.0
    assert steep.lower(0.0) == -math.inf


def heavy() -> CellLoss:
    """Return a mixture whose rare part is all of its moments."""
    found = observed_mixture([(1.0 - 1e-40, GaussianLoss(2.0)), (1e-40, GaussianLoss(0.01))])
    assert found is not None
    return found


def test_a_rare_part_is_left_out_where_it_would_be_all_there_is() -> None:
    mixture, plain = heavy(), GaussianLoss(2.0)
    truncation = Truncation.at([(mixture, 10)], math.log(1e-6))
    found = truncation.cgf_estimate(mixture, 3.0)
    exact = plain.cgf_estimate(3.0)
    assert found.value == pytest.approx(exact.value, rel=1e-3)
    assert found.first_derivative == pytest.approx(exact.first_derivative, rel=1e-3)
    assert mixture.cgf_estimate(3.0).value > 1e3


def test_what_counts_is_left_as_it_is() -> None:
    loss = GaussianLoss(2.0)
    truncation = Truncation.at([(loss, 10)], math.log(1e-6))
    assert truncation.cgf_estimate(loss, 3.0) == loss.cgf_estimate(3.0)
    assert NO_TRUNCATION.cgf_estimate(loss, 3.0) == loss.cgf_estimate(3.0)
    terms = truncation.terms([(loss, 10)])
    assert optimal_order(terms, -12.0) == optimal_order([(loss, 10)], -12.0)


def rough(points: int, seed: int) -> TiltedMasses:
    rng = np.random.default_rng(seed)
    weight = rng.random(points) ** 8 * (rng.random(points) < 0.7)
    weight[points // 2] += 1.0
    return TiltedMasses(0.1, -points // 3, weight / weight.sum(), 0.0, 0.0, np.zeros(0), 0.0, 0.0)


@pytest.mark.parametrize("points", [1, 2, 3, 255, 256, 257, 1000, 4097])
def test_knots_keep_the_mass_and_the_mean_and_widen(points: int) -> None:
    one, step = rough(points, points), 0.01
    at, weight = _coarsen(one, step, 256)
    own = one.offset + step * (one.first + np.arange(points))
    assert weight.sum() == pytest.approx(1.0, rel=1e-13)
    assert (weight * at).sum() == pytest.approx((one.weight * own).sum(), rel=1e-12, abs=1e-14)
    for s in (-8.0, -1.0, 2.0, 10.0):
        assert (weight * np.exp(s * at)).sum() >= (one.weight * np.exp(s * own)).sum() * (1 - 1e-13)


@pytest.mark.parametrize("count", [1, 4, 40])
@pytest.mark.parametrize("log_outside", [-2.0, -12.0])
def test_no_more_than_asked_lies_outside(count: int, log_outside: float) -> None:
    one, other, step = rough(90, 1), rough(1500, 2), 0.01
    found = window([(one, count), (other, 2)], step, log_outside)
    total = np.ones(1)
    for weights, times in ((one, count), (other, 2)):
        for _ in range(times):
            total = np.convolve(total, weights.weight)
    first = count * one.first + 2 * other.first
    at = (count + 2) * 0.1 + step * (first + np.arange(total.size))
    outside = total[(at < found.low - 1e-9) | (at > found.high + 1e-9)].sum()
    assert outside <= found.outside * (1 + 1e-9) + 1e-15
    assert found.outside <= 2.0 * math.exp(log_outside) * (1.0 + 1e-5)
