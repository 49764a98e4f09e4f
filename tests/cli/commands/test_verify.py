"""The command `verify`, and `--verify` of the others: tables, JSON and exit statuses."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from hockeystick import verifier

Run = Callable[..., tuple[int, str, str]]
Write = Callable[[str | bytes], str]

FLAGS = ("rate=0.01", "steps=1000", "noise_multiplier=1")
ASKED = ("epsilon", *FLAGS, "--delta", "1e-5")
SOLVED = ("solve", *FLAGS, "--parameter", "steps", "--epsilon", "2", "--delta", "1e-5")
PLAN = "delta = 1e-5\n[dpsgd]\nrate = 0.01\nsteps = 1000\nnoise_multiplier = 1\n"
UPPER = verifier.Check(claim="delta(1.5) <= 1e-05, remove", ball="[9e-6 +/- 2e-20]", holds=True)
LOWER = verifier.Check(claim="delta(1.4) >= 1e-05, remove", ball="[8e-6 +/- 2e-20]", holds=False)
VERDICTS = {
    "verified": (0, verifier.Verdict(status="verified", reason="", checks=(UPPER,))),
    "refuted": (
        1,
        verifier.Verdict(
            status="refuted", reason="the lower end is too large", checks=(UPPER, LOWER)
        ),
    ),
    "not covered": (
        3,
        verifier.Verdict(status="not covered", reason="Skellam has no definition", checks=()),
    ),
}


@pytest.fixture(params=VERDICTS)
def judged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> verifier.Verdict:
    """Each verdict in turn, whatever is asked."""
    _, verdict = VERDICTS[request.param]
    monkeypatch.setattr(verifier, "verify", lambda text: verdict)
    return verdict


@pytest.fixture
def answer(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "answer.json"
    path.write_text(run(*ASKED, "--json")[1], encoding="utf-8")
    return path


def status_of(verdict: verifier.Verdict) -> int:
    return VERDICTS[verdict.status][0]


def in_words(out: str) -> str:
    return " ".join(out.split())


def test_each_verdict_has_its_exit_status_and_its_words(
    run: Run, answer: Path, judged: verifier.Verdict
) -> None:
    status, out, err = run("verify", str(answer), "-v")
    words = in_words(out)
    assert (status, err) == (status_of(judged), "")
    assert f"verdict {judged.status}: " in words
    assert judged.reason in words
    for check in judged.checks:
        assert f"{check.claim} {check.ball} {'yes' if check.holds else 'no'}" in words


@pytest.mark.parametrize("asked", [ASKED, ("delta", *FLAGS, "--epsilon", "1"), SOLVED])
def test_an_answer_is_printed_with_what_the_verifier_says_of_it(
    run: Run, judged: verifier.Verdict, asked: tuple[str, ...]
) -> None:
    _, alone, _ = run(*asked)
    status, out, err = run(*asked, "--verify")
    assert (status, err) == (status_of(judged), "")
    assert out.startswith(alone)
    assert f"verdict {judged.status}: " in in_words(out.removeprefix(alone))


def test_what_is_verified_is_what_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []

    def verify(text: str) -> verifier.Verdict:
        seen.append(json.loads(text))
        return VERDICTS["verified"][1]

    monkeypatch.setattr(verifier, "verify", verify)
    for asked in (ASKED, SOLVED):
        printed = json.loads(run(*asked, "--verify", "--json")[1])
        handed = seen.pop()
        assert handed == {name: printed[name] for name in handed}
        assert {"schema", "description", "adjacency"} <= handed.keys()


def test_standard_input_and_a_report_hold_answers_too(
    run: Run, answer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = answer.read_bytes()
    monkeypatch.setattr(verifier, "verify", lambda text: VERDICTS["verified"][1])
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
    assert "its visible text is not looked at" in in_words(shown[1])


WRONG = [
    ((), "Missing argument 'FILE'"),
    (("nowhere.json",), "cannot read nowhere.json: No such file or directory"),
    (("nowhere.toml",), "nowhere.toml"),
    ((".",), "cannot read .: Is a directory"),
    (("ANSWER", "--delta", "1e-5"), "No such option"),
    (("ANSWER", "--verify"), "No such option"),
    (("BROKEN",), ""),
    (("FOREIGN",), "schema"),
    (("BINARY",), "it is no text in UTF-8"),
    (("PAGE.pdf",), "cannot read PAGE.pdf: it is no text in UTF-8"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_wrong_input_is_one_line_and_no_verdict(
    run: Run,
    answer: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    content = answer.read_bytes()
    (tmp_path / "ANSWER").write_bytes(content)
    (tmp_path / "BROKEN").write_bytes(content[:-40])
    (tmp_path / "FOREIGN").write_bytes(content.replace(b"-answer/1", b"-answer/99"))
    (tmp_path / "BINARY").write_bytes(b"{\xff}")
    (tmp_path / "PAGE.pdf").write_bytes(b"%PDF-1.7\n\xff")
    (tmp_path / "PLAN.toml").write_text(PLAN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    status, out, err = run("verify", *arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert err.startswith("hockeystick: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("asked", [ASKED, SOLVED, ("verify", "nowhere.json")])
def test_without_python_flint_it_says_what_to_install_before_anything_else(
    run: Run, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    given = asked if asked[0] == "verify" else (*asked, "--verify")
    status, out, err = run(*given)
    assert (status, out) == (2, "")
    assert err == "hockeystick: verifying needs python-flint: install hockeystick[verify]\n"
