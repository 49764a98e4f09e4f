"""Differential-privacy accounting whose answers are proven intervals.

>>> import hockeystick as hs
>>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
>>> float(hs.epsilon(plan, delta=1e-5)) < 2.39
True
"""

from hockeystick.accountants import Row, compare, delta, epsilon, tradeoff
from hockeystick.adjacency import Adjacency
from hockeystick.conversions import convert
from hockeystick.errors import (
    HockeystickError,
    IncompatibleError,
    ParameterError,
    PlanFileError,
    UnsupportedError,
)
from hockeystick.mechanisms import (
    DPSGD,
    AboveThreshold,
    Composed,
    Encoder,
    Exponential,
    Gaussian,
    Laplace,
    MatrixFactorization,
    Mechanism,
    PermuteAndFlip,
    Plan,
    PoissonSubsampled,
    Repeated,
    ReportNoisyMax,
    SparseVector,
    TreeAggregation,
)
from hockeystick.notions import (
    FDP,
    GDP,
    TCDP,
    ZCDP,
    ApproxDP,
    Notion,
    Origin,
    PureDP,
    RenyiDP,
    parallel,
)
from hockeystick.results import Approximate, Certified
from hockeystick.tradeoffs import (
    IDENTITY,
    ApproxTradeOff,
    GaussianTradeOff,
    LaplaceTradeOff,
    PiecewiseLinearTradeOff,
    SampledGaussianTradeOff,
    TradeOff,
    discrete_tradeoff,
    mixture,
    tradeoff_of_deltas,
)

G = GaussianTradeOff

__version__ = "0.1.0"

__all__ = [
    "DPSGD",
    "FDP",
    "GDP",
    "IDENTITY",
    "TCDP",
    "ZCDP",
    "AboveThreshold",
    "Adjacency",
    "ApproxDP",
    "ApproxTradeOff",
    "Approximate",
    "Certified",
    "Composed",
    "Encoder",
    "Exponential",
    "G",
    "Gaussian",
    "GaussianTradeOff",
    "HockeystickError",
    "IncompatibleError",
    "Laplace",
    "LaplaceTradeOff",
    "MatrixFactorization",
    "Mechanism",
    "Notion",
    "Origin",
    "ParameterError",
    "PermuteAndFlip",
    "PiecewiseLinearTradeOff",
    "Plan",
    "PlanFileError",
    "PoissonSubsampled",
    "PureDP",
    "RenyiDP",
    "Repeated",
    "ReportNoisyMax",
    "Row",
    "SampledGaussianTradeOff",
    "SparseVector",
    "TradeOff",
    "TreeAggregation",
    "UnsupportedError",
    "compare",
    "convert",
    "delta",
    "discrete_tradeoff",
    "epsilon",
    "mixture",
    "parallel",
    "tradeoff",
    "tradeoff_of_deltas",
]
