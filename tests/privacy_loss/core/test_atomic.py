"""Losses with atoms only, against the outputs of the mechanisms themselves."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import AtomicLoss, RandomizedResponsePairLoss, dominating_pair
from tests.oracles import zoo_outputs as outputs


@contextmanager
def workdps(digits: int) -> Iterator[None]:
    """Compute in so many digits, in the package's context and in the oracles'."""
    with mp.workdps(digits), mpmath.mp.workdps(digits):
        yield


def known(make: Callable[[], outputs.Pair]) -> Callable[[], outputs.Pair]:
    """Return the same, worked out once in more digits than any test uses."""

    @cache
    def pair() -> outputs.Pair:
        with workdps(80):
            return make()

    return pair


# Each mechanism with the probabilities of its outputs on two neighbouring data sets.
CASES: tuple[tuple[hs.Mechanism, Callable[[], Any]], ...] = (
    (hs.RandomizedResponse(1.0), lambda: outputs.randomized_response(mp.mpf(1), 2)),
    (hs.RandomizedResponse(0.3, 10), lambda: outputs.randomized_response(mp.mpf("0.3"), 10)),
    (hs.RandomizedResponse(6.0, 3), lambda: outputs.randomized_response(mp.mpf(6), 3)),
    (hs.mechanisms.UnaryEncoding(1.0), lambda: outputs.symmetric_bits(mp.mpf(1))),
    (hs.mechanisms.UnaryEncoding(1.0, "optimized"), lambda: outputs.optimised_bits(mp.mpf(1))),
    (hs.mechanisms.RAPPOR(0.5, 2), lambda: outputs.rappor(mp.mpf("0.5"), 2)),
    (hs.mechanisms.RAPPOR(0.9, 5), lambda: outputs.rappor(mp.mpf("0.9"), 5)),
    (hs.DiscreteLaplace(3.0), lambda: outputs.discrete_laplace(mp.mpf(3))),
    (hs.DiscreteLaplace(0.8, 4), lambda: outputs.discrete_laplace(mp.mpf("0.8"), 4)),
    (hs.DiscreteLaplace(5.0, 3), lambda: outputs.discrete_laplace(mp.mpf(5), 3)),
    (hs.DiscreteGaussian(0.35), lambda: outputs.discrete_gaussian(mp.mpf("0.35"))),
    (hs.DiscreteGaussian(0.6, 2), lambda: outputs.discrete_gaussian(mp.mpf("0.6"), 2)),
    (hs.DiscreteGaussian(2.0), lambda: outputs.discrete_gaussian(mp.mpf(2))),
    (hs.DiscreteGaussian(7.5, 4), lambda: outputs.discrete_gaussian(mp.mpf("7.5"), 4)),
)
each_case = pytest.mark.parametrize(
    ("plan", "pair"),
    [(plan, known(make)) for plan, make in CASES],
    ids=[str(plan) for plan, _ in CASES],
)
# What zoo_outputs leaves out, next to what is asked for.
LEFT_OUT = 1e-36


def loss_of(plan: hs.Mechanism) -> AtomicLoss:
    removing, adding = dominating_pair(plan)
    assert removing is adding
    assert isinstance(removing, AtomicLoss)
    return removing


@each_case
def test_each_atom_has_the_loss_and_the_probability_of_the_outputs(plan: Any, pair: Any) -> None:
    atoms = loss_of(plan).atoms()
    assert (np.diff(atoms.loss) > 0).all()
    with workdps(60):
        one = pair()
        places = {round(loss, 9): index for index, loss in enumerate(atoms.loss.tolist())}
        for p, q in zip(one.p, one.q, strict=True):
            truth = mp.log(p / q)
            index = places[round(float(truth), 9) + 0.0]
            assert abs(atoms.loss[index] - truth) <= 4 * 2.0**-52 * abs(truth) + 1e-50
            assert abs(atoms.log_p[index] - mp.log(p)) <= atoms.error[index] + LEFT_OUT / p


@each_case
@pytest.mark.parametrize("c", [1e-6, 0.3, 1.0, 7.0, 30.0])
def test_the_moments_hold_those_of_the_outputs(plan: Any, pair: Any, c: float) -> None:
    loss = loss_of(plan)
    found = loss.cgf_bounds(c)
    with workdps(80):
        one = pair()
        powers = [p * (p / q) ** mp.mpf(c) for p, q in zip(one.p, one.q, strict=True)]
        truth = mp.log(mp.fsum(powers) / mp.fsum(one.p))
        # The outputs left out weigh more under the powers.
        last = max(powers[0], powers[-1]) if loss.supremum == math.inf else 0
        assert abs(found.midpoint - truth) <= found.radius + 1e3 * last + LEFT_OUT
        assert found.radius <= 1e-9 * found.midpoint
        assert found.midpoint == pytest.approx(loss.cgf_estimate(c).value, rel=1e-8)


@each_case
def test_the_line_holds_the_transform_of_the_outputs(plan: Any, pair: Any) -> None:
    loss, c, step, count = loss_of(plan), 0.5, 0.37, 40
    rule = loss.rule(0.6, step * count, -34.0)
    assert rule is not None
    found = rule.line(c, step, count)
    with workdps(50):
        one = pair()
        reference = rule.reference_line(c, step, count)
        for k in (0, 1, 17, 39):
            z = mp.mpc(c, mp.mpf(step) * k)
            powers = [p * (p / q) ** z for p, q in zip(one.p, one.q, strict=True)]
            truth = mp.fsum(powers)
            # The outputs left out weigh more under the powers.
            last = 10 * abs(powers[-1]) if loss.supremum == math.inf else 0
            value = mp.exp(mp.mpc(float(found.real[k]), float(found.imag[k])))
            error = abs(truth) * math.expm1(float(found.error[k]))
            assert abs(value - truth) <= error + last + LEFT_OUT
            assert abs(mp.exp(reference[k]) - truth) < mp.exp(-34) + last
    assert loss.decay(c).exponent(1.0) == 0.0
    assert loss.decay(c).exponent(5.0) == 0.0
    assert loss.quadrature_available(c)


def test_a_sum_over_few_atoms_at_a_far_order_gives_way_to_the_largest_loss() -> None:
    loss = loss_of(hs.RandomizedResponse(1.0, 10))
    for c in (1e11, 1e13, 1e200):
        found = loss.cgf_bounds(c)
        truth = c + math.log(math.e / (math.e + 9.0))
        assert abs(found.midpoint - truth) <= found.radius + math.ulp(c)
        assert loss.cgf_estimate(c).first_derivative == pytest.approx(1.0)


def test_orders_beyond_the_atoms_are_bounded_and_never_summed() -> None:
    loss = loss_of(hs.mechanisms.Skellam(10.0))
    assert loss.rule(2000.0, 0.0, 1e6) is None
    assert not loss.quadrature_available(2000.0)
    found = loss.cgf_bounds(2000.0)
    with workdps(40):
        # One outcome's share is a lower bound.
        k = 2100
        ratio = mp.besseli(k, 10) / mp.besseli(k + 1, 10)
        least = mp.log(mp.besseli(k, 10) * mp.exp(-10)) + 2000 * mp.log(ratio)
    assert least > 0
    assert found.midpoint + found.radius >= least


@pytest.mark.parametrize("epsilon", [10.3, 37.6, 80.0])
@pytest.mark.parametrize("c", [0.5, 2.6156358481824533, 8.0])
def test_a_line_far_below_the_last_order_of_its_rule_holds_the_truth(
    epsilon: float, c: float
) -> None:
    # Weights scaled for the last order alone would underflow here.
    loss = RandomizedResponsePairLoss(epsilon)
    with workdps(40):
        size = mp.mpf(epsilon)
        over = mp.exp(c * size) + mp.exp(-(c + 1) * size)
        true = mp.log(over / (1 + mp.exp(-size)))
    for last in (c, 10.0 * c, 25.9, 100.0):
        rule = loss.rule(max(last, c), 200.0, float(true) - 15.0)
        assert rule is not None
        found = rule.line(c, 0.0, 1)
        assert abs(found.real[0] - true) <= found.error[0] <= 1e-6
