"""What `hs.verify` takes, what it hands to the verifier, and what it refuses."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick import verifier
from hockeystick.answers import document, load_answer
from hockeystick.errors import AnswerError
from hockeystick.verifier import plans
from hockeystick.verifier.answers import parsed, values
from hockeystick.verifier.balls import NotCovered

PLAN = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1)
ANSWER = hs.epsilon(PLAN, delta=1e-5)
TOLD = document(ANSWER, PLAN, delta=1e-5)
PAGE = '<html><script type="application/json" id="hockeystick-answer">{}</script></html>'


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []

    def verify(text: str) -> verifier.Verdict:
        seen.append(json.loads(text))
        return verifier.Verdict(status="verified", reason="", checks=())

    monkeypatch.setattr(verifier, "verify", verify)
    return seen


def test_every_form_of_an_answer_is_handed_over_as_the_same_document(
    handed: list[Any], tmp_path: Path
) -> None:
    text = json.dumps(TOLD, indent=2)
    as_json = tmp_path / "answer.json"
    as_json.write_text(text, encoding="utf-8")
    hs.verify(ANSWER, PLAN, delta=1e-5)
    for form in (TOLD, text, as_json, str(as_json)):
        assert hs.verify(form).status == "verified"
    assert handed == [TOLD] * 5


def test_a_file_is_read_once_and_never_taken_for_the_name_of_another(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text("answer.json", encoding="utf-8")
    with pytest.raises(AnswerError, match="must be an object in JSON"):
        hs.verify(path)


UNREADABLE: list[tuple[str | bytes, str]] = [
    ("", "an answer must be an object in JSON"),
    ("nowhere.json", "cannot read nowhere.json: No such file or directory"),
    ("no\0where", "cannot read no"),
    (".", "cannot read .: Is a directory"),
    (b"\xff\xfe", "cannot read the answer: 'utf-8' codec"),
    (b"delta = 1e-5", "an answer must be an object in JSON"),
    ("<html></html>", "answer"),
    (PAGE.replace("{}", "[]"), "an answer must be an object in JSON"),
]


@pytest.mark.parametrize(("source", "said"), UNREADABLE)
def test_what_holds_no_answer_is_one_clear_line(source: str | bytes, said: str) -> None:
    with pytest.raises(AnswerError) as caught:
        load_answer(source)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_what_has_no_end_is_not_read() -> None:
    with pytest.raises(AnswerError, match="cannot read"):
        load_answer("/dev/zero")


@pytest.mark.parametrize("noise", [3, math.inf])
@pytest.mark.parametrize("clients", [8, 40])
@pytest.mark.parametrize("sampling", ["poisson", "fixed-size"])
@pytest.mark.parametrize("adjacency", list(hs.Adjacency))
def test_a_round_of_clients_loses_in_the_verifier_what_it_loses_here(
    adjacency: hs.Adjacency, sampling: str, clients: int, noise: float
) -> None:
    plan = hs.federated.FedSDP(
        noise_multiplier=noise,
        total_clients=clients,
        clients_per_round=8,
        rounds=200,
        sampling=sampling,
        adjacency=adjacency,
    )
    if (adjacency, sampling, clients) == ("zero-out", "fixed-size", 40):
        with pytest.raises(NotCovered, match="under zero-out"):
            plans.run_of(plans.client_round(described(plan)))
        return
    ours, theirs = described(plan.mechanism)["inner"], plans.client_round(described(plan))
    sampled = clients > 8 and noise < math.inf
    told = values if sampled else plans.run_of
    assert repr(told(ours)) == repr(told(theirs))


def described(plan: hs.Mechanism) -> Any:
    """A plan as the verifier reads it from an answer."""
    found = replace(hs.delta(hs.Gaussian(1), epsilon=9), adjacency=plan.adjacency)
    return parsed(json.dumps(document(found, plan, epsilon=9)))["description"]
