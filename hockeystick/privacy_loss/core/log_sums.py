"""Logarithms of the positive terms whose sum a moment exceeds 1 by, and of such sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Below this size e^x - 1 - x is summed as a series, of so many terms.
_SERIES: Final = 1.0
_TERMS: Final = 20
_LARGE: Final = 30.0


def log_psi(place: Array, c: float) -> Array:
    """Return ``ln(e2(c l) + c e2(-l))``."""
    return np.asarray(np.logaddexp(log_e2(c * place), math.log(c) + log_e2(-place)))


def log_e2(x: Array) -> Array:
    """Return ``ln(e^x - 1 - x)``; -inf at 0."""
    above, below = x > _SERIES, x < -_SERIES
    neither = ~(above | below)
    near, large, small = x[neither], x[above], x[below]
    series, term = np.ones_like(near), np.empty_like(near)
    for n in range(_TERMS, 2, -1):
        np.divide(near, n, out=term)
        series *= term
        series += 1.0
    found = np.empty_like(x)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        found[neither] = 2.0 * np.log(np.abs(near)) + np.log(0.5 * series)
        found[above] = large + np.log1p(-(1.0 + large) * np.exp(-large))
        found[below] = np.log(np.expm1(small) - small)
    return found


def log1p_exp(x: float) -> float:
    """Return ``ln(1 + e^x)``."""
    return x + math.log1p(math.exp(-x)) if x > _LARGE else math.log1p(math.exp(x))


def log_add(*logs: float) -> float:
    """Return the logarithm of the sum of some exponentials, rounded away by less than 64 ulp."""
    top = max(logs)
    if math.isinf(top):
        return top
    return top + math.log(math.fsum(math.exp(one - top) for one in logs))


def log_sum(logs: Array) -> float:
    """Return the logarithm of the sum of exponentials; -inf for none."""
    top = float(logs.max(initial=-math.inf))
    if math.isinf(top):
        return top
    return top + math.log(float(np.exp(logs - top).sum()))
