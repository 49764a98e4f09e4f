import re
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.numerics.numerals import at_most
from tests.cli.conftest import Run, Write
from tests.reports.conftest import words_of

pytest.importorskip("matplotlib", reason="reports need Matplotlib")
pytest.importorskip("jinja2", reason="reports need Jinja2")


PLAN = "title = 'Nine queries'\ndelta = 1e-5\n[dpsgd]\nrate = 1\nsteps = 9\nnoise_multiplier = 4\n"
NINE = hs.DPSGD(rate=1, steps=9, noise_multiplier=4)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "report.html"


def test_a_plan_file_becomes_a_page(
    run: Run, write: Write, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = write(PLAN)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1769817600")
    status, said, err = run("report", plan, "-o", str(out))
    answer = hs.epsilon(NINE, delta=1e-5)
    assert (status, err) == (0, "")
    assert "".join(f"written to {out} answer {answer}".split()) in "".join(said.split())
    words = words_of(out.read_text("utf-8"))
    assert f"epsilon ≤ {at_most(answer.upper, 4)} at delta = 1e-05" in words
    assert "Nine queries" in words
    assert "2026-01-31" in words
    assert f"hockeystick epsilon {plan} --delta 1e-05" in words
    assert PLAN.replace("\n", " ").strip() in words


def test_an_audit_that_refutes_the_plan_ends_with_status_1(
    run: Run, write: Write, out: Path, tmp_path: Path
) -> None:
    scores = tmp_path / "scores.csv"
    rows = [f"{number % 2 + number / 1e4},{number % 2}" for number in range(400)]
    scores.write_text("score,included\n" + "\n".join(rows), encoding="utf-8")
    given = ("report", write(PLAN), "-o", str(out), "--audit", str(scores))
    status, said, err = run(*given, "--confidence", "0.9")
    assert (status, err) == (1, "")
    assert "audit refuted with confidence 0.9: " in " ".join(said.split())
    words = words_of(out.read_text("utf-8"))
    assert "Refuted with confidence 0.9: what ran is not what the plan describes." in words


def test_a_page_can_be_verified_later(run: Run, write: Write, out: Path) -> None:
    assert run("report", write(PLAN), "-o", str(out))[0] == 0
    words = words_of(out.read_text("utf-8"))
    assert "not checked" in words
    assert "this was not asked for" in words
    status, said, _ = run("verify", str(out))
    assert status == 0
    said = " ".join(said.split())
    text = out.read_text(encoding="utf-8")
    epsilon = re.findall(r"epsilon is at most ([\d.]+\d)", text)[0]
    out.write_text(text.replace(epsilon, "0.125"), encoding="utf-8")
    status, said, _ = run("verify", str(out))
    assert status == 0
    assert f"answer inside epsilon at most {epsilon} at delta = 1e-05" in " ".join(said.split())
    halved = re.sub(r'("(?:lower|upper)":)[\d.]+', r"\g<1>0.125", text)
    out.write_text(halved, encoding="utf-8")
    assert run("verify", str(out))[0] == 1
    assert hs.verify(out).status == "refuted"


def test_an_entry_of_the_registry_needs_no_page(run: Run, write: Write, out: Path) -> None:
    entry = out.with_suffix(".yaml")
    plan = write(PLAN)
    status, said, err = run("report", plan, "-o", str(entry))
    answer = hs.epsilon(NINE, delta=1e-5)
    text = entry.read_text(encoding="utf-8")
    assert (status, err) == (0, "")
    blanks = f"blanks {text.count('to be filled in: ')} to be filled in"
    assert " ".join(said.split()).endswith(blanks)
    assert text == hs.answers.registration(answer, NINE, delta=1e-5, title="Nine queries")
    status, said, _ = run("report", plan, "-o", str(entry), "--force", "--at-most", "0.01")
    assert status == 1
    assert "epsilon at most 0.01" in " ".join(said.split())
