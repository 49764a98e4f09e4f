"""The page has the numbers, rounded to their safe side, and loads nothing."""

import re
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pytest

import hockeystick as hs
from hockeystick import verifier
from hockeystick.reports import Findings, Subject, investigate, page
from tests.reports.conftest import DAY, TRAINING

pytest.importorskip("matplotlib", reason="reports need Matplotlib")
pytest.importorskip("jinja2", reason="reports need Jinja2")

HOSTILE = "</script><script>alert(1)</script> & \"q\" 'q' <!-- {{ 7 * 7 }}"


class Parsed(HTMLParser):
    """The text of a page outside of scripts and styles, its tags, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        self.text += " " if tag in ("td", "th", "dt", "dd", "p", "li") else ""

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def text(found: Findings) -> str:
    return page(found, DAY)


@pytest.fixture(scope="module")
def parsed(text: str) -> Parsed:
    return Parsed(text)


def test_the_headline_is_the_upper_end_rounded_up(parsed: Parsed) -> None:
    shown = re.search(r"epsilon ≤ ([\d.]+) at delta = 1e-05", parsed.words)
    assert shown is not None
    upper = Decimal(hs.epsilon(TRAINING, delta=1e-5).upper)
    assert upper <= Decimal(shown[1]) <= upper * Decimal("1.001")
    first = parsed.words[shown.start() :].partition(" What it means ")[0]
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
    hostile = Parsed(page(replace(found, subject=subject), DAY))
    tame = Parsed(page(found, DAY))
    # The numbers of the plan file, which is another one, are in elements of their own.
    kept = [[tag for tag in one.tags if tag != "span"] for one in (hostile, tame)]
    assert kept[0] == kept[1]
    assert hostile.words.count("<script>alert(1)</script>") >= 7
    assert not any("alert(1)" in script for script in hostile.scripts)


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
    edge = Parsed(page(investigate(subject), DAY))
    assert said in edge.words
    assert "nan" not in edge.words.lower().split()


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
    words = Parsed(page(judged, DAY)).words
    assert said in words
    assert ("Do not rely on it" in words) == (status == "refuted")
    assert ("Verified by a second program" in words) == (status == "verified")
    for check in checks:
        assert f"{check.claim} {check.ball} no" in words
