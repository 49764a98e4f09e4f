"""Metric privacy with Laplace noise on R^n, of density ``K exp(-eps ||x||)``."""

from __future__ import annotations

import math
from typing import Any

from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.mechanisms import Laplace, Mechanism, MultivariateLaplace
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.working_precision import working_digits
from hockeystick.results import Certified
from tests.claims.found import Found, between, proven, way


@way
def leakage(*, dimension: int, noise_multiplier: float, rounds: int = 1) -> float:
    """Return ``n/nu`` for each round."""
    return rounds * dimension / noise_multiplier


@way
def public_radius_epsilon(*, dimension: int, noise_multiplier: float) -> Certified:
    """Return the pure epsilon of one release with noise ``n/nu`` in units of a public radius."""
    return epsilon_of(MultivariateLaplace(noise_multiplier / dimension, dimension), 0.0)


@way
def unit_of_averages(*, dimension: int, noise_multiplier: float, runs: int) -> float:
    """Return what an average over runs of whole numbers of rounds, times n/nu, is a multiple of."""
    return dimension / noise_multiplier / runs


@way
def private_scale_delta(
    *, dimension: int, noise_multiplier: float, ratio: float, distance: float
) -> Found:
    """Return a lower bound on delta at ``eps = n/nu`` where the noise scale is the update's norm.

    Of two updates, of norm 1 and ``ratio``, the first has noise of scale ``nu/n`` and lands further
    than t from itself with probability ``P(Gamma(n) > t n/nu)``. The second, at a distance from it,
    does so with at most ``P(Gamma(n) > (t - distance) n/(nu ratio))``. For ``ratio < 1`` the ratio
    of the two grows without end in t; here ``t = nu (1 + 3/sqrt(n))``.
    """
    with working_digits(30):
        n, rate = mp.mpf(dimension), dimension / mp.mpf(noise_multiplier)
        reach = n + 3 * mp.sqrt(n)
        near = (reach - mp.mpf(str(distance)) * rate) / mp.mpf(str(ratio))
        own = mp.gammainc(n, reach, mp.inf, regularized=True)
        other = mp.gammainc(n, near, mp.inf, regularized=True)
        lower = float(own - mp.exp(rate) * other)
    return between(math.nextafter(lower, -math.inf), 1.0, "delta")


@way
def grown_epsilon(*, epsilon: float, distance: float) -> float:
    """Return ``eps d``, what metric privacy allows at a distance."""
    return epsilon * distance


@way
def epsilon_at_a_distance(*, dimension: int, epsilon: float, distance: float) -> Certified:
    """Return the pure epsilon of the Laplace mechanism on R^n at a distance."""
    return epsilon_of(MultivariateLaplace(1.0 / (epsilon * distance), dimension), 0.0)


@way
def mean_norm_as_printed(*, dimension: int, epsilon: float) -> float:
    """Return ``n/eps``."""
    return dimension / epsilon


@way
def mean_norm(*, dimension: int, epsilon: float) -> Found:
    """Return the mean distance from the origin: ``int r^n e^(-eps r) / int r^(n-1) e^(-eps r)``."""
    with working_digits(30):
        rate = mp.mpf(epsilon)

        def moment(power: int) -> Any:
            return mp.quad(lambda r: r**power * mp.exp(-rate * r), [0, power / rate, mp.inf])

        return proven(moment(dimension) / moment(dimension - 1), "norm")


@way
def constant_as_printed(*, dimension: int, epsilon: float) -> float:
    """Return ``eps^n Gamma(n/2)/(2 pi^(n/2) Gamma(n))``."""
    half = dimension / 2
    top = epsilon**dimension * math.gamma(half)
    bottom: float = 2.0 * math.pi**half * math.gamma(dimension)
    return top / bottom


@way
def constant_in_space(*, epsilon: float, dimension: int = 3) -> Found:
    """Return K in three dimensions: the inverse of ``int 4 pi r^2 e^(-eps r) dr = 8 pi/eps^3``."""
    with working_digits(30):
        return proven(mp.mpf(epsilon) ** 3 / (8 * mp.pi), "density at 0")


@way
def variance_as_printed(*, dimension: int, epsilon: float) -> float:
    """Return ``(n + 1)/eps^2``."""
    return (dimension + 1) / epsilon**2


@way
def variance(*, dimension: int, epsilon: float) -> Found:
    """Return the variance of a coordinate: ``E r^2/n``, r of density r^(n-1) e^(-eps r)."""
    with working_digits(30):
        second = mp.factorial(dimension + 1) / mp.factorial(dimension - 1) / mp.mpf(epsilon) ** 2
        return proven(second / dimension, "variance")


@way
def summed_epsilon(*, epsilons: tuple[float, ...], distances: tuple[float, ...]) -> float:
    """Return ``sum eps_i d_i``."""
    return math.fsum(e * d for e, d in zip(epsilons, distances, strict=True))


@way
def composed_epsilon(*, epsilons: tuple[float, ...], distances: tuple[float, ...]) -> Certified:
    """Return the pure epsilon of Laplace releases on the line, at these distances."""
    plan: Mechanism | None = None
    for scale, distance in zip(epsilons, distances, strict=True):
        one = Laplace(1.0 / (scale * distance))
        plan = one if plan is None else plan @ one
    assert plan is not None
    return epsilon_of(plan, 0.0)
