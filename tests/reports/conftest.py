import datetime as dt
import html
import re

import pytest

import hockeystick as hs
from hockeystick.reports import Findings, Subject, investigate

DAY = dt.date(2026, 1, 31)
TRAINING = hs.DPSGD(examples=10_000, batch_size=100, epochs=8, noise_multiplier=1.0)


@pytest.fixture(scope="session")
def found() -> Findings:
    """The findings on a training run."""
    return investigate(
        Subject(
            plan=TRAINING,
            delta=1e-5,
            title="A training run",
            source="Somebody, somewhere",
            notes="A note",
            file_name="plan.toml",
            file_content=b"delta = 1e-5\n",
            commands=("hockeystick epsilon plan.toml",),
        )
    )


def words_of(page: str) -> str:
    """Return the text of a page outside of scripts and styles, on one line."""
    text = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", page)
    text = re.sub(r"</?(?:a|code|em|span|strong|sub|sup)\b[^>]*>", "", text)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
