"""What a dataset of a ledger has spent in epsilon at one delta, and by how much that may rise.

A budget and what is spent of it are guarantees, of which an (epsilon, delta) one follows. Of a
budget that has a delta it is read at that one: what is spent has at most that delta as long as the
budget is kept, and what is (epsilon, delta)-DP is so at each larger delta. Of the others
``hs.convert`` proves an epsilon at a delta that somebody names. What is left is the epsilon of the
budget minus that of what is spent: by how much epsilon of all releases together, as a plan, may
rise. It is not the epsilon of one more release, since costs do not add up in epsilon.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick.conversions import convert
from hockeystick.errors import HockeystickError
from hockeystick.ledger import Entry, EntryKind, Ledger, LedgerCheck, LedgerStatus
from hockeystick.ledger.amounts import amount, downward, upward
from hockeystick.ledger.entries import content_of
from hockeystick.ledger.fractions import Costs, plus
from hockeystick.ledger.terms import Terms, terms_of
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics import decimal, float_above, float_below
from hockeystick.numerics.numerals import plain

_SHOWN_ENTRIES: Final = 200
_UNREADABLE: Final = "cannot be read"
_NOTHING: Final = "nothing"
_DONE: Final = {
    EntryKind.OPEN: "opened",
    EntryKind.RESERVE: "reserved",
    EntryKind.COMMIT: "committed",
    EntryKind.RELEASE: "released",
    EntryKind.REPRICE: "repriced",
}
_ONE_ORDER: Final = "Feldman and Zrnic 2021; Canonne, Kamath and Steinke 2020, proposition 12"
_SOURCES: Final[dict[type[Notion], str]] = {
    PureDP: "Rogers, Roth, Ullman and Vadhan 2016",
    ZCDP: "Feldman and Zrnic 2021, at each order",
    TCDP: "Feldman and Zrnic 2021, at each order",
    RenyiDP: "Feldman and Zrnic 2021",
    GDP: "Smith and Thakurta 2022",
    ApproxDP: "Whitehouse, Ramdas, Rogers and Wu 2023",
}
_ADDS_UP: Final[dict[type[Notion], str]] = {
    PureDP: "epsilon",
    ZCDP: "rho, of which epsilon is about a root: the first releases look dearest in epsilon",
    TCDP: "rho, of which epsilon is about a root: the first releases look dearest in epsilon",
    RenyiDP: "the divergence at each order",
    GDP: "the square of mu",
    ApproxDP: (
        "epsilon, or rho, whichever leaves more; epsilon is about a root of rho, so that the first "
        "releases look dearest"
    ),
}
_UNAMPLIFIED: Final = (
    "not counted, so that DP-SGD costs as if each step read all the data; a dataset opened with "
    "--expected PLAN counts it"
)
_PRICES: Final = (
    "no epsilons of one plan alone, as hockeystick epsilon says them, which may be more or less: "
    "they add up, also where releases are chosen as one goes, and a part of delta, the slack "
    "(--slack), is kept for converting their sum"
)
_MEANINGS: Final = (
    "All that is released by reservations of this dataset together has the guarantee that is its "
    "budget. Mechanisms, their parameters and the time to stop may depend on all that was released "
    "before, and mechanisms may run at the same time.",
    "What is spent is what the releases would cost as a plan that was fixed in advance. Where they "
    "were chosen as one went, only the budget is a guarantee.",
)
_ASSUMPTIONS: Final = (
    "All that was released from this dataset was reserved in this ledger before: it cannot see "
    "what passed it by.",
    "Each mechanism ran as its entry describes it, and what was given back had released nothing.",
)
_OF_A_CAP: Final = (
    "This is a cap within {whole!r}: the guarantee is that of the whole. The cap's own number is "
    "one only for a team whose choices do not depend on what others released."
)


@final
@dataclass(frozen=True, slots=True)
class InEpsilon:
    """A budget in epsilon.

    Args:
        delta: At which delta.
        budget: The epsilon that the budget allows, rounded up.
        spent: The epsilon of all that is charged, as a plan fixed in advance, rounded up.
        left: What is left of the one beside the other, rounded down.
    """

    delta: float
    budget: float
    spent: float
    left: float

    def as_dict(self) -> dict[str, float]:
        """Return the same, ready for JSON."""
        return {"delta": self.delta, "budget": self.budget, "spent": self.spent, "left": self.left}


def in_epsilon(status: LedgerStatus, delta: float | None) -> InEpsilon | None:
    """Return a budget in epsilon; None where no delta is known, or no finite epsilon is proven.

    Args:
        status: The budget and what is spent.
        delta: At which delta, for a budget that has none of its own.

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from hockeystick.reports.ledger import in_epsilon
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(Path(folder) / "ledger.db", "census", hs.GDP(1.0))
        ...     ledger.step(hs.Gaussian(2.0))
        ...     told = in_epsilon(ledger.status, delta=1e-5)
        >>> told.budget, told.spent, told.left
        (4.377178095681225, 1.9930914044151198, 2.384086691266105)
    """
    budget, at = status.budget, delta_shown(status.budget, delta)
    if at is None:
        return None
    most, spent = epsilon_at(budget, at), epsilon_at(status.spent, at)
    if most is None or spent is None:
        return None
    left = max(decimal(most) - decimal(spent), Fraction(0))
    return InEpsilon(at, most, spent, float_below(left))


def delta_shown(budget: Notion, delta: float | None) -> float | None:
    """Return at which delta a budget is shown in epsilon: its own, or else the one named."""
    if isinstance(budget, PureDP):
        return 0.0
    return budget.delta if isinstance(budget, ApproxDP) else delta


def epsilon_at(notion: Notion, delta: float) -> float | None:
    """Return an epsilon that a guarantee proves at a delta, None where that is none or infinite."""
    if isinstance(notion, PureDP):
        epsilon = notion.epsilon
    elif isinstance(notion, ApproxDP):
        epsilon = notion.epsilon if notion.delta <= delta else math.inf
    else:
        epsilon = convert(notion, ApproxDP, delta=delta).epsilon
    return epsilon if epsilon < math.inf else None


_MOST: Final = 1_000_000
# More kinds of plans are not told: the latest are asked for most.
_KINDS: Final = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ledgered:
    """A dataset's ledger as it was when it was asked.

    Args:
        status: The budget and what is left of it.
        entries: What happened, up to the head of the status.
        check: What a verification found, which may have seen later entries too.
    """

    status: LedgerStatus
    entries: tuple[Entry, ...]
    check: LedgerCheck

    @property
    def terms(self) -> Terms:
        """What was fixed when the dataset was opened, which says what prices mean."""
        return terms_of(self.entries[0].content, self.entries[0].price)

    def asked_for(self, plan: Mechanism) -> tuple[Costs, bool]:
        """Return what one more plan would cost, and whether this budget covers it.

        Raises:
            IncompatibleError: If it has no price in the budget's measure, or is described for
                other neighbours.
            UnsupportedError: If nothing is known of a part of it.
            LedgerError: If the last entry is damaged.
        """
        terms = self.terms
        price = terms.price(plan)
        fits = not any(price) or terms.covers(plus(self.entries[-1].total, price))
        return price, fits

    def charged_as(self, plan: Mechanism) -> tuple[str, ...]:
        """Return the keys under which this very plan is charged already."""
        last = {one.key: one for one in self.entries if one.key}
        with suppress(HockeystickError):
            content = content_of(plan)
            kept = (key for key, one in last.items() if one.content == content)
            return tuple(key for key in kept if last[key].kind != EntryKind.RELEASE)
        return ()

    def covers(self, plan: Mechanism) -> bool:
        """Return whether this budget is charged for a plan, or covers one more and can be."""
        if self.charged_as(plan):
            return True
        try:
            return self.asked_for(plan)[1]
        except HockeystickError:
            return False

    def verdict(self, plan: Mechanism) -> str:
        """Return in words whether the budget of the dataset is charged for a plan, or covers it."""
        charged = self.charged_as(plan)
        if charged:
            return f"ledger {self.status.dataset}: is charged for this plan, as {charged[-1]}"
        covered = "covers" if self.covers(plan) else "does not cover"
        return f"ledger {self.status.dataset}: {covered} this plan"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How often a budget covers once more what it was charged for before.

    Args:
        mechanism: What was reserved.
        more: How often it is covered again, up to a million.
        alone: The guarantee of one in the measure of the budget, which adds up there.
        adds: What a next one would add to the epsilon that is spent, rounded up; None where no
            delta is known, or no finite epsilon is proven.
    """

    mechanism: Mechanism
    more: int
    alone: Notion
    adds: float | None


def rooms_of(entries: Sequence[Entry], delta: float | None = None) -> tuple[Room, ...]:
    """Return for the latest five kinds of plans that were reserved how often each is covered again.

    Empty where nothing that costs was reserved, or an entry is damaged.

    Args:
        entries: All entries of a dataset, in their order.
        delta: At which delta epsilon is told, of a budget that has none of its own.

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from hockeystick.reports.ledger import rooms_of
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(Path(folder) / "ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     ledger.step(hs.Gaussian(2.0))
        ...     [(one.more, one.alone) for one in rooms_of(ledger.history())]
        [(3, ZCDP(rho=0.125))]
    """
    with suppress(HockeystickError, ValueError):
        kinds = {one.content: one for one in reversed(entries) if one.kind == EntryKind.RESERVE}
        latest = [one for one in kinds.values() if any(one.costs)][:_KINDS]
        terms, total = terms_of(entries[0].content, entries[0].price), entries[-1].total
        return tuple(_room(one, terms, total, delta) for one in latest)
    return ()


def _room(asked: Entry, terms: Terms, total: Costs, delta: float | None) -> Room:
    """Return how often what was reserved is covered again, and what a next one adds."""

    def with_more(count: int) -> Costs:
        return plus(total, tuple(count * cost for cost in asked.costs))

    more = bisect_left(
        range(1, _MOST + 1), True, key=lambda count: not terms.covers(with_more(count))
    )
    adds, alone = added_epsilon(terms, total, asked.costs, delta), terms.guarantee(asked.costs)
    return Room(mechanism=asked.reserved, more=more, alone=alone, adds=adds)


def added_epsilon(terms: Terms, total: Costs, price: Costs, delta: float | None) -> float | None:
    """Return what a price adds to the epsilon that is spent, rounded up; None where none is known.

    Args:
        terms: Those of the dataset.
        total: What is spent.
        price: What is added.
        delta: At which delta, of a budget that has none of its own.
    """
    at = delta_shown(terms.budget, delta)
    if at is None:
        return None
    before, after = (
        epsilon_at(terms.guarantee(costs), at) for costs in (total, plus(total, price))
    )
    if before is None or after is None:
        return None
    return float_above(max(decimal(after) - decimal(before), Fraction(0)))


def ledgered(ledger: Ledger, *, head: str | None = None) -> Ledgered:
    """Return what a dataset's ledger says of itself.

    Args:
        ledger: The dataset.
        head: A head that was noted before, which has to be in the chain.

    Raises:
        ParameterError: If the head is none.
        LedgerError: If the ledger cannot be read.

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from hockeystick.reports.ledger import ledgered
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(Path(folder) / "ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     found = ledgered(ledger)
        >>> found.check.sound, len(found.entries), found.status.remaining
        (True, 1, ZCDP(rho=0.5))
    """
    status = ledger.status
    entries = ledger.history()[: status.entries]
    return Ledgered(status=status, entries=entries, check=ledger.verify(head=head))


@final
@dataclass(frozen=True, slots=True)
class EntryTold:
    """One entry in words."""

    seq: str
    at: str
    done: str
    key: str
    what: str
    price: str
    spent: str
    epsilon: str
    by: str
    note: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTold:
    """A dataset's ledger in words.

    Args:
        dataset: Its name.
        facts: What is left and spent, each with a label.
        meanings: What the guarantee says, as sentences.
        assumptions: What must hold, as sentences.
        verdict: Whether it covers the plan.
        is_covered: Whether that is so.
        is_sound: Whether the verification found nothing wrong.
        problems: What it found.
        entries: The latest entries.
        left_out: How many entries before them are not shown.
    """

    dataset: str
    facts: tuple[tuple[str, str], ...]
    meanings: tuple[str, ...]
    assumptions: tuple[str, ...]
    verdict: str
    is_covered: bool
    is_sound: bool
    problems: tuple[str, ...]
    entries: tuple[EntryTold, ...]
    left_out: int


def ledger_told(found: Ledgered, plan: Mechanism, delta: float | None = None) -> LedgerTold:
    """Return a dataset's ledger in words, and what one more plan would cost.

    Args:
        found: The ledger as it was.
        plan: What would be charged.
        delta: At which delta epsilon is shown, of a budget that has none of its own.
    """
    status, shown = found.status, found.entries[-_SHOWN_ENTRIES:]
    within = status.within
    of_cap = () if within is None else (_OF_A_CAP.format(whole=within),)
    return LedgerTold(
        dataset=status.dataset,
        facts=(
            *status_facts(status, delta, rooms_of(found.entries, delta)),
            ("this plan", _asked_for(found, plan, delta)),
        ),
        meanings=(*_MEANINGS, *of_cap),
        assumptions=_ASSUMPTIONS,
        verdict=found.verdict(plan),
        is_covered=found.covers(plan),
        is_sound=found.check.sound,
        problems=found.check.problems,
        entries=entries_told(shown, found.terms, delta),
        left_out=len(found.entries) - len(shown),
    )


def _asked_for(found: Ledgered, plan: Mechanism, delta: float | None) -> str:
    """Return what a plan would cost if it were reserved now, and whether the budget covers it."""
    terms = found.terms
    try:
        price, fits = found.asked_for(plan)
        adds = added_epsilon(terms, found.entries[-1].total, price, delta)
    except HockeystickError as error:
        return f"the budget cannot be charged for it: {error}"
    covered = "the budget covers it" if fits else "the budget does not cover it"
    cost = cost_told(price, terms)
    if adds is not None and not isinstance(terms.budget, PureDP):
        cost = f"adds epsilon {upward(adds)} to what is spent ({cost})"
    return f"{cost} if it were reserved now: {covered}"


def status_facts(
    status: LedgerStatus, delta: float | None = None, rooms: Sequence[Room] = ()
) -> tuple[tuple[str, str], ...]:
    """Return what is left and spent of a budget, each with a label, what is asked most first.

    Args:
        status: The budget and what is spent of it.
        delta: At which delta epsilon is shown, of a budget that has none of its own.
        rooms: How often what was reserved is covered again, the latest first.
    """
    cap = () if status.within is None else (("cap within", status.within),)
    kept = "" if status.order is None else f", kept at Renyi order {plain(status.order)}"
    found = None if isinstance(status.budget, PureDP) else in_epsilon(status, delta)
    approximate = isinstance(status.budget, ApproxDP)
    epsilon = () if found is None or approximate else (("in epsilon", spent_of(found)),)
    is_plain = approximate and status.order is None
    spent = amount(status.spent, upward)
    if found is not None and approximate:
        spent = f"epsilon {upward(found.spent)} at delta {plain(found.delta)}"
    return (
        ("left", _left(status, found)),
        *_rooms(status, rooms),
        ("budget", f"{amount(status.budget, plain)}{kept}"),
        ("adjacency", str(status.adjacency)),
        *cap,
        ("spent", f"{spent}, as a plan fixed in advance"),
        *epsilon,
        ("next release", _next_release(status, found)),
        ("adds up", _added_up(status)),
        *((("prices", _PRICES),) if approximate else ()),
        *((("sampling", _UNAMPLIFIED),) if is_plain else ()),
        ("unresolved", f"{status.unresolved:,}, counted in full"),
        ("entries", f"{status.entries:,}"),
        ("head", status.head),
        ("theorem", source_of(status)),
    )


def _next_release(status: LedgerStatus, found: InEpsilon | None) -> str:
    """Return what one more release may cost: at one order, what it may add to epsilon."""
    remaining = status.remaining
    if found is None or not isinstance(remaining, RenyiDP) or status.order is None:
        return f"at most {amount(status.remaining, downward)}{_part_of_delta(status)}"
    told = "covered where it adds at most {} to the epsilon spent"
    if found.spent > 0.0:
        return told.format(downward(min(found.left, remaining.divergences[0][1])))
    return f"{told.format(downward(found.left))}, with what the conversion to delta takes, once"


def _part_of_delta(status: LedgerStatus) -> str:
    """Return which delta that of a release is, where it is less than that of the budget."""
    budget = status.budget
    if not isinstance(budget, ApproxDP) or not has_delta_of_its_own(status):
        return ""
    whole = f"the budget's, {plain(budget.delta)}, is for all releases and the slack together"
    return f", a delta of its own: {whole}"


def has_delta_of_its_own(status: LedgerStatus) -> bool:
    """Return whether the delta that a release may have is less than that of the budget."""
    budget, left = status.budget, status.remaining
    if not isinstance(budget, ApproxDP) or not isinstance(left, ApproxDP):
        return False
    return left.delta < budget.delta


def _left(status: LedgerStatus, found: InEpsilon | None) -> str:
    """Return what is left of a budget, in epsilon where one is known."""
    if found is None:
        return f"{amount(status.remaining, downward)} of {amount(status.budget, plain)}"
    told = f"epsilon {downward(found.left)} of {upward(found.budget)} at delta {plain(found.delta)}"
    return told if has_epsilon(status.budget) else f"{amount(status.remaining, downward)}; {told}"


def _rooms(status: LedgerStatus, rooms: Sequence[Room]) -> tuple[tuple[str, str], ...]:
    """Return how often what was reserved is covered again; of a cap, its whole decides too."""
    if status.within is not None:
        return ()
    return tuple(
        ("and for" if place else "room for", f"{one.more:,} more of {one.mechanism}: {_added(one)}")
        for place, one in enumerate(rooms)
    )


def _added(room: Room) -> str:
    """Return what a next one of a kind adds to what is spent."""
    if room.adds is None:
        return f"each costs {amount(room.alone, upward)}"
    verb = "adds" if room.more else "would add"
    return f"a next one {verb} {upward(room.adds)} to the epsilon spent"


def spent_of(found: InEpsilon) -> str:
    """Return how much of a budget is spent and left in epsilon, in words."""
    budget, spent, left = upward(found.budget), upward(found.spent), downward(found.left)
    return f"{spent} spent and {left} left of {budget}, at delta {plain(found.delta)}"


def _added_up(status: LedgerStatus) -> str:
    """Return in what the costs of releases add up, and what that means for epsilon."""
    if status.order is None or not isinstance(status.spent, ApproxDP):
        return _ADDS_UP[type(status.budget)]
    told = f"the divergence at Renyi order {plain(status.order)}, that each release adds to epsilon"
    if status.spent.epsilon > 0.0:
        return told
    return f"{told}; the first one also adds, once, what the conversion to delta takes"


def source_of(status: LedgerStatus) -> str:
    """Return whose theorem a budget's filter is."""
    return _SOURCES[type(status.budget)] if status.order is None else _ONE_ORDER


def entries_told(
    entries: Sequence[Entry], terms: Terms, delta: float | None = None
) -> tuple[EntryTold, ...]:
    """Return entries in words, with prices as guarantees rounded up."""
    return tuple(_entry_told(entry, terms, delta) for entry in entries)


def has_epsilon(budget: Notion) -> bool:
    """Return whether a budget is one of epsilon, which needs no other delta."""
    return isinstance(budget, PureDP | ApproxDP)


def cost_told(costs: Costs, terms: Terms) -> str:
    """Return what something costs, rounded up: at the budget's order, or else as a guarantee.

    An epsilon would hide what is spent at one order: the conversion adds to that of each.
    """
    if terms.order is None:
        return amount(terms.guarantee(costs), upward)
    divergence = amount(RenyiDP([(terms.order, float_above(costs[0]))]), upward)
    return divergence + (f" and delta {upward(float_above(costs[1]))}" if costs[1] else "")


def _entry_told(entry: Entry, terms: Terms, delta: float | None) -> EntryTold:
    """Return one entry in words; what is damaged is said to be so."""
    opened = entry.kind == EntryKind.OPEN
    return EntryTold(
        seq=str(entry.seq),
        at=entry.at[:16].replace("T", " "),
        done=_DONE.get(EntryKind(entry.kind), "") if entry.kind in list(EntryKind) else entry.kind,
        key=entry.key,
        what=amount(terms.budget, plain) if opened else _read(lambda: _what(entry)),
        price="" if opened else _read(lambda: cost_told(entry.costs, terms)),
        spent=_read(lambda: cost_told(entry.total, terms)),
        epsilon=_read(lambda: _epsilon_told(entry.total, terms, delta)),
        by=entry.by,
        note=entry.note,
    )


def _epsilon_told(total: Costs, terms: Terms, delta: float | None) -> str:
    """Return the epsilon of all that is spent; nothing where the amount itself is one."""
    at = terms.budget.delta if isinstance(terms.budget, ApproxDP) else delta
    if at is None or (terms.order is None and has_epsilon(terms.budget)):
        return ""
    epsilon = epsilon_at(terms.guarantee(total), at)
    return "" if epsilon is None else f"epsilon {upward(epsilon)}"


def _what(entry: Entry) -> str:
    """Return what counts from an entry on, and with which other datasets."""
    what = _NOTHING if entry.mechanism is None else str(entry.mechanism)
    others = [name for name in entry.datasets if name != entry.dataset]
    return what if not others else f"{what}; also on {', '.join(others)}"


def _read(words: Callable[[], str]) -> str:
    """Return words, or that what they are about cannot be read."""
    try:
        return words()
    except (HockeystickError, ValueError):
        return _UNREADABLE
