"""GOPA: a mean of private values without a trusted server, with dropouts and colluders.

    python examples/systems/table.py --only gopa

Sabater, Bellet and Ramon, "An Accurate, Scalable and Verifiable Protocol for Federated
Differentially Private Averaging", 2022; slides 003. Neighbours in a random graph share noise that
cancels, each party adds a little of its own, and everybody publishes one number.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from digits import Outcome, Settings, source

import hockeystick as hs
from hockeystick.mechanisms import GOPA, Graph

SYSTEM = "GOPA"
PARTIES, CHOSEN, NOISE, PAIRWISE, DELTA = 200, 12, 0.4, 10.0, 1e-5


def run(seed: int | None = 0, *, colluders: int = 20, dropouts: int = 20) -> Outcome:
    """Publish the mean of a number from 0 to 1 of each party, and compare it with the truth."""
    values = np.random.default_rng(seed).beta(2.0, 5.0, size=PARTIES)
    graph, account = Graph.random_out(PARTIES, CHOSEN, seed or 0), hs.Accountant()
    gone = range(PARTIES - dropouts, PARTIES)
    plan = GOPA(NOISE, PAIRWISE, graph, range(colluders))
    found = hs.release.gopa_round(plan, values, dropouts=gone, charge=account, bits=source(seed))
    truth = float(values[: PARTIES - dropouts].mean())
    quiet = hs.release.gopa_round(
        GOPA(0.0, PAIRWISE, graph, range(colluders)), values, dropouts=gone, bits=source(seed)
    )
    return Outcome(
        {"mean published": found.mean, "error": found.mean - truth},
        {"mean of those who stayed": truth},
        hs.epsilon(account.plan, DELTA).upper,
        DELTA,
        {
            "pairwise noise cancels, that of who dropped out included": (
                abs(quiet.mean - truth) < 2.0**-30
            ),
            "who dropped out is accounted as colluding": account.plan
            == GOPA(NOISE, PAIRWISE, graph, [*range(colluders), *gone]),
        },
    )


def settings() -> Settings:
    """Return what the system is shown in."""
    return {
        "20 of 200 collude, 20 drop out": run,
        "nobody colludes or drops out": partial(run, colluders=0, dropouts=0),
    }
