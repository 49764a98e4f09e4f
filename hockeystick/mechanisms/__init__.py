"""Frozen descriptions of what touches the data; how they are accounted is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.mechanisms.base import Mechanism, Plan
from hockeystick.mechanisms.composition import Composed, Repeated
from hockeystick.mechanisms.dpsgd import DPSGD, Sampling
from hockeystick.mechanisms.exponential import Exponential, MaxNoise, ReportNoisyMax
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.mechanisms.laplace import Laplace
from hockeystick.mechanisms.matrix_factorization import Encoder, MatrixFactorization
from hockeystick.mechanisms.permute_and_flip import PermuteAndFlip
from hockeystick.mechanisms.poisson import PoissonSubsampled
from hockeystick.mechanisms.sparse_vector import AboveThreshold, ComparisonNoise, SparseVector
from hockeystick.mechanisms.tree_aggregation import TreeAggregation

__all__ = [
    "DPSGD",
    "MECHANISMS",
    "AboveThreshold",
    "ComparisonNoise",
    "Composed",
    "Encoder",
    "Exponential",
    "Gaussian",
    "Laplace",
    "MatrixFactorization",
    "MaxNoise",
    "Mechanism",
    "PermuteAndFlip",
    "Plan",
    "PoissonSubsampled",
    "Repeated",
    "ReportNoisyMax",
    "Sampling",
    "SparseVector",
    "TreeAggregation",
]

MECHANISMS: Final[Mapping[str, type[Mechanism]]] = MappingProxyType(
    {
        cls.__name__: cls
        for cls in (
            AboveThreshold,
            Composed,
            DPSGD,
            Exponential,
            Gaussian,
            Laplace,
            MatrixFactorization,
            PermuteAndFlip,
            PoissonSubsampled,
            Repeated,
            ReportNoisyMax,
            SparseVector,
            TreeAggregation,
        )
    }
)
