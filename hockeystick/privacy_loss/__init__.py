"""Privacy losses: for each mechanism the pair of losses, removing and adding, of ONE run.

``dominating_pair`` is the one place where a mechanism turns into something that can be accounted; a
new mechanism registers one function there, in the file of its name: all modules are imported here.
Every accountant composes these losses in its way.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from hockeystick.numerics import Ball, FloatAndDecimal
from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    Atoms,
    CGFEstimate,
    ClosedFormProfile,
    ContourRule,
    ContourValues,
    Decay,
    DominatingPair,
    FarMasses,
    Masses,
    NearLoss,
    NoAnalysisError,
    PrivacyLoss,
    ProfiledLoss,
    TailRule,
    TailSplit,
    TailValues,
    dominating_pair,
    dominating_pair_of_tradeoff,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import (
    Composition,
    ConstantLoss,
    NoiselessLoss,
    Terms,
    attained,
    compose,
    expanded,
    largest_loss,
    least_largest_loss,
    merged,
)
from hockeystick.privacy_loss.core.mixtures import (
    ObservedMixtureLoss,
    RandomizedResponsePairLoss,
    observed_mixture,
)
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss, PartlyInfiniteLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.guarantees import (
    BoundedRangeLoss,
    ConcentratedLoss,
    RenyiBoundLoss,
    RenyiCurveLoss,
)
from hockeystick.privacy_loss.local import (
    CountLoss,
    RandomizedResponseLoss,
    RAPPORLoss,
    UnaryEncodingLoss,
)
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.noise.gaussian_mixture import (
    GaussianMixtureLoss,
    OppositeMixturesLoss,
)
from hockeystick.privacy_loss.noise.integer_noise import (
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    SkellamLoss,
    WideDiscreteGaussianLoss,
)
from hockeystick.privacy_loss.noise.laplace import LaplaceLoss
from hockeystick.privacy_loss.noise.multivariate_laplace import MultivariateLaplaceLoss
from hockeystick.privacy_loss.noise.sinh_normal import SinhNormalLoss
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.privacy_loss.sampling.noise_levels import GaussianSequenceLoss
from hockeystick.privacy_loss.sampling.random_allocation import AllocationLoss
from hockeystick.privacy_loss.sampling.sampled import SampledLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss
from hockeystick.privacy_loss.sampling.shuffled import LargestBatchLoss
from hockeystick.privacy_loss.selection.above_threshold import AboveThresholdGaussianLoss
from hockeystick.privacy_loss.selection.sparse_vector import AboveThresholdRenyiLoss, UnknownLoss
from hockeystick.privacy_loss.selection.tuning import TunedLoss
from hockeystick.privacy_loss.shuffling import StrongerClonesLoss
from hockeystick.privacy_loss.trade_off import ProfileLoss

__all__ = [
    "AboveThresholdGaussianLoss",
    "AboveThresholdRenyiLoss",
    "AllocationLoss",
    "AnalyticLoss",
    "AtomicLoss",
    "Atoms",
    "Ball",
    "BoundedRangeLoss",
    "CGFEstimate",
    "CellLoss",
    "ClosedFormProfile",
    "Composition",
    "ConcentratedLoss",
    "ConstantLoss",
    "ContourRule",
    "ContourValues",
    "CountLoss",
    "Decay",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "DominatedLoss",
    "DominatingPair",
    "FarMasses",
    "FixedSizeGaussianLoss",
    "FloatAndDecimal",
    "GaussianLoss",
    "GaussianMixtureLoss",
    "GaussianSequenceLoss",
    "LaplaceLoss",
    "LargestBatchLoss",
    "Masses",
    "MultivariateLaplaceLoss",
    "NearLoss",
    "NoAnalysisError",
    "NoiselessLoss",
    "ObservedMixtureLoss",
    "OppositeMixturesLoss",
    "OutcomesLoss",
    "PartlyInfiniteLoss",
    "PrivacyLoss",
    "ProfileLoss",
    "ProfiledLoss",
    "RAPPORLoss",
    "RandomizedResponseLoss",
    "RandomizedResponsePairLoss",
    "RenyiBoundLoss",
    "RenyiCurveLoss",
    "SampledGaussianLoss",
    "SampledLoss",
    "SinhNormalLoss",
    "SkellamLoss",
    "StrongerClonesLoss",
    "TailRule",
    "TailSplit",
    "TailValues",
    "Terms",
    "TunedLoss",
    "UnaryEncodingLoss",
    "UnknownLoss",
    "WideDiscreteGaussianLoss",
    "attained",
    "compose",
    "dominating_pair",
    "dominating_pair_of_tradeoff",
    "expanded",
    "largest_loss",
    "least_largest_loss",
    "merged",
    "observed_mixture",
]

for _found in walk_packages(__path__, f"{__name__}."):
    import_module(_found.name)
