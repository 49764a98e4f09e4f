"""The classical theorems: basic and advanced composition, and zero-concentrated privacy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias, final

from hockeystick.accountants.base import Accountant, Interval, Kind
from hockeystick.accountants.closed_form import BoundAccountant, ClosedForm
from hockeystick.errors import UnsupportedError
from hockeystick.numerics import decimal, log_readings
from hockeystick.numerics.rounding import OUTWARD_8, OUTWARD_8192, float_up
from hockeystick.privacy_loss import Composition, RandomizedResponsePairLoss, Terms
from hockeystick.tradeoffs.profiles.one_order import delta_by_orders, epsilon_by_orders
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiLine

Guarantees: TypeAlias = list[tuple[RandomizedResponsePairLoss, int]]

_REASON: Final = (
    "it composes (epsilon, delta) guarantees only; state one for each part (PureDP, ApproxDP), or "
    "use accountant='auto'"
)


def guarantees(accountant: Accountant, composition: Composition) -> Guarantees:
    """Return the guarantees with their counts, or raise where a part is anything else."""
    terms = composition.removing
    found = [(loss, count) for loss, count in terms if isinstance(loss, RandomizedResponsePairLoss)]
    if len(found) < len(terms) or composition.adding != terms:
        raise accountant.refuse("the plan", _REASON)
    return found


def _lower_end(read: Callable[[Composition, float], Interval], of: Composition, at: float) -> float:
    """Return that of the exact composition, 0 where it takes too long."""
    with suppress(UnsupportedError):
        return read(of, at).lower
    return 0.0


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
        epsilons, deltas = _sums(guarantees(self, composition))
        upper = float_up(epsilons) if decimal(delta) >= deltas else math.inf
        return Interval(
            min(_lower_end(ClosedForm().epsilon, composition, delta), upper), upper, upper
        )

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        epsilons, deltas = _sums(guarantees(self, composition))
        covered = epsilon == math.inf or decimal(epsilon) >= epsilons
        upper = min(float_up(deltas), 1.0) if covered else 1.0
        return Interval(
            min(_lower_end(ClosedForm().delta, composition, epsilon), upper), upper, upper
        )


def _sums(terms: Guarantees) -> tuple[Fraction, Fraction]:
    epsilons = sum((count * decimal(loss.epsilon) for loss, count in terms), Fraction(0))
    deltas = sum((count * decimal(loss.failure) for loss, count in terms), Fraction(0))
    return epsilons, deltas


# Beyond these, sums of squares of epsilons underflow or overflow.
_LEAST_PROXY, _LARGEST_PROXY = 1e-290, 1e290


@final
class Advanced(BoundAccountant):
    """The closed form of Kairouz, Oh and Viswanath, which is never above the earlier ones.

    With ``B = sum n eps (e^eps - 1) / (e^eps + 1)`` and ``V = sum n eps^2``, (eps_i, delta_i)
    guarantees compose to ``1 - (1 - d) prod (1 - delta_i)^n`` at

        epsilon = min( sum n eps,  B + sqrt(2 V ln(1/d)),  B + sqrt(2 V ln(e + sqrt(V)/d)) ).

    Guarantees:
        An upper bound. The privacy loss of randomized response, the worst case, has the mean B and
        stays within ``+-eps``, so that Hoeffding bounds its tail by ``exp(-t^2 / 2V)`` beyond
        ``B + t``; integrating the tail against ``e^-x`` gives the third form. The mean of Dwork,
        Rothblum and Vadhan, ``sum n eps (e^eps - 1)``, is larger, so that theirs is never below
        the second. The lower end is that of the exact composition.

    References:
        Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2017,
        theorems 3.4 and 3.5; Dwork, Rothblum and Vadhan 2010, theorem III.3.
    """

    name: ClassVar[str] = "advanced"
    summary: ClassVar[str] = "Kairouz-Oh-Viswanath closed form, for guarantees alone"

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        guarantees(self, composition)
        return super().epsilon(composition, delta)

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        guarantees(self, composition)
        return super().delta(composition, epsilon)

    def epsilon_upper(self, terms: Terms, delta: float) -> float:
        mean, variance_proxy = _moments(terms)
        if not _LEAST_PROXY < variance_proxy < _LARGEST_PROXY:
            return math.inf
        log_delta, half = log_readings(delta)[0], 0.5 * math.log(variance_proxy)
        log_inverse = min(-log_delta, _log_sum(1.0, half - log_delta))
        return (mean + math.sqrt(2.0 * variance_proxy * log_inverse)) * (1.0 + OUTWARD_8192)

    def delta_upper(self, terms: Terms, epsilon: float) -> float:
        """Return the least d of the second and the third form at an epsilon, rounded up.

        Both forms decrease in d, so that the d at which one equals epsilon is the least that it
        proves. With ``x = epsilon - B > 0`` and ``t = x^2 / 2V``,

            x = sqrt(2 V ln(1/d))           gives  d = e^-t,
            x = sqrt(2 V ln(e + sqrt(V)/d)) gives  d = sqrt(V) / (e^t - e), if t > 1.

        B and V are rounded up and x down, each of which raises d.
        """
        mean, variance_proxy = _moments(terms)
        excess = (epsilon - mean) - OUTWARD_8192 * (epsilon + mean)
        if not _LEAST_PROXY < variance_proxy < _LARGEST_PROXY or excess <= 0.0:
            return 1.0
        exponent = 0.5 * excess * excess / variance_proxy * (1.0 - OUTWARD_8192)
        least = -exponent
        if exponent > 1.0:
            third = (
                0.5 * math.log(variance_proxy) - exponent - math.log(-math.expm1(1.0 - exponent))
            )
            least = min(least, third)
        least += OUTWARD_8192 * (4.0 + exponent + abs(math.log(variance_proxy)))
        return math.exp(min(least, 0.0))


def _moments(terms: Terms) -> tuple[float, float]:
    """Return B and V, rounded up."""
    sizes = [(loss.supremum, count) for loss, count in terms]
    mean = math.fsum(count * size * math.tanh(0.5 * size) for size, count in sizes)
    variance_proxy = math.fsum(count * size * size for size, count in sizes)
    return mean * (1.0 + OUTWARD_8192), variance_proxy * (1.0 + OUTWARD_8192)


def _log_sum(first: float, second: float) -> float:
    high, low = max(first, second), min(first, second)
    return high + math.log1p(math.exp(low - high))


@final
class ZeroConcentrated(BoundAccountant):
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
    summary: ClassVar[str] = "upper bound by one line above all Renyi divergences: rho adds up"

    def epsilon_upper(self, terms: Terms, delta: float) -> float:
        line = self._line(terms)
        return epsilon_by_orders(line, delta) if line else math.inf

    def delta_upper(self, terms: Terms, epsilon: float) -> float:
        line = self._line(terms)
        return delta_by_orders(line, epsilon) if line else 1.0

    def _line(self, terms: Terms) -> RenyiLine | None:
        """Return the sum of the lines, None where its slope is out of reach; or raise."""
        lines = []
        for loss, count in terms:
            line = loss.zcdp_line()
            if line is None:
                reason = (
                    "no rho is known with D_alpha <= rho alpha for the loss of a part of it, a "
                    f"{type(loss).__name__}; use accountant='rdp' or 'auto'"
                )
                raise self.refuse("the plan", reason)
            lines.append((line, count))
        rho = math.fsum(count * line.rho for line, count in lines) * (1.0 + OUTWARD_8)
        omega = min(line.omega for line, _ in lines)
        return RenyiLine(rho, omega) if rho <= sys.float_info.max else None
