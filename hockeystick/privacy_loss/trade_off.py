"""The loss of a trade-off function, by its two privacy profiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np

from hockeystick.notions import FDP
from hockeystick.numerics import ULP
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, of_ends
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    CGFEstimate,
    DominatingPair,
    ProfiledLoss,
    dominating_pair,
    dominating_pair_of_tradeoff,
)
from hockeystick.privacy_loss.core.mixtures import two_point_pair
from hockeystick.privacy_loss.core.outcomes import dominating_pair_of_outcomes
from hockeystick.privacy_loss.guarantees import RenyiBoundLoss, gaussian_pair
from hockeystick.tradeoffs import (
    ApproxTradeOff,
    GaussianTradeOff,
    PiecewiseLinearTradeOff,
    Profile,
    TradeOff,
)
from hockeystick.tradeoffs.profiles.profile import Array, epsilon_interval

_CELLS: Final = 2048
_LARGEST_EPSILON: Final = 1e300


@final
@dataclass(frozen=True)
class ProfileLoss(RenyiBoundLoss, ProfiledLoss):
    """A loss with a certified profile of its own, and that of the other direction.

    With delta and delta' the two profiles, the moments are

        e^K(c) = 1 + c (c+1) Int_0^inf (e^(c eps) delta(eps) + e^(-(c+1) eps) delta'(eps)) d eps.

    Both profiles are convex in ``e^eps``, so that on each cell of a grid the chord in ``e^eps`` is
    an upper bound; its integral has a closed form. K is bounded where the profile provably
    reaches 0, that is for a bounded loss.
    """

    profile: Profile
    other: Profile

    @property
    def largest_order(self) -> float:
        """The largest c of the grid; 0 where the loss is not proven to be bounded, or is large."""
        if not self.is_bounded or self.supremum > 1e9:
            return 0.0
        # The exponent on one cell is at most 500.
        return 500.0 * _CELLS / self.supremum if self.supremum > 0.0 else math.inf

    @property
    def attained(self) -> ProfileLoss:
        return self

    @cached_property
    def is_bounded(self) -> bool:
        """Whether the profile provably reaches 0, so that the loss is bounded."""
        largest = self.profile.supremum
        if not largest < _LARGEST_EPSILON:
            return False
        return not self.profile.at(np.array([largest])).upper[0] > 0.0

    @property
    def supremum(self) -> float:
        return self.profile.supremum if self.is_bounded else math.inf

    @property
    def least_supremum(self) -> float:
        """The largest epsilon with a provably positive delta; infinite if delta stays positive."""
        return epsilon_interval(self.profile, 0.0)[0]

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return the estimate, or with a perturbation the lower or upper end, in floats."""
        at = float(epsilon)
        if perturbation:
            at = max(math.nextafter(at, -math.inf * perturbation), 0.0)
        if at > _LARGEST_EPSILON and perturbation < 0:
            return mp.zero
        values = self.profile.at(np.array([min(at, _LARGEST_EPSILON)]))
        return mp.mpf(float((values.estimate, values.upper, values.lower)[perturbation][0]))

    def proven_profile(self) -> Profile:
        return self.profile

    def bound(self, c: float) -> float:
        """Return ``ln(1 + c (c+1) (both integrals))`` by the chords, rounded up."""
        if self.supremum == 0.0 or c == 0.0:
            return 0.0
        own, other = self._tables
        log_total = _log_sum(
            _log_integral(own, c),
            _log_integral(other, -(c + 1.0)),
            # Beyond its table the other profile is bounded by its last value.
            _log(float(other.values[-1])) - (c + 1.0) * other.reach - math.log1p(c),
        )
        log_moment = math.log(c) + math.log1p(c) + log_total
        exponents = (c + 1.0) * max(own.reach, other.reach) + abs(log_moment)
        log_moment += ULP * (4.0 * _CELLS + 16.0 * exponents)
        if log_moment > LARGEST_EXPONENT:
            return log_moment * (1.0 + 2.0 * ULP)
        return math.log1p(math.exp(log_moment)) * (1.0 + 8.0 * ULP)

    def zcdp_line(self) -> ZCDPLine | None:
        return of_ends(-ProfileLoss(self.other, self.profile).supremum, self.supremum)

    def estimate(self, c: float) -> CGFEstimate:
        return self.by_differences(c, 1e-4)

    @cached_property
    def _tables(self) -> tuple[_ProfileTable, _ProfileTable]:
        # The other direction has the weight e^-(c+1)eps, and is bounded by a constant beyond 40.
        reach = min(self.other.supremum, max(40.0, self.supremum)) or self.supremum
        return _ProfileTable.of(self.profile, self.supremum), _ProfileTable.of(self.other, reach)


class _ProfileTable(NamedTuple):
    """Upper ends of a profile at equidistant epsilons from 0 on."""

    values: Array
    reach: float

    @classmethod
    def of(cls, profile: Profile, reach: float) -> _ProfileTable:
        """Return the upper ends, each at an epsilon rounded down."""
        step = reach / _CELLS * (1.0 - 4.0 * ULP)
        return cls(profile.at(step * np.arange(_CELLS + 1, dtype=np.float64)).upper, reach)


def _log_integral(table: _ProfileTable, c: float) -> float:
    """Return ``ln Int e^(c eps) delta d eps`` of the chords through values on a grid.

    On a cell of width h from ``eps`` on it is ``e^(c eps) (delta_0 (m(c) - w) + delta_1 w)`` with
    ``m(c) = (e^(c h) - 1) / c`` and ``w = (m(c+1) - m(c)) / (e^h - 1)``.
    """
    values, step = table.values, table.reach / _CELLS
    with working_digits(60 + max(0, math.ceil(-2.0 * math.log10(step)))):
        h, order = mp.mpf(step), mp.mpf(c)
        mass, next_mass = (mp.expm1(a * h) / a if a else h for a in (order, order + 1))
        rising = (next_mass - mass) / mp.expm1(h)
        first, second = float(mass - rising), float(rising)
    starts = c * (step * np.arange(values.size - 1))
    scale = max(float(starts[-1]), 0.0)
    weights = np.exp(starts - scale)
    total = float(weights @ (first * values[:-1] + second * values[1:]))
    return _log(total) + scale


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _log_sum(*logs: float) -> float:
    """Return ``ln sum e^log``."""
    largest = max(logs)
    if largest == -math.inf:
        return -1e300
    return largest + math.log(math.fsum(math.exp(log - largest) for log in logs))


@dominating_pair.register
def _(mechanism: FDP) -> DominatingPair:
    return dominating_pair_of_tradeoff(mechanism.tradeoff)


@dominating_pair_of_tradeoff.register
def _by_profiles(tradeoff: TradeOff) -> DominatingPair:
    forward = ProfileLoss(tradeoff.forward, tradeoff.backward)
    if forward.supremum == 0.0:
        return DominatingPair(None, None)
    return DominatingPair(forward, ProfileLoss(tradeoff.backward, tradeoff.forward))


@dominating_pair_of_tradeoff.register
def _(tradeoff: ApproxTradeOff) -> DominatingPair:
    return two_point_pair(*tradeoff.guarantee)


@dominating_pair_of_tradeoff.register
def _(tradeoff: PiecewiseLinearTradeOff) -> DominatingPair:
    if tradeoff.outcomes is None:
        return _by_profiles(tradeoff)
    return dominating_pair_of_outcomes(tradeoff.outcomes)


@dominating_pair_of_tradeoff.register
def _(tradeoff: GaussianTradeOff) -> DominatingPair:
    return gaussian_pair(tradeoff.mu)
