"""Losses known by their Renyi divergences: the bound between the orders, and what attains it."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.notions import GDP, TCDP, ZCDP, RenyiDP
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    ConcentratedLoss,
    DominatingPair,
    GaussianLoss,
    RenyiCurveLoss,
    dominating_pair,
)

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


def test_the_slope_of_a_curve_is_that_of_its_chord() -> None:
    loss = RenyiCurveLoss.of(((2.0, 0.1), (10.0, 0.2)))
    assert loss.cgf_estimate(0.5).first_derivative == pytest.approx(0.1, rel=1e-12)
    assert loss.cgf_estimate(5.0).first_derivative == pytest.approx((1.8 - 0.1) / 8, rel=1e-12)


@pytest.mark.parametrize(
    ("notion", "loss"),
    [
        (ZCDP(0.1), ConcentratedLoss(0.1)),
        (TCDP(0.1, 5), ConcentratedLoss(0.1, 5.0)),
        (TCDP(0.1, math.inf), ConcentratedLoss(0.1)),
        (GDP(0.5), GaussianLoss(2.0)),
        (ZCDP(0.0), None),
        (GDP(0.0), None),
        (TCDP(0.0, 5), None),
        (RenyiDP({2: 0.0, 3: 1.0}), None),
    ],
    ids=repr,
)
def test_a_guarantee_has_the_loss_of_its_kind(
    notion: ZCDP | TCDP | GDP | RenyiDP, loss: ConcentratedLoss | GaussianLoss | None
) -> None:
    assert dominating_pair(notion) == DominatingPair(loss, loss)


def test_a_mu_is_kept_to_its_last_decimal() -> None:
    loss = dominating_pair(GDP(0.1)).removing
    assert isinstance(loss, GaussianLoss)
    assert loss.noise_multiplier == 10
    assert loss.mu == 0.1
