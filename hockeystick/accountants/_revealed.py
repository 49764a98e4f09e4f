"""Releases without noise: what they show, they show for certain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hockeystick.accountants.base import Interval
from hockeystick.losses import RevealingLoss

_SLACK: Final = 1e-12


def revealed_epsilon(
    terms: Sequence[tuple[RevealingLoss, int]], delta: float, *, alone: bool
) -> Interval:
    """Return epsilon of releases without noise, by themselves or among others.

    Removing, the record shows with probability ``1 - prod (1 - p)^n``: epsilon is infinite unless
    delta covers that. Adding, the loss is a constant. Among others, where delta does cover it,
    nothing better than [0, inf] is claimed.
    """
    hidden = _log_hidden(terms)
    removing = terms[0][0].removing
    shown = -math.expm1(hidden)
    if removing and shown * (1.0 - _SLACK) > delta:
        return Interval.point(math.inf)
    if not alone or (removing and shown * (1.0 + _SLACK) > delta):
        return Interval(0.0, math.inf, math.inf)
    if removing:
        return Interval.point(0.0)
    if hidden == -math.inf:
        return Interval.point(math.inf)
    value = -hidden + math.log1p(-delta)
    slack = _SLACK * (abs(hidden) + abs(math.log1p(-delta)))
    return Interval(max(value - slack, 0.0), max(value, 0.0), max(value + slack, 0.0))


def revealed_delta(
    terms: Sequence[tuple[RevealingLoss, int]], epsilon: float, *, alone: bool
) -> Interval:
    """Return delta of releases without noise, by themselves or among others."""
    hidden = _log_hidden(terms)
    if hidden == -math.inf:
        return Interval.point(1.0)
    removing = terms[0][0].removing
    value = -math.expm1(hidden) if removing else max(-math.expm1(epsilon + hidden), 0.0)
    lower, upper = value * (1.0 - _SLACK), min(value * (1.0 + _SLACK), 1.0)
    return (
        Interval(lower, value, upper) if alone else Interval(lower if removing else 0.0, 1.0, 1.0)
    )


def _log_hidden(terms: Sequence[tuple[RevealingLoss, int]]) -> float:
    """Return ln of the probability that the record was never sampled."""
    return math.fsum(
        count * math.log1p(-float(loss.rate)) if loss.rate < 1 else -math.inf
        for loss, count in terms
    )
