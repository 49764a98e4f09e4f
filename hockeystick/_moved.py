"""Modules that can be imported under a shorter name, and where public names are."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from hockeystick._synonyms import SYNONYMS

SHORTER: Final = {
    "federated": "mechanisms.federated",
    "schedules": "mechanisms.training.schedules",
}

# Names of the rooms, by their room.
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
    """A module under a shorter name, which loads it when something is taken from it."""

    def __init__(self, name: str, module: str) -> None:
        super().__init__(name, f"``{module}`` under a shorter name.")
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(import_module(self._module), name)


def install(package: ModuleType) -> None:
    """Make the modules of a package importable under their shorter names."""
    for shorter, module in SHORTER.items():
        name = f"{package.__name__}.{shorter}"
        sys.modules[name] = _Elsewhere(name, f"{package.__name__}.{module}")


def public_names(package: str) -> dict[str, str]:
    """Return what people may look for at the top of a package, and where each of it is."""
    elsewhere = dict.fromkeys(SYNONYMS.values(), "mechanisms") | NAMES
    there = {name: f"{package}.{room}" for name, room in elsewhere.items()}
    return there | dict.fromkeys(sys.modules[package].__all__, package)
