"""How many rounds of a federated plan were or may have been released."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.federated.instance_level import FedAlphaCDP
from hockeystick.mechanisms.training.schedules import Values, factors_of
from hockeystick.release.charging import ChargedRun
from hockeystick.release.journal import Counting, OpensJournal, fingerprint, opened

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
    first = _validate.count("rounds", rounds, within)
    changes: dict[str, Any] = {"rounds": first}
    if isinstance(plan, FedAlphaCDP) and plan.schedule is not None and first < plan.rounds:
        factors = factors_of(plan.schedule, plan.rounds, "rounds")[:first]
        changes["schedule"] = Values(factors.tolist()) if first else None
    found: _Plan = replace(plan, **changes)  # type: ignore[type-var]
    return found


class RoundCount(ChargedRun):
    """A count of rounds that rises before anything of a round is released, and never falls.

    It belongs to one process. With a journal it goes on where an earlier process was killed, with
    the round after the last that had begun.
    """

    __slots__ = ("_counted", "_journal", "_lock", "_rounds")

    def __init__(
        self, plan: HasRounds, journal: str | os.PathLike[str] | OpensJournal | None, *who: object
    ) -> None:
        super().__init__()
        self._rounds, self._counted, self._lock = plan.rounds, 0, Lock()
        self._journal: Counting | None = None
        if journal is not None:
            title = " ".join((f"{_KIND} 2 {fingerprint(plan)}", *map(repr, who)))
            earlier = f"{_KIND} 1 {hashlib.sha256(repr((plan, *who)).encode()).hexdigest()}"
            first = partial(first_rounds, plan)
            self._journal = opened(journal, title, first, plan.rounds, earlier)
            self._counted = min(self._journal.counted, plan.rounds)
            self._rounds = min(plan.rounds, self._journal.most)

    @property
    def counted(self) -> int:
        """How many rounds have begun, those that were left out included."""
        return self._counted

    def close(self, *, final: bool = True) -> None:
        """Leave the journal to others, and begin no more rounds.

        Args:
            final: False where another process is to go on with the run, for whose reservation in a
                ledger nothing is committed then.
        """
        if os.getpid() == self._process:  # another one may have forked the lock as it was held
            with self._lock:
                self._rounds = 0
        if self._journal is not None:
            if final:
                self._journal.finish()
            self._journal.close()

    def _begin(self, index: int | None = None) -> int:
        """Count all rounds up to one, by default the next, the journal first; return its number.

        Raises where that round had begun before, in another thread included, or is beyond the last.
        """
        self._check_process()
        with self._lock:
            begun = self._counted if index is None else index
            self._check_next(begun)
            if self._journal is not None:
                self._journal.add(begun + 1 - self._counted)
            self._counted = begun + 1
        return begun

    def _check_next(self, index: int) -> None:
        """Raise where a round is over, had begun, or was left out."""
        if index >= self._rounds:
            raise IncompatibleError(
                f"the plan's {self._rounds:,} rounds have begun, and each is counted: a further "
                "one needs a plan with more rounds, accounted for as a whole"
                if self._rounds
                else "this run is closed, or its plan has no rounds"
            )
        if index < self._counted:
            raise IncompatibleError(
                f"round {index:,} has begun already, or was left out: a round that is run twice "
                "releases twice what is accounted for"
            )
