"""A question as text, its answer as words and numbers, and the processor time that it took.

An answer is a line of words: ``lower<estimate<upper`` for an interval, a number, or a name, which
has no space. What is refused is ``!`` with the class of the error. Sentences are left out, so that
they may change.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import runpy
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from mpmath import mpf, nstr

import hockeystick as hs

ROOT: Final = Path(__file__).parents[2]
POINTS: Final = np.array([1e-6, 0.01, 0.3])
_ENOUGH: Final = 50.0  # milliseconds, after which no answer is asked for again


class TooLong(BaseException):
    """A question took longer than it may."""


@dataclass(frozen=True)
class Frozen:
    """A question, what was answered, and the milliseconds of the processor that it took."""

    kind: str
    question: str
    answer: str
    time: float


def command(line: str) -> Any:
    """Return what the command prints as JSON, or raise what it says."""
    out, err = io.StringIO(), io.StringIO()
    words = ["hockeystick", *line.replace("examples/", f"{ROOT}/examples/").split(), "--json"]
    with patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_module("hockeystick", run_name="__main__")
        except SystemExit as exit_status:
            if exit_status.code:
                raise ValueError(err.getvalue().removeprefix("hockeystick: ")) from None
    return json.loads(out.getvalue())


def charged(budget: Any, *steps: Any, **how: Any) -> Any:
    """Return what a filter has charged for some steps."""
    spending = hs.calibration.Filter(budget, **how)
    for step in steps:
        spending.step(step)
    return spending.spent


def shown(delta: float, *steps: Any) -> Any:
    """Return what an odometer shows after some steps."""
    odometer = hs.calibration.Odometer(delta)
    return [odometer.step(step) for step in steps]


def ledger(*steps: Any) -> Any:
    """Return a training loop's accountant after some steps."""
    accountant = hs.Accountant()
    for step in steps:
        accountant.step(step, count=3)
    return accountant


NAMES: Final[Mapping[str, Any]] = {
    "hs": hs,
    "inf": math.inf,
    "command": command,
    "charged": charged,
    "shown": shown,
    "ledger": ledger,
}


def words(answer: Any) -> Iterator[str]:
    """Yield an answer's intervals, numbers and names, in the order of its fields."""
    match answer:
        case hs.Certified():
            yield "<".join(map(_number, (answer.lower, answer.estimate, answer.upper)))
            yield answer.accountant or "-"
        case hs.Approximate():
            yield from (_number(answer.value), answer.accountant or "-")
        case hs.Calibrated():
            yield from (_number(answer.value), *map(_number, answer.bracket), answer.status)
            yield f"{_number(answer.achieved.lower)}<{_number(answer.achieved.upper)}"
        case hs.tradeoffs.TradeOff():
            yield from words(answer.bounds(POINTS))
        case hs.notions.Origin():
            yield answer.kind
        case Mapping():
            yield from _members(answer)
        case _:
            yield from _parts(answer)


def _parts(answer: Any) -> Iterator[str]:
    match answer:
        case bool() | None:
            yield str(answer)
        case str():
            yield from [answer or "-"] if " " not in answer else ()
        case float() | int() | np.number() | mpf():
            yield _number(answer)
        case (first, second) if _is_interval(first, second):
            lower, upper = np.atleast_1d(first).ravel(), np.atleast_1d(second).ravel()
            yield from (f"{_number(a)}<{_number(b)}" for a, b in zip(lower, upper, strict=True))
        case _ if dataclasses.is_dataclass(answer):
            names = [one.name for one in dataclasses.fields(answer) if one.name != "seconds"]
            yield from (word for name in names for word in words(getattr(answer, name)))
        case _:
            yield from (word for one in answer for word in words(one))


def _members(answer: Mapping[str, Any]) -> Iterator[str]:
    if {"lower", "estimate", "upper"} <= answer.keys():
        yield "<".join(_number(answer[name]) for name in ("lower", "estimate", "upper"))
    for name, value in answer.items():
        told = name not in ("lower", "estimate", "upper", "seconds", "description", "plan")
        if told and (name == "accountant" or not isinstance(value, str)):
            yield from words(value)


def _number(value: Any) -> str:
    if isinstance(value, mpf):
        return str(nstr(value, 40, min_fixed=0, max_fixed=0))
    if isinstance(value, str):  # an infinity in JSON
        return value
    return repr(value.item() if isinstance(value, np.generic) else value)


def _is_interval(first: Any, second: Any) -> bool:
    if not all(isinstance(one, float | np.ndarray) for one in (first, second)):
        return False
    return np.shape(first) == np.shape(second) and bool(np.all(np.less_equal(first, second)))


def told(question: str) -> str:
    """Return the answer to a question as text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            answer = " ".join(words(eval(question, dict(NAMES))))
    except Exception as error:  # whatever it is, it is what the package answers
        return f"! {type(error).__name__}"
    return answer or "-"


class _Cold:
    """Empties the package's caches of functions, which would make a second answer cheap."""

    def __init__(self) -> None:
        self.seen, self.caches = set[str](), list[Any]()

    def __call__(self) -> None:
        for name in sys.modules.keys() - self.seen:
            self.seen.add(name)
            if name.startswith("hockeystick"):
                self.caches += _caches(sys.modules[name])
        for one in self.caches:
            one.cache_clear()


def _caches(module: ModuleType) -> Iterator[Any]:
    for value in vars(module).values():
        for one in (value, *(vars(value).values() if isinstance(value, type) else ())):
            if hasattr(type(one), "cache_clear"):
                yield one


cold: Final = _Cold()


def timed(question: str) -> tuple[str, float]:
    """Return the answer, and the milliseconds of the processor."""
    start = time.thread_time()
    answer = told(question)
    return answer, (time.thread_time() - start) * 1e3


def frozen(kind: str, question: str, asks: int, limit: float) -> Frozen:
    """Ask several times, what takes long but once, and return the least time.

    Raises:
        TooLong: If an answer takes more seconds than the limit.
    """
    cold()
    with _limited(limit):
        answer, spent = timed(question)
    times = [spent]
    while len(times) < asks and sum(times) < _ENOUGH:
        cold()
        again, spent = timed(question)
        if again != answer:
            raise AssertionError(f"{question}: {answer}, and then {again}")
        times.append(spent)
    return Frozen(kind, question, answer, min(times))


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(signum: int, frame: Any) -> None:
        while frame is not None:
            if "/numba/" in frame.f_code.co_filename:  # no interrupt survives a compilation
                signal.setitimer(signal.ITIMER_PROF, seconds)
                return
            frame = frame.f_back
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
