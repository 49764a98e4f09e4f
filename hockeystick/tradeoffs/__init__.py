"""Trade-off functions as objects that one computes with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from warnings import warn

from hockeystick.tradeoffs import plot  # noqa: F401 - as a name of this room
from hockeystick.tradeoffs.base import Ends, TradeOff
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

# Names of the release before: they work, and say what they are called now.
_FORMER: Final = {
    "NoLoss": "PerfectPrivacy",
    "WiderProfile": "IntervalProfile",
    "WorseProfile": "MaximumProfile",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a class by its former name."""
        if name not in _FORMER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warn(f"{__name__}.{name} is now {_FORMER[name]}", DeprecationWarning, stacklevel=2)
        return globals()[_FORMER[name]]
