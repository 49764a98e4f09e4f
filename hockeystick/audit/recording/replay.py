"""What a training loop shows of itself when its steps are done again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import auto
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hockeystick._validate import WordEnum
from hockeystick.mechanisms import DPSGD

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
    """Data that differ in one record.

    Args:
        name: What differs, as a phrase.
        kind: WITHOUT (the record is removed), ADDED (one is added at the end), ZEROED (the record
            is in no batch) or REPLACED (it has another value).
        place: The record's place in the data that have it.
        value: What the engine needs to know of the other record.
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
        released: All coordinates that the step releases, over what is claimed of them: a sum of
            gradients over the clipping norm, so that noise has the deviation of the noise
            multiplier.
        noise_multiplier: What the plan claims of this step.
        before: A digest of all that the step starts from; "" where the engine has none.
    """

    released: Vector
    noise_multiplier: float
    before: str = ""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The releases of one replay, in order.

    Args:
        steps: The releases.
        after: A digest of what the run ended with.
        given: How many batches the loop was given; None where that is not seen.
        counted: How many steps the loop's account has counted; None where it has none.
    """

    steps: tuple[Step, ...]
    after: str = ""
    given: int | None = None
    counted: int | None = None


@runtime_checkable
class Replay(Protocol):
    """A training loop that can be done again on other data, with randomness that is chosen.

    ``precision`` is the relative rounding error of a released number, ``slack`` how far rounding
    may move a sum of gradients, in clipping norms. ``blocks`` names the parameters that the
    coordinates belong to, with their sizes, once a run was made.
    """

    plan: DPSGD
    examples: int
    precision: float
    slack: float
    assumptions: tuple[str, ...]

    @property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        """The names and sizes of the parameters that were released."""
        ...

    def neighbours(self, places: Sequence[int]) -> tuple[Neighbour, ...]:
        """Return neighbouring data, for records at some places."""
        ...

    def copies(self) -> int:
        """Return at how many places the record is that is at the most."""
        ...

    def draws(self, count: int) -> tuple[Places, ...]:
        """Return batches as the loop draws them, at least so many, one for each step."""
        ...

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
        ...
