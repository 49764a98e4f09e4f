"""What the reservations of a dataset must agree in: whose change is hidden, and from whom."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, final

from sqlalchemy import Connection, Select, select

from hockeystick.adjacency import Adjacency
from hockeystick.calibration import read_description
from hockeystick.errors import HockeystickError, LedgerError
from hockeystick.ledger.chains import Chain
from hockeystick.ledger.entries import EntryKind
from hockeystick.ledger.tables import ENTRIES
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.scope import Described, Fact, refuse_disagreement, states_more

_REMEMBERED: Final = 1024


@final
@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Those for which a budget is kept."""

    adjacency: Adjacency
    scope: tuple[Fact, ...] = ()

    def __str__(self) -> str:
        return f"the budget, for {self.adjacency} neighbours"


@final
@dataclass(slots=True)
class Scope:
    """What a dataset's reservations state, read as far as its chain went when it was last asked."""

    neighbours: _Neighbours
    entries: int = 0
    stating: list[Described] = field(default_factory=list)

    @classmethod
    def of(cls, adjacency: Adjacency) -> Scope:
        """Return the scope of a dataset of which nothing is read."""
        neighbours = _Neighbours(adjacency)
        return cls(neighbours, stating=[neighbours])

    def check(self, connection: Connection, end: Chain, mechanism: Mechanism) -> None:
        """Raise where a mechanism states something else than what counts in a chain.

        Raises:
            IncompatibleError: If it does.
            LedgerError: If what counts cannot be read.
        """
        if not mechanism.scope:
            return
        reserved = _contents(end.dataset).where(ENTRIES.c.seq >= self.entries)
        self._learn(connection.execute(reserved).scalars())
        self.entries = end.entries
        if states_more(mechanism, self.stating):
            self._forget_the_released(connection, end)
            refuse_disagreement((*self.stating, mechanism), f"dataset {end.dataset!r}")

    def _learn(self, contents: Iterable[str]) -> None:
        """Take over what further reservations state."""
        for stated in map(_stated, contents):
            if states_more(stated, self.stating):
                self.stating.append(stated)

    def _forget_the_released(self, connection: Connection, end: Chain) -> None:
        """Read all that counts anew."""
        own = ENTRIES.c.dataset == end.dataset
        released = select(ENTRIES.c.key).where(own, ENTRIES.c.kind == str(EntryKind.RELEASE))
        counting = _contents(end.dataset).where(ENTRIES.c.key.not_in(released))
        self.stating = [self.neighbours]
        self._learn(connection.execute(counting).scalars())


def _contents(dataset: str) -> Select[tuple[str]]:
    """Return the query for the different contents that were reserved in a dataset."""
    own = select(ENTRIES.c.content).where(ENTRIES.c.dataset == dataset)
    return own.where(ENTRIES.c.kind == str(EntryKind.RESERVE)).distinct()


@lru_cache(maxsize=_REMEMBERED)
def _stated(content: str) -> Mechanism:
    """Return the mechanism of an entry, or raise."""
    try:
        return read_description(json.loads(content))
    except (ValueError, HockeystickError) as error:
        raise LedgerError(
            "an earlier reservation cannot be read, so that nobody knows whether it protects the "
            f"same: it was written by another version of hockeystick, or is damaged ({error})"
        ) from error
