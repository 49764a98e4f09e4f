"""Bounded range: the envelope of two-outcome losses, against its instances."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.guarantees.bounded_range import BoundedRangeLoss

RANGES = [1e-4, 0.3, 1.0, 6.0]
ORDERS = [0.01, 1.0, 7.0, 120.0]


def selection(scores: Any, epsilon: float) -> Any:
    """Return the exponential mechanism's probabilities for scores of sensitivity 1."""
    weight = [mp.exp(mp.mpf(epsilon) * score / 2) for score in scores]
    return [one / mp.fsum(weight) for one in weight]


def stick(p: Any, q: Any, epsilon: float) -> Any:
    """Return the hockey-stick divergence of two lists of probabilities."""
    grown = mp.exp(epsilon)
    return mp.fsum(max(a - grown * b, 0) for a, b in zip(p, q, strict=True))


def single_run(loss: Any, end: float, c: Any) -> Any:
    """Return K of the two outcomes of loss t and t - e."""
    e, t = mp.mpf(end), mp.mpf(loss)
    p = (mp.exp(e) - mp.exp(t)) / mp.expm1(e)
    return mp.log(p * mp.exp(c * t) + (1 - p) * mp.exp(c * (t - e)))


@given(st.integers(0, 10**6))
def test_no_selection_between_neighbours_exceeds_the_profile(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon, size = float(rng.uniform(0.05, 4.0)), int(rng.integers(2, 6))
    scores = rng.normal(0.0, 3.0, size)
    moved = scores + rng.choice([-1.0, 1.0, 0.3], size)
    p, q = selection(scores, epsilon), selection(moved, epsilon)
    with mp.workdps(40):
        for at in (-0.7, 0.0, 0.1, 0.5, 0.9):
            bound = BoundedRangeLoss(epsilon).delta(mp.mpf(at * epsilon))
            assert stick(p, q, at * epsilon) <= bound * (1 + mp.mpf(10) ** -14)


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
        assert abs(stick(p, q, at) - truth) <= truth * mp.mpf(10) ** -12
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


def test_one_run_is_exact_and_reaches_its_range_at_delta_0() -> None:
    answer = hs.epsilon(hs.Exponential(1.0), 1e-5)
    assert isinstance(answer, hs.Certified)
    with mp.workdps(40):
        # (1 - exp((eps - 1)/2))^2 = delta (1 - exp(-1))
        truth = 1 + 2 * mp.log(1 - mp.sqrt(mp.mpf("1e-5") * -mp.expm1(-1)))
        assert answer.lower <= truth <= answer.upper
    assert answer.relative_width < 1e-14
    assert float(hs.epsilon(hs.Exponential(1.0), 0.0)) == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e5, 1e200])
def test_far_out_ranges_have_moments_and_cells(epsilon: float) -> None:
    loss = BoundedRangeLoss(epsilon)
    found = loss.cgf_bounds(2.0)
    assert 0.0 <= found.midpoint <= 2.0 * epsilon * (1 + 1e-14)
    assert found.radius <= 1e-14 * found.midpoint + 5e-324
    masses = loss.cells(np.array([-math.inf, math.inf]))
    assert abs(float(masses.log_p[0])) <= float(masses.error[0])
    assert abs(float(masses.log_q[0])) <= float(masses.error[0])
