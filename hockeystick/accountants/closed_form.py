"""Answers in closed form, and lower ends by the largest loss that a plan attains.

Where every run may lose the most that it can, and does so together with probability q, the sum of
the largest losses l is an atom of mass q, and ``delta(eps) >= q (1 - e^(eps - l))``.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias, final

import numpy as np

from hockeystick.accountants.base import DirectedAccountant, Interval, Kind, can_be_infinite, worse
from hockeystick.kernels.shuffled_reports import binomial
from hockeystick.numerics import (
    ULP,
    decimal,
    down,
    largest_reading,
    least_reading,
    log_readings,
    up,
)
from hockeystick.numerics.multiprecision import working_digits
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import OUTWARD_8192, as_mpf
from hockeystick.privacy_loss import (
    AnalyticLoss,
    BoundedRangeLoss,
    CellLoss,
    Composition,
    GaussianLoss,
    ProfileLoss,
    RandomizedResponsePairLoss,
    SampledGaussianLoss,
    SampledLoss,
    Terms,
    largest_loss,
)
from hockeystick.privacy_loss.core.symmetrized import adaptive_upper, chord
from hockeystick.privacy_loss.guarantees import TwoOutcomesLoss
from hockeystick.privacy_loss.selection.exponential import RangeProfile

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.kernels.series import Array
    from hockeystick.results import Quantity


def closed_epsilon_upper(terms: Terms, delta: float) -> float:
    """Return a proven upper bound of epsilon; inf where there is no closed form."""
    dominating = dominating_closed_form(terms)
    return ClosedForm().epsilon_of(dominating, delta).upper if dominating else math.inf


def closed_delta_upper(terms: Terms, epsilon: float) -> float:
    """Return a proven upper bound of delta; inf where there is no closed form."""
    dominating = dominating_closed_form(terms)
    return ClosedForm().delta_of(dominating, epsilon).upper if dominating else math.inf


def dominating_closed_form(terms: Terms) -> Terms | None:
    """Return losses that dominate a plan's and have a closed form, where its own have none."""
    dominating = tuple((loss.dominating, count) for loss, count in terms)
    return dominating if dominating != terms and has_closed_form(dominating) else None


class LargestAtomBound(NamedTuple):
    """A loss that a direction attains, rounded down, and a lower bound of its ``ln q``."""

    loss: float
    log_mass: float

    def delta(self, epsilon: float) -> float:
        """Return a lower bound of delta."""
        if not epsilon < self.loss:
            return 0.0
        log_delta = self.log_mass + math.log(-math.expm1(epsilon - self.loss))
        return math.exp(log_delta * (1.0 + 8.0 * ULP)) * (1.0 - 8.0 * ULP)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound of epsilon."""
        _, log_delta = log_readings(delta)
        log_ratio = log_delta - self.log_mass
        log_ratio += 4.0 * ULP * (abs(log_delta) + abs(self.log_mass))
        if not log_ratio < 0.0:
            return 0.0
        if log_ratio < -0.7:
            log_rest = math.log1p(-math.exp(log_ratio))
        else:
            log_rest = math.log(-math.expm1(log_ratio))
        epsilon = self.loss + log_rest * (1.0 + 8.0 * ULP)
        return max(epsilon - 4.0 * ULP * abs(self.loss), 0.0)


def largest_atom_bound(terms: Terms) -> LargestAtomBound:
    """Return the largest loss that those runs attain whose largest one has mass; 0 for none."""
    loss, log_mass = 0.0, 0.0
    for one, count in terms:
        attained = one.attained
        atoms = attained.atoms() if isinstance(attained, CellLoss) else None
        if atoms is None or not atoms.loss.size or not math.isfinite(atoms.loss[-1]):
            continue
        # The error of a mapped loss is part of its atoms' error.
        error = float(atoms.error[-1])
        own, mass = float(atoms.loss[-1]) - error, float(atoms.log_p[-1]) - error
        if own > 0.0 and mass > -math.inf:
            loss = min(loss + count * own, sys.float_info.max)
            log_mass += count * mass
    rounding = 8.0 * ULP * (1.0 + len(terms))
    return LargestAtomBound(loss * (1.0 - rounding), log_mass * (1.0 + rounding) - rounding)


MOST_ATOMS: Final = 20_000
# Digits that a sum over atoms may lose where epsilon lies next to one of them.
_SPARE_DIGITS: Final = 40
# How far ln epsilon is from a known one at first.
_NEAR: Final = 1e-12
# The largest epsilon that a profile is searched up to.
_LARGEST_EPSILON: Final = 1e15

Function: TypeAlias = Callable[["mpf", int], "mpf"]


class ExactProfile(ABC):
    """delta(epsilon) and its inverse, to mpmath's current precision.

    ``perturbation`` = 1 or -1 moves each parameter by one unit in the last place to the less or the
    more private side, to cover every reading of it.
    """

    @abstractmethod
    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        """Return delta at an ``epsilon >= 0``."""

    @abstractmethod
    def epsilon(self, delta: mpf, perturbation: int, near: mpf | None = None) -> mpf:
        """Return the least ``epsilon >= 0`` with at most this ``delta > 0``, near a known one."""


@dataclass(frozen=True)
class SmoothProfile(ExactProfile):
    """A profile given by a smooth function, and perhaps by a rough one of floats."""

    function: Function
    rough: Callable[[float], float] | None = None

    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        return self.function(epsilon, perturbation)

    def epsilon(self, delta: mpf, perturbation: int, near: mpf | None = None) -> mpf:
        from hockeystick.numerics.multiprecision import mp

        if self.function(mp.zero, perturbation) <= delta:
            return mp.zero

        def excess(log_epsilon: mpf) -> mpf:
            value = self.function(mp.exp(log_epsilon), perturbation)
            return mp.log(delta / value) if value > 0 else mp.inf

        near = near or self.about(float(delta))
        guess, stride = (mp.log(near), _NEAR) if near else (mp.zero, 2.0)
        return mp.exp(increasing_root(excess, guess, stride=stride, tolerance=32 * mp.eps))

    def about(self, delta: float) -> float | None:
        """Return about epsilon, None where no rough profile says."""
        rough = self.rough
        if rough is None or not 0.0 < delta < rough(0.0):
            return None

        def excess(log_x: float) -> float:
            value = rough(math.exp(log_x))
            return math.log(delta / value) if value > 0.0 else math.inf

        return math.exp(increasing_root(excess, 0.0, stride=2.0, tolerance=1e-13, farthest=700.0))


@dataclass(frozen=True)
class BracketedProfile(ExactProfile):
    """A profile known by proven ends at floats; a perturbation reads the lower or the upper one."""

    loss: ProfileLoss | TwoOutcomesLoss | _AdaptiveUpperProfile | RangeProfile | HitsProfile

    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        return self.loss.delta(epsilon, perturbation)

    def epsilon(self, delta: mpf, perturbation: int, near: mpf | None = None) -> mpf:
        from hockeystick.numerics.multiprecision import mp

        if self.delta(mp.zero, perturbation) <= delta:
            return mp.zero
        low, high = 0.0, 1.0
        while self.delta(high, perturbation) > delta:
            if high > _LARGEST_EPSILON:
                return mp.mpf(high) if perturbation < 0 else mp.inf
            low, high = high, 2.0 * high
        while high - low > 2.0 * math.ulp(high):
            middle = 0.5 * (low + high)
            low, high = (
                (middle, high) if self.delta(middle, perturbation) > delta else (low, middle)
            )
        return mp.mpf(low if perturbation < 0 else high)


class _AdaptiveUpperProfile(NamedTuple):
    """Upper ends of a profile of runs that earlier outcomes choose; lower ones are 0."""

    step: float
    upper: Array

    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        """Return the end of delta that a perturbation of 1 or -1 asks for."""
        from hockeystick.numerics.multiprecision import mp

        if perturbation < 0:
            return mp.zero
        place = float(epsilon) / self.step + 0.5 * (self.upper.size - 1)
        value = chord(self.upper, self.step, place - 1e-10 - 1e-14 * place)
        return mp.mpf(value * (1.0 + OUTWARD_8192) + 1e-290) / (2 - perturbation)


@dataclass(frozen=True)
class HitsProfile:
    """Runs of a sampled Gaussian with little noise, by how many of them are hits, from both sides.

    Given its output z and ``t = mu z - mu^2/2``, a run's loss (removing) is ``ln(1 - p + p e^t)``:
    at least ``ln p + t`` in a hit, where t is N(mu^2/2, mu^2), and ``ln(1 - p)`` else, where t is
    N(-mu^2/2, mu^2). As delta rises with the loss under P, for K ~ Bin(n, p) hits and all noise

        delta(eps) >= E delta_G(eps - K ln p - (n - K) ln(1-p); mu sqrt(K)).

    All t are ``mu^2/12`` away from 0 on that side but with probability ``n Phi(-5 mu/12)``; losses
    are above their bound by ``e^(-mu^2/12)`` times the odds of p, or of 1 - p, at most then. So the
    upper end is the same with n of that less epsilon, and that probability more. Adding, none of
    the runs is a hit, and ``-n ln(1-p)`` is the upper end, off by no more.
    """

    loss: SampledGaussianLoss
    runs: int

    @property
    def applies(self) -> bool:
        """Whether both ends are next to each other, and all is in the reach of floats."""
        known = 25.0 < self.loss.mu < 1e6 and 1e-10 <= self.loss.p <= 1.0 - 1e-7
        return known and self.runs <= 10**9

    def delta(self, epsilon: mpf, perturbation: int) -> float:
        """Return about delta, or with a perturbation of 1 or -1 an upper or lower bound of it."""
        from scipy.special import log_ndtr, ndtr

        n, removing, moved = self.runs, self.loss.removing, 1.0 + 4.0 * ULP * perturbation
        p, mu = self.loss.p * moved, self.loss.mu * moved
        odds = p / (1.0 - p)
        # 1 or -1 for the end that the bounds of few exceptions are needed for.
        slack = (1.0 + 1e-9) * n * perturbation * (removing == (perturbation > 0))
        at = float(epsilon) - slack * max(odds, 1.0 / odds) * math.exp(-mu * mu / 12.0)
        first, mass = binomial(n, odds) if removing else (0, np.ones(1))
        k = first + np.arange(mass.size, dtype=np.float64)
        hits, others = -k * math.log(p), -(n - k) * math.log1p(-p)
        x = at + (hits + others if removing else -others)
        m = mu * np.sqrt(np.maximum(k, 1.0))
        a, b, reach = 0.5 * m - x / m, -0.5 * m - x / m, (k > 0.0) * (m + np.abs(x) / m)
        more = np.where(k > 0.0, ndtr(a), x < 0.0)
        less = np.exp(np.minimum(np.where(k > 0.0, x + log_ndtr(b), x), 0.0)) * (more > 0.0)
        off = abs(at) + hits + others + reach * (1.0 + np.abs(b))
        error = np.exp(-0.5 * a * a) * reach + more * mass.size + less * (mass.size + off)
        found = float(mass @ (more - less)) + slack * float(ndtr(-5.0 * mu / 12.0))
        found += perturbation * (64.0 * ULP * float(mass @ error) + 1e-120)
        return min(max(found, 0.0), 1.0)


class _Atoms(NamedTuple):
    """The positive losses, descending, and the probabilities of at least as much under P and Q."""

    digits: int
    losses: Sequence[mpf]
    own: Sequence[mpf]
    other: Sequence[mpf]


class AtomicProfile(ExactProfile):
    """Runs of randomized response: the loss is a sum of ``+-eps_i``, so that it has atoms.

    ``delta(eps) = P(L > eps) - e^eps Q(L > eps)``, a binomial sum, or a product of such. The sums
    of the atoms above each one are worked out once, in digits enough that their difference keeps
    those asked for; between two atoms it is ``own - e^eps other``, its inverse a logarithm.
    """

    def __init__(self, terms: Sequence[tuple[RandomizedResponsePairLoss, int]]) -> None:
        self._terms = tuple(terms)
        self._known: dict[tuple[int, int], _Atoms] = {}

    @property
    def largest(self) -> Fraction:
        """The largest loss, exactly, of parameters that mean the decimals that they print as."""
        sizes = (count * decimal(loss.epsilon) for loss, count in self._terms)
        return sum(sizes, Fraction(0))

    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        atoms = self._atoms(perturbation)
        with working_digits(atoms.digits):
            above = bisect_left(atoms.losses, -epsilon, key=lambda loss: -loss)
            value = _delta_above_atoms(atoms, above, epsilon)
        return +value

    def epsilon(self, delta: mpf, perturbation: int, near: mpf | None = None) -> mpf:
        """Return ``ln((own - delta) / other)`` on the piece where delta is reached."""
        from hockeystick.numerics.multiprecision import mp

        atoms = self._atoms(perturbation)
        with working_digits(atoms.digits):
            if _delta_above_atoms(atoms, len(atoms.losses), mp.zero) <= delta:
                return mp.zero
            # delta is 0 at the largest atom and rises from there to the smallest.
            indices = range(len(atoms.losses))
            last = -1 + bisect_right(
                indices, delta, key=lambda k: _delta_above_atoms(atoms, k, atoms.losses[k])
            )
            value = mp.log((atoms.own[last] - delta) / atoms.other[last])
        return +value

    def _atoms(self, perturbation: int) -> _Atoms:
        from hockeystick.numerics.multiprecision import mp

        least = min(loss.epsilon for loss, _ in self._terms)
        wanted = mp.dps + _SPARE_DIGITS + max(0, math.ceil(-math.log10(least)))
        if (perturbation, wanted) not in self._known:
            with working_digits(wanted):
                self._known[perturbation, wanted] = self._summed(perturbation, wanted)
        return self._known[perturbation, wanted]

    def _summed(self, perturbation: int, digits: int) -> _Atoms:
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.profiles import exact

        atoms = [(mp.zero, mp.one)]
        for term, count in self._terms:
            runs = _binomial(exact(term.epsilon) * (1 + perturbation * ULP), count)
            atoms = [(loss + x, p * q) for loss, p in atoms for x, q in runs]
        kept = sorted((atom for atom in atoms if atom[0] > 0), key=lambda atom: -atom[0])
        own = accumulate(p for _, p in kept)
        other = accumulate(p * mp.exp(-loss) for loss, p in kept)
        return _Atoms(digits, [loss for loss, _ in kept], list(own), list(other))


def gaussian_profile(gaussians: Sequence[tuple[GaussianLoss, int]]) -> SmoothProfile:
    """Return the profile of Gaussians together, at ``mu = sqrt(sum n / sigma^2)``."""
    from hockeystick.numerics.multiprecision import mp
    from hockeystick.precision.profiles import gaussian_delta, reciprocal

    @lru_cache(maxsize=4)
    def mu(_: int) -> mpf:
        squares = (count * reciprocal(loss.noise_multiplier) ** 2 for loss, count in gaussians)
        return mp.sqrt(mp.fsum(squares))

    def profile(epsilon: mpf, perturbation: int) -> mpf:
        return gaussian_delta(epsilon, mu(mp.prec) * (1 + perturbation * ULP))

    return SmoothProfile(profile)


def number_of_atoms(terms: Sequence[tuple[RandomizedResponsePairLoss, int]]) -> int:
    """Return the number of values of a sum of several two-point losses."""
    return math.prod(count + 1 for _, count in terms)


def _delta_above_atoms(atoms: _Atoms, above: int, epsilon: mpf) -> mpf:
    from hockeystick.numerics.multiprecision import mp

    if above == 0:
        return mp.zero
    return max(atoms.own[above - 1] - mp.exp(epsilon) * atoms.other[above - 1], mp.zero)


def _binomial(epsilon: mpf, count: int) -> list[tuple[mpf, mpf]]:
    from hockeystick.numerics.multiprecision import mp

    ratio = mp.exp(-epsilon)
    probability = mp.exp(-count * mp.log1p(ratio))
    found = []
    for minus in range(count + 1):
        found.append(((count - 2 * minus) * epsilon, probability))
        probability = probability * ratio * (count - minus) / (minus + 1)
    return found


_WORKING_DIGITS: Final = 30
# The same at a delta of at least 1/2: 1 - delta has up to 17 digits less.
_DIGITS_NEXT_TO_1: Final = 50
# Digits beyond those asked for, more where epsilon is near 0.
_EXTRA_DIGITS: Final = (15, 60, 400)
# Digits to tell an epsilon from an atom of the loss next to it.
_MOST_CLOSE: Final = 400
# How far below a float's estimate of epsilon a lower bound is proven at once.
_QUICK: Final = 2.0**-34


@final
class ClosedForm(DirectedAccountant):
    """The exact privacy profile where one is known, evaluated in 30 digits and rounded outward.

    Gaussians of any number compose to one Gaussian, ``mu^2 = sum of n_i / sigma_i^2``, and
    (epsilon, delta) guarantees of any number to a sum over atoms; a single run has the profile of
    its mechanism. Of sampled Gaussians with noise below 0.04 it is within two ends (HitsProfile).

    References:
        Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022, corollary 3.3, and Balle
        and Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018, theorem 8
        (Gaussians); Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy",
        2017, theorem 3.3, and Murtagh and Vadhan, "The Complexity of Computing the Optimal
        Composition of Differential Privacy", TCC 2016, theorem 1.5 (guarantees).
    """

    name: ClassVar[str] = "closed-form"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "exact formula for unsampled Gaussians, pure DP and single runs"
    has_digits: ClassVar[bool] = True

    def applies(self, composition: Composition, quantity: Quantity, value: float) -> bool:
        return not composition.analytic or all(
            has_closed_form(terms) or (quantity == "delta" and value >= largest_loss(terms))
            for terms in composition.analytic
        )

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        profile = self._profile(terms)
        from hockeystick.numerics.multiprecision import mp

        lower = self.epsilon_lower(terms, delta)
        with working_digits(_WORKING_DIGITS if delta < 0.5 else _DIGITS_NEXT_TO_1):
            least = as_mpf(least_reading(delta))
            estimate = profile.epsilon(mp.mpf(delta), 0, mp.mpf(lower) if lower > 0.0 else None)
            upper = float(profile.epsilon(least, 1, estimate if estimate > 0.0 else None))
            slack = 0.25 * ULP
            while upper < math.inf and profile.delta(mp.mpf(upper), 1) > least:
                upper, slack = up(upper * (1.0 + slack)), 2.0 * slack
        return Interval(lower, float(estimate), upper).ordered()

    def epsilon_lower(self, terms: Terms, delta: float, slack: float = 0.25 * ULP) -> float:
        """Return the lower end alone; next to a float's estimate where the slack is larger."""
        profile = self._profile(terms)
        from hockeystick.numerics.multiprecision import mp

        near = None
        if slack >= _QUICK and isinstance(profile, SmoothProfile):
            near = profile.about(delta)
        with working_digits(_WORKING_DIGITS if delta < 0.5 else _DIGITS_NEXT_TO_1):
            most = as_mpf(largest_reading(delta))
            if near is None or profile.delta(mp.mpf(near * (1.0 + slack)), -1) >= most:
                lower = float(profile.epsilon(most, -1))
            else:
                lower = near * (1.0 - slack)
            while lower > 0.0 and profile.delta(mp.mpf(lower), -1) < most:
                lower, slack = down(lower * (1.0 - slack)), min(2.0 * slack, 0.5)
        return min(lower, sys.float_info.max)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        profile = self._profile(terms)
        from hockeystick.numerics.multiprecision import mp

        with working_digits(_WORKING_DIGITS):
            low = float(profile.delta(as_mpf(largest_reading(epsilon)), -1))
            middle = float(profile.delta(mp.mpf(epsilon), 0))
            high = float(profile.delta(as_mpf(least_reading(epsilon)), 1))
        return Interval(down(low), middle, min(up(high), 1.0)).ordered()

    def digits(
        self, composition: Composition, quantity: Quantity, value: float, digits: int
    ) -> Interval:
        if can_be_infinite(composition):
            reason = "there is no arbitrary-precision form"
            raise self.refuse("a release that may show everything", reason)
        profiles = [_known_profile(terms) for terms in composition.directions if terms]
        if any(isinstance(profile, BracketedProfile) for profile in profiles):
            reason = "its profile is known to the digits of floats"
            raise self.refuse("the plan", reason)
        read = self._epsilon_digits if quantity == "epsilon" else self._delta_digits
        found = [read(terms, value, digits) for terms in composition.directions]
        with working_digits(digits + 15):
            return worse(found)

    def _delta_digits(self, terms: Terms, epsilon: float, digits: int) -> Interval:
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.profiles import exact

        if epsilon >= largest_loss(terms):
            return Interval.point(mp.zero)
        profile = self._profile(terms)
        if isinstance(profile, AtomicProfile) and profile.largest <= decimal(epsilon):
            return Interval.point(mp.zero)
        with working_digits(digits + _MOST_CLOSE):
            point = exact(epsilon)
        with working_digits(digits + 15):
            middle = profile.delta(point, 0)
            if middle == 0:
                raise self.refuse("the plan", "delta is below any number that mpmath has")
            slack = middle * mp.mpf(10) ** -(digits + 2)
            return Interval(*(min(end, mp.one) for end in (middle - slack, middle, middle + slack)))

    def _epsilon_digits(self, terms: Terms, delta: float, digits: int) -> Interval:
        """Return epsilon of one direction to a number of digits, proven by delta on either side."""
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.profiles import exact

        if not terms:
            return Interval.point(mp.zero)
        profile = self._profile(terms)
        slack = mp.mpf(10) ** -(digits + 2)
        for extra in _EXTRA_DIGITS:
            with working_digits(digits + extra):
                target = exact(delta)
                sure = target * mp.mpf(10) ** -(digits + extra - 5)
                if profile.delta(mp.zero, 0) <= target - sure:
                    return Interval.point(mp.zero)
                middle = profile.epsilon(target, 0)
                low, high = middle * (1 - slack), middle * (1 + slack)
                below, above = profile.delta(high, 0), profile.delta(low, 0)
                if below <= target - sure and target + sure <= above:
                    return Interval(low, middle, high)
        raise self.refuse("the plan", "epsilon is too near 0 for any of its digits")

    def _profile(self, terms: Terms) -> ExactProfile:
        found = _known_profile(terms)
        if found is None:
            reason = (
                "only unsampled Gaussians together, randomized responses together (of at most "
                f"{MOST_ATOMS:,} values), and what runs once have closed forms"
            )
            raise self.refuse("the plan", reason)
        return found


def has_closed_form(terms: Terms) -> bool:
    """Return whether the profile of losses without constants and infinity mass is known."""
    return not terms or _known_profile(terms) is not None


def _known_profile(terms: Terms) -> ExactProfile | None:
    gaussians = [(loss, n) for loss, n in terms if isinstance(loss, GaussianLoss)]
    if len(gaussians) == len(terms):
        return gaussian_profile(gaussians)
    responses = [(loss, n) for loss, n in terms if isinstance(loss, RandomizedResponsePairLoss)]
    if len(responses) == len(terms):
        return _atomic(tuple(responses)) if number_of_atoms(responses) <= MOST_ATOMS else None
    loss, count = terms[0]
    if len(terms) > 1:
        return None
    inner = loss.inner if isinstance(loss, SampledLoss) else loss
    if isinstance(inner, BoundedRangeLoss) and count > 1:
        rate, removing = (loss.rate, loss.removing) if isinstance(loss, SampledLoss) else (1, True)
        selected = RangeProfile.of(inner.epsilon, count, float(rate), removing)
        return None if selected is None else BracketedProfile(selected)
    ends = adaptive_upper(loss.dominating, count) if loss.dominating is not loss else None
    if ends is not None:
        return BracketedProfile(_AdaptiveUpperProfile(ends.step, ends.upper))
    if isinstance(loss, SampledGaussianLoss) and HitsProfile(loss, count).applies:
        return BracketedProfile(HitsProfile(loss, count))
    if count > 1:
        return None
    if isinstance(loss, ProfileLoss | TwoOutcomesLoss):
        return BracketedProfile(loss)
    known = loss.closed_form_profile
    rough = loss.delta_estimate if isinstance(loss, AnalyticLoss) else None
    return None if known is None else SmoothProfile(known, rough)


def provable_parts(terms: Terms) -> list[Terms]:
    """Return parts of a composition whose closed forms are lower bounds of the whole.

    Releasing less never costs more, so that a composition costs at least what any part of it does:
    all its Gaussians, all its runs of randomized response (what costs at least one included), or
    one run of anything else. Where only Renyi divergences are known, the worst release costs at
    least what a Gaussian, or one run of two outcomes, within them costs.
    """
    gaussians, responses, parts = list[Any](), list[Any](), list[Terms]()
    for loss, count in terms:
        for known in (loss.attained, *loss.also_attained):
            if isinstance(known, GaussianLoss):
                gaussians.append((known, count))
            elif isinstance(known, RandomizedResponsePairLoss):
                responses.append((known, count))
            elif known is not None and known.closed_form_profile is not None:
                parts.append(((known, 1),))
        if loss.attained is not loss and loss.closed_form_profile is not None:
            parts.append(((loss, 1),))
    if number_of_atoms(responses) > MOST_ATOMS:
        responses = [(max((loss for loss, _ in responses), key=lambda one: one.epsilon), 1)]
    composed: tuple[Terms, ...] = (tuple(gaussians), tuple(responses))
    return [*parts, *(part for part in composed if part)]


@lru_cache(maxsize=64)
def _atomic(terms: tuple[tuple[RandomizedResponsePairLoss, int], ...]) -> AtomicProfile:
    return AtomicProfile(terms)


def least_epsilon(terms: Terms, delta: float) -> float:
    """Return a lower bound of epsilon: of a part with a closed form, or of the largest losses."""
    parts = (ClosedForm().epsilon_lower(part, delta, _QUICK) for part in provable_parts(terms))
    return max((largest_atom_bound(terms).epsilon(delta), *parts))


def least_delta(terms: Terms, epsilon: float) -> float:
    """Return a lower bound of delta: of a part with a closed form, or of the largest losses."""
    parts = (ClosedForm().delta_of(part, epsilon).lower for part in provable_parts(terms))
    return max((largest_atom_bound(terms).delta(epsilon), *parts))


class BoundAccountant(DirectedAccountant):
    """An accountant whose upper end has a theorem; the lower one is the closed form of a part.

    Losses are finite and without constants, at least one of them.
    """

    kind: ClassVar[Kind] = "bound"

    @abstractmethod
    def epsilon_upper(self, terms: Terms, delta: float) -> float:
        """Return an upper bound of epsilon; what is beyond the largest loss counts as that."""

    @abstractmethod
    def delta_upper(self, terms: Terms, epsilon: float) -> float:
        """Return an upper bound of delta at an epsilon below the largest loss."""

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        upper = min(self.epsilon_upper(terms, delta), largest_loss(terms))
        lower = least_epsilon(terms, delta)
        return Interval(lower, max(upper, lower), max(upper, lower))

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        upper, lower = self.delta_upper(terms, epsilon), least_delta(terms, epsilon)
        upper = min(max(upper, lower, 5e-324), 1.0)
        return Interval(lower, upper, upper)
