"""Upper bounds of a mechanism's Renyi divergences, and the delta that one order implies.

Orders are ``1 + c``; a curve bounds ``K(c) = c D_(1+c)``, the cumulant generating function of the
privacy loss in both orders of every pair, from above.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from hockeystick._validate import Domain, real
from hockeystick.errors import ParameterError
from hockeystick.numerics.rounding import OUTWARD_16
from hockeystick.tradeoffs.functions.piecewise import lower_envelope
from hockeystick.tradeoffs.profiles.profile import Array

ORDER: Final = Domain("alpha", 1, math.inf, (1.5, 256), low_open=True, high_open=True)
OMEGA: Final = Domain(symbol="omega", low=1, high=math.inf, low_open=True, typical=(2, 1000))
_SIZE: Final = Domain(symbol="", low=0, high=math.inf, high_open=True, typical=(1e-3, 10))
_RATIO: Final = 0.5 * (math.sqrt(5.0) - 1.0)
_STEPS: Final = 34
# Orders are cut at this, below which subtracting 1 is exact.
_LARGEST: Final = 1e15


class RenyiCurve(ABC):
    """Upper bounds of the Renyi divergences at orders ``1 + c``, for c up to ``orders[-1]``."""

    __slots__ = ()

    @property
    @abstractmethod
    def orders(self) -> tuple[float, ...]:
        """Values of c, ascending: all that are given, or a grid over the relevant range."""

    @property
    @abstractmethod
    def gaussian_mu(self) -> float:
        """The largest mu, rounded down, whose Gaussian obeys the curve: ``mu^2/2 <= D/alpha``."""

    @property
    @abstractmethod
    def is_perfect(self) -> bool:
        """Whether a divergence is 0, which is perfect privacy: P = Q."""

    @abstractmethod
    def log_moment(self, c: Array) -> Array:
        """Return the bound of K at each c, rounded up."""

    @abstractmethod
    def moment_at(self, c: Any) -> Any:
        """Return the bound of K at one c, a float or an mpf, to its precision."""

    @abstractmethod
    def minimising_orders(self, cost: Callable[[Array], Array], size: int) -> Array:
        """Return the approximate minimiser c of each of ``size`` costs."""


@final
@dataclass(frozen=True, slots=True, init=False)
class RenyiPoints(RenyiCurve):
    """Renyi divergences at given orders; convexity of K bounds what lies between.

    Args:
        divergences: Pairs of an order > 1 and a finite divergence >= 0.

    References:
        van Erven and Harremoes, "Renyi divergence and Kullback-Leibler divergence", 2014,
        corollary 2: ``(alpha - 1) D_alpha`` is convex in alpha; it is 0 at 1.
    """

    divergences: tuple[tuple[float, float], ...]

    def __init__(self, divergences: Iterable[tuple[float, float]]) -> None:
        pairs = sorted(
            (min(real("order", order, ORDER), _LARGEST), real("divergence", size, _SIZE))
            for order, size in divergences
        )
        if not pairs:
            raise ParameterError("divergences", pairs, "at least one pair of order and divergence")
        object.__setattr__(self, "divergences", _hull(pairs))

    @property
    def orders(self) -> tuple[float, ...]:
        return tuple(order - 1.0 for order, _ in self.divergences)

    @property
    def gaussian_mu(self) -> float:
        least = min(size / order for order, size in self.divergences)
        return math.sqrt(2.0 * least) / (1.0 + OUTWARD_16)

    @property
    def is_perfect(self) -> bool:
        return any(size == 0.0 for _, size in self.divergences)

    def log_moment(self, c: Array) -> Array:
        known = np.array([(order - 1.0, (order - 1.0) * size) for order, size in self.divergences])
        return np.interp(c, np.r_[0.0, known[:, 0]], np.r_[0.0, known[:, 1]]) * (1.0 + OUTWARD_16)

    def moment_at(self, c: Any) -> Any:
        orders = self.orders
        right = min(bisect_left(orders, c), len(orders) - 1)
        high = orders[right]
        low = orders[right - 1] if right else 0.0
        unit = c / c
        at_high = unit * high * self.divergences[right][1]
        at_low = unit * low * self.divergences[right - 1][1] if right else 0 * unit
        return at_low + (c - low) * (at_high - at_low) / (unit * high - low)

    def minimising_orders(self, cost: Callable[[Array], Array], size: int) -> Array:
        costs = np.array([cost(np.full(size, c)) for c in self.orders])
        chosen: Array = np.array(self.orders)[np.argmin(costs, axis=0)]
        return chosen


@final
@dataclass(frozen=True, slots=True, init=False)
class RenyiLine(RenyiCurve):
    """``D_alpha <= rho alpha`` for alpha in (1, omega): (truncated) concentrated privacy.

    It holds at omega too, where the divergence is the limit from below.

    Args:
        rho: A finite number >= 0.
        omega: The largest order, > 1; by default inf.
    """

    rho: float
    omega: float

    def __init__(self, rho: float, omega: float = math.inf) -> None:
        object.__setattr__(self, "rho", real("rho", rho, _SIZE))
        object.__setattr__(self, "omega", real("omega", omega, OMEGA))

    @property
    def orders(self) -> tuple[float, ...]:
        """A geometric grid around ``sqrt(ln(1/delta) / rho)``, up to omega."""
        unit = 1.0 / math.sqrt(max(self.rho, 1e-280))
        high = min(100.0 * max(unit, 1.0), self.omega - 1.0, _LARGEST)
        low = min(1e-6 * min(unit, 1.0), 0.5 * high)
        count = 2 + int(math.log(high / low) / 1.2)
        ratio = math.log(high / low) / (count - 1)
        inner = (low * math.exp(ratio * k) for k in range(count - 1))
        return (*(min(c, high) for c in inner), high)

    @property
    def gaussian_mu(self) -> float:
        return math.sqrt(2.0) * math.sqrt(self.rho) / (1.0 + OUTWARD_16)

    @property
    def is_perfect(self) -> bool:
        return self.rho == 0.0

    def log_moment(self, c: Array) -> Array:
        return self.rho * c * (1.0 + c) * (1.0 + OUTWARD_16)

    def moment_at(self, c: Any) -> Any:
        return self.rho * c * (1 + c)

    def minimising_orders(self, cost: Callable[[Array], Array], size: int) -> Array:
        ends = np.log(np.array([self.orders[0], self.orders[-1]]))
        found = golden(lambda t: cost(np.exp(t)), np.full(size, ends[0]), np.full(size, ends[1]))
        return np.clip(np.exp(found), self.orders[0], self.orders[-1])


def golden(cost: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the minimisers of unimodal costs by golden sections, one for each element."""
    x, y = high - _RATIO * (high - low), low + _RATIO * (high - low)
    at_x, at_y = cost(x), cost(y)
    for _ in range(_STEPS):
        left = at_x <= at_y
        high, low = np.where(left, y, high), np.where(left, low, x)
        probe = np.where(left, high - _RATIO * (high - low), low + _RATIO * (high - low))
        value = cost(probe)
        x, y = np.where(left, probe, y), np.where(left, x, probe)
        at_x, at_y = np.where(left, value, at_y), np.where(left, at_x, value)
    return np.where(at_x <= at_y, x, y)


def dual_log_delta(
    c: Any, log_moment: Any, epsilon: Any, contact_gap: Any, m: Any
) -> tuple[Any, ...]:
    """Return ``ln delta`` at an epsilon by one order ``a = 1 + c``, and ``ln r`` and ``ln s``.

    For ``r = e^eps (a/c) (1 - t^c) / (1 - t^a)``, ``s = t r``, ``t = e^-contact_gap`` and
    ``k = 1 / (a (r^c - s^c))``,

        (x - e^eps)_+ <= k (x^a - a s^c x + c s^a)   for all x >= 0,

    with equality at s and r, the contact points. In expectation over the likelihood ratio x,

        delta <= k (e^K - a s^c + c s^a).

    Every ``contact_gap = ln(r/s) > 0`` gives a bound; the least is the optimal conversion, and an
    infinite gap (s = 0) gives that of Canonne, Kamath and Steinke. ``m`` is the module to compute
    with: math, numpy or mpmath's context.

    References:
        Asoodeh, Liao, Calmon, Kosut and Sankar 2021, theorem 3, whose conversion this is the dual
        of; Canonne, Kamath and Steinke 2020, proposition 12.
    """
    a = c + 1
    shrink, shrink_a = m.log(-m.expm1(-c * contact_gap)), m.log(-m.expm1(-a * contact_gap))
    log_r = epsilon + m.log(a / c) + shrink - shrink_a
    log_s = log_r - contact_gap
    rest = c * m.expm1(a * log_s) - a * m.expm1(c * log_s)
    inner = m.exp(-log_moment) * rest - m.expm1(-log_moment)
    return log_moment + m.log(inner) - m.log(a) - c * log_r - shrink, log_r, log_s


def response_moment(c: Any, epsilon: Any, m: Any) -> Any:
    """Return K of randomized response, ``c eps - ln((1 + e^-eps) / (1 + e^-(2c+1)eps))``.

    As ``ln(1 + e^(c eps) (1 - e^(-(1+c) eps)) (1 - e^(-c eps)) / (1 + e^-eps))`` nothing cancels.
    """
    part = m.expm1(-(c + 1) * epsilon) * m.expm1(-c * epsilon) / (1 + m.exp(-epsilon))
    size = c * epsilon
    return m.log1p(m.exp(size) * part) if size < 1 else size + m.log(m.exp(-size) + part)


def log_diagonal_slope(c: Any, epsilon: Any, m: Any) -> Any:
    """Return ``ln|f'|`` of one order's trade-off function f at its fixed point, from the left.

    At its fixed point f equals randomized response of epsilon, and its left derivative there is
    ``-(c/a) sinh(a eps) / sinh(c eps)``, steeper than -1; the right one is the reciprocal.
    """
    a = c + 1
    sinhs = m.log(-m.expm1(-2 * a * epsilon)) - m.log(-m.expm1(-2 * c * epsilon))
    return m.log(c / a) + epsilon + sinhs


def _hull(pairs: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the pairs that convexity of K with ``K(0) = 0`` does not imply, ascending."""
    points = {(order - 1.0, (order - 1.0) * size): (order, size) for order, size in pairs[::-1]}
    return tuple(points[corner] for corner in lower_envelope([(0.0, 0.0), *points])[1:])
