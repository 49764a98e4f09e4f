"""Zero-concentrated differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.notions.base import RHO, Notion, Origin, checked_origin, group_size
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import product_up


@final
@dataclass(frozen=True, slots=True, init=False)
class ZCDP(Notion):
    """rho-zCDP: a Renyi divergence of at most ``rho alpha`` at every order ``alpha > 1``.

    Guarantees:
        Any function of the output is rho-zCDP too. As part of a plan it costs at most what its
        Renyi divergences allow, and at least what a Gaussian mechanism with ``mu = sqrt(2 rho)``
        costs, which is rho-zCDP. The converse does not hold: rho-zCDP need not be sqrt(2 rho)-GDP.

    Edge cases:
        rho 0 releases nothing; inf may release everything.

    Args:
        rho: In [0, inf].
        origin: How a conversion came to it.

    Raises:
        ParameterError: If rho is no such number.

    References:
        Bun and Steinke, "Concentrated Differential Privacy", TCC 2016, definition 1.1.

    Example:
        >>> import hockeystick as hs
        >>> hs.ZCDP(rho=0.5).group(3)
        ZCDP(rho=4.5)
    """

    rises_with = ("rho",)

    rho: float

    def __init__(self, rho: float, *, origin: Origin | None = None) -> None:
        object.__setattr__(self, "rho", _validate.real("rho", rho, RHO))
        object.__setattr__(self, "origin", checked_origin(origin))

    @property
    def _guarantee(self) -> str:
        return f"{plain(self.rho)}-zCDP"

    def group(self, size: int) -> ZCDP:
        """Return the guarantee for groups of g records: ``g^2 rho``, rounded up.

        Args:
            size: The number g of records, an integer >= 1.

        Raises:
            ParameterError: If the size is no such integer.

        References:
            Bun and Steinke 2016, proposition 1.9.
        """
        return ZCDP(product_up(group_size(size) ** 2, self.rho))

    def for_group(self, size: int) -> ZCDP:
        """Return the guarantee for a group: Gaussian noise has the largest divergences allowed."""
        return self.group(size)
