"""Processes that answer, one for each library, with limits on time and memory.

Others' code may take hours, eat all memory or take a process down: it does so elsewhere.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, Self

from benchmarks.reporting.sides import SIDES, Question, Side, here

MEMORY: Final = 6 * 2**30
# What a library loads and compiles when it is first asked is no part of any answer.
START: Final = 300.0
# A usual plan, and one in the regime of rare sampling, where other code runs.
WARM: Final = (Question(0.01, (1.0,), 100, 1e-5), Question(0.001, (0.8,), 100, 1e-6))
ONE_THREAD: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PATIENCE: Final = 20.0
TOO_LONG: Final = "over the time limit"


class Outcome(NamedTuple):
    """What came back: an answer and the seconds of the processor, or why there is none."""

    answer: Any
    seconds: float
    failure: str = ""


class TooLong(BaseException):
    """Raised in a process that has used up its time; no library's ``except Exception`` stops it."""


def _stop(*_: object) -> None:
    raise TooLong


def serve(pipe: Connection, library: str) -> None:
    """Import a library, then call what comes through the pipe until nothing comes."""
    # The one who asks decides what an interruption means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _stop)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    import_module(library)
    _warm(library)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    pipe.send(None)
    with suppress(EOFError):
        while True:
            limit, function, arguments = pipe.recv()
            pipe.send(_called(limit, function, arguments))


def _warm(library: str) -> None:
    if library == "hockeystick":
        import_module("hockeystick.kernels.compiled").load()
    for side in SIDES:
        for question in WARM if side.library == library else ():
            with suppress(Exception):
                side.ask(question)


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _called(limit: float, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    start = _used()
    try:
        signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            answer = function(*arguments)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
    except TooLong:
        return Outcome(None, limit, TOO_LONG)
    except Exception as error:
        # A compiled function's caller may make another error of it that the time is up.
        seconds = _used() - start
        return Outcome(None, seconds, TOO_LONG if seconds >= limit else type(error).__name__)
    return Outcome(answer, _used() - start)


class Worker:
    """A process with one library, started when it is first asked and again after it was ended."""

    def __init__(self, library: str) -> None:
        self._library = library
        self._process: Any = None
        self._pipe: Any = None
        self._ready = False

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = None

    def ask(self, limit: float, function: Callable[..., Any], *arguments: Any) -> Outcome:
        """Return what a call gives, or that it took longer than the limit."""
        try:
            self.start()
            self._wait()
            self._pipe.send((limit, function, arguments))
            # Compiled code may not notice that its time is up; a busy machine needs patience.
            if self._pipe.poll(PATIENCE * limit):
                found: Outcome = self._pipe.recv()
                return found
            failure = TOO_LONG
        except (EOFError, OSError):
            failure = "its process died"
        self.end()
        return Outcome(None, limit, failure)

    def start(self) -> None:
        """Start the process, with one thread, unless there is one."""
        if self._process is not None:
            return
        for name in ONE_THREAD:
            os.environ[name] = "1"
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, self._library), daemon=True)
        self._process.start()
        self._ready = False
        other.close()

    def _wait(self) -> None:
        if self._ready:
            return
        if not self._pipe.poll(START):
            raise EOFError
        self._pipe.recv()
        self._ready = True


class Crew:
    """A worker for each library that is installed, all ended when the block is left."""

    def __enter__(self) -> Self:
        self._workers = {side.library: Worker(side.library) for side in here()}
        for worker in self._workers.values():
            worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.end()

    def of(self, library: str) -> Worker:
        """Return the worker with a library."""
        return self._workers[library]

    def ask(self, side: Side, question: Question, limit: float) -> Outcome:
        """Return a side's answer to a question."""
        return self.of(side.library).ask(limit, side.ask, question)
