"""A client of Flower's that trains privately: its steps are those of its plan, and all counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError

pytest.importorskip("flwr")
pytest.importorskip("torch")

import torch
from flwr.app import ArrayRecord, Message, RecordDict

from hockeystick.adapters.flower import train_locally
from hockeystick.adapters.torch import Counting
from tests.adapters.torch.loops import Items, make_data

PLAN = hs.DPSGD(examples=40, batch_size=8, steps=10, noise_multiplier=2.0)


def _model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


def _message(*records: ArrayRecord) -> Message:
    sent = records or (ArrayRecord(_model().state_dict()),)
    content = RecordDict({f"arrays-{place}": one for place, one in enumerate(sent)})
    return Message(content, dst_node_id=7, message_type="train")


def _answer(journal: Path, message: Message | None = None, **options: Any) -> Any:
    model = torch.nn.Linear(3, 2)
    given = {
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "dataset": make_data(41),
        "plan": PLAN,
        "loss_fn": torch.nn.functional.cross_entropy,
        "steps": 4,
        "journal": journal,
    }
    return train_locally(message or _message(), **given | options)


def _counted(answer: Any) -> int:
    return int(answer.content["metrics"]["steps"])


def test_rounds_go_through_the_plan_and_stop_where_it_ends(tmp_path: Path) -> None:
    journal = tmp_path / "client"
    message = _message()  # whoever asks twice is answered and counted twice
    answers = [_answer(journal, message) for _ in range(3)]
    assert [_counted(answer) for answer in answers] == [4, 8, 10]
    with pytest.raises(BudgetExhausted, match="more steps than the 10 that are planned"):
        _answer(journal)
    assert journal.read_bytes().endswith(b"\n" + b"." * 10)


def test_what_leaves_is_the_weights_and_the_plans_number_of_examples(tmp_path: Path) -> None:
    answer = _answer(tmp_path / "client")
    (arrays,) = answer.content.array_records.values()
    found, sent = arrays.to_torch_state_dict(), _model().state_dict()
    assert {name: value.shape for name, value in found.items()} == {
        name: value.shape for name, value in sent.items()
    }
    assert not any(torch.equal(found[name], sent[name]) for name in sent)
    # The data set has 41 examples, which under add-remove is private.
    assert dict(answer.content["metrics"]) == {"num-examples": 40, "steps": 4}
    assert answer.metadata.src_node_id == 7


def test_a_client_that_is_killed_in_a_step_has_counted_it(tmp_path: Path) -> None:
    journal = tmp_path / "client"
    noise = "hockeystick.adapters.torch._loop.Private._noised"
    with patch(noise, side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        _answer(journal)
    assert _counted(_answer(journal, steps=1)) == 2


def test_rounds_go_on_with_the_ledger_that_the_first_one_charged(tmp_path: Path) -> None:
    ledger = hs.Ledger(tmp_path / "ledger.db", "client", hs.ZCDP(rho=9))
    rounds: dict[str, Any] = {"counting": Counting(ledger=ledger, key="all rounds")}
    answers = [_answer(tmp_path / "client", **rounds) for _ in range(3)]
    assert [_counted(answer) for answer in answers] == [4, 8, 10]
    with pytest.raises(BudgetExhausted):
        _answer(tmp_path / "client", **rounds)
    (reserved,) = ledger.history()[1:]
    assert reserved.mechanism == PLAN
    ledger.reservation("all rounds").commit()


def test_bad_input_is_refused_and_nothing_is_counted(tmp_path: Path) -> None:
    journal = tmp_path / "client"
    weights = ArrayRecord(_model().state_dict())
    with pytest.raises(ParameterError, match=r"^message must be one with one record"):
        _answer(journal, _message(weights, weights))
    with pytest.raises(ParameterError, match=r"^steps must be"):
        _answer(journal, steps=0)
    with pytest.raises(RuntimeError, match="size mismatch"):
        _answer(journal, _message(ArrayRecord(torch.nn.Linear(2, 2).state_dict())))
    assert not journal.exists()
    assert _counted(_answer(journal, steps=1)) == 1


class _Failing(Items):
    """Records one of which fails, and says so with what it holds."""

    def __getitem__(self, place: int) -> Any:
        raise ValueError("record of Alice, 1969")


def test_an_error_tells_the_server_nothing_of_the_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: Any) -> Any:
        raise KeyError("a label of Bob")

    for kind, options in (
        ("ValueError", {"dataset": _Failing(range(40))}),
        ("KeyError", {"loss_fn": failing}),
        ("ParameterError", {"dataset": ["Carol"] * 300}),
    ):
        with pytest.raises(IncompatibleError, match=f"failed, by {kind}") as caught:
            _answer(tmp_path / "client", **options)
        assert not any(name in str(caught.value) for name in ("Alice", "Bob", "Carol"))
        assert caught.value.__cause__ is None
    assert "record of Alice" in caplog.text
