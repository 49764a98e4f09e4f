"""The benchmark report: what it says of its figures, and that nothing in it is written by hand."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from itertools import repeat
from pathlib import Path

import pytest

from benchmarks.reporting import page, soundness
from benchmarks.reporting.sides import Question, here, is_answer
from benchmarks.reporting.soundness import Judged
from benchmarks.reporting.worker import TOO_LONG, Outcome, Worker

ROOT = Path(__file__).parents[1]
TEMPLATE = page.TEMPLATE.read_text(encoding="utf-8")
PLAN = Question(0.01, (1.5,), 100, 1e-5)
CASE = soundness.Case(PLAN, Decimal("0.5000000000000000000"))


def _judged(lower: float, upper: float) -> Judged:
    return soundness.judged(CASE, Outcome((lower, upper), 0.01))


@pytest.mark.parametrize(
    ("lower", "upper", "small", "large"),
    [
        (0.0, 0.5, False, False),
        (0.0, 0.5 - 2.0**-53, True, False),
        (0.5 + 2.0**-53, 0.6, False, True),
        (0.0, float("inf"), False, False),
        (0.0, float("nan"), False, False),
    ],
)
def test_a_number_is_judged_to_the_last_bit(
    lower: float, upper: float, small: bool, large: bool
) -> None:
    found = _judged(lower, upper)
    assert (found.too_small, found.too_large) == (small, large)
    assert found.answered is is_answer((lower, upper))
    assert bool(found.failure) is not found.answered


@pytest.fixture
def worker() -> Iterator[Worker]:
    """Return a process without any accounting library of others."""
    found = Worker("json")
    yield found
    found.end()


def test_a_worker_survives_errors_endless_loops_and_its_own_death(worker: Worker) -> None:
    assert worker.ask(5.0, int, "7").answer == 7
    assert worker.ask(5.0, int, "seven").failure == "ValueError"
    assert worker.ask(0.05, exec, "while True: pass").failure == TOO_LONG
    assert worker.ask(0.1, sum, repeat(1)).failure == TOO_LONG, "compiled code is killed"
    assert worker.ask(5.0, os._exit, 1).failure == "its process died"
    assert worker.ask(5.0, int, "8").answer == 8


def _command(out: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.report", "--quick", "--out", str(out)]


def test_a_quick_report_has_all_sections_and_pictures(tmp_path: Path) -> None:
    subprocess.run(_command(tmp_path), check=True, capture_output=True, cwd=ROOT)
    text = (tmp_path / "REPORT.md").read_text(encoding="utf-8")
    for heading in re.findall("(?m)^#+ .*$", TEMPLATE):
        assert heading in text
    for side in here():
        assert f"| {side.name} |" in text
    pictures = re.findall(r"\((report/.*?\.svg)\)", text)
    assert len(pictures) == len(set(pictures)) == 4
    for picture in pictures:
        assert "</svg>" in (tmp_path / picture).read_text(encoding="utf-8")
    own = re.search(r"\| hockeystick \| interval \| \d+ \| \d+ \| (\d+) .*?\| (\d+) \|", text)
    assert own is not None
    assert own.groups() == ("0", "0"), "an end of ours on the wrong side of the truth"
