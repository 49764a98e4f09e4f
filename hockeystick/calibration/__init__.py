"""Solving for one parameter, splitting and spending budgets, sweeping over plans."""

from hockeystick.calibration._descriptions import describe
from hockeystick.calibration.budgets.gaussian_error import (
    max_error_probability,
    max_error_quantile,
    max_error_union_bound,
)
from hockeystick.calibration.budgets.gaussian_noise import classical_gaussian_noise, gaussian_noise
from hockeystick.calibration.budgets.joint import JointNoise, clipping_noise, joint_noise
from hockeystick.calibration.budgets.split import (
    BudgetSplit,
    SplitBy,
    grid_search,
    share_budget,
    split_budget,
)
from hockeystick.calibration.filters.filter import Filter
from hockeystick.calibration.filters.odometer import Odometer
from hockeystick.calibration.ledger.accountant import Accountant
from hockeystick.calibration.solve.calibrate import Calibrated, Status, calibrate
from hockeystick.calibration.solve.targets import (
    Advantage,
    BayesError,
    Reconstruction,
    TruePositiveRate,
)
from hockeystick.calibration.sweeps.frontier import FrontierPoint, frontier
from hockeystick.calibration.sweeps.questions import AskDelta, AskEpsilon, Solve
from hockeystick.calibration.sweeps.sweep import sweep

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
