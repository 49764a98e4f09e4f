"""Frozen descriptions of what touches the data; how they are accounted is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.mechanisms.base import Mechanism, Plan
from hockeystick.mechanisms.composition import Composed, Repeated
from hockeystick.mechanisms.decentralised.gopa import GOPA
from hockeystick.mechanisms.decentralised.graphs import Graph
from hockeystick.mechanisms.decentralised.iterated import NoisyIterations
from hockeystick.mechanisms.decentralised.token_walk import TokenWalk
from hockeystick.mechanisms.federated.client_level import FedSDP
from hockeystick.mechanisms.federated.clients import LocalTraining
from hockeystick.mechanisms.federated.clustering import FederatedClustering
from hockeystick.mechanisms.federated.instance_level import FedAlphaCDP, FedCDP
from hockeystick.mechanisms.federated.prifedsync import PriFedSync
from hockeystick.mechanisms.federated.revealed_round import RevealedRound
from hockeystick.mechanisms.federated.units import ClientSampling, RecordSampling, Sensitivity, Unit
from hockeystick.mechanisms.local.randomized_response import RandomizedResponse
from hockeystick.mechanisms.local.shuffled_reports import ShuffledReports
from hockeystick.mechanisms.local.unary_encoding import RAPPOR, Encoding, UnaryEncoding
from hockeystick.mechanisms.noise.discrete_gaussian import DiscreteGaussian
from hockeystick.mechanisms.noise.discrete_laplace import DiscreteLaplace
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.noise.gaussian_mixture import GaussianMixture
from hockeystick.mechanisms.noise.joint_gaussian import JointGaussian
from hockeystick.mechanisms.noise.laplace import Laplace
from hockeystick.mechanisms.noise.multivariate_laplace import MultivariateLaplace
from hockeystick.mechanisms.noise.private_covariance import PrivateCovariance
from hockeystick.mechanisms.noise.sinh_normal import SinhNormal
from hockeystick.mechanisms.noise.skellam import Skellam
from hockeystick.mechanisms.parallel import Parallel
from hockeystick.mechanisms.sampling.fixed_size import FixedSizeSubsampled
from hockeystick.mechanisms.sampling.gaussian_sequence import GaussianSequence
from hockeystick.mechanisms.sampling.poisson import PoissonSubsampled
from hockeystick.mechanisms.sampling.random_allocation import RandomAllocation
from hockeystick.mechanisms.sampling.revealed_sample import RevealedSample
from hockeystick.mechanisms.sampling.shuffled import Shuffled
from hockeystick.mechanisms.sampling.truncated_poisson import TruncatedPoissonSubsampled
from hockeystick.mechanisms.sampling.with_replacement import WithReplacementSubsampled
from hockeystick.mechanisms.selection import tuning
from hockeystick.mechanisms.selection.exponential import Exponential, MaxNoise, ReportNoisyMax
from hockeystick.mechanisms.selection.permute_and_flip import PermuteAndFlip
from hockeystick.mechanisms.selection.sparse_vector import (
    AboveThreshold,
    ComparisonNoise,
    SparseVector,
)
from hockeystick.mechanisms.selection.tuning import RandomStopping
from hockeystick.mechanisms.streams.matrix_factorization import Encoder, MatrixFactorization
from hockeystick.mechanisms.streams.tree_aggregation import TreeAggregation
from hockeystick.mechanisms.structure import Algebra, Node, assumptions_of, evaluate, runs_of
from hockeystick.mechanisms.training import schedules
from hockeystick.mechanisms.training.batch_clipped import BatchClipped
from hockeystick.mechanisms.training.clipping import Clipping
from hockeystick.mechanisms.training.dpsgd import DPSGD
from hockeystick.mechanisms.training.samplings import Sampling

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
