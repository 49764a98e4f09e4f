"""Privacy losses: for each mechanism the pair of losses, removing and adding, of ONE run.

A mechanism is accounted by the function that it registers with ``dominating_pair``, in the file of
its name: all modules are imported here. Every accountant composes these losses in its way.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    Atoms,
    CGFEstimate,
    ContourRule,
    ContourValues,
    Decay,
    DominatingPair,
    Masses,
    NearLoss,
    NoAnalysisError,
    PrivacyLoss,
    ProfiledLoss,
    TailRule,
    TailSplit,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import (
    Composition,
    NoiselessLoss,
    Terms,
    attained,
    compose,
    expanded,
    largest_loss,
    least_largest_loss,
    merged,
)
from hockeystick.privacy_loss.core.mixtures import ObservedMixtureLoss, RandomizedResponsePairLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.guarantees import BoundedRangeLoss, ConcentratedLoss, RenyiCurveLoss
from hockeystick.privacy_loss.local import CountLoss, RandomizedResponseLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.noise.gaussian_mixture import GaussianMixtureLoss
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
from hockeystick.privacy_loss.selection.sparse_vector import UnknownLoss
from hockeystick.privacy_loss.selection.tuning import TunedLoss
from hockeystick.privacy_loss.shuffling import StrongerClonesLoss
from hockeystick.privacy_loss.trade_off import ProfileLoss

for _found in walk_packages(__path__, f"{__name__}."):
    import_module(_found.name)
