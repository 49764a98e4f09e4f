"""What an audit found, in the report: in words, and beside the curve."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.audit import Scores
from hockeystick.reports import Subject, investigate, page
from hockeystick.reports.audit import Audit

pytest.importorskip("matplotlib", reason="reports need Matplotlib")
pytest.importorskip("jinja2", reason="reports need Jinja2")

DAY = dt.date(2026, 1, 31)
PLAN = hs.Gaussian(1.0)


def audit(deviation: float, **asked: object) -> Audit:
    """Return the best attack's scores on a Gaussian mechanism of that noise."""
    included = np.arange(800) % 2 == 0
    scores = np.random.default_rng(5).normal(included.astype(float), deviation)
    return Audit(name="scores.csv", scores=Scores(scores, included), **asked)  # type: ignore[arg-type]


def subject(given: Audit | None) -> Subject:
    return Subject(plan=PLAN, delta=1e-5, audit=given)


@pytest.mark.parametrize(("deviation", "refuted"), [(0.4, True), (1.0, False)])
def test_the_page_says_whether_an_audit_refutes_the_plan(deviation: float, refuted: bool) -> None:
    findings = investigate(subject(audit(deviation)))
    assert findings.audited is not None
    assert findings.audited.is_refuted is refuted
    text = " ".join(page(findings, DAY).split())
    assert ("Do not rely on this answer" in text) is refuted
    assert ('<strong class="bad">refuted</strong> with confidence 0.95' in text) is refuted
    assert (
        "The scores do not contradict the plan. This is no proof of privacy" in text
    ) is not refuted
    assert "scores.csv: 400 in, 400 out" in text
