"""Losses known by a guarantee: two outcomes, bounded range, Renyi divergences, profiles."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.notions import TCDP, ZCDP, RenyiDP
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    ConcentratedLoss,
    ProfileLoss,
    RandomizedResponsePairLoss,
    RenyiCurveLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.guarantees import BoundedRangeLoss
from hockeystick.privacy_loss.guarantees import two_outcomes as pairs_of
from hockeystick.tradeoffs import GaussianTradeOff
from hockeystick.tradeoffs.functions.closed_forms import LaplaceTradeOff
from hockeystick.tradeoffs.functions.piecewise import discrete_tradeoff


def moment(epsilon: float, c: float) -> Any:
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


@pytest.mark.parametrize("epsilon", [-30.0, -2.001, -1.999, 0.5, 1.999])
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


def test_the_largest_loss_is_epsilon_unless_it_fails() -> None:
    assert RandomizedResponsePairLoss(2.0).supremum == 2.0
    assert RandomizedResponsePairLoss(2.0).delta(mp.mpf(1e300)) == 0
    assert float(RandomizedResponsePairLoss(2.0, 0.25).delta(mp.mpf(3))) == 0.25
    failing = RandomizedResponsePairLoss(2.0, 1e-9)
    assert failing.supremum == math.inf
    assert failing.cgf_bounds(1.0).midpoint == failing.cgf_estimate(1.0).value == math.inf
    assert failing.out_of_range
    assert RandomizedResponsePairLoss(1e-200).out_of_range
    assert not RandomizedResponsePairLoss(1.0).out_of_range


RANGES = [1e-4, 0.3, 1.0, 6.0]
ORDERS = [0.01, 1.0, 7.0, 120.0]


def selection(scores: Any, epsilon: float) -> Any:
    """Return the exponential mechanism's probabilities for scores of sensitivity 1."""
    weight = [mp.exp(mp.mpf(epsilon) * score / 2) for score in scores]
    return [one / mp.fsum(weight) for one in weight]


def single_run(loss: Any, end: float, c: Any) -> Any:
    """Return K of the two outcomes of loss t and t - e."""
    e, t = mp.mpf(end), mp.mpf(loss)
    p = (mp.exp(e) - mp.exp(t)) / mp.expm1(e)
    return mp.log(p * mp.exp(c * t) + (1 - p) * mp.exp(c * (t - e)))


@pytest.mark.parametrize("epsilon", RANGES)
@pytest.mark.parametrize("share", [0.0, 0.25, 0.9])
def test_two_candidates_attain_the_profile_at_each_epsilon(epsilon: float, share: float) -> None:
    # The likelier candidate's loss is t where the other's is t - e: the log odds fall by e.
    with mp.workdps(40):
        e, at = mp.mpf(epsilon), mp.mpf(epsilon) * share
        t = (at + e) / 2
        likely = (mp.exp(e) - mp.exp(t)) / mp.expm1(e)
        gap = 2 * mp.log(likely / (1 - likely)) / e
        p, q = selection([gap, 0], epsilon), selection([gap - 1, 1], epsilon)
        truth = BoundedRangeLoss(epsilon).delta(at)
        attained = mp.fsum(max(a - mp.exp(at) * b, 0) for a, b in zip(p, q, strict=True))
        assert abs(attained - truth) <= truth * mp.mpf(10) ** -12
        assert BoundedRangeLoss(epsilon).delta(at, 1) > truth
        assert BoundedRangeLoss(epsilon).delta(at, -1) < truth


@pytest.mark.parametrize("epsilon", RANGES)
@pytest.mark.parametrize("c", ORDERS)
def test_the_moments_are_the_largest_of_any_single_release(epsilon: float, c: float) -> None:
    loss = BoundedRangeLoss(epsilon)
    found = loss.cgf_bounds(c)
    with mp.workdps(50):
        e, order = mp.mpf(epsilon), mp.mpf(c)
        t = mp.log(order * (mp.exp(e) - mp.exp(-order * e)))
        t -= mp.log((order + 1) * -mp.expm1(-order * e))
        truth = single_run(t, epsilon, order)
        assert 0 < t < e
        assert abs(truth - found.midpoint) <= found.radius
        for other in (t - e / 100, t + e / 100, e / 2, e / 7, e * mp.mpf("0.98")):
            assert not 0 < other < e or single_run(other, epsilon, order) < truth
        envelope = mp.sinh((order + mp.mpf("0.5")) * e) / ((2 * order + 1) * mp.sinh(e / 2))
        assert truth < mp.log(envelope)
        assert truth < order * (order + 1) * e**2 / 8
    assert loss.attained is not None
    surely = loss.attained.cgf_bounds(c)
    assert surely.midpoint - surely.radius <= found.midpoint + found.radius


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e5, 1e200])
def test_far_out_ranges_have_moments_and_cells(epsilon: float) -> None:
    loss = BoundedRangeLoss(epsilon)
    found = loss.cgf_bounds(2.0)
    assert 0.0 <= found.midpoint <= 2.0 * epsilon * (1 + 1e-14)
    assert found.radius <= 1e-14 * found.midpoint + 5e-324
    masses = loss.cells(np.array([-math.inf, math.inf]))
    assert abs(float(masses.log_p[0])) <= float(masses.error[0])
    assert abs(float(masses.log_q[0])) <= float(masses.error[0])


CURVES = st.dictionaries(st.floats(1.001, 1e4), st.floats(1e-8, 1e3), min_size=1, max_size=8).map(
    RenyiDP
)


@given(CURVES)
def test_the_gaussian_within_a_curve_keeps_to_it(notion: RenyiDP) -> None:
    inside = RenyiCurveLoss.of(notion.divergences).attained
    assert inside is not None
    shares = []
    with mp.workdps(40):
        square = 1 / mp.mpf(float(inside.noise_multiplier)) ** 2
        for order, divergence in notion.divergences:
            shares.append(square * order / 2 / divergence)
        assert max(shares) <= 1
        assert max(shares) >= 1 - mp.mpf(10) ** -13


def test_a_divergence_that_the_others_imply_changes_nothing() -> None:
    plain = RenyiCurveLoss.of(((2.0, 0.1), (10.0, 0.2)))
    assert RenyiCurveLoss.of(((2.0, 0.1), (4.0, 5.0), (10.0, 0.2), (20.0, math.inf))) == plain


def test_nothing_is_known_beyond_the_last_order() -> None:
    loss = RenyiCurveLoss.of(((2.0, 0.1), (10.0, 0.2)))
    assert loss.largest_order == pytest.approx(9.0, rel=1e-14)
    assert loss.largest_order < 9.0
    assert loss.cgf_bounds(9.1).midpoint == loss.cgf_estimate(9.1).value == math.inf
    truncated = ConcentratedLoss(0.1, 5.0)
    assert truncated.largest_order == pytest.approx(4.0, rel=1e-14)
    assert truncated.cgf_bounds(4.1).midpoint == math.inf
    assert ConcentratedLoss(0.1).largest_order == math.inf


@pytest.mark.parametrize("c", [1e-9, 0.5, 3.0, 1e6])
def test_concentration_is_a_parabola(c: float) -> None:
    found = ConcentratedLoss(0.3).cgf_bounds(c)
    truth = Fraction(0.3) * Fraction(c) * (Fraction(c) + 1)
    assert truth <= Fraction(found.midpoint + found.radius) <= truth * (1 + Fraction(1, 10**13))
    value, slope, curvature = ConcentratedLoss(0.3).cgf_estimate(c)
    assert value == pytest.approx(float(truth), rel=1e-13)
    assert slope == pytest.approx(0.3 * (2 * c + 1), rel=1e-13)
    assert curvature == 0.6


@pytest.mark.parametrize("c", [1e-6, 0.01, 1.0, 9.0, 100.0, 1e4])
@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_the_moments_are_above_and_next_to_those_of_the_laplace_mechanism(
    scale: float, c: float
) -> None:
    with mp.workdps(60):
        size, a = 1 / mp.mpf(scale), mp.mpf(c) + 1
        moment = a / (2 * a - 1) * mp.exp(c * size) + c / (2 * a - 1) * mp.exp(-a * size)
        truth = mp.log(moment)
        f = LaplaceTradeOff(scale)
        found = ProfileLoss(f.forward, f.backward).bound(c)
        assert found >= truth
        assert found <= truth * (1 + mp.mpf(10) ** -4)


def test_the_moments_of_an_asymmetric_pair_tell_the_directions_apart() -> None:
    p, q = (0.7, 0.2, 0.1), (0.3, 0.3, 0.4)
    f = discrete_tradeoff(p, q)
    for loss, (one, other) in (
        (ProfileLoss(f.forward, f.backward), (q, p)),
        (ProfileLoss(f.backward, f.forward), (p, q)),
    ):
        for c in (0.5, 3.0):
            truth = math.log(sum(x * (x / y) ** c for x, y in zip(one, other, strict=True)))
            assert truth <= loss.bound(c) <= truth * (1 + 1e-3)


def test_an_unbounded_loss_has_no_moments_but_a_profile() -> None:
    f = GaussianTradeOff(1.0)
    loss = ProfileLoss(f.forward, f.backward)
    assert loss.largest_order == 0.0
    assert loss.supremum == math.inf
    assert not loss.is_bounded
    assert loss.delta(mp.one, -1) <= mp.mpf("0.126936737506643945800829624758")
    assert loss.delta(mp.one, 1) >= mp.mpf("0.126936737506643945800829624758")
    never_vanishing = discrete_tradeoff((0.5, 0.5, 0.0), (0.25, 0.5, 0.25))
    loss = ProfileLoss(never_vanishing.forward, never_vanishing.backward)
    assert not loss.is_bounded
    assert ProfileLoss(never_vanishing.backward, never_vanishing.forward).is_bounded


@pytest.mark.parametrize(
    ("said", "orders", "width"),
    [
        (ZCDP(0.02), np.geomspace(1.0001, 1e3, 30), 1e-3),
        (ZCDP(3.0), np.geomspace(1.0001, 1e3, 20), 1e-3),
        (TCDP(0.02, 9.0), np.linspace(1.0001, 9.0, 20), 1e-3),
        (RenyiDP({2: 0.2, 8: 0.3}), (2, 8), 1e-4),
    ],
)
def test_two_outcomes_within_a_bound_cost_about_as_much_as_any(
    said: Any, orders: Any, width: float
) -> None:
    known: Any = dominating_pair(said)[0]
    (worst,) = known.also_attained
    with mp.workdps(30):
        for loss, p in list(zip(*pairs_of(known), strict=True))[::60]:
            likely = [mp.mpf(p), 1 - mp.mpf(p)], [p * mp.exp(-mp.mpf(loss))]
            likely[1].append(1 - likely[1][0])
            cost = max(likely[0][0] - likely[1][0] * mp.exp(loss / 2), 0)
            assert cost <= worst.delta(mp.mpf(loss / 2)) * (1 + mp.mpf(10) ** -9)
            for order in orders:
                most = dict(said.divergences)[order] if len(orders) == 2 else said.rho * order
                for one, other in (likely, likely[::-1]):
                    parts = zip(one, other, strict=True)
                    moment = sum(a * (a / b) ** (order - 1) for a, b in parts)
                    assert mp.log(moment) <= (order - 1) * most
    answer = hs.epsilon(said, delta=1e-6)
    assert answer.lower >= answer.upper * (1 - width)
