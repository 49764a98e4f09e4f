"""The command `verify`, and `--verify` of the others: tables, JSON and exit statuses."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hockeystick import verifier
from tests.cli.conftest import Run

FLAGS = ("rate=0.01", "steps=1000", "noise_multiplier=1")
ASKED = ("epsilon", *FLAGS, "--delta", "1e-5")
SOLVED = ("solve", *FLAGS, "--parameter", "steps", "--epsilon", "2", "--delta", "1e-5")
UPPER = verifier.Check(claim="delta(1.5) <= 1e-05, remove", ball="[9e-6 +/- 2e-20]", holds=True)
LOWER = verifier.Check(claim="delta(1.4) >= 1e-05, remove", ball="[8e-6 +/- 2e-20]", holds=False)
VERIFIED = verifier.Verdict(status="verified", reason="", checks=(UPPER,))


@pytest.fixture
def answer(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "answer.json"
    path.write_text(run(*ASKED, "--json")[1], encoding="utf-8")
    return path


def in_words(out: str) -> str:
    return " ".join(out.split())


@pytest.mark.parametrize(
    ("judged", "exit_status"),
    [
        (VERIFIED, 0),
        (verifier.Verdict(status="refuted", reason="too large", checks=(UPPER, LOWER)), 1),
        (verifier.Verdict(status="not covered", reason="Skellam", checks=()), 3),
    ],
)
def test_each_verdict_has_its_exit_status_and_its_words(
    run: Run,
    answer: Path,
    monkeypatch: pytest.MonkeyPatch,
    judged: verifier.Verdict,
    exit_status: int,
) -> None:
    monkeypatch.setattr(verifier, "verify", lambda text: judged)
    assert run(*ASKED, "--verify")[0] == exit_status
    status, out, err = run("verify", str(answer), "-v")
    words = in_words(out)
    assert (status, err) == (exit_status, "")
    assert f"verdict {judged.status}: " in words
    assert judged.reason in words
    for check in judged.checks:
        said = "holds" if check.holds else "is false"
        assert f"{check.claim}: {said}, {check.ball}" in words


def test_what_is_verified_is_what_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []

    def verify(text: str) -> verifier.Verdict:
        seen.append(json.loads(text))
        return VERIFIED

    monkeypatch.setattr(verifier, "verify", verify)
    for asked in (ASKED, ("delta", *FLAGS, "--epsilon", "1"), SOLVED):
        printed = json.loads(run(*asked, "--verify", "--json")[1])
        handed = seen.pop()
        assert handed == {name: printed[name] for name in handed}
        assert {"schema", "description", "adjacency"} <= handed.keys()


def test_standard_input_and_a_report_hold_answers_too(
    run: Run, answer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = answer.read_bytes()
    monkeypatch.setattr(verifier, "verify", lambda text: VERIFIED)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    piped = run("verify", "-")
    page = tmp_path / "page.HTML"
    script = b'<script type="application/json" id="hockeystick-answer">'
    page.write_bytes(b"<!DOCTYPE html>" + script + text + b"</script>")
    shown = run("verify", str(page))
    direct = run("verify", str(answer))
    assert (piped[0], shown[0], direct[0]) == (0, 0, 0)
    for _, out, _ in (piped, shown, direct):
        assert "answer inside epsilon at most " in in_words(out)
