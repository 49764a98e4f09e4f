"""Local reports in the shuffle model: randomize, permute, estimate, account.

    python examples/systems/shuffled.py --seeds 5

Bellet, "Privacy-Preserving Machine Learning", Peyresq 2022: each person reports a category by
randomized response, a shuffler permutes the reports, and whoever collects them estimates how often
each category occurs. The people here are the digits; their category is the digit itself.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from digits import Outcome, Setting, arguments, digits, show_lines, source

import hockeystick as hs
from hockeystick.release import response_error, response_frequencies, response_reports
from hockeystick.release.samplers import permutation

SYSTEM = "Shuffled reports"
DELTA = 1e-6
LOCAL = {"epsilon 1": 1.0, "epsilon 2": 2.0, "epsilon 4": 4.0, "no privacy": math.inf}
CENTRAL = ("shuffled", "not shuffled", "central")


def planned(local: float, users: int) -> hs.mechanisms.ShuffledReports:
    """Return what all reports together are, after the shuffler."""
    return hs.mechanisms.ShuffledReports(hs.RandomizedResponse(local, categories=10), users=users)


def reported(plan: hs.mechanisms.ShuffledReports, values: Any, bits: Any) -> Any:
    """Return what the shuffler hands on: everybody's report, in a random order."""
    randomizer = plan.randomizer
    assert isinstance(randomizer, hs.RandomizedResponse)
    reports = response_reports(randomizer, values, bits=bits)
    return reports[permutation(len(reports), bits=bits)]


def run(seed: int | None = 0, *, local: float = 2.0, view: str = "shuffled") -> Outcome:
    """Ask everybody once and return what came out."""
    values, bits = digits().labels, source(seed)
    plan, truth = planned(local, len(values)), np.bincount(values, minlength=10) / len(values)
    randomizer = plan.randomizer
    assert isinstance(randomizer, hs.RandomizedResponse)
    accounted: hs.Mechanism = randomizer if view == "not shuffled" else plan
    spent = hs.epsilon(accounted, DELTA).upper if local < math.inf else math.inf
    if view == "central":
        accounted, estimate = _central(values, spent, bits)
        spent = hs.epsilon(accounted, DELTA).upper
        reports, expected = len(values), 0.0
    else:
        shown = reported(plan, values, bits)
        estimate, reports = response_frequencies(randomizer, shown), len(shown)
        expected = sum(response_error(randomizer, len(values), share) for share in truth)
    error = float(((estimate - truth) ** 2).sum())
    return Outcome(
        f"local epsilon {local:g}, {view}",
        {"largest error": float(np.abs(estimate - truth).max())},
        str(accounted),
        spent,
        DELTA,
        {
            "reports": reports == plan.users == len(values),
            "error": expected == 0 or error < 5 * expected,
        },
    )


def _central(values: Any, epsilon: float, bits: Any) -> tuple[hs.Mechanism, Any]:
    """Return a trusted curator's noise for the same budget, and its histogram.

    A person who has another category moves the counts by sqrt(2) in L2.
    """
    found = hs.calibrate(hs.Gaussian(1.0), "noise_multiplier", hs.ApproxDP(epsilon, DELTA)).plan
    assert isinstance(found, hs.Gaussian)
    counts = np.bincount(values, minlength=10).astype(float)
    noisy = hs.release.gaussian(found, counts, math.nextafter(math.sqrt(2), 2), bits=bits)
    return found, noisy / len(values)


def settings() -> dict[str, Setting]:
    """Return what the system is shown in."""
    return {
        f"{name}, {view}": Setting(
            partial(run, local=local, view=view), beside="no privacy, shuffled"
        )
        for name, local in LOCAL.items()
        for view in (CENTRAL if local < math.inf else CENTRAL[:1])
    }


def main() -> None:
    """Show the error and the cost of the reports with and without a shuffler, and of a curator."""
    asked = arguments(__doc__).parse_args()
    show_lines(settings(), asked.seed, asked.seeds)


if __name__ == "__main__":
    main()
