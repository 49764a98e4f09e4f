"""What is said of plans whose numbers look like another plan's."""

from typing import Any

import pytest

import hockeystick as hs
from hockeystick.answers.cautions import cautions_of_plan

CLIENTS: Any = {"total_clients": 1000, "clients_per_round": 50, "rounds": 9, "sampling": "poisson"}
TRAINING = hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (hs.Laplace(0.1) ** 3, "a scale of 0.1 is epsilon 10 in one release; epsilon 0.1 is a sc"),
        (hs.federated.FedSDP(noise_multiplier=0.02, **CLIENTS), "first, here 0.02 times 50."),
        (hs.RandomizedResponse(0.75), "write RandomizedResponse(log(0.75 / (1 - 0.75))) in its"),
        (
            hs.mechanisms.MatrixFactorization(
                5, hs.mechanisms.Encoder.tree(2048, participations=4, separation=1024)
            ),
            "only 2 of 4 participations fit into 2,048 rounds, 1,024 rounds apart.",
        ),
        (
            hs.mechanisms.MatrixFactorization(
                2, hs.mechanisms.Encoder.square_root(1000, bands=16, participations=4)
            ),
            "a participant may take part in neighbouring rounds: with separation=16, as many as "
            "bands, it costs less; say it where participations are that far apart.",
        ),
        (
            hs.mechanisms.MatrixFactorization(
                2,
                hs.mechanisms.Encoder.toeplitz([1, 0.5, 0.375], 5, participations=2, separation=2),
            ),
            "a participant may take part again 2 rounds later: with separation=3, as many as",
        ),
        (
            hs.mechanisms.MatrixFactorization(
                5, hs.mechanisms.Encoder.square_root(3, participations=4)
            ),
            "only 3 of 4 participations fit into 3 rounds, 1 round apart.",
        ),
        (hs.DiscreteLaplace(0.2, 3), "is epsilon 15 in one release; epsilon 0.2 is a scale of 15"),
        (
            hs.mechanisms.TreeAggregation(1024, 5),
            "way round, TreeAggregation(noise_multiplier=5, leaves",
        ),
    ],
)
def test_numbers_that_look_like_another_are_doubted(plan: hs.Mechanism, said: str) -> None:
    (found,) = cautions_of_plan(plan @ hs.Gaussian(4))
    assert said in found.text


@pytest.mark.parametrize(
    "plan",
    [
        hs.Laplace(0.21),
        hs.RandomizedResponse(0.5),
        hs.RandomizedResponse(1),
        hs.mechanisms.MatrixFactorization(
            5, hs.mechanisms.Encoder.tree(2048, participations=2, separation=2047)
        ),
        # As far apart as there are bands; and as many bands do not fit between them.
        hs.mechanisms.MatrixFactorization(
            2, hs.mechanisms.Encoder.square_root(99, bands=16, participations=4, separation=16)
        ),
        hs.mechanisms.MatrixFactorization(
            2, hs.mechanisms.Encoder.square_root(48, bands=16, participations=4)
        ),
        hs.mechanisms.MatrixFactorization(2, hs.mechanisms.Encoder.square_root(99, bands=16)),
        hs.federated.FedSDP(noise_multiplier=0.1, **CLIENTS),
        hs.federated.FedSDP(noise_multiplier=0, **CLIENTS),
        hs.Laplace(0),
        hs.mechanisms.TreeAggregation(99, 5),
        hs.mechanisms.TreeAggregation(1000, 1000),
        hs.mechanisms.TreeAggregation(1000, 0),
        hs.mechanisms.TreeAggregation(float("inf"), 5),
    ],
)
def test_usual_numbers_are_not_doubted(plan: hs.Mechanism) -> None:
    assert cautions_of_plan(plan) == ()
