"""What is reserved in a ledger, before it runs, while it runs and after."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import NoReturn, Self, final

from hockeystick._validate import WordEnum
from hockeystick.errors import IncompatibleError
from hockeystick.ledger import entries
from hockeystick.mechanisms import Mechanism, runs_of


class ReservationState(WordEnum):
    """What has become of a reservation.

    - ``RESERVED`` ("reserved"): not resolved; it counts in full.
    - ``COMMITTED`` ("committed"): what ran counts.
    - ``RELEASED`` ("released"): nothing ran, and nothing counts.
    """

    RESERVED = "reserved"
    COMMITTED = "committed"
    RELEASED = "released"


@final
class Reservation:
    """Leave to run a mechanism, which is charged already: made by ``Ledger.reserve``.

    As a context manager it commits at a normal end. Where an exception ends it, the reservation
    stays as it is: not resolved, and counted in full, since data may have been touched.

    Edge cases:
        Resolving again in the same way changes nothing; in another way it is refused. A reservation
        that ``reserve`` resumed has ``resumed`` True, and entering it is refused, as entering any a
        second time: it covers no second release. Where nothing was released, ``release`` it and
        reserve under another key; where the same release goes on, as from a checkpoint, go on
        without ``with``, and ``commit`` in the end. It is entered in the process that made it, and
        never copied.

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(Path(folder) / "ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     with ledger.reserve(hs.Gaussian(2.0) ** 4, key="means", by="ana") as reservation:
        ...         reservation.commit(ran=hs.Gaussian(2.0) ** 3)
        ...     ledger.remaining
        ZCDP(rho=0.125)
    """

    __slots__ = (
        "_entered",
        "_lock",
        "_process",
        "_resolve",
        "_state",
        "key",
        "mechanism",
        "note",
        "resumed",
        "together",
    )

    def __init__(
        self,
        first: entries.Entry,
        mechanism: Mechanism,
        state: ReservationState,
        resolve: Callable[[ReservationState, Mechanism | None, str], None],
        *,
        resumed: bool,
    ) -> None:
        self.key, self.note, self.together = first.key, first.note, first.datasets
        self.mechanism, self._state, self.resumed = mechanism, state, resumed
        self._entered, self._process, self._lock = resumed, os.getpid(), Lock()
        self._resolve = resolve

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise IncompatibleError(
            "a reservation is not copied or pickled: each copy would be leave to run once more; "
            "ledger.reservation(key) resolves it anywhere"
        )

    @property
    def state(self) -> ReservationState:
        """What has become of it, as far as this object knows."""
        return self._state

    def commit(self, *, ran: Mechanism | None = None, note: str = "") -> None:
        """Record that it has run, and charge what ran.

        Who stops early, also because of what was released, may say so: the budget is a fully
        adaptive filter.

        Args:
            ran: What ran, each single release of it one of the reserved ones, no more often. None
                where all of it ran, or may have.
            note: Why.

        Raises:
            IncompatibleError: If ``ran`` is no part of what was reserved, it was released before
                or committed otherwise, or prices have changed since (``Ledger.reprice``); the
                reservation then stays as it is.
            LedgerError: If the ledger cannot be written.
        """
        self._resolve(ReservationState.COMMITTED, ran, entries.note(note))
        self._state = ReservationState.COMMITTED

    def release(self, *, note: str = "") -> None:
        """Give it back: nothing of it has been released, and nothing will be.

        No program can check that; whoever calls this says so, and the ledger keeps who.

        Args:
            note: Why.

        Raises:
            IncompatibleError: If it was committed before.
            LedgerError: If the ledger cannot be written.
        """
        self._resolve(ReservationState.RELEASED, None, entries.note(note))
        self._state = ReservationState.RELEASED

    def __enter__(self) -> Self:
        """Return it, or raise where it is resolved, or was made elsewhere or entered before."""
        if os.getpid() != self._process:
            raise IncompatibleError(
                f"the reservation {self.key!r} was made in process {self._process}, which may "
                "enter it as well: it is leave to run there alone"
            )
        if self._state is not ReservationState.RESERVED:
            raise IncompatibleError(
                f"the reservation {self.key!r} was {self._state} before, and is no leave to run; "
                "another run needs another key"
            )
        with self._lock:
            entered, self._entered = self._entered, True
        if entered:
            raise IncompatibleError(
                f"the reservation {self.key!r} was made or entered before, and what it is for may "
                "have been released: it covers no second release. Where nothing was, release() it "
                "and reserve under another key; else commit() it"
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit in full after a normal end, if it is not resolved; else leave it counted."""
        if kind is None and self._state is ReservationState.RESERVED:
            self.commit()

    def __repr__(self) -> str:
        return f"<Reservation {self.key!r}, {self._state}: {self.mechanism}>"


def is_part(ran: Mechanism, reserved: Mechanism) -> bool:
    """Return whether each single release of a plan is one of another plan's, no more often."""
    return _counts(ran) <= _counts(reserved)


def _counts(plan: Mechanism) -> Counter[Mechanism]:
    counts: Counter[Mechanism] = Counter()
    for part, count in runs_of(plan):
        counts[part] += count
    return counts


def state_of(known: list[entries.Entry]) -> ReservationState:
    """Return what has become of a reservation, from its entries."""
    kinds = {str(entry.kind) for entry in known}
    if "release" in kinds:
        return ReservationState.RELEASED
    return ReservationState.COMMITTED if "commit" in kinds else ReservationState.RESERVED
