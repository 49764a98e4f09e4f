"""Privacy losses: for each mechanism the pair of losses, removing and adding, of ONE run.

``losses_of`` is the one place where a mechanism turns into something that can be accounted; a new
mechanism registers one function there. Every accountant is a way of reading these losses.
"""

from __future__ import annotations

from hockeystick.losses.base import (
    Bounded,
    Cumulants,
    Decay,
    JumpRule,
    Jumps,
    JumpValues,
    LineLoss,
    LineRule,
    LineValues,
    Loss,
    ProfiledLoss,
)
from hockeystick.losses.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.losses.gaussian import GaussianLoss
from hockeystick.losses.leaves import LossPair, NoAnalysisError, losses_of
from hockeystick.losses.renyi_curve import ConcentratedLoss, CurveLoss, RenyiCurveLoss
from hockeystick.losses.revealing import RevealingLoss
from hockeystick.losses.sampled_gaussian import SampledGaussianLoss
from hockeystick.losses.trade_off import ProfileLoss
from hockeystick.losses.two_point import TwoPointLoss

__all__ = [
    "Bounded",
    "ConcentratedLoss",
    "Cumulants",
    "CurveLoss",
    "Decay",
    "FixedSizeGaussianLoss",
    "GaussianLoss",
    "JumpRule",
    "JumpValues",
    "Jumps",
    "LineLoss",
    "LineRule",
    "LineValues",
    "Loss",
    "LossPair",
    "NoAnalysisError",
    "ProfileLoss",
    "ProfiledLoss",
    "RenyiCurveLoss",
    "RevealingLoss",
    "SampledGaussianLoss",
    "TwoPointLoss",
    "losses_of",
]
