"""What three steps or rounds of torch, Opacus and Flower left on disks is gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("torch")
pytest.importorskip("opacus")
pytest.importorskip("flwr")

import torch
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.serverapp import NeighboringRelation, PrivacyConfig, SamplingMethod
from torch.nn.functional import cross_entropy

import hockeystick as hs
from hockeystick.adapters import flower, opacus
from hockeystick.adapters.torch import Counting, make_correlated, make_private
from hockeystick.errors import ParameterError
from tests.adapters.flower.clients import server
from tests.corpus.kept import CLIENTS, STEPS, STORED

pytestmark = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:PrivacyEngine detected new dataset"),
]
CYCLIC: Final = hs.mechanisms.CyclicPoisson(
    2.0, (1.0, 0.5), rounds=8, cycle=2, rate=0.5, adjacency="zero-out"
)
CONFIG: Final = PrivacyConfig(
    1e-5, 10, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION
)


def material() -> tuple[Any, Any, Any]:
    """Return a model, its optimizer and a data set; equal ones each time."""
    model = torch.nn.Linear(2, 2)
    for value in model.parameters():
        torch.nn.init.zeros_(value)
    records = torch.ones(60, 2), torch.zeros(60, dtype=torch.long)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, torch.utils.data.TensorDataset(*records)


def loop(folder: Path) -> Any:
    return make_private(*material(), STEPS, counting=Counting(checkpoint=folder / "torch.pt"))


def correlated_loop(folder: Path) -> Any:
    return make_correlated(
        *material(), CYCLIC, batch_size=15, journal=folder / "correlated.journal"
    )


def engine_on_ledger(folder: Path) -> tuple[opacus.PrivacyEngine, Any]:
    ledger = hs.Ledger(folder / "opacus.db", "census", hs.RenyiDP({4.0: 5.0}))
    made, (model, optimizer, dataset) = opacus.PrivacyEngine(), material()
    return made, made.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=torch.utils.data.DataLoader(dataset, batch_size=15),
        noise_multiplier=2.0,
        max_grad_norm=1.0,
        ledger=ledger,
        key="model",
        steps=8,
        journal=folder / "opacus.journal",
    )


def strategy(folder: Path) -> Any:
    plan = hs.federated.FedSDP(**CLIENTS, sampling="poisson")
    return flower.PrivateFedAvg(plan, clipping_norm=1.0, journal=folder / "flower-server.journal")


def answer(folder: Path, steps: int) -> Any:
    model, optimizer, dataset = material()
    with server():
        arrays = RecordDict({"arrays": ArrayRecord(model.state_dict())})
        return flower.train_locally(
            Message(arrays, dst_node_id=7, message_type="train"),
            model=model,
            optimizer=optimizer,
            dataset=dataset,
            plan=STEPS,
            loss_fn=cross_entropy,
            steps=steps,
            journal=folder / "flower-client.journal",
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORED, tmp_path / "kept"))


def stored(name: str) -> Any:
    return json.loads((STORED / name).read_text())


def test_a_checkpoint_and_its_journal_are_gone_on_with(folder: Path) -> None:
    private = loop(folder)
    private.load()
    assert private.steps == 3
    assert bool(private.model.weight.any())
    private.save()
    private.close(final=False)
    again = loop(folder)
    again.load()
    assert torch.equal(again.model.weight, private.model.weight)


def test_a_checkpoint_cut_anywhere_is_refused(folder: Path) -> None:
    whole, path = (folder / "torch.pt").read_bytes(), folder / "cut.pt"
    model, optimizer, dataset = material()
    private = make_private(model, optimizer, dataset, STEPS, counting=Counting(checkpoint=path))
    for cut in {*range(64), *range(64, len(whole), 61), len(whole) - 1}:
        path.write_bytes(whole[:cut])
        with pytest.raises(ParameterError, match=r"^checkpoint must be a file that private.save"):
            private.load()
    assert not model.weight.any()


def test_correlated_noise_is_gone_on_with(folder: Path) -> None:
    private = correlated_loop(folder)
    found = torch.load(folder / "correlated.pt", weights_only=True)
    private.model.load_state_dict(found["model"])
    private.load_state_dict(found["private"])
    private.step(cross_entropy)
    assert private.steps == 4


def test_steps_of_opacus_go_on_with_their_journal_and_ledger(folder: Path) -> None:
    engine, _ = engine_on_ledger(folder)
    assert engine.counted == 3
    engine.close()
    ledger = hs.Ledger(folder / "opacus.db", "census")
    assert (len(ledger.history()), ledger.status.unresolved) == (3, 0)


def test_rounds_of_flower_go_on_with_their_journals(folder: Path) -> None:
    assert strategy(folder).counted == 3
    assert answer(folder, 2).content["metrics"]["steps"] == 5


def test_accountants_go_on_from_their_states() -> None:
    rounds, steps = flower.HockeystickAccountant(CONFIG), opacus.HockeystickAccountant()
    rounds.load_state_dict(stored("flower.json"))
    steps.load_state_dict(stored("opacus.json"))
    assert (rounds.num_releases, len(steps)) == (3, 3)
