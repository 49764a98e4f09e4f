"""`hs.report` makes the page that the command writes; what it says is what the library answers."""

import html
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.io import PlanFile, load_plan
from hockeystick.reports import Audit, Findings, Report, Subject, investigate, page
from hockeystick.reports.findings import remedies
from tests.reports.conftest import DAY, TRAINING

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


@pytest.mark.parametrize(("deviation", "refuted"), [(0.4, True), (1.0, False)])
def test_the_page_says_whether_an_audit_refutes_the_plan(deviation: float, refuted: bool) -> None:
    included = np.arange(800) % 2 == 0
    scores = np.random.default_rng(5).normal(included.astype(float), deviation)
    audit = Audit(name="scores.csv", scores=hs.audit.Scores(scores, included))
    findings = investigate(Subject(plan=hs.Gaussian(1.0), delta=1e-5, audit=audit))
    assert findings.audited is not None
    assert findings.audited.is_refuted is refuted
    text = " ".join(page(findings, DAY).split())
    assert ("Do not rely on this answer" in text) is refuted
    assert ('<strong class="bad">refuted</strong> with confidence 0.95' in text) is refuted
    assert ("do not contradict the plan. This is no proof of privacy" in text) is not refuted
    assert "scores.csv: 400 in, 400 out" in text


def test_the_attack_is_what_the_trade_off_function_says(found: Findings) -> None:
    f = hs.tradeoff(TRAINING)
    attack = found.attack
    assert attack is not None
    assert attack.headline == (0.01, f.power(0.01))
    assert (attack.advantage, attack.bayes_error) == (f.advantage, f.bayes_error(0.5))
    assert attack.table[1] == pytest.approx((0.01, f.power(0.01), f(0.01)), rel=1e-12)
    for points, bounds in ((attack.misses, f.bounds), (attack.finds, f.power_bounds)):
        for point in points[::7]:
            assert (point.lower, point.upper) == pytest.approx(bounds(point.at), rel=1e-9)


RUN = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1.0)


def test_the_noise_and_the_length_that_are_named_meet_the_budget() -> None:
    noise, length = remedies(RUN, epsilon=1.0, delta=1e-5, quick=True)
    louder = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=float(noise.split()[2]))
    shorter = hs.DPSGD(rate=0.01, steps=int(length.split()[2]), noise_multiplier=1.0)
    for plan in (louder, shorter):
        assert 0.99 < hs.epsilon(plan, delta=1e-5).upper <= 1.0
