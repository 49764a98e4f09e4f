"""What a ledger tells of a dataset, whether it is sound, and its prices anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, final

from hockeystick.adjacency import Adjacency
from hockeystick.errors import LedgerError
from hockeystick.ledger.amounts import Costs, minus, plus
from hockeystick.ledger.book import Book
from hockeystick.ledger.dataset import Terms
from hockeystick.ledger.entries import NOTHING_RAN, START, Chain, Entry, EntryKind
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import Notion

if TYPE_CHECKING:
    from hockeystick.ledger.database import Transaction


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStatus:
    """A dataset's budget and what is left of it.

    Args:
        dataset: Its name.
        budget: The guarantee that is kept.
        adjacency: For which neighbours.
        within: The dataset of which this is a cap, None where it is none.
        order: The Renyi order at which an (epsilon, delta) budget is kept, if it is.
        spent: What is charged, as a plan fixed in advance would cost, rounded up.
        remaining: The largest guarantee that one more release may have, rounded down.
        unresolved: How many reservations are neither committed nor released; they count in full.
        entries: How many entries its chain has.
        head: How many entries there are and the hash of the last one. Whoever notes this outside
            the ledger can tell later, by ``Ledger.verify``, that nothing was taken away since.
    """

    dataset: str
    budget: Notion
    adjacency: Adjacency
    within: str | None
    order: float | None
    spent: Notion
    remaining: Notion
    unresolved: int
    entries: int
    head: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCheck:
    """What ``Ledger.verify`` found.

    Args:
        dataset: Which dataset was verified.
        head: Its head, as in ``LedgerStatus``.
        problems: What is wrong, a sentence each.
    """

    dataset: str
    head: str
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewPrice:
    """A reservation that this library prices otherwise than the ledger does.

    Args:
        key: Whose price.
        mechanism: What counts.
        old: Its price in the ledger, as a guarantee, rounded up.
        new: Its price by this library, likewise.
    """

    key: str
    mechanism: Mechanism
    old: Notion
    new: Notion


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Repricing:
    """What ``Ledger.reprice`` changes.

    Args:
        changed: The reservations whose price changes.
        spent: What is charged before it.
        repriced: What is charged after it.
        recorded: Whether it was written.
    """

    changed: tuple[NewPrice, ...]
    spent: Notion
    repriced: Notion
    recorded: bool


_UNCOUNTED = (EntryKind.OPEN, EntryKind.REFUSE)
_AFTER = {
    EntryKind.RESERVE: (None,),
    EntryKind.COMMIT: (EntryKind.RESERVE,),
    EntryKind.RELEASE: (EntryKind.RESERVE,),
    EntryKind.REPRICE: (EntryKind.RESERVE, EntryKind.COMMIT),
}


def status_of(book: Book, dataset: str) -> LedgerStatus:
    """Return what is left of a budget."""
    terms = book.terms(dataset)
    with book.database.reading() as rows:
        end = book.ends(rows, [dataset])[dataset]
    return LedgerStatus(
        dataset=dataset,
        budget=terms.budget,
        adjacency=terms.adjacency,
        within=terms.within,
        order=terms.order,
        spent=terms.guarantee(end.spent),
        remaining=terms.remaining(end.spent),
        unresolved=end.unresolved,
        entries=end.entries,
        head=end.noted,
    )


def verified(book: Book, dataset: str, noted: tuple[int, str] | None) -> LedgerCheck:
    """Go through a dataset's chain, and look for what it shares with other datasets."""
    terms = book.terms(dataset)
    problems = book.database.complaints()
    with book.database.reading() as rows:
        end = book.ends(rows, [dataset])[dataset]
        entries = [*rows.entries(dataset)]
        problems += problems_of(entries, terms, end, noted)
        problems += _missing_elsewhere(rows, entries)
    return LedgerCheck(dataset=dataset, head=end.noted, problems=tuple(problems))


def repriced(book: Book, dataset: str, *, record: bool, by: str, note: str) -> Repricing:
    """Price all that counts anew, and record what has changed if that is asked for."""
    terms = book.terms(dataset)
    with book.database.reading() as rows:
        end, entries = book.ends(rows, [dataset])[dataset], [*rows.entries(dataset)]
    # Prices are remembered, and computed before others have to wait.
    changes = _changes(terms, end, entries)
    if record:
        with book.database.writing() as rows:
            end = book.ends(rows, [dataset], lock=True)[dataset]
            changes = _changes(terms, end, rows.entries(dataset))
            for entry, _, _ in changes:
                entry.check()
            if changes:
                again = partial(replace, kind=EntryKind.REPRICE, by=by, note=note)
                rows.continued(end, [(again(one), price, spent) for one, price, spent in changes])
    after = changes[-1][2] if changes else end.spent
    return Repricing(
        changed=tuple(
            NewPrice(
                key=entry.key,
                mechanism=entry.reserved,
                old=terms.guarantee(entry.costs),
                new=terms.guarantee(price),
            )
            for entry, price, _ in changes
        ),
        spent=terms.guarantee(end.spent),
        repriced=terms.guarantee(after),
        recorded=record,
    )


def counting(entries: Iterable[Entry]) -> list[Entry]:
    """Return the last entry of each reservation that counts."""
    last = {entry.key: entry for entry in entries if entry.kind not in _UNCOUNTED}
    return [entry for entry in last.values() if entry.content != NOTHING_RAN]


def _changes(
    terms: Terms, end: Chain, entries: Iterable[Entry]
) -> list[tuple[Entry, Costs, Costs]]:
    """Return what this library prices otherwise, with the new price and what is spent after it."""
    changes, spent = [], end.spent
    for entry in counting(entries):
        price = terms.price(entry.reserved)
        if price != entry.costs:
            spent = plus(minus(spent, entry.costs), price)
            changes.append((entry, price, spent))
    return changes


def _missing_elsewhere(rows: Transaction, entries: Iterable[Entry]) -> list[str]:
    """Return which reservations other datasets lack that were charged for them together."""
    found: dict[str, set[tuple[str, str, str]]] = {}
    problems = []
    for entry in entries:
        if entry.kind in (EntryKind.OPEN, EntryKind.REPRICE):
            continue
        for name in entry.datasets:
            if name not in found:
                others = rows.entries(name)
                found[name] = {(one.kind, one.key, one.content) for one in others}
            if (entry.kind, entry.key, entry.content) not in found[name]:
                problems.append(f"entry {entry.seq}: dataset {name!r} lacks {entry.key!r}")
    return problems


@dataclass(slots=True)
class _Walk:
    """What is known after the entries so far."""

    terms: Terms
    spent: Costs
    previous: str = START
    seq: int = 0
    prices: dict[str, Costs] = field(default_factory=dict)
    stages: dict[str, EntryKind] = field(default_factory=dict)


def problems_of(
    entries: Iterable[Entry], terms: Terms, chain: Chain, noted: tuple[int, str] | None
) -> list[str]:
    """Return what is wrong with a chain: its entries, its end, and a head that was noted."""
    walk = _Walk(terms, terms.nothing)
    found: list[str] = []
    met = noted is None
    for entry in entries:
        found += (f"entry {entry.seq}: {problem}" for problem in _of_entry(walk, entry))
        met = met or (entry.seq + 1, entry.hash) == noted
    if (walk.seq, walk.previous) != (chain.entries, chain.head):
        found.append(f"the chain ends with entry {walk.seq - 1}, and not as its row says")
    if not met and noted is not None:
        found.append(f"the head that was noted, {noted[0]}:{noted[1]}, is not in the chain")
    unresolved = sum(stage is EntryKind.RESERVE for stage in walk.stages.values())
    if unresolved != chain.unresolved:
        found.append(f"{unresolved} reservations are not resolved, and not {chain.unresolved}")
    return found


def _of_entry(walk: _Walk, entry: Entry) -> Iterator[str]:
    """Yield what is wrong with the next entry, and go on to it."""
    if entry.seq != walk.seq:
        yield f"it follows entry {walk.seq - 1}"
    if entry.previous != walk.previous:
        yield "it does not follow the entry before it: one is missing, moved or changed"
    if entry.digest() != entry.hash:
        yield "it was changed: its hash is another one"
    walk.seq, walk.previous = entry.seq + 1, entry.hash
    try:
        yield from _of_content(walk, entry)
    except LedgerError as error:
        yield str(error)


def _of_content(walk: _Walk, entry: Entry) -> Iterator[str]:
    """Yield what is wrong with what an entry says, apart from the chain."""
    if entry.kind == EntryKind.OPEN:
        if entry.seq:
            yield "it opens the dataset once more"
        return
    try:
        kind = EntryKind(entry.kind)
    except ValueError:
        yield f"{entry.kind!r} is nothing that happens in a ledger"
        return
    if kind is EntryKind.REFUSE:
        if any(entry.costs) or entry.total != walk.spent:
            yield "what was refused counts"
        return
    if walk.stages.get(entry.key) not in _AFTER[kind]:
        yield f"a {kind} does not follow what happened to {entry.key!r} before"
    yield from _of_sum(walk, entry, kind)
    if kind is not EntryKind.REPRICE:
        walk.stages[entry.key] = kind


def _of_sum(walk: _Walk, entry: Entry, kind: EntryKind) -> Iterator[str]:
    """Yield what is wrong with an entry's price and the sum, and take them over."""
    price, before = entry.costs, walk.prices.get(entry.key, walk.terms.nothing)
    if len(price) != len(before) or any(cost < 0 for cost in price):
        yield "its price is none in this budget's measure"
        return
    if kind is EntryKind.RELEASE and (any(price) or entry.content != NOTHING_RAN):
        yield "what is released still counts"
    if kind is EntryKind.COMMIT and any(cost > 0 for cost in minus(price, before)):
        yield "what ran costs more than what was reserved"
    walk.spent = plus(minus(walk.spent, before), price)
    walk.prices[entry.key] = price
    if entry.total != walk.spent:
        yield "what is spent is not the sum of what counts"
    if kind is EntryKind.RESERVE and any(price) and not walk.terms.measure.covers(walk.spent):
        yield "the budget does not cover it"
