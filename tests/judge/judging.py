"""Asking random questions, each with a limit of time."""

import os
import random
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests.judge.questions import Question, question
from tests.judge.verdicts import Verdict

# Parameters of an answer, which no question gives: an interval out of order.
_ENDS = ("lower", "estimate", "upper")


class TooLong(BaseException):
    """A question took longer than it may."""


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
    import hockeystick as hs

    names: dict[str, Any] = {"hs": hs}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(line, names)
    return names["answer"]


def ask(one: Question, seconds: float) -> Verdict:
    import hockeystick as hs

    verdict = Verdict(one.line)
    try:
        with limited(seconds):
            answer = answered(one.line)
        with limited(4 * seconds):
            one.judge(verdict, answer)
    except hs.HockeystickError as error:
        if isinstance(error, hs.errors.ParameterError) and error.name in _ENDS:
            verdict.faults.append(f"an answer that is none: {error}")
        verdict.refused = True
    except TooLong:
        verdict.refused = True
    except Exception as error:
        verdict.faults.append(f"{type(error).__name__}: {error}")
    return verdict


def asked(seed: int, index: int, seconds: float) -> Verdict:
    """What becomes of the question of a number in the sample of a seed."""
    return ask(question(random.Random(f"{seed}/{index}")), seconds)
