"""What a way finds, how well that is known, and the ways by name.

A way's name is a module's and a function's, such as ``federated.limiting_mu``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal, TypeVar, final

from hockeystick.results import Approximate, Certified

Kind = Literal["exact", "proven", "approximation"]


@final
@dataclass(frozen=True, slots=True)
class Found:
    """A number that lies between two ends, and what kind of knowledge that is.

    Of kind "proven" the number is between the ends, rounding included. Of kind "exact" it is a
    formula's value in floating point, right to some 1e-14 of itself, and of kind "approximation"
    the ends are the approximation itself, of which nothing is proven. The quantity says in words
    what the number is; it is empty where the claim says it.
    """

    lower: float
    upper: float
    kind: Kind
    quantity: str = ""


Answer = Found | Certified | Approximate | float
Way = Callable[..., Answer]

# The modules whose functions are ways.
SUBJECTS: Final = (
    "batches",
    "budgets",
    "composition",
    "concentrated",
    "dpsgd",
    "errors",
    "fed_cdp",
    "federated",
    "gaussian",
    "local",
    "metric",
    "tuning",
)

_Way = TypeVar("_Way", bound=Callable[..., Any])
_WAYS: Final[dict[str, Way]] = {}


def way(function: _Way) -> _Way:
    """Register a function of keywords as a way to compute a number."""
    subject = function.__module__.rpartition(".")[2]
    _WAYS[f"{subject}.{function.__name__}"] = function
    return function


def ways() -> dict[str, Way]:
    """Return all ways by their names, in order."""
    for subject in SUBJECTS:
        import_module(f"tests.claims.{subject}")
    return dict(sorted(_WAYS.items()))


def found(answer: Answer) -> Found:
    """Return what a way has answered in the one form that is judged and shown."""
    if isinstance(answer, Found):
        return answer
    if isinstance(answer, Certified):
        return Found(float(answer.lower), float(answer), "proven", answer.quantity)
    if isinstance(answer, Approximate):
        value = float(answer.value)
        return Found(value, value, "approximation", answer.quantity)
    return Found(float(answer), float(answer), "exact")


def proven(value: Any, quantity: str = "") -> Found:
    """Return the floats around a number that is right to many more digits than a float has."""
    nearest = float(value)
    lower, upper = (math.nextafter(nearest, end) for end in (-math.inf, math.inf))
    return Found(lower, upper, "proven", quantity)


def between(lower: float, upper: float, quantity: str = "") -> Found:
    """Return a proven interval."""
    return Found(lower, upper, "proven", quantity)
