"""Guarantees at the ends of their scales: perfect privacy, and vacuous guarantees."""

from __future__ import annotations

import math
from functools import singledispatch

from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.tradeoffs import PerfectPrivacy


@singledispatch
def strength(source: Mechanism) -> float:
    """Return 0 for a guarantee of perfect privacy, inf for a vacuous one, else a number between."""
    return 1.0


@strength.register
def _(source: PureDP) -> float:
    return source.epsilon


@strength.register
def _(source: ApproxDP) -> float:
    return math.inf if source.delta == 1.0 else max(source.epsilon, source.delta)


@strength.register
def _(source: GDP) -> float:
    return source.mu


@strength.register
def _(source: ZCDP | TCDP) -> float:
    return source.rho


@strength.register
def _(source: RenyiDP) -> float:
    return min(divergence for _, divergence in source.divergences)


@strength.register
def _(source: FDP) -> float:
    f = source.tradeoff
    return 0.0 if f.forward == f.backward == PerfectPrivacy() else 1.0
