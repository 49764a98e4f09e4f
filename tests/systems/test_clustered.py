"""Private clustered federated learning: clusters are found, and every message is accounted for."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from tests.release.bits import seeded
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


def test_two_hypotheses_find_both_kinds_of_clients_with_noise_and_without() -> None:
    system = program("clustered")
    found = {setting: system.run(1, setting=setting) for setting in system.SETTINGS}
    errors = {setting: outcome.result["rmse"] for setting, outcome in found.items()}
    assert all(outcome.checks == {"messages": True} for outcome in found.values())
    assert errors["two hypotheses, no noise"] < 0.62
    assert errors["within distance 2"] < 0.8
    assert errors["three hypotheses, within distance 2"] < 1.2
    assert errors["whatever the data"] < 1.3
    for setting in ("one hypothesis, no noise", "one hypothesis, whatever the data"):
        assert errors[setting] > 4
    costs = {setting: outcome.epsilon for setting, outcome in found.items()}
    assert costs["within distance 2"] == pytest.approx(2.0, rel=1e-12)
    assert costs["whatever the data"] == pytest.approx(8.0, rel=1e-12)
    assert costs["as published"] == costs["two hypotheses, no noise"] == float("inf")


def federation(setting: str, data: Any, bits: Any) -> Any:
    """Return the server at its beginning."""
    system = program("clustered")
    first = np.array([[0.0, 1.0], [0.0, -1.0]])
    return system.Federation(system.planned(setting), first, data, 3, bits)


def test_whatever_the_data_messages_differ_by_no_more_than_the_radius() -> None:
    """The noise of the same bits cancels: it depends on no data."""
    system = program("clustered")
    points = np.random.default_rng(1).normal(size=(1, 10, 2))
    values = [np.full((1, 10), size) for size in (0.0, 1e9, -1e9)]
    sent = [
        federation("whatever the data", (points, own, None), seeded(3)).update(0, "public")
        for own in values
    ]
    radius = system.planned("whatever the data").radius
    distances = [float(np.linalg.norm(one - other)) for one, other in pairwise(sent)]
    assert max(distances) == pytest.approx(radius, rel=1e-6)
    assert max(distances) <= radius * (1 + 1e-6)  # rounded to the grid of the noise


def test_the_published_noise_tells_the_length_of_the_update() -> None:
    """A client whose data the hypothesis fits already sends its parameters as they are."""
    points = np.random.default_rng(1).normal(size=(1, 10, 2))
    fitted = points @ np.array([0.0, 1.0])
    sent = federation("as published", (points, fitted, None), seeded(3)).update(0, "published")
    assert sent == pytest.approx([0.0, 1.0], abs=1e-9)
    far = federation("as published", (points, fitted + 100, None), seeded(3)).update(0, "published")
    assert np.linalg.norm(far - [0.0, 1.0]) > 1


def test_each_client_takes_part_as_often_as_it_is_accounted_for() -> None:
    system = program("clustered")
    data = system.people(10, np.random.default_rng(2))
    server = federation("within distance 2", data, seeded(4))
    for _ in range(5):
        server.round(4, "hypothesis")
    assert server.sent.tolist() == [1] * 10
    assert hs.epsilon(server.plan, 0).upper == pytest.approx(2.0, rel=1e-12)
