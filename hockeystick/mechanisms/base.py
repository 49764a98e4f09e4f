"""What every mechanism and every plan has in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from hockeystick.mechanisms.composition import Composed, Repeated

A_MECHANISM: Final = "a mechanism"
# What is added where the name of a file is given for what it describes.
READ_FROM_A_FILE: Final = " (hockeystick.load_plan(path).plan reads one from a file)"


class Mechanism(ABC):
    """A randomised release of something about the data: a frozen description, no accounting.

    Mechanisms are values: they compare and hash by what they say, can be pickled and copied, and
    never change. ``m1 @ m2`` is both releases (their composition), ``m ** n`` is n runs of one.

    A mechanism is described for one person's example and one pair of neighbouring data sets;
    noise scales are in units of the query's sensitivity under the adjacency meant.

    Example:
        >>> import hockeystick as hs
        >>> step = hs.PoissonSubsampled(hs.Gaussian(noise_multiplier=1.1), rate=256 / 60_000)
        >>> print(step**14_062 @ hs.Gaussian(noise_multiplier=20))
        Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.00426667) x 14062 \
and Gaussian (noise multiplier 20)
    """

    __slots__ = ()
    # Which way the cost goes where a number of the description grows and all others stay.
    rises_with: ClassVar[tuple[str, ...]] = ()
    falls_with: ClassVar[tuple[str, ...]] = ()
    unordered: ClassVar[tuple[str, ...]] = ()
    # Whether the description is for a stated number of examples, as a batch out of so many is.
    _of_stated_size: ClassVar[bool] = False

    @property
    @abstractmethod
    def adjacency(self) -> Adjacency | None:
        """The neighbours that the description is for; None where it holds for all of them."""

    @property
    def expanded(self) -> Mechanism:
        """What the description stands for: a composition, say; itself where it is one release."""
        return self

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in practice for the description to apply, as sentences for a reviewer."""
        return ()

    def for_group(self, size: int) -> Mechanism | None:
        """Return a mechanism that costs one record what this one costs a group of records.

        Neighbours of the result move the query ``size`` times as far as those of the mechanism. No
        ``size`` records move it further (the triangle inequality), and some move it as far: those
        that all move it in one direction. Scales are rounded to the side of less privacy.

        Returns:
            The mechanism; None where none is known, as for most that add no noise to a query.

        Raises:
            IncompatibleError: If what is known of one record says nothing of several.
        """
        return None

    @abstractmethod
    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return a readable name and the details that belong in brackets after it."""

    def __str__(self) -> str:
        """Return the description as a person would say it, on one line."""
        name, details = self._words()
        return f"{name} ({', '.join(details)})" if details else name

    def __matmul__(self, other: Mechanism) -> Composed:
        """Return the composition: both mechanisms run on the same data."""
        from hockeystick.mechanisms.composition import Composed

        return Composed((self, checked("the right side of @", other)))

    def __rmatmul__(self, other: object) -> Composed:
        """Refuse a left side that is not a mechanism."""
        raise ParameterError("the left side of @", other, "a mechanism")

    def __pow__(self, count: float) -> Repeated:
        """Return the mechanism run ``count`` times on the same data."""
        from hockeystick.mechanisms.composition import Repeated

        return Repeated(self, count)


class Plan(Mechanism):
    """A mechanism as people say it, which stands for another one made of simpler parts."""

    __slots__ = ()

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What the plan comes down to; it is accounted in the plan's stead."""

    @property
    def expanded(self) -> Mechanism:
        """The mechanism that the plan comes down to."""
        return self.mechanism

    def for_group(self, size: int) -> Mechanism | None:
        """Return what the mechanism that the plan comes down to is for a group."""
        return self.mechanism.for_group(size)


def checked(name: str, value: object, *, allowed: str = A_MECHANISM) -> Mechanism:
    """Return the value if it is a mechanism, or raise; for a plan's file, say how it is read."""
    if isinstance(value, Mechanism):
        return value
    names_a_file = str(value).endswith(".toml") and isinstance(value, str | os.PathLike)
    raise ParameterError(name, value, allowed + READ_FROM_A_FILE * names_a_file)
