"""The loss of the best of a truncated negative binomial number of runs.

``f'(x) = E[K] (gamma / u)^(1+eta)`` with ``u = 1 - (1-gamma) x``, f the generating function of
``tuning``. For any ``h >= 1`` and a run's divergence D'(h) in the other direction, post-processing
it gives ``u'^h <= e^((h-1) D') u^(h-1)``; with ``u >= gamma`` that is theorem 2 of Papernot and
Steinke 2022,

    K(c) <= K_run(c) + ln E[K] + c (1+eta) ((1 - 1/h) D'(h) + ln(1/gamma)/h).

Where the score is drawn at random, the best of one or more runs is any of them: a run's own loss is
attained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

from hockeystick.mechanisms.selection.tuning import RunCount, TruncatedNegativeBinomial
from hockeystick.numerics import ULP, largest_reading, least_reading
from hockeystick.numerics.rounding import as_mpf, float_up
from hockeystick.privacy_loss.core.base import CGFEstimate, PrivacyLoss
from hockeystick.privacy_loss.core.composition import Terms, largest_loss
from hockeystick.privacy_loss.core.terms import cgf_upper, minimising_orders, total
from hockeystick.privacy_loss.selection.run_profile import composed_gaussian
from hockeystick.privacy_loss.selection.tuning_loss import (
    TunedLoss,
    evaluated,
    randomized_response_bound,
    sum_up,
)


@final
@dataclass(frozen=True, slots=True)
class TruncatedTuningLoss(TunedLoss):
    """``K(c) <= K_run(c) + shift c + log_runs``; below ``tangent_order`` its tangent through 0.

    K is convex and 0 at 0, so that it lies below each of its chords. No loss exceeds the largest
    one of a run plus the shift, nor ``opposite_supremum`` in the other direction, so that K is at
    most that of randomized response with the larger of the two.
    """

    terms: Terms
    reverse: Terms
    distribution: TruncatedNegativeBinomial
    opposite_supremum: float
    shift: float
    log_runs: float
    tangent_order: float
    attained_loss: PrivacyLoss | None

    @classmethod
    def of(
        cls, distribution: TruncatedNegativeBinomial, terms: Terms, reverse: Terms
    ) -> TruncatedTuningLoss:
        """Return the loss in the direction of ``terms``; ``reverse`` are those of the other one."""
        shift, log_runs = _epsilon_shift(distribution, reverse), _log_runs(distribution)

        def condition(c: float) -> float:
            k = total(terms, c)
            return c * k.first_derivative - k.value - log_runs

        opposite_supremum = sum_up(largest_loss(reverse), _epsilon_shift(distribution, terms))
        parts = terms, reverse, distribution, opposite_supremum, shift, log_runs
        found = [cls(*parts, c, None) for c in minimising_orders(terms, condition)]
        tangent_order = min(
            found, key=lambda one: one.bound(one.tangent_order) / one.tangent_order
        ).tangent_order
        return cls(*parts, tangent_order, _largest_attained(terms))

    @property
    def count(self) -> RunCount:
        return self.distribution

    @property
    def attained(self) -> PrivacyLoss | None:
        return self.attained_loss

    @property
    def supremum(self) -> float:
        return sum_up(largest_loss(self.terms), self.shift)

    def bound(self, c: float) -> float:
        least = min(
            self._theorem_bound(c),
            randomized_response_bound(self.supremum, self.opposite_supremum, c).value,
        )
        if c >= self.tangent_order:
            return least
        return min(
            least,
            self._theorem_bound(self.tangent_order) / self.tangent_order * c * (1.0 + 8.0 * ULP),
        )

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if c > self.largest_order:
            return CGFEstimate(math.inf, math.inf, 0.0)
        at = max(c, self.tangent_order)
        k = total(self.terms, at)
        value = k.value + self.shift * at + self.log_runs
        direct = CGFEstimate(value, k.first_derivative + self.shift, k.second_derivative)
        if c < self.tangent_order:
            direct = CGFEstimate(value / at * c, value / at, 0.0)
        return min(direct, randomized_response_bound(self.supremum, self.opposite_supremum, c))

    def _theorem_bound(self, c: float) -> float:
        """Return theorem 2's bound, rounded up."""
        parts = cgf_upper(self.terms, c) + self.shift * c + self.log_runs
        return parts * (1.0 + 8.0 * ULP)


def _epsilon_shift(distribution: TruncatedNegativeBinomial, reverse: Terms) -> float:
    """Return the least of ``(1+eta) ((1 - 1/h) D'(h) + ln(1/gamma)/h)`` over h >= 1, rounded up.

    With ``h = 1 + c`` the bracket is ``(K'(c) + ln(1/gamma)) / (1 + c)``; at the ends it is
    ``ln(1/gamma)`` and the largest loss.
    """
    log_gamma = evaluated(lambda m: -m.log(as_mpf(least_reading(distribution.gamma))))

    def condition(c: float) -> float:
        k = total(reverse, c)
        return (1.0 + c) * k.first_derivative - k.value - log_gamma

    inner = (
        (cgf_upper(reverse, c) + log_gamma) / (1.0 + c)
        for c in minimising_orders(reverse, condition)
    )
    least = min(log_gamma, largest_loss(reverse), *inner)
    return float_up(1 + largest_reading(distribution.eta)) * least * (1.0 + 8.0 * ULP)


def _log_runs(distribution: TruncatedNegativeBinomial) -> float:
    """Return ``ln E[K]``, rounded up: it increases with eta and decreases with gamma."""
    eta, gamma = largest_reading(distribution.eta), least_reading(distribution.gamma)

    def value(m: Any) -> Any:
        log_gamma, power = m.log(as_mpf(gamma)), as_mpf(eta)
        share = -m.expm1(power * log_gamma) / power if eta else -log_gamma
        return m.log(as_mpf((1 - gamma) / gamma) / share)

    return evaluated(value)


def _largest_attained(terms: Terms) -> PrivacyLoss | None:
    """Return the largest attained loss of a run at order 1: one release, or all Gaussians."""
    known = [(loss.attained, count) for loss, count in terms]
    found = [loss for loss, _ in known if loss is not None]
    gaussians = composed_gaussian(tuple((loss, n) for loss, n in known if loss is not None), 1.0)
    if gaussians is not None:
        found.append(gaussians)
    return max(found, key=lambda loss: loss.cgf_estimate(1.0).value, default=None)
