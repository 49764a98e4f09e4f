"""What a run of comparisons with Gaussian noise reveals, given the threshold's noise.

As in ``threshold_run``, with other pairs (a, a') of the probabilities of "below": those between
the curves ``(Phi(t), Phi(t + s+))`` and ``(Phi(t + s-), Phi(t))``. The tangents at some t are the
sides of a polygon around them, at whose corners the largest divergence of a run is attained. It
grows without bound with the number n of comparisons, so that upper bounds of V_1, ..., V_n are
found in turn, at points of equal ratios: between them V lies below the chord.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.privacy_loss.selection.threshold_run import RunProfile

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Tangents: the first, the last, and their number.
_TANGENTS: Final = (-7.5, 9.5, 112)
# Points for each s+ or s-, whichever is larger, and how many of these they reach down and up.
_PER_STEP: Final = 25
_DOWN: Final = 14
_UP: Final = 12
# Steps are enlarged by this, which covers the rounding of corners; each Z by the other.
_ENLARGED: Final = 1.0 + 1e-9
_ROUNDING: Final = 4e-15


class _Corners(NamedTuple):
    """Corners of a polygon: a, a', 1 - a and 1 - a'."""

    below: Array
    others_below: Array
    above: Array
    others_above: Array


@lru_cache(maxsize=64)
def gaussian_run(plus: float, minus: float, comparisons: int) -> RunProfile:
    """Return upper bounds of Z after so many comparisons, for s+ and s-, not both 0."""
    unit = max(plus, minus) / _PER_STEP
    places = np.arange(-_DOWN * _PER_STEP, _UP * _PER_STEP + 1)
    curves = [_corners(plus)] if plus else []
    if minus:
        one = _corners(minus)
        curves.append(_Corners(one.others_below, one.below, one.others_above, one.above))
    corners = _Corners(*(np.concatenate(column) for column in zip(*curves, strict=True)))
    log_x = places * unit
    gain = _gain(np.exp(log_x)[:, None], corners)
    with np.errstate(divide="ignore"):
        ratio = np.log(corners.others_below) - np.log(corners.below)
    at = np.clip(log_x[:, None] + np.minimum(ratio, 1e3), log_x[0], log_x[-1])
    left = np.minimum(((at - log_x[0]) / unit).astype(int), places.size - 2)
    within = np.clip(np.expm1(at - log_x[left]) / math.expm1(unit), 0.0, 1.0)
    low, high = corners.below * (1.0 - within), corners.below * within
    excess = np.zeros(places.size)
    for _ in range(comparisons):
        later = gain + low * excess[left] + high * excess[left + 1]
        excess = np.maximum(excess, later.max(axis=1)) + _ROUNDING
    return RunProfile(unit, int(places[0]), excess)


def _gain(x: Array, corners: _Corners) -> Array:
    """Return ``((1 - a) - x (1 - a'))_+ + (a - x a')_+ - (1 - x)_+``."""
    up = corners.above - x * corners.others_above
    down = corners.below - x * corners.others_below
    opposite = (up < 0.0) != (down < 0.0)
    return np.asarray(np.where(opposite, np.minimum(np.abs(up), np.abs(down)), 0.0))


def _corners(step: float) -> _Corners:
    """Return the corners that the tangents of the curve ``(Phi(t), Phi(t + step))`` meet in."""
    from scipy.special import ndtr

    size = step * _ENLARGED
    t = np.linspace(*_TANGENTS)
    slope = np.exp(-size * t - 0.5 * size * size)

    def met(own: Array, other: Array) -> tuple[Array, Array]:
        """Return where neighbouring tangents meet, with the ends at which one reaches 0."""
        difference = other[1:] - other[:-1] - slope[1:] * own[1:] + slope[:-1] * own[:-1]
        first = difference / (slope[:-1] - slope[1:])
        return first, other[:-1] + slope[:-1] * (first - own[:-1])

    below, others_below = met(ndtr(t), ndtr(t + size))
    above, others_above = met(ndtr(-t), ndtr(-t - size))
    start = float(ndtr(t[0] + size) - slope[0] * ndtr(t[0]))
    end = float(ndtr(-t[-1]) - ndtr(-t[-1] - size) / slope[-1])
    return _Corners(
        np.concatenate(([0.0], below, [1.0 - end])),
        np.concatenate(([start], others_below, [1.0])),
        np.concatenate(([1.0], above, [end])),
        np.concatenate(([1.0 - start], others_above, [0.0])),
    )
