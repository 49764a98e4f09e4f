"""How many rounds of a federated plan were or may have been released."""

from __future__ import annotations

import hashlib
import os
from typing import Final, Protocol, TypeVar

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.release.charging import ChargedRun
from hockeystick.release.counting import Counter, OpensJournal, fingerprint, first

_KIND: Final = "hockeystick.release.federated"


class HasRounds(Protocol):
    """A plan of a number of rounds."""

    @property
    def rounds(self) -> int:
        """How many."""


_Plan = TypeVar("_Plan", bound=HasRounds)


def first_rounds(plan: _Plan, rounds: int) -> _Plan:
    """Return the plan of the first rounds of a federated plan.

    Args:
        plan: A plan with ``rounds``: ``FedSDP``, ``FedCDP``, ``FedAlphaCDP``, ``PriFedSync`` or
            ``FederatedClustering``.
        rounds: How many, an integer from 0 to the plan's.

    Raises:
        ParameterError: If the plan has fewer rounds.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import first_rounds
        >>> plan = hs.federated.FederatedClustering(5, dimension=2, radius=1, rounds=8)
        >>> first_rounds(plan, 3).rounds
        3
    """
    within = Domain(symbol="t", low=0, high=plan.rounds, typical=(0, plan.rounds), whole=True)
    return first(plan, _validate.count("rounds", rounds, within))


class RoundCount(ChargedRun):
    """A count of rounds that rises before anything of a round is released, and never falls.

    It belongs to one process. With a journal it goes on where an earlier process was killed, with
    the round after the last that had begun.
    """

    __slots__ = ("_counter",)

    def __init__(
        self, plan: HasRounds, journal: str | os.PathLike[str] | OpensJournal | None, *who: object
    ) -> None:
        super().__init__()
        shown = "" if journal is None else fingerprint(plan)
        title = " ".join((f"{_KIND} 2 {shown}", *map(repr, who)))
        earlier = f"{_KIND} 1 {hashlib.sha256(repr((plan, *who)).encode()).hexdigest()}"
        self._counter = Counter(plan, journal, title, earlier)

    @property
    def counted(self) -> int:
        """How many rounds have begun, those that were left out included."""
        return self._counter.counted

    def close(self, *, final: bool = True) -> None:
        """Leave the journal to others, and begin no more rounds.

        Args:
            final: False where another process is to go on with the run, for whose reservation in a
                ledger nothing is committed then.
        """
        self._counter.close(final=final)
