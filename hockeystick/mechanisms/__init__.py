"""Frozen descriptions of what touches the data; how they are accounted is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.mechanisms import tuning
from hockeystick.mechanisms.base import Mechanism, Plan
from hockeystick.mechanisms.batch_clipped import BatchClipped
from hockeystick.mechanisms.composition import Composed, Repeated
from hockeystick.mechanisms.decentralised import GOPA, Graph, NoisyIterations, TokenWalk
from hockeystick.mechanisms.discrete_gaussian import DiscreteGaussian
from hockeystick.mechanisms.discrete_laplace import DiscreteLaplace
from hockeystick.mechanisms.dpsgd import DPSGD, Clipping, Sampling, schedules
from hockeystick.mechanisms.exponential import Exponential, MaxNoise, ReportNoisyMax
from hockeystick.mechanisms.federated import (
    ClientSampling,
    FedAlphaCDP,
    FedCDP,
    FederatedClustering,
    FedSDP,
    LocalTraining,
    PriFedSync,
    RecordSampling,
    RevealedRound,
    Sensitivity,
    Unit,
)
from hockeystick.mechanisms.fixed_size import FixedSizeSubsampled
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.mechanisms.gaussian_mixture import GaussianMixture
from hockeystick.mechanisms.gaussian_sequence import GaussianSequence
from hockeystick.mechanisms.joint_gaussian import JointGaussian
from hockeystick.mechanisms.laplace import Laplace
from hockeystick.mechanisms.matrix_factorization import Encoder, MatrixFactorization
from hockeystick.mechanisms.multivariate_laplace import MultivariateLaplace
from hockeystick.mechanisms.parallel import Parallel
from hockeystick.mechanisms.permute_and_flip import PermuteAndFlip
from hockeystick.mechanisms.poisson import PoissonSubsampled
from hockeystick.mechanisms.private_covariance import PrivateCovariance
from hockeystick.mechanisms.random_allocation import RandomAllocation
from hockeystick.mechanisms.randomized_response import RandomizedResponse
from hockeystick.mechanisms.revealed_sample import RevealedSample
from hockeystick.mechanisms.shuffled import Shuffled
from hockeystick.mechanisms.shuffled_reports import ShuffledReports
from hockeystick.mechanisms.sinh_normal import SinhNormal
from hockeystick.mechanisms.skellam import Skellam
from hockeystick.mechanisms.sparse_vector import AboveThreshold, ComparisonNoise, SparseVector
from hockeystick.mechanisms.structure import Algebra, Node, assumptions_of, evaluate, runs_of
from hockeystick.mechanisms.tree_aggregation import TreeAggregation
from hockeystick.mechanisms.truncated_poisson import TruncatedPoissonSubsampled
from hockeystick.mechanisms.tuning import RandomStopping
from hockeystick.mechanisms.unary_encoding import RAPPOR, Encoding, UnaryEncoding
from hockeystick.mechanisms.with_replacement import WithReplacementSubsampled

__all__ = [
    "DPSGD",
    "GOPA",
    "MECHANISMS",
    "RAPPOR",
    "AboveThreshold",
    "Algebra",
    "BatchClipped",
    "ClientSampling",
    "Clipping",
    "ComparisonNoise",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Encoder",
    "Encoding",
    "Exponential",
    "FedAlphaCDP",
    "FedCDP",
    "FedSDP",
    "FederatedClustering",
    "FixedSizeSubsampled",
    "Gaussian",
    "GaussianMixture",
    "GaussianSequence",
    "Graph",
    "JointGaussian",
    "Laplace",
    "LocalTraining",
    "MatrixFactorization",
    "MaxNoise",
    "Mechanism",
    "MultivariateLaplace",
    "Node",
    "NoisyIterations",
    "Parallel",
    "PermuteAndFlip",
    "Plan",
    "PoissonSubsampled",
    "PriFedSync",
    "PrivateCovariance",
    "RandomAllocation",
    "RandomStopping",
    "RandomizedResponse",
    "RecordSampling",
    "Repeated",
    "ReportNoisyMax",
    "RevealedRound",
    "RevealedSample",
    "Sampling",
    "Sensitivity",
    "Shuffled",
    "ShuffledReports",
    "SinhNormal",
    "Skellam",
    "SparseVector",
    "TokenWalk",
    "TreeAggregation",
    "TruncatedPoissonSubsampled",
    "UnaryEncoding",
    "Unit",
    "WithReplacementSubsampled",
    "assumptions_of",
    "evaluate",
    "runs_of",
    "schedules",
    "tuning",
]

MECHANISMS: Final[Mapping[str, type[Mechanism]]] = MappingProxyType(
    {
        cls.__name__: cls
        for cls in (
            AboveThreshold,
            BatchClipped,
            Composed,
            DPSGD,
            DiscreteGaussian,
            DiscreteLaplace,
            Exponential,
            FedAlphaCDP,
            FedCDP,
            FedSDP,
            FederatedClustering,
            FixedSizeSubsampled,
            GOPA,
            Gaussian,
            GaussianMixture,
            GaussianSequence,
            JointGaussian,
            Laplace,
            LocalTraining,
            MatrixFactorization,
            MultivariateLaplace,
            Parallel,
            NoisyIterations,
            PermuteAndFlip,
            PoissonSubsampled,
            PriFedSync,
            PrivateCovariance,
            RAPPOR,
            RandomAllocation,
            RandomStopping,
            RandomizedResponse,
            Repeated,
            ReportNoisyMax,
            RevealedRound,
            RevealedSample,
            Shuffled,
            ShuffledReports,
            SinhNormal,
            Skellam,
            SparseVector,
            TokenWalk,
            TreeAggregation,
            TruncatedPoissonSubsampled,
            UnaryEncoding,
            WithReplacementSubsampled,
        )
    }
)
