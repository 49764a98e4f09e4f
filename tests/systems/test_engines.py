"""What carries messages, how digits are split, random words, and reports that are shuffled."""

from typing import Any

import numpy as np
import pytest

from hockeystick.release.samplers import secret_bits
from tests.release.bits import seeded
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


def counting(client: int, sent: Any, kept: Any) -> Any:
    """Return how often a client was asked, twice what it was sent; one is lost, one is wrong."""
    kept["asked"] = kept.get("asked", np.array(0)) + 1
    if client == 1 and sent["turn"] == 2:
        raise program("engines").LostError
    if sent["turn"] == 4:
        raise ZeroDivisionError("nothing to divide by")
    return {"asked": kept["asked"], "twice": 2 * np.asarray(sent["turn"])}


def test_a_client_that_is_lost_keeps_what_it_had_and_errors_are_raised() -> None:
    engines = program("engines")
    answers = list[Any]()

    def asks(ask: Any) -> None:
        for turn in (1, 2, 3, 4):
            found = ask(engines.alike([2, 1], turn=turn))
            answers.append({k: (int(v["asked"]), int(v["twice"])) for k, v in found.items()})

    with pytest.raises(ZeroDivisionError, match="nothing to divide by"):
        engines.carried("loop", asks, counting, 3)
    assert answers == [{1: (1, 2), 2: (1, 2)}, {2: (2, 4)}, {1: (2, 6), 2: (3, 6)}]


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

    bits = program("digits").source(3)
    several = (4, system.CLIENTS, bits, ask) if name == "prifedsync" else (4, bits, ask)
    model = system.serve(plan, *several)[0]
    assert asked
    assert np.isfinite(model).all()


def test_a_client_and_the_server_have_words_of_their_own() -> None:
    """Words of 0 at the end of a seed change nothing in numpy: those of client 0, round 0."""
    source = program("digits").source
    first = {(whose, int(source(7, *whose)())) for whose in [(), (0,), (0, 0), (0, 1), (1, 0)]}
    assert len({word for _, word in first}) == 5


@pytest.mark.parametrize("split", ["writer", "label", "even"])
def test_each_record_is_at_one_client_and_no_test_record_is(split: str) -> None:
    data = program("digits").shards(24, split, seed=3)
    rows = np.vstack([rows for rows, _ in data.clients] + [data.features])
    assert len({row.tobytes() for row in rows}) == len(rows)
    assert {len(labels) for _, labels in data.clients} == {59 - (split == "label")}
    assert data.records == len(rows) - 359
    kinds = np.mean([len(set(labels)) for _, labels in data.clients])
    assert (kinds < 4) == (split == "label")


def test_without_a_seed_noise_is_the_operating_systems_and_with_one_it_is_repeated() -> None:
    source = program("digits").source
    assert source(None) is secret_bits
    assert source(5)(4).tolist() == source(5)(4).tolist() != source(6)(4).tolist()


@pytest.mark.parametrize("local", [0.5, 2.0])
def test_a_report_is_true_as_often_as_the_mechanism_says(local: float) -> None:
    """Each category e^epsilon times as likely from its own holder as from any other."""
    system = program("shuffled")
    shares = []
    for category in (3, 4):
        held = np.full(200_000, category)
        shown = system.reported(system.planned(local, len(held)), held, seeded(category))
        shares.append((shown == 3).mean())
    assert shares[0] / shares[1] == pytest.approx(np.exp(local), rel=0.05)
