"""What composes: parts that are about the same neighbours, party and observers."""

from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Composed, Mechanism
from hockeystick.mechanisms.scope import Fact, facts_of

m, federated = hs.mechanisms, hs.federated
HUB = m.Graph(6, [(0, 1), (1, 2), (1, 3), (1, 4), (1, 5)])
CLIENTS: Any = {"noise_multiplier": 6, "total_clients": 1000, "clients_per_round": 100, "rounds": 5}
RECORDS: Any = {"examples_per_client": 50, "batch_size": 5, "local_steps": 2}
STEP: Any = {"rate": 0.5, "steps": 1, "noise_multiplier": 1}
CONVEX: Any = {"step_size": 0.1, "smoothness": 1}


def gossip(party: int, observers: tuple[int, ...] = (0,), rounds: int = 9) -> Mechanism:
    return m.GossipAveraging(5, HUB, rounds=rounds, party=party, observers=observers)


def gopa(graph: Any, shared: float = 2.0, colluders: tuple[int, ...] = ()) -> Mechanism:
    return m.GOPA(0.4, shared, graph, colluders=colluders)


FED_SDP = federated.FedSDP(**CLIENTS, sampling="fixed-size", adjacency="replace-one")
FED_CDP = federated.FedCDP(**CLIENTS, **RECORDS, sampling="two-stage", adjacency="replace-one")
LOCAL = federated.LocalTraining(examples=60, batch_size=6, noise_multiplier=2, local_steps=3)
DPSGD = hs.DPSGD(rate=0.01, steps=10, noise_multiplier=2)
ITERATIONS = m.NoisyIterations(10.0, 10, **CONVEX)
WALK = m.TokenWalk(10.0, 100, **CONVEX)
REPORT = hs.RandomizedResponse(1.0, 3)
SAMPLE = hs.PoissonSubsampled(hs.Gaussian(2.0), 0.1)
ALONE_0 = m.Graph(4, [(1, 2), (2, 3), (1, 3)])
ALONE_1 = m.Graph(4, [(0, 2), (2, 3), (0, 3)])

APART = {
    "two parties": (gossip(2), gossip(3), "protect the same party"),
    "two observers": (gossip(2), gossip(2, (3,)), "be seen by the same parties"),
    "one observer more": (gossip(2), gossip(2, (0, 3)), "be seen by the same parties"),
    "numbers of observers": (
        WALK,
        m.TokenWalk(10.0, 100, observers=2, **CONVEX),
        "be seen by as many who collude",
    ),
    "distances": (
        m.TokenWalk(10.0, 100, "ring", distance=2, **CONVEX),
        m.TokenWalk(10.0, 100, "ring", distance=3, **CONVEX),
        "be seen at the same distance",
    ),
    "colluders": (gopa(HUB), gopa(HUB, colluders=(1,)), "be seen by the same parties"),
    "outsiders and an insider": (gopa(m.Graph.complete(9)), WALK, "be seen by as many who collude"),
    "the worst of two graphs": (gopa(ALONE_0), gopa(ALONE_1), "protect the same party"),
    "the worst at two noises": (gopa(HUB), gopa(HUB, 3.0), "protect the same party"),
    "the worst and one": (gopa(HUB, colluders=(0,)), gossip(2), "protect the same party"),
    "client and record": (FED_SDP, FED_CDP, "protect the same"),
    "client and a client's record": (FED_SDP, LOCAL, "protect the same"),
    "client and example": (federated.FedSDP(**CLIENTS, sampling="poisson"), DPSGD, "protect the s"),
    "party and record": (WALK, ITERATIONS, "protect the same"),
    "synchronised and party": (
        federated.PriFedSync(clients=LOCAL, rounds=2),
        gossip(2),
        "protect the same",
    ),
    "report and missing": (REPORT, SAMPLE, "agree whether somebody may be missing"),
    "bits and missing": (hs.mechanisms.UnaryEncoding(1.0), SAMPLE, "agree whether somebody may"),
    "message and missing": (
        federated.FederatedClustering(5, 2, 1, 1),
        SAMPLE,
        "agree whether somebody may be missing",
    ),
    "adjacencies": (SAMPLE, FED_SDP, "be described under one adjacency"),
}
TOGETHER = {
    "one party's two runs": gossip(2) @ gossip(2, rounds=4),
    "what all see besides": gossip(2) @ hs.Gaussian(3.0),
    "the walk, which is for all": gossip(2) @ WALK,
    "complete graphs are alike": gopa(m.Graph.complete(9)) @ gopa(m.Graph.complete(5), 3.0),
    "cycles are alike": gopa(m.Graph.cycle(9)) @ gopa(m.Graph.cycle(5), 3.0),
    "one graph, one ratio": gopa(HUB) @ m.GOPA(0.8, 4.0, HUB),
    "a client of a federation in a walk": FED_SDP @ WALK,
    "records": FED_CDP @ LOCAL @ hs.DPSGD(**STEP, adjacency="replace-one"),
    "a report where nobody is missing": REPORT
    @ hs.PoissonSubsampled(hs.Gaussian(2.0), 0.1, "zero-out"),
    "a report and its sample": hs.PoissonSubsampled(REPORT, 0.1) @ SAMPLE,
    "what a plan stands for": FED_SDP.mechanism @ FED_CDP,
}


def ledger(one: Mechanism, other: Mechanism) -> None:
    account = hs.Accountant()
    account.step(hs.Gaussian(9.0))
    account.step(one)
    account.step(other)


def resumed(one: Mechanism, other: Mechanism) -> None:
    account = hs.Accountant()
    account.step(one, count=2)
    hs.Accountant.from_state_dict(account.state_dict()).step(other)


PUT_TOGETHER: dict[str, Callable[[Any, Any], object]] = {
    "composed": lambda one, other: one @ other,
    "the other way": lambda one, other: other @ one,
    "repeated": lambda one, other: one**2 @ hs.Gaussian(2.0) @ (hs.Gaussian(3.0) @ other) ** 3,
    "stopped at random": lambda one, other: (
        one @ m.tuning.RandomStopping(other, m.tuning.Poisson(3.0))
    ),
    "split": lambda one, other: hs.Parallel((one, other)),
    "beside a split": lambda one, other: hs.Parallel((one, hs.Gaussian(1.0))) @ other,
    "recorded": ledger,
    "recorded after a rest": resumed,
}


@pytest.mark.parametrize("together", PUT_TOGETHER.values(), ids=PUT_TOGETHER)
@pytest.mark.parametrize(("one", "other", "must"), APART.values(), ids=APART)
def test_what_holds_for_nobody_is_refused(one: Any, other: Any, must: str, together: Any) -> None:
    with pytest.raises(IncompatibleError, match=f"^the parts of a (composition|split) must {must}"):
        together(one, other)


@pytest.mark.parametrize("plan", TOGETHER.values(), ids=TOGETHER)
def test_what_is_about_the_same_composes_and_says_what_about(plan: Composed) -> None:
    facts = [fact for part in plan.parts for fact in part.scope]
    assert set(plan.scope) == set(facts)
    assert len({fact.about for fact in plan.scope}) == len(plan.scope)


def test_a_refused_release_leaves_the_account_as_it_was() -> None:
    account = hs.Accountant()
    account.step(gossip(2))
    kept = repr(account)
    with pytest.raises(IncompatibleError):
        account.step(gossip(3))
    assert repr(account) == kept


@pytest.mark.parametrize(
    "around",
    [
        gossip(2) ** 3,
        m.RevealedSample(gossip(2), 0.5),
        m.RevealedRound(gossip(2) @ hs.Gaussian(2.0), 0.5),
        m.tuning.RandomStopping(gossip(2), m.tuning.Poisson(3.0)),
        hs.Parallel((gossip(2), hs.Gaussian(1.0))),
    ],
    ids=str,
)
def test_what_is_around_a_mechanism_states_what_it_states(around: Mechanism) -> None:
    assert Fact("party", 2) in around.scope
    assert Fact("adjacency", hs.Adjacency.REPLACE_ONE) in facts_of(around)
