"""Claims as trade-off functions, and how far a test is above one."""

from __future__ import annotations

from typing import Final

import numpy as np

from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.audit._region import Objective, Region
from hockeystick.audit._scores import Array
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.tradeoffs import TradeOff

_ALLOWED: Final = "a mechanism or plan, or a trade-off function"


def tradeoff_of(name: str, claim: object) -> TradeOff:
    """Return the trade-off function of a claim, for both orders of its neighbours, or raise."""
    if isinstance(claim, TradeOff):
        return claim.symmetrize()
    if isinstance(claim, Mechanism):
        return tradeoff(claim)
    raise ParameterError(name, claim, _ALLOWED)


def premises_of(claim: object) -> tuple[str, ...]:
    """Return what must hold for a claim to apply."""
    return assumptions_of(claim) if isinstance(claim, Mechanism) else ()


def margins(f: TradeOff) -> Objective:
    """Return the objective that is above 0 exactly where f provably excludes a corner.

    No test has ``p > 1 - f(q)``, nor, which is the same and precise where p is near 1, a false
    negative rate ``1 - p < f(q)``; the claim's side is its proven one.
    """

    def objective(corners: Region) -> Array:
        shape = np.broadcast_shapes(corners.q.shape, corners.p.shape)
        rates = np.broadcast_to(corners.q, shape)
        with np.errstate(divide="ignore"):
            most, least = np.log(f.power(rates)), np.log(f(rates))
            hits = np.where(corners.p > 0.0, np.log(corners.p) - most, -np.inf)
            misses = np.where(least > -np.inf, least - np.log(corners.miss), -np.inf)
        return np.maximum(_beyond(hits, most), _beyond(misses, least))

    return objective


def _beyond(value: Array, size: Array) -> Array:
    """Return a difference of logarithms, less its round-off."""
    slack = 2.0**-48 * (1.0 + np.where(np.isfinite(size), np.abs(size), 0.0))
    return value - slack
