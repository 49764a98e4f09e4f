"""Privacy guarantees as frozen values, each also a mechanism of which only that is known."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.notions.compositions import MetricDP, metric_composition, parallel
from hockeystick.notions.guarantees import (
    FDP,
    GDP,
    TCDP,
    ZCDP,
    ApproxDP,
    Notion,
    Origin,
    PureDP,
    RenyiDP,
)

__all__ = [
    "FDP",
    "GDP",
    "NOTIONS",
    "TCDP",
    "ZCDP",
    "ApproxDP",
    "MetricDP",
    "Notion",
    "Origin",
    "PureDP",
    "RenyiDP",
    "metric_composition",
    "parallel",
]

NOTIONS: Final[Mapping[str, type[Notion]]] = MappingProxyType(
    {cls.__name__: cls for cls in (PureDP, ApproxDP, GDP, ZCDP, TCDP, RenyiDP, FDP)}
)
