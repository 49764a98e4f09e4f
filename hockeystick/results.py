"""What an accountant answers: a proven interval, or an approximation that says so; rows of them."""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from importlib import import_module
from numbers import Number
from typing import Any, Final, Literal, NoReturn, TypeVar, final

from hockeystick._validate import PARAMETERS, Domain, choice, one_of, real
from hockeystick.adjacency import Adjacency
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.numerics.numerals import (
    at_least,
    at_most,
    formatted,
    headline,
    interval,
    is_mpf,
    jsonable,
    nearest,
    plain,
)

Quantity = Literal["epsilon", "delta"]
Answered = Quantity | Literal["mu", "regret"]

_DOMAINS: Final = {
    "epsilon": PARAMETERS["epsilon"],
    "delta": PARAMETERS["delta"],
    "mu": Domain(symbol="mu", low=0, high=math.inf, typical=(0.01, 10)),
    "regret": Domain(symbol="kappa", low=0, high=1, typical=(1e-6, 0.1)),
}
# At what an answer holds: the name and the domain of it. One direction has a delta at any epsilon.
_WHERE: Final = {
    "epsilon": ("delta", PARAMETERS["delta"]),
    "delta": ("epsilon", Domain(symbol="eps", low=-math.inf, high=math.inf, typical=(0, 20))),
}

_Kind = TypeVar("_Kind", bound=type)
_Row = TypeVar("_Row", bound=Any)


def no_number(kind: _Kind) -> _Kind:
    """Return a class of answers that raises for ``==`` with a number, always False, and floor.

    Python itself raises a TypeError for ``<`` and arithmetic. Answers hash as before.
    """
    same: Callable[[object, object], bool] = vars(kind)["__eq__"]

    def refuse(self: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is no number: use its upper end or its value")

    def equal(self: object, other: object) -> bool:
        is_number = isinstance(other, (Number, Decimal)) or is_mpf(other)
        return refuse(self) if is_number else same(self, other)

    setattr(kind, "__eq__", equal)  # noqa: B010
    setattr(kind, "__floor__", refuse)  # noqa: B010
    return kind


@dataclass(frozen=True, slots=True, repr=False)
class _Answer(ABC):
    """What a proven interval and an approximation both say of themselves."""

    _: KW_ONLY
    quantity: Answered
    accountant: str
    adjacency: Adjacency | None = None
    assumptions: tuple[str, ...] = ()
    at: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.accountant, str) or not self.accountant:
            raise ParameterError("accountant", self.accountant, "an accountant's name")
        given: Any = self.assumptions
        sentences = () if isinstance(given, str) else tuple(given)
        if isinstance(given, str) or not all(isinstance(text, str) for text in sentences):
            raise ParameterError("assumptions", given, "a tuple of sentences")
        of = one_of("quantity", self.quantity, tuple(_DOMAINS))
        if self.at is not None and of not in _WHERE:
            raise ParameterError("at", self.at, f"None for {of}")
        at = None if self.at is None else real("at", self.at, _WHERE[of][1])
        if self.adjacency is not None:
            self._set(adjacency=choice("adjacency", self.adjacency, Adjacency))
        self._set(quantity=of, accountant=str(self.accountant), assumptions=sentences, at=at)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _as_dict(self, kind: str, **numbers: float | str) -> dict[str, Any]:
        at = None if self.at is None else {_WHERE[self.quantity][0]: jsonable(self.at)}
        return {
            "kind": kind,
            "quantity": self.quantity,
            **numbers,
            "at": at,
            "accountant": self.accountant,
            "adjacency": None if self.adjacency is None else str(self.adjacency),
            "assumptions": list(self.assumptions),
        }

    @property
    @abstractmethod
    def _said(self) -> tuple[str, str]:
        """The number to quote, rounded up, and what is proven of it."""

    def _words(self) -> tuple[str, str]:
        """Return the number to quote and at what it holds; and what is proven, and who says so."""
        at = "" if self.at is None else f" at {_WHERE[self.quantity][0]} = {plain(self.at)}"
        number, proven = self._said
        sign = "" if number.startswith("~") else "= "
        source = ", ".join(filter(None, (self.accountant, self.adjacency)))
        return f"{self.quantity} {sign}{number}{at}", f"{proven}; {source}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return "{} ({})".format(*self._words())

    def _repr_html_(self) -> str:
        """Return the answer for a notebook: the number to quote, and below it what is proven."""
        rests = "".join(f"<li>{html.escape(text)}</li>" for text in self.assumptions)
        folded = f"<details><summary>This holds if</summary><ul>{rests}</ul></details>"
        number, proven = map(html.escape, self._words())
        shown = f"<strong>{number}</strong><br><small>{proven}</small>"
        return f"<div>{shown}{folded if rests else ''}</div>"


@final
@no_number
@dataclass(frozen=True, slots=True, repr=False)
class Certified(_Answer):
    """An epsilon, a delta, or what sums them up, as a proven interval: lower <= truth <= upper.

    Guarantees:
        The truth for the plan under the stated assumptions lies between ``lower`` and ``upper``,
        rounding errors included. Only ``upper`` may be quoted as the privacy guarantee, and it is
        what ``float(answer)`` returns. An unknown upper end is inf (epsilon, mu) or 1 (delta,
        regret); an unknown lower end is 0.

        ``<``, ``== 2.0``, ``max``, ``round`` and arithmetic raise a TypeError. Print by
        ``f"{answer:.3f}"``, which rounds up; ``"%.3f" % answer`` rounds to the nearest.

    Args:
        lower: Proven lower bound, a float; an ``mpmath.mpf`` where more digits were asked for.
        estimate: Best guess, the same type.
        upper: Proven upper bound, the same type.
        quantity: "epsilon" or "delta"; "mu" or "regret" of a ``GaussianSummary``.
        accountant: Name of the accountant that answered.
        adjacency: The neighbours meant; None where the answer is the same for all.
        assumptions: What must hold in practice for the answer to apply, as sentences.
        at: The delta at which an epsilon holds, or the epsilon of a delta; None if it is not said.

    Raises:
        ParameterError: If an end is no number of the quantity's domain, or they are out of order.

    Example:
        >>> import hockeystick as hs
        >>> answer = hs.Certified(2.0, 2.25, 2.5, quantity="epsilon", accountant="rdp", at=1e-5)
        >>> float(answer), f"{answer:.0f}"
        (2.5, '3')
        >>> print(answer)
        epsilon = 2.5 at delta = 1e-05 (proven in [2, 2.5]; rdp)
    """

    lower: float
    estimate: float
    upper: float

    def __post_init__(self) -> None:
        _Answer.__post_init__(self)
        for name in ("lower", "estimate", "upper"):
            self._set(**{name: _exact_number(name, getattr(self, name), self.quantity)})
        if not self.lower <= self.estimate:
            raise ParameterError("lower", self.lower, f"at most the estimate, {self.estimate!r}")
        if not self.estimate <= self.upper:
            raise ParameterError("upper", self.upper, f"at least the estimate, {self.estimate!r}")

    def __float__(self) -> float:
        """Return the smallest float that is at least ``upper``."""
        nearest = float(self.upper)
        return nearest if nearest >= self.upper else math.nextafter(nearest, math.inf)

    def __format__(self, spec: str) -> str:
        """Return ``upper``, rounded up, in a format such as ".3f"; without one, ``str(answer)``."""
        return formatted(self.upper, spec) if spec else str(self)

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
        """Return the answer ready for JSON; "at" has the delta of an epsilon by its name.

        Infinity is the string "inf", the digits of an ``mpmath.mpf`` a string, rounded outwards.
        """
        return self._as_dict(
            "certified",
            lower=jsonable(self.lower, at_least),
            estimate=jsonable(self.estimate),
            upper=jsonable(self.upper, at_most),
        )

    @property
    def _said(self) -> tuple[str, str]:
        lower, upper = interval(self.lower, self.upper)
        return headline(self.lower, self.upper), f"proven in [{lower}, {upper}]"


@final
@no_number
@dataclass(frozen=True, slots=True, repr=False)
class Approximate(_Answer):
    """An epsilon or a delta that nothing proves: never to be quoted as a guarantee.

    Guarantees:
        None, in either direction. ``float()`` of it raises a TypeError, as it must not stand in
        for a bound by mistake; read ``value``.

    Args:
        value: The approximation, a float or an ``mpmath.mpf``; the rest as for ``Certified``.

    Raises:
        ParameterError: If the value is no number of the quantity's domain.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.Approximate(2.25, quantity="epsilon", accountant="gdp"))
        epsilon ~ 2.25 (approximation, no guarantee; gdp)
    """

    value: float

    def __post_init__(self) -> None:
        _Answer.__post_init__(self)
        self._set(value=_exact_number("value", self.value, self.quantity))

    def as_dict(self) -> dict[str, Any]:
        """Return the answer ready for JSON, in the form of ``Certified.as_dict``."""
        return self._as_dict("approximation", value=jsonable(self.value))

    @property
    def _said(self) -> tuple[str, str]:
        return f"~ {nearest(self.value)}", "approximation, no guarantee"


def _exact_number(name: str, value: float, quantity: Answered) -> float:
    domain = _DOMAINS[quantity]
    if is_mpf(value) and domain.contains(value):
        return value
    number = real(name, value, domain)
    if number != value:
        raise ParameterError(name, value, f"{domain.allowed}, exactly a float")
    return number


def cells_of(answer: Certified | Approximate | None, reason: str) -> tuple[str, str]:
    """Return an answer as two cells: the number to quote, rounded up, and what is proven."""
    return ("", reason) if answer is None else answer._said


class Rows(tuple[_Row, ...]):
    """Rows, in their order: a tuple that prints as a table."""

    __slots__ = ()

    def to_dataframe(self) -> Any:
        """Return the rows as a ``pandas.DataFrame``, one column for each thing that they say.

        Raises:
            HockeystickError: If pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            message = "data frames need pandas: pip install 'hockeystick[pandas]'"
            raise HockeystickError(message) from None
        return pandas.DataFrame([row.as_dict() for row in self])

    def _cells(self) -> list[dict[str, str]]:
        rows = (row.as_dict().items() for row in self)
        return [{name: "" if one is None else str(one) for name, one in row} for row in rows]

    def __repr__(self) -> str:
        rows = self._cells()
        lines = [tuple(rows[0]), *(tuple(row.values()) for row in rows)] if rows else []
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = (map(str.ljust, line, widths) for line in lines)
        return "\n".join("  ".join(line).rstrip() for line in padded)
