"""Gaussians that dominate a profile: they bound its tail beyond the range of floats."""

from __future__ import annotations

import math
from functools import singledispatch

from hockeystick.tradeoffs.operations.mixture import MixtureProfile
from hockeystick.tradeoffs.profiles.one_order import FunctionProfile
from hockeystick.tradeoffs.profiles.profile import (
    ChainProfile,
    GaussianProfile,
    MaximumProfile,
    PerfectPrivacy,
    Profile,
    SampledProfile,
    SwappedSampledProfile,
)


@singledispatch
def dominating_mu(profile: Profile) -> float:
    """Return a mu with ``delta(eps) <= delta_G(eps; mu)`` for all eps; inf if none is known."""
    return math.inf


@dominating_mu.register
def _(profile: GaussianProfile) -> float:
    """Return its own mu."""
    return profile.mu


@dominating_mu.register
def _(profile: PerfectPrivacy) -> float:
    """Return 0."""
    return 0.0


@dominating_mu.register
def _(profile: SampledProfile | SwappedSampledProfile) -> float:
    """Return the inner one's: ``ln(1 + (e^eps - 1)/p) >= eps``; ``ln(p e^eps / w)``, as w <= p."""
    return dominating_mu(profile.inner)


@dominating_mu.register
def _(profile: MaximumProfile) -> float:
    """Return the larger: the profiles of Gaussians grow with mu."""
    return max(dominating_mu(profile.first), dominating_mu(profile.second))


@dominating_mu.register
def _(profile: MixtureProfile) -> float:
    """Return the largest: a mean is at most that."""
    return max(dominating_mu(one) for one in profile.profiles)


@dominating_mu.register
def _(profile: FunctionProfile) -> float:
    """Return the one that it was made with."""
    return profile.gaussian


@dominating_mu.register
def _(profile: ChainProfile) -> float:
    """Return the group's: the smaller of two bounds is at most either."""
    return dominating_mu(profile.group)
