"""The pair of losses of the best of a random number of runs.

Let f be the generating function of the number of runs, ``f(x) = E[x^K]``, and let q and q' be the
probabilities, under the two data sets, that a run's output is at most some output, where ties are
distinguished at random: q and q' rise together from 0 to 1. The best output has densities f'(q) dq
and f'(q') dq', so that with ``alpha = 1 + c`` and ``r = dq/dq'``, where K = 0 adds f(0),

    e^(K(c)) <= f(0) + integral of h r^c dq,   h = f'(q)^(1+c) f'(q')^(-c)

(Papernot and Steinke 2022, lemma 7); the integral of r^c dq is ``W = e^(K_run(c))``.

Lemma. Where h is at most C, and v, a function of q and q' that goes from 0 to 1, has
``dv <= r^c dq`` and ``integral of h dv = 1 - f(0)``, then ``e^(K(c)) <= 1 + C (W - 1)``. For as
C - h >= 0,

    integral of (C - h) r^c dq >= integral of (C - h) dv = C - (1 - f(0)).

By tangents ``r^c dq >= (1+c) x^c dq - c x^(1+c) dq'`` for every x > 0.

*A binomial number* of n trials with probability p. With ``s = 1 - p + p q`` and ``s'`` alike,
``f(q) = s^n``, and with ``g = s^(1+c) s'^(-c)`` it is ``h = n p g^(n-1)``.

Where g is at most G, ``e^(K(c)) <= 1 + C (W - 1)`` with ``C = n p G^(n-1)``: the tangent of r^c dq
at ``x = s / s'`` is ``dv = dg / p``; g goes from 1 - p to 1, ``v = (g - 1 + p) / p`` from 0 to 1,
and the integral of h dv is ``1 - (1-p)^n = 1 - f(0)``, as the lemma asks.

G is by the profile. With ``a = 1 - q`` and ``a' = 1 - q'``, for each epsilon >= 0 and the delta of
the other direction, ``a' <= e^eps a + delta`` and a' <= 1. As ``s = 1 - p a``, g rises with a' and
falls with a: it is largest on that line, up to a' = 1. Along it ln g, as a function of s, has the
derivative ``(1+c)/s - c e^eps / s'``, which is 0 only at a minimum, where the second derivative is
``(1+c) / (c s^2) > 0``. So g is at most the larger of its values at both ends,

    G = max((1 - p delta)^-c, (1 - p (1-delta) e^-eps)^(1+c) (1-p)^-c).

Any epsilon gives a bound; the first falls with it, the second rises. They meet where
``p (1-delta) e^-eps = 1 - ((1-p) / (1 - p delta))^(c/(1+c))``, iterated once from delta = 0.
The largest loss is at most that of a run and n - 1 times ``ln(s / s')``.

And whoever sees all runs sees the best one: ``e^(K(c)) <= E[W^K] = (1 + p (W - 1))^n``, as K tells
nothing.

*A Poisson number.* With ``v = (1+c) q - c q'``, of the tangent at x = 1, ``h = m e^(m (v-1))``, and
``v-1 = c (1-q') - (1+c) (1-q)`` is at most c times the delta of the other direction at
``epsilon = ln(1 + 1/c)``: so h is at most ``C = m e^(c m delta)``, which with W is theorem 6 of
Papernot and Steinke 2022. The factor's lemma sharpens it.

*A truncated negative binomial number.* ``f'(x) = E[K] (gamma / u)^(1+eta)`` with
``u = 1 - (1-gamma) x``. For any ``h >= 1`` and a run's divergence D'(h) in the other direction,
post-processing it gives ``u'^h <= e^((h-1) D') u^(h-1)``; with ``u >= gamma`` that is theorem 2 of
Papernot and Steinke 2022,

    K(c) <= K_run(c) + ln E[K] + c (1+eta) ((1 - 1/h) D'(h) + ln(1/gamma)/h).

Where the score is drawn at random, the best run is any of them: its own loss is attained.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, final

from hockeystick.mechanisms.selection.tuning import (
    Binomial,
    Poisson,
    RandomStopping,
    RunCount,
    TruncatedNegativeBinomial,
)
from hockeystick.numerics import ULP, largest_reading, least_reading
from hockeystick.numerics.multiprecision import mp, working_digits
from hockeystick.numerics.rounding import DIGITS, OUTWARD_128, as_mpf, evaluated_up, float_up
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.base import (
    CGFEstimate,
    ClosedFormProfile,
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.core.composition import (
    Terms,
    attained,
    cgf_upper,
    compose_unsplit,
    largest_loss,
    minimising_orders,
    total,
)
from hockeystick.privacy_loss.core.mixtures import RandomizedResponsePairLoss
from hockeystick.privacy_loss.guarantees import RunsBoundLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.selection.sparse_vector import UnknownLoss
from hockeystick.privacy_loss.trade_off import ProfileLoss

_DIFFERENCE: Final = 1e-3
# Exponents of 2 for the order up to which K is bounded by a chord.
_EXPONENTS: Final = tuple(0.25 * step for step in range(-32, 49))


class TunedLoss(RunsBoundLoss):
    """The best of some runs: ``terms`` are one run's losses, ``reverse`` the other direction's."""

    __slots__ = ()

    reverse: Terms
    distribution: RunCount

    @property
    @abstractmethod
    def tangent_order(self) -> float:
        """The order below which the line from 0 is the least bound, about."""

    @property
    @abstractmethod
    def opposite_supremum(self) -> float:
        """That in the other direction."""

    @abstractmethod
    def _theorem_bound(self, c: float) -> float:
        """Return the bound of the distribution's theorem, rounded up."""

    def seen_bound(self, c: float) -> float:
        """Return an upper bound of K(c) where all runs are seen, inf where it is of no use."""
        return math.inf

    def direct_bound(self, c: float) -> float:
        """Return the least of the bounds at this order itself, rounded up."""
        responses = randomized_response_bound(self.supremum, self.opposite_supremum, c).value
        return min(self._theorem_bound(c), self.seen_bound(c), responses)

    def bound(self, c: float) -> float:
        if c == 0.0:
            return 0.0
        least, at = self.direct_bound(c), self.tangent_order
        if c >= at:
            return least
        return min(least, self._theorem_bound(at) / at * c * (1.0 + 8.0 * ULP))


class FactorLoss(TunedLoss):
    """``K(c) <= ln(1 + C (e^(K_run(c)) - 1))`` by a factor C of each order, as ``tuning`` proves.

    Below ``tangent_order`` K is at most the line from 0 to the bound there.
    """

    __slots__ = ()

    @property
    def tangent_order(self) -> float:
        return _tangent_order(self)

    @property
    def supremum(self) -> float:
        return self.largest(self.terms, self.reverse)

    @property
    def opposite_supremum(self) -> float:
        return self.largest(self.reverse, self.terms)

    @abstractmethod
    def largest(self, terms: Terms, reverse: Terms) -> float:
        """Return the largest loss in the direction of ``terms``, rounded up."""

    @abstractmethod
    def log_factor(self, c: float) -> float:
        """Return an upper bound of ``ln C``."""

    def estimate(self, c: float) -> CGFEstimate:
        inside = (1.0 - 2.0 * _DIFFERENCE) * self.largest_order
        return self.by_differences(min(c, inside), _DIFFERENCE)

    def _theorem_bound(self, c: float) -> float:
        return log_mixed(self.log_factor(c), cgf_upper(self.terms, c))


@lru_cache(maxsize=256)
def _tangent_order(loss: FactorLoss) -> float:
    """Return the order of the least bound per order, among powers of 2."""
    within = (min(float(2.0**exponent), loss.largest_order) for exponent in _EXPONENTS)
    return min((loss.direct_bound(c) / c, c) for c in within)[1]


def evaluated(value: Callable[[Any], Any]) -> float:
    """Return a number >= 0, computed by mpmath, rounded up."""
    with working_digits(DIGITS):
        return evaluated_up(value(mp))


def randomized_response_bound(largest: float, opposite_supremum: float, c: float) -> CGFEstimate:
    """Return an upper bound of K by the suprema of the loss in both directions.

    It is that of randomized response where both are finite; else ``c`` times the supremum.
    """
    line = CGFEstimate(c * largest * (1.0 + 4.0 * ULP), largest, 0.0)
    if max(largest, opposite_supremum) == math.inf:
        return line
    loss = RandomizedResponsePairLoss(max(largest, opposite_supremum))
    value = sum(loss.cgf_bounds(c)) * (1.0 + 4.0 * ULP)
    return min(line, CGFEstimate(value, *loss.cgf_estimate(c)[1:]))


def sum_up(first: float, second: float) -> float:
    """Return a sum of numbers >= 0, rounded up."""
    return (first + second) * (1.0 + 8.0 * ULP)


def log_mixed(log_factor: float, k: float) -> float:
    """Return ``ln(1 + C (e^k - 1))``, rounded up; both arguments are upper bounds."""
    if k == 0.0 or k == math.inf:
        return k
    rest = math.log(-math.expm1(-k))
    x = log_factor + k + rest
    error = 8.0 * ULP * (abs(log_factor) + k + abs(rest) + 1.0)
    value = x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))
    return value * (1.0 + 2.0 * error + 16.0 * ULP)


# The range of mu^2 in which Gaussians are composed.
_LEAST_SQUARE: Final = 1e-100


@lru_cache(maxsize=4096)
def profile_upper(terms: Terms, epsilon: float) -> float:
    """Return a proven upper bound of the composition's delta at an epsilon >= 0.

    Exact for Gaussians and for single runs with a closed form; elsewhere from the best Renyi
    divergence (Canonne, Kamath and Steinke 2020, proposition 12).
    """
    if largest_loss(terms) <= epsilon:
        return 0.0
    exact = _closed_form(terms)
    if exact is not None:
        return min(evaluated(lambda m: exact(m.mpf(epsilon), 1)), 1.0)

    def condition(c: float) -> float:
        return total(terms, c).first_derivative - epsilon - math.log1p(1.0 / c)

    least = min(_log_delta_upper(terms, epsilon, c) for c in minimising_orders(terms, condition))
    return min(math.exp(min(least, 0.0)) * (1.0 + OUTWARD_128), 1.0)


def _log_delta_upper(terms: Terms, epsilon: float, c: float) -> float:
    """Return a proven upper bound of ln delta from the divergence of order 1 + c."""
    mgf = cgf_upper(terms, c)
    if mgf == math.inf:
        return 0.0
    log_factor = log_cks_factor(c)
    return mgf - c * epsilon + log_factor + OUTWARD_128 * (mgf + c * epsilon + abs(log_factor))


def _closed_form(terms: Terms) -> ClosedFormProfile | None:
    """Return the closed-form profile of one loss that dominates all runs; None if there is none."""
    gaussians = composed_gaussian(terms, -1.0)
    if gaussians is not None and all(isinstance(loss, GaussianLoss) for loss, _ in terms):
        return gaussians.delta
    ((loss, count), *more) = terms
    if more or count > 1 or isinstance(loss, ProfileLoss):
        return None
    return loss.closed_form_profile


def composed_gaussian(terms: Terms, side: float) -> GaussianLoss | None:
    """Return the composition of the Gaussians, its noise rounded up (side 1) or down (-1)."""
    found = [(loss, count) for loss, count in terms if isinstance(loss, GaussianLoss)]
    if len(found) == 1 and found[0][1] == 1:
        return found[0][0]
    square = math.fsum(count * loss.mu * loss.mu for loss, count in found)
    if not _LEAST_SQUARE < square < 1.0 / _LEAST_SQUARE:
        return None
    return GaussianLoss((1.0 + side * 16.0 * ULP) / math.sqrt(square))


_HALF: Final = Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True)
class BinomialTuningLoss(FactorLoss):
    """``K(c) <= ln(1 + n p G^(n-1) (e^(K_run(c)) - 1))``, and at most that of all runs seen.

    No loss exceeds n times the largest one of a run, which is the bound where p is large.
    """

    terms: Terms
    reverse: Terms
    distribution: Binomial

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
        trials = self.distribution.trials
        others = (trials - 1) * ratio * (1.0 + 16.0 * ULP * (1.0 + self._log_rest))
        return min(trials * one * (1.0 + 4.0 * ULP), sum_up(one, others))

    def log_factor(self, c: float) -> float:
        log_trials, log_chance = math.log(self.distribution.trials), math.log(self._most)
        growth = (self.distribution.trials - 1) * self._log_g(c)
        size = 1.0 + log_trials - log_chance + growth
        return log_trials + log_chance + growth + 8.0 * ULP * size

    def seen_bound(self, c: float) -> float:
        one = log_mixed(math.log(self._most) * (1.0 - 4.0 * ULP), cgf_upper(self.terms, c))
        return self.distribution.trials * one * (1.0 + 4.0 * ULP)

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
        p = self.distribution.probability
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
        return float_up(largest_reading(self.distribution.probability))

    @property
    def _least(self) -> float:
        return -float_up(-least_reading(self.distribution.probability))

    @property
    def _log_rest(self) -> float:
        """``-ln(1 - p)``, rounded up."""
        rest = 1 - largest_reading(self.distribution.probability)
        near = -math.log1p(-self._most) if rest > _HALF else -math.log(-float_up(-rest))
        return near * (1.0 + 8.0 * ULP)


@final
@dataclass(frozen=True, slots=True)
class PoissonTuningLoss(FactorLoss):
    """``K(c) <= ln(1 + m e^(c m delta(c)) (e^(K_run(c)) - 1))``, delta of the other direction.

    No loss exceeds the largest one of a run plus m times the total variation.
    """

    terms: Terms
    reverse: Terms
    distribution: Poisson

    def largest(self, terms: Terms, reverse: Terms) -> float:
        return sum_up(largest_loss(terms), self.distribution.mean * profile_upper(reverse, 0.0))

    def log_factor(self, c: float) -> float:
        """Return an upper bound of ``ln C = ln m + c m delta(c)``: theorem 6 adds it to K."""
        epsilon, mean = math.log1p(1.0 / c) * (1.0 - 8.0 * ULP), self.distribution.mean
        log_mean, growth = math.log(mean), c * mean * profile_upper(self.reverse, epsilon)
        return log_mean + growth + 8.0 * ULP * (1.0 + abs(log_mean) + growth)


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
    opposite_supremum: float = field()
    shift: float
    log_runs: float
    tangent_order: float = field()
    attained: PrivacyLoss | None = field()

    @classmethod
    def of(
        cls, distribution: TruncatedNegativeBinomial, terms: Terms, reverse: Terms
    ) -> TruncatedTuningLoss:
        """Return the loss in the direction of ``terms``; ``reverse`` are those of the other one."""
        shift, log_runs = _epsilon_shift(distribution, reverse), _log_runs(distribution)

        def condition(c: float) -> float:
            cgf = total(terms, c)
            return c * cgf.first_derivative - cgf.value - log_runs

        opposite_supremum = sum_up(largest_loss(reverse), _epsilon_shift(distribution, terms))
        parts = terms, reverse, distribution, opposite_supremum, shift, log_runs
        found = [cls(*parts, c, None) for c in minimising_orders(terms, condition)]
        least = min(found, key=lambda one: one.bound(one.tangent_order) / one.tangent_order)
        return replace(least, attained=_largest_attained(terms))

    @property
    def supremum(self) -> float:
        return sum_up(largest_loss(self.terms), self.shift)

    def estimate(self, c: float) -> CGFEstimate:
        at = max(c, self.tangent_order)
        cgf = total(self.terms, at)
        value = cgf.value + self.shift * at + self.log_runs
        direct = CGFEstimate(value, cgf.first_derivative + self.shift, cgf.second_derivative)
        if c < self.tangent_order:
            direct = CGFEstimate(value / at * c, value / at, 0.0)
        return min(direct, randomized_response_bound(self.supremum, self.opposite_supremum, c))

    def _theorem_bound(self, c: float) -> float:
        parts = cgf_upper(self.terms, c) + self.shift * c + self.log_runs
        return parts * (1.0 + 8.0 * ULP)


def _epsilon_shift(distribution: TruncatedNegativeBinomial, reverse: Terms) -> float:
    """Return the least of ``(1+eta) ((1 - 1/h) D'(h) + ln(1/gamma)/h)`` over h >= 1, rounded up.

    With ``h = 1 + c`` the bracket is ``(K'(c) + ln(1/gamma)) / (1 + c)``; at the ends it is
    ``ln(1/gamma)`` and the largest loss.
    """
    log_gamma = evaluated(lambda m: -m.log(as_mpf(least_reading(distribution.gamma))))

    def condition(c: float) -> float:
        cgf = total(reverse, c)
        return (1.0 + c) * cgf.first_derivative - cgf.value - log_gamma

    orders = minimising_orders(reverse, condition)
    inner = ((cgf_upper(reverse, c) + log_gamma) / (1.0 + c) for c in orders)
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
    known = attained(terms)
    found = [loss for loss, _ in known]
    gaussians = composed_gaussian(known, 1.0)
    if gaussians is not None:
        found.append(gaussians)
    return max(found, key=lambda loss: loss.cgf_estimate(1.0).value, default=None)


# An order so small that any loss with divergences has a finite one there.
_SMALL_ORDER: Final = 1e-9


@dominating_pair.register
def _(mechanism: RandomStopping) -> DominatingPair:
    removing, adding = pair = compose_unsplit(mechanism.inner)
    if not removing and not adding:
        return DominatingPair(None, None)
    if any(
        isinstance(loss, RandomizedResponsePairLoss) and 0.0 < loss.failure < 1.0
        for loss, _ in removing
    ):
        raise NoAnalysisError(
            "a guarantee that may fail has no Renyi divergences, by which the best of several runs "
            "is bounded; state the divergences of a run (RenyiDP or ZCDP) or what it is made of "
            "(such as Gaussian or DPSGD), or pay for a fixed number k of runs by run ** k"
        )
    if any(total(terms, _SMALL_ORDER).value == math.inf for terms in pair):
        return DominatingPair(UnknownLoss(), UnknownLoss())
    distribution = mechanism.distribution
    return DominatingPair(
        tuned(distribution, removing, adding), tuned(distribution, adding, removing)
    )


@lru_cache(maxsize=256)
def tuned(distribution: RunCount, terms: Terms, reverse: Terms) -> PrivacyLoss:
    """Return the loss of the best run; ``reverse`` are the terms of the other direction."""
    match distribution:
        case TruncatedNegativeBinomial():
            return TruncatedTuningLoss.of(distribution, terms, reverse)
        case Binomial():
            return BinomialTuningLoss(terms, reverse, distribution)
        case Poisson():
            return PoissonTuningLoss(terms, reverse, distribution)
        case _:
            raise NoAnalysisError(
                f"the best of a random number of runs is not analysed for: {distribution}"
            )
