"""A chain gone through from its first entry: hashes, sums, limits, and what may follow what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hockeystick.errors import LedgerError
from hockeystick.ledger.chains import Chain
from hockeystick.ledger.entries import NOTHING_RAN, START, Entry, EntryKind
from hockeystick.ledger.fractions import Costs, minus, plus
from hockeystick.ledger.terms import Terms

_AFTER = {
    EntryKind.RESERVE: (None,),
    EntryKind.COMMIT: (EntryKind.RESERVE,),
    EntryKind.RELEASE: (EntryKind.RESERVE,),
    EntryKind.REPRICE: (EntryKind.RESERVE, EntryKind.COMMIT),
}


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
    if kind is EntryKind.RESERVE and any(price) and not walk.terms.covers(walk.spent):
        yield "the budget does not cover it"
