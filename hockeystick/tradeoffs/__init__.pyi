# The public names and where they are: type checkers read it, and they are loaded by it.
from . import plot as plot
from .base import Ends as Ends, TradeOff as TradeOff
from .functions.by_profile import ProfileTradeOff as ProfileTradeOff
from .functions.closed_forms import (
    G as G,
    GaussianTradeOff as GaussianTradeOff,
    LaplaceTradeOff as LaplaceTradeOff,
)
from .functions.piecewise import (
    IDENTITY as IDENTITY,
    ApproxTradeOff as ApproxTradeOff,
    IdentityTradeOff as IdentityTradeOff,
    PiecewiseLinearTradeOff as PiecewiseLinearTradeOff,
    discrete_tradeoff as discrete_tradeoff,
)
from .functions.renyi import RenyiTradeOff as RenyiTradeOff
from .functions.sampled_gaussian import SampledGaussianTradeOff as SampledGaussianTradeOff
from .operations.group import GroupTradeOff as GroupTradeOff
from .operations.mixture import mixture as mixture
from .profiles.profile import (
    GaussianProfile as GaussianProfile,
    MaximumProfile as MaximumProfile,
    PerfectPrivacy as PerfectPrivacy,
    Profile as Profile,
    ProfileValues as ProfileValues,
    SampledProfile as SampledProfile,
    SwappedSampledProfile as SwappedSampledProfile,
)
from .profiles.table import (
    IntervalProfile as IntervalProfile,
    TableProfile as TableProfile,
    tradeoff_of_deltas as tradeoff_of_deltas,
)
