"""What a loop shows of itself when its steps are done again; any library's, as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import auto
from typing import Any, Final, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hockeystick import _validate
from hockeystick._validate import Domain, WordEnum
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import DPSGD, Sampling

Vector = NDArray[np.float64]
Places = NDArray[np.int64]


class Kind(WordEnum):
    """How the data of a replay differ from the loop's own."""

    WITHOUT = auto()
    ADDED = auto()
    ZEROED = auto()
    REPLACED = auto()


@final
@dataclass(frozen=True, slots=True)
class Neighbour:
    """Data that differ in one record: how in words, how, where, and the other record.

    WITHOUT: the record is removed; ADDED: one is added at the end; ZEROED: it is in no batch;
    REPLACED: it has another value. The place is that in the data that have it.
    """

    name: str
    kind: Kind
    place: int
    value: Any = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One release, in units in which a record's sensitivity is 1.

    Args:
        released: All coordinates of a sum of gradients over the clipping norm.
        noise_multiplier: What the plan claims of this step.
        before: A digest of all that the step starts from; "" where the engine has none.
    """

    released: Vector
    noise_multiplier: float
    before: str = ""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One replay.

    Args:
        steps: The releases, in order.
        after: A digest of what the run ended with.
        given: How many batches the loop was given; None where that is not seen.
        counted: How many steps the loop's account has counted; None where it has none.
    """

    steps: tuple[Step, ...]
    after: str = ""
    given: int | None = None
    counted: int | None = None


class ReplayEnded(BaseException):
    """As many steps as were asked for are done; no error, so that no loop handles it as one."""


@final
class Tape:
    """What a replay notes: so many releases, and what the loop goes on with in their place."""

    def __init__(self, plan: DPSGD, length: int, frozen: Sequence[Vector] | None = None) -> None:
        self._noises, self._length, self._frozen = plan.noise_multipliers, length, frozen or ()
        self.steps: list[Step] = []
        self.blocks: tuple[tuple[str, int], ...] = ()
        self.given = 0
        self.counted: int | None = None

    @property
    def noise_multiplier(self) -> float:
        """What the plan claims of the next release."""
        return float(self._noises[min(len(self.steps), len(self._noises) - 1)])

    def note(self, parts: Sequence[tuple[str, Vector, float]], before: str) -> list[Vector]:
        """Note parts by name, with their units; return what takes their place, or nothing."""
        place = len(self.steps)
        if place >= self._length:
            raise ReplayEnded
        flat = [value / unit for _, value, unit in parts]
        released = np.concatenate(flat) if flat else np.zeros(0)
        self.blocks = self.blocks or tuple((name, value.size) for name, value, _ in parts)
        self.steps.append(Step(released, self.noise_multiplier, before))
        kept = np.asarray(self._frozen[place]) if place < len(self._frozen) else released
        if kept is released or kept.shape != released.shape:
            return []
        ends = np.cumsum([len(one) for one in flat])
        return [one * part[2] for part, one in zip(parts, np.split(kept, ends[:-1]), strict=True)]

    def run(self, after: str, *, known: bool = True) -> Run:
        """Return what was noted, and how many batches were given where that is known."""
        return Run(tuple(self.steps), after, self.given if known else None, self.counted)


@runtime_checkable
class Replay(Protocol):
    """A training loop that can be done again on other data, with randomness that is chosen.

    ``precision`` is the relative rounding error of a released number, ``slack`` how far rounding
    may move a sum of gradients, in clipping norms.
    """

    plan: DPSGD
    examples: int
    precision: float
    slack: float
    assumptions: tuple[str, ...]

    @property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        """The names and sizes of the parameters that the coordinates of a run belong to."""

    def neighbours(self, places: Sequence[int]) -> tuple[Neighbour, ...]:
        """Return neighbouring data, for records at some places."""

    def copies(self) -> int:
        """Return at how many places the record is that is at the most."""

    def draws(self, count: int) -> tuple[Places, ...]:
        """Return batches as the loop draws them, at least so many, one for each step."""

    def run(
        self,
        neighbour: Neighbour | None,
        batches: Sequence[Places],
        *,
        key: int | None,
        frozen: Sequence[Vector] | None = None,
    ) -> Run:
        """Do steps on given batches.

        Args:
            neighbour: The data, or None for the loop's own.
            batches: Places in these data, one batch for each step.
            key: What decides all noise, the same for the same key; None for the loop's own noise.
            frozen: What the loop goes on with in place of each release; None for what it released.
        """


_POSITIVE: Final = Domain("C", 0, np.inf, (0.1, 10), low_open=True, high_open=True)
FACTORS: Final = (
    ("a record times 1000", 1000.0),
    ("a record times -1000", -1000.0),
    ("an undefined one", np.nan),
)


@final
class PlainLoop(Replay):
    """A loop of any library, for ``record``: a function that releases a sum, one that draws.

    Args:
        plan: What is claimed.
        data: An array with a row for each record, at least 2.
        release: ``release(data, places, seed)`` returns what a step releases of the records at
            these places, as an array of numbers: by its own random numbers where ``seed`` is
            None, else by those of that seed alone.
        norm: The clipping norm.
        divisor: What the sum is divided by.
        draw: ``draw(step)`` returns the places of a step's batch; None leaves these untested.
        precision: The relative rounding error of what is released: 2^-24 of singles.
        slack: How far rounding may move a sum, in clipping norms.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.loop import Sampler, noisy_sum
        >>> from hockeystick.audit import PlainLoop, record
        >>> plan = hs.DPSGD(examples=50, batch_size=10, steps=100, noise_multiplier=1)
        >>> def release(data, places, seed):
        ...     source = {} if seed is None else {"bits": np.random.Philox(seed).random_raw}
        ...     return noisy_sum(data[places], norm=1, noise_multiplier=1, **source)
        >>> data = np.random.default_rng(1).standard_normal((50, 4))
        >>> loop = PlainLoop(plan, data, release, norm=1, draw=Sampler(plan, 50).draw)
        >>> record(loop).consistent
        True
    """

    def __init__(
        self,
        plan: DPSGD,
        data: Any,
        release: Callable[[Any, Places, int | None], Any],
        *,
        norm: float,
        divisor: float = 1.0,
        draw: Callable[[int], Places] | None = None,
        precision: float = 2.0**-53,
        slack: float = 1e-4,
    ) -> None:
        if not isinstance(plan, DPSGD):
            raise ParameterError("plan", plan, "an hs.DPSGD")
        self.plan: DPSGD = plan
        self._data = np.asarray(data)
        if self._data.ndim < 1 or len(self._data) < 2:
            raise ParameterError("data", data, "an array with a row for each of 2 records or more")
        self.examples: int = len(self._data)
        self._release, self._draw = release, draw
        clipped = _validate.real("norm", norm, _POSITIVE)
        self._unit = clipped / _validate.real("divisor", divisor, _POSITIVE)
        self.precision: float = _validate.real("precision", precision, _POSITIVE)
        self.slack: float = _validate.real("slack", slack, _POSITIVE)
        self.assumptions: tuple[str, ...] = (
            "The functions are what the loop does in each step; what it keeps between steps is not "
            "seen.",
        )
        self._width = 0

    @property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        return (("", self._width),)

    def neighbours(self, places: Sequence[int]) -> tuple[Neighbour, ...]:
        row = self._data[0]
        others = [("a record again", row)]
        if np.issubdtype(row.dtype, np.floating):
            others = [(name, factor * row) for name, factor in FACTORS]
        return neighbours_of(self.plan, places, self.examples, others)

    def copies(self) -> int:
        return 1  # who a row belongs to is not seen

    def draws(self, count: int) -> tuple[Places, ...]:
        if self._draw is None:
            return ()
        total = max(self.plan.total_steps, 1)
        return tuple(np.asarray(self._draw(step % total), dtype=np.int64) for step in range(count))

    def run(
        self,
        neighbour: Neighbour | None,
        batches: Sequence[Places],
        *,
        key: int | None,
        frozen: Sequence[Vector] | None = None,
    ) -> Run:
        data = self._data if neighbour is None else _changed(self._data, neighbour)
        noise = self.plan.noise_multipliers
        steps = []
        for place, batch in enumerate(batches):
            seed = None if key is None else 2**20 * key + place
            released = np.asarray(self._release(data, batch, seed), dtype=np.float64).ravel()
            self._width = len(released)
            steps.append(Step(released / self._unit, float(noise[place % len(noise)])))
        return Run(tuple(steps), given=len(batches))


def neighbours_of(
    plan: DPSGD, places: Sequence[int], examples: int, others: Sequence[tuple[str, Any]]
) -> tuple[Neighbour, ...]:
    """Return the neighbours that a plan protects: of each record, and of some that are far off.

    Where the number of records is fixed, a record is left out of the batch or replaced.
    """
    each = plan.sampling in (Sampling.POISSON, Sampling.RANDOM_ALLOCATION, Sampling.FULL_BATCH)
    if plan.adjacency == "add-remove" and each and plan.batch_cap is None:
        less, missing, other, at = "without record {}", Kind.WITHOUT, Kind.ADDED, examples
        more = "with one record more, {}"
    else:
        less, missing, other, at = "record {} in no batch", Kind.ZEROED, Kind.REPLACED, places[0]
        more = f"record {at} replaced by {{}}"
    return (
        *(Neighbour(less.format(one), missing, one) for one in places),
        *(Neighbour(more.format(name), other, at, value) for name, value in others),
    )


def _changed(data: NDArray[Any], neighbour: Neighbour) -> NDArray[Any]:
    if neighbour.kind is Kind.WITHOUT:
        return np.delete(data, neighbour.place, axis=0)
    row = np.asarray(neighbour.value, dtype=data.dtype)[None]
    if neighbour.kind is Kind.ADDED:
        return np.concatenate([data, row])
    found = data.copy()
    found[neighbour.place] = row[0]
    return found
