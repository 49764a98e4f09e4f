"""The central limit theorem of Gaussian differential privacy: an approximation, typed as one."""

from __future__ import annotations

import math
from typing import ClassVar, final

from hockeystick.accountants._cost import Cost, Counted
from hockeystick.accountants._interval import Interval
from hockeystick.accountants.base import Accountant, Kind
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.losses import GaussianLoss


@final
class GaussianLimit(Accountant):
    """Replaces the plan by one Gaussian mechanism with the mu of the central limit theorem.

    ``mu^2 = sum n_i chi^2_i``, with the chi-square divergence ``exp(K(1)) - 1`` of a run; for
    Poisson-subsampled Gaussians ``mu = q sqrt(T (exp(1/sigma^2) - 1))``. It is neither an upper nor
    a lower bound, and below the truth on nearly all plans in use.

    References:
        Bu, Dong, Long and Su 2020, "Deep Learning with Gaussian Differential Privacy".
    """

    name: ClassVar[str] = "gdp"
    kind: ClassVar[Kind] = "approximation"
    summary: ClassVar[str] = "central limit theorem; no guarantee, usually below the truth"

    def epsilon(self, cost: Cost, delta: float) -> Interval:
        """Return the epsilon of the limiting Gaussian."""
        limit = _limit(cost.removing)
        if limit is None:
            return Interval.point(math.inf)
        return ClosedForm().epsilon_of(limit, delta)

    def delta(self, cost: Cost, epsilon: float) -> Interval:
        """Return the delta of the limiting Gaussian."""
        limit = _limit(cost.removing)
        if limit is None:
            return Interval.point(1.0)
        return ClosedForm().delta_of(limit, epsilon)


def _limit(terms: Counted) -> Counted | None:
    """Return the limiting Gaussian as terms, or None where mu is infinite."""
    squares = []
    for loss, count in terms:
        if isinstance(loss, GaussianLoss):
            squares.append(count * loss.mu * loss.mu)
        else:
            exponent = loss.cumulants(1.0).value
            squares.append(count * math.expm1(exponent) if exponent < 700.0 else math.inf)
    square = math.fsum(squares)
    if square == math.inf:
        return None
    return ((GaussianLoss(1.0 / math.sqrt(square)), 1),) if square > 0.0 else ()
