"""Exact numbers as text, and prices whose sums stay short."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Final, TypeAlias

Costs: TypeAlias = tuple[Fraction, ...]

# Which denominators are kept: sums then have at most their least common multiple, however many
# and in whichever order.
_COMMON: Final = 10**1100 * math.lcm(*range(1, 101))
_DIGITS: Final = 40


def storable(price: Fraction) -> Fraction:
    """Return a price >= 0, or a decimal of 40 digits above it where its sums would grow long."""
    if _COMMON % price.denominator == 0:
        return price
    bits = price.numerator.bit_length() - price.denominator.bit_length()
    unit = Fraction(10) ** (math.floor(bits * math.log10(2)) - _DIGITS)
    return math.ceil(price / unit) * unit


def plus(first: Costs, second: Costs) -> Costs:
    """Return the sums."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


def minus(first: Costs, second: Costs) -> Costs:
    """Return the differences."""
    return tuple(a - b for a, b in zip(first, second, strict=True))


def text_of(costs: Costs) -> str:
    """Return fractions as a list in JSON of texts, each two hexadecimal integers."""
    return json.dumps([f"{one.numerator:x}/{one.denominator:x}" for one in costs])


def costs_of(text: str) -> Costs:
    """Return the fractions that such a text says.

    Raises:
        ValueError: If it is no such text.
    """
    try:
        found = [one.split("/") for one in _listed(text)]
        return tuple(Fraction(int(top, 16), _positive(int(bottom, 16))) for top, bottom in found)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"no exact numbers: {text}") from error


def _listed(text: str) -> list[str]:
    """Return the list of a text, or raise."""
    found = json.loads(text)
    if not isinstance(found, list):
        raise TypeError(text)
    return found


def _positive(value: int) -> int:
    """Return a number > 0, or raise."""
    if value <= 0:
        raise ValueError(value)
    return value
