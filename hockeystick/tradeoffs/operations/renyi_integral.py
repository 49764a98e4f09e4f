"""Renyi divergences from the two profiles of a trade-off function.

    e^((a-1) D_a(P||Q)) = 1 + a (a-1) Int_0^inf [e^((a-1) eps) d(eps) + e^(-a eps) d'(eps)] deps,

d the profile of (P, Q) and d' that of (Q, P). In each cell of a grid the chord in ``e^eps`` lies
above, and the lines extrapolated from the neighbouring cells below.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hockeystick import _validate
from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import Bounds, TradeOff
from hockeystick.tradeoffs.functions.closed_forms import GaussianTradeOff
from hockeystick.tradeoffs.profiles.profile import Array, Cells, Profile
from hockeystick.tradeoffs.profiles.renyi_curve import ORDER

_START: Final = 257
_MOST: Final = 2**17
_ROUNDS: Final = 20
_WIDEST: Final = 1e-7
# Where a Gaussian's profile is still far above the least float.
_MOST_DEVIATIONS: Final = 36.0
_BEYOND: Final = 690.0
_LEAST: Final = 1e-300


def renyi_divergence(f: TradeOff, order: float) -> Bounds:
    """Return the Renyi divergence of an order > 1 of the pair with this trade-off function.

    The larger of D(P||Q) and D(Q||P), f = T(P, Q): what f-DP implies.

    Guarantees:
        Proven ends, in general within 1e-6 of each other, relatively. Where the tail of a profile
        is beyond floats and no Gaussian above it is known, the upper end is inf.

    Edge cases:
        ``alpha mu^2 / 2`` for a Gaussian. Infinite where delta does not vanish, that is f(0) < 1 or
        f = 0 before 1: so nothing follows from (epsilon, delta > 0)-DP.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, appendix B, has the
        equivalent ``(1/(alpha-1)) ln Int_0^1 |f'(x)|^(1-alpha) dx``.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.tradeoffs.operations.renyi_integral import renyi_divergence
        >>> lower, upper = renyi_divergence(hs.tradeoffs.GaussianTradeOff(1.0), 4.0)
        >>> print(f"{lower:.6f} {upper:.6f}")
        2.000000 2.000000
    """
    a = _validate.real("order", order, ORDER)
    if isinstance(f, GaussianTradeOff):
        exact = 0.5 * a * f.mu * f.mu
        return Bounds(exact * (1.0 - 2.0 * ULP), exact * (1.0 + 2.0 * ULP))
    ends = [_directed_divergence(f.backward, f.forward, a)]
    if not f.is_symmetric:
        ends.append(_directed_divergence(f.forward, f.backward, a))
    return Bounds(max(one.lower for one in ends), max(one.upper for one in ends))


def _directed_divergence(with_record: Profile, without: Profile, a: float) -> Bounds:
    if not _vanishes(with_record):
        return Bounds(math.inf, math.inf)
    growing, falling = _exponential_integral(with_record, a), _decaying_integral(without, a)
    return Bounds(
        _as_divergence(growing.lower, falling.lower, a, up=False),
        _as_divergence(growing.upper, falling.upper, a, up=True),
    )


def _vanishes(profile: Profile) -> bool:
    """Return whether delta may vanish at the supremum: no positive lower bound is known."""
    far = np.array([min(2.0 * profile.supremum + 1.0, 1e15)])
    return not float(profile.at(far).lower[0]) > 0.0


def _as_divergence(one: float, other: float, a: float, *, up: bool) -> float:
    """Return ``ln(1 + a (a-1) (e^one + e^other)) / (a-1)``, rounded outward."""
    log = np.logaddexp(one, other) + math.log(a) + math.log(a - 1.0)
    off = 64.0 * ULP * (1.0 + abs(log)) if math.isfinite(log) else 0.0
    value = float(np.logaddexp(0.0, log + off if up else log - off)) / (a - 1.0)
    return value * (1.0 + 16.0 * ULP) if up else value * (1.0 - 16.0 * ULP)


def _exponential_integral(profile: Profile, a: float) -> Bounds:
    """Return the logarithm of the integral of ``e^((a-1) eps) d(eps)``."""
    mu = profile.dominating_mu
    end = profile.supremum
    if mu < math.inf:
        end = min(end, 0.5 * mu * mu + mu * min((a - 1.0) * mu + 14.0, _MOST_DEVIATIONS + 0.5 * mu))
    if end == 0.0 or mu == 0.0:
        return Bounds(-math.inf, -math.inf)
    reach = min(end, _BEYOND)
    ends = _integral(profile, a - 1.0, reach)
    if reach >= profile.supremum:
        last = float(profile.at(np.array([profile.supremum])).upper[0])
        return Bounds(ends.lower, ends.upper if last == 0.0 else math.inf)
    return Bounds(ends.lower, float(np.logaddexp(ends.upper, _gaussian_tail(mu, a, reach))))


def _gaussian_tail(mu: float, a: float, start: float) -> float:
    """Return the logarithm of a bound of the integral from a start, for a profile below G_mu's.

    ``delta(eps) <= Phi(mu/2 - eps/mu) <= e^(-u^2/2) / 2`` with ``u = eps/mu - mu/2 >= 0``.
    """
    from scipy.special import log_ndtr

    u, drift = start / mu - 0.5 * mu, (a - 1.0) * mu
    if math.isinf(mu) or u < 0.0:
        return math.inf
    tail = float(log_ndtr(drift - u)) + 0.5 * drift * drift + 0.5 * drift * mu
    size = 1.0 + abs(tail) + drift * drift + drift * mu + (drift + u) * (abs(drift - u) + 1.0)
    return math.log(0.5 * mu * math.sqrt(2.0 * math.pi)) + tail + 64.0 * ULP * size


def _decaying_integral(profile: Profile, a: float) -> Bounds:
    """Return the logarithm of the integral of ``e^(-a eps) d(eps)``."""
    mu = profile.dominating_mu
    end = min(profile.supremum, 40.0 / a, _BEYOND)
    if 0.0 < mu < math.inf:
        end = min(end, 0.5 * mu * mu + 14.0 * mu)
    if end == 0.0 or mu == 0.0:
        return Bounds(-math.inf, -math.inf)
    ends = _integral(profile, -a, end)
    with np.errstate(divide="ignore"):
        last = float(np.log(profile.at(np.array([end])).upper[0]))
    tail = last - a * end - math.log(a) + 1e-12
    return Bounds(ends.lower, float(np.logaddexp(ends.upper, tail)))


def _integral(profile: Profile, power: float, end: float) -> Bounds:
    """Return the logarithm of the integral of ``e^(power eps) d(eps)`` up to an end."""
    start = np.unique(end * np.r_[0.0, np.geomspace(1e-6, 1.0, _START), np.linspace(0.0, 1.0, 257)])
    table = Cells.of(profile, start)
    for _ in range(_ROUNDS):
        lower, upper, shift, slack = _over_cells(table, power)
        gaps, goal = upper - lower, _WIDEST * float(upper.sum())
        split = np.isinf(upper) | (gaps > 0.5 * goal / len(gaps))
        enough = goal < math.inf and gaps.sum() <= goal
        if enough or len(table.epsilon) + int(split.sum()) > _MOST:
            break
        middle = 0.5 * (table.epsilon[:-1] + table.epsilon[1:])[split]
        table = table.with_more(middle)
    ends = np.array([lower.sum() * (1.0 - slack), upper.sum() * (1.0 + slack)])
    with np.errstate(divide="ignore"):
        low, high = np.log(np.maximum(ends, 0.0)) + shift
    return Bounds(float(low), float(high))


def _over_cells(table: Cells, power: float) -> tuple[Array, Array, float, float]:
    """Return both ends of the integral over each cell over e^shift, and their round-off."""
    h, first = np.diff(table.epsilon), np.maximum(table.high[:-1], _LEAST)
    log = power * table.epsilon[:-1] + np.log(first)
    shift = float(log.max())
    scale = np.exp(log - shift) / first
    wide = (abs(power) + 1.0) * h
    coarse = wide > 1.0
    near, far = _moments(power, np.where(coarse, 1.0 / (abs(power) + 1.0), h))
    # The error of Gauss and Legendre's rule with five nodes, relative to the integral.
    small = np.minimum(wide, 1.0)
    rule = 1e-12 * (10.0 * small**9 + small**10) * np.exp(2.0 * small)
    upper = scale * (near * table.high[:-1] + far * table.high[1:]) * (1.0 + rule)
    with np.errstate(over="ignore", invalid="ignore"):
        crude = h * np.exp(log - shift + np.maximum(power, 0.0) * h)
    upper = np.where(coarse, crude, upper)
    left, right = table.lines_below()
    best = np.maximum(near * left[0] + far * left[1], near * right[0] + far * right[1])
    lower = np.where(coarse, 0.0, scale * np.maximum(best, 0.0) * (1.0 - rule))
    size = len(h) + 4000.0 + 8.0 * abs(power) * float(table.epsilon[-1])
    return np.minimum(lower, upper), upper, shift, min(ULP * size, 1.0)


def _moments(power: float, h: Array) -> tuple[Array, Array]:
    """Return the integrals of ``e^(power t)`` times the hat functions linear in e^t, on [0, h]."""
    nodes, weights = np.polynomial.legendre.leggauss(5)
    near, far = np.zeros_like(h), np.zeros_like(h)
    for node, weight in zip(0.5 * (1.0 + nodes), 0.5 * weights, strict=True):
        value = weight * h * np.exp(power * node * h)
        far += value * np.expm1(node * h) / np.expm1(h)
        near += value * np.exp(node * h) * np.expm1((1.0 - node) * h) / np.expm1(h)
    return near, far
