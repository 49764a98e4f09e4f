"""Frozen descriptions of what touches the data; how they are accounted is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.mechanisms.base import Mechanism, Plan
from hockeystick.mechanisms.composition import Composed, Repeated
from hockeystick.mechanisms.dpsgd import DPSGD, Sampling
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.mechanisms.poisson import PoissonSubsampled

__all__ = [
    "DPSGD",
    "MECHANISMS",
    "Composed",
    "Gaussian",
    "Mechanism",
    "Plan",
    "PoissonSubsampled",
    "Repeated",
    "Sampling",
]

MECHANISMS: Final[Mapping[str, type[Mechanism]]] = MappingProxyType(
    {cls.__name__: cls for cls in (Composed, DPSGD, Gaussian, PoissonSubsampled, Repeated)}
)
