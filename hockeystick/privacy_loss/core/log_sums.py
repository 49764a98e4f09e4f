"""Logarithms of ``psi``, the integrand of ``M - 1``, and of sums of exponentials."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Below this size e^x - 1 - x is summed as a series of ``_TERMS`` terms.
_SERIES: Final = 1.0
_TERMS: Final = 20
_LARGE: Final = 30.0


def log_psi(loss: Array, c: float) -> Array:
    """Return ``ln(e2(c l) + c e2(-l))``."""
    return np.asarray(np.logaddexp(log_e2(c * loss), math.log(c) + log_e2(-loss)))


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
    """Return ``ln sum e^x`` of some numbers, with an error of less than 64 ulp."""
    largest = max(logs)
    if math.isinf(largest):
        return largest
    return largest + math.log(math.fsum(math.exp(one - largest) for one in logs))


def log_sum(logs: Array) -> float:
    """Return ``ln sum e^x`` of an array; -inf where it is empty."""
    largest = float(logs.max(initial=-math.inf))
    if math.isinf(largest):
        return largest
    return largest + math.log(float(np.exp(logs - largest).sum()))
