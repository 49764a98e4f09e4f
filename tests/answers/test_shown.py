"""A page shows the answer that it holds, or is refuted."""

from __future__ import annotations

import datetime as dt

import pytest

import hockeystick as hs
from hockeystick.answers import altered_in, filled_in
from hockeystick.answers.shown import _difference

pytest.importorskip("bokeh", reason="reports need Bokeh")
pytest.importorskip("jinja2", reason="reports need Jinja2")
pytest.importorskip("flint", reason="pages are read by the verifier")

DAY = dt.date(2026, 1, 31)
ALTERATIONS = (
    ("epsilon ≤ 3.70864", "epsilon ≤ 1.70864", "as its headline"),
    ("1e-05</span>, and", "1e-15</span>, and", "as its claim"),
    (
        'At FPR <span class="unbroken">1 %',
        'At FPR <span class="unbroken">2 %',
        "above its first section, the page shows 'At FPR 2 %, no attack finds more than",
    ),
    ("Misses the budget: epsilon at most 3 at", "Meets the budget: epsilon at most 3 at", "budget"),
    ("Misses the budget: epsilon at most 3 at", "Meets the budget: epsilon at most 1 at", "budget"),
    ("Gaussian (noise multiplier 2) x 3", "Gaussian (noise multiplier 5) x 3", "as its plan"),
    ("from 3.708", "from 1.708", "as its interval"),
    ("at most 40.80", "at most 4.80", "as its meaning"),
    ('<th scope="row">0.1</th>', '<th scope="row">0.2</th>', "shows '0.2' where another text was"),
    (' data-shown="', ' data-hidden="', "does not mark"),
    (
        "<h1>",
        "<h1>safe: ",
        "above its first section, the page shows 'safe: Gaussian (noise multiplier 2) x 3' where",
    ),
    (
        "</li>\n</ul>\n<div",
        "</li>\n<li>More.</li>\n</ul>\n<div",
        "'What must hold', the page shows 'More.'",
    ),
    (
        "Approved by</div>",
        "Approved by Ada</div>",
        "'What must hold', the page shows 'Approved by Ada'",
    ),
    ("</h1>", '</h1><p data-blank="Note">epsilon 0</p>', "the page shows 'a blank, Note' where"),
    (' data-blank="Date"', "", "'What must hold', the page shows 'Date' where"),
    (
        "Written by hockeystick on 2026-01-31. The page loads nothing and sends nothing.",
        "",
        "its end is missing",
    ),
    ('"lower":3.7', '"lower":1.7', "as its claim"),
    ("hockeystick-text", "another-text", "some of it was altered"),
)
FILLED = {
    "Approved by": "Ada <i>Lovelace</i>",
    "Comment": "<div>epsilon &lt; 4</div><div>is fine<br></div>",
}


def test_what_a_page_shows_beside_its_answer_is_found() -> None:
    text = hs.report(hs.Gaussian(2) ** 3, delta=1e-5, budget_epsilon=3, date=DAY).html
    assert altered_in(text) == ()
    assert altered_in(text.replace("</p>\n", "</p>\n\n  ").replace("<p>", "<P>")) == ()
    for old, new, said in ALTERATIONS:
        assert old in text
        (first, *_) = altered_in(text.replace(old, new))
        assert said in first, (old, new)


def test_what_people_write_into_the_blanks_of_a_page_alters_nothing() -> None:
    text = hs.report(hs.Gaussian(2) ** 3, delta=1e-5, date=DAY).html
    for name, written in FILLED.items():
        before, label, after = text.partition(f'aria-label="{name}">')
        text = f"{before}{label}{written}{after}"
    assert altered_in(text) == ()
    assert filled_in(text) == {"Approved by": "Ada Lovelace", "Comment": "epsilon < 4 is fine"}
    assert altered_in(text.replace("Lovelace</i>", "Lovelace</i></div><div>and sure"))


def test_what_is_shown_otherwise_than_the_answer_says_is_a_difference() -> None:
    assert _difference("headline", ["epsilon ≤ 1"], ["epsilon  ≤ 1"]) == ""
    assert "epsilon ≤ 2" in _difference("headline", ["epsilon ≤ 1"], ["epsilon ≤ 2"])
