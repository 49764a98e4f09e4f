"""What a way finds: a number, and how well it is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Literal, final

from hockeystick.results import Approximate, Certified

Kind = Literal["exact", "proven", "approximation"]


@final
@dataclass(frozen=True, slots=True)
class Found:
    """A number that lies between two ends, and what kind of knowledge that is.

    Guarantees:
        Of kind "proven" the number is between the ends, rounding included. Of kind "exact" it is a
        formula's value in floating point, right to some 1e-14 of itself, and of kind
        "approximation" the ends are the approximation itself, of which nothing is proven.

    Args:
        lower: The lower end.
        upper: The upper end.
        kind: "exact", "proven" or "approximation".
        quantity: What the number is, in words; empty where the claim says it.

    Example:
        >>> from tests.claims import Found
        >>> Found(0.25, 0.5, "proven", "delta").upper
        0.5
    """

    lower: float
    upper: float
    kind: Kind
    quantity: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON, infinities as the texts "inf" and "-inf"."""
        return {
            "lower": _jsonable(self.lower),
            "upper": _jsonable(self.upper),
            "kind": self.kind,
            "quantity": self.quantity,
        }


@singledispatch
def found(answer: object) -> Found:
    """Return what a way has answered in the one form that is judged and shown."""
    raise TypeError(f"a way answers with a number, not with {answer!r}")


@found.register
def _(answer: Found) -> Found:
    return answer


@found.register
def _(answer: float | int) -> Found:
    return Found(float(answer), float(answer), "exact")


@found.register
def _(answer: Certified) -> Found:
    return Found(float(answer.lower), float(answer), "proven", answer.quantity)


@found.register
def _(answer: Approximate) -> Found:
    value = float(answer.value)
    return Found(value, value, "approximation", answer.quantity)


def proven(value: Any, quantity: str = "") -> Found:
    """Return the floats around a number that is right to many more digits than a float has."""
    nearest = float(value)
    return Found(
        math.nextafter(nearest, -math.inf), math.nextafter(nearest, math.inf), "proven", quantity
    )


def between(lower: float, upper: float, quantity: str = "") -> Found:
    """Return a proven interval."""
    return Found(lower, upper, "proven", quantity)


def _jsonable(value: float) -> float | str:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else str(value)
