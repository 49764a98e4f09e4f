"""The contour integral in arbitrary precision: the same line and nodes, summed by mpmath.

The bounds on aliasing, truncation and quadrature are the float ones, for as many digits as asked;
the arithmetic carries enough more that its round-off is below them.

Epsilon at many deltas, or delta at many epsilons, of one direction: by few contour integrals.

An integral is computed for one of those asked about and serves all those near it. What none serves
precisely is left to be asked alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.base import Interval
from hockeystick.accountants.contour._integral import Integral, rules_for
from hockeystick.accountants.contour._line import AnalyticTerms, ContourTarget, choose_contour
from hockeystick.accountants.contour.search import integral_for_delta, integral_for_epsilon
from hockeystick.accountants.contour.ways import LocatedIntegral, integral_at_once
from hockeystick.accountants.orders import saddle
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.working_precision import working_digits

if TYPE_CHECKING:
    from mpmath import mpc, mpf

    from hockeystick.results import Quantity


_LN_10: Final = math.log(10.0)
_ROUNDS: Final = 8
_NEWTON_STEPS: Final = 60
_MOST_CANCELLED_DIGITS: Final = 300.0
_MOST_WORK: Final = 5_000_000
_MOST_NODES: Final = 40_000


def digits_of(
    terms: AnalyticTerms, quantity: Quantity, value: float, digits: int
) -> Interval | None:
    """Return epsilon (at a delta) or delta (at an epsilon) to a number of digits, as mpf.

    None where the line for these digits takes too many nodes.
    """
    from hockeystick.precision.profiles import exact

    if quantity == "epsilon":
        log_delta = math.log(value)
        found = integral_for_delta(terms, log_delta)
        epsilon = math.nan if found is None else found.epsilon
    else:
        found = integral_for_epsilon(terms, value)
        epsilon = value
        log_delta = math.nan if found is None else found.integral.delta(value).log("estimate")
    if found is None:
        return None
    working = digits
    guard = 0
    for _ in range(_ROUNDS):
        target = ContourTarget(epsilon, log_delta, (working + 4) * _LN_10)
        contour = _MpmathContour.choose(terms, target, working + guard)
        if contour is None:
            return None
        with working_digits(working + guard + 10):
            if quantity == "epsilon":
                read = contour.epsilon(exact(value), mp.mpf(epsilon), working)
            else:
                read = contour.delta(exact(value))
            cancelled = math.ceil(read.cancelled) + 5
            if read.value <= 0 or cancelled > guard:
                guard = max(cancelled, guard + working if read.value <= 0 else 0)
                continue
            actual = float(mp.log(read.value))
            if actual < log_delta - 1.0 or abs(float(read.epsilon) - epsilon) * contour.c > 1.0:
                # The line was chosen for another epsilon than the answer.
                log_delta, epsilon = min(log_delta, actual), max(float(read.epsilon), 0.0)
                continue
            near, missing = _interval(read, quantity, working, digits)
            if missing <= 0:
                return near
            working += missing + 1
    return None


def _interval(
    read: _Reading, quantity: Quantity, working: int, digits: int
) -> tuple[Interval, int]:
    """Return the interval that a reading proves, and the number of digits missing.

    Each of the errors of delta is less than ``10^-(kept + 4)`` of it, and there are few.
    """
    error = mp.mpf(10) ** -(working + 2)
    if quantity == "delta":
        ends = (read.value * (1 - error), read.value, read.value * (1 + error))
        return Interval(*(min(end, mp.one) for end in ends)), 0
    slack = error * read.value / abs(read.derivative)
    near = Interval(*(max(read.epsilon + side * slack, mp.zero) for side in (-1, 0, 1)))
    # Near 0 an epsilon has fewer digits than the delta that it comes from.
    short = mp.log10(slack / near.estimate) + digits + 1 if near.estimate else mp.zero
    return near, max(math.ceil(short), 0)


class _Reading(NamedTuple):
    """Delta at an epsilon, its derivative, and the digits that cancelled in the sum."""

    epsilon: mpf
    value: mpf
    derivative: mpf
    cancelled: float


class _MpmathContour:
    """The line, and K at its nodes, as mpmath numbers."""

    def __init__(self, c: float, points: list[mpc], values: list[mpc], step: mpf) -> None:
        self.c = c
        self._points = points
        self._values = values
        self._step = step

    @classmethod
    def choose(
        cls, terms: AnalyticTerms, target: ContourTarget, digits: int
    ) -> _MpmathContour | None:
        """Return the contour for a target; None where it takes too much work."""
        line = choose_contour(terms, saddle(terms, target.epsilon), target, _MOST_NODES)
        if line is None:
            return None
        rules = rules_for(terms, line, target)
        if rules is None or line.last * sum(rule.nodes for rule in rules) > _MOST_WORK:
            return None
        size = line.last + 1
        most = max(count for _, count in terms)
        with working_digits(digits + 25 + math.ceil(math.log10(most))):
            values = [mp.mpc(0)] * size
            for (_, count), rule in zip(terms, rules, strict=True):
                for k, value in enumerate(rule.reference_line(line.c, line.step, size)):
                    values[k] += count * value
            points = [mp.mpc(line.c, mp.mpf(line.step) * k) for k in range(size)]
            return cls(line.c, points, values, mp.mpf(line.step))

    def delta(self, epsilon: mpf) -> _Reading:
        """Return delta and its derivative at an epsilon."""
        total = derivative = size = mp.zero
        for k, (z, value) in enumerate(zip(self._points, self._values, strict=True)):
            term = mp.exp(value - epsilon * z) / (z * (1 + z))
            share = mp.mpf(0.5) if k == 0 else 1
            total += share * term.real
            derivative -= share * (z * term).real
            size += abs(term)
        cancelled = float(mp.log10(size / abs(total))) if total else math.inf
        scale = self._step / mp.pi
        return _Reading(
            epsilon, total * scale, derivative * scale, min(cancelled, _MOST_CANCELLED_DIGITS)
        )

    def epsilon(self, delta: mpf, guess: mpf, digits: int) -> _Reading:
        """Return the reading where delta is reached, by Newton's method on its logarithm.

        The root is that of the formula, which holds for negative epsilons too. It ends early where
        a sum is not positive.
        """
        goal = mp.log(delta)
        error = mp.mpf(10) ** -(digits + 5)
        read = self.delta(guess)
        for _ in range(_NEWTON_STEPS):
            if read.value <= 0 or read.derivative >= 0:
                return read._replace(value=mp.zero)
            move = (goal - mp.log(read.value)) * read.value / read.derivative
            if abs(move * read.derivative) < read.value * error:
                return read
            read = self.delta(read.epsilon + move)
        return read._replace(value=mp.zero)


Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
# What an integral says of some of what is asked: three rows of ends, and which of them count.
_Served: TypeAlias = tuple[Floats, NDArray[np.bool_]]

# The largest relative error of delta at which an integral is used for what it was not made for.
_MOST_ERROR: Final = 1e-9
_MANY_NEWTON_STEPS: Final = 12
# Over 1/c, in which delta changes by a constant factor.
_LAST_STEP: Final = 1e-5
# The largest distance in ln delta from a guess to what is asked: its square widens the answer.
_FARTHEST_GUESS: Final = 1e-5
# One delta of so many is looked for without its neighbours.
_STRIDE: Final = 16
_OUTWARD: Final = 2.0**-50
# How far a float is from the decimal that it prints as, at most, from some least float on.
_READING: Final = 2.0**-52
_LEAST_DELTA: Final = 1e-300
# ln of delta's accuracy where it is only to be told which of two is larger.
_COARSE: Final = 6.0
_MOST_COARSE_ERROR: Final = 0.5
# The searches without any use that end all of them.
_FAILURES: Final = 3


def epsilons_of(terms: AnalyticTerms, deltas: Floats) -> Floats:
    """Return lower ends, estimates and upper ends of epsilon; NaN where a delta is not served."""
    logs = np.log(deltas)

    def locate(index: int) -> LocatedIntegral | None:
        return integral_for_delta(terms, float(logs[index]))

    def serve(found: LocatedIntegral, some: Indices) -> _Served:
        return _epsilons(found.integral, found.epsilon, deltas[some])

    return _served(locate, serve, logs)


def deltas_of(terms: AnalyticTerms, epsilons: Floats, least: float) -> Floats:
    """Return the same of delta at many epsilons, for ln delta from ``least`` on."""

    def locate(index: int) -> LocatedIntegral | None:
        return integral_for_epsilon(terms, float(epsilons[index]), least=least)

    def serve(found: LocatedIntegral, some: Indices) -> _Served:
        return _deltas(found.integral, epsilons[some])

    return _served(locate, serve, epsilons)


def are_below(terms: AnalyticTerms, epsilons: Floats, log_deltas: Floats) -> NDArray[np.bool_]:
    """Return at which epsilons delta is proven to be below the given ones, by few short lines."""

    def locate(index: int) -> LocatedIntegral | None:
        found = integral_at_once(terms, float(epsilons[index]), _COARSE, at_epsilon=True)
        return found and LocatedIntegral(found[0], found[1], terms)

    def serve(found: LocatedIntegral, some: Indices) -> _Served:
        scale, _, estimate, upper, _ = found.integral.deltas(epsilons[some])
        with np.errstate(all="ignore"):
            log_upper = scale + np.log(upper) + _OUTWARD * (np.abs(scale) + 4.0)
        precise = upper <= (1.0 + _MOST_COARSE_ERROR) * estimate
        return np.array([log_upper] * 3), precise & (log_upper < log_deltas[some])

    return np.asarray(np.isfinite(_served(locate, serve, epsilons)[2]))


def _served(
    locate: Callable[[int], LocatedIntegral | None],
    serve: Callable[[LocatedIntegral, Indices], _Served],
    places: Floats,
) -> Floats:
    """Return what integrals say, each made for the middle one of those that none serves so far."""
    found = np.full((3, places.size), math.nan)
    unserved = np.ones(places.size, dtype=bool)
    failures = 0
    while unserved.any() and failures < _FAILURES:
        some = np.flatnonzero(unserved)
        middle = int(some[np.argsort(places[some])[some.size // 2]])
        unserved[middle] = False
        located = locate(middle)
        if located is None:
            failures += 1
            continue
        ends, good = serve(located, some)
        failures += not good.any()
        found[:, some[good]] = ends[:, good]
        unserved[some[good]] = False
    return found


def _epsilons(integral: Integral, start: float, deltas: Floats) -> _Served:
    """Return the proven epsilons of ascending deltas, and which of them are precise.

    The estimates are Newton's; each end is one at which delta is proven to be on its side.
    """
    guess = _guesses(integral, start, np.log(deltas))
    known = np.isfinite(guess)
    least, most = (np.log(deltas[known] * (1.0 + sign * _READING)) for sign in (-1.0, 1.0))
    slack = _OUTWARD * (np.abs(least) + 4.0)
    with np.errstate(all="ignore"):
        scale, lower, estimate, upper, slope = integral.deltas(guess[known])
        error = np.maximum(upper - estimate, estimate - lower) / estimate
        off = scale + np.log(estimate) - least
        epsilon = guess[known] - off * estimate / slope
        margin = (error + 2.0 * slack + (most - least) + off * off) * estimate / -slope
        margin += 4.0 * _OUTWARD * epsilon
        high, low = epsilon + margin, epsilon - margin
        at_high, at_low = integral.deltas(high), integral.deltas(low)
        precise = (estimate > 0.0) & (slope < 0.0) & (error < _MOST_ERROR) & (low > 0.0)
        precise &= (deltas[known] >= _LEAST_DELTA) & (np.abs(off) < _FARTHEST_GUESS)
        precise &= at_high[0] + np.log(at_high[3]) <= least - slack
        precise &= at_low[0] + np.log(at_low[1]) >= most + slack
    ends, good = np.full((3, deltas.size), math.nan), np.zeros(deltas.size, dtype=bool)
    ends[:, known], good[known] = (low, epsilon, high), precise
    return ends, good


def _guesses(integral: Integral, start: float, log_deltas: Floats) -> Floats:
    """Return about the epsilons of ascending deltas; NaN where Newton's method leads nowhere.

    It starts from one epsilon for few of the deltas, between which a cubic starts it for all.
    """
    few = np.append(np.arange(0, log_deltas.size - 1, _STRIDE), log_deltas.size - 1)
    known, change = _newton(integral, np.full(few.size, start), log_deltas[few])
    between = _cubic(log_deltas[few], known, change, log_deltas)
    starts = np.where(np.isfinite(between), between, start)
    return _newton(integral, starts, log_deltas)[0]


def _cubic(knots: Floats, values: Floats, slopes: Floats, places: Floats) -> Floats:
    """Return Hermite's cubic interpolation between ascending knots."""
    cell = np.clip(np.searchsorted(knots, places, "right") - 1, 0, max(knots.size - 2, 0))
    after = np.minimum(cell + 1, knots.size - 1)
    with np.errstate(all="ignore"):
        width, rise = knots[after] - knots[cell], values[after] - values[cell]
        t = (places - knots[cell]) / width
        left, right = slopes[cell] * width - rise, slopes[after] * width - rise
        bend: Floats = t * (rise + (1.0 - t) * (left * (1.0 - t) - right * t))
    return values[cell] + bend


def _newton(integral: Integral, starts: Floats, log_deltas: Floats) -> tuple[Floats, Floats]:
    """Return about the epsilons of deltas by Newton's method, and their derivatives in ln delta."""
    found, change = starts.copy(), np.full(starts.size, math.nan)
    moving = np.arange(starts.size)
    for _ in range(_MANY_NEWTON_STEPS):
        scale, estimate, slope = integral.estimates(found[moving])
        with np.errstate(all="ignore"):
            change[moving] = estimate / slope
            step = (log_deltas[moving] - scale - np.log(estimate)) * change[moving]
        found[moving] += step
        moving = moving[np.abs(step) * integral.line.c > _LAST_STEP]
        if not moving.size:
            break
    return found, change


def _deltas(integral: Integral, epsilons: Floats) -> _Served:
    """Return the proven deltas at epsilons, and which of them are precise."""
    scale, lower, estimate, upper, _ = integral.deltas(epsilons)
    with np.errstate(all="ignore"):
        error = np.maximum(upper - estimate, estimate - lower) / estimate
        outward = _OUTWARD * (np.abs(scale) + 4.0)
        ends = np.exp(scale) * np.array(
            [lower * (1.0 - outward), estimate, upper * (1.0 + outward)]
        )
        # Underflow is rounded outward.
        ends[0] = np.maximum(ends[0] - 5e-324, 0.0)
        ends[2] = np.minimum(ends[2] + 5e-324, 1.0)
        good = (estimate > 0.0) & (lower > 0.0) & (error < _MOST_ERROR)
    return ends, good
