"""Every mechanism by what it is for: a list to read."""

from __future__ import annotations

import inspect
from typing import Final

from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.registry import registered_in

_PACKAGE: Final = "hockeystick.mechanisms"
# In the order of the reference; what is of none of them composes others.
_FAMILIES: Final = {
    "noise": "Noise on an answer",
    "sampling": "Random samples of the data",
    "training": "Training",
    "streams": "Sums over time (DP-FTRL)",
    "selection": "Selection",
    "local": "Local reports, also shuffled",
    "federated": "Federated training",
    "decentralised": "Decentralised",
    "": "Plans",
}


def index() -> str:
    """Return every mechanism with its first sentence, by family, as a text.

    All names are in ``hockeystick.mechanisms``, those of federated training in its ``federated``
    as well, and plan files and the command know each by its name.

    Example:
        >>> import hockeystick as hs
        >>> print(*hs.mechanisms.index().splitlines()[:2], sep=", ")
        Noise on an answer,   DiscreteGaussian: An integer plus discrete Gaussian noise.
    """
    lines: dict[str, list[str]] = {family: [] for family in _FAMILIES}
    for name, kind in registered_in(_PACKAGE).items():
        if issubclass(kind, Mechanism):
            family = kind.__module__.removeprefix(f"{_PACKAGE}.").split(".")[0]
            place = family if family in lines else ""
            lines[place].append(f"  {name}: {first_sentence(kind)}")
    return "\n\n".join("\n".join([_FAMILIES[family], *lines[family]]) for family in lines)


def first_sentence(kind: type) -> str:
    """Return the first line of a class's text."""
    return (inspect.getdoc(kind) or "").partition("\n")[0].replace("``", "")
