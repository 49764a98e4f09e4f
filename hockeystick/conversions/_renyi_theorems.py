"""Theorems on Renyi divergences: what they imply, and at which constants."""

from __future__ import annotations

import math
import sys
from typing import Any

from hockeystick._validate import real
from hockeystick.conversions._evaluated import (
    finite,
    one_of_two,
    order_of,
    other_of_two,
    up_product,
)
from hockeystick.notions.guarantees import DIVERGENCE, OMEGA, RHO
from hockeystick.numerics.roots import minimum
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.tradeoffs.profiles.one_order import delta_by_orders, epsilon_by_orders
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiPoints


def mironov(
    order: float, divergence: float, *, epsilon: float | None = None, delta: float | None = None
) -> float:
    """Return ``epsilon = tau + ln(1/delta) / (alpha - 1)``, or its delta: an upper bound.

    Args:
        order: The order alpha of a Renyi divergence, finite and > 1.
        divergence: The divergence tau, finite and >= 0.
        epsilon: At which delta is asked for, a number >= 0; or
        delta: at which epsilon is asked for, in (0, 1].

    Returns:
        The other one of the two, rounded up.

    Raises:
        ParameterError: If a parameter is outside its domain, or not exactly one is given.

    References:
        Mironov, "Renyi Differential Privacy", CSF 2017, proposition 3.

    Example:
        >>> from hockeystick.conversions.theorems import mironov
        >>> round(mironov(10, 1, delta=1e-5), 6)
        2.279214
    """
    a, tau = order_of(order), finite("divergence", divergence, DIVERGENCE)
    at = one_of_two(epsilon, delta)
    return other_of_two(
        lambda m: tau - m.log(m.mpf(at)) / (a - m.one),
        lambda m: m.exp((a - m.one) * (m.mpf(tau) - at)),
        epsilon,
    )


def canonne_kamath_steinke(
    order: float, divergence: float, *, epsilon: float | None = None, delta: float | None = None
) -> float:
    """Return ``delta = e^((a-1)(tau-eps)) (a-1)^(a-1) / a^a``, or its epsilon: an upper bound.

    Args:
        order: The order a of a Renyi divergence, finite and > 1.
        divergence: The divergence tau, finite and >= 0.
        epsilon: At which delta is asked for, a number >= 0; or
        delta: at which epsilon is asked for, in (0, 1].

    Returns:
        The other one of the two, rounded up.

    Raises:
        ParameterError: If a parameter is outside its domain, or not exactly one is given.

    References:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020,
        proposition 12; Balle, Barthe, Gaboardi, Hsu and Sato 2020, theorem 21.

    Example:
        >>> from hockeystick.conversions.theorems import canonne_kamath_steinke
        >>> round(canonne_kamath_steinke(2, 0.5, epsilon=0.5), 12)
        0.25
    """
    a, tau = order_of(order), finite("divergence", divergence, DIVERGENCE)
    at = one_of_two(epsilon, delta)
    return other_of_two(
        lambda m: tau + (log_cks_factor(a - m.one, m) - m.log(m.mpf(at))) / (a - m.one),
        lambda m: m.exp((a - m.one) * (m.mpf(tau) - at) + log_cks_factor(a - m.one, m)),
        epsilon,
    )


def asoodeh(
    order: float, divergence: float, *, epsilon: float | None = None, delta: float | None = None
) -> float:
    """Return the least delta that one Renyi divergence, in both orders of a pair, implies.

    (eps, delta) is implied by ``D_a(P||Q) <= tau`` iff tau is below the infimum over p in
    (delta, 1] of ``ln[p^a q^(1-a) + (1-p)^a (1-q)^(1-a)] / (a-1)``, ``q = (p-delta) e^-eps``.
    Where ``e^eps`` is below the slope of f at its fixed point, ``D_a(Q||P) <= tau`` says more, and
    delta is that of the randomized response of divergence tau.

    Guarantees:
        Exact for the class of all pairs with these divergences, but for round-off.

    Args:
        order: The order a, finite and > 1.
        divergence: The divergence tau, finite and >= 0.
        epsilon: At which delta is asked for, a number >= 0; or
        delta: at which epsilon is asked for, in (0, 1].

    Returns:
        The other one of the two, rounded up.

    Raises:
        ParameterError: If a parameter is outside its domain, or not exactly one is given.

    References:
        Asoodeh, Liao, Calmon, Kosut and Sankar, "Three Variants of Differential Privacy", 2021,
        theorem 3, for one order of the pair.

    Example:
        >>> from hockeystick.conversions.theorems import asoodeh
        >>> round(asoodeh(2, 0.5, epsilon=0.5), 12)
        0.19273716917
    """
    a, tau = order_of(order), finite("divergence", divergence, DIVERGENCE)
    at = one_of_two(epsilon, delta)
    if tau == 0.0 or (at == 1.0 and epsilon is None):
        return 0.0
    curve = RenyiPoints([(a, tau)])
    return epsilon_by_orders(curve, at) if epsilon is None else delta_by_orders(curve, at)


def bun_steinke(rho: float, *, epsilon: float | None = None, delta: float | None = None) -> float:
    """Return ``epsilon = rho + 2 sqrt(rho ln(1/delta))`` of rho-zCDP, or its delta: a bound.

    Args:
        rho: Finite and >= 0.
        epsilon: At which delta is asked for, a number >= 0; or
        delta: at which epsilon is asked for, in (0, 1].

    Returns:
        The other one of the two, rounded up.

    Raises:
        ParameterError: If a parameter is outside its domain, or not exactly one is given.

    References:
        Bun and Steinke, "Concentrated Differential Privacy", 2016, proposition 1.3.

    Example:
        >>> from hockeystick.conversions.theorems import bun_steinke
        >>> round(bun_steinke(0.5, delta=1e-5), 9)
        5.298525912
    """
    return bun_dwork_rothblum_steinke(rho, math.inf, epsilon=epsilon, delta=delta)


def bun_dwork_rothblum_steinke(
    rho: float, omega: float, *, epsilon: float | None = None, delta: float | None = None
) -> float:
    """Return epsilon of (rho, omega)-tCDP, or its delta: an upper bound.

    ``rho + 2 sqrt(rho l)`` where ``l = ln(1/delta) <= (omega - 1)^2 rho``, and
    ``rho omega + l / (omega - 1)`` beyond.

    Args:
        rho: Finite and >= 0.
        omega: > 1, or inf for rho-zCDP.
        epsilon: At which delta is asked for, a number >= 0; or
        delta: at which epsilon is asked for, in (0, 1].

    Returns:
        The other one of the two, rounded up.

    Raises:
        ParameterError: If a parameter is outside its domain, or not exactly one is given.

    References:
        Bun, Dwork, Rothblum and Steinke, "Composable and Versatile Privacy via Truncated CDP",
        2018, lemma 6.

    Example:
        >>> from hockeystick.conversions.theorems import bun_dwork_rothblum_steinke
        >>> round(bun_dwork_rothblum_steinke(0.1, 5, delta=1e-5), 9)
        3.378231366
    """
    r, w = finite("rho", rho, RHO), real("omega", omega, OMEGA)
    at = one_of_two(epsilon, delta)

    def of_delta(m: Any) -> Any:
        size = -m.log(m.mpf(at))
        if w == math.inf or size <= (m.mpf(w) - 1) ** 2 * r:
            return r + 2 * m.sqrt(r * size)
        return m.mpf(r) * w + size / (m.mpf(w) - 1)

    def of_epsilon(m: Any) -> Any:
        if r == 0.0 or at <= r:
            return m.mpf(r > 0.0)
        if w == math.inf or (m.mpf(at) - r) <= 2 * r * (m.mpf(w) - 1):
            return m.exp(-((m.mpf(at) - r) ** 2) / (4 * m.mpf(r)))
        return m.exp((m.mpf(r) * w - at) * (m.mpf(w) - 1))

    return other_of_two(of_delta, of_epsilon, epsilon)


def canonne_kamath_steinke_concentrated(
    rho: float, omega: float = math.inf, *, delta: float
) -> float:
    """Return proposition 12 of Canonne, Kamath and Steinke at the best order of ``tau = rho a``.

    Args:
        rho: Finite and > 0.
        omega: The largest order, > 1, or inf for rho-zCDP.
        delta: In (0, 1].

    Returns:
        epsilon, rounded up.

    References:
        Canonne, Kamath and Steinke 2020, corollary 13.

    Example:
        >>> from hockeystick.conversions.theorems import canonne_kamath_steinke_concentrated
        >>> round(canonne_kamath_steinke_concentrated(0.5, delta=1e-5), 9)
        4.728386985
    """
    r, w, at = finite("rho", rho, RHO), real("omega", omega, OMEGA), one_of_two(None, delta)
    if r == 0.0:
        return 0.0

    def cost(log_c: float) -> float:
        c = math.exp(log_c)
        return float(r * (1.0 + c) + (log_cks_factor(c) - math.log(at)) / c)

    unit = 0.5 * math.log(max(-math.log(at), 0.1) / r)
    high = min(unit + 10.0, math.log(w - 1.0) if w < math.inf else math.inf)
    c = math.exp(minimum(cost, min(unit, high) - 10.0, high, tolerance=1e-9))
    order = min(max(1.0 + c, 1.0 + math.ulp(1.0)), w)
    order = min(order, sys.float_info.max)
    best = min((a for a in (order, w) if a < math.inf), key=lambda a: cost(math.log(a - 1.0)))
    return canonne_kamath_steinke(best, up_product(r, best), delta=delta)
