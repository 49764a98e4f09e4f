"""The loss of the best of a binomial number of runs, of n trials with probability p.

In the terms of ``tuning``, with ``s = 1 - p + p q`` and ``s'`` alike, ``f(q) = s^n``, and with
``g = s^(1+c) s'^(-c)`` it is ``h = n p g^(n-1)``.

Where g is at most G, ``e^(K(c)) <= 1 + C (W - 1)`` with ``C = n p G^(n-1)``: the tangent of r^c dq
at ``x = s / s'`` is ``dv = dg / p``; g goes from 1 - p to 1, ``v = (g - 1 + p) / p`` from 0 to 1,
and the integral of h dv is ``1 - (1-p)^n = 1 - f(0)``, as the lemma there asks.

G is by the profile. Let ``a = 1 - q`` and ``a' = 1 - q'``, the chances of better outputs: for each
epsilon >= 0 and the delta of the other direction ``a' <= e^eps a + delta``, and a' <= 1. As
``s = 1 - p a``, g rises with a' and falls with a, so that it is largest on that line, up to a' = 1.
Along it ln g, as a function of s, has the derivative ``(1+c)/s - c e^eps / s'``, which is 0 only
once, at a minimum: the second derivative is there ``(1+c) / (c s^2) > 0``. So g is at most the
larger of its values at both ends,

    G = max((1 - p delta)^-c, (1 - p (1-delta) e^-eps)^(1+c) (1-p)^-c).

Any epsilon gives a bound; the first falls with it, and the second rises. Both are equal where
``p (1-delta) e^-eps = 1 - ((1-p) / (1 - p delta))^(c/(1+c))``, which is iterated once from
delta = 0. For n p = m and p to 0 that is ``e^eps = 1 + 1/c``, and C the factor of Poisson's number.
The largest loss is at most that of a run and n - 1 times ``ln(s / s')``.

And whoever sees all runs sees the best one: ``e^(K(c)) <= E[W^K] = (1 + p (W - 1))^n``, as K tells
nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick.mechanisms.selection.tuning import Binomial, RunCount
from hockeystick.numerics import ULP, largest_reading, least_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.privacy_loss.core.composition import Terms, largest_loss
from hockeystick.privacy_loss.core.terms import cgf_upper
from hockeystick.privacy_loss.selection.run_profile import profile_upper
from hockeystick.privacy_loss.selection.tuning_loss import FactorLoss, log_mixed, sum_up

_HALF: Final = Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True)
class BinomialTuningLoss(FactorLoss):
    """``K(c) <= ln(1 + n p G^(n-1) (e^(K_run(c)) - 1))``, and at most that of all runs seen.

    No loss exceeds n times the largest one of a run, which is the bound where p is large.
    """

    terms: Terms
    reverse: Terms
    trials: int
    probability: float

    @property
    def count(self) -> RunCount:
        return Binomial(self.trials, self.probability)

    def largest(self, terms: Terms, reverse: Terms) -> float:
        """Return the largest loss in the direction of ``terms``, rounded up.

        ``s / s'`` is at most ``1 + p delta / (1-p)``, delta the total variation; and, as q is at
        most ``e^L q'`` for the largest loss L of a run, at most its value at q = 1.
        """
        one = largest_loss(terms)
        if one == math.inf:
            return math.inf
        change = self._most * profile_upper(reverse, 0.0) * math.exp(self._log_rest)
        moved = self._most * -math.expm1(-one) * (1.0 + 8.0 * ULP)
        ratio = math.log1p(change)
        if moved < 1.0:
            ratio = min(ratio, -math.log1p(-moved))
        others = (self.trials - 1) * ratio * (1.0 + 16.0 * ULP * (1.0 + self._log_rest))
        return min(self.trials * one * (1.0 + 4.0 * ULP), sum_up(one, others))

    def log_factor(self, c: float) -> float:
        log_trials, log_chance = math.log(self.trials), math.log(self._most)
        growth = (self.trials - 1) * self._log_g(c)
        size = 1.0 + log_trials - log_chance + growth
        return log_trials + log_chance + growth + 8.0 * ULP * size

    def seen_bound(self, c: float) -> float:
        one = log_mixed(math.log(self._most) * (1.0 - 4.0 * ULP), cgf_upper(self.terms, c))
        return self.trials * one * (1.0 + 4.0 * ULP)

    def _log_g(self, c: float) -> float:
        """Return an upper bound of ``ln G``, at epsilons that balance its two ends."""
        least, delta = math.inf, 0.0
        for _ in range(2):
            epsilon = self._balanced(c, delta)
            delta = profile_upper(self.reverse, epsilon)
            least = min(least, self._larger_end(c, epsilon, delta))
        return least

    def _balanced(self, c: float, delta: float) -> float:
        """Return an epsilon >= 0 at which both ends are about equal for a delta."""
        p = self.probability
        if delta >= 1.0:
            return 0.0
        part = -math.expm1(c / (1.0 + c) * (math.log1p(-p) - math.log1p(-p * delta)))
        return max(math.log(p) + math.log1p(-delta) - math.log(part), 0.0) if part else 0.0

    def _larger_end(self, c: float, epsilon: float, delta: float) -> float:
        """Return the larger of ln g at both ends of the line, rounded up."""
        part = self._most * delta * (1.0 + 4.0 * ULP)
        first = min(-math.log1p(-part), self._log_rest) if part < 1.0 else self._log_rest
        left = self._least * (1.0 - delta) * math.exp(-epsilon) * (1.0 - 16.0 * ULP)
        fall = -(1.0 + c) * math.log1p(-left)
        rise = c * self._log_rest
        second = rise - fall + 8.0 * ULP * (rise + fall)
        return max(c * first * (1.0 + 8.0 * ULP), second)

    @property
    def _most(self) -> float:
        """The probability, rounded up."""
        return float_up(largest_reading(self.probability))

    @property
    def _least(self) -> float:
        """The probability, rounded down."""
        return -float_up(-least_reading(self.probability))

    @property
    def _log_rest(self) -> float:
        """``-ln(1 - p)``, rounded up."""
        rest = 1 - largest_reading(self.probability)
        near = -math.log1p(-self._most) if rest > _HALF else -math.log(-float_up(-rest))
        return near * (1.0 + 8.0 * ULP)
