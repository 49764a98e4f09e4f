"""Gossip averaging: noise once, then averages with neighbours; what each party loses to each.

    python examples/systems/gossip.py --seed 0

Cyffers, Even, Bellet and Massoulie, "Muffliato: Peer-to-Peer Privacy Amplification for
Decentralized Optimization and Averaging", NeurIPS 2022; slides 003. Their bound of a pair's loss is
printed beside the exact one: it is not a bound.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from click import echo
from digits import Outcome, Setting, arguments, show, source

import hockeystick as hs
from hockeystick.mechanisms import GossipAveraging, Graph
from hockeystick.privacy_loss import dominating_pair

SYSTEM = "Gossip averaging"
DELTA = 1e-5


def hypercube(dimension: int) -> Graph:
    """Return the graph of all strings of bits, neighbours where one bit differs."""
    parties = 2**dimension
    pairs = [(a, a ^ 1 << bit) for a in range(parties) for bit in range(dimension)]
    words = f"hypercube of {parties}"
    return Graph(parties, [(a, b) for a, b in pairs if a < b]).named(words)


def social_network() -> Graph:
    """Return Zachary's karate club, 34 people."""
    import networkx as nx

    club = nx.karate_club_graph()
    return Graph(club.number_of_nodes(), list(club.edges())).named("karate club")


def gossip_matrix(graph: Graph) -> Any:
    """Return W as floats: ``1 / (1 + max(d_v, d_w))`` between neighbours, the rest on itself."""
    pairs = graph.pairs
    degrees = np.bincount(pairs.ravel(), minlength=graph.parties)
    matrix = np.zeros((graph.parties, graph.parties))
    weights = 1.0 / (1 + np.maximum(degrees[pairs[:, 0]], degrees[pairs[:, 1]]))
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = weights
    return matrix + np.diag(1 - matrix.sum(axis=1))


def view(graph: Graph, rounds: int, observer: int) -> Any:
    """Return what an observer sees, as rows that multiply the noisy values: its own one first."""
    matrix = gossip_matrix(graph)
    senders = [v for v in range(graph.parties) if v != observer and matrix[observer, v] > 0]
    power, rows = np.eye(graph.parties), [np.eye(graph.parties)[observer]]
    for _ in range(rounds):
        rows += [power[sender] for sender in senders]
        power = matrix @ power
    return np.array(rows)


def papers_squares(graph: Graph, rounds: int, observer: int) -> Any:
    """Return ``sum_t sum_w (W^t)_uw^2 / |(W^t)_w|^2`` for each party u: the paper's mu^2 s^2."""
    rows = view(graph, rounds, observer)[1:]
    return (rows**2 / (rows**2).sum(axis=1, keepdims=True)).sum(axis=0)


def exact_square(graph: Graph, rounds: int, observer: int, party: int) -> float:
    """Return ``|P e_u|^2``, proven: mu^2 where the noise is 1."""
    loss: Any = dominating_pair(GossipAveraging(1.0, graph, rounds, party, [observer])).removing
    return 0.0 if loss is None else getattr(loss, "dominating", loss).mu ** 2


def run(
    seed: int = 0, *, dimension: int = 7, rounds: int = 7, party: int = 15, noise: float = 1.0
) -> Outcome:
    """Run gossip averaging on a hypercube, as party 0 sees another one."""
    graph = hypercube(dimension)
    plan = GossipAveraging(noise, graph, rounds, party, [0])
    values = np.random.default_rng(seed).uniform(size=graph.parties)
    account = hs.Accountant()
    found = hs.release.gossip_average(plan, values, charge=account, bits=source(seed))
    rest = gossip_average_error(graph, rounds)
    return Outcome(
        system=f"Gossip averaging, {graph}, {rounds} rounds, party {party} against party 0",
        result={
            "mean of the values": float(values.mean()),
            "average of party 0": found.averages[0],
            "deviation of a perfect average": noise / graph.parties**0.5,
            "part of the values' spread that is left": rest,
            "mu": (exact_square(graph, rounds, 0, party) ** 0.5) / noise,
            "mu by the paper's bound": float(papers_squares(graph, rounds, 0)[party]) ** 0.5
            / noise,
            "epsilon towards everybody": hs.epsilon(hs.Gaussian(noise), DELTA).upper,
        },
        plan=str(account.plan),
        epsilon=hs.epsilon(account.plan, DELTA).upper,
        delta=DELTA,
        checks=checks(plan, values, seed),
    )


def gossip_average_error(graph: Graph, rounds: int) -> float:
    """Return the second largest size of an eigenvalue of W, to the power of the rounds."""
    sizes = np.sort(np.abs(np.linalg.eigvalsh(gossip_matrix(graph))))
    return float(sizes[-2] ** rounds) if len(sizes) > 1 else 0.0


def checks(plan: GossipAveraging, values: Any, seed: int) -> dict[str, bool]:
    """Return what was compared between the protocol and its account."""
    sent = []
    for value in (0.0, 1.0):
        changed = values.copy()
        changed[plan.party] = value
        sent.append(hs.release.gossip_average(plan, changed, bits=source(seed)).seen)
    rows = view(plan.graph, plan.rounds, 0)[1:]
    moved = [b[one] - a[one] for a, b in zip(*sent, strict=True) for one in sorted(a)]
    return {
        "one value moves each message by its entry of W^t": bool(
            np.allclose([float(one) for one in moved], rows[:, plan.party], atol=1e-12)
        ),
        "the observer's best guess has the accounted variance": guess_agrees(seed),
        "on a path of 6 the observer computes the far end's noisy value": solves_the_path(seed),
    }


def guess_agrees(seed: int, runs: int = 1500) -> bool:
    """Return whether an observer's best unbiased guess has the variance ``1 / mu^2``.

    Five people behind a hub, as the one before it sees them: the best guess of the first one's
    value, where all the others' are known to be 1/2, is by the generalised inverse of the view.
    """
    graph = Graph(7, [(0, 1), *((1, 2 + k) for k in range(5))])
    plan, bits = GossipAveraging(0.5, graph, 6, 2, [0]), source(seed)
    rows = view(graph, 6, 0)
    direction = np.linalg.pinv(rows) @ rows[:, 2]
    weights = np.linalg.lstsq(rows.T, direction, rcond=1e-9)[0][1:]
    square = exact_square(graph, 6, 0, 2)
    guesses = []
    for _ in range(runs):
        seen = hs.release.gossip_average(plan, [0.5] * 7, bits=bits).seen
        messages = [float(sent[1]) - 0.5 for sent in seen]
        guesses.append(float(weights @ messages) / square)
    # Party 0 knows its own value and noise, which enter the messages with known weights.
    own = (rows[1:, 0] @ weights) / square * 0.5
    variance = np.var(guesses) - own**2
    return bool(abs(variance * square / 0.25 - 1) < 5 * (2 / runs) ** 0.5)


def solves_the_path(seed: int) -> bool:
    """Return whether party 0 of a path computes party 5's noisy value from what it is sent.

    With the weights 1/3, each new message has the next party's value as its one unknown.
    """
    graph = Graph.path(6)
    plan = GossipAveraging(0.5, graph, 5, 5, [0])
    values = np.linspace(0, 1, 6)
    first = hs.release.gossip_average(
        GossipAveraging(0.5, graph, 0, 5, [0]), values, bits=source(seed)
    ).averages
    seen = hs.release.gossip_average(plan, values, bits=source(seed)).seen
    matrix = [[Fraction(x).limit_denominator(3) for x in row] for row in gossip_matrix(graph)]
    row = [Fraction(int(k == 1)) for k in range(6)]
    known = [Fraction(first[0])]
    for sent in seen:
        place = len(known)
        rest = sent[1] - sum(a * b for a, b in zip(row, known, strict=False))
        known.append(rest / row[place])
        row = [sum(row[k] * matrix[k][j] for k in range(6)) for j in range(6)]
    return abs(float(known[5]) - first[5]) < 1e-9


def table(graph: Graph, rounds: int, observer: int = 0) -> None:
    """Print, by distance from an observer, the parties' mean exact mu^2 and the paper's."""
    import networkx as nx

    distances = nx.single_source_shortest_path_length(nx.Graph(graph.pairs.tolist()), observer)
    claimed = papers_squares(graph, rounds, observer)
    echo(f"{graph}, {rounds} rounds, noise 1: mu^2 towards party {observer}, by distance")
    for distance in range(1, max(distances.values()) + 1):
        ring = [party for party, steps in distances.items() if steps == distance]
        exact = float(np.mean([exact_square(graph, rounds, observer, one) for one in ring]))
        told = float(np.mean([claimed[one] for one in ring]))
        echo(f"  {distance}: {len(ring)} parties, exact {exact:.4g}, by the paper {told:.4g}")


def settings() -> dict[str, Setting]:
    """Return what the system is shown in."""
    shown: Any = {"figures": ("average of party 0",), "plain": "mean of the values"}
    return {
        f"hypercube of 128, {words}": Setting(partial(run, party=party), **shown)
        for words, party in {"at distance 4": 15, "at distance 7": 127}.items()
    }


def main() -> None:
    """Run the system, and print what came out beside two tables."""
    show(run(arguments(__doc__).parse_args().seed))
    for graph, rounds in ((hypercube(7), 7), (social_network(), 3), (Graph.path(8), 7)):
        table(graph, rounds)


if __name__ == "__main__":
    main()
