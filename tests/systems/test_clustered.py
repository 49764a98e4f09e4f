"""Private clustered federated learning: clusters are found, and every message is accounted for."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


def message(setting: str, points: Any, values: Any, folder: Path) -> Any:
    """Return what a client sends in the first round, always with the same bits."""
    system = program("clustered")
    folder.mkdir()
    _, center, _, _, epochs = system.SETTINGS[setting]
    clients = system.Clients(system.planned(setting), center, points, values, epochs, 3, folder)
    hypotheses = np.array([[0.0, 1.0], [0.0, -1.0]])
    return clients.answer(0, {"hypotheses": hypotheses, "round": 0}, {})["message"]


def test_whatever_the_data_messages_differ_by_no_more_than_the_radius(tmp_path: Path) -> None:
    """The noise of the same bits cancels: it depends on no data."""
    system = program("clustered")
    points = np.random.default_rng(1).normal(size=(1, 10, 2))
    values = [np.full((1, 10), size) for size in (0.0, 1e9, -1e9)]
    sent = [
        message("whatever the data", points, own, tmp_path / str(place))
        for place, own in enumerate(values)
    ]
    radius = system.planned("whatever the data").radius
    distances = [float(np.linalg.norm(one - other)) for one, other in pairwise(sent)]
    assert max(distances) == pytest.approx(radius, rel=1e-6)
    assert max(distances) <= radius * (1 + 1e-6)  # rounded to the grid of the noise


def test_a_client_sends_no_more_messages_than_its_journal_allows(tmp_path: Path) -> None:
    """Also in a new process that has its journal alone; a message is counted before it is made."""
    system = program("clustered")
    points, values, _ = system.people(1, np.random.default_rng(2))
    plan, sent = system.planned("within distance 2"), {"hypotheses": system.begun(2), "round": 0}
    made = [
        system.Clients(plan, "hypothesis", points, values, 3, 3, tmp_path).answer(0, sent, {})
        for _ in range(3)
    ]
    assert [list(answer) for answer in made] == [["message"], [], []]
    (tmp_path / "client-0.journal").unlink()
    with pytest.raises(TypeError, match="has no len"):
        system.Clients(plan, "hypothesis", points, [3.0], 3, 3, tmp_path).answer(0, sent, {})
    client = system.Clients(plan, "hypothesis", points, values, 3, 3, tmp_path)
    assert client.answer(0, sent, {}) == {}
