"""The losses of two distributions over a few outcomes, their supports not being equal.

Let ``s = P(q = 0)`` and ``t = Q(p = 0)``. The common support has the masses 1 - s and 1 - t; the
pair conditioned on it has a loss l of its own, and

    L = l + ln((1 - s) / (1 - t)),  or infinite with probability s.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Final, final

from hockeystick.numerics import ULP, Ball, FloatAndDecimal
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import as_mpf
from hockeystick.precision.profiles import AtomList
from hockeystick.privacy_loss.core.atomic import FewAtoms
from hockeystick.privacy_loss.core.base import (
    NO_INFINITY_MASS,
    CGFEstimate,
    DominatingPair,
    PrivacyLoss,
)
from hockeystick.tradeoffs.functions.closed_forms import Masses, Outcomes

_DIGITS: Final = 30
# Bits beyond those asked for, at first and at most: next to a loss, delta is a small difference.
_GUARD: Final = 64
_MOST_GUARD: Final = 4096


@final
@dataclass(frozen=True)
class OutcomesLoss(FewAtoms):
    """``ln(p/q)`` with probability p, over the common support.

    ``masses`` are proportional to p and q, by rising ratio, each ratio once. Other readings of the
    numbers that they come from are within the relative distance ``relative_error``.
    """

    masses: Masses
    relative_error: float = 0.0

    def __hash__(self) -> int:
        """Return the hash, which many fractions take a while to tell."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.masses, self.relative_error))

    @property
    def opposite(self) -> OutcomesLoss:
        return OutcomesLoss(tuple((q, p) for p, q in reversed(self.masses)), self.relative_error)

    @property
    def supremum(self) -> float:
        return self._extreme(-1, 1.0)

    @property
    def least_supremum(self) -> float:
        return self._extreme(-1, -1.0)

    @property
    def infimum(self) -> float:
        return self._extreme(0, -1.0)

    def _extreme(self, place: int, side: float) -> float:
        with working_digits(_DIGITS):
            return _rounded(float(_log(self._ratios[place])), self.relative_error, side)

    def exact_atoms(self, perturbation: int = 0) -> AtomList:
        asked = mp.prec, perturbation
        if asked not in self._known:
            own, off = self._sums[0], perturbation * 2 * mp.mpf(self.relative_error)
            self._known[asked] = [
                (_log(ratio) + 2 * off, as_mpf(p / own) * (1 + off))
                for ratio, (p, _) in zip(self._ratios, self.masses, strict=True)
            ]
        return self._known[asked]

    @cached_property
    def _known(self) -> dict[tuple[int, int], AtomList]:
        """The atoms found so far, by precision and perturbation."""
        return {}

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``P(L > epsilon) - e^epsilon Q(L > epsilon)``, of sums known exactly."""
        guard, off = _GUARD, perturbation * 2 * mp.mpf(self.relative_error)
        while True:
            with mp.extraprec(guard):
                odds = mp.exp(epsilon - 2 * off)
                tail = self._tails[bisect_right(self._ratios, odds, key=as_mpf)]
                own, other = as_mpf(tail[0]), odds * as_mpf(tail[1])
                value = max(own - other, mp.zero) * (1 + off)
            if mp.mag(own) - mp.mag(value) < guard // 2 or not own or guard >= _MOST_GUARD:
                return +value
            guard *= 2

    @cached_property
    def _ratios(self) -> list[Fraction]:
        own, other = self._sums
        return [p * other / (q * own) for p, q in self.masses]

    @cached_property
    def _tails(self) -> list[tuple[Fraction, Fraction]]:
        """The probabilities under P and Q of the outcomes from each one on, and of none."""
        tails = []
        for sum_, masses in zip(self._sums, zip(*reversed(self.masses), strict=True), strict=True):
            tails.append([tail / sum_ for tail in accumulate(masses, initial=Fraction(0))][::-1])
        return list(zip(*tails, strict=True))

    @cached_property
    def _sums(self) -> tuple[Fraction, Fraction]:
        first, second = zip(*self.masses, strict=True)
        return sum(first, Fraction(0)), sum(second, Fraction(0))


@final
@dataclass(frozen=True, slots=True)
class PartlyInfiniteLoss(PrivacyLoss):
    """``common + ln ratio``, or infinite with probability s.

    ``ratio`` is ``(1 - s) / (1 - t)``. Accountants split off s and ``ln ratio`` first.
    """

    common: OutcomesLoss | None
    infinite: FloatAndDecimal
    ratio: Fraction
    relative_error: float

    @property
    def infinity_mass(self) -> FloatAndDecimal:
        return self.infinite

    @property
    def finite(self) -> PartlyInfiniteLoss:
        return PartlyInfiniteLoss(self.common, NO_INFINITY_MASS, self.ratio, self.relative_error)

    @property
    def without_constant(self) -> OutcomesLoss | None:
        return self.common

    @property
    def constant(self) -> tuple[float, float]:
        with working_digits(_DIGITS):
            value = float(_log(self.ratio))
        return _rounded(value, self.relative_error, -1.0), _rounded(value, self.relative_error, 1.0)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if self.infinite != NO_INFINITY_MASS:
            return CGFEstimate(math.inf, math.inf, 0.0)
        inner = self.common.cgf_estimate(c) if self.common else CGFEstimate(0.0, 0.0, 0.0)
        shift = self.constant[1]
        return CGFEstimate(
            inner.value + c * shift, inner.first_derivative + shift, inner.second_derivative
        )

    def cgf_bounds(self, c: float) -> Ball:
        if self.infinite != NO_INFINITY_MASS:
            return Ball(math.inf, 0.0)
        inner = self.common.cgf_bounds(c) if self.common else Ball(0.0, 0.0)
        low, high = (c * end for end in self.constant)
        rounding = 8.0 * ULP * (abs(high) + abs(inner.midpoint)) + (high - low)
        return Ball(inner.midpoint + high, inner.radius + rounding)

    @property
    def supremum(self) -> float:
        return self._shifted(self.common.supremum if self.common else 0.0, 1)

    @property
    def least_supremum(self) -> float:
        return self._shifted(self.common.least_supremum if self.common else 0.0, -1)

    def _shifted(self, largest: float, side: int) -> float:
        if self.infinite != NO_INFINITY_MASS:
            return math.inf
        shift = self.constant[side > 0]
        return largest + shift + side * 2.0 * ULP * (abs(largest) + abs(shift))


def dominating_pair_of_outcomes(outcomes: Outcomes) -> DominatingPair:
    """Return the losses of the pairs (Q, P) and (P, Q) of distributions over outcomes."""
    common = [(p, q) for p, q in outcomes.decimal if p > 0 and q > 0]
    masses: list[tuple[Fraction, Fraction]] = []
    for p, q in sorted(common, key=lambda one: one[0] / one[1]):
        if masses and masses[-1][0] * q == p * masses[-1][1]:
            first, second = masses.pop()
            masses.append((p + first, q + second))
        else:
            masses.append((p, q))
    adding = OutcomesLoss(tuple(masses), outcomes.relative_error) if len(masses) > 1 else None
    removing = adding.opposite if adding else None
    return DominatingPair(_partly(removing, outcomes.inverse()), _partly(adding, outcomes))


def _partly(
    common: OutcomesLoss | None, outcomes: Outcomes
) -> OutcomesLoss | PartlyInfiniteLoss | None:
    infinity_mass = FloatAndDecimal(*map(_infinity_mass, (outcomes.binary, outcomes.decimal)))
    other_mass = _infinity_mass(outcomes.inverse().decimal)
    if infinity_mass == NO_INFINITY_MASS and other_mass == 0:
        return common
    if infinity_mass.decimal == 1:
        return PartlyInfiniteLoss(None, infinity_mass, Fraction(1), 0.0)
    ratio = (1 - infinity_mass.decimal) / (1 - other_mass)
    return PartlyInfiniteLoss(common, infinity_mass, ratio, outcomes.relative_error)


def _infinity_mass(masses: Masses) -> Fraction:
    return sum((p for p, q in masses if q == 0), Fraction(0))


def _rounded(value: float, off: float, side: float) -> float:
    """Return a loss rounded to one side, other readings of the masses included."""
    return math.nextafter(value + side * (4.0 * off + 2.0 * ULP * abs(value)), side * math.inf)


def _log(ratio: Fraction) -> mpf:
    return mp.log1p(as_mpf(ratio - 1)) if abs(ratio - 1) < 0.5 else mp.log(as_mpf(ratio))
