"""The Edgeworth expansion: the central limit theorem with two more terms. An approximation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, final

import numpy as np

from hockeystick.accountants.base import DirectedAccountant, Kind
from hockeystick.accountants.interval import Interval
from hockeystick.numerics.roots import increasing_root, minimum
from hockeystick.privacy_loss import PrivacyLoss, Terms, expanded
from hockeystick.privacy_loss.bounds.cumulants import Cumulants, FourCumulants

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Standard deviations beyond which the expansion is below every float, and points to each of them.
_REACH: Final = 39
_DENSITY: Final = 20


@final
class Edgeworth(DirectedAccountant):
    """Expands the distribution of the total loss about the normal one, under P and under Q.

    With the standardised cumulants ``l_3``, ``l_4`` of the total loss and ``x = (s - mean) / sd``,

        F(s) = Phi(x) - phi(x) [l_3 (x^2-1)/6 + l_4 (x^3-3x)/24 + l_3^2 (x^5-10x^3+15x)/72],

    and ``delta(eps) = P_P[L > eps] - e^eps P_Q[L > eps]``. The source has the same as a trade-off
    function, ``f = F_P(F_Q^-1(1-a))``, for i.i.d. runs.

    Guarantees:
        None, on either side of the truth; exact for Gaussians without sampling. It is good for many
        runs and a moderate delta, and no better than the central limit theorem far out, where the
        expansion may fall below 0 or rise again. There, delta(eps) is the largest value, at least 0
        and at most 1, that the expansion takes from eps on, and epsilon(delta) the last point at
        which it exceeds delta, or 0: both fall, each is the other's inverse, and neither is ever no
        number.

    Edge cases:
        No runs cost 0. Losses with no moments in reach of floats are refused.

    References:
        Zheng, Dong, Long and Su, "Sharp composition bounds for Gaussian differential privacy via
        Edgeworth expansion", ICML 2020.
    """

    name: ClassVar[str] = "edgeworth"
    kind: ClassVar[Kind] = "approximation"
    summary: ClassVar[str] = (
        "Edgeworth expansion; no guarantee, on either side of the truth, mostly closer than gdp"
    )

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        """Return where the expansion of one direction last exceeds delta."""
        return Interval.point(self._expansion(terms).epsilon(delta) if terms else 0.0)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        """Return the largest value that the expansion of one direction takes from epsilon on."""
        return Interval.point(self._expansion(terms).delta(epsilon) if terms else 0.0)

    def _expansion(self, terms: Terms) -> Expansion:
        """Return the expansion of the total loss, or raise."""
        total = _total([(self._cumulants(loss), count) for loss, count in expanded(terms)])
        if not all(math.isfinite(value) for law in total for value in law):
            raise self.refuse("the plan", "its losses are too large for floats")
        if not min(law.variance for law in total) > 0.0:
            raise self.refuse("the plan", "its losses do not vary")
        return Expansion(total)

    def _cumulants(self, loss: PrivacyLoss) -> Cumulants:
        """Return the cumulants of one run, or raise."""
        found = loss.cumulants()
        if found is None:
            kind = type(loss).__name__
            reason = f"the cumulants of a {kind} are not known here, or out of reach of floats"
            raise self.refuse("the plan", reason)
        return found


@final
@dataclass(frozen=True)
class Expansion:
    """The expansions of a total loss under P and under Q."""

    total: Cumulants

    def value(self, epsilon: Array) -> Array:
        """Return ``P_P[L > eps] - e^eps P_Q[L > eps]`` as expanded, whatever its sign."""
        with np.errstate(all="ignore"):
            found = _above(self.total.under_p, epsilon, 0.0 * epsilon)
            found -= _above(self.total.under_q, epsilon, epsilon)
        return np.nan_to_num(found, nan=0.0)

    def at(self, epsilon: float) -> float:
        """Return the same at one point."""
        return float(self.value(np.array([epsilon]))[0])

    @cached_property
    def grid(self) -> Array:
        """Points that no rise or fall of the expansion for eps >= 0 hides between."""
        z = np.linspace(-_REACH, _REACH, 2 * _REACH * _DENSITY + 1)
        p, q = self.total
        # e^s phi(x) is a bell about the mean plus the variance.
        bells = ((p, p.mean), (q, q.mean), (q, q.mean + q.variance))
        points = np.concatenate([mean + math.sqrt(law.variance) * z for law, mean in bells])
        return np.unique(np.maximum(points, 0.0))

    def delta(self, epsilon: float) -> float:
        """Return the largest value from epsilon on, at least 0 and at most 1."""
        points = np.concatenate([[epsilon], self.grid[self.grid > epsilon]])
        values = self.value(points)
        peak = int(values.argmax())
        largest = max(float(values[peak]), 0.0)
        if peak > 0:
            largest = max(largest, self.at(self._local_maximum(points, peak)))
        return min(largest, 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the last point at which the expansion exceeds delta; 0 if there is none."""
        values = self.value(self.grid)
        above = (values > delta).nonzero()[0]
        if len(above) == 0:
            peak = int(values.argmax())
            maximum = self._local_maximum(self.grid, peak)
            end = float(self.grid[min(peak + 1, len(values) - 1)])
            return self._last_crossing(delta, maximum, end) if self.at(maximum) > delta else 0.0
        last = int(above[-1])
        if last + 1 == len(values):
            return float(self.grid[last])
        return self._last_crossing(delta, float(self.grid[last]), float(self.grid[last + 1]))

    def _local_maximum(self, points: Array, peak: int) -> float:
        """Return where the expansion is largest between the neighbours of a point."""
        low, high = float(points[max(peak - 1, 0)]), float(points[min(peak + 1, len(points) - 1)])
        tolerance = max(1e-9 * (high - low), 1e-14 * high)
        return minimum(lambda e: -self.at(e), low, high, tolerance=tolerance)

    def _last_crossing(self, delta: float, low: float, high: float) -> float:
        """Return where the expansion falls to delta between a point above it and one below."""
        return increasing_root(
            lambda e: delta - self.at(min(e, high)),
            low,
            stride=high - low,
            tolerance=1e-14 * (high - low),
            farthest=high,
        )


def _above(law: FourCumulants, s: Array, log_weight: Array) -> Array:
    """Return ``exp(log_weight) P[L > s]`` as expanded."""
    from scipy.special import log_ndtr

    sd = math.sqrt(law.variance)
    third, fourth = law.third / sd / law.variance, law.fourth / law.variance / law.variance
    x = (s - law.mean) / sd
    x = np.clip(x, -1e6, 1e6)
    y = x * x
    skewed = third / 6.0 * (y - 1.0)
    heavy = fourth / 24.0 * x * (y - 3.0)
    both = third * third / 72.0 * x * (y * (y - 10.0) + 15.0)
    bell = np.exp(log_weight - 0.5 * y) / math.sqrt(2.0 * math.pi)
    return np.asarray(np.exp(log_weight + log_ndtr(-x)) + bell * (skewed + heavy + both))


def _total(runs: list[tuple[Cumulants, int]]) -> Cumulants:
    """Return the cumulants of independent runs together: their sums."""
    return Cumulants(
        *(
            FourCumulants(*(sum(n * one[side][order] for one, n in runs) for order in range(4)))
            for side in range(2)
        )
    )
