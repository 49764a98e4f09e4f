"""Privacy losses: for each mechanism the pair of losses, removing and adding, of ONE run.

``losses_of`` is the one place where a mechanism turns into something that can be accounted; a new
mechanism registers one function there. Every accountant is a way of reading these losses.
"""

from __future__ import annotations

from hockeystick.losses import (  # noqa: F401  # for what they register
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
from hockeystick.losses.atomic import AtomicLoss
from hockeystick.losses.base import (
    Atoms,
    Bounded,
    CellLoss,
    Cumulants,
    Decay,
    JumpRule,
    Jumps,
    JumpValues,
    LineLoss,
    LineRule,
    LineValues,
    Loss,
    Masses,
    ProfiledLoss,
)
from hockeystick.losses.bounded_range import BoundedRangeLoss
from hockeystick.losses.closed_above import closed_above
from hockeystick.losses.discrete_gaussian import DiscreteGaussianLoss
from hockeystick.losses.discrete_laplace import DiscreteLaplaceLoss
from hockeystick.losses.dominated import DominatedLoss
from hockeystick.losses.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.losses.folded import FoldedGaussianLoss, FoldedLaplaceLoss
from hockeystick.losses.gaussian import GaussianLoss
from hockeystick.losses.gaussian_mixture import GaussianMixtureLoss
from hockeystick.losses.gaussian_sequence import GaussianSequenceLoss
from hockeystick.losses.laplace import LaplaceLoss
from hockeystick.losses.leaning_coins import CoinsLoss
from hockeystick.losses.leaves import losses_of_tradeoff
from hockeystick.losses.multivariate_laplace import MultivariateLaplaceLoss
from hockeystick.losses.outcomes import OutcomesLoss, PartlyShownLoss, Readings
from hockeystick.losses.random_allocation import AllocationLoss
from hockeystick.losses.randomized_response import RandomizedResponseLoss
from hockeystick.losses.registry import LossPair, NoAnalysisError, losses_of
from hockeystick.losses.renyi_curve import ConcentratedLoss, CurveLoss, RenyiCurveLoss
from hockeystick.losses.revealed_mixture import (
    RevealedMixtureLoss,
    RevealedMixtureProfiledLoss,
    revealed_mixture,
)
from hockeystick.losses.revealing import RevealingLoss
from hockeystick.losses.sampled import SampledLoss, SampledProfiledLoss
from hockeystick.losses.sampled_gaussian import SampledGaussianLoss
from hockeystick.losses.shuffled import LargestBatchLoss
from hockeystick.losses.shuffled_reports import CountLoss
from hockeystick.losses.sinh_normal import SinhNormalLoss
from hockeystick.losses.skellam import SkellamLoss
from hockeystick.losses.sparse_vector import FirstOfManyLoss, UnknownLoss
from hockeystick.losses.trade_off import ProfileLoss
from hockeystick.losses.two_point import TwoPointLoss
from hockeystick.losses.unary_encoding import RAPPORLoss, UnaryEncodingLoss

__all__ = [
    "AllocationLoss",
    "AtomicLoss",
    "Atoms",
    "Bounded",
    "BoundedRangeLoss",
    "CellLoss",
    "CoinsLoss",
    "ConcentratedLoss",
    "CountLoss",
    "Cumulants",
    "CurveLoss",
    "Decay",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "DominatedLoss",
    "FirstOfManyLoss",
    "FixedSizeGaussianLoss",
    "FoldedGaussianLoss",
    "FoldedLaplaceLoss",
    "GaussianLoss",
    "GaussianMixtureLoss",
    "GaussianSequenceLoss",
    "JumpRule",
    "JumpValues",
    "Jumps",
    "LaplaceLoss",
    "LargestBatchLoss",
    "LineLoss",
    "LineRule",
    "LineValues",
    "Loss",
    "LossPair",
    "Masses",
    "MultivariateLaplaceLoss",
    "NoAnalysisError",
    "OutcomesLoss",
    "PartlyShownLoss",
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
    "TwoPointLoss",
    "UnaryEncodingLoss",
    "UnknownLoss",
    "closed_above",
    "losses_of",
    "losses_of_tradeoff",
    "revealed_mixture",
]
