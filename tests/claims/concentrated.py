"""Concentrated differential privacy: composition, groups, and the tails of losses."""

from __future__ import annotations

import math
from typing import Any

from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.working_precision import working_digits
from tests.claims.found import Found, proven, way


@way
def allowed_divergence(*, epsilon: float, runs: int, order: float) -> float:
    """Return ``a k rho`` where ``rho = epsilon^2/2``, which epsilon-DP comes to."""
    return order * runs * epsilon**2 / 2.0


@way
def divergence_of_responses(*, epsilon: float, runs: int, order: float) -> Found:
    """Return the order-a divergence of k randomized responses, a sum over what they can say."""
    with working_digits(30):
        a, odds = mp.mpf(order), mp.exp(mp.mpf(epsilon))
        true, false = odds / (1 + odds), 1 / (1 + odds)

        def chance(yes: int, first: Any, second: Any) -> Any:
            return first**yes * second ** (runs - yes)

        moment = mp.fsum(
            mp.binomial(runs, k) * chance(k, true, false) ** a * chance(k, false, true) ** (1 - a)
            for k in range(runs + 1)
        )
        return proven(mp.log(moment) / (a - 1), "divergence")


@way
def allowed_group_divergence(*, noise_multiplier: float, size: int, order: float) -> float:
    """Return ``a g^2 rho`` where ``rho = 1/(2 sigma^2)``, which Gaussian noise comes to."""
    return order * size**2 / (2.0 * noise_multiplier**2)


@way
def group_divergence(*, noise_multiplier: float, size: int, order: float) -> Found:
    """Return the order-a divergence of Gaussians at distance g: an integral of ``p^a q^(1-a)``.

    The trapezoid rule on the line has an error that falls as ``e^(-2 (pi sigma/h)^2)``.
    """
    with working_digits(40):
        a, sigma = mp.mpf(order), mp.mpf(noise_multiplier)
        step, peak = sigma / 8, a * size
        points = [peak + step * k for k in range(-120, 121)]

        def logarithm(x: Any) -> Any:
            near, far = (x - size) ** 2, x**2
            return -(a * near + (1 - a) * far) / (2 * sigma**2)

        total = step * mp.fsum(mp.exp(logarithm(x)) for x in points)
        return proven(mp.log(total / (sigma * mp.sqrt(2 * mp.pi))) / (a - 1), "divergence")


@way
def truncated_tail(*, rho: float, omega: float, excess: float) -> float:
    """Return ``e^((omega-1)^2 rho) e^(-(omega-1) t)``, the tail of a truncated loss above rho + t.

    It is for ``t > 2 rho (omega - 1)``; a Gaussian's loss, of that rho, is truncated anywhere.
    """
    if excess < 2.0 * rho * (omega - 1.0):
        raise ValueError("there the tail is subgaussian")
    return math.exp((omega - 1.0) ** 2 * rho - (omega - 1.0) * excess)
