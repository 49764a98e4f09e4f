"""A token walk: a model that parties hand on, each after a noisy step on data of its own.

    python examples/systems/table.py --only token_walk

Cyffers and Bellet, "Privacy Amplification by Decentralization", AISTATS 2022; slides 003. On the
complete graph the next holder is drawn from all, on the ring it is the next one. What a party loses
depends on who looks: here, any one other party, who sees the model whenever it is given it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from digits import Outcome, Settings, logistic_gradient, parity, source

import hockeystick as hs
from hockeystick.mechanisms import TokenWalk

SYSTEM = "Token walk"
PARTIES, VISITS, NOISE, DELTA = 140, 3, 1.0, 1e-5
STEP_SIZE, RADIUS, SMOOTHNESS = 0.05, 10.0, 0.25


def walked(plan: TokenWalk, shares: Any, seed: int | None, charge: Any = None) -> Any:
    """Return a walk in which each party's loss is the mean of those of its own records."""
    return hs.release.token_walk(
        plan,
        np.zeros(16),
        lambda model, party: logistic_gradient(model, shares[party]),
        steps=PARTIES * VISITS,
        visits=VISITS,
        lipschitz=1.0,
        radius=RADIUS,
        charge=charge,
        bits=source(seed),
    )


def planned(noise: float, topology: str, distance: int) -> TokenWalk:
    """Return the plan of one contribution, as any one other party sees it."""
    place = {"distance": distance} if topology == "ring" else {}
    return TokenWalk(noise, PARTIES, topology, **place, step_size=STEP_SIZE, smoothness=SMOOTHNESS)


def run(seed: int | None = 0, *, topology: str, distance: int = 1) -> Outcome:
    """Walk with noise and without."""
    train, test = parity(seed or 0)
    shares = np.array_split(train, PARTIES)
    plan, account = planned(NOISE, topology, distance), hs.Accountant()
    walk = walked(plan, shares, seed, account)
    openly = walked(planned(0.0, topology, distance), shares, seed)
    counts = np.bincount(walk.path, minlength=PARTIES)
    given = np.bincount(walk.path[walk.contributed], minlength=PARTIES)
    return Outcome(
        {"accuracy": float(np.mean(test @ walk.last > 0))},
        {"accuracy without noise": float(np.mean(test @ openly.last > 0))},
        hs.epsilon(account.plan, DELTA).upper,
        DELTA,
        {
            "charge": account.plan == plan**VISITS,
            "nobody contributes more often than is charged": bool(
                (given == np.minimum(counts, VISITS)).all()
            ),
        },
    )


def settings() -> Settings:
    """Return what the system is shown in."""
    return {
        "complete graph": partial(run, topology="complete"),
        "ring, seen from 70 behind": partial(run, topology="ring", distance=70),
        "ring, seen from next to it": partial(run, topology="ring", distance=1),
    }
