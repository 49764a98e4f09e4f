"""What a run of comparisons with Gaussian noise reveals, given the threshold's noise.

As in ``threshold_run``, with other pairs (a, a') of the probabilities of "below": those between
the curves ``(Phi(t), Phi(t + s+))`` and ``(Phi(t + s-), Phi(t))``. The tangents at some t are the
sides of a polygon around them, at whose corners the largest divergence of a run is attained. It
grows without bound with the number n of comparisons, so that upper bounds of V_1, ..., V_n are
found in turn, at points of equal ratios: between them V lies below the chord.

**Corners.** A corner has one coordinate about where two tangents meet, and the other one where the
outer of both is: whatever is lost where they are nearly parallel, it is beyond neither, and so are
the sides between corners. Below ``t = 0`` the coordinates are (a, a'), above it (b, b'), those of
"above"; the others are 1 minus these, within a relative 2^-53. ``Phi`` has a relative error of at
most 5e-14 (Cephes), and is taken at arguments rounded once. Together with the tangents' rounding
this moves a side by at most 4e-13 times ``phi(t + s)``, which is less than what the steps are
enlarged by: that moves the curves by ``phi(t + s)`` times as much. A slope that errs by a relative
eta touches the curve at a t less by ``eta/s``, which is ``phi eta^2 / (2 s)`` above the line there.

**Rounding.** With ``u = b - x b'`` and ``w = a - x a'`` the gain of a corner is the larger of 0,
``min(u, -w)`` and ``min(-u, w)``, which rises with each of the four: all are taken at their upper
ends. Z at ``x a'/a`` is read nearer to 1 by more than the logarithm's error, where Z is larger; so
near to 1 that the sides are uncertain, it is Z at 1. The rest is ``kernels.comparison_runs``.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.privacy_loss.selection.threshold_run import RunProfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hockeystick.kernels.series import Array

# Tangents: the first, the last, and their number.
_TANGENTS: Final = (-7.5, 9.5, 112)
# Points for each s+ or s-, whichever is larger, and how many of these they reach down and up.
_PER_STEP: Final = 25
_DOWN: Final = 14
_UP: Final = 12
# Steps are enlarged by these, relative and absolute.
_ENLARGED: Final = 1.0 + 1e-10
_MORE: Final = 4e-13
# Errors of u and w, and of logarithms of ratios; what weights are enlarged by.
_TERM_ERROR: Final = 2.0**-49
_LOG_ERROR: Final = 2.0**-48
_UPWARD: Final = 1.0 + 2.0**-50


class Corners(NamedTuple):
    """Corners of a polygon: a, a', 1 - a and 1 - a'."""

    below: Array
    others_below: Array
    above: Array
    others_above: Array


class Shifts(NamedTuple):
    """Where each corner moves Z to: ranges of points with an offset, and the weights there."""

    spans: NDArray[np.int64]
    low: Array
    high: Array


@lru_cache(maxsize=64)
def gaussian_run(plus: float, minus: float, comparisons: int) -> RunProfile:
    """Return upper bounds of Z after so many comparisons, for s+ and s-, not both 0.

    Gaussian noise at a smaller distance is made from that at a larger one, so that steps which are
    lost in round-off may be taken for larger ones.
    """
    from hockeystick.kernels import comparison_runs

    plus, minus = (max(step, _MORE) if step else 0.0 for step in (plus, minus))
    unit = max(plus, minus) / _PER_STEP
    places = np.arange(-_DOWN * _PER_STEP, _UP * _PER_STEP + 1)
    curves = [corners_of(plus)] if plus else []
    if minus:
        one = corners_of(minus)
        curves.append(Corners(one.others_below, one.below, one.others_above, one.above))
    corners = Corners(*(np.concatenate(column) for column in zip(*curves, strict=True)))
    shifts = shifts_of(corners, unit, places)
    margin = int(np.abs(shifts.spans[:, 3]).max()) + 1
    gain = gain_of(corners, unit, places)
    excess = comparison_runs.run_excess(gain, *shifts, margin, comparisons)
    return RunProfile(unit, int(places[0]), excess)


def gain_of(corners: Corners, unit: float, places: NDArray[np.int64]) -> Array:
    """Return ``((1 - a) - x (1 - a'))_+ + (a - x a')_+ - (1 - x)_+`` or more, of each corner."""
    log_x = np.asarray(unit * places, dtype=np.float64)
    x, far = np.exp(log_x), _TERM_ERROR * (1.0 + np.abs(log_x))
    terms = []
    for one, other in (
        (corners.above, corners.others_above),
        (corners.below, corners.others_below),
    ):
        own, moved = one[:, None], other[:, None] * x
        terms += [own - moved, (own + moved) * far]
    up, up_error, down, down_error = terms
    first = np.minimum(up_error + up, down_error - down)
    second = np.minimum(up_error - up, down_error + down)
    return np.asarray(np.maximum(np.maximum(first, second), 0.0) * _UPWARD)


def shifts_of(corners: Corners, unit: float, places: NDArray[np.int64]) -> Shifts:
    """Return the chords that bound ``a Z(x a'/a)`` at the points, by rising corner."""
    found: list[tuple[int, int, int, int]] = []
    weights: list[tuple[float, float]] = []
    size, middle, beside = places.size, int(-places[0]), math.expm1(unit)
    for k, (a, other) in enumerate(zip(corners.below, corners.others_below, strict=True)):
        if a == 0.0:
            found.append((k, 0, size, 0))
            weights.append((0.0, 0.0))
            continue
        ratio = math.log(other / a) if other > 0.0 else -math.inf
        ratio = min(max(ratio, -2.0 * size * unit), 2.0 * size * unit)
        error = _LOG_ERROR * (1.0 + abs(ratio))
        at = unit * places + ratio
        ends = int(np.sum(at < -2.0 * error)), int(np.sum(at <= 2.0 * error))
        for nearer, start, stop in ((error, 0, ends[0]), (-error, ends[1], size)):
            offset = math.floor((ratio + nearer) / unit)
            rest = min(max(ratio + nearer - offset * unit, 0.0), unit)
            within = min(math.expm1(rest) / beside, 1.0)
            found.append((k, start, stop, offset))
            weights.append((a * (1.0 - within) * _UPWARD, a * within * _UPWARD))
        for j in range(*ends):
            found.append((k, j, j + 1, middle - j))
            weights.append((a * _UPWARD, 0.0))
    low, high = np.array(weights).T
    return Shifts(np.array(found), low.copy(), high.copy())


def corners_of(step: float) -> Corners:
    """Return the corners that the tangents of the curve ``(Phi(t), Phi(t + step))`` meet in."""
    from scipy.special import ndtr

    size = step * _ENLARGED + _MORE
    t = np.linspace(*_TANGENTS)
    slope = np.exp(-size * t - 0.5 * size * size)
    lower, upper = t[1:] <= 0.0, t[1:] > 0.0
    below, others_below = _met(ndtr(t), ndtr(t + size), slope, np.maximum)
    above, others_above = _met(ndtr(-t), ndtr(-t - size), slope, np.minimum)
    start = max(float(ndtr(t[0] + size) - slope[0] * ndtr(t[0])), 0.0)
    end = max(float(ndtr(-t[-1]) - ndtr(-t[-1] - size) / slope[-1]), 0.0)
    first = np.concatenate(([0.0], below[lower])), np.concatenate(([start], others_below[lower]))
    last = np.append(above[upper], end), np.append(np.maximum(others_above[upper], 0.0), 0.0)
    return Corners(
        *(np.concatenate((one, 1.0 - other)) for one, other in zip(first, last, strict=True)),
        *(np.concatenate((1.0 - one, other)) for one, other in zip(first, last, strict=True)),
    )


def _met(own: Array, other: Array, slope: Array, outer: np.ufunc) -> tuple[Array, Array]:
    """Return about where neighbouring tangents meet, and the outer one of both there."""
    difference = other[1:] - other[:-1] - slope[1:] * own[1:] + slope[:-1] * own[:-1]
    first = difference / (slope[:-1] - slope[1:])
    first = np.clip(first, np.minimum(own[:-1], own[1:]), np.maximum(own[:-1], own[1:]))
    lines = (other[k] + slope[k] * (first - own[k]) for k in (slice(-1), slice(1, None)))
    return first, np.asarray(outer(*lines))
