"""Closed forms: compositions of Gaussians, of randomized responses, and single known losses."""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, final

from hockeystick.accountants.base import DirectedAccountant, Kind
from hockeystick.accountants.closed_forms.largest_atom import largest_atom_bound
from hockeystick.accountants.closed_forms.profiles import (
    MOST_ATOMS,
    AtomicProfile,
    BracketedProfile,
    ExactProfile,
    SmoothProfile,
    gaussian_profile,
    number_of_atoms,
)
from hockeystick.accountants.infinity import can_be_infinite
from hockeystick.accountants.interval import Interval, worse
from hockeystick.numerics import ULP, decimal, down, largest_reading, least_reading, up
from hockeystick.numerics.rounding import as_mpf
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss import (
    Composition,
    GaussianLoss,
    ProfileLoss,
    RandomizedResponsePairLoss,
    Terms,
    largest_loss,
)

if TYPE_CHECKING:
    from hockeystick.results import Quantity

_WORKING_DIGITS: Final = 30
# The same at a delta of at least 1/2: 1 - delta has up to 17 digits less.
_DIGITS_NEXT_TO_1: Final = 50
# Digits beyond those asked for, more where epsilon is near 0.
_EXTRA_DIGITS: Final = (15, 60, 400)
# Digits to tell an epsilon from an atom of the loss next to it.
_MOST_CLOSE: Final = 400
_REASON: Final = (
    "only unsampled Gaussians together, randomized responses together, and what runs once have "
    "closed forms"
)


@final
class ClosedForm(DirectedAccountant):
    """The exact privacy profile where one is known, evaluated in 30 digits and rounded outward.

    Gaussians of any number compose to one Gaussian, ``mu^2 = sum of n_i / sigma_i^2`` (Dong, Roth
    and Su 2022, corollary 3.3); (epsilon, delta) guarantees of any number to a sum over atoms
    (Kairouz, Oh and Viswanath 2017, theorem 3.3; Murtagh and Vadhan 2016, theorem 1.5); a single
    run has the profile of its mechanism.

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

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        profile = self._profile(terms)
        from hockeystick.numerics.multiprecision import mp

        with working_digits(_WORKING_DIGITS if delta < 0.5 else _DIGITS_NEXT_TO_1):
            least, most = as_mpf(least_reading(delta)), as_mpf(largest_reading(delta))
            estimate = float(profile.epsilon(mp.mpf(delta), 0))
            upper = float(profile.epsilon(least, 1))
            lower = float(profile.epsilon(most, -1))
            slack = 0.25 * ULP
            while upper < math.inf and profile.delta(mp.mpf(upper), 1) > least:
                upper, slack = up(upper * (1.0 + slack)), 2.0 * slack
            slack = 0.25 * ULP
            while lower > 0.0 and profile.delta(mp.mpf(lower), -1) < most:
                lower, slack = down(lower * (1.0 - slack)), min(2.0 * slack, 0.5)
        return Interval(min(lower, sys.float_info.max), estimate, upper).ordered()

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
        if any(
            isinstance(loss, ProfileLoss)
            for loss, _ in (*composition.removing, *composition.adding)
        ):
            reason = "a trade-off function is known to the digits of floats"
            raise self.refuse("the plan", reason)
        found = []
        for terms in composition.directions:
            if quantity == "epsilon":
                found.append(self._epsilon_digits(terms, value, digits))
            else:
                found.append(self._delta_digits(terms, value, digits))
        with working_digits(digits + 15):
            return worse(found)

    def _delta_digits(self, terms: Terms, epsilon: float, digits: int) -> Interval:
        """Return delta of one direction to a number of digits."""
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
                if profile.delta(high, 0) <= target - sure and target + sure <= profile.delta(
                    low, 0
                ):
                    return Interval(low, middle, high)
        raise self.refuse("the plan", "epsilon is too near 0 for any of its digits")

    def _profile(self, terms: Terms) -> ExactProfile:
        """Return the profile of the terms, or raise."""
        gaussians = [(loss, n) for loss, n in terms if isinstance(loss, GaussianLoss)]
        if len(gaussians) == len(terms):
            return gaussian_profile(gaussians)
        responses = [(loss, n) for loss, n in terms if isinstance(loss, RandomizedResponsePairLoss)]
        if len(responses) == len(terms):
            if number_of_atoms(responses) > MOST_ATOMS:
                raise self.refuse("the plan", f"its loss takes more than {MOST_ATOMS:,} values")
            return _atomic(tuple(responses))
        loss, count = terms[0]
        if len(terms) == 1 and count == 1:
            if isinstance(loss, ProfileLoss):
                return BracketedProfile(loss)
            if loss.closed_form_profile is not None:
                return SmoothProfile(loss.closed_form_profile)
        raise self.refuse("the plan", _REASON)


def provable_parts(terms: Terms) -> list[Terms]:
    """Return parts of a composition whose closed forms are lower bounds of the whole.

    Releasing less never costs more, so that a composition costs at least what any part of it does:
    all its Gaussians, all its runs of randomized response (what costs at least one included), or
    one run of anything else. Where only
    Renyi divergences are known, the worst release costs at least what a Gaussian within them costs.
    """
    gaussians: list[tuple[GaussianLoss, int]] = []
    responses: list[tuple[RandomizedResponsePairLoss, int]] = []
    parts: list[Terms] = []
    for loss, count in terms:
        known = loss.attained
        if isinstance(known, GaussianLoss):
            gaussians.append((known, count))
        elif isinstance(known, RandomizedResponsePairLoss):
            responses.append((known, count))
        elif known is not None and known.closed_form_profile is not None:
            parts.append(((known, 1),))
        if isinstance(loss.attained_gaussian, GaussianLoss):
            gaussians.append((loss.attained_gaussian, count))
        if loss.attained_response > 0.0:
            responses.append((RandomizedResponsePairLoss(loss.attained_response), count))
        if known is not loss and loss.closed_form_profile is not None:
            parts.append(((loss, 1),))
    if number_of_atoms(responses) > MOST_ATOMS:
        responses = [(max((loss for loss, _ in responses), key=lambda one: one.epsilon), 1)]
    composed: tuple[Terms, ...] = (tuple(gaussians), tuple(responses))
    return [*parts, *(part for part in composed if part)]


@lru_cache(maxsize=64)
def _atomic(terms: tuple[tuple[RandomizedResponsePairLoss, int], ...]) -> AtomicProfile:
    """Return the profile of runs of randomized response, with its sums computed once."""
    return AtomicProfile(terms)


def least_epsilon(terms: Terms, delta: float) -> float:
    """Return a lower bound of epsilon: of a part with a closed form, or of the largest losses."""
    form = ClosedForm()
    parts = [form.epsilon_of(part, delta).lower for part in provable_parts(terms)]
    return max([largest_atom_bound(terms).epsilon(delta), *parts])


def least_delta(terms: Terms, epsilon: float) -> float:
    """Return a lower bound of delta: of a part with a closed form, or of the largest losses."""
    form = ClosedForm()
    parts = [form.delta_of(part, epsilon).lower for part in provable_parts(terms)]
    return max([largest_atom_bound(terms).delta(epsilon), *parts])
