"""What a ledger says, in words and in numbers rounded to their safe side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

from hockeystick.errors import HockeystickError
from hockeystick.ledger import Entry, EntryKind, LedgerStatus
from hockeystick.ledger.amounts import amount, downward, upward
from hockeystick.ledger.fractions import Costs
from hockeystick.ledger.terms import Terms
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics import float_above
from hockeystick.numerics.numerals import plain
from hockeystick.reports.in_epsilon import InEpsilon, epsilon_at, in_epsilon
from hockeystick.reports.ledgered import Ledgered, Room, added_epsilon, rooms_of

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
