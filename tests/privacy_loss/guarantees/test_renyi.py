"""Losses known by their Renyi divergences: the bound between the orders, and what attains it."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.notions import RenyiDP
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import ConcentratedLoss, RenyiCurveLoss

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
