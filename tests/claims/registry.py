"""The ways by name: a module's name and a function's, such as ``federated.limiting_mu``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from hockeystick.results import Approximate, Certified
from tests.claims.found import Found

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
    from importlib import import_module

    for subject in SUBJECTS:
        import_module(f"tests.claims.{subject}")
    return dict(sorted(_WAYS.items()))
