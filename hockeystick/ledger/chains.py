"""Chains of entries in the tables: read, locked and added to, and what all their plans state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Self, final

from sqlalchemy import Connection, Select, insert, select, update

from hockeystick._version import __version__
from hockeystick.adjacency import Adjacency
from hockeystick.calibration import read_description
from hockeystick.errors import HockeystickError, LedgerError
from hockeystick.ledger.amounts import Costs, costs_of, text_of
from hockeystick.ledger.database import DATASETS, ENTRIES
from hockeystick.ledger.entries import START, Entry, EntryKind
from hockeystick.ledger.terms import Terms, limits_of
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.scope import Described, Fact, refuse_disagreement, states_more

_COUNTED: Final = {EntryKind.RESERVE: 1, EntryKind.COMMIT: -1, EntryKind.RELEASE: -1}


@final
@dataclass(frozen=True, slots=True)
class Chain:
    """Where the chain of a dataset ends: how many entries, the last hash, what is spent."""

    dataset: str
    entries: int
    head: str
    spent: Costs
    unresolved: int


@final
@dataclass(frozen=True, slots=True)
class Event:
    """What an entry is about, apart from whose chain it continues."""

    kind: EntryKind
    key: str
    content: str
    together: tuple[str, ...]
    by: str
    note: str

    @classmethod
    def after(cls, entry: Entry, kind: EntryKind, content: str, *, by: str, note: str) -> Self:
        """Return an event of the reservation that an entry is of."""
        return cls(kind, entry.key, content, entry.datasets, by, note)


def names(connection: Connection) -> list[str]:
    """Return the names of all datasets, sorted."""
    return sorted(connection.execute(select(DATASETS.c.name)).scalars())


def locked(connection: Connection, datasets: Sequence[str]) -> dict[str, Chain]:
    """Return the ends of chains, which no other transaction continues before this one ends.

    The rows are locked in the order of their names, so that no two transactions wait for one
    another.

    Raises:
        LedgerError: If one is missing, or its last entry is not the one that its row names.
    """
    query = select(DATASETS).where(DATASETS.c.name.in_(datasets)).order_by(DATASETS.c.name)
    rows = connection.execute(query.with_for_update()).mappings().all()
    found = {row["name"]: _chain(connection, dict(row)) for row in rows}
    missing = [name for name in datasets if name not in found]
    if missing:
        raise LedgerError(f"the ledger has no dataset {missing[0]!r}")
    return found


def end_of(connection: Connection, dataset: str) -> Chain | None:
    """Return the end of a chain as it is now, None where there is no such dataset."""
    query = select(DATASETS).where(DATASETS.c.name == dataset)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _chain(connection, dict(row))


def _chain(connection: Connection, row: dict[str, object]) -> Chain:
    """Return the end of a chain once its last entry agrees, or raise."""
    name = str(row["name"])
    query = select(ENTRIES.c.seq, ENTRIES.c.hash, ENTRIES.c.spent)
    last = query.where(ENTRIES.c.dataset == name).order_by(ENTRIES.c.seq.desc()).limit(1)
    entry = connection.execute(last).one_or_none()
    told = (row["entries"], row["head"], row["spent"])
    if (
        entry is None
        or not isinstance(entry.seq, int)
        or (entry.seq + 1, entry.hash, entry.spent) != told
    ):
        raise LedgerError(
            f"the ledger is damaged: dataset {name!r} should have {row['entries']} entries up to "
            f"{row['head']}, and they are not what it has; nothing was written"
        )
    try:
        spent, unresolved = costs_of(entry.spent), int(str(row["unresolved"]))
    except ValueError as error:
        raise LedgerError(
            f"the ledger is damaged: what dataset {name!r} has spent is no number"
        ) from error
    return Chain(name, entry.seq + 1, entry.hash, spent, unresolved)


def opening_of(connection: Connection, dataset: str) -> str | None:
    """Return the hash of the entry that opened a dataset, None where there is none."""
    query = select(ENTRIES.c.hash).where(ENTRIES.c.dataset == dataset, ENTRIES.c.seq == 0)
    found: str | None = connection.execute(query).scalar()
    return found


def entries_of(connection: Connection, dataset: str, key: str | None = None) -> Iterator[Entry]:
    """Yield the entries of a dataset, or those of one reservation once checked, in their order."""
    query = select(ENTRIES).where(ENTRIES.c.dataset == dataset)
    if key is not None:
        query = query.where(ENTRIES.c.key == key)
    for row in connection.execute(query.order_by(ENTRIES.c.seq)).mappings():
        entry = Entry.of_row(row)
        if key is not None:
            entry.check()
        yield entry


def first_entry(connection: Connection, dataset: str) -> Entry | None:
    """Return the entry that opened a dataset, None where there is none."""
    query = select(ENTRIES).where(ENTRIES.c.dataset == dataset, ENTRIES.c.seq == 0)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else Entry.of_row(row)


def opened(connection: Connection, dataset: str, terms: Terms, *, by: str, note: str) -> None:
    """Begin the chain of a dataset."""
    event = Event(
        kind=EntryKind.OPEN, key="", content=terms.document(), together=(dataset,), by=by, note=note
    )
    entry = _entry(event, Chain(dataset, 0, START, (), 0), limits_of(terms), text_of(terms.nothing))
    connection.execute(insert(ENTRIES).values(**_row(entry)))
    row = {"name": dataset, "entries": 1, "head": entry.hash, "spent": entry.spent}
    connection.execute(insert(DATASETS).values(**row, unresolved=0))


def continued(
    connection: Connection, chain: Chain, events: Sequence[tuple[Event, Costs, Costs]]
) -> None:
    """Add entries to a chain that is locked, each with its price and what is spent after it."""
    entries = []
    for event, price, spent in events:
        entry = _entry(event, chain, text_of(price), text_of(spent))
        entries.append(entry)
        unresolved = chain.unresolved + _COUNTED.get(event.kind, 0)
        chain = Chain(chain.dataset, entry.seq + 1, entry.hash, spent, unresolved)
        if any(one < 0 for one in spent):
            raise LedgerError(
                f"the ledger is damaged: dataset {chain.dataset!r} would have spent less than "
                "nothing; nothing was written"
            )
    connection.execute(insert(ENTRIES), [_row(entry) for entry in entries])
    values = {
        "entries": chain.entries,
        "head": chain.head,
        "spent": text_of(chain.spent),
        "unresolved": chain.unresolved,
    }
    connection.execute(update(DATASETS).where(DATASETS.c.name == chain.dataset).values(**values))


def _entry(event: Event, chain: Chain, price: str, spent: str) -> Entry:
    """Return the next entry of a chain."""
    made = Entry(
        dataset=chain.dataset,
        seq=chain.entries,
        kind=str(event.kind),
        key=event.key,
        content=event.content,
        price=price,
        spent=spent,
        together=json.dumps(event.together),
        by=event.by,
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
        note=event.note,
        version=__version__,
        previous=chain.head,
    )
    return replace(made, hash=made.digest())


def _row(entry: Entry) -> dict[str, object]:
    """Return an entry as a row of the table."""
    return {name: getattr(entry, name) for name in entry.__slots__}


_REMEMBERED: Final = 1024


@final
@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Those for which a budget is kept."""

    adjacency: Adjacency
    scope: tuple[Fact, ...] = ()

    def __str__(self) -> str:
        return f"the budget, for {self.adjacency} neighbours"


@final
@dataclass(slots=True)
class Scope:
    """What a dataset's reservations state, read as far as its chain went when it was last asked."""

    neighbours: _Neighbours
    entries: int = 0
    stating: list[Described] = field(default_factory=list)

    @classmethod
    def of(cls, adjacency: Adjacency) -> Scope:
        """Return the scope of a dataset of which nothing is read."""
        neighbours = _Neighbours(adjacency)
        return cls(neighbours, stating=[neighbours])

    def check(self, connection: Connection, end: Chain, mechanism: Mechanism) -> None:
        """Raise where a mechanism states something else than what counts in a chain.

        Raises:
            IncompatibleError: If it does.
            LedgerError: If what counts cannot be read.
        """
        if not mechanism.scope:
            return
        reserved = _contents(end.dataset).where(ENTRIES.c.seq >= self.entries)
        self._learn(connection.execute(reserved).scalars())
        self.entries = end.entries
        if states_more(mechanism, self.stating):
            self._forget_the_released(connection, end)
            refuse_disagreement((*self.stating, mechanism), f"dataset {end.dataset!r}")

    def _learn(self, contents: Iterable[str]) -> None:
        """Take over what further reservations state."""
        for stated in map(_stated, contents):
            if states_more(stated, self.stating):
                self.stating.append(stated)

    def _forget_the_released(self, connection: Connection, end: Chain) -> None:
        """Read all that counts anew."""
        own = ENTRIES.c.dataset == end.dataset
        released = select(ENTRIES.c.key).where(own, ENTRIES.c.kind == str(EntryKind.RELEASE))
        counting = _contents(end.dataset).where(ENTRIES.c.key.not_in(released))
        self.stating = [self.neighbours]
        self._learn(connection.execute(counting).scalars())


def _contents(dataset: str) -> Select[tuple[str]]:
    """Return the query for the different contents that were reserved in a dataset."""
    own = select(ENTRIES.c.content).where(ENTRIES.c.dataset == dataset)
    return own.where(ENTRIES.c.kind == str(EntryKind.RESERVE)).distinct()


@lru_cache(maxsize=_REMEMBERED)
def _stated(content: str) -> Mechanism:
    """Return the mechanism of an entry, or raise."""
    try:
        return read_description(json.loads(content))
    except (ValueError, HockeystickError) as error:
        raise LedgerError(
            "an earlier reservation cannot be read, so that nobody knows whether it protects the "
            f"same: it was written by another version of hockeystick, or is damaged ({error})"
        ) from error
