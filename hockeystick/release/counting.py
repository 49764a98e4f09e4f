"""Charges and counts that rise before noise is drawn, in a file where a process may be killed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import FileIO
from threading import Lock
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar, final

from hockeystick import _files
from hockeystick.errors import HockeystickError, IncompatibleError, ParameterError
from hockeystick.io.codec import describe
from hockeystick.mechanisms import DPSGD, CyclicPoisson, Encoder, MatrixFactorization
from hockeystick.mechanisms.base import Mechanism, Repeated
from hockeystick.mechanisms.training.schedules import Values

_OF_THIS: Final = (
    "that of this very plan, of a run that is private or not as this one is, in the same "
    "arithmetic, and on the same ledger by the same key, or on none"
)
_WHOLE: Final = "a file without NULs: this one is damaged, as by a loss of power"
_A_JOURNAL: Final = "the path of a file, an hs.ledger.ReservedRun, or None"
PlanT = TypeVar("PlanT")


class Charged(Protocol):
    """What books releases: an ``Accountant``, a ``Filter``, an ``Odometer``, a ``Ledger``."""

    def step(self, mechanism: Mechanism) -> object:
        """Book a mechanism that is about to run, or raise."""


def checked_charge(charge: Any) -> Charged | None:
    """Return what is to be charged, or raise where it cannot be."""
    steps = callable(getattr(charge, "step", None)) and not isinstance(charge, type)
    if charge is None or steps:
        return charge  # type: ignore[no-any-return]
    allowed = "an Accountant, a Filter, a Ledger or another with step(mechanism)"
    raise ParameterError("charge", charge, allowed)


def book(charge: Charged | None, mechanism: Mechanism) -> None:
    """Charge for a mechanism that is about to run; who refuses raises, and nothing is drawn."""
    if charge is not None:
        charge.step(mechanism)


class ChargedRun:
    """A run of several answers that is charged once, so that there is one of it."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = os.getpid()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise IncompatibleError("a run is not copied or pickled: it is counted and charged once")

    def _check_process(self) -> None:
        """Raise in a process that was forked from the run's own."""
        if os.getpid() != self._process:
            told = f"this process was forked from {self._process}, whose run this is"
            raise IncompatibleError(f"{told}; begin a run in this process")


class OpensJournal(Protocol):
    """What may be given in the place of a journal's path: ``hs.ledger.ReservedRun``."""

    def open(self, title: str, first: Callable[[int], Any], most: int, *earlier: str) -> Any:
        """Return what counts the first of a run's steps as a ``Journal`` does, or raise."""


class Counter(ChargedRun, Generic[PlanT]):
    """How many steps or rounds of a plan were or may have been released.

    It rises before anything of a step is released, in the journal first, and never falls. It
    belongs to one run, that of the journal if there is one, and to one process. The journal is a
    file, what opens one itself, or None; one of another title, or of none of the earlier ones, is
    refused, as one in use is. At most the limit is counted, all by default.
    """

    __slots__ = ("_closed", "_counted", "_journal", "_limit", "_lock", "plan", "run")

    def __init__(
        self,
        plan: PlanT,
        journal: str | os.PathLike[str] | OpensJournal | None,
        title: str,
        *earlier: str,
        limit: int | None = None,
    ) -> None:
        super().__init__()
        self.plan: PlanT = plan
        self._closed, self._lock = False, Lock()
        most = length_of(plan) if limit is None else limit
        if journal is None or isinstance(journal, str | os.PathLike):
            self._journal = Journal(journal, title, *earlier)
        elif callable(getattr(journal, "open", None)):
            self._journal = journal.open(title, partial(first, plan), most, *earlier)
        else:
            raise ParameterError("journal", journal, _A_JOURNAL)
        self.run: str = self._journal.run
        self._limit = min(most, self._journal.most)
        self._counted = min(self._journal.counted, length_of(plan))

    @property
    def counted(self) -> int:
        """How many have begun, those that were left out included."""
        return self._counted

    @property
    def limit(self) -> int:
        """At most how many are counted."""
        return self._limit

    @property
    def closed(self) -> bool:
        """Whether nothing is counted any more."""
        return self._closed

    @property
    def released(self) -> PlanT:
        """The plan of what was released so far."""
        return first(self.plan, self.counted)

    def check(self) -> None:
        """Raise where the next step is not covered, or another process counts, or nobody does."""
        self._check_open()
        if self.counted >= self.limit:
            raise self._refusal()

    def count(self) -> None:
        """Count a step that is about to be released, for any thread."""
        self._begin()

    def _begin(self, index: int | None = None) -> int:
        """Count all steps up to one, by default the next, and return its number; or raise."""
        self._check_open()  # first: a fork may have the lock as another thread held it
        with self._lock:
            self._check_open()
            at = self.counted if index is None else index
            if at >= self.limit:
                raise self._refusal()
            if at < self.counted:
                raise IncompatibleError(f"round {at:,} has begun already, or was left out")
            self._rise(at + 1)
        return at

    def close(self, *, final: bool = True) -> None:
        """Count no more, and leave the journal to others.

        Final is False where another process is to go on: no reservation in a ledger is committed.
        """
        if os.getpid() == self._process:
            with self._lock:
                self._closed = True
        if final:
            self._journal.finish()
        self._journal.close()

    def _check_open(self) -> None:
        self._check_process()
        if self.closed:
            raise IncompatibleError("this run is closed: begin another")

    def _refusal(self) -> HockeystickError:
        return IncompatibleError(f"the plan's {self.limit:,} rounds have begun")

    def _rise(self, counted: int) -> None:
        """Count up to a number of steps, in the journal first, for who holds the lock."""
        self._journal.add(counted - self.counted)
        self._counted = counted


@final
class Journal:
    """A line that says what is counted and in which run, then one byte for each step.

    A byte is forced to the disk before the step's noise is drawn: whoever is killed at any moment,
    the machine included, leaves a count that is never below what was released.
    """

    __slots__ = ("__weakref__", "_file", "counted", "most", "path", "run")

    def __init__(self, path: str | os.PathLike[str] | None, title: str, *earlier: str) -> None:
        self.run: str = secrets.token_hex(16)
        self.counted: int = 0
        self.most: int = sys.maxsize
        self.path: str | None = None
        self._file: FileIO | None = None
        if path is None:
            return
        self.path, self._file = os.fspath(path), _files.locked(path, "journal", 0o600)
        weakref.finalize(self, self._file.close)
        try:
            self._begin(self._file, title, *earlier)
            _files.force_name(os.path.realpath(path))
        except (ParameterError, OSError):
            self.close()
            raise

    def add(self, steps: int) -> None:
        """Count steps on the disk before this returns."""
        if steps:
            self._write(b"." * steps)

    def finish(self) -> None:
        """Write nothing: a count is one at its end as well."""

    def close(self) -> None:
        """Close the file, which another run may open then."""
        if self._file is not None:
            self._file.close()

    def _write(self, text: bytes) -> None:
        """Write all of a text to the disk, or raise: one nearly full takes a part and says so."""
        if self._file is None:
            return
        while text:
            text = text[os.write(self._file.fileno(), text) :]
        _files.force(self._file.fileno())

    def _begin(self, file: FileIO, *titles: str) -> None:
        """Go on with the run of a file and its count, or begin one; or raise."""
        found = file.readall()
        whole = re.fullmatch(rb"(.*) ([0-9a-f]{32})\n(\.*)", found)
        if whole is not None and whole[1].decode(errors="replace") in titles:
            self.run, self.counted = whole[2].decode(), len(whole[3])
            return
        if not any(_is_cut(found, title) for title in titles):
            raise ParameterError("journal", self.path, _WHOLE if b"\0" in found else _OF_THIS)
        # Nothing was counted before the first line was on the disk.
        file.seek(0)
        file.truncate()
        self._write(f"{titles[0]} {self.run}\n".encode())


def _is_cut(found: bytes, title: str) -> bool:
    """Return whether a file ends within its first line, as one without anything does."""
    head = f"{title} ".encode()
    run = re.escape(head) + rb"[0-9a-f]{0,32}"
    return head.startswith(found) or re.fullmatch(run, found) is not None


def fingerprint(plan: Any) -> str:
    """Return a text that differs for plans that differ: a hash of what ``describe`` says of one."""
    # As accountants record a plan that ran once.
    steps = [{"count": 1, "mechanism": describe(plan)}]
    text = json.dumps({"kind": "Accountant", "steps": steps, "version": 1}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def length_of(plan: Any) -> int:
    """Return how many steps, rounds or runs a plan has."""
    if isinstance(plan, DPSGD):
        return plan.total_steps
    if isinstance(plan, Repeated):
        return plan.count
    return int((plan.encoder if isinstance(plan, MatrixFactorization) else plan).rounds)


def first(plan: PlanT, steps: int) -> PlanT:
    """Return the plan of the first steps or rounds of a plan, of whole epochs where it has some."""
    whole, epoch = length_of(plan), getattr(plan, "steps_per_epoch", None) or 1
    kept = min(-(-steps // epoch) * epoch, whole)
    if kept == whole:
        return plan
    return _cut(plan, kept, whole)  # type: ignore[no-any-return]


def _cut(plan: Any, kept: int, whole: int) -> Any:
    if isinstance(plan, Repeated):
        return plan.inner**kept
    if isinstance(plan, MatrixFactorization | CyclicPoisson) and kept == 0:
        return plan**0
    if isinstance(plan, MatrixFactorization):
        own: Any = plan.encoder
        often = {"participations": own.participations, "separation": own.separation}
        return replace(plan, encoder=Encoder.of(own.strategy, kept, **often))
    by_steps = isinstance(plan, DPSGD)
    changes: dict[str, Any] = {"epochs": None, "steps": kept} if by_steps else {"rounds": kept}
    for name in ("schedule", "batch_schedule"):
        schedule = getattr(plan, name, None)
        if schedule is not None:
            factors = schedule.factors(whole)[:kept].tolist()
            changes[name] = Values(factors) if kept else None
    return replace(plan, **changes)
