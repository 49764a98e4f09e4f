"""What a way finds, how well that is known, and the ways by name.

A way's name is a module's and a function's, such as ``federated.limiting_mu``.
"""

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, Literal, TypeVar, final

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.results import Approximate, Certified

Kind = Literal["exact", "proven", "approximation"]


@final
@dataclass(frozen=True, slots=True)
class Found:
    """A number between two ends, proven; or a formula's value in floats; or an approximation.

    The quantity says in words what the number is; it is empty where the claim says it.
    """

    lower: float
    upper: float
    kind: Kind
    quantity: str = ""


Answer = Found | Certified | Approximate | float
Way = Callable[..., Answer]

FILE: Final = Path(__file__).with_name("claims.toml")
# The modules whose functions are ways.
SUBJECTS: Final = ("batches", "dpsgd", "fed_cdp", "federated", "gaussian", "local")

_Way = TypeVar("_Way", bound=Callable[..., Any])
_WAYS: Final[dict[str, Way]] = {}


def way(function: _Way) -> _Way:
    """Register a function of keywords as a way to compute a number."""
    subject = function.__module__.rpartition(".")[2]
    _WAYS[f"{subject}.{function.__name__}"] = function
    return function


@cache
def ways() -> dict[str, Way]:
    """Return all ways by their names: functions, and formulas of the data file."""
    for subject in SUBJECTS:
        import_module(f"tests.claims.{subject}")
    functions = {name.partition(".")[2]: one for name, one in _WAYS.items()}
    known = {"hs": hs, "math": math, "mp": mp, "proven": proven, "cdf": NormalDist().cdf}
    formulas = tomllib.loads(FILE.read_text(encoding="utf-8"))["formula"]
    made = {
        name: eval(f"lambda *, {text}", {**functions, **known}) for name, text in formulas.items()
    }
    return dict(sorted({**_WAYS, **made}.items()))


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
