"""The loss of discrete Laplace noise."""

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    DiscreteLaplaceLoss,
    RandomizedResponsePairLoss,
    dominating_pair,
)


@pytest.mark.parametrize("scale", [0.01, 0.7, 3.0, 1e5])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_atoms_are_those_of_the_definition(scale: float, shift: int) -> None:
    atoms = DiscreteLaplaceLoss(scale, shift).atoms()
    with mp.workdps(80):
        t = mp.exp(-1 / mp.mpf(repr(scale)))
        norm = (1 - t) / (1 + t)
        for j in range(shift + 1):
            # The loss (2j - D)/b is that of the output -(D - j), or all beyond it at the ends.
            mass = norm * t ** (shift - j)
            if j in (0, shift):
                mass /= 1 - t
            assert abs(atoms.log_p[j] - mp.log(mass)) <= atoms.error[j]
            truth = (2 * j - shift) / mp.mpf(repr(scale))
            assert abs(atoms.loss[j] - truth) <= 4 * 2.0**-52 * abs(truth)


@pytest.mark.parametrize("scale", [0.3, 3.0, 7.0])
def test_with_sensitivity_1_it_is_a_binary_randomized_response(scale: float) -> None:
    loss = DiscreteLaplaceLoss(scale, 1)
    binary = RandomizedResponsePairLoss(1.0 / scale)
    for column, other in zip(loss.atoms(), binary.atoms(), strict=True):
        if column is not loss.atoms().error:
            assert column.tolist() == pytest.approx(other.tolist(), rel=1e-15)
    assert loss.cgf_bounds(2.5).midpoint == pytest.approx(
        binary.cgf_bounds(2.5).midpoint, rel=1e-12
    )


def test_where_the_reciprocal_is_a_decimal_many_runs_have_the_closed_form() -> None:
    assert dominating_pair(hs.DiscreteLaplace(2.5)).removing == RandomizedResponsePairLoss(0.4)
    assert dominating_pair(hs.DiscreteLaplace(3.0)).removing == DiscreteLaplaceLoss(3.0, 1)
    noise = hs.epsilon(hs.DiscreteLaplace(2.5) ** 50, delta=1e-6)
    coins = hs.epsilon(hs.RandomizedResponse(0.4) ** 50, delta=1e-6)
    assert noise.accountant == "closed-form"
    assert (noise.lower, noise.upper) == (coins.lower, coins.upper)


def test_where_it_is_none_digits_are_those_of_the_fraction() -> None:
    found = hs.delta(hs.DiscreteLaplace(3), epsilon=0.1, digits=40)
    with mp.workdps(60):
        third = mp.mpf(1) / 3
        truth = (mp.exp(third) - mp.exp(mp.mpf("0.1"))) / (1 + mp.exp(third))
        assert abs(found.estimate - truth) < mp.mpf(10) ** -39 * truth


def test_the_largest_loss_is_the_sensitivity_over_the_scale() -> None:
    for scale, shift in ((3.0, 7), (0.1, 3), (1e6, 2)):
        found = DiscreteLaplaceLoss(scale, shift).supremum
        assert shift / scale <= found <= shift / scale * (1 + 2.0**-50)
    assert hs.delta(hs.DiscreteLaplace(3, 2), epsilon=0.667).upper == 0.0
