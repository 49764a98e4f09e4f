"""Solving for one parameter, splitting and spending budgets, sweeping over plans."""

from hockeystick.calibration._descriptions import describe
from hockeystick.calibration.askers import AskDelta, AskEpsilon, Solve
from hockeystick.calibration.budgets import (
    BudgetSplit,
    SplitBy,
    grid_search,
    share_budget,
    split_budget,
)
from hockeystick.calibration.calibrate import Calibrated, Status, calibrate
from hockeystick.calibration.filters import Filter
from hockeystick.calibration.frontier import FrontierPoint, frontier
from hockeystick.calibration.gaussian_error import (
    max_error_probability,
    max_error_quantile,
    max_error_union_bound,
)
from hockeystick.calibration.gaussian_noise import classical_gaussian_noise, gaussian_noise
from hockeystick.calibration.joint import JointNoise, clipping_noise, joint_noise
from hockeystick.calibration.ledger import Accountant
from hockeystick.calibration.odometer import Odometer
from hockeystick.calibration.sweep import sweep
from hockeystick.calibration.targets import (
    Advantage,
    BayesError,
    Reconstruction,
    TruePositiveRate,
)

__all__ = [
    "Accountant",
    "Advantage",
    "AskDelta",
    "AskEpsilon",
    "BayesError",
    "BudgetSplit",
    "Calibrated",
    "Filter",
    "FrontierPoint",
    "JointNoise",
    "Odometer",
    "Reconstruction",
    "Solve",
    "SplitBy",
    "Status",
    "TruePositiveRate",
    "calibrate",
    "classical_gaussian_noise",
    "clipping_noise",
    "describe",
    "frontier",
    "gaussian_noise",
    "grid_search",
    "joint_noise",
    "max_error_probability",
    "max_error_quantile",
    "max_error_union_bound",
    "share_budget",
    "split_budget",
    "sweep",
]
