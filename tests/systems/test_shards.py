"""The digits are split as is said, and each client's records are its own."""

import numpy as np
import pytest

from hockeystick.release.samplers import secret_bits
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


@pytest.mark.parametrize("split", ["writer", "label", "even"])
def test_each_record_is_at_one_client_and_no_test_record_is(split: str) -> None:
    data = program("shards").digits(24, split, seed=3)
    rows = np.vstack([rows for rows, _ in data.clients] + [data.features])
    assert len({row.tobytes() for row in rows}) == len(rows)
    assert {len(labels) for _, labels in data.clients} == {59 - (split == "label")}
    assert data.records == len(rows) - 359
    kinds = np.mean([len(set(labels)) for _, labels in data.clients])
    assert (kinds < 4) == (split == "label")


def test_a_split_that_is_not_is_told() -> None:
    with pytest.raises(SystemExit, match="--split must be writer, label or even"):
        program("shards").digits(24, "nobody")


def test_gradients_are_those_of_the_loss() -> None:
    shards = program("shards")
    rng = np.random.default_rng(1)
    weights, rows, labels = rng.normal(size=40), rng.normal(size=(3, 4)), np.array([0, 7, 3])

    def loss(own: np.ndarray) -> np.ndarray:
        found = shards.probabilities(own, rows)[np.arange(3), labels]
        return np.asarray(-np.log(found))

    found = shards.gradients(weights, rows, labels)
    for place in range(40):
        moved = np.zeros(40)
        moved[place] = 1e-6
        slope = (loss(weights + moved) - loss(weights - moved)) / 2e-6
        assert found[:, place] == pytest.approx(slope, abs=1e-8)


def test_without_a_seed_noise_is_the_operating_systems_and_with_one_it_is_repeated() -> None:
    source = program("shards").source
    assert source(None) is secret_bits
    assert source(5)(4).tolist() == source(5)(4).tolist() != source(6)(4).tolist()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fed_sdp", {"noise_at": "server"}),
        ("fed_cdp", {"decay": "constant"}),
        ("prifedsync", {}),
        ("asynchronous", {"sizes": "constant"}),
        ("clustered", {}),
        ("shuffled", {}),
    ],
)
def test_a_private_run_is_as_accounted_too(name: str, settings: dict[str, str]) -> None:
    system = program(name)
    assert set(system.SYSTEM) == {"name", "paper", "algorithm", "command", "check"}
    outcome = system.run(None, **settings)
    assert outcome.checks
    assert all(outcome.checks.values())
    assert outcome.epsilon < 8.001


@pytest.mark.parametrize("name", ["fed_sdp", "shuffled"])
def test_a_program_says_what_came_out(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    system = program(name)
    monkeypatch.setattr("sys.argv", [name, "--seed", "3"])
    for changed in {"ROUNDS", "LOCAL"} & set(vars(system)):
        monkeypatch.setattr(system, changed, 3 if changed == "ROUNDS" else {"one": 1.0})
    system.main()
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3
    assert all("as accounted" in text and "NOT" not in text for text in shown)
