"""A dataset's ledger as it was when it was asked: what is left, what happened, what is wrong."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick.errors import HockeystickError
from hockeystick.ledger import Entry, Ledger, LedgerCheck, LedgerStatus
from hockeystick.ledger.entries import EntryKind, content_of
from hockeystick.ledger.fractions import Costs, plus
from hockeystick.ledger.terms import Terms, terms_of
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import Notion
from hockeystick.numerics import decimal, float_above
from hockeystick.reports.in_epsilon import delta_shown, epsilon_at

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
        >>> from hockeystick.reports.ledgered import rooms_of
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
        >>> from hockeystick.reports.ledgered import ledgered
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(Path(folder) / "ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     found = ledgered(ledger)
        >>> found.check.sound, len(found.entries), found.status.remaining
        (True, 1, ZCDP(rho=0.5))
    """
    status = ledger.status
    entries = ledger.history()[: status.entries]
    return Ledgered(status=status, entries=entries, check=ledger.verify(head=head))
