"""Trade-off functions as objects that one computes with."""

from __future__ import annotations

from hockeystick.tradeoffs import plot  # noqa: F401 - as a name of this room
from hockeystick.tradeoffs.base import Ends, TradeOff
from hockeystick.tradeoffs.functions.by_profile import ProfileTradeOff
from hockeystick.tradeoffs.functions.closed_forms import GaussianTradeOff, LaplaceTradeOff
from hockeystick.tradeoffs.functions.piecewise import (
    IDENTITY,
    ApproxTradeOff,
    IdentityTradeOff,
    PiecewiseLinearTradeOff,
    discrete_tradeoff,
)
from hockeystick.tradeoffs.functions.renyi import RenyiTradeOff
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
from hockeystick.tradeoffs.operations.group import GroupTradeOff
from hockeystick.tradeoffs.operations.mixture import mixture
from hockeystick.tradeoffs.profiles.profile import (
    GaussianProfile,
    MaximumProfile,
    PerfectPrivacy,
    Profile,
    ProfileValues,
    SampledProfile,
    SwappedSampledProfile,
)
from hockeystick.tradeoffs.profiles.table import IntervalProfile, TableProfile, tradeoff_of_deltas

G = GaussianTradeOff

__all__ = [
    "IDENTITY",
    "ApproxTradeOff",
    "Ends",
    "G",
    "GaussianProfile",
    "GaussianTradeOff",
    "GroupTradeOff",
    "IdentityTradeOff",
    "IntervalProfile",
    "LaplaceTradeOff",
    "MaximumProfile",
    "PerfectPrivacy",
    "PiecewiseLinearTradeOff",
    "Profile",
    "ProfileTradeOff",
    "ProfileValues",
    "RenyiTradeOff",
    "SampledGaussianTradeOff",
    "SampledProfile",
    "SwappedSampledProfile",
    "TableProfile",
    "TradeOff",
    "discrete_tradeoff",
    "mixture",
    "tradeoff_of_deltas",
]
