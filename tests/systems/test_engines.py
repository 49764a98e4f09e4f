"""What carries messages: a loop and Flower's simulation engine run the same system bit by bit."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.systems.engine_runs import RUNS, asynchronous, counting, lost, ran
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def on_flower(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what all runs came to on Flower."""
    pytest.importorskip("ray")
    pytest.importorskip("flwr")
    path = tmp_path_factory.mktemp("runs") / "found"
    runs = [sys.executable, "-m", "tests.systems.engine_runs", str(path)]
    done = subprocess.run(runs, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = pickle.loads(path.read_bytes())
    return found


@pytest.mark.parametrize("run", [run for run in RUNS if run is not lost])
def test_a_seed_gives_the_same_numbers_on_flower_as_in_a_loop(
    run: Any, on_flower: dict[str, Any]
) -> None:
    looped = ran(run, "loop")
    np.testing.assert_equal(on_flower[run.__name__], looped)
    assert np.any(looped[0] != 0)
    if run is asynchronous:
        assert looped[2].sum() > 0


def told(answers: Any) -> Any:
    """Return answers as plain integers."""
    return [
        {client: {name: int(one) for name, one in own.items()} for client, own in found.items()}
        for found in answers
    ]


@pytest.mark.parametrize("engine", ["loop", "flower"])
def test_a_client_that_is_lost_keeps_what_it_had_and_errors_are_raised(
    engine: str, request: pytest.FixtureRequest
) -> None:
    looped = engine == "loop"
    answers, raised = ran(lost, "loop") if looped else request.getfixturevalue("on_flower")["lost"]
    assert "nothing to divide by" in raised
    assert told(answers) == [
        {1: {"asked": 1, "twice": 2}, 2: {"asked": 1, "twice": 2}},
        {2: {"asked": 2, "twice": 4}},
        {1: {"asked": 2, "twice": 6}, 2: {"asked": 3, "twice": 6}},
    ]


def test_what_the_server_raises_is_raised() -> None:
    def broken(ask: Any) -> None:
        raise ConnectionError("no server")

    with pytest.raises(ConnectionError, match="no server"):
        program("engines").carried("loop", broken, counting, 1)


WRONG: dict[str, Any] = {
    "nan": np.array([1.0, np.nan, 0.0]),
    "infinity": np.array([1.0, np.inf, 0.0]),
    "too short": np.ones(2),
    "a column": np.ones((3, 1)),
    "complex": np.ones(3, complex),
    "texts": np.array(["a", "b", "c"]),
    "objects": np.array([1.0, None, 2.0]),
    "nothing": None,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_client_that_answers_with_no_row_of_numbers_is_taken_for_lost(name: str) -> None:
    answers = {0: {"own": np.ones(3)}, 1: {"own": WRONG[name]}, 2: {}, 5: {"own": np.zeros(3)}}
    found = program("engines").rows_of(answers, "own", 3)
    assert list(found) == [0, 5]


@pytest.mark.parametrize("name", ["fed_cdp", "prifedsync"])
def test_servers_average_who_answers_rightly(name: str) -> None:
    """One client sends NaN each time: the mean is that of the others."""
    system = program(name)
    plan = system.planned() if name == "prifedsync" else system.planned("constant")
    field = {"prifedsync": "own", "fed_cdp": "model"}[name]
    asked = list[int]()

    def ask(sent: Any) -> Any:
        asked.extend(sent)
        if not any(sent.values()):
            return {}
        answers = {client: {field: np.full(4, float(client > 0))} for client in sent}
        return answers | {client: {field: np.full(4, np.nan)} for client in list(sent)[:1]}

    bits = program("shards").source(3)
    several = (4, system.CLIENTS, bits, ask) if name == "prifedsync" else (4, bits, ask)
    model = system.serve(plan, *several)[0]
    assert asked
    assert np.isfinite(model).all()


def test_a_client_and_the_server_have_words_of_their_own() -> None:
    """Words of 0 at the end of a seed change nothing in numpy: those of client 0, round 0."""
    source = program("shards").source
    first = {(whose, int(source(7, *whose)())) for whose in [(), (0,), (0, 0), (0, 1), (1, 0)]}
    assert len({word for _, word in first}) == 5
