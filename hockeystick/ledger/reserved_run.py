"""A run of many steps: reserved as a whole, counted one by one, committed as counted."""

from __future__ import annotations

import hashlib
import json
import os
import re
from bisect import bisect_left
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.ledger import entries
from hockeystick.ledger.book import Reservation
from hockeystick.ledger.ledger import Ledger, LedgerCharge
from hockeystick.release.counting import ChargedRun, Journal, OpensJournal

_RUN: Final = re.compile(r"\[run ([0-9a-f]{32})\]\Z")
_A_LEDGER: Final = "an hs.Ledger, or what its charging() returns, where a key is given"
_MOST: Final = whole_numbers("n", 0, (1, 10**6))


@final
class ReservedRun:
    """A run that a ledger reserves under a key, and whose steps are counted: given as ``journal=``.

    What opens it (``make_private``, ``adapters.loop.Account``, ``release.federated.ClientRounds``)
    reserves the plan of all its steps before the first one, counts each step before its noise is
    drawn, and at the end commits those that were counted:

        reserved: first(most),    committed: first(counted),    counted <= most.

    Guarantees:
        A reservation belongs to one run, and the run to one journal: no second run uses the same
        charge. Whoever is killed leaves a reservation that counts in full; the same key, plan and
        journal go on with it. A journal from a backup has forgotten steps, which nothing can see.

    Args:
        ledger: The ledger, or ``ledger.charging(by=, note=, also=)``.
        key: What the run is called in the ledger.
        journal: The file that counts the steps; None to count in memory.
        most: At most how many steps run; None for all that are planned.

    Example:
        >>> import hockeystick as hs
        >>> from tempfile import TemporaryDirectory
        >>> from hockeystick.adapters.loop import Account
        >>> plan = hs.DPSGD(examples=100, batch_size=100, steps=8, noise_multiplier=4)
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(f"{folder}/ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     run = hs.ledger.ReservedRun(ledger, "model", f"{folder}/journal")
        ...     account = Account(plan, journal=run)
        ...     account.count()
        ...     account.close()
        ...     print(ledger.remaining)
        0.46875-zCDP release
    """

    __slots__ = ("_charge", "_most", "journal", "key")

    def __init__(
        self,
        ledger: Ledger | LedgerCharge,
        key: str,
        journal: str | os.PathLike[str] | None = None,
        *,
        most: int | None = None,
    ) -> None:
        charge = ledger.charging() if isinstance(ledger, Ledger) else ledger
        if not isinstance(charge, LedgerCharge):
            raise ParameterError("ledger", ledger, _A_LEDGER)
        self._charge = charge
        self.key: str = entries.name("key", key)
        if journal is not None and not isinstance(journal, str | os.PathLike):
            raise ParameterError("journal", journal, "the path of a file, or None")
        self.journal: str | os.PathLike[str] | None = journal
        self._most = None if most is None else _validate.count("most", most, _MOST)

    def open(self, title: str, first: Callable[[int], Any], most: int, *earlier: str) -> CountedRun:
        """Reserve a plan, or take up its reservation, and return what counts its steps; or raise.

        The plan's first steps, of at most so many, are ``first(steps)``; the journal is of a title,
        or of what earlier versions called the same.
        """
        known = most if self._most is None else min(self._most, most)
        plan = first(known)
        # All steps of the same plan, such as the whole of an epoch.
        known += bisect_left(range(known + 1, most + 1), True, key=lambda n: first(n) != plan)
        names = json.dumps([*self._charge.datasets, self.key])
        place = hashlib.sha256(names.encode()).hexdigest()
        counting = Journal(self.journal, *(f"{one} {place}" for one in (title, *earlier)))
        try:
            reservation = self._reserved(counting, plan)
        except BaseException:
            counting.close()
            raise
        return CountedRun(counting, reservation, first, known)

    def _reserved(self, counting: Journal, plan: Any) -> Reservation:
        if counting.counted:
            try:
                self._charge.reservation(self.key)
            except ParameterError as error:
                raise IncompatibleError(
                    f"the journal {counting.path} has {counting.counted} steps of {self.key!r}, "
                    f"which {self._charge!r} does not have: charge them by hand"
                ) from error
        told = f"[run {counting.run}]"
        reservation = self._charge.reserve(plan, key=self.key, told=told, resume=True)
        found = _RUN.search(reservation.note)
        if found is None or found.group(1) != counting.run:
            allowed = f"that of the run for which {self.key!r} was reserved; else take another key"
            raise ParameterError("journal", counting.path, allowed)
        return reservation


@final
class CountedRun(ChargedRun):
    """A journal of a reserved run, made by ``ReservedRun.open``; ``finish`` commits its steps."""

    def __init__(
        self, journal: Journal, reservation: Reservation, first: Callable[[int], Any], most: int
    ) -> None:
        super().__init__()
        self._journal, self._first = journal, first
        self.reservation: Reservation = reservation
        self.most: int = most
        self._lock, self._over, self._left = Lock(), False, False
        self.run: str = journal.run
        self.path: str | None = journal.path
        self.counted: int = journal.counted

    def add(self, steps: int) -> None:
        """Count further steps, possibly none, or raise where the run is over."""
        self._check_process()
        with self._lock:
            if self._over:
                raise IncompatibleError("this run is over: no step of it is counted any more")
            if steps > max(self.most - self.counted, 0):
                raise IncompatibleError(f"the {self.most:,} steps that are reserved have run")
            # First, so that a write that fails half-way counts as well.
            self.counted += steps
            self._journal.add(steps)

    def finish(self) -> None:
        """Commit the steps that were counted, unless the journal was left to others before."""
        self._check_process()
        with self._lock:
            if self._left:
                return
            self._over = True
            ran = min(self.counted, self.most)
            self.reservation.commit(ran=self._first(ran), note=f"{ran} of {self.most} ran")

    def close(self) -> None:
        """Count no more, and leave the journal to others; a forked process has left it already."""
        if os.getpid() == self._process:
            with self._lock:
                self._over = self._left = True
                self._journal.close()


def on_ledger(
    ledger: Ledger | LedgerCharge | None,
    key: str | None,
    journal: str | os.PathLike[str] | None,
    *,
    most: int | None = None,
) -> ReservedRun | str | os.PathLike[str] | OpensJournal | None:
    """Return a journal as it is where no ledger is given, and else a run that it counts."""
    if ledger is None and key is None:
        return journal
    if key is None:
        raise ParameterError("key", None, "given, where a ledger is: what the run is called there")
    if ledger is None:
        raise ParameterError("ledger", None, _A_LEDGER)
    return ReservedRun(ledger, key, journal, most=most)
