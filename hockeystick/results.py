"""What an accountant answers: a proven interval, or an approximation that says it is one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
)
from fractions import Fraction
from typing import Any, Final, Literal, final

from hockeystick._validate import PARAMETERS, choice, one_of, real
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError

Quantity = Literal["epsilon", "delta"]

_QUANTITIES: Final = ("epsilon", "delta")
_HEADLINE_DIGITS: Final = 6
_FLOAT_DIGITS: Final = 17
_FEWEST_DIGITS: Final = 3
_DIGITS_BEYOND_GAP: Final = 2


@final
@dataclass(frozen=True, slots=True, init=False)
class Certified:
    """An epsilon or a delta as a proven interval: lower <= truth <= upper.

    Guarantees:
        The truth for the plan under the stated assumptions lies between ``lower`` and ``upper``,
        rounding errors included. Only ``upper`` may be quoted as the privacy guarantee, and it is
        what ``float(answer)`` returns. ``estimate`` is the accountant's best guess in between.

    Edge cases:
        All three may be 0 or, for an epsilon, inf. An unknown upper end is inf (epsilon) or 1
        (delta); an unknown lower end is 0.

    Args:
        lower: Proven lower bound, a float; an ``mpmath.mpf`` where more digits were asked for.
        estimate: Best guess, the same type.
        upper: Proven upper bound, the same type.
        quantity: "epsilon" or "delta".
        accountant: Name of the accountant that answered.
        adjacency: The neighbours meant; None where the answer is the same for all.
        assumptions: What must hold in practice for the answer to apply, as sentences.

    Raises:
        ParameterError: If an end is no number of the quantity's domain, or they are out of order.

    Example:
        >>> import hockeystick as hs
        >>> answer = hs.Certified(2.0, 2.25, 2.5, quantity="epsilon", accountant="rdp")
        >>> float(answer)
        2.5
        >>> print(answer)
        epsilon = 2.5 (proven in [2, 2.5]; rdp)
    """

    lower: float
    estimate: float
    upper: float
    _: KW_ONLY
    quantity: Quantity
    accountant: str
    adjacency: Adjacency | None
    assumptions: tuple[str, ...]

    def __init__(
        self,
        lower: float,
        estimate: float,
        upper: float,
        *,
        quantity: Quantity,
        accountant: str,
        adjacency: Adjacency | str | None = None,
        assumptions: Iterable[str] = (),
    ) -> None:
        _set_metadata(self, quantity, accountant, adjacency, assumptions)
        ends = {"lower": lower, "estimate": estimate, "upper": upper}
        for name, value in ends.items():
            object.__setattr__(self, name, _exact_number(name, value, quantity))
        if not self.lower <= self.estimate:
            raise ParameterError("lower", self.lower, f"at most the estimate, {self.estimate!r}")
        if not self.estimate <= self.upper:
            raise ParameterError("upper", self.upper, f"at least the estimate, {self.estimate!r}")

    def __float__(self) -> float:
        """Return the smallest float that is at least ``upper``."""
        nearest = float(self.upper)
        return nearest if nearest >= self.upper else math.nextafter(nearest, math.inf)

    @property
    def width(self) -> float:
        """Return upper - lower, and 0 where the two are equal, inf included."""
        return self.upper - self.lower if self.lower != self.upper else 0.0

    @property
    def relative_width(self) -> float:
        """Return the width over the estimate: 0 for an exact answer, inf for a width over 0."""
        width = self.width
        if width == 0:
            return 0.0
        return width / self.estimate if self.estimate > 0 and width < math.inf else math.inf

    def as_dict(self) -> dict[str, Any]:
        """Return the answer ready for JSON.

        Floats stay numbers; inf becomes the string "inf"; the digits of an ``mpmath.mpf`` are kept
        in a string, rounded outwards (``lower`` down, ``upper`` up).
        """
        return {
            "kind": "certified",
            "quantity": self.quantity,
            "lower": _jsonable(self.lower, ROUND_FLOOR),
            "estimate": _jsonable(self.estimate, ROUND_HALF_EVEN),
            "upper": _jsonable(self.upper, ROUND_CEILING),
            **_metadata(self),
        }

    def __str__(self) -> str:
        """Return one line; every upper end is rounded up and every lower end down."""
        headline = _decimal(self.upper, _HEADLINE_DIGITS, ROUND_CEILING)
        digits = self._digits_that_show_the_width()
        lower = _decimal(self.lower, digits, ROUND_FLOOR)
        upper = _decimal(self.upper, digits, ROUND_CEILING)
        return f"{self.quantity} = {headline} (proven in [{lower}, {upper}]; {_source(self)})"

    def _digits_that_show_the_width(self) -> int:
        """Return how many significant digits tell the two ends apart, and two more."""
        most = max(_digits_held(self.lower), _digits_held(self.upper))
        if self.upper == math.inf or self.lower == self.upper:
            return most
        gap = _exact(self.upper) - _exact(self.lower)
        needed = _magnitude(_exact(self.upper)) - _magnitude(gap) + _DIGITS_BEYOND_GAP
        return min(most, max(needed, _FEWEST_DIGITS))


@final
@dataclass(frozen=True, slots=True, init=False)
class Approximate:
    """An epsilon or a delta that nothing proves: never to be quoted as a guarantee.

    Guarantees:
        None, in either direction. It has no ``float()``, so that it cannot stand in for a bound
        by mistake; read ``value``.

    Args:
        value: The approximation, a float or an ``mpmath.mpf``.
        quantity: "epsilon" or "delta".
        accountant: Name of the accountant that answered.
        adjacency: The neighbours meant; None where the answer is the same for all.
        assumptions: What must hold in practice for the answer to apply, as sentences.

    Raises:
        ParameterError: If the value is no number of the quantity's domain.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.Approximate(2.25, quantity="epsilon", accountant="gdp"))
        epsilon ~ 2.25 (approximation, no guarantee; gdp)
    """

    value: float
    _: KW_ONLY
    quantity: Quantity
    accountant: str
    adjacency: Adjacency | None
    assumptions: tuple[str, ...]

    def __init__(
        self,
        value: float,
        *,
        quantity: Quantity,
        accountant: str,
        adjacency: Adjacency | str | None = None,
        assumptions: Iterable[str] = (),
    ) -> None:
        _set_metadata(self, quantity, accountant, adjacency, assumptions)
        object.__setattr__(self, "value", _exact_number("value", value, quantity))

    def as_dict(self) -> dict[str, Any]:
        """Return the answer ready for JSON, in the form of ``Certified.as_dict``."""
        return {
            "kind": "approximation",
            "quantity": self.quantity,
            "value": _jsonable(self.value, ROUND_HALF_EVEN),
            **_metadata(self),
        }

    def __str__(self) -> str:
        """Return one line that says that the value is no guarantee."""
        value = _decimal(self.value, _HEADLINE_DIGITS, ROUND_HALF_EVEN)
        return f"{self.quantity} ~ {value} (approximation, no guarantee; {_source(self)})"


def _set_metadata(
    result: Certified | Approximate,
    quantity: object,
    accountant: object,
    adjacency: object,
    assumptions: Iterable[object],
) -> None:
    """Check and set the fields that both kinds of answer share."""
    if not isinstance(accountant, str) or not accountant:
        raise ParameterError("accountant", accountant, "an accountant's name")
    sentences = () if isinstance(assumptions, str) else tuple(assumptions)
    if isinstance(assumptions, str) or not all(isinstance(text, str) for text in sentences):
        raise ParameterError("assumptions", assumptions, "a tuple of sentences")
    neighbours = None if adjacency is None else choice("adjacency", adjacency, Adjacency)
    object.__setattr__(result, "quantity", one_of("quantity", quantity, _QUANTITIES))
    object.__setattr__(result, "accountant", str(accountant))
    object.__setattr__(result, "adjacency", neighbours)
    object.__setattr__(result, "assumptions", sentences)


def _metadata(result: Certified | Approximate) -> dict[str, Any]:
    """Return the fields that both kinds of answer share, ready for JSON."""
    return {
        "accountant": result.accountant,
        "adjacency": None if result.adjacency is None else str(result.adjacency),
        "assumptions": list(result.assumptions),
    }


def _source(result: Certified | Approximate) -> str:
    """Return the accountant and, where there is one, the adjacency."""
    return ", ".join(filter(None, (result.accountant, result.adjacency)))


def _is_mpf(value: object) -> bool:
    """Return whether the value is a finite or infinite mpmath.mpf, without loading mpmath."""
    return hasattr(value, "_mpf_")


def _exact_number(name: str, value: float, quantity: Quantity) -> float:
    """Return the value unrounded, as a float or an mpf, or raise."""
    domain = PARAMETERS[quantity]
    if _is_mpf(value) and domain.contains(value):
        return value
    number = real(name, value, domain)
    if number != value:
        raise ParameterError(name, value, f"{domain.allowed}, exactly a float")
    return number


def _exact(value: float) -> Fraction:
    """Return the exact value of a finite float or mpf."""
    if not _is_mpf(value):
        return Fraction(value)
    mantissa, exponent = _man_exp(value)
    return mantissa * Fraction(2) ** exponent


def _man_exp(value: Any) -> tuple[int, int]:
    """Return the integers of a finite mpf: mantissa * 2 ** exponent."""
    mantissa, exponent = value.man_exp
    return int(mantissa), int(exponent)


def _rounded(value: Fraction, digits: int, rounding: str) -> Decimal:
    """Return the value rounded in the given direction to that many significant digits."""
    context = Context(digits, rounding, MIN_EMIN, MAX_EMAX, traps=[])
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _magnitude(value: Fraction) -> int:
    """Return the decimal exponent of a positive value's leading digit."""
    return _rounded(value, 1, ROUND_FLOOR).adjusted()


def _digits_held(value: float) -> int:
    """Return how many significant digits a value's type can carry."""
    if not _is_mpf(value) or value in (0, math.inf):
        return _FLOAT_DIGITS
    mantissa, _ = _man_exp(value)
    return max(_FLOAT_DIGITS, math.ceil(mantissa.bit_length() * math.log10(2)) + 1)


def _decimal(value: float, digits: int, rounding: str) -> str:
    """Return the value in decimal, rounded in the given direction."""
    if value == math.inf:
        return "inf"
    rounded = _rounded(_exact(value), digits, rounding)
    if rounded == 0 or -5 <= rounded.adjusted() < _FLOAT_DIGITS:
        return f"{rounded:f}"
    return f"{rounded:e}"


def _jsonable(value: float, rounding: str) -> float | str:
    """Return a float as it is, inf and an mpf as text."""
    if value == math.inf or _is_mpf(value):
        return _decimal(value, _digits_held(value), rounding)
    return value
