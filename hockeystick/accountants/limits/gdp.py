"""The central limit theorem of Gaussian differential privacy: an approximation, typed as one."""

from __future__ import annotations

import math
from typing import ClassVar, final

from hockeystick.accountants.base import Accountant, Kind
from hockeystick.accountants.closed_forms.closed_form import ClosedForm
from hockeystick.accountants.interval import Interval
from hockeystick.privacy_loss import Composition, GaussianLoss, Terms


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
        """Return the epsilon of the limiting Gaussian."""
        limit = _limit(composition.removing)
        if limit is None:
            return Interval.point(math.inf)
        return ClosedForm().epsilon_of(limit, delta)

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        """Return the delta of the limiting Gaussian."""
        limit = _limit(composition.removing)
        if limit is None:
            return Interval.point(1.0)
        return ClosedForm().delta_of(limit, epsilon)


def limiting_mu(terms: Terms) -> float:
    """Return the mu of the limiting Gaussian of one direction; an approximation.

    Args:
        terms: Losses and how often each of them runs.

    Returns:
        ``sqrt(sum n_i m_i)``: 0 for no runs, inf where a loss has no limit in reach of floats.

    Example:
        >>> from hockeystick.privacy_loss import SampledGaussianLoss
        >>> round(limiting_mu(((SampledGaussianLoss(0.01, 1.0, removing=True), 1000),)), 12)
        0.414521631337
    """
    return math.sqrt(sum(count * loss.clt_mu_squared for loss, count in terms))


def _limit(terms: Terms) -> Terms | None:
    """Return the limiting Gaussian as terms, or None where mu is infinite."""
    mu = limiting_mu(terms)
    if mu == math.inf:
        return None
    return ((GaussianLoss(1.0 / mu), 1),) if mu > 0.0 else ()
