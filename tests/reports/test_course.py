"""The stages of a plan are plans: prefixes of what it releases."""

from itertools import pairwise
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.reports import course_of

LOCAL = hs.federated.LocalTraining(examples=600, batch_size=16, noise_multiplier=2, local_steps=4)
CLIENTS: dict[str, Any] = {"total_clients": 100, "clients_per_round": 10, "rounds": 3}
CLIENTS["noise_multiplier"] = 4
RECORDS: dict[str, Any] = {**CLIENTS, "examples_per_client": 50, "batch_size": 5, "local_steps": 2}
DECAY = hs.schedules.Linear(end=0.5)
OF_EPOCHS: dict[str, Any] = {"examples": 1000, "batch_size": 100, "noise_multiplier": 2}

PLANS = [
    (hs.Laplace(scale=10) ** 5, "runs", [1, 2, 3, 4, 5]),
    (hs.DPSGD(**OF_EPOCHS, steps=30), "epochs", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, epochs=0.3), "steps", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, steps=3, schedule=DECAY), "steps", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, steps=3, batch_schedule=DECAY), "steps", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, epochs=3, sampling="shuffle", adjacency="replace-one"), "epochs", None),
    (hs.federated.FedSDP(**CLIENTS, sampling="poisson"), "rounds", [1, 2, 3]),
    (hs.federated.FedCDP(**RECORDS, sampling="poisson"), "rounds", [1, 2, 3]),
    (hs.federated.FedAlphaCDP(**RECORDS, sampling="poisson", schedule=DECAY), "rounds", [1, 2, 3]),
    (hs.federated.PriFedSync(clients=LOCAL, rounds=2), "rounds", [1, 2]),
    (hs.Gaussian(8) @ hs.Gaussian(9) ** 3 @ hs.Laplace(30) ** 2, "runs", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, epochs=3, extra=hs.Gaussian(9)), "epochs", [1, 2, 3]),
]


@pytest.mark.parametrize(("plan", "unit", "after"), PLANS)
def test_the_last_stage_costs_what_the_plan_does_and_no_stage_less_than_one_before(
    plan: hs.Mechanism, unit: str, after: list[int] | None
) -> None:
    course = course_of(plan, 10)
    assert course is not None
    assert course.unit == unit
    if after is not None:
        assert [count for count, _ in course.stages] == after
    answers = [hs.epsilon(stage, delta=1e-5, tolerance=0.1) for _, stage in course.stages]
    whole = hs.epsilon(plan, delta=1e-5, tolerance=0.1)
    assert answers[-1].upper == pytest.approx(whole.upper, rel=1e-9)
    assert answers[-1].lower <= whole.upper
    for before, now in pairwise(answers):
        assert before.lower <= now.upper
        assert before.estimate < now.estimate
