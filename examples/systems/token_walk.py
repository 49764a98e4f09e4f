"""A token walk: a model that parties hand on, each after a noisy step on data of its own.

    python examples/systems/token_walk.py --seed 0

Cyffers and Bellet, "Privacy Amplification by Decentralization", AISTATS 2022; slides 003. On the
complete graph the next holder is drawn from all, on the ring it is the next one. What a party loses
depends on who looks: here, any one other party, who sees the model whenever it is given it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from digits import Outcome, Parity, Setting, arguments, logistic_gradient, parity, show, source

import hockeystick as hs
from hockeystick.mechanisms import TokenWalk

SYSTEM = "Token walk"
DELTA = 1e-5
STEP_SIZE, RADIUS, SMOOTHNESS = 0.05, 10.0, 0.25


def planned(noise: float, parties: int, topology: str, distance: int = 1) -> TokenWalk:
    """Return the plan of one contribution, as any one other party sees it."""
    place = {"distance": distance} if topology == "ring" else {}
    return TokenWalk(noise, parties, topology, **place, step_size=STEP_SIZE, smoothness=SMOOTHNESS)


def walked(
    plan: TokenWalk, shares: Any, seed: int, steps: int, visits: int, charge: Any = None
) -> Any:
    """Return a walk in which each party's loss is the mean of those of its own records."""
    return hs.release.token_walk(
        plan,
        np.zeros(16),
        lambda model, party: logistic_gradient(model, shares[party]),
        steps=steps,
        visits=visits,
        lipschitz=1.0,
        radius=RADIUS,
        charge=charge,
        bits=source(seed),
    )


def run(
    seed: int = 0,
    *,
    parties: int = 140,
    visits: int = 3,
    noise: float = 1.0,
    topology: str = "complete",
    distance: int = 70,
) -> Outcome:
    """Walk, and compare with the same budget spent where every model is seen."""
    records: Parity = parity(seed)
    shares = np.array_split(records.train, parties)
    steps = parties * visits
    plan = planned(noise, parties, topology, distance)
    account = hs.Accountant()
    walk = walked(plan, shares, seed, steps, visits, account)
    cost = hs.epsilon(account.plan, DELTA).upper
    seen = planned(1.0, parties, "ring")
    local = hs.calibrate(seen**visits, "noise_multiplier", hs.ApproxDP(cost, DELTA)).value
    return Outcome(
        system=f"Token walk, {topology}, {parties} parties, {steps} steps",
        result={
            "accuracy": records.accuracy(walk.last),
            "accuracy without noise": records.accuracy(
                walked(planned(0.0, parties, topology), shares, seed, steps, visits).last
            ),
            "accuracy where every model is seen, same epsilon": records.accuracy(
                walked(planned(local, parties, "ring"), shares, seed, steps, visits).last
            ),
            "epsilon where every model is seen, same noise": hs.epsilon(
                planned(noise, parties, "ring") ** visits, DELTA
            ).upper,
            "models that party 0 was given": float(len(walk.seen_by([0]))),
        },
        plan=str(account.plan),
        epsilon=cost,
        delta=DELTA,
        checks=checks(walk, shares, seed, visits),
    )


def checks(walk: Any, shares: Any, seed: int, visits: int) -> dict[str, bool]:
    """Return what was compared between the walk and its account."""
    counts = np.bincount(walk.path, minlength=len(shares))
    given = np.bincount(walk.path[walk.contributed], minlength=len(shares))
    return {
        "nobody contributes more often than is charged": bool(
            (given == np.minimum(counts, visits)).all()
        ),
        "on the complete graph the next party is uniform": path_agrees(seed),
        "a contribution moves what is seen by at most 2 eta L": contribution_agrees(shares, seed),
        "between two sights there is the noise of the steps between": noise_agrees(seed),
    }


def path_agrees(seed: int, parties: int = 5, steps: int = 4000) -> bool:
    """Return whether holders, and the pairs of holder and next, are as often as they should be."""
    run = hs.release.token_walk(
        planned(0.0, parties, "complete"),
        [0.0],
        lambda w, u: w * 0,
        steps=steps,
        visits=steps,
        lipschitz=1.0,
        radius=RADIUS,
        bits=source(seed),
    )
    pairs = np.bincount(run.path[:-1] * parties + run.path[1:], minlength=parties**2)
    expected = (steps - 1) / parties**2
    statistic = float(((pairs - expected) ** 2 / expected).sum())
    freedom = parties**2 - 1
    return abs(statistic - freedom) < 5 * (2 * freedom) ** 0.5


def contribution_agrees(shares: Any, seed: int) -> bool:
    """Return whether another party's data move what the next ones see by at most 2 eta L."""
    plan, most = planned(1.0, len(shares), "ring", 9), 2 * STEP_SIZE
    changed = [*shares]
    changed[2] = -changed[2]
    runs = [walked(plan, data, seed, 40, 1) for data in (shares, changed)]
    moved = np.linalg.norm(runs[0].models - runs[1].models, axis=1)
    before, after = moved[:3], moved[3:]
    return bool((before == 0).all() and (after > 0).all() and (after <= most * (1 + 1e-6)).all())


def noise_agrees(seed: int, runs: int = 400) -> bool:
    """Return whether three steps without data have ``eta s sqrt(3)``, within five deviations."""
    bits, drawn = source(seed), []
    for _ in range(runs):
        run = hs.release.token_walk(
            planned(1.0, 6, "ring", 3),
            np.zeros(4),
            lambda w, u: w * 0,
            steps=4,
            visits=1,
            lipschitz=1.0,
            radius=1e6,
            bits=bits,
        )
        drawn.append(run.models[3])
    ratio = np.var(drawn) / (3 * STEP_SIZE**2)
    return bool(abs(ratio - 1) < 5 * (2 / (4 * runs)) ** 0.5)


def settings() -> dict[str, Setting]:
    """Return what the system is shown in."""
    ways: dict[str, dict[str, Any]] = {
        "complete graph": {"topology": "complete"},
        "ring, seen from 70 behind": {"topology": "ring", "distance": 70},
        "ring, seen from next to it": {"topology": "ring", "distance": 1},
    }
    return {
        name: Setting(partial(run, **own), figures=("accuracy",), plain="accuracy without noise")
        for name, own in ways.items()
    }


def main() -> None:
    """Run the system on both graphs and print what came out."""
    seed = arguments(__doc__).parse_args().seed
    for topology in ("complete", "ring"):
        show(run(seed, topology=topology))


if __name__ == "__main__":
    main()
