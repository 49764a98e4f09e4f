"""Other names of rooms, of modules and of names: old ones for one release, with a warning."""

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

# Modules that the package has under a shorter name, which can be imported by it as well.
SHORTER: Final = {
    "federated": "mechanisms.federated",
    "schedules": "mechanisms.training.schedules",
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


class _Elsewhere(ModuleType):
    """Another name of a room or a module, which loads it when something is taken from it."""

    def __init__(self, name: str, new: str, *, is_old: bool) -> None:
        super().__init__(name, f"``{new}`` under {'its old' if is_old else 'a shorter'} name.")
        self._new = new
        self._is_old = is_old

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if self._is_old:
            warn(f"{self.__name__} is now {self._new}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(self._new), name)


def install(package: ModuleType) -> None:
    """Make the old names importable from a package, and the shorter ones that it has."""
    for other, new in (ROOMS | MODULES | SHORTER).items():
        name = f"{package.__name__}.{other}"
        known = _Elsewhere(name, f"{package.__name__}.{new}", is_old=other not in SHORTER)
        sys.modules[name] = known
        if other in ROOMS:
            setattr(package, other, known)


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
