"""Local reports in the shuffle model: randomize, permute, estimate, account.

    python examples/systems/table.py --only shuffled

Bellet, "Privacy-Preserving Machine Learning", Peyresq 2022: each person reports a category by
randomized response, a shuffler permutes the reports, and whoever collects them estimates how often
each category occurs. The people here are the digits; their category is the digit itself.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from digits import PLAN, Outcome, Settings, digits, source

import hockeystick as hs
from hockeystick.release import response_error, response_frequencies, response_reports
from hockeystick.release.samplers import permutation

SYSTEM = "Shuffled reports"
DELTA = 1e-6


def reported(randomizer: hs.RandomizedResponse, values: Any, bits: Any) -> Any:
    """Return what the shuffler hands on: everybody's report, in a random order."""
    reports = response_reports(randomizer, values, bits=bits)
    return reports[permutation(len(reports), bits=bits)]


def asked(seed: int | None, local: float) -> tuple[float, dict[str, bool]]:
    """Return the largest error of the shares by all reports, and what was compared."""
    values, randomizer = digits().labels, hs.RandomizedResponse(local, categories=10)
    shown = reported(randomizer, values, source(seed))
    shares = np.bincount(values, minlength=10) / PLAN.examples
    found = response_frequencies(randomizer, shown) - shares
    expected = sum(response_error(randomizer, PLAN.examples, share) for share in shares)
    checks = {
        "reports": len(shown) == PLAN.examples,
        "error": bool(expected == 0 or (found**2).sum() < 5 * expected),
    }
    return float(np.abs(found).max()), checks


def curated(seed: int | None, epsilon: float) -> tuple[float, float]:
    """Return the largest error of a trusted curator's shares for the same budget, and its epsilon.

    A person who has another category moves the counts by sqrt(2) in L2.
    """
    target = hs.ApproxDP(epsilon, DELTA)
    plan: Any = hs.calibrate(hs.Gaussian(1.0), "noise_multiplier", target).plan
    counts = np.bincount(digits().labels, minlength=10).astype(float)
    sensitivity = math.nextafter(math.sqrt(2), 2)
    noisy = hs.release.gaussian(plan, counts, sensitivity, bits=source(seed))
    error = float(np.abs(noisy / PLAN.examples - counts / PLAN.examples).max())
    return error, hs.epsilon(plan, DELTA).upper


def run(seed: int | None = 0, *, local: float, view: str) -> Outcome:
    """Ask everybody once and return what came out."""
    randomizer = hs.RandomizedResponse(local, categories=10)
    shuffled = hs.mechanisms.ShuffledReports(randomizer, users=PLAN.examples)
    spent = hs.epsilon(randomizer if view == "not shuffled" else shuffled, DELTA).upper
    error, checks = asked(seed, local)
    if view == "central":
        budget = spent
        error, spent = curated(seed, budget)
        checks = {"budget": spent <= budget}
    plain = {"largest error": asked(seed, math.inf)[0]}
    return Outcome({"largest error": error}, plain, spent, DELTA, checks)


def settings() -> Settings:
    """Return what the system is shown in."""
    return {
        f"epsilon {local}, {view}": partial(run, local=float(local), view=view)
        for local in (1, 2, 4)
        for view in ("shuffled", "not shuffled", "central")
    }
