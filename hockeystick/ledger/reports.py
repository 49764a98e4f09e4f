"""What a ledger says of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import Notion


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
        head: How many entries there are and the hash of the last one. Whoever notes this outside
            the ledger can tell later, by ``Ledger.verify``, that nothing was taken away since.
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

    def __str__(self) -> str:
        """Return it in a few lines."""
        within = "" if self.within is None else f", a cap within {self.within!r}"
        return "\n".join(
            (
                f"dataset {self.dataset!r}{within}: {self.budget!r}, {self.adjacency} neighbours",
                f"spent      {self.spent!r}",
                f"remaining  {self.remaining!r}",
                f"unresolved {self.unresolved}",
                f"head       {self.head}",
            )
        )


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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewPrice:
    """A reservation that this library prices otherwise than the ledger does.

    Args:
        key: Whose price.
        mechanism: What counts.
        old: Its price in the ledger, as a guarantee, rounded up.
        new: Its price by this library, likewise.
    """

    key: str
    mechanism: Mechanism
    old: Notion
    new: Notion


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Repricing:
    """What ``Ledger.reprice`` changes.

    Args:
        changed: The reservations whose price changes.
        spent: What is charged before it.
        repriced: What is charged after it.
        recorded: Whether it was written.
    """

    changed: tuple[NewPrice, ...]
    spent: Notion
    repriced: Notion
    recorded: bool
