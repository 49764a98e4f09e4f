"""A ledger as what books releases: each is an entry, by whom and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, final

from hockeystick.ledger import inputs
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked

if TYPE_CHECKING:
    from hockeystick.ledger.book import Book
    from hockeystick.ledger.reservation import Reservation


@final
class LedgerCharge:
    """A ledger together with who charges it and why: made by ``Ledger.charging``.

    It serves wherever an ``Accountant`` or a ``Filter`` is charged (``charge=``), and where a run
    is reserved as a whole (``ledger=``).

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(Path(folder) / "ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     weekly = ledger.charging(by="ana", note="weekly counts")
        ...     noise = hs.DiscreteLaplace(scale=4)
        ...     counts = hs.release.geometric(noise, [12, 0, 7], charge=weekly)
        ...     ledger.history()[-1].note
        'weekly counts'
    """

    __slots__ = ("_book", "by", "datasets", "note")

    def __init__(
        self, book: Book, dataset: str, *, by: str | None, note: str, also: Iterable[str]
    ) -> None:
        self._book = book
        self.datasets = (dataset, *inputs.names("also", also))
        self.by, self.note = inputs.person(by), inputs.note(note)

    def step(self, mechanism: Mechanism, *, count: float = 1) -> None:
        """Charge a mechanism that is about to run as one that has run, or refuse it.

        Guarantees:
            Once this returns, the charge is on the disk, in one transaction for all datasets. It
            stays where the program ends before any noise is drawn: what was charged in this way
            is never given back.

        Args:
            mechanism: What is to run.
            count: How many runs, an integer from 0 to 10^15; one entry for all of them.

        Raises:
            HockeystickError: As ``Ledger.reserve``; nothing is charged then.
        """
        runs = checked("mechanism", mechanism)
        whole = runs if count == 1 else runs**count
        self._book.charge(self.datasets, whole, by=self.by, note=self.note)

    def reserve(
        self, mechanism: Mechanism, *, key: str, told: str, resume: bool = False
    ) -> Reservation:
        """Reserve a mechanism as ``Ledger.reserve`` does, by whom and why this charge has.

        Args:
            mechanism: What is to run.
            key: What the run is called.
            told: What the note ends with.
            resume: As there.

        Raises:
            HockeystickError: As ``Ledger.reserve``; nothing is charged then.
        """
        plan, note = checked("mechanism", mechanism), inputs.note(f"{self.note} {told}".strip())
        return self._book.reserve(
            self.datasets, plan, key=key, by=self.by, note=note, resume=resume
        )

    def reservation(self, key: str) -> Reservation:
        """Return a reservation that was made before, as ``Ledger.reservation`` does.

        Args:
            key: Its key.

        Raises:
            HockeystickError: As ``Ledger.reservation``.
        """
        return self._book.reservation(self.datasets[0], key, by=self.by)

    def __repr__(self) -> str:
        """Return whose charge it is, and where."""
        names = ", ".join(map(repr, self.datasets))
        return f"<LedgerCharge of {names} at {self._book.database.shown} by {self.by!r}>"
