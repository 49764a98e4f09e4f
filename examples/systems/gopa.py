"""GOPA: a mean of private values without a trusted server, with dropouts and colluders.

    python examples/systems/gopa.py --seed 0

Sabater, Bellet and Ramon, "An Accurate, Scalable and Verifiable Protocol for Federated
Differentially Private Averaging", 2022; slides 003. Neighbours in a random graph share noise that
cancels, each party adds a little of its own, and everybody publishes one number.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from digits import Outcome, Setting, arguments, show, source

import hockeystick as hs
from hockeystick.mechanisms import GOPA, Graph

SYSTEM = "GOPA"
DELTA = 1e-5


def incomes(parties: int, seed: int) -> Any:
    """Return a number from 0 to 1 for each party."""
    return np.random.default_rng(seed).beta(2.0, 5.0, size=parties)


def run(
    seed: int = 0,
    *,
    parties: int = 200,
    chosen: int = 12,
    noise: float = 0.4,
    pairwise: float = 10.0,
    colluders: int = 20,
    dropouts: int = 20,
) -> Outcome:
    """Run a round, and compare its mean with those of local noise and of a trusted curator."""
    values = incomes(parties, seed)
    graph = Graph.random_out(parties, chosen, seed)
    plan = GOPA(noise, pairwise, graph, range(colluders))
    gone = range(parties - dropouts, parties)
    account = hs.Accountant()
    found = hs.release.gopa_round(plan, values, dropouts=gone, charge=account, bits=source(seed))
    truth = float(values[: parties - dropouts].mean())
    epsilon = hs.epsilon(account.plan, DELTA).upper
    local = hs.calibrate(hs.Gaussian(1.0), "noise_multiplier", hs.ApproxDP(epsilon, DELTA)).value
    left = len(found.parties)
    return Outcome(
        system=f"GOPA, {parties} parties, {colluders} collude, {dropouts} drop out",
        result={
            "mean of those who stayed": truth,
            "mean published": found.mean,
            "error": found.mean - truth,
            "deviation of that error": noise / left**0.5,
            "deviation with a trusted curator": local / left,
            "deviation with local noise": local / left**0.5,
            "epsilon without pairwise noise": hs.epsilon(hs.Gaussian(noise), DELTA).upper,
            "error where noise of dropouts stays": _kept(plan, values, gone, seed) - truth,
        },
        plan=str(account.plan),
        epsilon=epsilon,
        delta=DELTA,
        checks=checks(plan, values, gone, seed),
    )


def _kept(plan: GOPA, values: Any, gone: range, seed: int) -> float:
    """Return the mean where neighbours of those who dropped out keep the noise shared with them."""
    bits = source(seed)
    return hs.release.gopa_round(plan, values, dropouts=gone, rollback=False, bits=bits).mean


def checks(plan: GOPA, values: Any, gone: range, seed: int) -> dict[str, bool]:
    """Return what was compared between the protocol and its account."""
    changed = values.copy()
    changed[len(plan.colluders)] = 1.0
    values = values.copy()
    values[len(plan.colluders)] = 0.0
    first, second = (
        hs.release.gopa_round(plan, one, bits=source(seed)).published for one in (values, changed)
    )
    moved = np.subtract(second, first)
    without = GOPA(0.0, plan.pairwise_multiplier, plan.graph, plan.colluders)
    quiet = hs.release.gopa_round(without, values, dropouts=gone, bits=source(seed))
    stayed = values[list(quiet.parties)]
    return {
        "one party moves its own number by the whole width, and no other": bool(
            np.count_nonzero(moved) == 1 and moved.max() == 1.0
        ),
        "pairwise noise cancels, those who dropped out included": bool(
            abs(quiet.mean - stayed.mean()) < 2.0**-30
        ),
        "who dropped out is accounted as colluding": quiet.mechanism.colluders
        == plan.colluders | set(gone),
        "the covariance of what is published is that of the account": covariance_agrees(seed),
    }


def covariance_agrees(seed: int, rounds: int = 2000) -> bool:
    """Return whether ``s^2 I + t^2 Lap`` is within five deviations of what rounds show."""
    graph, bits = Graph.cycle(4), source(seed)
    plan = GOPA(0.5, 2.0, graph)
    shown = [hs.release.gopa_round(plan, [0.5] * 4, bits=bits).published for _ in range(rounds)]
    laplacian = 2 * np.eye(4) - np.roll(np.eye(4), 1, axis=0) - np.roll(np.eye(4), -1, axis=0)
    expected = 0.25 * np.eye(4) + 4.0 * laplacian
    spread = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / rounds)
    return bool((np.abs(np.cov(np.transpose(shown)) - expected) < 5 * spread).all())


def settings() -> dict[str, Setting]:
    """Return what the system is shown in."""
    shown: Any = {"figures": ("mean published", "error"), "plain": "mean of those who stayed"}
    return {
        "20 of 200 collude, 20 drop out": Setting(run, **shown),
        "nobody colludes or drops out": Setting(partial(run, colluders=0, dropouts=0), **shown),
    }


def main() -> None:
    """Run the system and print what came out."""
    show(run(arguments(__doc__).parse_args().seed))


if __name__ == "__main__":
    main()
