"""Closed forms: unsampled Gaussians together, and single runs of anything with a known profile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, final

from hockeystick._solve import increasing_root
from hockeystick.accountants._cost import Cost, Counted, largest_loss
from hockeystick.accountants._interval import Interval, down, up, worse
from hockeystick.accountants.base import DirectedAccountant, Kind
from hockeystick.losses import GaussianLoss, ProfiledLoss, RevealingLoss

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.results import Quantity

    Profile: TypeAlias = Callable[[mpf, int], mpf]

_WORKING_DIGITS: Final = 30
# Digits beyond those asked for, more where epsilon is near 0.
_EXTRA_DIGITS: Final = (15, 60, 400)
_ULP: Final = 2.0**-52


@final
class ClosedForm(DirectedAccountant):
    """The exact privacy profile where one is known, evaluated in 30 digits and rounded outward.

    Gaussians of any number compose to one Gaussian, ``mu^2 = sum of n_i / sigma_i^2`` (Dong, Roth
    and Su 2022, corollary 3.3); a single run has the profile of its mechanism.
    """

    name: ClassVar[str] = "closed-form"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "exact formula for unsampled Gaussians and for single runs"
    has_digits: ClassVar[bool] = True

    def epsilon_of(self, terms: Counted, delta: float) -> Interval:
        """Return epsilon of one direction."""
        if not terms:
            return Interval.point(0.0)
        profile = self._profile(terms)
        from mpmath import mp

        with mp.workdps(_WORKING_DIGITS):
            target = mp.mpf(delta)
            estimate = float(_epsilon_at(lambda e: profile(e, 0), target))
            upper = float(_epsilon_at(lambda e: profile(e, 1), target))
            lower = float(_epsilon_at(lambda e: profile(e, -1), target))
            slack = 2.0**-50
            while profile(mp.mpf(upper), 1) > target:
                upper, slack = up(upper * (1.0 + slack)), 2.0 * slack
            slack = 2.0**-50
            while lower > 0.0 and profile(mp.mpf(lower), -1) < target:
                lower, slack = down(lower * (1.0 - slack)), min(2.0 * slack, 0.5)
        return Interval(min(lower, sys.float_info.max), estimate, upper).ordered()

    def delta_of(self, terms: Counted, epsilon: float) -> Interval:
        """Return delta of one direction."""
        if epsilon > largest_loss(terms):
            return Interval.point(0.0)
        profile = self._profile(terms)
        from mpmath import mp

        with mp.workdps(_WORKING_DIGITS):
            low, middle, high = (float(profile(mp.mpf(epsilon), n)) for n in (-1, 0, 1))
        return Interval(down(low), middle, min(up(high), 1.0)).ordered()

    def digits(self, cost: Cost, quantity: Quantity, value: float, digits: int) -> Interval:
        """Return epsilon or delta to so many digits."""
        from mpmath import mp

        if any(isinstance(loss, RevealingLoss) for loss, _ in cost.removing):
            raise self.refuse("a release without noise", "it has no arbitrary-precision form")
        found = []
        for terms in cost.directions:
            if quantity == "epsilon":
                found.append(self._epsilon_digits(terms, value, digits))
            else:
                found.append(self._delta_digits(terms, value, digits))
        with mp.workdps(digits + 15):
            return worse(found)

    def _delta_digits(self, terms: Counted, epsilon: float, digits: int) -> Interval:
        """Return delta of one direction to so many digits."""
        from mpmath import mp

        from hockeystick._reference.profiles import exact

        if epsilon > largest_loss(terms):
            return Interval.point(mp.zero)
        with mp.workdps(digits + 15):
            middle = self._profile(terms)(exact(epsilon), 0)
            if middle == 0:
                raise self.refuse("the plan", "delta is below any number that mpmath has")
            slack = middle * mp.mpf(10) ** -(digits + 2)
            return Interval(*(min(end, mp.one) for end in (middle - slack, middle, middle + slack)))

    def _epsilon_digits(self, terms: Counted, delta: float, digits: int) -> Interval:
        """Return epsilon of one direction to so many digits, proven by delta on either side."""
        from mpmath import mp

        from hockeystick._reference.profiles import exact

        if not terms:
            return Interval.point(mp.zero)
        profile = self._profile(terms)
        slack = mp.mpf(10) ** -(digits + 2)
        for extra in _EXTRA_DIGITS:
            with mp.workdps(digits + extra):
                target = exact(delta)
                sure = target * mp.mpf(10) ** -(digits + extra - 5)
                if profile(mp.zero, 0) <= target - sure:
                    return Interval.point(mp.zero)
                middle = _epsilon_at(lambda e: profile(e, 0), target)
                low, high = middle * (1 - slack), middle * (1 + slack)
                if profile(high, 0) <= target - sure and target + sure <= profile(low, 0):
                    return Interval(low, middle, high)
        raise self.refuse("the plan", "epsilon is too near 0 for any of its digits")

    def _profile(self, terms: Counted) -> Profile:
        """Return the profile of the terms, a function of epsilon and a nudge, or raise."""
        gaussians = [(loss, n) for loss, n in terms if isinstance(loss, GaussianLoss)]
        if len(gaussians) == len(terms):
            return _gaussian_profile(gaussians)
        loss, count = terms[0]
        if len(terms) == 1 and count == 1 and isinstance(loss, ProfiledLoss):
            return loss.delta
        reason = "only unsampled Gaussians, and what runs once, have closed forms"
        raise self.refuse("the plan", reason)


def single_run_epsilon(terms: Counted, delta: float) -> float:
    """Return a lower bound of epsilon: that of the single run that costs most.

    Releasing less never costs more, so the epsilon of a composition is at least that of any part.
    """
    form = ClosedForm()
    return max((form.epsilon_of(((loss, 1),), delta).lower for loss, _ in terms), default=0.0)


def single_run_delta(terms: Counted, epsilon: float) -> float:
    """Return a lower bound of delta: that of the single run that costs most."""
    form = ClosedForm()
    return max((form.delta_of(((loss, 1),), epsilon).lower for loss, _ in terms), default=0.0)


def _gaussian_profile(terms: list[tuple[GaussianLoss, int]]) -> Profile:
    """Return the profile at ``mu = sqrt(sum n / sigma^2)``."""
    from mpmath import mp

    from hockeystick._reference.profiles import gaussian_delta, reciprocal

    def profile(epsilon: mpf, nudge: int) -> mpf:
        squares = [count * reciprocal(loss.noise_multiplier) ** 2 for loss, count in terms]
        return gaussian_delta(epsilon, mp.sqrt(mp.fsum(squares)) * (1 + nudge * _ULP))

    return profile


def _epsilon_at(profile: Callable[[mpf], mpf], delta: mpf) -> mpf:
    """Return the epsilon >= 0 at which a falling profile reaches delta, to mpmath's precision."""
    from mpmath import mp

    if profile(mp.zero) <= delta:
        return mp.zero
    goal = mp.log(delta)

    def excess(epsilon: mpf) -> mpf:
        value = profile(epsilon)
        return goal - mp.log(value) if value > 0 else mp.mpf(10) ** 6

    with mp.workdps(20):
        start = increasing_root(
            lambda log_e: float(excess(mp.exp(log_e))), 0.0, stride=2.0, tolerance=1e-9
        )
    old = mp.exp(start)
    old_value = excess(old)
    new = old * (1 + mp.mpf(10) ** -8)
    for _ in range(100):
        value = excess(new)
        if value == old_value:
            break
        old, old_value, new = new, value, new - value * (new - old) / (value - old_value)
        if abs(new - old) <= mp.eps * 64 * abs(new):
            break
    return new
