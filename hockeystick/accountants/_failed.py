"""Failures of approximate guarantees, set apart from the rest: with probability delta all shows.

With probability ``s = 1 - prod (1 - delta_i)^n_i`` one of the releases shows everything, in both
directions, and the loss is infinite; otherwise it is that of the rest, whose profile is d:

    delta(eps) = s + (1 - s) d(eps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hockeystick.accountants._cost import Composition, Terms, largest_loss, least_largest_loss
from hockeystick.accountants._interval import Interval, down, up
from hockeystick.accountants._revealed import Reading
from hockeystick.privacy_loss import (
    PartlyShownLoss,
    PrivacyLoss,
    ProfileLoss,
    Readings,
    RevealingLoss,
    TwoPointLoss,
)

# Covers the few roundings of each step below.
_SLACK: Final = 2.0**-48
# So many failures are added up exactly.
_FEW: Final = 64
_NO_LOSS: Final = (
    TwoPointLoss(0.0),
    PartlyShownLoss(None, Readings(Fraction(0), Fraction(0)), Fraction(1), 0.0),
)


@dataclass(frozen=True, slots=True)
class Failed:
    """The failures of one direction: ``ln(1 - s)`` between two ends, and s itself where few fail.

    What the losses of the rest can add up to is between ``least_largest`` and ``largest``.
    """

    low: float
    high: float
    exact: Readings | None
    least_largest: float
    largest: float

    def epsilon(self, delta: float, rest: Reading) -> Interval:
        """Return epsilon at a delta, given that of the rest at ``(delta - s) / (1 - s)``."""
        least, most = self._left(delta)
        return Interval(self._of_rest(most, rest).lower, *self._of_rest(least, rest)[1:]).ordered()

    def _of_rest(self, left: float, rest: Reading) -> Interval:
        """Return epsilon of the rest at what is left of a delta for it."""
        if left < 0.0:
            return Interval.point(math.inf)
        if left == 0.0:
            return Interval(self.least_largest, self.largest, self.largest)
        return rest(left) if left < 1.0 else Interval.point(0.0)

    def delta(self, epsilon: float, rest: Reading) -> Interval:
        """Return delta at an epsilon, given that of the rest."""
        if self.low == -math.inf:
            return Interval.point(1.0)
        inner = rest(epsilon)
        if self.exact is not None and inner.upper == 0.0:
            low, high = sorted(map(float, self.exact))
            return Interval(down(low), float(self.exact.decimal), min(up(high), 1.0))
        lower = (-math.expm1(self.high) + math.exp(self.high) * inner.lower) * (1.0 - _SLACK)
        middle = -math.expm1(self.high) + math.exp(self.high) * inner.estimate
        upper = (-math.expm1(self.low) + math.exp(self.low) * inner.upper) * (1.0 + _SLACK)
        return Interval(lower, middle, min(upper, 1.0)).ordered()

    def _left(self, delta: float) -> tuple[float, float]:
        """Return what of a delta is left for the rest, between two ends; 0 only if exactly that."""
        if self.exact is not None:
            asked = Readings(Fraction(delta), Fraction(repr(delta)))
            left = sorted((d - s) / (1 - s) for d, s in zip(asked, self.exact, strict=True))
            return _outward(left[0], -1.0), _outward(left[1], 1.0)
        if self.high < math.log1p(-delta) * (1.0 + _SLACK):
            return -1.0, -1.0
        most_failing = -math.expm1(self.low) * (1.0 + _SLACK)
        least_failing = -math.expm1(self.high) * (1.0 - _SLACK)
        least = (delta - most_failing) / math.exp(self.low)
        most = (delta - least_failing) / math.exp(self.high)
        return least - _SLACK * abs(least), most + _SLACK * abs(most)


def split_failures(terms: Terms) -> tuple[Failed | None, Terms]:
    """Return the failures as one, None where there are none, and the rest."""
    failing = [(share, count) for loss, count in terms if (share := _share(loss)) is not None]
    if not failing:
        return None, terms
    low, high = (
        math.fsum(count * end(map(_log_complement, share)) for share, count in failing)
        for end in (min, max)
    )
    rest = _without_failures(terms)
    return (
        Failed(
            low=low * (1.0 + _SLACK),
            high=high * (1.0 - _SLACK),
            exact=_together(failing),
            least_largest=least_largest_loss(rest),
            largest=max(largest_loss(rest), 0.0),
        ),
        rest,
    )


def _share(loss: PrivacyLoss) -> Readings | None:
    """Return the probability that a loss is infinite, None where it is finite."""
    if isinstance(loss, PartlyShownLoss) and any(loss.shown):
        return loss.shown
    if isinstance(loss, TwoPointLoss) and loss.failure:
        return Readings(Fraction(loss.failure), Fraction(repr(loss.failure)))
    return None


def _together(failing: list[tuple[Readings, int]]) -> Readings | None:
    """Return s exactly, None where too many fail or one surely does."""
    if sum(count for _, count in failing) > _FEW or any(1 in share for share, _ in failing):
        return None
    one = Fraction(1)
    kept = ([(1 - share[k]) ** count for share, count in failing] for k in (0, 1))
    return Readings(*(one - math.prod(two, start=one) for two in kept))


def _outward(value: Fraction, side: float) -> float:
    """Return a float beyond a number; 0 only for 0."""
    near = float(value)
    if value == 0 or (near - value) * Fraction(side) > 0:
        return near
    return math.nextafter(near, math.inf * side)


def can_be_infinite(composition: Composition) -> bool:
    """Return whether a loss is infinite with positive probability."""
    return any(_can_be_infinite(one) for one in composition.branches)


def _can_be_infinite(composition: Composition) -> bool:
    """Return the same for a record in one place."""
    ways = [split_failures(terms) for terms in (composition.removing, composition.adding)]
    failed = any(one is not None for one, _ in ways)
    shown = any(isinstance(loss, RevealingLoss) for loss, _ in composition.removing)
    return failed or shown or not all(are_finite(rest) for _, rest in ways)


def are_finite(terms: Terms) -> bool:
    """Return whether all losses known by a profile are shown to be finite."""
    return all(loss.vanishes for loss, _ in terms if isinstance(loss, ProfileLoss))


def _without_failures(terms: Terms) -> Terms:
    """Return the same losses without their failures, equal ones counted together."""
    counts: dict[PrivacyLoss, int] = {}
    for loss, count in terms:
        if isinstance(loss, TwoPointLoss) and loss.failure:
            loss = TwoPointLoss(loss.epsilon)
        if isinstance(loss, PartlyShownLoss):
            loss = loss.finite
        if loss not in _NO_LOSS:
            counts[loss] = counts.get(loss, 0) + count
    return tuple(counts.items())


def _log_complement(failure: Fraction) -> float:
    """Return ``ln(1 - s)``, which below 1/2 keeps the digits of s, and above those of 1 - s."""
    if failure >= 1:
        return -math.inf
    return math.log1p(-float(failure)) if failure < 0.5 else math.log(1 - failure)
