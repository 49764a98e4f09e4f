"""Searches for a learning rate and a clipping norm, each paid for as a whole at the same budget.

    python examples/systems/tuning.py --seeds 5

Galli, "Sense and Sensitivity" (PhD thesis, Scuola Normale Superiore, 2024), chapter 3, pays for a
grid by composition; van Dijk and Nguyen, "Considerations on the Theory of Training Models with
Differential Privacy", 2023, section 2.6, ask that a search on the clients' data leak little.
Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022, pay for a
random number of runs, of which the best one is shown. Beside them what is often done: to search for
free and to quote the last run's epsilon, which is not what the search costs.

A run trains a linear model of scikit-learn's digits by DP-SGD, and scores it by how many of its own
images it reads rightly, plus noise: both are charged, and nothing else looks at the images.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from digits import (
    BATCH_SIZE,
    CLASSES,
    DELTA,
    EPSILON,
    RATES,
    STEPS,
    Digits,
    Outcome,
    Setting,
    Training,
    at_one_budget,
    digits,
    fixed_threshold,
    probabilities,
    settings_of,
    source,
)

import hockeystick as hs
from hockeystick.mechanisms import Mechanism, RandomStopping, tuning
from hockeystick.release import Best
from hockeystick.release.samplers import Bits, run_count

SYSTEM = "Hyperparameter search"
NORMS = (0.01, 0.1, 1.0, 10.0, 100.0)
GRID = tuple(itertools.product(RATES, NORMS))
SCORE = hs.Gaussian(noise_multiplier=20)
GEOMETRIC, LOGARITHMIC, ROOT = (
    tuning.TruncatedNegativeBinomial.of_mean(10, eta) for eta in (1.0, 0.0, -0.5)
)
FREE = "for free, last run quoted: not private as quoted"
# How many runs there are of each search: a fixed number, or a distribution.
SEARCHES: dict[str, int | tuning.RunCount] = {
    "grid": len(GRID),
    "random, geometric number of runs": GEOMETRIC,
    "random, logarithmic number of runs": LOGARITHMIC,
    "random, negative binomial number of runs": ROOT,
    "random, Poisson number of runs": tuning.Poisson(mean=10),
    "Optuna at random, logarithmic number of runs": LOGARITHMIC,
    "Optuna by earlier scores (TPE)": len(GRID),
    FREE: len(GRID) + 1,
}
Found: TypeAlias = Best[tuple[float, float], Any]


@dataclass
class Runs:
    """The runs of one search, on the same digits and by the same plan.

    Args:
        plan: The training of each run.
        data: What is trained on.
        seed: Of batches; each run has one of its own.
        bits: The random words of noise.
        charge: What the search is charged to.
        charged: What was charged when each run began.
        counted: What each run's steps came to.
    """

    plan: hs.DPSGD
    data: Digits
    seed: int | None
    bits: Bits
    charge: hs.Accountant
    charged: list[Mechanism] = field(default_factory=list)
    counted: list[hs.DPSGD] = field(default_factory=list)

    def __call__(self, candidate: tuple[float, float]) -> tuple[Any, float]:
        """Train with a learning rate and a clipping norm; return the weights and their score."""
        self.charged.append(self.charge.plan)
        own = None if self.seed is None else 1000 * self.seed + len(self.charged)
        training = Training(self.plan, self.data, own, self.bits)
        update = fixed_threshold(self.plan.noise_multiplier, *candidate)
        weights = training.steps(update, self.plan.total_steps)
        self.counted.append(training.account.released)
        return weights, noisy_score(weights, self.data, self.bits)

    def trial(self, trial: Any) -> float:
        """Train with what a trial of Optuna suggests, anywhere in the ranges of the grid."""
        rate = trial.suggest_float("rate", RATES[0], RATES[-1], log=True)
        norm = trial.suggest_float("norm", NORMS[0], NORMS[-1], log=True)
        weights, score = self((rate, norm))
        trial.set_user_attr("weights", weights)
        return score


def noisy_score(weights: Any, data: Digits, bits: Bits) -> float:
    """Return how many images to train on are read rightly, plus noise; one image moves it by 1."""
    right = int((probabilities(weights, data.rows).argmax(1) == data.labels).sum())
    return float(hs.release.gaussian(SCORE, right, sensitivity=1, bits=bits))


class Recorded:
    """A source of random words that gives the same ones again when asked to."""

    def __init__(self, bits: Bits) -> None:
        self._bits, self._given = bits, list[Any]()

    def __call__(self, count: int) -> Any:
        """Return fresh words."""
        self._given.append(self._bits(count))
        return self._given[-1]

    def again(self) -> Bits:
        """Return a source of the words given, from the first on."""
        given = iter(self._given)
        return lambda count: next(given)


def whole(method: str, plan: hs.DPSGD) -> Mechanism:
    """Return what all of a search costs, each run with its score."""
    run, runs = plan @ SCORE, SEARCHES[method]
    return run**runs if isinstance(runs, int) else RandomStopping(run, runs)


@cache
def planned(method: str, examples: int, epsilon: float = EPSILON, steps: int = STEPS) -> hs.DPSGD:
    """Return the training of a run with so little noise that the search just meets the budget.

    It is the least to a hundredth of itself. Where it is searched for free, one run meets it, as is
    quoted.
    """
    plan = hs.DPSGD(examples=examples, batch_size=BATCH_SIZE, steps=steps, noise_multiplier=4.0)
    total = plan @ SCORE if method == FREE else whole(method, plan)
    path = "parts[0]" if method == FREE else "inner.parts[0]"
    target = hs.ApproxDP(epsilon, DELTA)
    found = hs.calibrate(total, f"{path}.noise_multiplier", target, tolerance=0.01)
    return replace(plan, noise_multiplier=found.value)


def search(method: str, runs: Runs, bits: Bits) -> Found | None:
    """Search, and return the best run: all that is released, but where it is the last of all."""
    run, total = runs.plan @ SCORE, whole(method, runs.plan)
    if method == FREE:
        runs.charge.step(total)
        tried = hs.release.grid_search(run, GRID, runs).candidate
        return Best(tried, *runs(tried), total)
    if method == "grid":
        return hs.release.grid_search(run, GRID, runs, charge=runs.charge)
    if method.startswith("Optuna"):
        return by_optuna(total, runs, bits)
    assert isinstance(total, RandomStopping)
    return hs.release.random_search(total, GRID, runs, charge=runs.charge, bits=bits)


def by_optuna(total: Mechanism, runs: Runs, bits: Bits) -> Found | None:
    """Search with Optuna: at random where the number of runs is, else by the scores so far."""
    from optuna.samplers import TPESampler

    from hockeystick.adapters.optuna import optimize

    if isinstance(total, RandomStopping):
        best = optimize(runs.trial, total, charge=runs.charge, bits=bits)
    else:
        sampler = TPESampler(seed=runs.seed)
        run = runs.plan @ SCORE
        best = optimize(runs.trial, run, trials=len(GRID), sampler=sampler, charge=runs.charge)
    if best is None:
        return None
    tried = best.candidate["rate"], best.candidate["norm"]
    return Best(tried, best.output["weights"], best.score, best.mechanism)


def run(
    seed: int | None = 0,
    *,
    method: str = "grid",
    epsilon: float = EPSILON,
    steps: int = STEPS,
    plan: hs.DPSGD | None = None,
) -> Outcome:
    """Search within a budget and return what came out."""
    data = digits()
    plan = planned(method, len(data.rows), epsilon, steps) if plan is None else plan
    bits = source(seed)
    recorded, runs = Recorded(bits), Runs(plan, data, seed, bits, hs.Accountant())
    found = search(method, runs, recorded)
    weights = np.zeros(CLASSES * data.rows.shape[1]) if found is None else found.output
    result = {"accuracy": data.accuracy(weights), "noise": plan.noise_multiplier}
    total = whole(method, plan)
    spent = float(hs.epsilon(runs.charge.plan, DELTA).upper)
    cost = {"budget": spent <= epsilon}
    if method == FREE:
        result["quoted"] = float(hs.epsilon(plan @ SCORE, DELTA).upper)
        cost = {"costs more than quoted": spent > result["quoted"]}
    return Outcome(
        method,
        result,
        str(runs.charge.plan),
        spent,
        DELTA,
        {
            "runs": len(runs.counted) == drawn(method, recorded),
            "charged first": all(one == total for one in [*runs.charged, runs.charge.plan]),
            "steps": all(one == plan for one in runs.counted),
            **cost,
        },
    )


def drawn(method: str, recorded: Recorded) -> int:
    """Return how many runs there were to be, drawn anew from the words that a search took."""
    runs = SEARCHES[method]
    return runs if isinstance(runs, int) else run_count(runs, bits=recorded.again())


def settings(epsilon: float = EPSILON) -> dict[str, Setting]:
    """Return what the system is shown in."""
    return settings_of(run, SEARCHES, epsilon)


def main() -> None:
    """Search by each method at one budget, and say what came out."""
    at_one_budget(__doc__, settings)


if __name__ == "__main__":
    main()
