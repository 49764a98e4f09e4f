"""The loss of sinh-normal noise: against quadrature over the output, by mpmath."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.sinh_normal import sinh_normal_delta
from hockeystick.privacy_loss import (
    DominatingPair,
    NoAnalysisError,
    NoiselessLoss,
    SinhNormalLoss,
    dominating_pair,
)

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


def log_density(rho: str, width: str, z: Any) -> Any:
    """Return the logarithm of the density of the noise, by the change of variables."""
    slope = mp.sqrt(2 * mp.mpf(rho)) * mp.cosh(z / mp.mpf(width))
    return mp.log(slope) - normal(rho, width, z) ** 2 / 2 - mp.log(2 * mp.pi) / 2


def loss_at(rho: str, width: str, y: Any) -> Any:
    """Return the loss at the output 1/2 + y, from the densities."""
    half = mp.mpf(1) / 2
    return log_density(rho, width, y - half) - log_density(rho, width, y + half)


def output_of(rho: str, width: str, loss: Any) -> Any:
    """Return the y at which the loss takes a value, by bisection."""
    low, high = -mp.mpf(1), mp.mpf(1)
    while loss_at(rho, width, high) < loss:
        high *= 2
    while loss_at(rho, width, low) > loss:
        low *= 2
    for _ in range(int(1.1 * mp.prec) + 20):
        middle = (low + high) / 2
        if loss_at(rho, width, middle) < loss:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def mass(low: Any, high: Any) -> Any:
    """Return the mass of a cell under N(0, 1), from the tail that it is in."""
    return mp.ncdf(-low) - mp.ncdf(-high) if low > 0 else mp.ncdf(high) - mp.ncdf(low)


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


@each_noise
@pytest.mark.parametrize(
    ("start", "share"), [(-6.0, 1.0), (-0.3, 1e-7), (0.0, 1e-3), (0.7, 0.05), (9.0, 1e-4)]
)
def test_the_cells_are_the_outputs_with_such_a_loss(
    rho: str, width: str, start: float, share: float
) -> None:
    spread = math.sqrt(2.0 * float(rho))
    with mp.workdps(80):
        # Where the normal coordinate next to the mean 1 is the start.
        scale = mp.mpf(width) * spread
        low = loss_at(rho, width, mp.mpf(width) * mp.asinh(start / scale) + mp.mpf(1) / 2)
        edges = np.array([float(low), float(low) + share * (spread + 2.0 * float(rho))])
        ends = [output_of(rho, width, mp.mpf(edge)) for edge in edges.tolist()]
        own, other = (
            mp.log(mass(*(normal(rho, width, y - side * mp.mpf(0.5)) for y in ends)))
            for side in (1, -1)
        )
        masses = loss_of(rho, width).cells(edges)
        assert abs(masses.log_p[0] - own) <= masses.error[0]
        assert abs(masses.log_q[0] - other) <= masses.error[0] < 3e-11


@each_noise
def test_the_cells_add_up_to_one(rho: str, width: str) -> None:
    reach = 12.0 * math.sqrt(float(rho)) + 8.0 * float(rho)
    grid = np.linspace(-3.0 * reach, 4.0 * reach, 20_001)
    edges = np.concatenate(([-np.inf, -1e300], grid, [1e9, 1e300, np.inf]))
    masses = loss_of(rho, width).cells(edges)
    for log in (masses.log_p, masses.log_q):
        assert math.fsum(np.exp(log)) == pytest.approx(1.0, abs=1e-12)
    assert masses.error[np.maximum(masses.log_p, masses.log_q) > -700].max() < 1e-8
    # Exchanging the two is a reflection: Q[l < -t] = P[l > t].
    mirrored = loss_of(rho, width).cells(-edges[::-1])
    assert np.allclose(np.exp(mirrored.log_q[::-1]), np.exp(masses.log_p), rtol=1e-9, atol=0.0)


def test_no_noise_reveals_and_what_floats_cannot_hold_is_refused() -> None:
    revealed = DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    assert dominating_pair(hs.mechanisms.SinhNormal(math.inf, 1)) == revealed
    for rho, width in ((1e13, 1.0), (1e5, 5e-3), (1.0, 1e13)):
        with pytest.raises(NoAnalysisError, match="sinh-normal noise is analysed for"):
            dominating_pair(hs.mechanisms.SinhNormal(rho, width))
