"""The moments accountant as published: integer moments of the privacy loss, Markov's inequality."""

from __future__ import annotations

import math
from typing import ClassVar, Final, final

from hockeystick.accountants.base import DirectedAccountant, Kind
from hockeystick.accountants.closed_forms.closed_form import least_delta, least_epsilon
from hockeystick.accountants.interval import Interval
from hockeystick.numerics import log_readings
from hockeystick.privacy_loss import Terms, largest_loss
from hockeystick.privacy_loss.core.terms import total

# The orders of the moments in the authors' code.
MOMENTS: Final = range(1, 33)
_OUTWARD: Final = 2.0**-46


@final
class Moments(DirectedAccountant):
    """The moments accountant of Abadi et al. 2016, to reproduce what papers report.

    The log moments ``alpha(k) = ln E[exp(k L)]``, ``k = 1, ..., 32``, add up over the runs, and

        epsilon = min over k of (alpha(k) + ln(1/delta)) / k,
        delta   = min over k of exp(alpha(k) - k epsilon).

    Guarantees:
        An upper bound, never below that of "rdp", whose orders are real and whose conversion is
        sharper. The moments are proven, rounding included, where the authors' code integrates
        numerically. The lower end is the closed form of that part of the plan that costs most.

        The paper takes the larger of the two directions for each moment before they are added up
        and read; here each direction is read on its own and the larger answer taken, which is
        never more, and the same where one direction is the worse throughout, as removing is for
        the sampled Gaussian.

        Papers that took another grid of orders are reproduced by ``hockeystick.convert`` to
        ``RenyiDP`` at these orders, and ``hockeystick.conversions.theorems.mironov`` at the best.

    Edge cases:
        Where not even the first moment is known to be finite, epsilon is the largest loss.

    References:
        Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang, "Deep Learning with
        Differential Privacy", CCS 2016, theorem 2 and section 3.2; their code keeps 32 moments.
    """

    name: ClassVar[str] = "moments"
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "upper bound by 32 integer moments, as published by Abadi et al. 2016"

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        lower = least_epsilon(terms, delta)
        log_inverse = -log_readings(delta)[0]
        best = min(MOMENTS, key=lambda k: (total(terms, float(k)).value + log_inverse) / k)
        value = (log_moment_upper(terms, best) + log_inverse) / best
        upper = max(min(value * (1.0 + _OUTWARD), largest_loss(terms)), lower)
        return Interval(lower, upper, upper)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        lower = least_delta(terms, epsilon)
        best = min(MOMENTS, key=lambda k: total(terms, float(k)).value - k * epsilon)
        moment = log_moment_upper(terms, best)
        log_delta = moment - best * epsilon + _OUTWARD * (moment + best * epsilon)
        upper = min(max(math.exp(min(log_delta, 0.0)) * (1.0 + _OUTWARD), lower, 5e-324), 1.0)
        return Interval(lower, upper, upper)


def log_moment_upper(terms: Terms, order: int) -> float:
    """Return a proven upper bound of ``alpha(k)``, the composition's log moment.

    Args:
        terms: Losses and how often each of them runs.
        order: k, the order of the moment, at least 1.

    Returns:
        The bound, rounded up; inf where the moment is not known to be finite.

    Example:
        >>> from hockeystick.privacy_loss import GaussianLoss
        >>> round(log_moment_upper(((GaussianLoss(4.0), 100),), 2), 9)
        18.75
    """
    bounds = [(loss.cgf_bounds(float(order)), count) for loss, count in terms]
    return math.fsum(count * (k.midpoint + k.radius) for k, count in bounds) * (1.0 + _OUTWARD)
