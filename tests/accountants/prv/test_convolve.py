"""Sums of evenly spaced losses against the same sums by mpmath, and which have none."""

import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants.prv._convolve import convolved
from hockeystick.privacy_loss import CellLoss, dominating_pair
from tests.oracles.added_integers import masses_of_sum


def loss_of(plan: hs.Mechanism) -> CellLoss:
    """Return the loss of removing a record."""
    loss = dominating_pair(plan).removing
    assert isinstance(loss, CellLoss)
    return loss


@pytest.mark.parametrize(
    ("sigma", "runs", "epsilon"), [(2.5, 7, 0.4), (2.5, 7, 12.0), (0.6, 5, 3.0), (3.0, 1, 1.0)]
)
def test_delta_of_the_sums_holds_that_of_the_noise_added_up(
    sigma: float, runs: int, epsilon: float
) -> None:
    """The runs' loss is that of the sum of their noises, ``(2 S + n) / (2 sigma^2)``."""
    found = convolved(loss_of(hs.DiscreteGaussian(sigma)), runs, 1.0, most=3000)
    assert found is not None
    least, mass = masses_of_sum(sigma, runs)
    with mp.workdps(60):
        double = 2 * mpf(str(sigma)) ** 2
        losses = [(2 * (least + k) + runs) / double for k in range(len(mass))]
        truth = mp.fsum(
            mpf(p.numerator) / p.denominator * (1 - mp.exp(epsilon - x))
            for x, p in zip(losses, mass, strict=True)
            if x > epsilon
        )
        assert found.lower(epsilon) <= mp.log(truth) <= found.upper(epsilon)
        assert found.upper(epsilon) - found.lower(epsilon) < 1e-9


@pytest.mark.parametrize(
    ("plan", "runs", "most"),
    [
        (hs.DiscreteGaussian(2.5), 7, 1000),
        (hs.mechanisms.Skellam(4.0), 3, 10_000),
        (hs.Laplace(2.0), 3, 10_000),
    ],
)
def test_many_or_uneven_values_are_not_listed(plan: hs.Mechanism, runs: int, most: int) -> None:
    assert convolved(loss_of(plan), runs, 1.0, most=most) is None


def test_what_comes_near_underflow_is_left_out_and_counted() -> None:
    found = convolved(loss_of(hs.DiscreteGaussian(0.7)), 6, 1.0, most=3000)
    assert found is not None
    assert found.mass[found.mass > 0.0].min() > 1e-296
    assert found.mass[0] == 0.0
    assert found.omitted_mass > 0.0
