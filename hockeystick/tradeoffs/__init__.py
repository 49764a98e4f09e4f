"""Trade-off functions as objects that one computes with."""

from __future__ import annotations

from hockeystick.tradeoffs.base import Ends, TradeOff, accounts_groups, accounts_tensor
from hockeystick.tradeoffs.functions.by_profile import ProfileTradeOff
from hockeystick.tradeoffs.functions.gaussian import GaussianTradeOff
from hockeystick.tradeoffs.functions.laplace import LaplaceTradeOff
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
    NoLoss,
    Profile,
    ProfileValues,
    SampledProfile,
    SwappedSampledProfile,
    WorseProfile,
)
from hockeystick.tradeoffs.profiles.table import TableProfile, WiderProfile, tradeoff_of_deltas

__all__ = [
    "IDENTITY",
    "ApproxTradeOff",
    "Ends",
    "GaussianProfile",
    "GaussianTradeOff",
    "GroupTradeOff",
    "IdentityTradeOff",
    "LaplaceTradeOff",
    "NoLoss",
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
    "WiderProfile",
    "WorseProfile",
    "accounts_groups",
    "accounts_tensor",
    "discrete_tradeoff",
    "mixture",
    "tradeoff_of_deltas",
]
