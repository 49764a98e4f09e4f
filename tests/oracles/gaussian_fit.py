"""mu and regret by their definitions: maxima over the points of a curve, at 40 digits.

A curve is a function that returns the power at a rate, up to the rate where its slope is -1. Each
point of it has its own mu and its own kappa; the maxima are found by scanning and golden section.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp

Curve = Callable[[Any], Any]
_SCAN = 48
_SECTIONS = 50


def quantile(p: Any) -> Any:
    """Return ``Phi^-1(p)``, by Newton's method on the logarithm of the smaller tail."""
    if p > 0.5:
        return -quantile(1 - p)
    x = -mp.sqrt(-2 * mp.log(p)) if p < 0.1 else mp.mpf(0)
    for _ in range(60):
        step = (mp.log(mp.ncdf(x)) - mp.log(p)) * mp.ncdf(x) / mp.npdf(x)
        x -= step
        if abs(step) < mp.mpf(10) ** (5 - mp.dps):
            break
    return x


def laplace_power(scale: Any) -> tuple[Curve, Any]:
    """Return the power of Laplace noise of a scale, and where its slope is -1."""
    e = mp.exp(1 / mp.mpf(scale))

    def power(alpha: Any) -> Any:
        return e * alpha if alpha < 1 / (2 * e) else 1 - 1 / (4 * e * alpha)

    return power, 1 / (2 * mp.sqrt(e))


def sampled_gaussian_power(rate: Any, noise: Any) -> tuple[Curve, Any]:
    """Return the power of one sampled Gaussian in the worse order, and its fixed point."""
    q, distance = mp.mpf(rate), 1 / mp.mpf(noise)
    edge = mp.ncdf(-distance / 2)
    advantage = q * (mp.ncdf(distance / 2) - edge)

    def power(alpha: Any) -> Any:
        if alpha > edge:
            return alpha + advantage
        return (1 - q) * alpha + q * mp.ncdf(quantile(alpha) + distance)

    return power, (1 - advantage) / 2


def response_power(epsilon: Any) -> tuple[Curve, Any]:
    """Return the power of binary randomized response, and where its slope changes to -1."""
    e = mp.exp(mp.mpf(epsilon))
    return (lambda alpha: e * alpha), 1 / (1 + e)


def mu_at(power: Curve, alpha: Any) -> Any:
    """Return the mu of the Gaussian through a point."""
    return quantile(power(alpha)) - quantile(alpha)


def kappa_at(power: Curve, alpha: Any, mu: Any) -> Any:
    """Return how far a point is to be moved to lie on ``G_mu``: down and left by kappa each."""

    def left(kappa: Any) -> Any:
        # f - kappa > G at the moved rate: less power than the Gaussian still.
        return mp.ncdf(quantile(alpha - kappa) + mu) - power(alpha) - kappa

    if left(mp.mpf(0)) <= 0:
        return mp.mpf(0)
    return mp.findroot(left, (0, alpha * (1 - mp.mpf(10) ** -15)), solver="anderson", tol=1e-36)


def largest(value: Callable[[Any], Any], least: Any, most: Any) -> Any:
    """Return the maximum over rates between two, scanned by their logarithms."""
    logs = [mp.log(least) + (mp.log(most) - mp.log(least)) * k / _SCAN for k in range(_SCAN + 1)]
    found = [value(min(mp.exp(one), mp.mpf(most))) for one in logs]
    best = max(range(len(found)), key=found.__getitem__)
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, _SCAN)]
    ratio = (mp.sqrt(5) - 1) / 2
    for _ in range(_SECTIONS):
        first, second = high - ratio * (high - low), low + ratio * (high - low)
        if value(mp.exp(first)) < value(mp.exp(second)):
            low = first
        else:
            high = second
    return max(found[best], value(mp.exp(low)))
