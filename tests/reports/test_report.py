"""`hs.report` makes the page that the command writes."""

import html
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.io import PlanFile, load_plan
from hockeystick.reports import Audit, Report
from tests.reports.conftest import DAY

pytest.importorskip("matplotlib", reason="reports need Matplotlib")
pytest.importorskip("jinja2", reason="reports need Jinja2")

FILE = PlanFile(
    plan=hs.RandomizedResponse(epsilon=0.5, categories=2),
    delta=1e-5,
    title="Nine",
    source="S",
    notes="N",
)


@pytest.fixture(scope="module")
def made() -> Report:
    return hs.report(FILE, title="Others", budget_epsilon=9, date=DAY)


def test_the_page_is_saved_and_its_plan_file_gives_the_answer_again(
    made: Report, tmp_path: Path
) -> None:
    text = made.save(tmp_path / "report.html").read_text("utf-8")
    assert text == made.html
    content = made.findings.subject.file_content
    assert content is not None
    assert html.escape(content.decode(), quote=False).splitlines()[0] in text.replace("&#34;", '"')
    kept = tmp_path / "plan.toml"
    kept.write_bytes(content)
    again = load_plan(kept)
    assert again == PlanFile(plan=FILE.plan, delta=1e-5, title="Others", source="S", notes="N")
    assert hs.epsilon(again.plan, delta=1e-5) == made.answer
    asked = "plan.toml --delta 1e-05 --at-most 9.0 -o report.html"
    assert made.findings.subject.commands[1] == f"hockeystick report {asked}"
    assert str(made.findings.decision) == "meets"


def test_the_scores_and_the_ledger_are_on_the_page(tmp_path: Path) -> None:
    took_part = np.arange(200) % 2 == 1
    scores = hs.audit.Scores(took_part.astype(float), took_part)
    ledger = hs.Ledger(tmp_path / "ledger.db", "census", hs.ZCDP(rho=5))
    made = hs.report(
        FILE.plan,
        delta=1e-6,
        audit=Audit(name="all", scores=scores),
        ledger=ledger,
        head=ledger.status.head,
    )
    assert made.findings.audited is not None
    assert made.findings.audited.is_refuted
    assert "census" in made.html
    assert len(made.findings.subject.commands) == 1
