"""Checks of what a caller passes in: each parameter's domain is declared once, in PARAMETERS."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeGuard, TypeVar

import numpy as np

from hockeystick.errors import ParameterError, same_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_COUNT: Final = 10**15
# The usual ones first: whether a class is a Real takes a search.
_NUMBERS = (float, int, numbers.Real, Decimal)
_Value = TypeVar("_Value")
_Choice = TypeVar("_Choice", bound=StrEnum)


class WordEnum(StrEnum):
    """One of a few words, whose text is accepted wherever one is asked for, and shown."""

    def __repr__(self) -> str:
        return repr(self.value)

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        """Refuse another text as it is refused where the parameter is named."""
        one_of(cls.__name__.lower(), value, tuple(member.value for member in cls))
        raise AssertionError(value)


@dataclass(frozen=True, slots=True)
class Domain:
    """What values a numeric parameter may take, the ends included unless they are open.

    ``symbol`` is its letter in formulas; plans in practice stay in the range ``typical``.
    """

    symbol: str
    low: float
    high: float
    typical: tuple[float, float]
    whole: bool = False
    low_open: bool = False
    high_open: bool = False

    @property
    def allowed(self) -> str:
        """The domain in words, to follow "must be"."""
        if self.whole:
            high = "10^15" if self.high == MAX_COUNT else f"{self.high}"
            return f"an integer from {self.low} to {high}"
        low = f"{'>' if self.low_open else '>='} {self.low:g}"
        if math.isinf(self.high):
            return f"a finite number {low}" if self.high_open else f"a number {low} or inf"
        if self.low_open or self.high_open:
            return f"a number {low} and {'<' if self.high_open else '<='} {self.high:g}"
        return f"a number from {self.low:g} to {self.high:g}"

    def contains(self, value: object) -> TypeGuard[float]:
        """Return whether the value is a number inside the domain; a bool is no number."""
        if isinstance(value, bool) or not isinstance(value, _NUMBERS):
            return False
        number: Any = value
        try:
            above = number > self.low if self.low_open else number >= self.low
            below = number < self.high if self.high_open else number <= self.high
        except ArithmeticError:  # a decimal NaN refuses to be compared
            return False
        return bool(above and below and (not self.whole or number == int(number)))

    def contains_all(self, values: NDArray[np.float64]) -> bool:
        """Return whether all numbers of an array are inside the domain, none of them -0.0."""
        above = values > self.low if self.low_open else values >= self.low
        below = values < self.high if self.high_open else values <= self.high
        return bool((above & below).all()) and not bool((values == 0.0).any())


def whole_numbers(symbol: str, low: int, typical: tuple[int, int]) -> Domain:
    return Domain(symbol=symbol, low=low, high=MAX_COUNT, typical=typical, whole=True)


PARAMETERS: Final[Mapping[str, Domain]] = MappingProxyType(
    {
        "batch_size": whole_numbers("m", 1, (16, 16_384)),
        "count": whole_numbers("n", 0, (1, 10**6)),
        "delta": Domain(symbol="delta", low=0, high=1, typical=(1e-12, 1e-4)),
        "digits": Domain(symbol="d", low=1, high=1000, typical=(20, 60), whole=True),
        "epochs": Domain(symbol="E", low=0, high=math.inf, high_open=True, typical=(0.5, 500)),
        "epsilon": Domain(symbol="eps", low=0, high=math.inf, typical=(0.01, 20)),
        "examples": whole_numbers("N", 1, (1000, 10**7)),
        "noise_multiplier": Domain(symbol="z", low=0, high=math.inf, typical=(0.5, 10)),
        "rate": Domain(symbol="q", low=0, high=1, typical=(1e-5, 0.5)),
        "scale": Domain(symbol="b", low=0, high=math.inf, typical=(0.1, 100)),
        "tolerance": Domain(symbol="tol", low=1e-10, high=0.1, typical=(1e-9, 1e-3)),
        "steps": whole_numbers("T", 0, (1, 10**6)),
    }
)


def real(name: str, value: Any, domain: Domain | None = None) -> float:
    """Return the value as a float, or raise if it is outside the domain (by default the name's)."""
    domain, given = domain or PARAMETERS[name], one(name, value, domain)
    try:
        number = float(given)
    except OverflowError:
        number = math.inf
    if number != given and (number == 0 or math.isinf(number)):
        raise ParameterError(name, value, f"{domain.allowed}, within the range of a float")
    return number + 0.0  # turns -0.0 into 0.0


def one(name: str, value: _Value, domain: Domain | None = None) -> _Value:
    """Return a number as it is, or raise if it is outside the domain (by default the name's)."""
    domain, given = domain or PARAMETERS[name], value
    if not domain.contains(given):
        raise ParameterError(name, given, domain.allowed)
    return value


def probability(name: str, value: object) -> float | Fraction:
    """Return a probability as a float, or exactly where it is a fraction, or raise."""
    number = real(name, value, PARAMETERS["rate"])
    return value if isinstance(value, Fraction) else number


def has_several(value: object) -> TypeGuard[Iterable[Any]]:
    """Return whether a value can be gone through; an array of no dimension cannot."""
    return isinstance(value, Iterable) and not (isinstance(value, np.ndarray) and value.ndim == 0)


def reals(name: str, values: Any, domain: Domain) -> tuple[float, ...]:
    """Return values as floats, at least one, or raise for the first that is outside the domain."""
    several = has_several(values) and not isinstance(values, str)
    given: Any = values if isinstance(values, np.ndarray) or not several else tuple(values)
    if not several or len(given) == 0:
        raise ParameterError(name, values, f"one or more numbers, each {domain.allowed}")
    # Millions of floats are compared at once; whatever else there is, one by one.
    if isinstance(given, np.ndarray) or all(type(value) is float for value in given):
        array = np.asarray(given)
        if array.ndim == 1 and array.dtype == np.float64 and domain.contains_all(array):
            return tuple(array.tolist())
    return tuple(real(name, value, domain) for value in given)


def count(name: str, value: Any, domain: Domain | None = None) -> int:
    return int(one(name, value, domain))


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        listed = ", ".join(repr(str(text)) for text in allowed)
        raise ParameterError(name, value, f"one of {listed}" if len(allowed) > 1 else listed)
    return str(value)


def name_in(name: str, value: object, names: Collection[str]) -> str:
    """Return one of some names, whatever its capitals and dashes, or raise."""
    if isinstance(value, str) and value not in names:
        value = same_name(value, names)
    return one_of(name, value, tuple(names))


def choice(name: str, value: object, enum: type[_Choice]) -> _Choice:
    if isinstance(value, enum):
        return value
    return enum(one_of(name, value, tuple(member.value for member in enum)))
