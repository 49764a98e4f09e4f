"""Linear encoders with Gaussian noise are Gaussian mechanisms."""

import math
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.profiles import gaussian_delta
from hockeystick.privacy_loss import GaussianLoss, dominating_pair
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss

THIRD: Any = Fraction(1, 3)


@pytest.mark.parametrize(
    ("noise", "encoder", "same"),
    [
        (1.0, hs.mechanisms.Encoder.of_matrix([[THIRD]]), 3.0),
        (1.0, hs.mechanisms.Encoder.banded_inverse([Fraction(3)], 5), 3.0),
        (1.0, hs.mechanisms.Encoder.banded_inverse([Fraction(3), Fraction(-3)], 9), 1.0),
        (2.0, hs.mechanisms.Encoder.buffered_toeplitz([1e-300], [0.1], 2), 2.0),
        (1e100, hs.mechanisms.Encoder.banded_inverse([Fraction(10) ** -100], 5), 1.0),
    ],
)
def test_in_100_digits_it_is_the_gaussian_mechanism_that_it_is(
    noise: float, encoder: hs.mechanisms.Encoder, same: float
) -> None:
    plan, gaussian = hs.mechanisms.MatrixFactorization(noise, encoder), hs.Gaussian(same)
    for one, other in (
        (plan, gaussian),
        (hs.mechanisms.RevealedSample(plan, 0.1), hs.mechanisms.RevealedSample(gaussian, 0.1)),
    ):
        found, known = (hs.delta(each, 0.7, digits=100) for each in (one, other))
        assert found.lower <= known.upper
        assert known.lower <= found.upper


def test_a_bounded_sensitivity_has_a_concrete_participant_below() -> None:
    encoder = hs.mechanisms.Encoder.of_matrix([[1, -1], [0, 1]], participations=2)
    # ||C_1 u + C_2 v||^2 is at most 1 + 2 + 2 = 5; u = v reaches 1, u and v at right angles 3.
    assert encoder.least_square == 3
    assert encoder.square == 5
    removing, adding = dominating_pair(hs.mechanisms.MatrixFactorization(2.0, encoder))
    assert removing is adding
    assert isinstance(removing, DominatedLoss)
    assert isinstance(removing.dominating, GaussianLoss)
    assert isinstance(removing.attained, GaussianLoss)
    assert removing.dominating.mu == pytest.approx(math.sqrt(5) / 2, rel=1e-15)
    assert removing.attained.mu == pytest.approx(math.sqrt(3) / 2, rel=1e-15)
    answer = hs.delta(hs.mechanisms.MatrixFactorization(2.0, encoder), 1.0, accountant="rdp")
    with mp.workdps(30):
        low = gaussian_delta(mp.one, mp.sqrt(3) / 2)
        assert low * (1 - 1e-12) <= answer.lower <= low
        assert answer.upper >= gaussian_delta(mp.one, mp.sqrt(5) / 2)
