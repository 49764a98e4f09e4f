"""What every privacy guarantee has in common: it is a release of which nothing else is known."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Self, final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism

MU: Final = Domain(symbol="mu", low=0, high=math.inf, typical=(0.01, 10))
RHO: Final = Domain(symbol="rho", low=0, high=math.inf, typical=(1e-3, 10))
OMEGA: Final = Domain(symbol="omega", low=1, high=math.inf, low_open=True, typical=(2, 1000))
_SIZE: Final = whole_numbers("g", 1, (1, 100))
_OF_THE_WORST: Final = (
    "A lower end is for the worst release within the guarantee: a mechanism that has it may cost "
    "less."
)


@final
@dataclass(frozen=True, slots=True)
class Origin:
    """How a guarantee came about: by an exact conversion or by a bound, and by which theorem.

    Args:
        kind: "exact" or "bound".
        theorem: Why it holds.
        lower: What ``hockeystick.conversions.lower_ends`` says, where an accountant's interval is
            it; empty otherwise.
    """

    kind: Literal["exact", "bound"]
    theorem: str
    lower: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, init=False)
class Notion(Mechanism):
    """A privacy guarantee, which is also a mechanism: a release of which only that is known.

    It composes with everything else. What is accounted is the worst release with the guarantee;
    any function of the output of a release has the release's guarantee too (post-processing).

    Args:
        origin: How a conversion came to it; not compared and not shown. None where it was stated.
    """

    origin: Origin | None = field(default=None, kw_only=True, compare=False, repr=False)

    @property
    def adjacency(self) -> None:
        """None: the guarantee is for whichever neighbours it was stated for."""
        return None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The guarantee itself, of which nothing else is known, and what a lower end is for."""
        known = f"The release is {self._guarantee}: nothing else is known of it. "
        return (known + _OF_THE_WORST,)

    @property
    @abstractmethod
    def _guarantee(self) -> str:
        """The guarantee as people write it, such as "1-DP"."""

    @abstractmethod
    def group(self, size: int) -> Notion:
        """Return the guarantee for neighbours that differ in several records, rounded up."""

    def because(self, origin: Origin) -> Self:
        """Return the same guarantee with how it came about."""
        return replace(self, origin=origin)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return f"{self._guarantee} release", ()


def checked_origin(origin: object) -> Origin | None:
    """Return the origin if it is one, or raise."""
    if origin is None or isinstance(origin, Origin):
        return origin
    raise ParameterError("origin", origin, "an Origin or None")


def group_size(size: object) -> int:
    """Return the size of a group, or raise."""
    return _validate.count("size", size, _SIZE)
