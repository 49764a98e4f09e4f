"""The conversions of the literature, each by the name of its authors, rounded up.

``hockeystick.convert`` takes the tightest route; these are its steps and the looser textbook forms,
for comparison. Where ``epsilon`` and ``delta`` are both keywords, exactly one is given, epsilon in
[0, inf] or delta in (0, 1], and the other one is returned.

Parameters mean the exact values of the floats: orders (a, alpha) are finite and > 1; a divergence
(tau), rho, mu and the epsilon of a guarantee finite and >= 0; omega is > 1, and inf for rho-zCDP.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Final

from hockeystick._validate import PARAMETERS, Domain, real
from hockeystick.errors import ParameterError
from hockeystick.notions.guarantees import DIVERGENCE, MU, OMEGA, ORDER, RHO
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.roots import increasing_root, minimum
from hockeystick.precision.profiles import gaussian_delta
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.tradeoffs.attack_words import DIGITS, least_epsilon, root_epsilon, up
from hockeystick.tradeoffs.profiles.one_order import delta_by_orders, epsilon_by_orders
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiPoints, response_moment

# The relative error of a quantile, which is verified.
_MARGIN: Final = 2.0**-80
_EPSILON: Final = PARAMETERS["epsilon"]


def evaluated(formula: Callable[[Any], Any]) -> float:
    """Return a number >= 0 computed by mpmath's context in many digits, rounded up."""
    with working_digits(DIGITS):
        return up(max(formula(mp), mp.zero))


def up_product(*factors: float) -> float:
    """Return a product of finite numbers >= 0, rounded up."""
    return evaluated(lambda m: m.fprod(factors))


def _other_of_two(
    of_delta: Callable[[Any], Any], of_epsilon: Callable[[Any], Any], epsilon: float | None
) -> float:
    """Return epsilon, or delta where an epsilon is given, rounded up."""
    if epsilon is None:
        return evaluated(of_delta)
    if epsilon == math.inf:
        return 0.0
    return min(evaluated(lambda m: min(of_epsilon(m), m.one)), 1.0)


def one_of_two(epsilon: object, delta: object, *, zero: bool = False) -> float:
    """Return the one of the two that is given without the other, or raise; a delta 0 if allowed."""
    if (epsilon is None) == (delta is None):
        given = None if epsilon is None else (epsilon, delta)
        allowed = "given: delta to ask for epsilon, or epsilon to ask for delta"
        raise ParameterError("exactly one of epsilon and delta", given, allowed)
    value = real("delta", delta) if epsilon is None else real("epsilon", epsilon)
    if value == 0.0 and epsilon is None and not zero:
        raise ParameterError("delta", delta, "a number > 0 and <= 1")
    return value


def _finite(name: str, value: object, domain: Domain) -> float:
    number = real(name, value, domain)
    if number == math.inf:
        raise ParameterError(name, value, "a finite number >= 0")
    return number


def kairouz_oh_viswanath(
    own_epsilon: float,
    own_delta: float = 0.0,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> float:
    """Return delta of (own_epsilon, own_delta)-DP at another epsilon, or epsilon at another delta.

    ``delta = own_delta + (1 - own_delta) (e^own - e^epsilon)_+ / (1 + e^own)``. Exact for the
    class. own_delta is below 1, delta may be 0, and epsilon is inf where delta < own_delta.

    Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2017,
    theorem 2, for the worst mechanism.

    Example:
        >>> from hockeystick.conversions.theorems import kairouz_oh_viswanath
        >>> round(kairouz_oh_viswanath(2, epsilon=1), 12)
        0.556769941146
    """
    own = _finite("own_epsilon", own_epsilon, _EPSILON)
    known = _finite("own_delta", own_delta, PARAMETERS["delta"])
    at = one_of_two(epsilon, delta, zero=True)
    if epsilon is not None:

        def spread(m: Any) -> Any:
            response = -m.expm1(m.mpf(at) - own) / (1 + m.exp(-m.mpf(own)))
            return known + (1 - m.mpf(known)) * response

        return known if at >= own else evaluated(spread)
    if at <= known:
        return own if at == known else math.inf

    def back(m: Any) -> Any:
        part = (m.mpf(at) - known) / (1 - m.mpf(known))
        left = 1 - part * (1 + m.exp(-m.mpf(own)))
        return m.zero if left <= 0 else max(own + m.log(left), m.zero)

    return evaluated(back)


def balle_wang(mu: float, *, epsilon: float | None = None, delta: float | None = None) -> float:
    """Return ``delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)`` of mu-GDP, or its epsilon.

    Exact for the class, but for round-off. mu is above 0.

    Balle and Wang, "Improving the Gaussian Mechanism", 2018, theorem 8; Dong, Roth and Su
    2022, corollary 2.13.

    Example:
        >>> from hockeystick.conversions.theorems import balle_wang
        >>> round(balle_wang(1, delta=1e-5), 12)
        4.377178095681
    """
    size = _finite("mu", mu, MU)
    if size == 0.0:
        raise ParameterError("mu", mu, "a finite number > 0")
    at = one_of_two(epsilon, delta)

    def delta_at(value: mpf) -> mpf:
        return gaussian_delta(value, mp.mpf(size))

    with working_digits(DIGITS):
        if epsilon is not None:
            return 0.0 if at == math.inf else min(up(delta_at(mp.mpf(at))), 1.0)
        stride = size * math.sqrt(2.0 * -math.log(at) + 1.0)
        return least_epsilon(delta_at, at, root_epsilon(delta_at, at, stride))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu such that mu-GDP implies (epsilon, delta)-DP, rounded DOWN.

    Exact, but for round-off. delta is above 0 and below 1.

    Balle and Wang 2018, theorem 8.

    Example:
        >>> from hockeystick.conversions.theorems import gaussian_mu
        >>> round(gaussian_mu(1, 1e-5), 12)
        0.268051123211
    """
    at, goal = _finite("epsilon", epsilon, _EPSILON), one_of_two(None, delta)
    if goal == 1.0:
        raise ParameterError("delta", delta, "a number > 0 and < 1")
    with working_digits(DIGITS):

        def above(log_mu: float) -> float:
            value = gaussian_delta(mp.mpf(at), mp.exp(log_mu))
            return float(mp.log(value / goal)) if value > 0 else -math.inf

        guess = math.log(max(at, 1e-3)) - 0.5 * math.log(2.0 * -math.log(goal) + 1.0)
        mu, slack = math.exp(increasing_root(above, guess, tolerance=1e-15)), math.ulp(1.0)
        while gaussian_delta(mp.mpf(at), mp.mpf(mu)) > goal * (1 - mp.mpf(2) ** -80):
            mu, slack = mu * (1.0 - slack), 2.0 * slack
        return mu


def liu_mu(epsilon: float) -> float:
    """Return ``mu = 2 Phi^-1(e^eps / (1 + e^eps))``, the least with which eps-DP implies mu-GDP.

    ``f_eps,0`` consists of two chords from (0, 1) and (1, 0) to the kink ``(a, a)``,
    ``a = 1 / (1 + e^eps)``. G_mu, which is convex, runs through the same three points, and a
    smaller mu has ``G_mu(a) > a``. Hence exact for the class.

    Liu et al., "Identification, Amplification and Measurement: A bridge to Gaussian
    Differential Privacy", 2022.

    Example:
        >>> from hockeystick.conversions.theorems import liu_mu
        >>> round(liu_mu(1), 12)
        1.232035385345
    """
    own = _finite("epsilon", epsilon, _EPSILON)
    return _mu_of_rate(own, lambda m: -m.mpf(own) - m.log1p(m.exp(-m.mpf(own))))


def laplace_mu(epsilon: float) -> float:
    """Return ``mu = -2 Phi^-1(e^(-eps/2) / 2)``, the least of Laplace noise with largest loss eps.

    The scale is 1/eps times the sensitivity. Its trade-off function and ``G_mu`` meet where both
    error rates are ``e^(-eps/2) / 2`` (``conversions.by_losses`` has the proof). Exact.

    Dong, Roth and Su 2022, proposition A.6, for the trade-off function.

    Example:
        >>> from hockeystick.conversions.theorems import laplace_mu
        >>> round(laplace_mu(1), 12)
        1.030063997624
    """
    own = _finite("epsilon", epsilon, _EPSILON)
    return _mu_of_rate(own, lambda m: -m.mpf(own) / 2 - m.log(2))


def _mu_of_rate(epsilon: float, log_rate: Callable[[Any], Any]) -> float:
    """Return the mu of a curve that is farthest where both error rates are the same, rounded up."""
    if epsilon == 0.0:
        return 0.0
    # Next to 1/2 a rate needs the digits by which it is less.
    with working_digits(DIGITS + max(0, math.ceil(-math.log10(epsilon)))):
        return up(-2 * quantile_below(log_rate(mp)))


def quantile_below(log_rate: mpf) -> mpf:
    """Return a number at most ``Phi^-1`` of a rate, by Newton's steps, and verified."""
    from scipy.special import erfcx, ndtri_exp

    def excess(x: mpf) -> mpf:
        return mp.log(mp.ncdf(x)) - log_rate

    x, step, slack = mp.mpf(float(ndtri_exp(float(log_rate)))), mp.one, mp.zero
    while abs(step) > slack:
        step = excess(x) * math.sqrt(math.pi / 2.0) * float(erfcx(-float(x) / math.sqrt(2.0)))
        x -= step
        slack = abs(x) * _MARGIN + 2**10 * mp.eps  # beyond what is lost next to a rate of 1/2
    while excess(x - slack) > 0:
        slack *= 2
    return x - slack


def steinke_rho(epsilon: float) -> float:
    """Return ``rho = eps tanh(eps/2)``, the least with which eps-DP implies rho-zCDP.

    Exact for the class: it is the Kullback-Leibler divergence of randomized response, the limit of
    ``D_alpha / alpha`` at 1.

    Steinke, "Better Privacy Loss Bounds for Pure DP", differentialprivacy.org, 2024, theorem 4.

    Example:
        >>> from hockeystick.conversions.theorems import steinke_rho
        >>> round(steinke_rho(1), 12)
        0.46211715726
    """
    own = _finite("epsilon", epsilon, _EPSILON)
    return evaluated(lambda m: own * m.tanh(m.mpf(own) / 2))


def bun_steinke_rho(epsilon: float) -> float:
    """Return ``rho = eps^2 / 2``, with which eps-DP implies rho-zCDP: an upper bound.

    Bun and Steinke 2016, proposition 1.4.

    Example:
        >>> from hockeystick.conversions.theorems import bun_steinke_rho
        >>> bun_steinke_rho(1)
        0.5
    """
    own = _finite("epsilon", epsilon, _EPSILON)
    return up_product(0.5, own, own)


def response_divergence(epsilon: float, order: float) -> float:
    """Return the largest Renyi divergence of an eps-DP mechanism, that of randomized response.

    ``eps - ln[(1 + e^-eps) / (1 + e^-(2a-1)eps)] / (a - 1)``: exact for the class.

    Bun and Steinke 2016, proposition 3.3, whose form with hyperbolic sines is the same.

    Example:
        >>> from hockeystick.conversions.theorems import response_divergence
        >>> round(response_divergence(1, 2), 12)
        0.735325664056
    """
    own, a = _finite("epsilon", epsilon, _EPSILON), real("order", order, ORDER)
    if own == 0.0:
        return 0.0
    # What cancels is of the size of eps next to eps^2.
    extra = 2 * max(0, math.ceil(-math.log10(own))) + max(0, math.ceil(-math.log10(a - 1.0)))
    with working_digits(DIGITS + extra):
        c = a - mp.one
        return up(response_moment(c, mp.mpf(own), mp) / c)


def mironov(
    order: float, divergence: float, *, epsilon: float | None = None, delta: float | None = None
) -> float:
    """Return ``epsilon = tau + ln(1/delta) / (alpha - 1)``, or its delta: an upper bound.

    Mironov, "Renyi Differential Privacy", CSF 2017, proposition 3.

    Example:
        >>> from hockeystick.conversions.theorems import mironov
        >>> round(mironov(10, 1, delta=1e-5), 6)
        2.279214
    """
    a, tau = real("order", order, ORDER), _finite("divergence", divergence, DIVERGENCE)
    at = one_of_two(epsilon, delta)
    return _other_of_two(
        lambda m: tau - m.log(m.mpf(at)) / (a - m.one),
        lambda m: m.exp((a - m.one) * (m.mpf(tau) - at)),
        epsilon,
    )


def canonne_kamath_steinke(
    order: float, divergence: float, *, epsilon: float | None = None, delta: float | None = None
) -> float:
    """Return ``delta = e^((a-1)(tau-eps)) (a-1)^(a-1) / a^a``, or its epsilon: an upper bound.

    Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020,
    proposition 12; Balle, Barthe, Gaboardi, Hsu and Sato 2020, theorem 21.

    Example:
        >>> from hockeystick.conversions.theorems import canonne_kamath_steinke
        >>> round(canonne_kamath_steinke(2, 0.5, epsilon=0.5), 12)
        0.25
    """
    a, tau = real("order", order, ORDER), _finite("divergence", divergence, DIVERGENCE)
    at = one_of_two(epsilon, delta)
    return _other_of_two(
        lambda m: tau + (log_cks_factor(a - m.one, m) - m.log(m.mpf(at))) / (a - m.one),
        lambda m: m.exp((a - m.one) * (m.mpf(tau) - at) + log_cks_factor(a - m.one, m)),
        epsilon,
    )


def asoodeh(
    order: float, divergence: float, *, epsilon: float | None = None, delta: float | None = None
) -> float:
    """Return the least delta that one Renyi divergence, in both orders of a pair, implies.

    (eps, delta) is implied by ``D_a(P||Q) <= tau`` iff tau is below the infimum over p in
    (delta, 1] of ``ln[p^a q^(1-a) + (1-p)^a (1-q)^(1-a)] / (a-1)``, ``q = (p-delta) e^-eps``.
    Where ``e^eps`` is below the slope of f at its fixed point, ``D_a(Q||P) <= tau`` says more, and
    delta is that of the randomized response of divergence tau. Exact for the class of all pairs
    with these divergences, but for round-off.

    Asoodeh, Liao, Calmon, Kosut and Sankar, "Three Variants of Differential Privacy", 2021,
    theorem 3, for one order of the pair.

    Example:
        >>> from hockeystick.conversions.theorems import asoodeh
        >>> round(asoodeh(2, 0.5, epsilon=0.5), 12)
        0.19273716917
    """
    a, tau = real("order", order, ORDER), _finite("divergence", divergence, DIVERGENCE)
    at = one_of_two(epsilon, delta)
    if tau == 0.0 or (at == 1.0 and epsilon is None):
        return 0.0
    curve = RenyiPoints([(a, tau)])
    return epsilon_by_orders(curve, at) if epsilon is None else delta_by_orders(curve, at)


def bun_steinke(rho: float, *, epsilon: float | None = None, delta: float | None = None) -> float:
    """Return ``epsilon = rho + 2 sqrt(rho ln(1/delta))`` of rho-zCDP, or its delta: a bound.

    Bun and Steinke, "Concentrated Differential Privacy", 2016, proposition 1.3.

    Example:
        >>> from hockeystick.conversions.theorems import bun_steinke
        >>> round(bun_steinke(0.5, delta=1e-5), 9)
        5.298525912
    """
    return bun_dwork_rothblum_steinke(rho, math.inf, epsilon=epsilon, delta=delta)


def bun_dwork_rothblum_steinke(
    rho: float, omega: float, *, epsilon: float | None = None, delta: float | None = None
) -> float:
    """Return epsilon of (rho, omega)-tCDP, or its delta: an upper bound.

    ``rho + 2 sqrt(rho l)`` where ``l = ln(1/delta) <= (omega - 1)^2 rho``, and
    ``rho omega + l / (omega - 1)`` beyond.

    Bun, Dwork, Rothblum and Steinke, "Composable and Versatile Privacy via Truncated CDP",
    2018, lemma 6.

    Example:
        >>> from hockeystick.conversions.theorems import bun_dwork_rothblum_steinke
        >>> round(bun_dwork_rothblum_steinke(0.1, 5, delta=1e-5), 9)
        3.378231366
    """
    r, w = _finite("rho", rho, RHO), real("omega", omega, OMEGA)
    at = one_of_two(epsilon, delta)

    def of_delta(m: Any) -> Any:
        size = -m.log(m.mpf(at))
        if w == math.inf or size <= (m.mpf(w) - 1) ** 2 * r:
            return r + 2 * m.sqrt(r * size)
        return m.mpf(r) * w + size / (m.mpf(w) - 1)

    def of_epsilon(m: Any) -> Any:
        if r == 0.0 or at <= r:
            return m.mpf(r > 0.0)
        if w == math.inf or (m.mpf(at) - r) <= 2 * r * (m.mpf(w) - 1):
            return m.exp(-((m.mpf(at) - r) ** 2) / (4 * m.mpf(r)))
        return m.exp((m.mpf(r) * w - at) * (m.mpf(w) - 1))

    return _other_of_two(of_delta, of_epsilon, epsilon)


def canonne_kamath_steinke_concentrated(
    rho: float, omega: float = math.inf, *, delta: float
) -> float:
    """Return epsilon by ``canonne_kamath_steinke`` at the best order of ``tau = rho alpha``.

    Canonne, Kamath and Steinke 2020, corollary 13.

    Example:
        >>> from hockeystick.conversions.theorems import canonne_kamath_steinke_concentrated
        >>> round(canonne_kamath_steinke_concentrated(0.5, delta=1e-5), 9)
        4.728386985
    """
    r, w, at = _finite("rho", rho, RHO), real("omega", omega, OMEGA), one_of_two(None, delta)
    if r == 0.0:
        return 0.0

    def cost(log_c: float) -> float:
        c = math.exp(log_c)
        return float(r * (1.0 + c) + (log_cks_factor(c) - math.log(at)) / c)

    unit = 0.5 * math.log(max(-math.log(at), 0.1) / r)
    high = min(unit + 10.0, math.log(w - 1.0) if w < math.inf else math.inf)
    c = math.exp(minimum(cost, min(unit, high) - 10.0, high, tolerance=1e-9))
    order = min(max(1.0 + c, 1.0 + math.ulp(1.0)), w, sys.float_info.max)
    best = min((a for a in (order, w) if a < math.inf), key=lambda a: cost(math.log(a - 1.0)))
    return canonne_kamath_steinke(best, up_product(r, best), delta=delta)


__all__ = [
    "asoodeh",
    "balle_wang",
    "bun_dwork_rothblum_steinke",
    "bun_steinke",
    "bun_steinke_rho",
    "canonne_kamath_steinke",
    "canonne_kamath_steinke_concentrated",
    "gaussian_mu",
    "kairouz_oh_viswanath",
    "laplace_mu",
    "liu_mu",
    "mironov",
    "response_divergence",
    "steinke_rho",
]
