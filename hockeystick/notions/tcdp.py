"""Truncated concentrated differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.errors import NoGroupFormError
from hockeystick.notions.base import OMEGA, RHO, Notion, Origin, checked_origin, group_size
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import product_up, quotient_down


@final
@dataclass(frozen=True, slots=True, init=False)
class TCDP(Notion):
    """(rho, omega)-tCDP: a Renyi divergence of at most ``rho alpha`` at orders in (1, omega).

    Guarantees:
        Any function of the output is (rho, omega)-tCDP too. As part of a plan it costs at most
        what its Renyi divergences allow, and at least what a Gaussian mechanism with
        ``mu = sqrt(2 rho)`` costs.

    Edge cases:
        rho 0 releases nothing, since it does so at one order; rho inf may release everything;
        omega inf is rho-zCDP.

    Args:
        rho: In [0, inf].
        omega: A number > 1, or inf.
        origin: How a conversion came to it.

    Raises:
        ParameterError: If a parameter is no number of its domain.

    References:
        Bun, Dwork, Rothblum and Steinke, "Composable and Versatile Privacy via Truncated CDP",
        STOC 2018, definition 1.

    Example:
        >>> import hockeystick as hs
        >>> hs.TCDP(rho=0.1, omega=50).group(2)
        TCDP(rho=0.4, omega=25.0)
    """

    rises_with = ("rho",)
    falls_with = ("omega",)

    rho: float
    omega: float

    def __init__(self, rho: float, omega: float, *, origin: Origin | None = None) -> None:
        object.__setattr__(self, "rho", _validate.real("rho", rho, RHO))
        object.__setattr__(self, "omega", _validate.real("omega", omega, OMEGA))
        object.__setattr__(self, "origin", checked_origin(origin))

    @property
    def _guarantee(self) -> str:
        return f"({plain(self.rho)}, {plain(self.omega)})-tCDP"

    def group(self, size: int) -> TCDP:
        """Return the guarantee for groups of g records: ``(g^2 rho, omega / g)``, rounded outward.

        The induction of Bun and Steinke 2016, proposition 1.9, for order alpha reads the divergence
        of one record at orders up to ``g alpha``.

        Args:
            size: The number g of records, an integer from 1 to below omega.

        Raises:
            ParameterError: If the size is no integer >= 1.
            NoGroupFormError: If it is not below omega, so that no order > 1 is left.
        """
        g = group_size(size)
        omega = quotient_down(self.omega, g)
        if omega <= 1.0:
            raise NoGroupFormError(
                f"{self._guarantee} says nothing of groups of {g}: no order above 1 is left of "
                "omega; the size must be below omega"
            )
        return TCDP(product_up(g * g, self.rho), omega)

    def for_group(self, size: int) -> TCDP:
        """Return the guarantee for a group, or raise where no order is left."""
        return self.group(size)
