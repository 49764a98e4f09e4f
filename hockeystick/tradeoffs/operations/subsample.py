"""The trade-off functions of both orders of neighbours, and of a random subset of fixed size."""

from __future__ import annotations

from hockeystick.tradeoffs.base import TradeOff
from hockeystick.tradeoffs.functions.by_profile import ProfileTradeOff
from hockeystick.tradeoffs.functions.gaussian import GaussianTradeOff
from hockeystick.tradeoffs.functions.piecewise import IDENTITY
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
from hockeystick.tradeoffs.profiles.profile import (
    MaximumProfile,
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
