"""Guarantees and their numbers in a few words, rounded to their safe side."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import singledispatch
from typing import Final, TypeAlias

from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics.numerals import plain

Rounding: TypeAlias = Callable[[float], str]

_SHOWN_ORDERS: Final = 3
_DIGITS: Final = 6


def upward(value: float) -> str:
    """Return a number rounded up, taken as the decimal that it prints as, as filters take it."""
    return plain(float(Context(prec=_DIGITS, rounding=ROUND_CEILING).create_decimal(repr(value))))


def downward(value: float) -> str:
    """Return a number rounded down, taken likewise."""
    return plain(float(Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal(repr(value))))


@singledispatch
def amount(notion: Notion, rounded: Rounding) -> str:
    """Return a guarantee in a few words, its numbers rounded."""
    raise NotImplementedError(type(notion).__name__)


@amount.register
def _(notion: PureDP, rounded: Rounding) -> str:
    return f"epsilon {rounded(notion.epsilon)}"


@amount.register
def _(notion: ApproxDP, rounded: Rounding) -> str:
    return f"epsilon {rounded(notion.epsilon)} at delta {rounded(notion.delta)}"


@amount.register
def _(notion: ZCDP, rounded: Rounding) -> str:
    return f"rho {rounded(notion.rho)}"


@amount.register
def _(notion: TCDP, rounded: Rounding) -> str:
    return f"rho {rounded(notion.rho)} up to order {plain(notion.omega)}"


@amount.register
def _(notion: GDP, rounded: Rounding) -> str:
    return f"mu {rounded(notion.mu)}"


@amount.register
def _(notion: RenyiDP, rounded: Rounding) -> str:
    pairs = [f"{rounded(size)} at order {plain(order)}" for order, size in notion.divergences]
    more = len(pairs) - _SHOWN_ORDERS
    shown = ", ".join(pairs[:_SHOWN_ORDERS])
    return f"divergence {shown}" + (f" and {more} more" if more > 0 else "")
