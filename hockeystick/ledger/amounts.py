"""Exact costs, whose sums stay short, and guarantees in a few words, rounded to their safe side."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import Final, TypeAlias

from hockeystick.notions import Notion, RenyiDP
from hockeystick.numerics.numerals import plain

Costs: TypeAlias = tuple[Fraction, ...]

# Which denominators are kept: sums then have at most their least common multiple, however many
# and in whichever order.
_COMMON: Final = 10**1100 * math.lcm(*range(1, 101))
_KEPT_DIGITS: Final = 40


def storable(price: Fraction) -> Fraction:
    """Return a price >= 0, or a decimal of 40 digits above it where its sums would grow long."""
    if _COMMON % price.denominator == 0:
        return price
    bits = price.numerator.bit_length() - price.denominator.bit_length()
    unit = Fraction(10) ** (math.floor(bits * math.log10(2)) - _KEPT_DIGITS)
    return math.ceil(price / unit) * unit


def plus(first: Sequence[Fraction], second: Sequence[Fraction]) -> Costs:
    """Return the sums."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


def minus(first: Costs, second: Costs) -> Costs:
    """Return the differences."""
    return tuple(a - b for a, b in zip(first, second, strict=True))


def text_of(costs: Costs) -> str:
    """Return fractions as a list in JSON of texts, each two hexadecimal integers."""
    return json.dumps([f"{one.numerator:x}/{one.denominator:x}" for one in costs])


def costs_of(text: str) -> Costs:
    """Return the fractions that such a text says, or raise ``ValueError`` or ``TypeError``."""
    found = json.loads(text)
    pairs = [[int(part, 16) for part in str(one).split("/")] for one in found]
    if not isinstance(found, list) or any(bottom <= 0 for _, bottom in pairs):
        raise ValueError(f"no exact numbers: {text}")
    return tuple(Fraction(top, bottom) for top, bottom in pairs)


_SHOWN: Final = 3
_DIGITS: Final = 6


def upward(value: float) -> str:
    """Return a number rounded up, taken as the decimal that it prints as."""
    return plain(float(Context(prec=_DIGITS, rounding=ROUND_CEILING).create_decimal(repr(value))))


def downward(value: float) -> str:
    """Return a number rounded down, taken likewise."""
    return plain(float(Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal(repr(value))))


def amount(notion: Notion, rounded: Callable[[float], str]) -> str:
    """Return a guarantee in a few words, its numbers rounded."""
    if isinstance(notion, RenyiDP):
        pairs = [f"{rounded(one)} at order {plain(order)}" for order, one in notion.divergences]
        more = f" and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
        return f"divergence {', '.join(pairs[:_SHOWN])}{more}"
    numbers = {one.name: getattr(notion, one.name) for one in fields(notion) if one.compare}
    told = {name: plain(x) if name == "omega" else rounded(x) for name, x in numbers.items()}
    return " at ".join(f"{name} {x}" for name, x in told.items())
