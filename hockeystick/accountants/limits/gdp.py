"""The central limit theorem of Gaussian differential privacy: an approximation, typed as one."""

from __future__ import annotations

import math
from typing import ClassVar, final

from hockeystick.accountants.base import Accountant, Kind
from hockeystick.accountants.closed_forms.closed_form import ClosedForm
from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.interval import Interval
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.mechanisms.base import checked
from hockeystick.privacy_loss import Composition, GaussianLoss, Terms
from hockeystick.results import Approximate


@final
class GaussianLimit(Accountant):
    """Replaces the plan by one Gaussian mechanism with the mu of the central limit theorem.

    ``mu^2 = sum n_i m_i``, where each loss knows its own ``m_i``, ``PrivacyLoss.clt_mu_squared``:
    the variance that its runs add in the limit of ever more runs that each cost ever less.

    - Gaussian noise: ``1/sigma^2``, exact.
    - Poisson sampling: ``mu = p sqrt(T (exp(1/sigma^2) - 1))``.
    - Sampling a fixed size: ``mu = sqrt(2) c sqrt(e^(1/sigma^2) Phi(1.5/sigma) +
      3 Phi(-0.5/sigma) - 2)``, with ``c = p sqrt(T)``.

    ``hockeystick.accountants.central_limit_mu(plan)`` is that mu.

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
        if limit is None:
            return Interval.point(math.inf)
        return ClosedForm().epsilon_of(limit, delta)

    def delta(self, composition: Composition, epsilon: float) -> Interval:
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
        ParameterError: If it is none.
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
    """Return the limiting Gaussian as terms, or None where mu is infinite."""
    mu = limiting_mu(terms)
    if mu == math.inf:
        return None
    return ((GaussianLoss(1.0 / mu), 1),) if mu > 0.0 else ()
