"""The loss of randomized response, the worst that a pure or approximate guarantee allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from hockeystick.losses.atomic import AtomicLoss, both, frozen
from hockeystick.losses.base import Atoms, Bounded, Cumulants
from hockeystick.losses.registry import LossPair

if TYPE_CHECKING:
    from mpmath import mpf

_ULP: Final = 2.0**-52
# Beyond this argument a hyperbolic sine would overflow.
_LARGE: Final = 300.0
# Epsilons out of this range have no line.
_SMALLEST: Final = 1e-100
_LARGEST: Final = 1e100


@final
@dataclass(frozen=True, slots=True)
class TwoPointLoss(AtomicLoss):
    """Infinite with probability ``failure``, otherwise ``+eps`` or ``-eps`` as e^eps to 1.

    The same in both directions. It dominates every (eps, failure)-DP release; without failures,
    ``K(c) = ln(cosh((c + 1/2) eps) / cosh(eps/2))``. Accountants set failures apart first; cells,
    atoms and lines are those without. Epsilon is a fraction where no decimal is equal to it.

    References:
        Kairouz, Oh and Viswanath 2017, theorem 2.
    """

    epsilon: float | Fraction
    failure: float = 0.0

    def cumulants(self, c: float) -> Cumulants:
        """Return K and two derivatives."""
        if self.failure > 0.0:
            return Cumulants(math.inf, math.inf, 0.0)
        epsilon = float(self.epsilon)
        slope = math.tanh((c + 0.5) * epsilon)
        decay = math.exp(-(c + 0.5) * epsilon)
        curvature = (2.0 * epsilon * decay / (1.0 + decay * decay)) ** 2
        return Cumulants(self._value(c), epsilon * slope, curvature)

    def log_mgf(self, c: float) -> Bounded:
        """Return K and its round-off: that of two hyperbolic sines, damped by the logarithm."""
        if self.failure > 0.0:
            return Bounded(math.inf, 0.0)
        value, grown = self._value(c), (c + 1.0) * float(self.epsilon)
        return Bounded(value, _ULP * (32.0 + 4.0 * min(grown, _LARGE)) * value)

    def _value(self, c: float) -> float:
        """Return ``ln(1 + 2 sinh((c+1) eps/2) sinh(c eps/2) / cosh(eps/2))``, which is K."""
        epsilon = float(self.epsilon)
        high, low = 0.5 * (c + 1.0) * epsilon, 0.5 * c * epsilon
        if high > _LARGE:
            both_terms = math.log1p(math.exp(-2.0 * (high + low)))
            return c * epsilon + both_terms - math.log1p(math.exp(-epsilon))
        return math.log1p(2.0 * math.sinh(high) * math.sinh(low) / math.cosh(high - low))

    @property
    def supremum(self) -> float:
        """``eps``, or infinite."""
        if self.failure > 0.0:
            return math.inf
        nearest = float(self.epsilon)
        return nearest if nearest == self.epsilon else math.nextafter(nearest, math.inf)

    @property
    def extreme(self) -> bool:
        """Whether it may be infinite, or epsilon is out of the range of a line."""
        return self.failure > 0.0 or not _SMALLEST <= self.epsilon <= _LARGEST

    def atoms(self) -> Atoms:
        """Return the two losses."""
        epsilon = float(self.epsilon)
        both_terms = -math.log1p(math.exp(-epsilon))
        logs = (both_terms - epsilon, both_terms)
        return frozen((-epsilon, epsilon), logs, [8.0 * _ULP * (abs(log) + epsilon) for log in logs])

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        """Return the losses and their probabilities by mpmath."""
        from mpmath import mp

        from hockeystick._reference.atoms import three_points
        from hockeystick._reference.profiles import exact

        part = three_points(exact(self.epsilon), mp.zero)[first : first + count]
        return [loss for loss, _ in part], [mass for _, mass in part]

    def delta(self, epsilon: mpf, nudge: int = 0) -> mpf:
        """Return ``failure + (1 - failure) (e^eps - e^epsilon)_+ / (1 + e^eps)``."""
        from mpmath import mp

        from hockeystick._reference.profiles import exact

        own, failure = (exact(v) * (1 + nudge * _ULP) for v in (self.epsilon, self.failure))
        failure = min(failure, mp.one)
        if epsilon >= own:
            return failure
        return failure - (1 - failure) * mp.expm1(epsilon - own) / (1 + mp.exp(-own))


def everything(share: float = 1.0) -> LossPair:
    """Return the losses of a release that with some probability shows all, and else nothing."""
    return both(TwoPointLoss(0.0, share))
