"""Asynchronous DP-SGD: interrupts within rounds, restarts from journals, growing batches."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.adapters.loop import Sampler
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


def made(path: Path, rows: Any, **changes: Any) -> Any:
    """Return one client of a plan without noise that draws all records."""
    system = program("asynchronous")
    plan = hs.DPSGD(noise_multiplier=0, examples=6, batch_size=6, steps=3, **changes)
    path.mkdir(exist_ok=True)
    return system.Clients(plan, [(rows, np.arange(6))], path, seed=2)


def answer(client: Any, kept: Any = None, **sent: Any) -> Any:
    told = {"dies": False, "cut": 3, "rate": 1.0, **sent}
    return client.answer(0, told, {} if kept is None else kept)["update"]


@pytest.mark.parametrize("place", range(6))
def test_a_record_moves_a_round_that_is_interrupted_by_its_own_gradient_alone(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn without it, the others are read with the models that they were read with before."""
    rng = np.random.default_rng(4)
    rows, model = rng.normal(size=(6, 65)), rng.normal(size=650) / 100
    sums = []
    for chosen in (np.arange(6), np.delete(np.arange(6), place)):
        client = made(tmp_path / str(len(chosen)), rows)
        monkeypatch.setattr(Sampler, "draw", lambda *_, own=chosen: own)
        sums.append(answer(client, within=model) * 6)
    assert 0.99 < np.linalg.norm(sums[0] - sums[1]) <= 1.0 + 1e-9


def test_a_killed_round_is_counted_and_never_run_again(tmp_path: Path) -> None:
    """What follows reads the journal anew, as a new process does."""
    rows, kept, reported = np.ones((6, 65)), dict[str, Any](), list[int]()
    for dies in (False, True, False):
        with pytest.raises(program("engines").LostError) if dies else nullcontext():
            answer(made(tmp_path / "client", rows), kept, dies=dies, restart=np.zeros(650))
        reported.append(int(made(tmp_path / "client", rows).answer(0, {}, kept)["counted"]))
    assert reported == [1, 2, 3]
    assert int(kept["sent"]) == 2
    with pytest.raises(hs.errors.BudgetExhausted):
        answer(made(tmp_path / "client", rows), kept)
