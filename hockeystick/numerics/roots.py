"""Bracketed root finding: one driver for every scalar equation that the library solves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from hockeystick.numerics.multiprecision import mp, mpf, working_digits

Function: TypeAlias = Callable[[float], float]
Point: TypeAlias = tuple[float, float]
Differentiable: TypeAlias = Callable[[float], Point]
Precise: TypeAlias = Callable[[mpf], mpf]

_EVALUATIONS: Final = 200
_STEPS: Final = 60
_PRECISE_STEPS: Final = 20_000
_LONGEST_STEP: Final = 2.0
# An exponential of it is a float.
_LARGEST_LOG: Final = 700.0


def increasing_root(
    function: Function,
    guess: float,
    *,
    stride: float = 1.0,
    tolerance: float,
    farthest: float = math.inf,
) -> float:
    """Return where an increasing function crosses zero, to an absolute tolerance in its argument.

    Walks from the guess with doubling strides until the sign changes, then narrows the bracket.
    Infinite values only count by their sign. Where the sign does not change within ``farthest`` of
    zero, returns the last point walked to.
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
    function: Differentiable, guess: float, *, last_step: float, farthest: float
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


def falling_root(
    function: Precise, goal: mpf, near: mpf | None = None, rough: Function | None = None
) -> mpf:
    """Return the x >= 0 at which a falling positive function reaches a goal, to mpmath's precision.

    It is 0 where the function is at most the goal there. The search begins near a known x, or where
    a rough function of floats reaches the goal.
    """
    if function(mp.zero) <= goal:
        return mp.zero
    log_goal = mp.log(goal)

    def excess(log_x: float) -> float:
        value = rough(math.exp(log_x)) if rough else function(mp.exp(log_x))
        return float(log_goal - mp.log(value)) if value > 0 else math.inf

    if near is None:
        farthest = _LARGEST_LOG if rough else math.inf
        with working_digits(20):
            near = mp.exp(
                increasing_root(excess, 0.0, stride=2.0, tolerance=1e-13, farthest=farthest)
            )
    return _by_false_position(lambda x: function(x) - goal, near)


def _by_false_position(function: Precise, near: mpf) -> mpf:
    """Return the root of a falling function, from a point near it: the Illinois rule.

    Every third step halves the bracket: next to the end of a bounded loss the function is flat.
    """
    low = high = near
    above = below = function(near)
    slack = mp.mpf(10) ** -12
    while above <= 0:
        low, slack = low * (1 - slack), min(2 * slack, mp.mpf("0.5"))
        above = function(low)
    while below > 0:
        high, slack = high * (1 + slack), 2 * slack
        below = function(high)
    kept = 0
    for step in range(_PRECISE_STEPS):
        least = 32 * mp.eps * high
        if below == 0 or high - low <= 2 * least:
            break
        middle = (low + high) / 2
        new = middle if step % 3 == 2 else (low * below - high * above) / (below - above)
        new = min(max(new, low + least), high - least)
        value = function(new)
        if value > 0:
            low, above = new, value
            below, kept = (below / 2 if kept > 0 else below), 1
        else:
            high, below = new, value
            above, kept = (above / 2 if kept < 0 else above), -1
    return high


def _narrow(function: Function, a: Point, b: Point, tolerance: float) -> float:
    """Narrow a bracket by Chandrupatla's rule: inverse quadratic where safe, bisection elsewhere.

    References:
        Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a
        nonlinear function without using derivatives", Advances in Engineering Software 28, 1997.
    """
    t = 0.5
    for _ in range(_EVALUATIONS):
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
