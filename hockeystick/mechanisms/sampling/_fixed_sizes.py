"""What samples of a fixed size share, with replacement and without."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import Mechanism, checked

REPLACED: Final = (
    "Its noise is measured by what replacing one example may move the result by: for contributions "
    "clipped to a norm, by twice that norm, where a plan of DP-SGD counts noise in once the norm."
)


def twice_moved(adjacency: Adjacency, one: str) -> str:
    """Return why clipped sums over sets of a fixed size cost more than by coins, as a sentence.

    Nothing under zero-out, where who is zeroed is still drawn.
    """
    if adjacency is Adjacency.ZERO_OUT:
        return ""
    return (
        f" Another {one} takes the place of one that is missing or replaced, so that a sum moves "
        "by up to twice the clipping norm and the noise counts half: sampling 'poisson', a coin "
        f"for each {one}, costs less."
    )


@dataclass(frozen=True, slots=True, init=False)
class OnFixedSizeSample(Mechanism):
    """A mechanism run on a secret sample of a fixed size, for which one example is replaced."""

    rises_with = ("batch_size",)
    falls_with = ("examples",)

    _of_stated_size: ClassVar[bool] = True
    _drawn: ClassVar[str]

    inner: Mechanism
    batch_size: int
    examples: int
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __init__(
        self,
        inner: Mechanism,
        batch_size: float,
        examples: float,
        adjacency: Adjacency | str = Adjacency.REPLACE_ONE,
    ) -> None:
        object.__setattr__(self, "inner", checked("inner", inner))
        object.__setattr__(self, "examples", _validate.count("examples", examples))
        object.__setattr__(self, "batch_size", _validate.count("batch_size", batch_size))
        neighbours = _validate.choice("adjacency", adjacency, Adjacency)
        object.__setattr__(self, "adjacency", neighbours)
        self._check()
        if inner.adjacency not in (None, Adjacency.REPLACE_ONE):
            raise IncompatibleError(
                f"the inner mechanism, {inner}, is described under {inner.adjacency}, and samples "
                f"of a fixed size are neighbours under {Adjacency.REPLACE_ONE}; describe it under "
                "that"
            )

    @abstractmethod
    def _check(self) -> None:
        """Raise where the sizes or the adjacency are none that the sampling can have."""

    @abstractmethod
    def _sampling(self) -> str:
        """Return the description of the sampling, a sentence."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (self.adjacency.meaning, self._sampling(), *self.inner.assumptions, REPLACED)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the inner mechanism's words with the sampling added."""
        name, details = self.inner._words()
        inside = name if details else f"[{name}]"
        sizes = f"{self.batch_size} of {self.examples}"
        return f"{self._drawn} {inside}", (*details, sizes, self.adjacency)
