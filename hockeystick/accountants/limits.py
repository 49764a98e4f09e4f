"""Accountants by limit theorems: Berry-Esseen bounds, Edgeworth and the Gaussian limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, final

import numpy as np

from hockeystick.accountants.base import (
    Accountant,
    DirectedAccountant,
    Interval,
    Kind,
    composition_of,
)
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.mechanisms.base import checked
from hockeystick.numerics import Ball, down, up
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import OUTWARD_128
from hockeystick.privacy_loss import (
    Composition,
    GaussianLoss,
    NoAnalysisError,
    PrivacyLoss,
    Terms,
    expanded,
    largest_loss,
)
from hockeystick.privacy_loss.bounds.moments import (
    Cumulants,
    FourCumulants,
    LawBounds,
    MomentBounds,
)
from hockeystick.results import Approximate

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array


# Shevtsova's constant for summands that need not be alike.
_CONSTANT: Final = 0.56
# Relative round-off of a normal tail, at 0; it grows with the square of the argument.
_TAIL: Final = 2.0**-44
# A bound of underflow.
_TINY: Final = 1e-300
# The largest epsilon searched, in standard deviations above the mean.
_FARTHEST_DEVIATIONS: Final = 40.0
# Beyond this epsilon exp(epsilon) is infinite.
_LARGEST_EXPONENT: Final = 700.0


@final
class BerryEsseen(DirectedAccountant):
    """Bounds delta by the distance of the total loss's distribution from a normal one.

    Let m and s^2 be the mean and variance of the total loss L under P, and

        gamma = 0.56 sum n_i E|L_i - E L_i|^3 / s^3;

    then ``|P_P[L <= t] - Phi((t - m)/s)| <= gamma`` for all t (Berry and Esseen; the constant is
    Shevtsova's, for independent summands that need not be alike). Since

        delta(eps) = E_P[(1 - e^(eps-L))_+] = Int_0^inf e^-w P_P[L > eps + w] dw,

    delta is within gamma of ``D(eps) = E[(1 - e^(eps-N))_+]`` with N ~ N(m, s^2), and a little
    closer with the tails kept between 0 and 1. It is also, with the like m', s', gamma' under Q,

        P_P[L > eps] - e^eps P_Q[L > eps], the largest of all P_P[L > t] - e^eps P_Q[L > t],

    so that it is between the largest ``A(t) - gamma - e^eps (B(t) + gamma')`` and
    ``A(eps) + gamma - e^eps (B(eps) - gamma')`` with the normal tails A under P and B under Q. The
    better end of the two is taken on either side.

    A symmetric loss has m' = -m, s' = s and gamma' = gamma, and the second pair of bounds has
    ``sup_t A(t) - e^eps B(t)``, the profile of G_mu at ``mu = 2m/s``, as its middle: this is
    theorem 3.4 of the source, ``G_mu(a+gamma) - gamma <= f(a) <= G_mu(a-gamma) + gamma``, read as
    ``|delta(eps) - delta_mu(eps)| <= gamma (1 + e^eps)``. The source requires gamma < 1/2 and a in
    [gamma, 1-gamma]; neither is needed here, and the answer is never wider.

    Guarantees:
        ``lower <= truth <= upper``, rounding included, in both directions and for unequal losses;
        the moments are proven enclosures. Where only a dominating loss is known, the lower end is
        that of attained losses. The upper end of epsilon is inf, or the largest loss, at any delta
        below gamma, which falls like one over the root of the number of runs.

    Edge cases:
        No runs cost 0. Losses that are Gaussian have gamma = 0: each is the sum of any number of
        smaller ones, and the third moments of these vanish. Losses with no bounds are refused.

    References:
        Dong, Roth and Su 2022, "Gaussian differential privacy", theorem 3.4; Shevtsova 2010, "An
        improvement of convergence rate estimates in the Lyapunov theorem".
    """

    name: ClassVar[str] = "berry-esseen"
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "central limit theorem with its proven error; wide below gamma"

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        terms = expanded(terms)
        pair = self._pair(terms)
        farthest = max(pair.under_p.mean + _FARTHEST_DEVIATIONS * pair.under_p.deviation, 1.0)
        upper = min(_first_below(pair.upper, delta, farthest), largest_loss(terms))
        least = _attained(terms, pair)
        lower = min(_last_above(least.lower, delta, farthest), upper) if least else 0.0
        return Interval(lower, _crossing(pair.under_p.profile, delta, farthest), upper).ordered()

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        terms = expanded(terms)
        pair = self._pair(terms)
        middle, least = pair.under_p.profile(epsilon), _attained(terms, pair)
        lower = least.lower(epsilon) if least else 0.0
        return Interval(lower, middle, pair.upper(epsilon)).ordered()

    def _pair(self, terms: Terms) -> NormalPair:
        try:
            return normals_of(terms)
        except NoAnalysisError as error:
            raise self.refuse("the plan", str(error)) from None


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution function within ``distance`` of that of a loss, everywhere.

    ``gamma`` is the theorem's part of it; the rest is that mean and deviation are enclosed only.
    """

    mean: float
    deviation: float
    gamma: float
    distance: float

    def tail(self, t: float) -> Ball:
        """Return the chance to exceed t, with its round-off."""
        from scipy.special import ndtr

        z = (self.mean - t) / self.deviation
        value = float(ndtr(z))
        return Ball(value, _TAIL * (1.0 + min(z, 0.0) ** 2) * value + _TINY)

    def profile(self, epsilon: float) -> float:
        """Return ``D(eps) = E[(1 - e^(eps-N))_+]``."""
        return self.expected(epsilon).midpoint

    def expected(self, epsilon: float) -> Ball:
        """Return D with its round-off: ``Phi(z) - phi(z) R(s - z)``, R Mills' ratio.

        Both terms carry the relative error of a tail, and the second is the smaller.
        """
        from scipy.special import erfcx, ndtr

        s = self.deviation
        z = (self.mean - epsilon) / s
        first, error = self.tail(epsilon)
        if z <= s:
            second = 0.5 * math.exp(-0.5 * z * z) * float(erfcx((s - z) / math.sqrt(2.0)))
        else:
            second = math.exp(s * (0.5 * s - z)) * float(ndtr(z - s))
        return Ball(max(first - second, 0.0), 4.0 * error)


@dataclass(frozen=True, slots=True)
class NormalPair:
    """The normals next to a total loss under P and under Q."""

    under_p: Normal
    under_q: Normal

    @property
    def mu(self) -> float:
        """The distance of the means in deviations; of a symmetric loss, theorem 3.4's mu."""
        spread = math.sqrt(self.under_p.deviation * self.under_q.deviation)
        return (self.under_p.mean - self.under_q.mean) / spread

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of delta."""
        return max(min(self._upper_by_p(epsilon), self._upper_by_both(epsilon), 1.0), 0.0)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of delta."""
        return min(max(self._lower_by_p(epsilon), self._lower_by_both(epsilon), 0.0), 1.0)

    def _upper_by_p(self, epsilon: float) -> float:
        """Return the integral of the tails, bounded by 1 up to a threshold; any one is valid."""
        from scipy.special import ndtri

        p = self.under_p
        if not p.distance < 1.0:
            return 1.0
        threshold = max(p.mean + p.deviation * float(ndtri(p.distance)) - epsilon, 0.0)
        value, error = p.expected(epsilon + threshold)
        # D falls by at most as much as epsilon + full is rounded up.
        error += OUTWARD_128 * (epsilon + threshold) if threshold > 0.0 else 0.0
        rest = math.exp(-threshold) * (value + error + p.distance)
        return (rest - math.expm1(-threshold)) * (1.0 + OUTWARD_128)

    def _lower_by_p(self, epsilon: float) -> float:
        """Return the integral of the tails, bounded by 0 from a threshold on; any one is valid."""
        from scipy.special import ndtri

        p = self.under_p
        if not p.distance < 1.0:
            return 0.0
        threshold = max(p.mean - p.deviation * float(ndtri(p.distance)) - epsilon, 0.0)
        value, error = p.expected(epsilon)
        rest, rest_error = p.expected(epsilon + threshold)
        rest_error += OUTWARD_128 * (epsilon + threshold)
        share = -math.expm1(-threshold) * p.distance + math.exp(-threshold) * (rest + rest_error)
        return value - error - share * (1.0 + OUTWARD_128) - OUTWARD_128 * value

    def _upper_by_both(self, epsilon: float) -> float:
        """Return the difference of the tails at epsilon, both moved to the upper side."""
        if epsilon > _LARGEST_EXPONENT:
            return 1.0
        first, second = self.under_p.tail(epsilon), self.under_q.tail(epsilon)
        more = min(first.midpoint + first.radius + self.under_p.distance, 1.0)
        less = math.exp(epsilon) * max(second.midpoint - second.radius - self.under_q.distance, 0.0)
        return more - less + OUTWARD_128 * (more + less)

    def _lower_by_both(self, epsilon: float) -> float:
        """Return the difference of the tails at the best threshold, moved to the lower side."""
        p, q = self.under_p, self.under_q
        if epsilon > _LARGEST_EXPONENT or not p.mean > q.mean:
            return 0.0
        threshold = epsilon * p.deviation / (p.mean - q.mean) * q.deviation + 0.5 * (
            p.mean + q.mean
        )
        first, second = p.tail(threshold), q.tail(threshold)
        more = first.midpoint - first.radius - p.distance
        less = math.exp(epsilon) * (second.midpoint + second.radius + q.distance)
        return more - less - OUTWARD_128 * (abs(more) + less)


@lru_cache(maxsize=256)
def _moment_bounds(loss: PrivacyLoss) -> MomentBounds:
    found = loss.moment_bounds()
    if found is None:
        kind = type(loss).__name__
        raise NoAnalysisError(
            f"no bounds of the moments of a {kind} are known here, or in reach of floats"
        )
    return found


def normals_of(terms: Terms) -> NormalPair:
    """Return the normals next to the total of one direction's losses, or raise NoAnalysisError."""
    bounds = [(_moment_bounds(loss), count) for loss, count in terms]
    return NormalPair(
        _normal([(one.under_p, count) for one, count in bounds]),
        _normal([(one.under_q, count) for one, count in bounds]),
    )


def _attained(terms: Terms, pair: NormalPair) -> NormalPair | None:
    """Return the normals next to losses that some data reach: the pair where all are exact."""
    if all(loss.attained is loss for loss, _ in terms):
        return pair
    known = tuple((loss.attained, count) for loss, count in terms)
    try:
        return normals_of(tuple((loss, count) for loss, count in known if loss is not None))
    except NoAnalysisError:
        return None


def _normal(laws: list[tuple[LawBounds, int]]) -> Normal:
    """Return the normal with the middle of the enclosures of mean and variance.

    ``|Phi((t-m)/s) - Phi((t-m')/s')| <= 0.39895 |m-m'| / s + 0.24198 |s-s'| / s`` for s <= s'.
    """
    low, high = (math.fsum(n * law[side] for law, n in laws) for side in (0, 1))
    least, most = (math.fsum(n * law[side] for law, n in laws) for side in (2, 3))
    third = math.fsum(n * law.third_upper for law, n in laws)
    mean, deviation = 0.5 * (low + high), math.sqrt(0.5 * (least + most))
    shortest = math.sqrt(least) * (1.0 - OUTWARD_128)
    if not (0.0 < shortest < math.inf and math.isfinite(mean) and math.isfinite(deviation)):
        return Normal(0.0, 1.0, math.inf, math.inf)
    gamma = _CONSTANT * (third / shortest / shortest / shortest) * (1.0 + OUTWARD_128)
    mean_error = 0.39895 * (0.5 * (high - low) + OUTWARD_128 * abs(mean))
    deviation_error = 0.24198 * (math.sqrt(most) - shortest + OUTWARD_128 * deviation)
    distance = gamma + (mean_error + deviation_error) / shortest * (1.0 + OUTWARD_128)
    return Normal(mean, deviation, gamma, distance)


def _first_below(bound: Callable[[float], float], delta: float, farthest: float) -> float:
    """Return an epsilon at which an upper bound of delta is proven to be small enough."""
    if not bound(farthest) <= delta:
        return math.inf
    found, slack = _crossing(bound, delta, farthest), 2.0**-50
    while bound(found) > delta:
        found, slack = up(found * (1.0 + slack)), 2.0 * slack
    return found


def _last_above(bound: Callable[[float], float], delta: float, farthest: float) -> float:
    """Return an epsilon at which a lower bound of delta is proven to be too large, or 0."""
    found, slack = _crossing(bound, delta, farthest), 2.0**-50
    while found > 0.0 and bound(found) <= delta:
        found, slack = down(found * (1.0 - slack)), min(2.0 * slack, 0.5)
    return found


def _crossing(profile: Callable[[float], float], delta: float, farthest: float) -> float:
    """Return an approximate root of ``profile(epsilon) = delta``, between 0 and the farthest."""
    if profile(0.0) <= delta:
        return 0.0

    def excess(epsilon: float) -> float:
        value = profile(min(epsilon, farthest))
        return math.log(delta) - math.log(value) if value > 0.0 else math.inf

    return min(
        increasing_root(excess, 0.0, stride=0.01 * farthest, tolerance=1e-15 * farthest), farthest
    )


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
        expansion may fall below 0 or rise again: delta(eps) is the largest value, at least 0 and at
        most 1, from eps on, and epsilon(delta) the last point at which it exceeds delta, or 0.

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
        return Interval.point(self._expansion(terms).epsilon(delta) if terms else 0.0)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        return Interval.point(self._expansion(terms).delta(epsilon) if terms else 0.0)

    def _expansion(self, terms: Terms) -> Expansion:
        runs = []
        for loss, count in expanded(terms):
            found = loss.cumulants()
            if found is None:
                kind = type(loss).__name__
                reason = f"the cumulants of a {kind} are not known here, or out of reach of floats"
                raise self.refuse("the plan", reason)
            runs.append((found, count))
        total = _total(runs)
        if not all(math.isfinite(value) for law in total for value in law):
            raise self.refuse("the plan", "its losses are too large for floats")
        if not min(law.variance for law in total) > 0.0:
            raise self.refuse("the plan", "its losses do not vary")
        return Expansion(total)


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
        return min(max(float(self.value(points).max()), 0.0), 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the last point at which the expansion exceeds delta; 0 if there is none."""
        above = (self.value(self.grid) > delta).nonzero()[0]
        if len(above) == 0:
            return 0.0
        low, high = (
            float(self.grid[above[-1]]),
            float(self.grid[above[-1] + 1 :].min(initial=math.inf)),
        )
        if high == math.inf:
            return low
        return increasing_root(
            lambda e: delta - float(self.value(np.array([min(e, high)]))[0]),
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
    return Cumulants(
        *(
            FourCumulants(*(sum(n * one[side][order] for one, n in runs) for order in range(4)))
            for side in range(2)
        )
    )


@final
class GaussianLimit(Accountant):
    """Replaces the plan by one Gaussian mechanism with the mu of the central limit theorem.

    ``mu^2 = sum n_i m_i``, where each loss knows its own ``m_i``, ``PrivacyLoss.clt_mu_squared``:
    the variance that its runs add in the limit of ever more runs that each cost ever less.

    - Gaussian noise: ``1/sigma^2``, exact.
    - Poisson sampling: ``mu = p sqrt(T (exp(1/sigma^2) - 1))``.
    - Sampling a fixed size: ``mu = sqrt(2) c sqrt(e^(1/sigma^2) Phi(1.5/sigma) +
      3 Phi(-0.5/sigma) - 2)``, with ``c = p sqrt(T)``.

    Guarantees:
        None. It is neither an upper nor a lower bound: below the truth on nearly all plans of
        Poisson sampling in use, above or below it for a fixed size.

    References:
        Bu, Dong, Long and Su 2020, "Deep learning with Gaussian differential privacy"; Dong, Roth
        and Su 2022, corollary 5.4.
    """

    name: ClassVar[str] = "gdp"
    kind: ClassVar[Kind] = "approximation"
    summary: ClassVar[str] = "central limit theorem; no guarantee, on either side of the truth"

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        limit = _limit(composition.removing)
        return Interval.point(math.inf) if limit is None else ClosedForm().epsilon_of(limit, delta)

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        limit = _limit(composition.removing)
        return Interval.point(1.0) if limit is None else ClosedForm().delta_of(limit, epsilon)


def limiting_mu(terms: Terms) -> float:
    """Return ``sqrt(sum n_i m_i)``, about the mu of one direction; inf where there is no limit."""
    return math.sqrt(sum(count * loss.clt_mu_squared for loss, count in terms))


def central_limit_mu(plan: Mechanism) -> Approximate:
    """Return the mu that the central limit theorem gives a plan: accountant "gdp" in one number.

    ``mu = sqrt(sum n_i m_i)``, as in ``GaussianLimit``; with ``DPSGD(rate=p, steps=T)`` and noise
    sigma, ``p sqrt(T (exp(1/sigma^2) - 1))``. Of parts on separate data it is the largest.

    Guarantees:
        None, on either side of the truth: the plan is not mu-GDP. What is proven is
        ``hs.convert(plan, hs.GDP)`` for all error rates, and ``gaussian_summary(plan)`` for those
        that matter.

    Edge cases:
        0 for a plan that releases nothing; inf where a loss has no limit in reach of floats.

    Args:
        plan: A mechanism or plan.

    Raises:
        UnsupportedError: If no privacy loss is known for a part of it.

    References:
        Bu, Dong, Long and Su 2020, "Deep learning with Gaussian differential privacy".

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(rate=0.01, noise_multiplier=1, steps=1000)
        >>> print(hs.accountants.central_limit_mu(plan))
        mu ~ 0.414522 (approximation, no guarantee; gdp, add-remove)
    """
    known = checked("plan", plan)
    branches = composition_of(known, GaussianLimit.name).branches
    return Approximate(
        max(limiting_mu(one.removing) for one in branches),
        quantity="mu",
        accountant=GaussianLimit.name,
        adjacency=known.adjacency,
        assumptions=assumptions_of(known),
    )


def _limit(terms: Terms) -> Terms | None:
    mu = limiting_mu(terms)
    if mu == math.inf:
        return None
    return ((GaussianLoss(1.0 / mu), 1),) if mu > 0.0 else ()
