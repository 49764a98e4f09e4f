"""What samples of a fixed size share, with replacement and without."""

from __future__ import annotations

from typing import Protocol

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import Mechanism


class FixedSizeMechanism(Protocol):
    """A mechanism on a sample of a fixed size."""

    @property
    def inner(self) -> Mechanism:
        """What is run on the sample."""
        ...

    @property
    def batch_size(self) -> int:
        """The size of a sample."""
        ...

    @property
    def examples(self) -> int:
        """The size of the data set."""
        ...

    @property
    def adjacency(self) -> Adjacency:
        """Which data sets are neighbours."""
        ...


def set_batch(mechanism: Mechanism, batch_size: float, examples: float) -> None:
    """Set the sizes of the sample and of the data set, or raise."""
    object.__setattr__(mechanism, "examples", _validate.count("examples", examples))
    object.__setattr__(mechanism, "batch_size", _validate.count("batch_size", batch_size))


def sampled_words(name: str, mechanism: FixedSizeMechanism) -> tuple[str, tuple[str, ...]]:
    """Return the inner mechanism's words with the sizes and the adjacency added."""
    inner, details = mechanism.inner._words()
    inside = inner if details else f"[{inner}]"
    sizes = f"{mechanism.batch_size} of {mechanism.examples}"
    return f"{name} {inside}", (*details, sizes, mechanism.adjacency)


def refuse_other_adjacency(inner: Mechanism, neighbours: Adjacency) -> None:
    """Raise where an inner mechanism is described under another adjacency than its samples have."""
    if inner.adjacency not in (None, neighbours):
        raise IncompatibleError(
            f"the inner mechanism, {inner}, is described under {inner.adjacency}, and samples of "
            f"a fixed size are neighbours under {neighbours}; describe it under that"
        )
