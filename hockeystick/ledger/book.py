"""What changes a ledger: datasets opened, mechanisms reserved, reservations resolved."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, final

from hockeystick.errors import BudgetExhausted, IncompatibleError, LedgerError, ParameterError
from hockeystick.ledger.amounts import Costs, minus, plus
from hockeystick.ledger.dataset import Scope, Terms, terms_of
from hockeystick.ledger.entries import NOTHING_RAN, Chain, Entry, EntryKind, content_of
from hockeystick.ledger.reservation import Reservation, ReservationState, is_part, state_of
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import PureDP

if TYPE_CHECKING:
    from hockeystick.ledger.database import Database, Transaction

_KIND: Final = {
    ReservationState.COMMITTED: EntryKind.COMMIT,
    ReservationState.RELEASED: EntryKind.RELEASE,
}
_A_NEW_KEY: Final = (
    "one that was not reserved before, as one charge covers one release; resume=True (--resume) "
    "where that release goes on, or nothing of it was released"
)


@dataclass(frozen=True, slots=True)
class _Request:
    """What is asked for under one key, and what it costs in each dataset."""

    mechanism: Mechanism
    prices: dict[str, Costs]
    entry: Entry
    is_new: bool


@final
class Book:
    """The datasets of one database. Their terms never change, and are read once."""

    __slots__ = ("_scopes", "_terms", "database")

    def __init__(self, database: Database) -> None:
        self.database = database
        self._terms: dict[str, Terms] = {}
        self._scopes: dict[str, Scope] = {}

    def names(self) -> list[str]:
        """Return the names of all datasets, sorted."""
        with self.database.reading() as rows:
            return rows.names()

    def open(self, dataset: str, terms: Terms, *, by: str) -> None:
        """Open a dataset with its terms; another process may come first."""
        with self.database.writing() as rows:
            rows.keep_others_from_opening()
            known = rows.names()
            if terms.within is not None and terms.within not in known:
                allowed = "a dataset of this ledger: a cap is opened after the whole"
                raise ParameterError("within", terms.within, allowed)
            if terms.within is not None:
                whole = self.terms(terms.within).adjacency
                if terms.adjacency is not whole:
                    allowed = f"that of the whole, {whole}"
                    raise ParameterError("adjacency", str(terms.adjacency), allowed)
            if dataset not in known:
                content, alone = terms.document(), json.dumps([dataset])
                first = Entry(
                    kind=EntryKind.OPEN, key="", content=content, together=alone, by=by, note=""
                )
                rows.open(dataset, first, limits=terms.measure.limits, nothing=terms.nothing)

    def terms(self, dataset: str) -> Terms:
        """Return the terms of a dataset, or raise."""
        if dataset not in self._terms:
            with self.database.reading() as rows:
                first = rows.first_entry(dataset)
            if first is None:
                known = ", ".join(map(repr, self.names())) or "none yet: a budget opens one"
                raise ParameterError("dataset", dataset, f"one of this ledger: {known}")
            terms = terms_of(first)
            self._scopes[dataset] = Scope(terms.adjacency)
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

    def ends(
        self, rows: Transaction, datasets: Sequence[str], *, lock: bool = False
    ) -> dict[str, Chain]:
        """Return the ends of chains that go on from the terms that were read, or raise."""
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

        Each mechanism comes with its key, None for one that nobody has used. With ``commit`` all
        of it has run by then.
        """
        together = self.with_wholes(datasets)
        # Prices are computed before others have to wait.
        requests = [self._request(one, together, by, note, key) for key, one in mechanisms]
        kinds = (EntryKind.RESERVE, EntryKind.COMMIT) if commit else (EntryKind.RESERVE,)
        with self.database.writing() as rows:
            ends = self.ends(rows, together, lock=True)
            known = [None if one.is_new else _known(rows, one.entry, resume) for one in requests]
            new = [one for one, first in zip(requests, known, strict=True) if first is None]
            refused = self._charge(rows, ends, new, *kinds)
        if refused is not None:
            raise refused
        return [
            self._reservation(first or one.entry, one.mechanism, by, resumed=first is not None)
            for one, first in zip(requests, known, strict=True)
        ]

    def _request(
        self, mechanism: Mechanism, together: tuple[str, ...], by: str, note: str, key: str | None
    ) -> _Request:
        prices = {name: self.terms(name).price(mechanism) for name in together}
        entry = Entry(
            kind=EntryKind.RESERVE,
            key=key or uuid.uuid4().hex,
            content=content_of(mechanism),
            together=json.dumps(together),
            by=by,
            note=note,
        )
        return _Request(mechanism, prices, entry, is_new=key is None)

    def _reservation(
        self,
        first: Entry,
        mechanism: Mechanism,
        by: str,
        *,
        resumed: bool,
        state: ReservationState = ReservationState.RESERVED,
    ) -> Reservation:
        resolve = partial(self._resolve, first, by)
        return Reservation(first, mechanism, state, resolve, resumed=resumed)

    def reservation(self, dataset: str, key: str, *, by: str) -> Reservation:
        """Return a reservation that was made before."""
        with self.database.reading() as rows:
            known = rows.reservation(dataset, key)
        if not known:
            raise ParameterError("key", key, f"that of a reservation of dataset {dataset!r}")
        first = known[0]
        return self._reservation(first, first.reserved, by, resumed=True, state=state_of(known))

    def _charge(
        self, rows: Transaction, ends: dict[str, Chain], new: Sequence[_Request], *kinds: EntryKind
    ) -> BudgetExhausted | None:
        """Add what is new to all chains, or note that it is refused, and return the error.

        Raises:
            IncompatibleError: If it protects something else than what counts already.
        """
        for name, end in ends.items():
            self._scopes[name].check(rows, end, [one.mechanism for one in new])
        refused = self._refusal(new, {name: end.spent for name, end in ends.items()})
        kinds = kinds if refused is None else (EntryKind.REFUSE,)
        for name, end in ends.items():
            added, spent = list[tuple[Entry, Costs, Costs]](), end.spent
            for one in new:
                price = one.prices[name] if refused is None else self.terms(name).nothing
                spent = plus(spent, price)
                added += [(replace(one.entry, kind=kind), price, spent) for kind in kinds]
            if added:
                rows.continued(end, added)
        return refused

    def _refusal(
        self, requests: Sequence[_Request], spent: dict[str, Costs]
    ) -> BudgetExhausted | None:
        """Return the error about the first request that a budget does not cover, None if none."""
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

    def _resolve(
        self, first: Entry, by: str, state: ReservationState, ran: Mechanism | None, note: str
    ) -> None:
        """Commit or release a reservation, which an entry tells of, in all its chains."""
        content = None if ran is None else content_of(ran)
        for name in first.datasets:
            # Prices are kept, and computed before others have to wait.
            self.terms(name).price(PureDP(0) if ran is None else ran)
        with self.database.writing() as rows:
            for name, end in self.ends(rows, first.datasets, lock=True).items():
                known = rows.reservation(name, first.key)
                if not known:
                    raise LedgerError(f"the ledger is damaged: {name!r} has lost {first.key!r}")
                if _is_resolved(known, state, content):
                    continue
                last = known[-1]
                counts = NOTHING_RAN if state is ReservationState.RELEASED else content
                price = _price_after(self.terms(name), last, state, ran)
                text = last.content if counts is None else counts
                entry = replace(last, kind=_KIND[state], content=text, by=by, note=note)
                rows.continued(end, [(entry, price, plus(minus(end.spent, last.costs), price))])


def _known(rows: Transaction, asked: Entry, resume: bool) -> Entry | None:
    """Return the entry that reserved the same before, None where none did.

    Raises:
        ParameterError: If the key stands for something else, or is not resumed.
        IncompatibleError: If it was committed or released, and so is no leave to run.
    """
    known = [rows.reservation(name, asked.key) for name in asked.datasets]
    if not any(known):
        return None
    for entries in known:
        if not entries or entries[0].datasets != asked.datasets:
            allowed = "a key of its own: it was used before for other datasets"
            raise ParameterError("key", asked.key, allowed)
        first, state = entries[0], state_of(entries)
        if asked.content not in (first.content, content_of(first.reserved)):
            allowed = f"a key of its own: it stands for {first.reserved}"
            raise ParameterError("key", asked.key, allowed)
        if state is not ReservationState.RESERVED:
            raise IncompatibleError(
                f"the reservation {asked.key!r} was {state} before, and is no leave to run; "
                "another run needs another key, and another journal"
            )
    if not resume:
        raise ParameterError("key", asked.key, _A_NEW_KEY)
    return known[0][0]


def _price_after(
    terms: Terms, last: Entry, state: ReservationState, ran: Mechanism | None
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
