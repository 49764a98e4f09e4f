"""The loss of randomized response, the worst that a pure or approximate guarantee allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from hockeystick.numerics import ULP, Ball, FloatAndDecimal
from hockeystick.privacy_loss.bounds.cumulants import Cumulants, FourCumulants
from hockeystick.privacy_loss.bounds.moment_bounds import LawBounds, MomentBounds
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, of_ends
from hockeystick.privacy_loss.core.atomic import AtomicLoss, read_only_atoms
from hockeystick.privacy_loss.core.base import Atoms, CGFEstimate
from hockeystick.privacy_loss.core.registry import DominatingPair

if TYPE_CHECKING:
    from mpmath import mpf

# Above this argument a hyperbolic sine may overflow.
_LARGE: Final = 300.0
# Epsilons out of this range have no contour integral.
_SMALLEST: Final = 1e-100
_LARGEST: Final = 1e100
# Epsilons of which the cumulants, and of which the third power and ``e^-eps``, are normal floats.
_LEAST_EPSILON: Final = 1e-70
_LARGEST_EPSILON: Final = 1e70
_LEAST_CUBED: Final = 1e-90
_LARGEST_EXPONENT: Final = 600.0


@final
@dataclass(frozen=True, slots=True)
class RandomizedResponsePairLoss(AtomicLoss):
    """Infinite with probability ``failure``, otherwise ``+eps`` or ``-eps`` as e^eps to 1.

    The same in both directions. It dominates every (eps, failure)-DP release; without failures,
    ``K(c) = ln(cosh((c + 1/2) eps) / cosh(eps/2))``. Accountants split the infinity mass off first;
    atoms and contours are those without.

    References:
        Kairouz, Oh and Viswanath 2017, theorem 2.
    """

    epsilon: float
    failure: float = 0.0

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if self.failure > 0.0:
            return CGFEstimate(math.inf, math.inf, 0.0)
        slope = math.tanh((c + 0.5) * self.epsilon)
        decay = math.exp(-(c + 0.5) * self.epsilon)
        curvature = (2.0 * self.epsilon * decay / (1.0 + decay * decay)) ** 2
        return CGFEstimate(self._value(c), self.epsilon * slope, curvature)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K and its round-off: that of two hyperbolic sines, damped by the logarithm."""
        if self.failure > 0.0:
            return Ball(math.inf, 0.0)
        value = self._value(c)
        return Ball(value, ULP * (32.0 + 4.0 * min((c + 1.0) * self.epsilon, _LARGE)) * value)

    def _value(self, c: float) -> float:
        """Return ``ln(1 + 2 sinh((c+1) eps/2) sinh(c eps/2) / cosh(eps/2))``, which is K."""
        high, low = 0.5 * (c + 1.0) * self.epsilon, 0.5 * c * self.epsilon
        if high > _LARGE:
            both = math.log1p(math.exp(-2.0 * (high + low)))
            return c * self.epsilon + both - math.log1p(math.exp(-self.epsilon))
        return math.log1p(2.0 * math.sinh(high) * math.sinh(low) / math.cosh(high - low))

    @property
    def infinity_mass(self) -> FloatAndDecimal:
        return FloatAndDecimal.of(self.failure)

    @property
    def finite(self) -> RandomizedResponsePairLoss | None:
        return RandomizedResponsePairLoss(self.epsilon) if self.epsilon else None

    @property
    def opposite(self) -> RandomizedResponsePairLoss:
        return self

    @property
    def supremum(self) -> float:
        return math.inf if self.failure > 0.0 else self.epsilon

    @property
    def exact_supremum(self) -> FloatAndDecimal | None:
        return FloatAndDecimal.of(self.epsilon) if self.failure == 0.0 else None

    def zcdp_line(self) -> ZCDPLine | None:
        return of_ends(-self.epsilon, self.epsilon) if self.failure == 0.0 else None

    def cumulants(self) -> Cumulants | None:
        """Return those of two points; None with infinity mass, or out of the range of floats."""
        if self.failure > 0.0 or not _LEAST_EPSILON <= self.epsilon <= _LARGEST_EPSILON:
            return None
        e, mean, variance = self.epsilon, math.tanh(0.5 * self.epsilon), _variance(self.epsilon)
        third = 2.0 * mean * variance * e**3
        fourth = -2.0 * variance * (1.0 - 3.0 * mean * mean) * e**4
        return Cumulants(
            FourCumulants(e * mean, variance * e * e, -third, fourth),
            FourCumulants(-e * mean, variance * e * e, third, fourth),
        )

    def moment_bounds(self) -> MomentBounds | None:
        """Return those of two points; None with infinity mass, or out of the range of floats."""
        if self.failure > 0.0 or not _LEAST_CUBED <= self.epsilon <= _LARGEST_EXPONENT:
            return None
        e, mean, variance = self.epsilon, math.tanh(0.5 * self.epsilon), _variance(self.epsilon)
        less, more = 1.0 - 32.0 * ULP * (1.0 + e), 1.0 + 32.0 * ULP * (1.0 + e)
        law = LawBounds(
            mean_lower=e * mean * less,
            mean_upper=e * mean * more,
            variance_lower=variance * e * e * less,
            variance_upper=variance * e * e * more,
            third_upper=variance * (1.0 + mean * mean) * e**3 * more,
        )
        mirrored = law._replace(mean_lower=-law.mean_upper, mean_upper=-law.mean_lower)
        return MomentBounds(law, mirrored)

    @property
    def out_of_range(self) -> bool:
        """Whether there is infinity mass, or epsilon is out of range."""
        return self.failure > 0.0 or not _SMALLEST <= self.epsilon <= _LARGEST

    def atoms(self) -> Atoms:
        losses = (-self.epsilon, self.epsilon)
        log_p = -math.log1p(math.exp(-self.epsilon))
        error = 8.0 * ULP * (1.0 + self.epsilon)
        return read_only_atoms(losses, (log_p - self.epsilon, log_p), (error, error))

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.atoms import three_points
        from hockeystick.precision.profiles import exact

        part = three_points(exact(self.epsilon), mp.zero)[first : first + count]
        return [loss for loss, _ in part], [mass for _, mass in part]

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``failure + (1 - failure) (e^eps - e^epsilon)_+ / (1 + e^eps)``, down to -eps.

        Below -eps both values exceed epsilon: ``failure + (1 - failure) (1 - e^epsilon)``.
        """
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.profiles import exact

        own, failure = (exact(v) * (1 + perturbation * ULP) for v in (self.epsilon, self.failure))
        failure = min(failure, mp.one)
        if epsilon >= own:
            return failure
        of_one = mp.expm1(epsilon - own) / (1 + mp.exp(-own))
        return failure - (1 - failure) * min(of_one, mp.expm1(epsilon))


def _variance(epsilon: float) -> float:
    """Return ``1 - tanh(eps/2)^2``, the variance of two points at 1 and -1."""
    small = math.exp(-epsilon)
    return 4.0 * small / (1.0 + small) ** 2


def infinity_mass_pair(share: float = 1.0) -> DominatingPair:
    """Return the pair whose loss is infinite with some probability, and else 0."""
    loss = RandomizedResponsePairLoss(0.0, share)
    return DominatingPair(loss, loss)


NO_PRIVACY: Final = DominatingPair(
    RandomizedResponsePairLoss(0.0, 1.0), RandomizedResponsePairLoss(0.0, 1.0)
)


def two_point_pair(epsilon: float, failure: float) -> DominatingPair:
    """Return the dominating pair of all (epsilon, failure)-DP releases."""
    if epsilon == math.inf:
        return NO_PRIVACY
    if epsilon == failure == 0.0:
        return DominatingPair(None, None)
    loss = RandomizedResponsePairLoss(epsilon, failure)
    return DominatingPair(loss, loss)
