"""What a ledger tells of a dataset, whether it is sound, and its prices anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, final

from hockeystick.adjacency import Adjacency
from hockeystick.errors import LedgerError
from hockeystick.ledger.amounts import Costs, minus, plus
from hockeystick.ledger.dataset import Terms
from hockeystick.ledger.entries import NOTHING_RAN, START, Entry, EntryKind
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import Notion

if TYPE_CHECKING:
    from hockeystick.ledger.database import Transaction

_UNCOUNTED: Final = (EntryKind.OPEN, EntryKind.REFUSE)
# What may have happened last to the reservation of an entry of a kind.
_AFTER: Final[dict[str, tuple[str | None, ...]]] = {
    EntryKind.RESERVE: (None,),
    EntryKind.COMMIT: (EntryKind.RESERVE,),
    EntryKind.RELEASE: (EntryKind.RESERVE,),
    EntryKind.REPRICE: (EntryKind.RESERVE, EntryKind.COMMIT),
}


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
        head: That number and the hash of the last entry, to be noted for ``Ledger.verify``.
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


class NewPrice(NamedTuple):
    """A reservation that this library prices otherwise: what counts, its old and new price."""

    key: str
    mechanism: Mechanism
    old: Notion
    new: Notion


class Repricing(NamedTuple):
    """What ``Ledger.reprice`` changes, what is charged before and after, whether it was written."""

    changed: tuple[NewPrice, ...]
    spent: Notion
    repriced: Notion
    recorded: bool


def counting(entries: Iterable[Entry]) -> list[Entry]:
    """Return the last entry of each reservation that counts."""
    last = {entry.key: entry for entry in entries if entry.kind not in _UNCOUNTED}
    return [entry for entry in last.values() if entry.content != NOTHING_RAN]


def repriced(
    terms: Terms, end: Entry, entries: Iterable[Entry], **who: str
) -> list[tuple[Entry, Entry]]:
    """Return what counts and is priced otherwise now, each with the entry that would say so."""
    changes, spent = [], end.total
    for entry in counting(entries):
        price = terms.price(entry.reserved)
        if price != entry.costs:
            spent = plus(minus(spent, entry.costs), price)
            changes.append((entry, entry.priced(EntryKind.REPRICE, price, spent, **who)))
    return changes


def missing_elsewhere(rows: Transaction, entries: Iterable[Entry]) -> list[str]:
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


class _Walk:
    """What is known after the entries so far."""

    def __init__(self, terms: Terms) -> None:
        self.terms, self.spent, self.previous, self.seq = terms, terms.nothing, START, 0
        self.prices: dict[str, Costs] = {}
        self.stages: dict[str, str] = {}


def problems_of(
    entries: Sequence[Entry], terms: Terms, unresolved: int, noted: str | None
) -> list[str]:
    """Return what is wrong with a chain: its entries, their end, and a head that was noted."""
    walk = _Walk(terms)
    found = [f"entry {one.seq}: {problem}" for one in entries for problem in _of_entry(walk, one)]
    if noted is not None and noted not in {entry.head for entry in entries}:
        found.append(f"the head that was noted, {noted}, is not in the chain")
    reserved = sum(stage == EntryKind.RESERVE for stage in walk.stages.values())
    if reserved != unresolved:
        found.append(f"{reserved} reservations are not resolved, and not {unresolved}")
    return found


def _of_entry(walk: _Walk, entry: Entry) -> Iterator[str]:
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
    if entry.kind == EntryKind.OPEN:
        if entry.seq:
            yield "it opens the dataset once more"
    elif entry.kind == EntryKind.REFUSE:
        if any(entry.costs) or entry.total != walk.spent:
            yield "what was refused counts"
    elif entry.kind not in _AFTER:
        yield f"{entry.kind!r} is nothing that happens in a ledger"
    else:
        if walk.stages.get(entry.key) not in _AFTER[entry.kind]:
            yield f"a {entry.kind} does not follow what happened to {entry.key!r} before"
        yield from _of_sum(walk, entry)
        if entry.kind != EntryKind.REPRICE:
            walk.stages[entry.key] = entry.kind


def _of_sum(walk: _Walk, entry: Entry) -> Iterator[str]:
    price, before = entry.costs, walk.prices.get(entry.key, walk.terms.nothing)
    if len(price) != len(before) or any(cost < 0 for cost in price):
        yield "its price is none in this budget's measure"
        return
    if entry.kind == EntryKind.RELEASE and (any(price) or entry.content != NOTHING_RAN):
        yield "what is released still counts"
    if entry.kind == EntryKind.COMMIT and any(cost > 0 for cost in minus(price, before)):
        yield "what ran costs more than what was reserved"
    walk.spent = plus(minus(walk.spent, before), price)
    walk.prices[entry.key] = price
    if entry.total != walk.spent:
        yield "what is spent is not the sum of what counts"
    covered = not any(price) or walk.terms.measure.covers(walk.spent)
    if entry.kind == EntryKind.RESERVE and not covered:
        yield "the budget does not cover it"
