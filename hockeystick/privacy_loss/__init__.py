"""Privacy losses: for each mechanism the pair of losses, removing and adding, of ONE run.

``dominating_pair`` is the one place where a mechanism turns into something that can be accounted; a
new mechanism registers one function there. Every accountant is a way of reading these losses.
"""

from __future__ import annotations

from hockeystick.privacy_loss import (  # noqa: F401  # for what they register
    _lines_by_orders,
    batch_clipped,
    factorization,
    gopa,
    iterated,
    joint_gaussian,
    metric,
    parallel,
    revealed_round,
    revealed_sample,
    selection,
    subsamples,
    truncated_poisson,
    tuning,
)
from hockeystick.privacy_loss.atomic import AtomicLoss
from hockeystick.privacy_loss.base import (
    Atoms,
    Ball,
    CellLoss,
    CGFEstimate,
    Decay,
    LineLoss,
    LineRule,
    LineValues,
    Masses,
    PrivacyLoss,
    ProfiledLoss,
    Readings,
    TailRule,
    TailSplit,
    TailValues,
)
from hockeystick.privacy_loss.bounded_range import BoundedRangeLoss
from hockeystick.privacy_loss.closed_above import closed_above
from hockeystick.privacy_loss.composition import (
    Composition,
    Terms,
    attained,
    compose,
    expanded,
    largest_loss,
    least_largest_loss,
    merged,
)
from hockeystick.privacy_loss.discrete_gaussian import DiscreteGaussianLoss
from hockeystick.privacy_loss.discrete_laplace import DiscreteLaplaceLoss
from hockeystick.privacy_loss.dominated import DominatedLoss
from hockeystick.privacy_loss.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.privacy_loss.folded import FoldedGaussianLoss, FoldedLaplaceLoss
from hockeystick.privacy_loss.gaussian import GaussianLoss
from hockeystick.privacy_loss.gaussian_mixture import GaussianMixtureLoss
from hockeystick.privacy_loss.gaussian_sequence import GaussianSequenceLoss
from hockeystick.privacy_loss.laplace import LaplaceLoss
from hockeystick.privacy_loss.leaning_coins import CoinsLoss
from hockeystick.privacy_loss.leaves import dominating_pair_of_tradeoff
from hockeystick.privacy_loss.multivariate_laplace import MultivariateLaplaceLoss
from hockeystick.privacy_loss.outcomes import OutcomesLoss, PartlyShownLoss
from hockeystick.privacy_loss.random_allocation import AllocationLoss
from hockeystick.privacy_loss.randomized_response import RandomizedResponseLoss
from hockeystick.privacy_loss.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.renyi_curve import ConcentratedLoss, CurveLoss, RenyiCurveLoss
from hockeystick.privacy_loss.revealed_mixture import (
    RevealedMixtureLoss,
    RevealedMixtureProfiledLoss,
    revealed_mixture,
)
from hockeystick.privacy_loss.revealing import ConstantLoss, RevealingLoss
from hockeystick.privacy_loss.sampled import SampledLoss, SampledProfiledLoss
from hockeystick.privacy_loss.sampled_gaussian import SampledGaussianLoss
from hockeystick.privacy_loss.shuffled import LargestBatchLoss
from hockeystick.privacy_loss.shuffled_reports import CountLoss
from hockeystick.privacy_loss.sinh_normal import SinhNormalLoss
from hockeystick.privacy_loss.skellam import SkellamLoss
from hockeystick.privacy_loss.sparse_vector import FirstOfManyLoss, UnknownLoss
from hockeystick.privacy_loss.trade_off import ProfileLoss
from hockeystick.privacy_loss.two_point import TwoPointLoss
from hockeystick.privacy_loss.unary_encoding import RAPPORLoss, UnaryEncodingLoss

__all__ = [
    "AllocationLoss",
    "AtomicLoss",
    "Atoms",
    "Ball",
    "BoundedRangeLoss",
    "CGFEstimate",
    "CellLoss",
    "CoinsLoss",
    "Composition",
    "ConcentratedLoss",
    "ConstantLoss",
    "CountLoss",
    "CurveLoss",
    "Decay",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "DominatedLoss",
    "DominatingPair",
    "FirstOfManyLoss",
    "FixedSizeGaussianLoss",
    "FoldedGaussianLoss",
    "FoldedLaplaceLoss",
    "GaussianLoss",
    "GaussianMixtureLoss",
    "GaussianSequenceLoss",
    "LaplaceLoss",
    "LargestBatchLoss",
    "LineLoss",
    "LineRule",
    "LineValues",
    "Masses",
    "MultivariateLaplaceLoss",
    "NoAnalysisError",
    "OutcomesLoss",
    "PartlyShownLoss",
    "PrivacyLoss",
    "ProfileLoss",
    "ProfiledLoss",
    "RAPPORLoss",
    "RandomizedResponseLoss",
    "Readings",
    "RenyiCurveLoss",
    "RevealedMixtureLoss",
    "RevealedMixtureProfiledLoss",
    "RevealingLoss",
    "SampledGaussianLoss",
    "SampledLoss",
    "SampledProfiledLoss",
    "SinhNormalLoss",
    "SkellamLoss",
    "TailRule",
    "TailSplit",
    "TailValues",
    "Terms",
    "TwoPointLoss",
    "UnaryEncodingLoss",
    "UnknownLoss",
    "attained",
    "closed_above",
    "compose",
    "dominating_pair",
    "dominating_pair_of_tradeoff",
    "expanded",
    "largest_loss",
    "least_largest_loss",
    "merged",
    "revealed_mixture",
]
