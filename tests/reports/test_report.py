"""`hs.report` makes the page that the command writes; what it says is what the library answers."""

import html
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.io import PlanFile, load_plan
from hockeystick.reports import Audit, Findings, Report, Subject, course_of, investigate, page
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


# The stages of a plan are plans: prefixes of what it releases.

LOCAL = hs.federated.LocalTraining(examples=600, batch_size=16, noise_multiplier=2, local_steps=4)
CLIENTS: dict[str, Any] = {"total_clients": 100, "clients_per_round": 10, "rounds": 3}
CLIENTS["noise_multiplier"] = 4
RECORDS: dict[str, Any] = {**CLIENTS, "examples_per_client": 50, "batch_size": 5, "local_steps": 2}
DECAY = hs.schedules.Linear(end=0.5)
OF_EPOCHS: dict[str, Any] = {"examples": 1000, "batch_size": 100, "noise_multiplier": 2}

PLANS = [
    (hs.Laplace(scale=10) ** 5, "runs", [1, 2, 3, 4, 5]),
    (hs.DPSGD(**OF_EPOCHS, steps=30), "epochs", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, epochs=0.3), "steps", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, steps=3, schedule=DECAY), "steps", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, steps=3, batch_schedule=DECAY), "steps", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, epochs=3, sampling="shuffle", adjacency="replace-one"), "epochs", None),
    (hs.federated.FedSDP(**CLIENTS, sampling="poisson"), "rounds", [1, 2, 3]),
    (hs.federated.FedCDP(**RECORDS, sampling="poisson"), "rounds", [1, 2, 3]),
    (hs.federated.FedAlphaCDP(**RECORDS, sampling="poisson", schedule=DECAY), "rounds", [1, 2, 3]),
    (hs.federated.PriFedSync(clients=LOCAL, rounds=2), "rounds", [1, 2]),
    (hs.Gaussian(8) @ hs.Gaussian(9) ** 3 @ hs.Laplace(30) ** 2, "runs", [1, 2, 3]),
    (hs.DPSGD(**OF_EPOCHS, epochs=3, extra=hs.Gaussian(9)), "epochs", [1, 2, 3]),
]


@pytest.mark.parametrize(("plan", "unit", "after"), PLANS)
def test_the_last_stage_costs_what_the_plan_does_and_no_stage_less_than_one_before(
    plan: hs.Mechanism, unit: str, after: list[int] | None
) -> None:
    course = course_of(plan, 10)
    assert course is not None
    assert course.unit == unit
    if after is not None:
        assert [count for count, _ in course.stages] == after
    answers = [hs.epsilon(stage, delta=1e-5, tolerance=0.1) for _, stage in course.stages]
    whole = hs.epsilon(plan, delta=1e-5, tolerance=0.1)
    assert answers[-1].upper == pytest.approx(whole.upper, rel=1e-9)
    assert answers[-1].lower <= whole.upper
    for before, now in pairwise(answers):
        assert before.lower <= now.upper
        assert before.estimate < now.estimate
