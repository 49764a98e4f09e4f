"""Gaussian differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.notions.base import MU, Notion, Origin, checked_origin, group_size
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import product_up


@final
@dataclass(frozen=True, slots=True, init=False)
class GDP(Notion):
    """mu-GDP: no easier to tell from neighbours than N(0, 1) from N(mu, 1).

    ``T(M(D), M(D')) >= G_mu`` with ``G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)``.

    Guarantees:
        Any function of the output is mu-GDP too. As part of a plan it costs what the Gaussian
        mechanism with noise multiplier 1/mu costs: exact for the class.

    Edge cases:
        mu 0 releases nothing; inf may release everything.

    Args:
        mu: In [0, inf].
        origin: How a conversion came to it.

    Raises:
        ParameterError: If mu is no such number.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, definition 2.6.

    Example:
        >>> import hockeystick as hs
        >>> hs.GDP(mu=0.5).group(3)
        GDP(mu=1.5)
    """

    rises_with = ("mu",)

    mu: float

    def __init__(self, mu: float, *, origin: Origin | None = None) -> None:
        object.__setattr__(self, "mu", _validate.real("mu", mu, MU))
        object.__setattr__(self, "origin", checked_origin(origin))

    @property
    def _guarantee(self) -> str:
        return f"{plain(self.mu)}-GDP"

    def group(self, size: int) -> GDP:
        """Return the guarantee for groups of g records: ``g mu``, rounded up.

        Args:
            size: The number g of records, an integer >= 1.

        Raises:
            ParameterError: If the size is no such integer.

        References:
            Dong, Roth and Su 2022, theorem 2.14 and what follows it.
        """
        return GDP(product_up(group_size(size), self.mu))

    def for_group(self, size: int) -> GDP:
        """Return the guarantee for a group: it is attained."""
        return self.group(size)
