"""The profile of one direction of a plan: delta at many epsilons, by as few lines as serve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.accountants.contour._line import AnalyticTerms, log_chernoff
from hockeystick.privacy_loss.core.terms import total
from hockeystick.tradeoffs import Profile, ProfileValues

if TYPE_CHECKING:
    from hockeystick.accountants.contour._integral import Integral
    from hockeystick.accountants.contour.search import Located
    from hockeystick.tradeoffs.profiles.profile import Array, Flags

# Relative error of delta up to which a line drawn for one epsilon serves others, and the largest
# with which it serves its own.
_GOOD: Final = 1e-10
_WIDEST: Final = 1e-3
# How far it serves, in standard deviations of the tilted loss, and how many epsilons at a time.
_REACH: Final = 3.0
_AT_ONCE: Final = 4096
# The number of failed searches that ends the search for integrals.
_FAILURES: Final = 3
# The number of long lines that are tried where short ones fail.
_MOST_LONG: Final = 4
_OUTWARD: Final = 2.0**-50


@final
class ContourProfile(Profile):
    """delta at many epsilons, from a few contour integrals.

    Each integral is computed for one epsilon and answers for all those about it; those already
    known are kept. What no line serves is left to another profile, with wider ends.
    """

    __slots__ = ("_failures", "_integrals", "_long", "_terms", "_wide")

    def __init__(self, terms: AnalyticTerms, wide: Profile) -> None:
        self._terms = terms
        self._wide = wide
        self._integrals: list[tuple[float, float, float, Integral]] = []
        self._failures = self._long = 0

    def __eq__(self, other: object) -> bool:
        """Return whether it is of the same losses."""
        return isinstance(other, ContourProfile) and self._terms == other._terms

    def __hash__(self) -> int:
        """Return the hash of the losses."""
        return hash(self._terms)

    @property
    def supremum(self) -> float:
        """The largest loss."""
        return self._wide.supremum

    def at(self, epsilon: Array) -> ProfileValues:
        """Return delta at epsilons, by the integrals known so far and as many more as needed."""
        found = np.zeros((4, epsilon.size))
        open_ = epsilon < self.supremum
        for known in self._integrals:
            _fill(found, open_, epsilon, *known)
        while open_.any() and self._failures < _FAILURES:
            rest = np.sort(epsilon[open_])
            self._integrate_at(float(rest[rest.size // 2]), found, open_, epsilon)
        if open_.any():
            found[:, open_] = np.array(self._wide.at(epsilon[open_]))
        return ProfileValues(*found)

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        """Return delta at one epsilon, as far as a thorough search takes it."""
        return self._wide.precisely(epsilon)

    def above(self, epsilon: Array, floor: Array) -> ProfileValues:
        """Return delta where Chernoff's bounds at the contours known so far do not put it below."""
        bound = np.full(epsilon.size, np.inf)
        for *_, integral in self._integrals:
            c, k = integral.line.c, float(integral.real[0] + integral.error[0])
            log_bound = log_chernoff(k, c, epsilon)
            log_bound += _OUTWARD * (abs(k) + c * epsilon + 4.0)
            bound = np.minimum(bound, np.exp(np.minimum(log_bound, 700.0)))
        found = np.array([np.zeros_like(bound), bound, bound, -bound])
        open_ = bound > floor
        if open_.any():
            found[:, open_] = np.array(self.at(epsilon[open_]))
        return ProfileValues(*found)

    def _integrate_at(self, at: float, found: Array, open_: Flags, epsilon: Array) -> None:
        """Draw a line for one epsilon, and fill in what it serves."""
        located, error = self._located(at)
        if located is None:
            self._failures += 1
            return
        integral = located.integral
        spread = _REACH * math.sqrt(total(self._terms, integral.line.c).second_derivative)
        self._integrals.append((at - spread, at + spread, max(_GOOD, 4.0 * error), integral))
        _fill(found, open_, epsilon, *self._integrals[-1])

    def _located(self, at: float) -> tuple[Located | None, float]:
        """Return an integral and its relative error; a long line where no short one serves."""
        from hockeystick.accountants.contour.search import integral_for_epsilon

        for quick in (True, False):
            if not quick and self._long == _MOST_LONG:
                break
            self._long += not quick
            located = integral_for_epsilon(self._terms, at, quick=quick)
            if located is not None:
                error = located.integral.delta(at).relative_error
                if error <= _WIDEST:
                    return located, error
        return None, math.inf


def _fill(
    found: Array,
    open_: Flags,
    epsilon: Array,
    low: float,
    high: float,
    error: float,
    integral: Integral,
) -> None:
    """Fill in the epsilons that an integral is good for."""
    near = np.flatnonzero(open_ & (low <= epsilon) & (epsilon <= high))
    for some in np.array_split(near, 1 + near.size // _AT_ONCE):
        scale, lower, estimate, upper, slope = integral.deltas(epsilon[some])
        with np.errstate(all="ignore"):
            good = np.maximum(upper - estimate, estimate - lower) <= error * estimate
            unit = np.exp(scale)
        slack = _OUTWARD * (np.abs(scale) + 4.0)
        values = (lower * (1.0 - slack), estimate, upper * (1.0 + slack), slope)
        scaled = np.array(values) * unit
        # What underflows is not nothing.
        scaled[0] = np.maximum(scaled[0] - 5e-324, 0.0)
        scaled[2] = np.minimum(scaled[2] + 5e-324, 1.0)
        found[:, some[good]] = scaled[:, good]
        open_[some[good]] = False
