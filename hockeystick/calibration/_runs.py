"""What has run so far: each mechanism once, with how often."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import Any, Final

from hockeystick import _validate
from hockeystick.calibration._descriptions import Json, decoded, encoded
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Composed, Mechanism, Repeated
from hockeystick.mechanisms.base import checked
from hockeystick.notions import PureDP

# mpmath's precision is shared by all threads: questions are answered one at a time.
ASKING: Final = RLock()
VERSION: Final = 1
_STEP: Final = ("mechanism", "count")


def unrolled(mechanism: object, count: object) -> tuple[Mechanism, int]:
    """Return what runs and how often, a repetition as so many runs of its inside; or raise."""
    once, runs = checked("mechanism", mechanism), _validate.count("count", count)
    if isinstance(once, Repeated):
        return once.inner, _validate.count("count", once.count * runs)
    return once, runs


class Runs:
    """Mechanisms with their counts, in the order of their first runs. It has no lock of its own."""

    __slots__ = ("_counts", "_named", "total")

    def __init__(self) -> None:
        self._counts: dict[Mechanism, int] = {}
        self._named: Mechanism | None = None
        self.total = 0

    def check(self, mechanism: Mechanism, count: int) -> None:
        """Raise where so many runs more could not be added.

        Raises:
            ParameterError: If there would be more than 10^15 runs.
            IncompatibleError: If it is described under another adjacency than what has run.
        """
        _validate.count("count", self.total + count)
        if self._named is not None and mechanism.adjacency is not None:
            Composed((self._named, mechanism))

    def add(self, mechanism: Mechanism, count: int) -> None:
        """Add so many runs, or raise as ``check`` does, with nothing changed."""
        self.check(mechanism, count)
        if count == 0:
            return
        self._counts[mechanism] = self._counts.get(mechanism, 0) + count
        self.total += count
        if self._named is None and mechanism.adjacency is not None:
            self._named = mechanism

    def copy(self) -> Runs:
        """Return the same runs, to read while others are added here."""
        other = Runs()
        other._counts = dict(self._counts)
        other._named = self._named
        other.total = self.total
        return other

    @property
    def counts(self) -> Mapping[Mechanism, int]:
        """The mechanisms with their counts."""
        return self._counts

    @property
    def plan(self) -> Mechanism:
        """The composition of all runs; a release of nothing where there is none."""
        parts = [one if n == 1 else one**n for one, n in self._counts.items()]
        if not parts:
            return PureDP(0) ** 0
        return parts[0] if len(parts) == 1 else Composed(parts)

    def state(self) -> list[Json]:
        """Return the runs ready for JSON."""
        return [{"mechanism": encoded(one), "count": n} for one, n in self._counts.items()]


def runs_of(state: object) -> Runs:
    """Return the runs that a state tells, or raise."""
    if not isinstance(state, list):
        raise ParameterError("steps", state, "a list as state_dict writes it")
    runs = Runs()
    for step in state:
        found = fields_of(step, "a step", _STEP)
        runs.add(*unrolled(decoded(found["mechanism"]), found["count"]))
    return runs


def versioned(state: object, what: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the fields of a state after its kind and version, or raise.

    Raises:
        ParameterError: If it is no such state, of another kind, or of another version.
    """
    header = state if isinstance(state, Mapping) else {}
    if header.get("kind") != what:
        raise ParameterError("kind", header.get("kind"), f"{what!r} in the state of such an object")
    version = header.get("version")
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
