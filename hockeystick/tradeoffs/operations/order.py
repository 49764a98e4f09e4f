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
    Cells,
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
    """Return ``TradeOff.subsample``: in closed form of a Gaussian, by the profiles of any other."""
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

    True is proven for all rates from 1e-300 on (deltas below 1e-300 count as equal), round-off
    included; False is proven by an epsilon where delta_f exceeds delta_g, or by a rate where f is
    below g. None is neither: the curves touch, or are closer than their ends are known.

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
    # The vertices of piecewise linear functions.
    polygons = [one for one in (f, g) if isinstance(one, PiecewiseLinearTradeOff | ApproxTradeOff)]
    rates = np.array(sorted({rate for one in polygons for rate in one.corners.alphas}))
    if rates.size and (f.bounds(rates)[1] < g.bounds(rates)[0]).any():
        return False
    pairs = [(f.forward, g.forward)]
    if not (f.is_symmetric and g.is_symmetric):
        pairs.append((f.backward, g.backward))
    verdicts = {_below(low, high) for low, high in pairs}
    return False if False in verdicts else None if None in verdicts else True


def _below(low: Profile, high: Profile) -> bool | None:
    """Return whether the first profile is at most the second for all epsilon, None where open."""
    if low == high:
        return True
    start = np.r_[0.0, np.geomspace(1e-5, _LARGEST_EPSILON, _START)]
    first, second = Cells.of(low, start), Cells.of(high, start)
    for _ in range(_ROUNDS):
        if (first.low > np.maximum(second.high, _NEGLIGIBLE)).any():
            return False
        failing = ~_settled(first.high, second)
        if not failing.any():
            return True
        if first.epsilon.size + 3 * int(failing.sum()) > _MOST:
            return None
        at, width = first.epsilon[:-1][failing], np.diff(first.epsilon)[failing]
        more = (at + np.array([[0.25], [0.5], [0.75]]) * width).ravel()
        first, second = first.with_more(more), second.with_more(more)
    return None


def _settled(below: Array, above: Cells) -> Flags:
    """Return in which cells what is below is proven to be.

    Two lines bound the profile above from below. A cell is settled if the one from the left is
    above the chord up to some x, and the one from the right from there.
    """
    left, right = above.lines_below()
    chord = np.stack([below[:-1], below[1:]])
    first, last = left - chord, right - chord
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(first[1] < 0.0, first[0] / (first[0] - first[1]), 1.0)
        start = np.where(last[0] < 0.0, last[0] / (last[0] - last[1]), 0.0)
    both = (first[0] >= 0.0) & (last[1] >= 0.0)
    met = both & (start * (1.0 + 16.0 * ULP) <= reach * (1.0 - 16.0 * ULP))
    alone = (first >= 0.0).all(axis=0) | (last >= 0.0).all(axis=0)
    return np.asarray(met | alone | (chord[0] <= _NEGLIGIBLE))
