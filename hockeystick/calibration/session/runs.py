"""What has run so far: each mechanism once, with how often."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from threading import RLock
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.io.codec import Json
from hockeystick.io.codec import describe as describe
from hockeystick.io.codec import read_description as read_description
from hockeystick.mechanisms import Composed, Mechanism, Repeated
from hockeystick.mechanisms.base import A_MECHANISM, checked
from hockeystick.mechanisms.scope import refuse_disagreement, states_more
from hockeystick.notions import PureDP

Costs: TypeAlias = tuple[Fraction, ...]

# mpmath's precision is shared by all threads: questions are answered one at a time.
EVALUATING: Final = RLock()
# A process is forked only between two answers: its child has no thread that could end one.
if hasattr(os, "register_at_fork"):  # all systems but Windows
    os.register_at_fork(
        before=EVALUATING.acquire,
        after_in_parent=EVALUATING.release,
        after_in_child=EVALUATING.release,
    )
VERSION: Final = 1
_A_STEP_OF_NUMBERS: Final = (
    f"{A_MECHANISM} (a step of DP-SGD is PoissonSubsampled(Gaussian(noise_multiplier), rate))"
)
_STEP: Final = ("mechanism", "count")


def unrolled(mechanism: object, count: object) -> tuple[Mechanism, int]:
    """Return the mechanism and its number of runs, a repetition unrolled; or raise."""
    allowed = _A_STEP_OF_NUMBERS if isinstance(mechanism, float | int) else A_MECHANISM
    once = checked("mechanism", mechanism, allowed=allowed)
    runs = _validate.count("count", count)
    if isinstance(once, Repeated):
        return once.inner, _validate.count("count", once.count * runs)
    return once, runs


class _Sums(NamedTuple):
    """What is known of all runs together: how many, who state their scope, what they cost."""

    total: int
    stating: tuple[Mechanism, ...]
    spent: Costs


class Runs:
    """Mechanisms with their counts, in the order of their first runs, and what they have cost.

    It has no lock of its own. An interrupt leaves an addition either undone or entered: what is
    about to change is written down at once, and whoever reads or adds next completes it.
    """

    __slots__ = ("_counts", "_due", "_sums")

    def __init__(self, spent: Costs = ()) -> None:
        self._counts: dict[Mechanism, int] = {}
        self._sums = _Sums(0, (), spent)
        self._due: tuple[Mechanism, int, _Sums] | None = None

    def check(self, mechanism: Mechanism, count: int) -> None:
        """Raise where ``count`` more runs could not be added."""
        total, stating, _ = self._enter()
        _validate.count("count", total + count)
        if mechanism not in self._counts:
            refuse_disagreement((*stating, mechanism), "a composition")

    def add(self, mechanism: Mechanism, count: int, spent: Costs = ()) -> None:
        """Add ``count`` runs, after which ``spent`` is spent; or raise as ``check``, unchanged."""
        self.check(mechanism, count)
        if count == 0:
            return
        total, stating, _ = self._enter()
        before = self._counts.get(mechanism, 0)
        if not before and states_more(mechanism, stating):
            stating = (*stating, mechanism)
        runs = before + count
        self._due = mechanism, runs, _Sums(total + count, stating, spent)
        self._enter()

    def copy(self, spent: Costs | None = None) -> Runs:
        """Return the same runs, to read while others are added here; or with another cost."""
        sums, other = self._enter(), Runs()
        other._counts = dict(self._counts)
        other._sums = sums if spent is None else sums._replace(spent=spent)
        return other

    def _enter(self) -> _Sums:
        """Return the sums once what is due is entered; again what was entered in part."""
        if self._due is not None:
            mechanism, runs, sums = self._due
            self._counts[mechanism] = runs
            self._sums = sums
            self._due = None
        return self._sums

    @property
    def total(self) -> int:
        """How many runs there are."""
        return self._enter().total

    @property
    def spent(self) -> Costs:
        """What they have cost."""
        return self._enter().spent

    @property
    def counts(self) -> Mapping[Mechanism, int]:
        """The mechanisms with their counts."""
        self._enter()
        return self._counts

    @property
    def plan(self) -> Mechanism:
        """The composition of all runs; a release of nothing where there is none."""
        parts = [one if n == 1 else one**n for one, n in self.counts.items()]
        if not parts:
            return PureDP(0) ** 0
        return parts[0] if len(parts) == 1 else Composed(parts)

    def state(self) -> list[Json]:
        """Return the runs ready for JSON."""
        return [{"mechanism": describe(one), "count": n} for one, n in self.counts.items()]


class Recorder(ABC):
    """What records runs as they happen, from any number of threads."""

    __slots__ = ("_lock", "_runs")
    # What a state has besides its steps; an order only where one was chosen.
    _NAMES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, runs: Runs) -> None:
        self._lock = RLock()
        self._runs = runs

    def __len__(self) -> int:
        with self._lock:
            return self._runs.total

    def __reduce__(self) -> tuple[Callable[[object], Self], tuple[dict[str, Any]]]:
        return type(self).from_state_dict, (self.state_dict(),)

    def state_dict(self) -> dict[str, Any]:
        """Return what is recorded and its terms, ready for JSON.

        Reading it back, also through a text in JSON, gives the same, every float to its last bit.

        Raises:
            ParameterError: If a mechanism holds a trade-off function that only a program knows.
        """
        header = {"kind": type(self).__name__, "version": VERSION, **self._terms}
        return {**header, "steps": self._snapshot().state()}

    @classmethod
    def from_state_dict(cls, state: object) -> Self:
        """Return one in a state that ``state_dict`` returned.

        Raises:
            IncompatibleError: If its mechanisms do not go together, or with its terms.
        """
        given = state if isinstance(state, Mapping) else {}
        names = [name for name in cls._NAMES if name != "order" or name in given]
        found = _versioned(given, cls.__name__, (*names, "steps"))
        made = cls._with_terms(found)
        made._take_over(_runs_from(found["steps"]))
        return made

    def load_state_dict(self, state: object) -> None:
        """Take over a state of the same terms, in place of one's own; errors change nothing."""
        other = type(self).from_state_dict(state)
        for name in self._NAMES:
            own, found = self._terms.get(name), other._terms.get(name)
            if own != found:
                raise ParameterError(name, found, f"that of this one, {own!r}")
        with self._lock:
            self._runs = other._runs

    @property
    def _terms(self) -> dict[str, Any]:
        return {}

    @classmethod
    @abstractmethod
    def _with_terms(cls, terms: Mapping[str, Any]) -> Self:
        """Return one of these terms, of which nothing has run."""

    @abstractmethod
    def _take_over(self, runs: Runs) -> None:
        """Record runs that have happened where nothing is recorded yet."""

    def _snapshot(self) -> Runs:
        with self._lock:
            return self._runs.copy()


def _runs_from(state: object) -> Runs:
    if not isinstance(state, list):
        raise ParameterError("steps", state, "a list as state_dict writes it")
    runs = Runs()
    for step in state:
        found = fields_of(step, "a step", _STEP)
        runs.add(*unrolled(read_description(found["mechanism"]), found["count"]))
    return runs


def _versioned(state: Mapping[str, Any], what: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    if state.get("kind") != what:
        raise ParameterError("kind", state.get("kind"), f"{what!r} in the state of such an object")
    version = state.get("version")
    if isinstance(version, bool) or version != VERSION:
        allowed = f"{VERSION}, the version that this hockeystick reads"
        raise ParameterError("version", version, allowed)
    return fields_of(state, f"the state of {what}", ("kind", "version", *names))


def fields_of(state: object, what: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Return an object with exactly these fields, or raise."""
    if not isinstance(state, Mapping):
        raise ParameterError(what, state, "an object as state_dict writes it")
    if set(state) != set(names):
        allowed = f"given with {', '.join(names)} and no other field"
        raise ParameterError(what, sorted(map(str, state)), allowed)
    return state
