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
    RAPPOR,
    AboveThreshold,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Encoder,
    Exponential,
    Gaussian,
    GaussianMixture,
    Laplace,
    MatrixFactorization,
    Mechanism,
    PermuteAndFlip,
    Plan,
    PoissonSubsampled,
    RandomizedResponse,
    Repeated,
    ReportNoisyMax,
    SinhNormal,
    Skellam,
    SparseVector,
    TreeAggregation,
    UnaryEncoding,
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
    "RAPPOR",
    "TCDP",
    "ZCDP",
    "AboveThreshold",
    "Adjacency",
    "ApproxDP",
    "ApproxTradeOff",
    "Approximate",
    "Certified",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Encoder",
    "Exponential",
    "G",
    "Gaussian",
    "GaussianMixture",
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
    "RandomizedResponse",
    "RenyiDP",
    "Repeated",
    "ReportNoisyMax",
    "Row",
    "SampledGaussianTradeOff",
    "SinhNormal",
    "Skellam",
    "SparseVector",
    "TradeOff",
    "TreeAggregation",
    "UnaryEncoding",
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
