"""Plans whose steps are listed one by one refuse more than can be listed, by name."""

import pytest

import hockeystick as hs
from hockeystick.mechanisms.training.schedules import MOST_STEPS

SCHEDULE = hs.schedules.Linear(end=0.5)


def federated(rounds: int) -> hs.federated.FedAlphaCDP:
    """A plan with so many rounds, each with noise of its own."""
    return hs.federated.FedAlphaCDP(
        noise_multiplier=15.0,
        total_clients=1000,
        clients_per_round=100,
        examples_per_client=50,
        batch_size=5,
        local_steps=100,
        rounds=rounds,
        sampling="poisson",
        schedule=SCHEDULE,
    )


@pytest.mark.parametrize("steps", [MOST_STEPS + 1, 10**15])
def test_more_steps_than_can_be_listed_are_refused_by_name(steps: int) -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^rounds must be at most 10,000,000"):
        federated(steps)
    plan = hs.DPSGD(noise_multiplier=2.0, rate=0.001, steps=steps)
    with pytest.raises(hs.errors.ParameterError, match=r"^steps must be at most 10,000,000"):
        _ = plan.noise_multipliers
    assert hs.epsilon(plan, 1e-5).upper > 0.0
