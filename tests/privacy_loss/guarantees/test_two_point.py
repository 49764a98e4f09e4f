"""The loss of randomized response: against its two outcomes."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.notions import ApproxDP, PureDP, RenyiDP
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import DominatingPair, RandomizedResponsePairLoss, dominating_pair


def moment(epsilon: float, c: float) -> Any:
    """Return K by its definition, at mpmath's precision."""
    e = mp.mpf(epsilon)
    plus = 1 / (1 + mp.exp(-e))
    return mp.log(plus * mp.exp(c * e) + (1 - plus) * mp.exp(-c * e))


@given(st.floats(-12, 4), st.floats(-8, 8))
def test_the_moments_hold_the_definition(log_epsilon: float, log_c: float) -> None:
    epsilon, c = 10.0**log_epsilon, 10.0**log_c
    with mp.workdps(80):
        truth = moment(epsilon, c)
        found = RandomizedResponsePairLoss(epsilon).cgf_bounds(c)
        assert abs(found.midpoint - truth) <= found.radius
        assert found.radius <= 1e-12 * truth * (1 + 0.25 * min((c + 1) * epsilon, 300))


@pytest.mark.parametrize("c", [0.01, 1.0, 7.0, 800.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 3.0])
def test_the_cumulants_are_the_derivatives(epsilon: float, c: float) -> None:
    found = RandomizedResponsePairLoss(epsilon).cgf_estimate(c)
    with mp.workdps(60):
        for order, value in enumerate(found):
            truth = float(mp.diff(lambda z: moment(epsilon, z), c, order))
            assert value == pytest.approx(truth, rel=1e-10, abs=1e-40)


def test_the_divergence_is_that_of_the_class_of_pure_releases() -> None:
    for epsilon, alpha, tau in (
        (1.0, 2.0, 0.735325664055519224709930424887),
        (0.5, 8.0, 0.432353706756464873643804873164),
    ):
        found = RandomizedResponsePairLoss(epsilon).cgf_bounds(alpha - 1)
        assert found.midpoint / (alpha - 1) == pytest.approx(tau, rel=1e-14)


@pytest.mark.parametrize("epsilon", [-30.0, -2.001, -1.999, 0.0, 0.5, 1.0, 1.999])
@pytest.mark.parametrize("failure", [0.0, 1e-9, 0.25])
def test_delta_is_the_sum_over_its_outcomes(epsilon: float, failure: float) -> None:
    with mp.workdps(40):
        truth, asked = mp.mpf(repr(failure)), mp.mpf(repr(epsilon))
        for value in (2, -2):
            mass = (1 - mp.mpf(repr(failure))) / (1 + mp.exp(-value))
            truth += mass * max(1 - mp.exp(asked - value), 0)
        found = RandomizedResponsePairLoss(2.0, failure).delta(asked)
        assert abs(found - truth) < mp.mpf(10) ** -38
        loss = RandomizedResponsePairLoss(2.0, failure)
        lower, upper = loss.delta(asked, -1), loss.delta(asked, 1)
        assert lower <= found <= upper
        assert (lower < upper) == (epsilon > -2.0 or failure > 0.0)


@pytest.mark.parametrize("epsilon", [2.0, 3.0, 1e300])
def test_beyond_its_epsilon_only_failures_are_left(epsilon: float) -> None:
    assert RandomizedResponsePairLoss(2.0).delta(mp.mpf(epsilon)) == 0
    assert float(RandomizedResponsePairLoss(2.0, 0.25).delta(mp.mpf(epsilon))) == 0.25


def test_the_largest_loss_is_epsilon_unless_it_fails() -> None:
    assert RandomizedResponsePairLoss(2.0).supremum == 2.0
    failing = RandomizedResponsePairLoss(2.0, 1e-9)
    assert failing.supremum == math.inf
    assert failing.cgf_bounds(1.0).midpoint == failing.cgf_estimate(1.0).value == math.inf


NO_PRIVACY = RandomizedResponsePairLoss(0.0, 1.0)


@pytest.mark.parametrize(
    ("notion", "loss"),
    [
        (PureDP(0.5), RandomizedResponsePairLoss(0.5)),
        (ApproxDP(0.5, 1e-5), RandomizedResponsePairLoss(0.5, 1e-5)),
        (ApproxDP(0.5, 0.0), RandomizedResponsePairLoss(0.5)),
        (ApproxDP(0.0, 0.1), RandomizedResponsePairLoss(0.0, 0.1)),
        (PureDP(0.0), None),
        (ApproxDP(0.0, 0.0), None),
        (PureDP(math.inf), NO_PRIVACY),
        (ApproxDP(math.inf, 0.1), NO_PRIVACY),
        (RenyiDP({2: math.inf}), NO_PRIVACY),
    ],
    ids=repr,
)
def test_a_guarantee_has_the_same_loss_in_both_directions(
    notion: Any, loss: RandomizedResponsePairLoss | None
) -> None:
    assert dominating_pair(notion) == DominatingPair(loss, loss)


def test_a_loss_that_may_be_infinite_has_no_line() -> None:
    assert RandomizedResponsePairLoss(1.0, 1e-9).out_of_range
    assert RandomizedResponsePairLoss(1e-200).out_of_range
    assert not RandomizedResponsePairLoss(1.0).out_of_range


@pytest.mark.parametrize("epsilon", [1e-12, 0.3, 2.0, 50.0, 5000.0])
def test_the_atoms_are_the_two_outcomes(epsilon: float) -> None:
    loss = RandomizedResponsePairLoss(epsilon)
    atoms = loss.atoms()
    assert atoms.loss.tolist() == [-epsilon, epsilon]
    assert (loss.infimum, loss.supremum) == (-epsilon, epsilon)
    with mp.workdps(60):
        e = mp.mpf(repr(epsilon))
        for log_p, error, truth in zip(
            atoms.log_p,
            atoms.error,
            (-e - mp.log1p(mp.exp(-e)), -mp.log1p(mp.exp(-e))),
            strict=True,
        ):
            assert abs(log_p - truth) <= error


@pytest.mark.parametrize("epsilon", [1e-6, 0.8, 12.0])
def test_the_line_holds_the_two_outcomes(epsilon: float) -> None:
    c, step, count = 1.5, 0.4, 20
    rule = RandomizedResponsePairLoss(epsilon).rule(c, step * count, -36.0)
    assert rule is not None
    found = rule.line(c, step, count)
    with mp.workdps(60):
        e = mp.mpf(repr(epsilon))
        for k in (0, 1, 9, 19):
            z = mp.mpc(c, mp.mpf(step) * k)
            truth = mp.log(mp.cosh((z + 0.5) * e) / mp.cosh(e / 2))
            assert abs(mp.re(truth) - float(found.real[k])) <= float(found.error[k])
            turns = (mp.im(truth) - float(found.imag[k])) / (2 * mp.pi)
            assert abs(turns - mp.nint(turns)) * 2 * mp.pi <= float(found.error[k]) + 1e-15
