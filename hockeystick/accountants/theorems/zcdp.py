"""Zero-concentrated differential privacy: one number per run, which adds up."""

from __future__ import annotations

import math
import sys
from typing import ClassVar, final

from hockeystick.accountants.base import DirectedAccountant, Kind
from hockeystick.accountants.closed_forms.closed_form import least_delta, least_epsilon
from hockeystick.accountants.interval import Interval
from hockeystick.privacy_loss import PrivacyLoss, Terms, largest_loss
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine
from hockeystick.tradeoffs.profiles.one_order import delta_by_orders, epsilon_by_orders
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiLine

_OUTWARD = 1.0 + 2.0**-50


@final
class ZeroConcentrated(DirectedAccountant):
    """Adds up each run's least known rho, ``D_alpha <= rho alpha``, and converts at the best order.

    - Gaussian noise, sampled or not: ``rho = 1 / (2 sigma^2)``; discrete Gaussian noise:
      ``rho = D^2 / (2 sigma^2)``.
    - Laplace noise: ``rho = eps - 1 + e^-eps``, discrete or not the divergence of order 1.
    - Randomized response of several categories and other losses of few values that are the same in
      both directions: by chords of K, within about 2e-4 of the least.
    - Another bounded loss, and (eps, 0)-DP: ``rho = eps tanh(eps/2)``.
    - Bounded range, such as the exponential mechanism: ``rho = eps^2 / 8``.
    - A (rho, omega)-tCDP guarantee and Renyi divergences of orders up to omega: at these orders
      alone, so that the whole is known up to the least omega.

    Skellam and sinh-normal noise have the line that their moments stay below, up to a last order; a
    plan with a part of which no rho is known is refused.

    Guarantees:
        An upper bound. Each line holds for both orders of a pair, and so does their sum; it is
        converted at its best single order. Two statements prove a delta from the divergence of one
        order, and the less of the two is taken: theorem 3 of Asoodeh et al. by duality, and the
        randomized response of that divergence (``tradeoffs.profiles.one_order`` has both proofs).
        The result is less than ``rho + 2 sqrt(rho ln(1/delta))`` (Bun and Steinke 2016,
        proposition 1.3). The infinity mass of approximate guarantees and of
        releases without noise is split off first. The lower end is the closed form of that part of
        the plan that costs most.

        Sampling gains nothing: at large orders ``D_alpha / alpha`` of the sampled Gaussian goes to
        ``1 / (2 sigma^2)``, whatever the rate. "rdp" reads each order on its own.

    References:
        Bun and Steinke, "Concentrated Differential Privacy", 2016, lemma 1.7 (rho adds up); Bun,
        Dwork, Rothblum and Steinke, "Composable and Versatile Privacy via Truncated CDP", 2018;
        Asoodeh, Liao, Calmon, Kosut and Sankar, "Three Variants of Differential Privacy", 2021,
        theorem 3 (one order's epsilon and delta).
    """

    name: ClassVar[str] = "zcdp"
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "upper bound by one line above all Renyi divergences: rho adds up"

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        """Return epsilon of one direction, the upper end from the best order of the line."""
        if not terms:
            return Interval.point(0.0)
        line = self._line(terms)
        lower = least_epsilon(terms, delta)
        by_line = epsilon_by_orders(line, delta) if line else math.inf
        upper = max(min(by_line, largest_loss(terms)), lower)
        return Interval(lower, upper, upper)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction, the upper end from the best order of the line."""
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        line = self._line(terms)
        lower = least_delta(terms, epsilon)
        by_line = delta_by_orders(line, epsilon) if line else 1.0
        upper = max(by_line, lower)
        return Interval(lower, upper, upper)

    def _line(self, terms: Terms) -> RenyiLine | None:
        """Return the sum of the lines, None where its slope is out of reach; or raise."""
        lines = [(self._line_of(loss), count) for loss, count in terms]
        rho = math.fsum(count * line.rho for line, count in lines) * _OUTWARD
        omega = min(line.omega for line, _ in lines)
        return RenyiLine(rho, omega) if rho <= sys.float_info.max else None

    def _line_of(self, loss: PrivacyLoss) -> ZCDPLine:
        """Return the line of one loss, or raise."""
        line = loss.zcdp_line()
        if line is None:
            reason = (
                f"no rho is known with D_alpha <= rho alpha for the loss of a part of it, a "
                f"{type(loss).__name__}; use accountant='rdp' or 'auto'"
            )
            raise self.refuse("the plan", reason)
        return line
