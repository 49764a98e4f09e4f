"""The page has the numbers, rounded to their safe side, and loads nothing."""

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

import hockeystick as hs
from hockeystick import verifier
from hockeystick.reports import Findings, Subject, investigate, page
from tests.reports.conftest import DAY, TRAINING, words_of

pytest.importorskip("matplotlib", reason="reports need Matplotlib")
pytest.importorskip("jinja2", reason="reports need Jinja2")

HOSTILE = "</script><script>alert(1)</script> & \"q\" 'q' <!-- {{ 7 * 7 }}"


@pytest.fixture(scope="module")
def text(found: Findings) -> str:
    return page(found, DAY)


def test_the_headline_is_the_upper_end_rounded_up(text: str) -> None:
    words = words_of(text)
    shown = re.search(r"epsilon ≤ ([\d.]+) at delta = 1e-05", words)
    assert shown is not None
    upper = Decimal(hs.epsilon(TRAINING, delta=1e-5).upper)
    assert upper <= Decimal(shown[1]) <= upper * Decimal("1.001")
    first = words[shown.start() :].partition(" What it means ")[0]
    assert "DP-SGD on 10,000 examples" in first
    assert "Approved by" in first


def test_what_a_file_says_cannot_become_part_of_the_page(found: Findings) -> None:
    subject = replace(
        found.subject,
        title=HOSTILE,
        source=HOSTILE,
        notes=HOSTILE,
        file_name=HOSTILE,
        file_content=HOSTILE.encode() + b"\xff",
        commands=(HOSTILE,),
    )
    hostile = page(replace(found, subject=subject), DAY)
    # The numbers of the plan file, which is another one, are in elements of their own.
    tags = [re.findall(r"<(?!span)(\w+)", one) for one in (hostile, page(found, DAY))]
    assert tags[0] == tags[1]
    assert words_of(hostile).count("<script>alert(1)</script>") >= 7
    assert "alert(1)" not in "".join(re.findall(r"(?s)<script.*?</script>", hostile))


def test_the_page_is_small_and_its_curves_have_the_colours_of_the_reader(text: str) -> None:
    assert len(text.encode()) < 300_000
    assert text.count("<svg") == 5
    curves = "".join(re.findall(r"(?s)<svg.*?</svg>", text))
    assert re.findall(r"#[0-9a-f]{6}\b", curves) == []
    assert {*re.findall(r"var\(--(\w+)\)", curves)} == {"ink", "rule", "accent", "mark"}


EDGES = [
    (hs.Gaussian(0), 1e-5, "epsilon has no bound at delta = 1e-05 "),
    (hs.Gaussian(1) ** 0, 1e-5, "epsilon ≤ 0 at delta"),
    (hs.Laplace(scale=1), 0.0, "epsilon ≤ 1 at delta = 0 "),
    (hs.Gaussian(1), 1.0, "epsilon ≤ 0 at delta = 1"),
    (hs.Gaussian(0.01), 1e-9, "above 10^300"),
    (hs.RandomizedResponse(epsilon=1, categories=3), 1e-6, "one release: there are no stages"),
]


@pytest.mark.parametrize(("plan", "delta", "said"), EDGES)
def test_the_ends_of_the_scale_have_their_page(plan: hs.Mechanism, delta: float, said: str) -> None:
    subject = Subject(plan=plan, delta=delta)
    words = words_of(page(investigate(subject), DAY))
    assert said in words
    assert "nan" not in words.lower().split()


CHECK = verifier.Check(claim="delta(1.5) <= 1e-05, remove", ball="[2e-5 +/- 1e-20]", holds=False)
VERDICTS = [
    ("verified", "", (), "verified: each of these claims"),
    ("refuted", "the upper end is too small", (CHECK,), "refuted: the upper end is too small."),
    ("not covered", "no definition of it", (), "not covered: no definition of it."),
    ("", "", (), "not checked: install something."),
]


@pytest.mark.parametrize(("status", "reason", "checks", "said"), VERDICTS)
def test_the_page_says_what_the_verifier_says(
    found: Findings, status: Any, reason: str, checks: tuple[verifier.Check, ...], said: str
) -> None:
    verdict = verifier.Verdict(status=status, reason=reason, checks=checks) if status else None
    judged = replace(found, verdict=verdict, not_verified="" if verdict else "install something")
    words = words_of(page(judged, DAY))
    assert said in words
    assert ("Do not rely on it" in words) == (status == "refuted")
    assert ("Verified by a second program" in words) == (status == "verified")
    for check in checks:
        assert f"{check.claim} {check.ball} no" in words
