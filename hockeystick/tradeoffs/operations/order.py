"""Whether one trade-off function lies above another everywhere: proven, refuted, or neither.

f >= g iff ``delta_f(eps) <= delta_g(eps)`` for all eps >= 0, in both directions. Both are convex in
``x = e^eps``. So between two values of x, delta_f lies below its chord and delta_g above the lines
extrapolated from the neighbouring cells; cells in which this is not enough are split.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import TradeOff
from hockeystick.tradeoffs.functions.by_profile import ProfileTradeOff
from hockeystick.tradeoffs.functions.closed_forms import GaussianTradeOff
from hockeystick.tradeoffs.functions.piecewise import (
    IDENTITY,
    ApproxTradeOff,
    PiecewiseLinearTradeOff,
)
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
from hockeystick.tradeoffs.profiles.profile import (
    Array,
    Flags,
    MaximumProfile,
    Profile,
    SampledProfile,
    SwappedSampledProfile,
)


def symmetrize(f: TradeOff) -> TradeOff:
    """Return ``min(f, f^-1)**``: the larger of both profiles, in both directions."""
    if f.is_symmetric:
        return f
    profile = MaximumProfile(f.forward, f.backward)
    return ProfileTradeOff((profile, profile))


def subsample(f: TradeOff, rate: float) -> TradeOff:
    """Return ``C_p(f) = min(f_p, f_p^-1)**`` with ``f_p = p f + (1-p) (1 - alpha)``.

    That of a Gaussian is in closed form, any other by its profiles: the forward one of f_p is
    ``delta_p(ln(1 + p (e^eps - 1))) = p delta(eps)``. f counts as symmetrized.

    References:
        Dong, Roth and Su 2022, theorem 4.2 and its supplement; Balle, Barthe and Gaboardi 2018,
        theorem 2.
    """
    both = symmetrize(f)
    if rate == 1.0 or (isinstance(both, GaussianTradeOff) and both.mu == 0.0):
        return both
    if rate == 0.0:
        return IDENTITY
    if isinstance(both, GaussianTradeOff):
        return SampledGaussianTradeOff(both.mu, rate)
    profile = MaximumProfile(
        SampledProfile(both.forward, rate), SwappedSampledProfile(both.backward, rate)
    )
    return ProfileTradeOff((profile, profile))


# Deltas below it count as equal, and so do the functions at rates below about it.
_NEGLIGIBLE: Final = 1e-300
_LARGEST_EPSILON: Final = 691.0
_START: Final = 65
_MOST: Final = 30_000
_ROUNDS: Final = 40


def at_least(f: TradeOff, g: TradeOff) -> bool | None:
    """Return whether ``f >= g`` everywhere: f is at least as private as g.

    Guarantees:
        True is proven for all rates from 1e-300 on (deltas below 1e-300 count as equal), round-off
        included; False is proven by an epsilon where delta_f exceeds delta_g, or by a rate where f
        is below g. None is neither: the curves touch, or are closer than their ends are known.

    Edge cases:
        Equal objects give True. Two Gaussians are compared by mu, exactly; and so is what is
        known to be at least a Gaussian by its making, as ``C_p(G_mu)`` and groups of it are.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, proposition 2.12.
    """
    if f is g or f == g:
        return True
    if isinstance(g, GaussianTradeOff):
        if isinstance(f, GaussianTradeOff):
            return f.mu <= g.mu
        if max(f.forward.dominating_mu, f.backward.dominating_mu) <= g.mu:
            return True
    rates = np.array(sorted({*_rates(f), *_rates(g)}))
    if rates.size and (f.bounds(rates)[1] < g.bounds(rates)[0]).any():
        return False
    pairs = [(f.forward, g.forward)]
    if not (f.is_symmetric and g.is_symmetric):
        pairs.append((f.backward, g.backward))
    verdicts = {_below(low, high) for low, high in pairs}
    return False if False in verdicts else None if None in verdicts else True


def _rates(f: TradeOff) -> tuple[float, ...]:
    """Return the rates of the vertices of a piecewise linear function, where f < g is checked."""
    return f.corners.alphas if isinstance(f, PiecewiseLinearTradeOff | ApproxTradeOff) else ()


def _below(low: Profile, high: Profile) -> bool | None:
    """Return whether the first profile is at most the second for all epsilon, None where open."""
    if low == high:
        return True
    epsilon = np.r_[0.0, np.geomspace(1e-5, _LARGEST_EPSILON, _START)]
    curves = _Curves(low, high, epsilon)
    for _ in range(_ROUNDS):
        if curves.refuted:
            return False
        failing = ~curves.settled()
        if not failing.any():
            return True
        if len(curves.epsilon) + 3 * int(failing.sum()) > _MOST:
            return None
        curves = curves.split(failing)
    return None


class _Curves:
    """Two profiles, ``low`` and ``high``, with proven ends at ascending epsilons."""

    def __init__(self, low: Profile, high: Profile, epsilon: Array) -> None:
        self._profiles = low, high
        self.epsilon = epsilon
        self._x = np.exp(epsilon)
        first, second = low.at(epsilon), high.at(epsilon)
        self._low_lower, self._low_upper = first.lower, first.upper
        self._high_lower, self._high_upper = second.lower, second.upper

    @property
    def refuted(self) -> bool:
        """Whether the first is provably above the second somewhere."""
        return bool((self._low_lower > np.maximum(self._high_upper, _NEGLIGIBLE)).any())

    def split(self, cells: Flags) -> _Curves:
        """Return the curves with three more points in each of these cells."""
        start, width = self.epsilon[:-1][cells], np.diff(self.epsilon)[cells]
        more = (start + np.array([[0.25], [0.5], [0.75]]) * width).ravel()
        return _Curves(*self._profiles, np.unique(np.r_[self.epsilon, more]))

    def settled(self) -> Flags:
        """Return in which cells the first is provably below the second.

        Two lines bound the second profile from below. A cell is settled if the one from the left
        is above the chord of the first profile up to some x, and the one from the right from there.
        """
        left, right = self._lines()
        chord = np.stack([self._low_upper[:-1], self._low_upper[1:]])
        first, last = left - chord, right - chord
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(first[1] < 0.0, first[0] / (first[0] - first[1]), 1.0)
            start = np.where(last[0] < 0.0, last[0] / (last[0] - last[1]), 0.0)
        both = (first[0] >= 0.0) & (last[1] >= 0.0)
        met = both & (start * (1.0 + 16.0 * ULP) <= reach * (1.0 - 16.0 * ULP))
        alone = (first >= 0.0).all(axis=0) | (last >= 0.0).all(axis=0)
        return np.asarray(met | alone | (self._low_upper[:-1] <= _NEGLIGIBLE))

    def _lines(self) -> tuple[Array, Array]:
        """Return lines below the second profile, from the left and from the right, at both ends.

        By convexity its slope in a cell is at least the mean slope in the cell before, and at most
        that in the cell after. The widths are rounded in the safe direction.
        """
        width, off = np.diff(self._x), 16.0 * ULP * self._x[1:]
        narrow, wide = np.maximum(width - off, 0.0), width + off
        drop = np.maximum(self._high_upper[:-1] - self._high_lower[1:], 0.0)
        fall = np.maximum(self._high_lower[:-1] - self._high_upper[1:], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = np.r_[np.inf, np.where(narrow > 0.0, drop / narrow, np.inf)[:-1]]
        flat = np.r_[(fall / wide)[1:], 0.0]
        start, end = self._high_lower[:-1], self._high_lower[1:]
        down, up = steep * wide * (1.0 + 8.0 * ULP), flat * narrow * (1.0 - 8.0 * ULP)
        right = np.stack([(end + up) * (1.0 - 2.0 * ULP), end])
        known = np.isfinite(down)
        down = np.where(known, down, 0.0)
        left = np.stack([start, start - down - 2.0 * ULP * (start + down)])
        return np.where(known, left, right), right
