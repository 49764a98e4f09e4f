"""Asking random questions, each with a limit of time, and counting what becomes of them."""

from __future__ import annotations

import os
import random
import signal
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from tests.judge.questions import Question, question
from tests.judge.verdicts import Verdict

# Parameters of an answer, which no question gives: an interval out of order.
_ENDS = ("lower", "estimate", "upper")


class TooLong(BaseException):
    """A question took longer than it may."""


@dataclass
class Outcome:
    """What became of one question."""

    kind: str
    operation: str
    line: str
    upper: bool
    lower: bool
    refusal: str
    faults: list[str]
    seconds: float


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``TooLong`` in what takes more time of the processor, compilation left alone."""

    def stop(signum: int, frame: FrameType | None) -> None:
        if _compiles(frame):
            signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)
            return
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    # Once more a moment later: what is raised in a finalizer, nobody sees.
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _compiles(frame: FrameType | None) -> bool:
    """Whether a kernel is being compiled, which no interrupt survives."""
    while frame is not None:
        if f"{os.sep}numba{os.sep}" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def answered(line: str) -> Any:
    """What the library answers to a line."""
    import hockeystick as hs

    names: dict[str, Any] = {"hs": hs}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(line, names)
    return names["answer"]


def ask(one: Question, seconds: float) -> Outcome:
    """Ask the library and judge its answer."""
    import hockeystick as hs

    start, verdict, refusal = time.process_time(), Verdict(), ""
    try:
        with limited(seconds):
            answer = answered(one.line)
        with limited(4 * seconds):
            one.judge(verdict, answer)
    except hs.HockeystickError as error:
        if isinstance(error, hs.errors.ParameterError) and error.name in _ENDS:
            verdict.faults.append(f"an answer that is none: {error}")
        refusal = f"{type(error).__name__}: {_reason(error)}"
    except TooLong:
        refusal = "took too long"
    except Exception as error:
        verdict.faults.append(f"{type(error).__name__}: {error}")
    spent = time.process_time() - start
    return Outcome(
        one.kind,
        one.operation,
        one.line,
        verdict.upper,
        verdict.lower,
        refusal,
        verdict.faults,
        spent,
    )


def _reason(error: Exception) -> str:
    """The beginning of a reason, numbers left out, so that like ones are counted together."""
    text = str(getattr(error, "reason", error))
    return "".join("#" if c.isdigit() else c for c in text)[:70]


def asked(seed: int, index: int, seconds: float) -> Outcome:
    """What becomes of the question of a number in the sample of a seed."""
    return ask(numbered(seed, index), seconds)


def numbered(seed: int, index: int) -> Question:
    """The question of a number in the sample of a seed."""
    return question(random.Random(f"{seed}/{index}"))


@dataclass
class Tally:
    """Counts by kind and operation."""

    rows: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    faulty: list[Outcome] = field(default_factory=list)

    def add(self, one: Outcome) -> None:
        """Count one question: asked, judged above, judged below, refused, at fault."""
        row = self.rows.setdefault((one.kind, one.operation), [0] * 5)
        counted = (True, one.upper, one.lower, bool(one.refusal), bool(one.faults))
        for place, value in enumerate(counted):
            row[place] += value
        if one.refusal:
            self.refusals[one.refusal] += 1
        if one.faults:
            self.faulty.append(one)

    @property
    def totals(self) -> list[int]:
        """The sums of all rows."""
        return [sum(row[place] for row in self.rows.values()) for place in range(5)]
