"""Old names of rooms, of modules and of names: they work for one release, with a warning."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final
from warnings import warn

from hockeystick._synonyms import SYNONYMS, no_attribute

ROOMS: Final = {
    "claims": "literature",
    "losses": "privacy_loss",
    "randomizers": "release",
}

MODULES: Final = {
    f"{old}.{name}": f"literature.published.{name}"
    for old in ("accountants", "accountants.published")
    for name in ("federated_limit", "of_their_time", "shuffled_reports", "shuffling")
}

NAMES: Final = {
    name: room
    for room, names in {
        "federated": (
            "FedAlphaCDP FedCDP FedSDP FederatedClustering LocalTraining PriFedSync RevealedRound"
        ),
        "mechanisms": (
            "AboveThreshold BatchClipped Encoder GOPA GaussianMixture GaussianSequence Graph "
            "JointGaussian MatrixFactorization MultivariateLaplace NoisyIterations "
            "PermuteAndFlip Plan PrivateCovariance RAPPOR RandomAllocation RandomStopping "
            "ReportNoisyMax RevealedSample ShuffledReports SinhNormal Skellam SparseVector "
            "TokenWalk TreeAggregation TruncatedPoissonSubsampled UnaryEncoding "
            "WithReplacementSubsampled tuning"
        ),
        "notions": ("MetricDP Notion Origin metric_composition parallel"),
        "tradeoffs": (
            "ApproxTradeOff G GaussianTradeOff IDENTITY LaplaceTradeOff "
            "PiecewiseLinearTradeOff SampledGaussianTradeOff TradeOff discrete_tradeoff "
            "mixture tradeoff_of_deltas"
        ),
        "calibration": (
            "Advantage AskDelta AskEpsilon BayesError BudgetSplit Filter FrontierPoint "
            "JointNoise Odometer Reconstruction Solve SplitBy TruePositiveRate "
            "classical_gaussian_noise clipping_noise frontier gaussian_noise grid_search "
            "joint_noise max_error_probability max_error_quantile max_error_union_bound "
            "share_budget split_budget"
        ),
        "accountants": ("Row SamplingRow compare_samplings"),
        "errors": (
            "BudgetExhausted IncompatibleError InfeasibleError ParameterError PlanFileError "
            "UnsupportedError"
        ),
    }.items()
    for name in names.split()
}


class _Moved(ModuleType):
    """The old name of a room or a module, which loads it when something is taken from it."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(old, f"``{new}`` under its old name.")
        self._new = new

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        warn(f"{self.__name__} is now {self._new}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(self._new), name)


def install(package: ModuleType) -> None:
    """Make the old names importable from a package."""
    for old, new in (ROOMS | MODULES).items():
        moved = _Moved(f"{package.__name__}.{old}", f"{package.__name__}.{new}")
        sys.modules[moved.__name__] = moved
        if old in ROOMS:
            setattr(package, old, moved)


def moved_name(package: str, name: str) -> object:
    """Return what was at the top of a package under a name, with a warning that says where it is.

    Raises:
        AttributeError: If nothing was.
    """
    room = NAMES.get(name)
    if room is None:
        raise no_attribute(package, name, public_names(package))
    warn(f"{package}.{name} is now {package}.{room}.{name}", DeprecationWarning, stacklevel=3)
    return getattr(getattr(sys.modules[package], room), name)


def public_names(package: str) -> dict[str, str]:
    """Return what people may look for at the top of a package, and where each of it is."""
    elsewhere = dict.fromkeys(SYNONYMS.values(), "mechanisms") | NAMES
    there = {name: f"{package}.{room}" for name, room in elsewhere.items()}
    return there | dict.fromkeys(sys.modules[package].__all__, package)
