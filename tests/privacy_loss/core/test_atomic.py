"""Losses with atoms only, against the outputs of the mechanisms themselves."""

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import AtomicLoss, RandomizedResponsePairLoss, dominating_pair

# The probabilities of outcomes on two neighbouring data sets.
Outcomes = list[tuple[Any, Any]]


def merged(rows: Iterable[tuple[Any, Any]]) -> Outcomes:
    """Put outcomes of one quotient together, in ascending order; leave out those below 1e-45."""
    found: dict[str, tuple[Any, Any]] = {}
    for p, q in rows:
        if max(p, q) > mp.mpf(10) ** -45:
            key = mp.nstr(p / q, 30)
            own, other = found.get(key, (0, 0))
            found[key] = own + p, other + q
    return sorted(found.values(), key=lambda row: row[0] / row[1])


def shifted(weight: Callable[[int], Any], reach: int, shift: int) -> Outcomes:
    """Return integer noise of unnormalised probabilities, moved by a shift and not."""
    masses = {y: weight(y) for y in range(-reach - shift, reach + shift + 1)}
    total = mp.fsum(masses.values())
    ys = range(-reach, reach + shift + 1)
    return merged((masses[y - shift] / total, masses[y] / total) for y in ys)


def gaussian(sigma: str, shift: int = 1) -> Outcomes:
    s = mp.mpf(sigma)
    reach = int(s * mp.sqrt(90 * mp.log(10))) + 2
    return shifted(lambda y: mp.exp(-mp.mpf(y * y) / (2 * s**2)), reach, shift)


def laplace(scale: str, shift: int = 1) -> Outcomes:
    b = mp.mpf(scale)
    return shifted(lambda y: mp.exp(-abs(y) / b), int(45 * b * mp.log(10)) + 2, shift)


def response(epsilon: str, categories: int) -> Outcomes:
    odds = mp.exp(mp.mpf(epsilon))
    rows = [(odds, mp.one), (mp.one, odds), *[(mp.one, mp.one)] * (categories - 2)]
    return merged((p / (odds + categories - 1), q / (odds + categories - 1)) for p, q in rows)


def bits(one_if_one: Any, one_if_zero: Any, count: int = 1) -> Outcomes:
    """Return noisy bits, so many of which go from 1 to 0 and as many from 0 to 1."""
    rows = [(mp.one, mp.one)]
    for a, b in [(one_if_one, one_if_zero)] * count + [(one_if_zero, one_if_one)] * count:
        rows = merged((p * x, q * y) for p, q in rows for x, y in ((a, b), (1 - a, 1 - b)))
    return rows


def rappor(flip: str, hashes: int) -> Outcomes:
    return bits(1 - mp.mpf(flip) / 2, mp.mpf(flip) / 2, hashes)


def kept(epsilon: float) -> Any:
    return 1 / (1 + mp.exp(-mp.mpf(epsilon)))


def known(make: Callable[[], Outcomes]) -> Callable[[], Outcomes]:
    """Return the same, worked out once in more digits than any test uses."""

    @cache
    def pair() -> Outcomes:
        with mp.workdps(80):
            return make()

    return pair


CASES: tuple[tuple[hs.Mechanism, Callable[[], Outcomes]], ...] = (
    (hs.RandomizedResponse(1.0), lambda: response("1", 2)),
    (hs.RandomizedResponse(0.3, 10), lambda: response("0.3", 10)),
    (hs.RandomizedResponse(6.0, 3), lambda: response("6", 3)),
    (hs.mechanisms.UnaryEncoding(1.0), lambda: bits(kept(0.5), 1 - kept(0.5))),
    (hs.mechanisms.UnaryEncoding(1.0, "optimized"), lambda: bits(mp.mpf("0.5"), 1 - kept(1))),
    (hs.mechanisms.RAPPOR(0.5, 2), lambda: rappor("0.5", 2)),
    (hs.mechanisms.RAPPOR(0.9, 5), lambda: rappor("0.9", 5)),
    (hs.DiscreteLaplace(3.0), lambda: laplace("3")),
    (hs.DiscreteLaplace(0.8, 4), lambda: laplace("0.8", 4)),
    (hs.DiscreteLaplace(5.0, 3), lambda: laplace("5", 3)),
    (hs.DiscreteGaussian(0.35), lambda: gaussian("0.35")),
    (hs.DiscreteGaussian(0.6, 2), lambda: gaussian("0.6", 2)),
    (hs.DiscreteGaussian(2.0), lambda: gaussian("2")),
    (hs.DiscreteGaussian(7.5, 4), lambda: gaussian("7.5", 4)),
)
each_case = pytest.mark.parametrize(
    ("plan", "pair"),
    [(plan, known(make)) for plan, make in CASES],
    ids=[str(plan) for plan, _ in CASES],
)
# What is left out of the outcomes, next to what is asked for.
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
    with mp.workdps(60):
        places = {round(loss, 9): index for index, loss in enumerate(atoms.loss.tolist())}
        for p, q in pair():
            truth = mp.log(p / q)
            index = places[round(float(truth), 9) + 0.0]
            assert abs(atoms.loss[index] - truth) <= 4 * 2.0**-52 * abs(truth) + 1e-50
            assert abs(atoms.log_p[index] - mp.log(p)) <= atoms.error[index] + LEFT_OUT / p


@each_case
@pytest.mark.parametrize("c", [1e-6, 0.3, 1.0, 7.0, 30.0])
def test_the_moments_hold_those_of_the_outputs(plan: Any, pair: Any, c: float) -> None:
    loss = loss_of(plan)
    found = loss.cgf_bounds(c)
    with mp.workdps(80):
        powers = [p * (p / q) ** mp.mpf(c) for p, q in pair()]
        truth = mp.log(mp.fsum(powers) / mp.fsum(p for p, _ in pair()))
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
    with mp.workdps(50):
        reference = rule.reference_line(c, step, count)
        for k in (0, 1, 17, 39):
            z = mp.mpc(c, mp.mpf(step) * k)
            powers = [p * (p / q) ** z for p, q in pair()]
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
    with mp.workdps(40):
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
    with mp.workdps(40):
        size = mp.mpf(epsilon)
        over = mp.exp(c * size) + mp.exp(-(c + 1) * size)
        true = mp.log(over / (1 + mp.exp(-size)))
    for last in (c, 10.0 * c, 25.9, 100.0):
        rule = loss.rule(max(last, c), 200.0, float(true) - 15.0)
        assert rule is not None
        found = rule.line(c, 0.0, 1)
        assert abs(found.real[0] - true) <= found.error[0] <= 1e-6
