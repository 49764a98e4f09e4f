"""A dataset's ledger as it was when it was asked: what is left, what happened, what is wrong."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, final

from hockeystick.errors import HockeystickError
from hockeystick.ledger import Entry, Ledger, LedgerCheck, LedgerStatus
from hockeystick.ledger.entries import EntryKind, content_of
from hockeystick.ledger.fractions import Costs, plus
from hockeystick.ledger.terms import Terms, terms_of
from hockeystick.mechanisms import Mechanism

_MOST: Final = 1_000_000


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


def room_of(entries: Sequence[Entry]) -> tuple[Mechanism, int] | None:
    """Return what was reserved last, and how often the budget covers it again, up to a million.

    None where nothing was reserved, it cost nothing, or an entry is damaged.

    Args:
        entries: All entries of a dataset, in their order.

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from hockeystick.reports.ledgered import room_of
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(Path(folder) / "ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     ledger.step(hs.Gaussian(2.0))
        ...     room_of(ledger.history())[1]
        3
    """
    with suppress(HockeystickError, ValueError):
        asked = [one for one in entries if one.kind == EntryKind.RESERVE]
        if not asked or asked[-1].mechanism is None or not any(asked[-1].costs):
            return None
        terms, total = terms_of(entries[0].content, entries[0].price), entries[-1].total

        def fits(count: int) -> bool:
            return terms.covers(plus(total, tuple(count * cost for cost in asked[-1].costs)))

        covered = bisect_left(range(1, _MOST + 1), True, key=lambda count: not fits(count))
        return asked[-1].mechanism, covered
    return None


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
