"""The benchmark report: how it judges a number, and the processes that it asks."""

import os
from collections.abc import Iterator
from decimal import Decimal
from itertools import repeat

import pytest

from benchmarks.reporting import soundness
from benchmarks.reporting.sides import Question, is_answer
from benchmarks.reporting.soundness import Judged
from benchmarks.reporting.worker import TOO_LONG, Outcome, Worker

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
