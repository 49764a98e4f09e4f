"""The loss of sinh-normal noise: against quadrature over the output, by mpmath."""

import math
from fractions import Fraction
from typing import Any

import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.sinh_normal import sinh_normal_delta
from hockeystick.privacy_loss import SinhNormalLoss

# The last but one is at the end of the condition 1/sqrt(rho) <= width, with tails at their worst.
NOISES = [("0.1", "40"), ("0.01", "10"), ("25", "3"), ("4", "0.5"), ("1e-6", "1e6")]
each_noise = pytest.mark.parametrize(("rho", "width"), NOISES)


def loss_of(rho: str, width: str) -> SinhNormalLoss:
    """Return the loss of parameters in decimals."""
    return SinhNormalLoss(float(rho), float(width))


def normal(rho: str, width: str, z: Any) -> Any:
    """Return the normal coordinate of the noise z."""
    a = mp.mpf(width)
    return a * mp.sqrt(2 * mp.mpf(rho)) * mp.sinh(z / a)


@each_noise
def test_a_perturbation_covers_every_other_reading_of_the_parameters(rho: str, width: str) -> None:
    half_unit = Fraction(1, 2**53)
    with mp.workdps(30):
        low, high = (loss_of(rho, width).delta(mp.one, perturbation) for perturbation in (-1, 1))
        for side in (-1, 1):
            for other in (-1, 1):
                read = (
                    Fraction(rho) * (1 + side * half_unit),
                    Fraction(width) * (1 + other * half_unit),
                )
                assert low < sinh_normal_delta(mp.one, *read) < high


@pytest.mark.parametrize(
    ("rho", "width", "c", "divergence"),
    [
        ("0.1", "40", 3.0, "0.404428217127572649765670185575"),
        ("0.1", "10", 0.2, "0.127069520380539714540031309384"),
    ],
)
def test_the_divergences_are_the_published_check_values(
    rho: str, width: str, c: float, divergence: str
) -> None:
    found = loss_of(rho, width).cgf_bounds(c)
    with mp.workdps(30):
        truth = mp.mpf(divergence) * mp.mpf(c)
        assert abs(found.midpoint - truth) <= found.radius < 1e-13 * found.midpoint


@each_noise
def test_moments_are_infinite_from_this_order_on(rho: str, width: str) -> None:
    loss = loss_of(rho, width)
    end = 1.0 / math.expm1(2.0 / loss.width)
    assert loss.cgf_bounds(end * (1.0 + 1e-9)).midpoint == math.inf
    assert loss.cgf_bounds(end * (1.0 - 1e-9)).radius < math.inf
    beyond = loss.cgf_estimate(end * 1.1)
    assert 600.0 < 1.1 * end * beyond.first_derivative - beyond.value < math.inf
