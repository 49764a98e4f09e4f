"""Renyi differential privacy, and the concentrated notions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import IncompatibleError, NoGroupFormError, ParameterError
from hockeystick.notions.base import OMEGA, RHO, Notion, Origin, checked_origin, group_size
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import (
    DIGITS,
    evaluated_down,
    evaluated_up,
    product_up,
    quotient_down,
)
from hockeystick.numerics.working_precision import working_digits


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

        References:
            Bun and Steinke 2016, proposition 1.9.
        """
        return ZCDP(product_up(group_size(size) ** 2, self.rho))

    def for_group(self, size: int) -> ZCDP:
        """Return the guarantee for a group: Gaussian noise has the largest divergences allowed."""
        return self.group(size)


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


ORDER: Final = Domain(
    symbol="alpha", low=1, high=math.inf, low_open=True, high_open=True, typical=(1.5, 256)
)
DIVERGENCE: Final = Domain(symbol="tau", low=0, high=math.inf, typical=(1e-3, 10))
_SHOWN: Final = 8
_ALLOWED: Final = "a mapping from orders > 1 to divergences >= 0, or pairs of such"
_OF_A_PLAN: Final = "; those of a plan are convert(plan, RenyiDP, orders=[2, 4, 8])"


@final
@dataclass(frozen=True, slots=True, init=False)
class RenyiDP(Notion):
    """(alpha, tau)-RDP at one or more orders: Renyi divergences of at most tau.

    ``D_alpha(M(D) || M(D')) = ln E_M(D')[(dM(D)/dM(D'))^alpha] / (alpha - 1) <= tau`` for all
    neighbours and both orders of each two.

    Guarantees:
        Any function of the output has the same divergences. As part of a plan it costs at most
        what convexity makes of them between the orders given, and at least what the Gaussian
        mechanism costs that has no larger ones.

    Edge cases:
        A divergence of 0 at one order means that nothing is released; inf says nothing. Of an
        order given twice the smaller divergence counts.

    Args:
        divergences: A mapping from orders, finite and > 1, to divergences in [0, inf], or an
            iterable of such pairs; at least one. Kept as a tuple of pairs in order.
        origin: How a conversion came to it.

    Raises:
        ParameterError: If there is none, or an order or a divergence is outside its domain.

    References:
        Mironov, "Renyi Differential Privacy", CSF 2017, definition 4.

    Example:
        >>> import hockeystick as hs
        >>> hs.RenyiDP({2: 0.5, 10: 1})
        RenyiDP(divergences=((2.0, 0.5), (10.0, 1.0)))
    """

    divergences: tuple[tuple[float, float], ...]

    def __init__(
        self,
        divergences: Mapping[float, float] | Mapping[int, float] | Iterable[tuple[float, float]],
        *,
        origin: Origin | None = None,
    ) -> None:
        object.__setattr__(self, "divergences", _sorted(divergences))
        object.__setattr__(self, "origin", checked_origin(origin))

    @property
    def _guarantee(self) -> str:
        if len(self.divergences) == 1:
            ((order, divergence),) = self.divergences
            return f"({plain(order)}, {plain(divergence)})-RDP"
        if len(self.divergences) <= _SHOWN:
            pairs = (f"{plain(order)}: {plain(size)}" for order, size in self.divergences)
            return f"RDP {{{', '.join(pairs)}}}"
        orders = f"{plain(self.divergences[0][0])} to {plain(self.divergences[-1][0])}"
        return f"RDP of {len(self.divergences)} orders from {orders}"

    def group(self, size: int) -> RenyiDP:
        """Return the guarantee for groups of g records, rounded outward.

        With ``r = 1 - 1/alpha``, a divergence of tau at order alpha becomes
        ``tau (alpha - 1) (r^-g - 1)`` at order ``1 / (1 - r^g) >= alpha / g``. It is the weak
        triangle inequality ``D_b(P||R) <= (b - 1/p)/(b - 1) D_pb(P||Q) + D_(pb-1)/(p-1)(Q||R)``
        iterated with ``p = alpha / b``, so that every divergence read is that of order alpha; for
        Gaussian curves it loses next to nothing, where halving the order loses a factor of 3/2.

        Args:
            size: The number g of records, an integer >= 1.

        Raises:
            IncompatibleError: If the group is so large that no order above 1 is left.

        References:
            Mironov 2017, proposition 11 (the inequality) and proposition 2 (the coarser form).
        """
        g = group_size(size)
        if g == 1:
            return RenyiDP(self.divergences)
        found = [_for_group(order, divergence, g) for order, divergence in self.divergences]
        left = [(order, divergence) for order, divergence in found if order > 1.0]
        if not left:
            raise IncompatibleError(
                f"{self._guarantee} says nothing of groups of {g}: no order above 1 is left"
            )
        return RenyiDP(left)

    def for_group(self, size: int) -> RenyiDP:
        """Refuse groups: what ``group`` says of them is a bound, which need not be attained.

        Raises:
            NoGroupFormError: If the size is above 1.
        """
        if group_size(size) == 1:
            return self
        raise NoGroupFormError(
            f"what a {self} costs groups of {size} is known by bounds alone: use "
            f".group({size}), its guarantee for them"
        )


def _sorted(divergences: object) -> tuple[tuple[float, float], ...]:
    """Return the pairs of order and divergence in order, or raise."""
    pairs = divergences.items() if isinstance(divergences, Mapping) else divergences
    if isinstance(pairs, str | bytes):
        raise ParameterError("divergences", divergences, _ALLOWED)
    try:
        listed = [pair if isinstance(pair, str) else tuple(pair) for pair in _iterable(pairs)]
    except TypeError:
        raise ParameterError("divergences", divergences, _ALLOWED + _OF_A_PLAN) from None
    least: dict[float, float] = {}
    for pair in listed:
        if len(pair) != 2:
            raise ParameterError("divergences", divergences, _ALLOWED)
        order = _validate.real("order", pair[0], ORDER)
        divergence = _validate.real("divergence", pair[1], DIVERGENCE)
        least[order] = min(divergence, least.get(order, math.inf))
    if not least:
        raise ParameterError("divergences", divergences, _ALLOWED)
    return tuple(sorted(least.items()))


def _iterable(value: object) -> Iterable[Any]:
    """Return what can be gone through; a TypeError comes of what cannot."""
    found: Any = value
    through: Iterable[Any] = iter(found)
    return through


def _for_group(order: float, divergence: float, g: int) -> tuple[float, float]:
    """Return the order, rounded down, and the divergence, rounded up, for a group."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        exponent = -g * mp.log1p(-1 / mp.mpf(order))
        new = evaluated_down(-1 / mp.expm1(-exponent))
        if divergence in (0.0, math.inf):
            return new, divergence
        return new, evaluated_up(divergence * (mp.mpf(order) - 1) * mp.expm1(exponent))
