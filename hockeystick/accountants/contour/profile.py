"""The profile of one direction of a plan: delta at many epsilons, by few contour integrals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.accountants.contour._line import AnalyticTerms, log_chernoff
from hockeystick.privacy_loss.core.terms import total
from hockeystick.tradeoffs import Profile, ProfileValues

if TYPE_CHECKING:
    from hockeystick.accountants.contour._integral import Integral
    from hockeystick.accountants.contour.ways import LocatedIntegral
    from hockeystick.tradeoffs.profiles.profile import Array, Flags

# The largest relative error of delta at which an integral is used: for other epsilons than its
# own, and for its own.
_SHARED_ERROR: Final = 1e-10
_OWN_ERROR: Final = 1e-3
# The range of an integral, in standard deviations of the tilted loss, and the size of a batch.
_REACH: Final = 3.0
_BATCH: Final = 4096
# The number of failed searches that ends the search for integrals.
_FAILURES: Final = 3
# The number of long lines tried where short ones fail.
_MOST_LONG: Final = 4
_OUTWARD: Final = 2.0**-50


@final
class ContourProfile(Profile):
    """delta at many epsilons, from a few contour integrals.

    Each integral is computed for one epsilon and used for all those near it; integrals are kept.
    Epsilons without an integral are left to another profile, with wider ends.
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
        return self._wide.supremum

    def at(self, epsilon: Array) -> ProfileValues:
        """Return delta at epsilons, by the integrals computed so far and more where needed."""
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

    def above(self, epsilon: Array, threshold: Array) -> ProfileValues:
        """Return delta, or the known contours' Chernoff bound where that is below a threshold."""
        bound = np.full(epsilon.size, np.inf)
        for *_, integral in self._integrals:
            c, k = integral.line.c, float(integral.real[0] + integral.error[0])
            log_bound = log_chernoff(k, c, epsilon)
            log_bound += _OUTWARD * (abs(k) + c * epsilon + 4.0)
            far = integral.far.upper if integral.far else 0.0
            bound = np.minimum(bound, np.exp(np.minimum(log_bound, 700.0)) + far)
        found = np.array([np.zeros_like(bound), bound, bound, -bound])
        unserved = bound > threshold
        if unserved.any():
            found[:, unserved] = np.array(self.at(epsilon[unserved]))
        return ProfileValues(*found)

    def _integrate_at(self, at: float, found: Array, unserved: Flags, epsilon: Array) -> None:
        """Choose a line for one epsilon, and fill in the epsilons in its range."""
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
        from hockeystick.accountants.contour.search import integral_for_epsilon

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
    found: Array,
    unserved: Flags,
    epsilon: Array,
    low: float,
    high: float,
    error: float,
    integral: Integral,
) -> None:
    """Fill in the epsilons at which an integral is precise enough."""
    near = np.flatnonzero(unserved & (low <= epsilon) & (epsilon <= high))
    for batch in np.array_split(near, 1 + near.size // _BATCH):
        scale, lower, estimate, upper, slope = integral.deltas(epsilon[batch])
        with np.errstate(all="ignore"):
            good = np.maximum(upper - estimate, estimate - lower) <= error * estimate
            unit = np.exp(scale)
        slack = _OUTWARD * (np.abs(scale) + 4.0)
        values = (lower * (1.0 - slack), estimate, upper * (1.0 + slack), slope)
        scaled = np.array(values) * unit
        # Underflow is rounded outward.
        scaled[0] = np.maximum(scaled[0] - 5e-324, 0.0)
        scaled[2] = np.minimum(scaled[2] + 5e-324, 1.0)
        found[:, batch[good]] = scaled[:, good]
        unserved[batch[good]] = False
