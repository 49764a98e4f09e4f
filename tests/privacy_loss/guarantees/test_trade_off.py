"""Losses known by certified profiles: their moments against closed forms of the pair."""

import math

import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import ProfileLoss
from hockeystick.tradeoffs import GaussianTradeOff
from hockeystick.tradeoffs.functions.laplace import LaplaceTradeOff
from hockeystick.tradeoffs.functions.piecewise import discrete_tradeoff


def loss_of(scale: float) -> ProfileLoss:
    """Return the loss of a Laplace mechanism by its profiles."""
    f = LaplaceTradeOff(scale)
    return ProfileLoss(f.forward, f.backward)


@pytest.mark.parametrize("c", [1e-6, 0.01, 1.0, 9.0, 100.0, 1e4])
@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_the_moments_are_above_and_next_to_those_of_the_laplace_mechanism(
    scale: float, c: float
) -> None:
    with mp.workdps(60):
        size, a = 1 / mp.mpf(scale), mp.mpf(c) + 1
        moment = a / (2 * a - 1) * mp.exp(c * size) + c / (2 * a - 1) * mp.exp(-a * size)
        truth = mp.log(moment)
        found = loss_of(scale).bound(c)
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
    assert float(loss.delta(mp.one)) == pytest.approx(0.126936737506643945800829624758, rel=1e-13)
    assert loss.delta(mp.one, -1) <= mp.mpf("0.126936737506643945800829624758")
    assert loss.delta(mp.one, 1) >= mp.mpf("0.126936737506643945800829624758")


def test_a_profile_that_never_vanishes_may_be_infinite() -> None:
    f = discrete_tradeoff((0.5, 0.5, 0.0), (0.25, 0.5, 0.25))
    loss = ProfileLoss(f.forward, f.backward)
    assert not loss.is_bounded
    assert loss.largest_order == 0.0
    assert ProfileLoss(f.backward, f.forward).is_bounded
