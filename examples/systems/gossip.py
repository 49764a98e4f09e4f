"""Gossip averaging: noise once, then averages with neighbours; what each party loses to each.

    python examples/systems/table.py --only gossip

Cyffers, Even, Bellet and Massoulie, "Muffliato: Peer-to-Peer Privacy Amplification for
Decentralized Optimization and Averaging", NeurIPS 2022; slides 003. Their bound of a pair's loss is
no bound; the account is exact.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from digits import Outcome, Settings, source

import hockeystick as hs
from hockeystick.mechanisms import GossipAveraging, Graph

SYSTEM = "Gossip averaging"
DIMENSION, ROUNDS, NOISE, DELTA = 7, 7, 1.0, 1e-5


def run(seed: int | None = 0, *, party: int) -> Outcome:
    """Run gossip averaging on a hypercube, as party 0 sees another one."""
    graph = hypercube(DIMENSION)
    plan = GossipAveraging(NOISE, graph, ROUNDS, party, [0])
    values = np.random.default_rng(seed).uniform(size=graph.parties)
    account = hs.Accountant()
    found = hs.release.gossip_average(plan, values, charge=account, bits=source(seed))
    return Outcome(
        {"average of party 0": found.averages[0]},
        {"mean of the values": float(values.mean())},
        hs.epsilon(account.plan, DELTA).upper,
        DELTA,
        {
            "charge": account.plan == plan,
            "one value moves each message by its entry of W^t": moved_as_accounted(
                plan, values, seed
            ),
        },
    )


def hypercube(dimension: int) -> Graph:
    """Return the graph of all strings of bits, neighbours where one bit differs."""
    parties = 2**dimension
    pairs = [(a, a ^ 1 << bit) for a in range(parties) for bit in range(dimension)]
    return Graph(parties, [(a, b) for a, b in pairs if a < b]).named(f"hypercube of {parties}")


def gossip_matrix(graph: Graph) -> Any:
    """Return W as floats: ``1 / (1 + max(d_v, d_w))`` between neighbours, the rest on itself."""
    pairs = graph.pairs
    degrees = np.bincount(pairs.ravel(), minlength=graph.parties)
    matrix = np.zeros((graph.parties, graph.parties))
    weights = 1.0 / (1 + np.maximum(degrees[pairs[:, 0]], degrees[pairs[:, 1]]))
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = weights
    return matrix + np.diag(1 - matrix.sum(axis=1))


def moved_as_accounted(plan: GossipAveraging, values: Any, seed: int | None) -> bool:
    """Return whether the party's value moves what party 0 is sent as the powers of W say."""
    low, high = values.copy(), values.copy()
    low[plan.party], high[plan.party] = 0.0, 1.0
    sent = [hs.release.gossip_average(plan, own, bits=source(seed)).seen for own in (low, high)]
    matrix = gossip_matrix(plan.graph)
    power = np.eye(plan.graph.parties)
    for before, after in zip(*sent, strict=True):
        for sender in before:
            if abs(float(after[sender] - before[sender]) - power[sender, plan.party]) > 1e-12:
                return False
        power = matrix @ power
    return True


def settings() -> Settings:
    """Return what the system is shown in."""
    return {
        f"hypercube of 128, at distance {distance}": partial(run, party=party)
        for distance, party in ((4, 15), (7, 127))
    }
