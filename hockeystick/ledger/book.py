"""What changes a ledger: datasets opened, mechanisms reserved, reservations resolved."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, final

from hockeystick.errors import HockeystickError, IncompatibleError, LedgerError, ParameterError
from hockeystick.ledger import chains
from hockeystick.ledger.amounts import Costs, minus, plus
from hockeystick.ledger.chains import Chain, Event, Scope
from hockeystick.ledger.database import Database, wait_to_open
from hockeystick.ledger.entries import NOTHING_RAN, Entry, EntryKind, content_of
from hockeystick.ledger.reservation import Reservation, ReservationState, is_part, state_of
from hockeystick.ledger.terms import Terms, terms_of
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import PureDP

if TYPE_CHECKING:
    from sqlalchemy import Connection

_KIND: Final = {
    ReservationState.COMMITTED: EntryKind.COMMIT,
    ReservationState.RELEASED: EntryKind.RELEASE,
}
_A_NEW_KEY: Final = (
    "one that was not reserved before, as one charge covers one release; resume=True (--resume) "
    "where that release goes on, or nothing of it was released"
)


@final
class Book:
    """The datasets of one database. Their terms never change, and are read once."""

    __slots__ = ("_openings", "_scopes", "_terms", "database")

    def __init__(self, database: Database) -> None:
        self.database = database
        self._terms: dict[str, Terms] = {}
        self._openings: dict[str, str] = {}
        self._scopes: dict[str, Scope] = {}

    def names(self) -> list[str]:
        """Return the names of all datasets, sorted."""
        with self.database.reading() as connection:
            return chains.names(connection)

    def open(self, dataset: str, terms: Terms, *, by: str, note: str) -> None:
        """Open a dataset with its terms; another process may come first."""
        with self.database.writing() as connection:
            wait_to_open(connection)
            known = chains.names(connection)
            if terms.within is not None and terms.within not in known:
                allowed = "a dataset of this ledger: a cap is opened after the whole"
                raise ParameterError("within", terms.within, allowed)
            if terms.within is not None:
                _check_neighbours(terms, self.terms(terms.within))
            if dataset not in known:
                chains.opened(connection, dataset, terms, by=by, note=note)

    def terms(self, dataset: str) -> Terms:
        """Return the terms of a dataset."""
        if dataset not in self._terms:
            with self.database.reading() as connection:
                first = chains.first_entry(connection, dataset)
            if first is None:
                known = ", ".join(map(repr, self.names())) or "none yet: a budget opens one"
                raise ParameterError("dataset", dataset, f"one of this ledger: {known}")
            terms = _agreed_terms(first)
            self._openings[dataset] = first.hash
            self._scopes[dataset] = Scope.of(terms.adjacency)
            self._terms[dataset] = terms
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

    def reserve(
        self,
        datasets: Sequence[str],
        mechanism: Mechanism,
        *,
        key: str | None,
        by: str,
        note: str,
        resume: bool,
    ) -> Reservation:
        """Charge datasets and the wholes that they are caps of: all of them, or none."""
        new, key = key is None, key or uuid.uuid4().hex
        together = self.with_wholes(datasets)
        prices = {name: self.terms(name).price(mechanism) for name in together}
        event = _reserving(mechanism, key, together, by=by, note=note)
        with self.database.writing() as connection:
            ends = self.locked(connection, together)
            known = [] if new else [[*chains.entries_of(connection, one, key)] for one in together]
            if any(known):
                _check_same(event, known, resume)
            else:
                self._charge(connection, ends, [event], prices, mechanism)
        resolve = partial(self._resolve, together, by=by)
        state, told = ReservationState.RESERVED, known[0][0].note if any(known) else note
        return Reservation(key, mechanism, together, state, resolve, resumed=any(known), note=told)

    def charge(self, datasets: Sequence[str], mechanism: Mechanism, *, by: str, note: str) -> None:
        """Reserve and commit a mechanism in one transaction: in all datasets, or none."""
        together = self.with_wholes(datasets)
        prices = {name: self.terms(name).price(mechanism) for name in together}
        reserved = _reserving(mechanism, uuid.uuid4().hex, together, by=by, note=note)
        committed = replace(reserved, kind=EntryKind.COMMIT)
        with self.database.writing() as connection:
            ends = self.locked(connection, together)
            self._charge(connection, ends, [reserved, committed], prices, mechanism)

    def reservation(self, dataset: str, key: str, *, by: str) -> Reservation:
        """Return a reservation that was made before."""
        with self.database.reading() as connection:
            known = [*chains.entries_of(connection, dataset, key)]
        if not known:
            raise ParameterError("key", key, f"that of a reservation of dataset {dataset!r}")
        together = known[0].datasets
        resolve = partial(self._resolve, together, by=by)
        reserved = known[0].reserved
        return Reservation(
            key, reserved, together, state_of(known), resolve, resumed=True, note=known[0].note
        )

    def locked(self, connection: Connection, datasets: Sequence[str]) -> dict[str, Chain]:
        """Return the ends of chains that go on from the terms that were read."""
        ends = chains.locked(connection, datasets)
        for name in datasets:
            self._check_opening(connection, name)
        return ends

    def end_of(self, connection: Connection, dataset: str) -> Chain:
        """Return the end of a chain as it is now, or raise."""
        found = chains.end_of(connection, dataset)
        if found is None:
            raise LedgerError(f"the ledger is damaged: dataset {dataset!r} has lost its row")
        self._check_opening(connection, dataset)
        return found

    def _check_opening(self, connection: Connection, dataset: str) -> None:
        """Raise where a chain does not begin with the terms that were read."""
        self.terms(dataset)
        if chains.opening_of(connection, dataset) != self._openings[dataset]:
            raise LedgerError(
                f"dataset {dataset!r} is another one than was opened here: its ledger was replaced "
                "since, or is damaged; open it anew"
            )

    def _charge(
        self,
        connection: Connection,
        ends: dict[str, Chain],
        events: Sequence[Event],
        prices: dict[str, Costs],
        mechanism: Mechanism,
    ) -> None:
        """Add what is reserved to all chains, or raise where it may not be, or is not covered."""
        for name, end in ends.items():
            self._scopes[name].check(connection, end, mechanism)
        after = {name: plus(ends[name].spent, price) for name, price in prices.items()}
        short = [
            name
            for name, price in prices.items()
            if any(price) and not self.terms(name).covers(after[name])
        ]
        if short:
            first = short[0]
            step = f"{mechanism} on {', '.join(map(repr, short))}"
            raise self.terms(first).refusal(prices[first], ends[first].spent, step, mechanism)
        for name, end in ends.items():
            chains.continued(connection, end, [(one, prices[name], after[name]) for one in events])

    def _resolve(
        self,
        together: tuple[str, ...],
        key: str,
        state: ReservationState,
        ran: Mechanism | None,
        note: str,
        *,
        by: str,
    ) -> None:
        """Commit or release a reservation in all its chains."""
        content = None if ran is None else content_of(ran)
        for name in together:
            # Prices are kept, and computed before others have to wait.
            self.terms(name).price(PureDP(0) if ran is None else ran)
        with self.database.writing() as connection:
            ends = self.locked(connection, together)
            for name, end in ends.items():
                known = [*chains.entries_of(connection, name, key)]
                if not known:
                    raise LedgerError(f"the ledger is damaged: {name!r} has lost {key!r}")
                if _is_resolved(known, state, content):
                    continue
                last = known[-1]
                counts = NOTHING_RAN if state is ReservationState.RELEASED else content
                price = self._price_after(self.terms(name), last, state, ran)
                text = last.content if counts is None else counts
                event = Event.after(last, _KIND[state], text, by=by, note=note)
                spent = plus(minus(end.spent, last.costs), price)
                chains.continued(connection, end, [(event, price, spent)])

    def _price_after(
        self, terms: Terms, last: Entry, state: ReservationState, ran: Mechanism | None
    ) -> Costs:
        """Return what counts of a reservation once it is resolved."""
        if state is ReservationState.RELEASED:
            return terms.nothing
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


def _reserving(
    mechanism: Mechanism, key: str, together: tuple[str, ...], *, by: str, note: str
) -> Event:
    """Return the event of a mechanism that is reserved."""
    return Event(
        kind=EntryKind.RESERVE,
        key=key,
        content=content_of(mechanism),
        together=together,
        by=by,
        note=note,
    )


def _agreed_terms(first: Entry) -> Terms:
    """Return the terms that the first entry of a chain says, or raise."""
    try:
        if first.kind != EntryKind.OPEN or first.digest() != first.hash:
            raise ValueError(first.kind)
        return terms_of(first.content, first.price)
    except (ValueError, KeyError, TypeError, HockeystickError) as error:
        raise LedgerError(
            f"the terms of dataset {first.dataset!r} cannot be read: they were written by "
            f"hockeystick {first.version}, or are damaged ({error})"
        ) from error


def _check_neighbours(cap: Terms, whole: Terms) -> None:
    """Raise where a cap is for other neighbours than its whole."""
    if cap.adjacency is not whole.adjacency:
        allowed = f"that of the whole, {whole.adjacency}"
        raise ParameterError("adjacency", str(cap.adjacency), allowed)


def _check_same(event: Event, known: list[list[Entry]], resume: bool) -> None:
    """Raise where a key stands for something else than what is asked for, or is no leave to run."""
    for entries in known:
        first = entries[0] if entries else None
        if first is None or first.datasets != event.together:
            allowed = "a key of its own: it was used before for other datasets"
            raise ParameterError("key", event.key, allowed)
        if event.content not in (first.content, content_of(first.reserved)):
            allowed = f"a key of its own: it stands for {first.reserved}"
            raise ParameterError("key", event.key, allowed)
        state = state_of(entries)
        if state is not ReservationState.RESERVED:
            raise IncompatibleError(
                f"the reservation {event.key!r} was {state} before, and is no leave to run; "
                "another run needs another key, and another journal"
            )
    if not resume:
        raise ParameterError("key", event.key, _A_NEW_KEY)


def _is_resolved(known: list[Entry], state: ReservationState, content: str | None) -> bool:
    """Return whether a reservation was resolved like this before; raise where otherwise."""
    before = state_of(known)
    if before is ReservationState.RESERVED:
        return False
    counts = known[0].content if content is None else content
    if before is state and (state is ReservationState.RELEASED or counts == known[-1].content):
        return True
    counted = f", as {known[-1].reserved}" if before is ReservationState.COMMITTED else ""
    raise IncompatibleError(
        f"the reservation {known[0].key!r} was {before} before{counted}, and stays as it is"
    )
