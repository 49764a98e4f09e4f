"""Bracketed root finding: one driver for every scalar equation that the library solves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

Function: TypeAlias = Callable[[float], float]
Point: TypeAlias = tuple[float, float]

_EVALUATIONS: Final = 200
# As many as bisection takes to a thousand digits.
_PRECISE_EVALUATIONS: Final = 5000
_STEPS: Final = 60
_LONGEST_STEP: Final = 2.0


def increasing_root(
    function: Function,
    guess: float,
    *,
    stride: float = 1.0,
    tolerance: float,
    farthest: float = math.inf,
) -> float:
    """Return where an increasing function crosses zero, to an absolute tolerance in its argument.

    Walks from the guess, a float or a number of mpmath, with doubling strides until the sign
    changes, then narrows the bracket. Infinite values only count by their sign. Where the sign does
    not change within ``farthest`` of zero, returns the last point walked to.
    """
    near = (guess, function(guess))
    if near[1] == 0.0:
        return guess
    direction = -1.0 if near[1] > 0.0 else 1.0
    for _ in range(_EVALUATIONS):
        x = min(max(near[0] + direction * stride, -farthest), farthest)
        if x == near[0]:
            break
        far = (x, function(x))
        if (far[1] > 0.0) != (near[1] > 0.0):
            return _narrow(function, near, far, tolerance)
        near = far
        stride *= 2.0
    return near[0]


def increasing_root_by_newton(
    function: Callable[[float], Point], guess: float, *, last_step: float, farthest: float
) -> float:
    """Return about where an increasing function, given with its derivative, crosses zero.

    By Newton's rule, with steps of at most ``_LONGEST_STEP``, and bisection of what is known where
    these lead out of it; it ends with a step no longer than the last one, at a jump just below it.
    Infinite values only count by their sign. With no crossing within ``farthest`` of zero, it
    returns that end.
    """
    x, low, high = min(max(guess, -farthest), farthest), -math.inf, math.inf
    for _ in range(_EVALUATIONS):
        value, derivative = function(x)
        low, high = (low, x) if value > 0.0 else (x, high)
        step = -value / derivative if derivative > 0.0 else -math.copysign(math.inf, value)
        if abs(step) <= last_step:
            return min(max(x + step, -farthest), farthest)
        near = x + min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
        new = min(max(near, -farthest), farthest)
        if high - low <= last_step:
            return low
        if new == x:
            break
        x = new if low < new < high else 0.5 * (low + high)
    return x


def falling_crossing(
    excess: Function, guess: float, side: float, *, stride: float, tolerance: float
) -> float:
    """Return where a falling excess crosses 0, on its negative (1) or its positive (-1) side.

    From the root, steps that double from the tolerance lead to that side; where they do not, it is
    inf or 0. Nothing below 0 is asked.
    """
    at = increasing_root(lambda x: -excess(max(x, 0.0)), guess, stride=stride, tolerance=tolerance)
    for _ in range(_STEPS):
        at = max(at, 0.0)
        if side * excess(at) <= 0.0:
            return at
        at += side * tolerance
        tolerance *= 2.0
    return math.inf if side > 0.0 else 0.0


def _narrow(function: Function, a: Point, b: Point, tolerance: float) -> float:
    """Narrow a bracket by Chandrupatla's rule: inverse quadratic where safe, bisection elsewhere.

    References:
        Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a
        nonlinear function without using derivatives", Advances in Engineering Software 28, 1997.
    """
    t = 0.5
    for _ in range(_PRECISE_EVALUATIONS):
        x = a[0] + t * (b[0] - a[0])
        new = (x, function(x))
        if (new[1] > 0.0) == (a[1] > 0.0):
            c = a
        else:
            c, b = b, a
        a = new
        best = a if abs(a[1]) < abs(b[1]) else b
        gap = abs(b[0] - a[0])
        least = 0.5 * tolerance / gap if gap > 0.0 else 1.0
        if least >= 0.5 or best[1] == 0.0 or x in (b[0], c[0]):
            return best[0]
        t = min(max(_fraction(a, b, c), least), 1.0 - least)
    return best[0]


def _fraction(a: Point, b: Point, c: Point) -> float:
    """Return where between a and b to look next, as a fraction."""
    if not all(math.isfinite(value) for _, value in (a, b, c)) or c[1] in (a[1], b[1]):
        return 0.5
    xi = (a[0] - b[0]) / (c[0] - b[0])
    phi = (a[1] - b[1]) / (c[1] - b[1])
    if not (phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi):
        return 0.5
    direct = a[1] / (b[1] - a[1]) * c[1] / (b[1] - c[1])
    bent = (c[0] - a[0]) / (b[0] - a[0]) * a[1] / (c[1] - a[1]) * b[1] / (c[1] - b[1])
    return direct + bent


def minimum(function: Function, low: float, high: float, *, tolerance: float) -> float:
    """Return where a function that falls and then rises is least, by golden-section search."""
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    x = high - ratio * (high - low)
    y = low + ratio * (high - low)
    at_x, at_y = function(x), function(y)
    while high - low > tolerance:
        if at_x <= at_y:
            high, y, at_y = y, x, at_x
            x = high - ratio * (high - low)
            at_x = function(x)
        else:
            low, x, at_x = x, y, at_y
            y = low + ratio * (high - low)
            at_y = function(y)
    return x if at_x <= at_y else y
