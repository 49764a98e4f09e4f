"""Frozen descriptions of what touches the data; how they are accounted is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.mechanisms import tuning
from hockeystick.mechanisms.base import Mechanism, Plan
from hockeystick.mechanisms.composition import Composed, Repeated
from hockeystick.mechanisms.discrete_gaussian import DiscreteGaussian
from hockeystick.mechanisms.discrete_laplace import DiscreteLaplace
from hockeystick.mechanisms.dpsgd import DPSGD, Clipping, Sampling, schedules
from hockeystick.mechanisms.exponential import Exponential, MaxNoise, ReportNoisyMax
from hockeystick.mechanisms.fixed_size import FixedSizeSubsampled
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.mechanisms.gaussian_mixture import GaussianMixture
from hockeystick.mechanisms.gaussian_sequence import GaussianSequence
from hockeystick.mechanisms.laplace import Laplace
from hockeystick.mechanisms.matrix_factorization import Encoder, MatrixFactorization
from hockeystick.mechanisms.permute_and_flip import PermuteAndFlip
from hockeystick.mechanisms.poisson import PoissonSubsampled
from hockeystick.mechanisms.random_allocation import RandomAllocation
from hockeystick.mechanisms.randomized_response import RandomizedResponse
from hockeystick.mechanisms.revealed_sample import RevealedSample
from hockeystick.mechanisms.shuffled import Shuffled
from hockeystick.mechanisms.sinh_normal import SinhNormal
from hockeystick.mechanisms.skellam import Skellam
from hockeystick.mechanisms.sparse_vector import AboveThreshold, ComparisonNoise, SparseVector
from hockeystick.mechanisms.tree_aggregation import TreeAggregation
from hockeystick.mechanisms.truncated_poisson import TruncatedPoissonSubsampled
from hockeystick.mechanisms.tuning import RandomStopping
from hockeystick.mechanisms.unary_encoding import RAPPOR, Encoding, UnaryEncoding
from hockeystick.mechanisms.with_replacement import WithReplacementSubsampled

__all__ = [
    "DPSGD",
    "MECHANISMS",
    "RAPPOR",
    "AboveThreshold",
    "Clipping",
    "ComparisonNoise",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Encoder",
    "Encoding",
    "Exponential",
    "FixedSizeSubsampled",
    "Gaussian",
    "GaussianMixture",
    "GaussianSequence",
    "Laplace",
    "MatrixFactorization",
    "MaxNoise",
    "Mechanism",
    "PermuteAndFlip",
    "Plan",
    "PoissonSubsampled",
    "RandomAllocation",
    "RandomStopping",
    "RandomizedResponse",
    "Repeated",
    "ReportNoisyMax",
    "RevealedSample",
    "Sampling",
    "Shuffled",
    "SinhNormal",
    "Skellam",
    "SparseVector",
    "TreeAggregation",
    "TruncatedPoissonSubsampled",
    "UnaryEncoding",
    "WithReplacementSubsampled",
    "schedules",
    "tuning",
]

MECHANISMS: Final[Mapping[str, type[Mechanism]]] = MappingProxyType(
    {
        cls.__name__: cls
        for cls in (
            AboveThreshold,
            Composed,
            DPSGD,
            DiscreteGaussian,
            DiscreteLaplace,
            Exponential,
            FixedSizeSubsampled,
            Gaussian,
            GaussianMixture,
            GaussianSequence,
            Laplace,
            MatrixFactorization,
            PermuteAndFlip,
            PoissonSubsampled,
            RAPPOR,
            RandomAllocation,
            RandomStopping,
            RandomizedResponse,
            Repeated,
            ReportNoisyMax,
            RevealedSample,
            Shuffled,
            SinhNormal,
            Skellam,
            SparseVector,
            TreeAggregation,
            TruncatedPoissonSubsampled,
            UnaryEncoding,
            WithReplacementSubsampled,
        )
    }
)
