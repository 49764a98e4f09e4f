"""What a dataset of a ledger has spent in epsilon at one delta, and by how much that may rise.

A budget that has a delta is read at that one, which what is spent keeps as long as the budget is
kept. Of the others ``hs.convert`` proves an epsilon at a delta that somebody names. What is left is
by how much epsilon of all releases together, as a plan, may rise. It is not the epsilon of one more
release, since costs do not add up in epsilon.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Final, NamedTuple

from hockeystick.conversions import convert
from hockeystick.errors import HockeystickError
from hockeystick.ledger import Entry, EntryKind, Ledger, LedgerCheck, LedgerStatus
from hockeystick.ledger.amounts import Costs, amount, downward, plus, upward
from hockeystick.ledger.audits import counting
from hockeystick.ledger.dataset import Terms, terms_of
from hockeystick.ledger.entries import content_of
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics import decimal, float_above, float_below
from hockeystick.numerics.numerals import plain

_ONE_ORDER: Final = "Feldman and Zrnic 2021; Canonne, Kamath and Steinke 2020, proposition 12"
_SOURCES: Final[dict[type[Notion], str]] = {
    PureDP: "Rogers, Roth, Ullman and Vadhan 2016",
    ZCDP: "Feldman and Zrnic 2021, at each order",
    TCDP: "Feldman and Zrnic 2021, at each order",
    RenyiDP: "Feldman and Zrnic 2021",
    GDP: "Smith and Thakurta 2022",
    ApproxDP: "Whitehouse, Ramdas, Rogers and Wu 2023",
}
_UNAMPLIFIED: Final = (
    "not counted, so that DP-SGD costs as if each step read all the data; a dataset opened with "
    "--expected PLAN counts it"
)


class InEpsilon(NamedTuple):
    """A budget in epsilon at a delta: the budget and what is spent rounded up, the rest down."""

    delta: float
    budget: float
    spent: float
    left: float

    def __str__(self) -> str:
        budget, spent, left = upward(self.budget), upward(self.spent), downward(self.left)
        return f"{spent} spent and {left} left of {budget}, at delta {plain(self.delta)}"


def in_epsilon(status: LedgerStatus, delta: float | None) -> InEpsilon | None:
    """Return a budget in epsilon, at a delta where it has none of its own; None if unknown."""
    at = _delta_shown(status.budget, delta)
    most, spent = _epsilon_at(status.budget, at), _epsilon_at(status.spent, at)
    if at is None or most is None or spent is None:
        return None
    return InEpsilon(at, most, spent, float_below(max(decimal(most) - decimal(spent), Fraction(0))))


def _delta_shown(budget: Notion, delta: float | None) -> float | None:
    if isinstance(budget, PureDP):
        return 0.0
    return budget.delta if isinstance(budget, ApproxDP) else delta


def _epsilon_at(notion: Notion, delta: float | None) -> float | None:
    """Return an epsilon that a guarantee proves at a delta, None where that is none or infinite."""
    if delta is None:
        return None
    if isinstance(notion, PureDP):
        epsilon = notion.epsilon
    elif isinstance(notion, ApproxDP):
        epsilon = notion.epsilon if notion.delta <= delta else math.inf
    else:
        epsilon = convert(notion, ApproxDP, delta=delta).epsilon
    return epsilon if epsilon < math.inf else None


def _added_epsilon(terms: Terms, total: Costs, price: Costs, delta: float | None) -> float | None:
    """Return what a price adds to the epsilon that is spent, rounded up; None if unknown."""
    at, guaranteed = _delta_shown(terms.budget, delta), terms.guarantee
    before, after = (_epsilon_at(guaranteed(one), at) for one in (total, plus(total, price)))
    if before is None or after is None:
        return None
    return float_above(max(decimal(after) - decimal(before), Fraction(0)))


class Ledgered(NamedTuple):
    """A dataset's ledger as it was when it was asked: its entries up to the head of the status."""

    status: LedgerStatus
    entries: tuple[Entry, ...]
    check: LedgerCheck

    @property
    def terms(self) -> Terms:
        """What was fixed when the dataset was opened."""
        return terms_of(self.entries[0])

    def _asked_for(self, plan: Mechanism) -> tuple[Costs, bool]:
        terms, total = self.terms, self.entries[-1].total
        price = terms.price(plan)
        return price, not any(price) or terms.measure.covers(plus(total, price))

    def verdict(self, plan: Mechanism) -> tuple[bool, str]:
        """Return whether the budget is charged for a plan, or covers one more; and in words."""
        covered, charged = False, list[str]()
        with suppress(HockeystickError):
            content = content_of(plan)
            charged = [one.key for one in counting(self.entries) if one.content == content]
        with suppress(HockeystickError):
            covered = self._asked_for(plan)[1]
        says = f"{'covers' if covered else 'does not cover'} this plan"
        says = f"is charged for this plan, as {charged[-1]}" if charged else says
        return covered or bool(charged), f"{self.status.dataset}: {says}"

    def cost_of(self, plan: Mechanism, delta: float | None) -> str:
        """Return what a plan would cost if it were reserved now, and whether that is covered."""
        try:
            price, fits = self._asked_for(plan)
            adds = _added_epsilon(self.terms, self.entries[-1].total, price, delta)
        except HockeystickError as error:
            return f"the budget cannot be charged for it: {error}"
        cost = _cost_told(price, self.terms)
        if adds is not None and not isinstance(self.terms.budget, PureDP):
            cost = f"adds epsilon {upward(adds)} to what is spent ({cost})"
        covers = "covers" if fits else "does not cover"
        return f"{cost} if it were reserved now: the budget {covers} it"


def ledgered(ledger: Ledger, *, head: str | None = None) -> Ledgered:
    """Return what a dataset's ledger says of itself; a head noted before has to be in its chain."""
    status = ledger.status
    entries = ledger.history()[: status.entries]
    return Ledgered(status, entries, ledger.verify(head=head))


class Room(NamedTuple):
    """How often a budget covers again what was reserved, up to a million, and what one costs.

    ``alone`` is the guarantee of one, ``adds`` by how much a next one would raise the epsilon that
    is spent, rounded up; None where that is not known.
    """

    mechanism: Mechanism
    more: int
    alone: Notion
    adds: float | None

    def __str__(self) -> str:
        added = f"each costs {amount(self.alone, upward)}"
        if self.adds is not None:
            verb = "adds" if self.more else "would add"
            added = f"a next one {verb} {upward(self.adds)} to the epsilon spent"
        return f"{self.more:,} more of {self.mechanism}: {added}"


def rooms_of(entries: Sequence[Entry], delta: float | None = None) -> tuple[Room, ...]:
    """Return how often the latest five kinds of plans are covered; () where one is damaged."""

    def room(entry: Entry) -> Room:
        def exceeds(count: int) -> bool:
            return not terms.measure.covers(plus(total, tuple(count * one for one in entry.costs)))

        more = bisect_left(range(1, 1_000_001), True, key=exceeds)
        adds = _added_epsilon(terms, total, entry.costs, delta)
        return Room(entry.reserved, more, terms.guarantee(entry.costs), adds)

    with suppress(HockeystickError, ValueError):
        kinds = {one.content: one for one in reversed(entries) if one.kind == EntryKind.RESERVE}
        latest = [one for one in kinds.values() if any(one.costs)][:5]
        terms, total = terms_of(entries[0]), entries[-1].total
        return tuple(map(room, latest))
    return ()


def status_facts(
    status: LedgerStatus, delta: float | None = None, rooms: Sequence[Room] = ()
) -> list[tuple[str, str]]:
    """Return what is left and spent of a budget, each with a label, what is asked most first."""
    budget, order = status.budget, status.order
    found = None if isinstance(budget, PureDP) else in_epsilon(status, delta)
    is_approximate, spent = isinstance(budget, ApproxDP), amount(status.spent, upward)
    if found is not None and is_approximate:
        spent = f"epsilon {upward(found.spent)} at delta {plain(found.delta)}"
    # Of a cap, its whole decides too.
    covered = rooms if status.within is None else ()
    kept = "" if order is None else f", kept at Renyi order {plain(order)}"
    facts = [
        ("left", _left(status, found)),
        *(("and for" if place else "room for", str(one)) for place, one in enumerate(covered)),
        ("budget", f"{amount(budget, plain)}{kept}"),
        ("adjacency", str(status.adjacency)),
        ("cap within", status.within),
        ("spent", f"{spent}, as a plan fixed in advance"),
        ("in epsilon", None if found is None or is_approximate else str(found)),
        ("next release", _next_release(status, found)),
        ("sampling", _UNAMPLIFIED if is_approximate and order is None else None),
        ("unresolved", f"{status.unresolved:,}, counted in full"),
        ("entries", f"{status.entries:,}"),
        ("head", status.head),
        ("theorem", _SOURCES[type(budget)] if order is None else _ONE_ORDER),
    ]
    return [(label, text) for label, text in facts if text is not None]


def _left(status: LedgerStatus, found: InEpsilon | None) -> str:
    if found is None:
        return f"{amount(status.remaining, downward)} of {amount(status.budget, plain)}"
    told = f"epsilon {downward(found.left)} of {upward(found.budget)} at delta {plain(found.delta)}"
    if isinstance(status.budget, PureDP | ApproxDP):
        return told
    return f"{amount(status.remaining, downward)}; {told}"


def _next_release(status: LedgerStatus, found: InEpsilon | None) -> str:
    remaining = status.remaining
    if found is None or not isinstance(remaining, RenyiDP) or status.order is None:
        return f"fits if it costs at most {amount(remaining, downward)}"
    told = "fits if it adds at most {} to the epsilon spent"
    if found.spent > 0.0:
        return told.format(downward(min(found.left, remaining.divergences[0][1])))
    return f"{told.format(downward(found.left))}, with what the conversion to delta takes, once"


class EntryTold(NamedTuple):
    """What counts from one entry on, its price, and what is spent then, in words."""

    entry: Entry
    what: str
    price: str
    spent: str
    epsilon: str


def entries_told(
    entries: Sequence[Entry], terms: Terms, delta: float | None = None
) -> list[EntryTold]:
    """Return entries in words, prices rounded up; what is damaged is said to be so."""

    def told(entry: Entry) -> EntryTold:
        opened = entry.kind == EntryKind.OPEN
        return EntryTold(
            entry,
            what=amount(terms.budget, plain) if opened else _read(lambda: _what(entry)),
            price="" if opened else _read(lambda: _cost_told(entry.costs, terms)),
            spent=_read(lambda: _cost_told(entry.total, terms)),
            epsilon=_read(lambda: _epsilon_told(entry.total, terms, delta)),
        )

    return [told(entry) for entry in entries]


def _cost_told(costs: Costs, terms: Terms) -> str:
    """Return costs, rounded up, at the budget's order: an epsilon would hide what is spent."""
    if terms.order is None:
        return amount(terms.guarantee(costs), upward)
    divergence = amount(RenyiDP([(terms.order, float_above(costs[0]))]), upward)
    return divergence + (f" and delta {upward(float_above(costs[1]))}" if costs[1] else "")


def _epsilon_told(total: Costs, terms: Terms, delta: float | None) -> str:
    if terms.order is None and isinstance(terms.budget, PureDP | ApproxDP):
        return ""
    epsilon = _epsilon_at(terms.guarantee(total), _delta_shown(terms.budget, delta))
    return "" if epsilon is None else f"epsilon {upward(epsilon)}"


def _what(entry: Entry) -> str:
    counts = entry.reserved if entry.kind == EntryKind.REFUSE else entry.mechanism
    what = "nothing" if counts is None else str(counts)
    others = [name for name in entry.datasets if name != entry.dataset]
    return what if not others else f"{what}; also on {', '.join(others)}"


def _read(words: Callable[[], str]) -> str:
    try:
        return words()
    except (HockeystickError, ValueError):
        return "cannot be read"
