"""Searches for a learning rate and a clipping norm, each paid for as a whole at the same budget.

    python examples/systems/table.py --only tuning

Galli, "Sense and Sensitivity" (PhD thesis, Scuola Normale Superiore, 2024), chapter 3, pays for a
grid by composition; Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy",
ICLR 2022, pay for a random number of runs, of which the best one is shown. Beside them what is
often done: to search for free and to quote the last run's epsilon, which the search exceeds.

A run trains a linear model of scikit-learn's digits by DP-SGD, and scores it by how many of its own
images it reads rightly, plus noise: both are charged, and nothing else looks at the images.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
from digits import (
    DELTA,
    EPSILON,
    PLAN,
    RATES,
    WEIGHTS,
    Digits,
    Outcome,
    Settings,
    Training,
    digits,
    fixed_threshold,
    openly,
    probabilities,
    source,
)

import hockeystick as hs
from hockeystick.mechanisms import Mechanism, RandomStopping, tuning
from hockeystick.release.samplers import Bits

SYSTEM = "Hyperparameter search"
NORMS = (0.01, 0.1, 1.0, 10.0, 100.0)
GRID = tuple(itertools.product(RATES, NORMS))
SCORE = hs.Gaussian(noise_multiplier=20)
LOGARITHMIC = tuning.TruncatedNegativeBinomial.of_mean(10, 0.0)
FREE = "for free, last run quoted: not private as quoted"
# How many runs there are of each search: a fixed number, or a distribution.
SEARCHES: dict[str, int | tuning.RunCount] = {
    "grid": len(GRID),
    "random, geometric number of runs": tuning.TruncatedNegativeBinomial.of_mean(10, 1.0),
    "random, logarithmic number of runs": LOGARITHMIC,
    "random, negative binomial number of runs": tuning.TruncatedNegativeBinomial.of_mean(10, -0.5),
    "random, Poisson number of runs": tuning.Poisson(mean=10),
    "Optuna at random, logarithmic number of runs": LOGARITHMIC,
    "Optuna by earlier scores (TPE)": len(GRID),
    FREE: len(GRID) + 1,
}


def search(method: str, runs: Runs, bits: Bits) -> Any:
    """Search, and return the weights of the best run, or of the last of all; None if none ran."""
    run, total = runs.plan @ SCORE, whole(method, runs.plan)
    if method == FREE:
        runs.charge.step(total)
        return runs(hs.release.grid_search(run, GRID, runs).candidate)[0]
    if method.startswith("Optuna"):
        return by_optuna(total, runs, bits)
    if isinstance(total, RandomStopping):
        best = hs.release.random_search(total, GRID, runs, charge=runs.charge, bits=bits)
    else:
        best = hs.release.grid_search(run, GRID, runs, charge=runs.charge)
    return None if best is None else best.output


def by_optuna(total: Mechanism, runs: Runs, bits: Bits) -> Any:
    """Search with Optuna: at random where the number of runs is, else by the scores so far."""
    from optuna.samplers import TPESampler

    from hockeystick.adapters.optuna import optimize

    def trial(trial: Any) -> float:
        rate = trial.suggest_float("rate", RATES[0], RATES[-1], log=True)
        norm = trial.suggest_float("norm", NORMS[0], NORMS[-1], log=True)
        weights, score = runs((rate, norm))
        trial.set_user_attr("weights", weights)
        return score

    if isinstance(total, RandomStopping):
        best = optimize(trial, total, charge=runs.charge, bits=bits)
    else:
        sampler, run = TPESampler(seed=runs.seed), runs.plan @ SCORE
        best = optimize(trial, run, trials=len(GRID), sampler=sampler, charge=runs.charge)
    return None if best is None else best.output["weights"]


@dataclass
class Runs:
    """The runs of one search, and what was charged when each began."""

    plan: hs.DPSGD
    seed: int | None
    bits: Bits
    charge: hs.Accountant
    charged: list[Mechanism] = field(default_factory=list)

    def __call__(self, candidate: tuple[float, float]) -> tuple[Any, float]:
        """Train with a learning rate and a clipping norm; return the weights and their score."""
        self.charged.append(self.charge.plan)
        own = None if self.seed is None else 1000 * self.seed + len(self.charged)
        training = Training(self.plan, digits(), own, self.bits)
        update = fixed_threshold(self.plan.noise_multiplier, *candidate)
        weights = training.steps(update, self.plan.total_steps)
        return weights, noisy_score(weights, digits(), self.bits)


def noisy_score(weights: Any, data: Digits, bits: Bits) -> float:
    """Return how many images to train on are read rightly, plus noise; one image moves it by 1."""
    right = int((probabilities(weights, data.rows).argmax(1) == data.labels).sum())
    return float(hs.release.gaussian(SCORE, right, sensitivity=1, bits=bits))


def whole(method: str, plan: hs.DPSGD) -> Mechanism:
    """Return what all of a search costs, each run with its score."""
    run, runs = plan @ SCORE, SEARCHES[method]
    return run**runs if isinstance(runs, int) else RandomStopping(run, runs)


@cache
def planned(method: str) -> hs.DPSGD:
    """Return a run's training with which the search, or for free one run, just meets the budget."""
    plan = replace(PLAN, noise_multiplier=4.0)
    total = plan @ SCORE if method == FREE else whole(method, plan)
    path = "parts[0]" if method == FREE else "inner.parts[0]"
    target = hs.ApproxDP(EPSILON, DELTA)
    found = hs.calibrate(total, f"{path}.noise_multiplier", target, tolerance=0.01)
    return replace(plan, noise_multiplier=found.value)


def run(seed: int | None = 0, *, method: str, plan: hs.DPSGD | None = None) -> Outcome:
    """Search within a budget and return what came out."""
    plan, bits = plan or planned(method), source(seed)
    runs = Runs(plan, seed, bits, hs.Accountant())
    found = search(method, runs, bits)
    weights = np.zeros(WEIGHTS) if found is None else found
    result = {"accuracy": digits().accuracy(weights), "noise": plan.noise_multiplier}
    spent = float(hs.epsilon(runs.charge.plan, DELTA).upper)
    if method == FREE:
        result["quoted"] = float(hs.epsilon(plan @ SCORE, DELTA).upper)
    charged = [*runs.charged, runs.charge.plan]
    checks = {
        "charged first": all(one == whole(method, plan) for one in charged),
        "budget": (spent <= EPSILON) != (method == FREE),
    }
    return Outcome(result, openly(), spent, DELTA, checks)


def settings() -> Settings:
    """Return what the system is shown in."""
    return {method: partial(run, method=method) for method in SEARCHES}
