"""Lines above Renyi divergences, against moments by other routes, in both orders of a pair."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from hockeystick.mechanisms import SinhNormal, Skellam
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss import (
    GaussianLoss,
    NoiselessLoss,
    PrivacyLoss,
    RandomizedResponsePairLoss,
    RenyiCurveLoss,
)
from hockeystick.privacy_loss.bounds.moments import ZCDPLine
from hockeystick.privacy_loss.core.base import Atoms, Masses, dominating_pair
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.guarantees import BoundedRangeLoss
from hockeystick.privacy_loss.selection.sparse_vector import AboveThresholdRenyiLoss

ORDERS = [1e-9, 1e-4, 0.01, 0.1, 0.5, 1, 2, 5, 10, 33, 100, 1000]


@dataclass(frozen=True, slots=True)
class Lopsided(CellLoss):
    """Two outcomes with losses ``low < 0 < high``."""

    low: float
    high: float

    @property
    def infimum(self) -> float:
        return self.low

    @property
    def supremum(self) -> float:
        return self.high

    def atoms(self) -> Atoms:
        raise AssertionError("of a bounded loss only the ends are read")

    def cells(self, edges: object) -> Masses:
        raise AssertionError("of a bounded loss only the ends are read")

    def divergences(self, order: float) -> tuple[mpf, mpf]:
        """D of that order in both orders of the pair, from the two probabilities."""
        low, high, a = mp.exp(mp.mpf(self.low)), mp.exp(mp.mpf(self.high)), mp.mpf(order)
        q = (1 - low) / (high - low)
        forward = q * high**a + (1 - q) * low**a
        backward = q * high ** (1 - a) + (1 - q) * low ** (1 - a)
        return mp.log(forward) / (a - 1), mp.log(backward) / (a - 1)


def line_of(loss: PrivacyLoss) -> ZCDPLine:
    line = loss.zcdp_line()
    assert line is not None
    return line


@pytest.mark.parametrize("low", [-1e-6, -0.01, -0.3, -1.0, -4.0, -20.0])
@pytest.mark.parametrize("high", [1e-6, 0.02, 0.3, 1.1, 5.0, 20.0])
def test_a_loss_bounded_on_both_sides_stays_below_its_line_in_both_orders(
    low: float, high: float
) -> None:
    loss = Lopsided(low, high)
    rho, omega = line_of(loss)
    assert omega == math.inf
    with mp.workdps(60):
        for c in ORDERS:
            assert max(loss.divergences(1 + mp.mpf(c))) <= rho * (1 + mp.mpf(c))


def test_the_line_of_a_bounded_loss_is_the_lower_one_of_its_ends_and_its_range() -> None:
    assert line_of(Lopsided(-1.0, 1.0)).rho == pytest.approx(math.tanh(0.5), rel=1e-13)
    assert line_of(Lopsided(-1.0, 0.01)).rho == pytest.approx(1.01**2 / 8, rel=1e-13)


@pytest.mark.parametrize("epsilon", [1e-160, 1e-5, 0.3, 1.0, 7.0, 800.0])
def test_randomized_response_has_its_kullback_leibler_divergence(epsilon: float) -> None:
    with mp.workdps(60):
        exact = mp.mpf(epsilon) * mp.tanh(mp.mpf(epsilon) / 2)
    rho = line_of(RandomizedResponsePairLoss(epsilon)).rho
    assert exact <= rho <= float(exact) * (1 + 1e-13) + 1e-322
    assert line_of(DominatedLoss(RandomizedResponsePairLoss(epsilon), None)) == line_of(
        RandomizedResponsePairLoss(epsilon)
    )


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 3.0])
def test_bounded_range_has_an_eighth_of_the_square(epsilon: float) -> None:
    rho = line_of(BoundedRangeLoss(epsilon)).rho
    assert rho == pytest.approx(epsilon**2 / 8, rel=1e-13)
    # Every pair of such losses stays below, the worst of them hardly.
    with mp.workdps(40):
        shares = [mp.mpf(k) / 16 for k in range(1, 16)]
        pairs = [Lopsided(float((t - 1) * epsilon), float(t * epsilon)) for t in shares]
        near = 1 + mp.mpf(10) ** -6
        ratio = max(max(pair.divergences(near)) / near for pair in pairs) / rho
    assert 0.8 < ratio <= 1


@pytest.mark.parametrize("noise", [Fraction(1, 3), 1e-3, 0.7, 1e100, 1e162, 1e200])
def test_a_gaussian_has_half_its_mu_squared_and_never_0(noise: float | Fraction) -> None:
    with mp.workdps(40):
        exact = 1 / (2 * (mp.mpf(Fraction(noise).numerator) / Fraction(noise).denominator) ** 2)
        rho = line_of(GaussianLoss(noise)).rho
        assert exact <= rho <= exact * (1 + mp.mpf(10) ** -13) + mp.mpf("1e-322")


@pytest.mark.parametrize(
    "divergences",
    [
        {2.0: 0.1, 8.0: 0.3, 32.0: 1.5},
        {1.5: 0.1, 2.0: 0.11, 3.0: 9.0, 40.0: 100.0},
        {1.0000001: 1e-9, 2.0: 3.0},
        {1.0 + 2.0**-52: 1e-3, 1.0 + 2.0**-50: 1.0, 5.0: 70.0},
        {3.0: 1e-200, 4.0: 1e200},
        {6.0: 2.0},
    ],
    ids=str,
)
def test_the_line_of_some_divergences_is_the_least_above_their_chords(
    divergences: dict[float, float],
) -> None:
    loss = RenyiCurveLoss.of(tuple(divergences.items()))
    rho, omega = line_of(loss)
    assert omega == pytest.approx(max(divergences), rel=1e-14)
    corners = [(Fraction(0), Fraction(0))]
    corners += [(Fraction(c), Fraction(k)) for c, k in loss.points]
    steepest = Fraction(0)
    for (x0, y0), (x1, y1) in itertools.pairwise(corners):
        for j in range(1, 1001):
            # more places near the left end, where the ratio may turn
            share = Fraction(j, 1000) ** 6
            c, k = x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
            steepest = max(steepest, k / (c * (c + 1)))
    assert steepest <= rho <= float(max(steepest, corners[1][1] / corners[1][0])) * (1 + 1e-3)


def test_moments_out_of_reach_give_no_finite_line() -> None:
    assert line_of(RenyiCurveLoss(((1.0, 0.5), (2.0, math.inf)), 0.1)).rho == math.inf


def test_what_may_be_infinite_or_is_unbounded_has_no_line() -> None:
    assert RandomizedResponsePairLoss(1.0, 1e-9).zcdp_line() is None
    assert NoiselessLoss(0.1, removing=True).zcdp_line() is None
    assert Lopsided(-math.inf, 1.0).zcdp_line() is None


@pytest.mark.parametrize(
    "mechanism",
    [Skellam(10.0), Skellam(400.0, sensitivity=3), SinhNormal(0.1, 40.0), SinhNormal(5.0, 1.0)],
    ids=str,
)
def test_unbounded_losses_are_below_their_line_up_to_its_last_order(mechanism: Any) -> None:
    loss = dominating_pair(mechanism).removing
    assert loss is not None
    line = line_of(loss)
    assert line.omega > 1.0
    ratios = []
    for share in (1e-6, 1e-3, 0.05, 0.3, 0.7, 0.99, 1.0):
        c = share * (line.omega - 1.0)
        k = loss.cgf_bounds(c)
        assert k.midpoint - k.radius <= line.rho * c * (c + 1.0)
        ratios.append((k.midpoint + k.radius) / (c * (c + 1.0)))
    assert line.rho <= 1.12 * max(ratios)


def test_a_line_above_two_bounds_touches_what_is_convex_below_both() -> None:
    # The tangent through 0 of rho c (c+1) + ln N, with a slope of rho + 2 sqrt(rho ln N) at 0.
    loss = AboveThresholdRenyiLoss(40.0, 0.02, 3.0, None)
    ratios = [loss.bound(c) / (c * (c + 1.0)) for c in (1e-9, 1e-3, 0.1, 1.0, 10.0, 1e3)]
    assert (1.0 - 1e-6) * loss.zcdp_line().rho <= max(ratios) <= loss.zcdp_line().rho
