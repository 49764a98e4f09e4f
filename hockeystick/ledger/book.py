"""What changes a ledger: datasets opened, mechanisms reserved, reservations resolved."""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, Self, final

from hockeystick._validate import WordEnum
from hockeystick.errors import BudgetExhausted, IncompatibleError, LedgerError, ParameterError
from hockeystick.ledger import entries
from hockeystick.ledger.amounts import Costs, minus, plus
from hockeystick.ledger.dataset import Scope, Terms, terms_of
from hockeystick.ledger.entries import NOTHING_RAN, Entry, EntryKind, content_of
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.notions import PureDP

if TYPE_CHECKING:
    from hockeystick.ledger.database import Database, Transaction

_A_NEW_KEY: Final = (
    "one that was not reserved before; resume=True (--resume) for a release that goes on or begins"
)


class ReservationState(WordEnum):
    """What counts of a reservation: all of it, what ran, or nothing."""

    RESERVED = "reserved"
    COMMITTED = "committed"
    RELEASED = "released"


@final
class Reservation:
    """Leave to run a mechanism, which is charged already: made by ``Ledger.reserve``.

    As a context manager it commits at a normal end. Where an exception ends it, the reservation
    stays as it is: not resolved, and counted in full, since data may have been touched.

    Edge cases:
        Resolving again in the same way changes nothing; in another way it is refused. It is never
        copied, and entered once, in the process that made it; never where it was resumed: who goes
        on, as from a checkpoint, does without ``with``, and calls ``commit`` in the end.

    Example:
        >>> import hockeystick as hs
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(f"{folder}/ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     with ledger.reserve(hs.Gaussian(2.0) ** 4, key="means", by="ana") as reservation:
        ...         reservation.commit(ran=hs.Gaussian(2.0) ** 3)
        ...     ledger.remaining
        ZCDP(rho=0.125)
    """

    def __init__(
        self, book: Book, first: Entry, mechanism: Mechanism, by: str, known: list[Entry] | None
    ) -> None:
        self.key: str = first.key
        self.note: str = first.note
        self.together: tuple[str, ...] = first.datasets
        self.mechanism: Mechanism = mechanism
        self.resumed: bool = bool(known)
        self._state = _state_of(known or [])
        self._entered, self._process, self._lock = self.resumed, os.getpid(), Lock()
        self._book, self._by = book, by

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise IncompatibleError(
            "a reservation is not copied or pickled; ledger.reservation(key) resolves it anywhere"
        )

    @property
    def state(self) -> ReservationState:
        """What has become of it, as far as this object knows."""
        return self._state

    def commit(self, *, ran: Mechanism | None = None, note: str = "") -> None:
        """Record that it has run, and charge what ran, all of it where nothing is said.

        Who stops early, also by what was released, may say so: what ran is part of the reserved.

        Raises:
            IncompatibleError: If it is no part of what was reserved, that was released before or
                committed otherwise, or prices have changed since (``Ledger.reprice``).
            LedgerError: If the ledger cannot be written.
        """
        self._resolve(ReservationState.COMMITTED, ran, note)

    def release(self, *, note: str = "") -> None:
        """Give it back: nothing of it has been released, and nothing will be; or raise.

        No program can check that; whoever calls this says so, and the ledger keeps who.
        """
        self._resolve(ReservationState.RELEASED, None, note)

    def _resolve(self, state: ReservationState, ran: Mechanism | None, note: str) -> None:
        self._book.resolve(self, state, ran, self._by, entries.note(note))
        self._state = state

    def __enter__(self) -> Self:
        """Return it, or raise where it is resolved, or was made elsewhere or entered before."""
        if os.getpid() != self._process:
            raise IncompatibleError(
                f"the reservation {self.key!r} is leave to run in process {self._process} alone"
            )
        _refuse_resolved(self.key, self._state)
        with self._lock:
            entered, self._entered = self._entered, True
        if entered:
            raise IncompatibleError(
                f"the reservation {self.key!r} was made or entered before, and covers no second "
                "release: commit() it, or release() it where nothing was released"
            )
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None and self._state is ReservationState.RESERVED:
            self.commit()

    def __repr__(self) -> str:
        return f"<Reservation {self.key!r}, {self._state}: {self.mechanism}>"


class _Request(NamedTuple):
    """What is asked for under a key, and what it costs in each dataset."""

    mechanism: Mechanism
    entry: Entry
    prices: dict[str, Costs]


@final
class Book:
    """The datasets of one database. Their terms never change, and are read once."""

    __slots__ = ("_scopes", "_terms", "database")

    def __init__(self, database: Database) -> None:
        self.database: Database = database
        self._terms: dict[str, Terms] = {}
        self._scopes: dict[str, Scope] = {}

    def names(self) -> list[str]:
        """Return the names of all datasets, sorted."""
        with self.database.reading() as rows:
            return rows.names()

    def open(self, dataset: str, terms: Terms, *, by: str) -> None:
        """Open a dataset with its terms; another process may come first."""
        with self.database.writing() as rows:
            known = rows.names(lock=True)
            if terms.within is not None:
                if terms.within not in known:
                    raise ParameterError("within", terms.within, "a dataset of this ledger already")
                whole = self.terms(terms.within).adjacency
                if terms.adjacency is not whole:
                    allowed = f"that of the whole, {whole}"
                    raise ParameterError("adjacency", str(terms.adjacency), allowed)
            if dataset not in known:
                alone, content = json.dumps([dataset]), terms.document()
                first = Entry(dataset=dataset, content=content, together=alone, by=by)
                rows.open(first.priced(EntryKind.OPEN, terms.measure.limits, terms.nothing))

    def terms(self, dataset: str) -> Terms:
        """Return the terms of a dataset, or raise."""
        if dataset not in self._terms:
            with self.database.reading() as rows:
                first = rows.first_entry(dataset)
            if first is None:
                known = ", ".join(map(repr, self.names())) or "none yet: a budget opens one"
                raise ParameterError("dataset", dataset, f"one of this ledger: {known}")
            self._terms[dataset] = terms_of(first)
            self._scopes[dataset] = Scope(self._terms[dataset])
        return self._terms[dataset]

    def with_wholes(self, datasets: Sequence[str]) -> tuple[str, ...]:
        """Return datasets with those that they are caps of, sorted."""
        found: set[str] = set()
        for name in datasets:
            whole: str | None = name
            while whole is not None and whole not in found:
                found.add(whole)
                whole = self.terms(whole).within
        return tuple(sorted(found))

    def ends(
        self, rows: Transaction, datasets: Sequence[str], *, lock: bool = False
    ) -> dict[str, Entry]:
        """Return the last entries of chains that go on from the terms that were read, or raise."""
        ends = rows.ends(datasets, lock=lock)
        for name in datasets:
            opening, first = self.terms(name).opening, rows.first_entry(name)
            if first is None or first.hash != opening:
                raise LedgerError(
                    f"dataset {name!r} is another one than was opened here: its ledger was "
                    "replaced since, or is damaged; open it anew"
                )
        return ends

    def reserve(
        self,
        datasets: Sequence[str],
        mechanisms: Sequence[tuple[str | None, Mechanism]],
        *,
        by: str,
        note: str,
        resume: bool = False,
        commit: bool = False,
    ) -> list[Reservation]:
        """Charge datasets and the wholes that they are caps of with all of this, or with nothing.

        The key None is one that nobody has used. With ``commit`` all of it has run by then.
        """
        together = self.with_wholes(datasets)
        told = Entry(together=json.dumps(together), by=by, note=note)
        # Prices are computed before others have to wait.
        asked = [
            _Request(
                one,
                replace(told, key=key or uuid.uuid4().hex, content=content_of(one)),
                {name: self.terms(name).price(one) for name in together},
            )
            for key, one in mechanisms
        ]
        kinds = (EntryKind.RESERVE, EntryKind.COMMIT) if commit else (EntryKind.RESERVE,)
        with self.database.writing() as rows:
            ends = self.ends(rows, together, lock=True)
            known = [_known(rows, one.entry, resume) for one in asked]
            new = [one for one, first in zip(asked, known, strict=True) if first is None]
            refused = self._charge(rows, ends, new, *kinds)
        if refused is not None:
            raise refused
        return [
            Reservation(self, first or one.entry, one.mechanism, by, first and [first])
            for one, first in zip(asked, known, strict=True)
        ]

    def reservation(self, dataset: str, key: str, *, by: str) -> Reservation:
        """Return a reservation that was made before, or raise."""
        with self.database.reading() as rows:
            known = rows.reservation(dataset, key)
        if not known:
            raise ParameterError("key", key, f"that of a reservation of dataset {dataset!r}")
        return Reservation(self, known[0], known[0].reserved, by, known)

    def _charge(
        self, rows: Transaction, ends: dict[str, Entry], new: Sequence[_Request], *kinds: EntryKind
    ) -> BudgetExhausted | None:
        """Add what is new to all chains, or note that it is refused, and return the error."""
        for name, end in ends.items():
            self._scopes[name].check(rows, end, [one.mechanism for one in new])
        refused = self._refusal(new, {name: end.total for name, end in ends.items()})
        kinds = kinds if refused is None else (EntryKind.REFUSE,)
        for name, end in ends.items() if new else ():
            added, spent = list[Entry](), end.total
            for one in new:
                price = one.prices[name] if refused is None else self.terms(name).nothing
                spent = plus(spent, price)
                added += [one.entry.priced(kind, price, spent) for kind in kinds]
            rows.continued(end, added)
        return refused

    def _refusal(
        self, requests: Sequence[_Request], spent: dict[str, Costs]
    ) -> BudgetExhausted | None:
        """Return the error about the first request that a budget does not cover."""
        for request in requests:
            prices, before = request.prices, spent
            spent = {name: plus(before[name], price) for name, price in prices.items()}
            short = [
                name
                for name, price in prices.items()
                if any(price) and not self.terms(name).measure.covers(spent[name])
            ]
            if short:
                first, names = short[0], ", ".join(map(repr, short))
                asked = f"{request.mechanism} on {names}"
                terms, price = self.terms(first), prices[first]
                return terms.refusal(price, before[first], asked, request.mechanism)
        return None

    def resolve(
        self, held: Reservation, state: ReservationState, ran: Mechanism | None, by: str, note: str
    ) -> None:
        """Commit or release a reservation in all its chains, or raise."""
        released = state is ReservationState.RELEASED
        kind = EntryKind.RELEASE if released else EntryKind.COMMIT
        content = NOTHING_RAN if released else None if ran is None else content_of(ran)
        for name in held.together:
            # Prices are kept, and computed before others have to wait.
            self.terms(name).price(PureDP(0) if ran is None else ran)
        with self.database.writing() as rows:
            for name, end in self.ends(rows, held.together, lock=True).items():
                known = rows.reservation(name, held.key)
                if not known:
                    raise LedgerError(f"the ledger is damaged: {name!r} has lost {held.key!r}")
                last, counts = known[-1], known[0].content if content is None else content
                if _is_resolved(known, state, counts):
                    continue
                terms = self.terms(name)
                price = terms.nothing if released else _price_of_what_ran(terms, last, ran)
                spent = plus(minus(end.total, last.costs), price)
                changes = {"content": counts, "by": by, "note": note}
                rows.continued(end, [last.priced(kind, price, spent, **changes)])


def _known(rows: Transaction, asked: Entry, resume: bool) -> Entry | None:
    """Return the entry that reserved the same before, None where none did; or raise."""
    known = [rows.reservation(name, asked.key) for name in asked.datasets]
    if not any(known):
        return None
    for found in known:
        if not found or found[0].datasets != asked.datasets:
            allowed = "a key of its own: it was used before for other datasets"
            raise ParameterError("key", asked.key, allowed)
        if asked.content not in (found[0].content, content_of(found[0].reserved)):
            allowed = f"a key of its own: it stands for {found[0].reserved}"
            raise ParameterError("key", asked.key, allowed)
        _refuse_resolved(asked.key, _state_of(found))
    if not resume:
        raise ParameterError("key", asked.key, _A_NEW_KEY)
    return known[0][0]


def _refuse_resolved(key: str, state: ReservationState) -> None:
    if state is not ReservationState.RESERVED:
        raise IncompatibleError(
            f"the reservation {key!r} was {state} before, and is no leave to run; another run "
            "needs another key, and another journal"
        )


def _price_of_what_ran(terms: Terms, last: Entry, ran: Mechanism | None) -> Costs:
    if ran is None:
        return last.costs
    reserved = last.reserved
    if not is_part(ran, reserved):
        raise IncompatibleError(
            f"a {ran} is no part of the {reserved} that was reserved: each of its releases "
            "must be one of those, no more often; the reservation still counts in full"
        )
    if terms.price(reserved) != last.costs:
        raise IncompatibleError(
            f"the {reserved} was priced by hockeystick {last.version}, and this one prices it "
            "otherwise; reprice the ledger before a part of it is committed, or commit it all"
        )
    return terms.price(ran)


def is_part(ran: Mechanism, reserved: Mechanism) -> bool:
    """Return whether each single release of a plan is one of another plan's, no more often."""
    return _counts(ran) <= _counts(reserved)


def _counts(plan: Mechanism) -> Counter[Mechanism]:
    counts: Counter[Mechanism] = Counter()
    for part, count in runs_of(plan):
        counts[part] += count
    return counts


def _is_resolved(known: list[Entry], state: ReservationState, content: str) -> bool:
    before = _state_of(known)
    if before is ReservationState.RESERVED:
        return False
    if before is state and content == known[-1].content:
        return True
    counted = f", as {known[-1].reserved}" if before is ReservationState.COMMITTED else ""
    raise IncompatibleError(
        f"the reservation {known[0].key!r} was {before} before{counted}, and stays as it is"
    )


def _state_of(known: list[Entry]) -> ReservationState:
    kinds = {entry.kind for entry in known}
    if "release" in kinds:
        return ReservationState.RELEASED
    return ReservationState.COMMITTED if "commit" in kinds else ReservationState.RESERVED
