"""Basic composition: the epsilons add up, and so do the deltas."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, final

from hockeystick.accountants.base import Accountant, Kind
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.theorems.guarantees import (
    Guarantees,
    exact_delta,
    exact_epsilon,
    guarantees,
)
from hockeystick.numerics import decimal
from hockeystick.numerics.rounding import float_up
from hockeystick.privacy_loss import Composition


@final
class Basic(Accountant):
    """``(sum n_i eps_i, sum n_i delta_i)``: an upper bound for any (epsilon, delta) guarantees.

    It is one point: at a smaller delta epsilon is infinite, at a smaller epsilon delta is 1. The
    lower end is that of the exact composition. Parameters mean the decimals that they print as.

    References:
        Dwork, Kenthapadi, McSherry, Mironov and Naor 2006, theorem 1.
    """

    name: ClassVar[str] = "basic"
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "sums of epsilons and deltas, for guarantees alone"

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        """Return the sum of the epsilons, where delta covers that of the deltas."""
        epsilons, deltas = _sums(guarantees(self, composition))
        upper = float_up(epsilons) if decimal(delta) >= deltas else math.inf
        return Interval(min(exact_epsilon(composition, delta), upper), upper, upper)

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        """Return the sum of the deltas, where epsilon covers that of the epsilons."""
        epsilons, deltas = _sums(guarantees(self, composition))
        covered = epsilon == math.inf or decimal(epsilon) >= epsilons
        upper = min(float_up(deltas), 1.0) if covered else 1.0
        return Interval(min(exact_delta(composition, epsilon), upper), upper, upper)


def _sums(terms: Guarantees) -> tuple[Fraction, Fraction]:
    """Return the sum of the epsilons and that of the deltas, exactly."""
    epsilons = sum((count * decimal(loss.epsilon) for loss, count in terms), Fraction(0))
    deltas = sum((count * decimal(loss.failure) for loss, count in terms), Fraction(0))
    return epsilons, deltas
