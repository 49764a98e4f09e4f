"""Delta at many epsilons, or epsilon at many deltas, of one direction, by few contour integrals.

An integral is computed for one of those asked about and serves all those near it. What none serves
precisely is left to be asked alone, or to a profile with wider ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.contour._far_outputs import AnalyticTerms
from hockeystick.accountants.contour._integral import Integral, log_chernoff
from hockeystick.accountants.contour.search import (
    LocatedIntegral,
    integral_at_once,
    integral_for_delta,
    integral_for_epsilon,
)
from hockeystick.numerics.rounding import OUTWARD_8
from hockeystick.privacy_loss.core.composition import total
from hockeystick.tradeoffs import Profile, ProfileValues

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]
# What an integral says of some of what is asked: three rows of ends, and which of them count.
_Served: TypeAlias = tuple[Floats, Flags]

# The largest relative error of delta at which an integral is used for what it was not made for.
_MOST_ERROR: Final = 1e-9
_MANY_NEWTON_STEPS: Final = 12
# Over 1/c, in which delta changes by a constant factor.
_LAST_STEP: Final = 1e-5
# The largest distance in ln delta from a guess to what is asked: its square widens the answer.
_FARTHEST_GUESS: Final = 1e-5
# One delta of so many is looked for without its neighbours.
_STRIDE: Final = 16
# How far a float is from the decimal that it prints as, at most, from some least float on.
_FROM_DECIMAL: Final = 2.0**-52
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
        ends, good = _proven(found.integral, epsilons[some], _MOST_ERROR)
        return ends[:3], good & (ends[1] > 0.0)

    return _served(locate, serve, epsilons)


def are_below(terms: AnalyticTerms, epsilons: Floats, log_deltas: Floats) -> Flags:
    """Return at which epsilons delta is proven to be below the given ones, by few short lines."""

    def locate(index: int) -> LocatedIntegral | None:
        found = integral_at_once(terms, float(epsilons[index]), _COARSE, at_epsilon=True)
        return found and LocatedIntegral(found[0], found[1], terms)

    def serve(found: LocatedIntegral, some: Indices) -> _Served:
        scale, _, estimate, upper, _ = found.integral.deltas(epsilons[some])
        with np.errstate(all="ignore"):
            log_upper = scale + np.log(upper) + OUTWARD_8 * (np.abs(scale) + 4.0)
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
    """Return the epsilons of ascending deltas between proven ends, and which are precise."""
    guess = _guesses(integral, start, np.log(deltas))
    known = np.isfinite(guess)
    least, most = (np.log(deltas[known] * (1.0 + sign * _FROM_DECIMAL)) for sign in (-1.0, 1.0))
    slack = OUTWARD_8 * (np.abs(least) + 4.0)
    with np.errstate(all="ignore"):
        scale, lower, estimate, upper, slope = integral.deltas(guess[known])
        error = np.maximum(upper - estimate, estimate - lower) / estimate
        off = scale + np.log(estimate) - least
        epsilon = guess[known] - off * estimate / slope
        margin = (error + 2.0 * slack + (most - least) + off * off) * estimate / -slope
        margin += 4.0 * OUTWARD_8 * epsilon
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
    """Return about the epsilons of ascending deltas; NaN where Newton's method leads nowhere."""
    few = np.append(np.arange(0, log_deltas.size - 1, _STRIDE), log_deltas.size - 1)
    known, change = _newton(integral, np.full(few.size, start), log_deltas[few])
    between = _cubic(log_deltas[few], known, change, log_deltas)
    starts = np.where(np.isfinite(between), between, start)
    return _newton(integral, starts, log_deltas)[0]


def _cubic(knots: Floats, values: Floats, slopes: Floats, places: Floats) -> Floats:
    cell = np.clip(np.searchsorted(knots, places, "right") - 1, 0, max(knots.size - 2, 0))
    after = np.minimum(cell + 1, knots.size - 1)
    with np.errstate(all="ignore"):
        width, rise = knots[after] - knots[cell], values[after] - values[cell]
        t = (places - knots[cell]) / width
        left, right = slopes[cell] * width - rise, slopes[after] * width - rise
        bend: Floats = t * (rise + (1.0 - t) * (left * (1.0 - t) - right * t))
    return values[cell] + bend


def _newton(integral: Integral, starts: Floats, log_deltas: Floats) -> tuple[Floats, Floats]:
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


def _proven(integral: Integral, epsilons: Floats, most_error: float) -> tuple[Floats, Flags]:
    """Return lower ends, deltas, upper ends and slopes at epsilons, and which are precise."""
    scale, lower, estimate, upper, slope = integral.deltas(epsilons)
    slack = OUTWARD_8 * (np.abs(scale) + 4.0)
    with np.errstate(all="ignore"):
        good = np.maximum(upper - estimate, estimate - lower) <= most_error * estimate
        values = (lower * (1.0 - slack), estimate, upper * (1.0 + slack), slope)
        ends = np.exp(scale) * np.array(values)
    # Underflow is rounded outward.
    ends[0] = np.maximum(ends[0] - 5e-324, 0.0)
    ends[2] = np.minimum(ends[2] + 5e-324, 1.0)
    return ends, good


# The largest relative error of delta at which an integral is used: for other epsilons than its
# own, and for its own.
_SHARED_ERROR: Final = 1e-10
_OWN_ERROR: Final = 1e-3
# The range of an integral, in standard deviations of the tilted loss, and the size of a batch.
_REACH: Final = 3.0
_BATCH: Final = 4096
# The number of long lines tried where short ones fail.
_MOST_LONG: Final = 4


@dataclass(unsafe_hash=True, slots=True)
class ContourProfile(Profile):
    """delta at many epsilons, from a few contour integrals.

    Each integral is computed for one epsilon and used for all those near it; integrals are kept.
    Epsilons without an integral are left to another profile, with wider ends.
    """

    _terms: AnalyticTerms
    _wide: Profile = field(compare=False)
    _integrals: list[tuple[float, float, float, Integral]] = field(
        default_factory=list, init=False, compare=False
    )
    _failures: int = field(default=0, init=False, compare=False)
    _long: int = field(default=0, init=False, compare=False)

    @property
    def supremum(self) -> float:
        return self._wide.supremum

    def at(self, epsilon: Floats) -> ProfileValues:
        found = np.zeros((4, epsilon.size))
        unserved = epsilon < self.supremum
        for known in self._integrals:
            _fill(found, unserved, epsilon, *known)
        while unserved.any() and self._failures < _FAILURES:
            rest = np.sort(epsilon[unserved])
            self._integrate_at(float(rest[rest.size // 2]), found, unserved, epsilon)
        if unserved.any():
            found[:, unserved] = np.array(self._wide.at(epsilon[unserved]))
        return ProfileValues(*found)

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        return self._wide.precisely(epsilon)

    def above(self, epsilon: Floats, threshold: Floats) -> ProfileValues:
        """Return delta, or the known contours' Chernoff bound where that is below a threshold."""
        bound = np.full(epsilon.size, np.inf)
        for *_, integral in self._integrals:
            c, cgf = integral.line.c, float(integral.real[0] + integral.error[0])
            log_bound = log_chernoff(cgf, c, epsilon)
            log_bound += OUTWARD_8 * (abs(cgf) + c * epsilon + 4.0)
            far = integral.far.upper if integral.far else 0.0
            bound = np.minimum(bound, np.exp(np.minimum(log_bound, 700.0)) + far)
        found = np.array([np.zeros_like(bound), bound, bound, -bound])
        unserved = bound > threshold
        if unserved.any():
            found[:, unserved] = np.array(self.at(epsilon[unserved]))
        return ProfileValues(*found)

    def _integrate_at(self, at: float, found: Floats, unserved: Flags, epsilon: Floats) -> None:
        located, error = self._located_integral(at)
        if located is None:
            self._failures += 1
            return
        integral = located.integral
        curvature = total(located.terms, integral.line.c).second_derivative
        distance = _REACH * math.sqrt(curvature)
        self._integrals.append(
            (at - distance, at + distance, max(_SHARED_ERROR, 4.0 * error), integral)
        )
        _fill(found, unserved, epsilon, *self._integrals[-1])

    def _located_integral(self, at: float) -> tuple[LocatedIntegral | None, float]:
        """Return an integral and its relative error; on a long line where no short one is found."""
        for quick in (True, False):
            if not quick and self._long == _MOST_LONG:
                break
            self._long += not quick
            located = integral_for_epsilon(self._terms, at, quick=quick)
            if located is not None:
                error = located.integral.delta(at).relative_error
                if error <= _OWN_ERROR:
                    return located, error
        return None, math.inf


def _fill(
    found: Floats,
    unserved: Flags,
    epsilon: Floats,
    low: float,
    high: float,
    error: float,
    integral: Integral,
) -> None:
    near = np.flatnonzero(unserved & (low <= epsilon) & (epsilon <= high))
    for batch in np.array_split(near, 1 + near.size // _BATCH):
        values, good = _proven(integral, epsilon[batch], error)
        found[:, batch[good]] = values[:, good]
        unserved[batch[good]] = False
