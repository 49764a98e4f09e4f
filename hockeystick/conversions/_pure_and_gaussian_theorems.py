"""Theorems on pure and Gaussian DP, by the worst mechanism: randomized response, or Gaussian."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from hockeystick._validate import PARAMETERS
from hockeystick.conversions._evaluated import (
    evaluated,
    finite,
    half_square,
    one_of_two,
    order_of,
    positive_mu,
)
from hockeystick.errors import ParameterError
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.working_precision import working_digits
from hockeystick.tradeoffs.profiles.renyi_curve import response_moment
from hockeystick.tradeoffs.reading import DIGITS, least_epsilon, root_epsilon, up

if TYPE_CHECKING:
    from mpmath import mpf

# Beyond what mpmath may lose in a formula, relative to its value.
_MARGIN: Final = 2.0**-80


def kairouz_oh_viswanath(
    own_epsilon: float,
    own_delta: float = 0.0,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> float:
    """Return delta of (own_epsilon, own_delta)-DP at another epsilon, or epsilon at another delta.

    ``delta = own_delta + (1 - own_delta) (e^own - e^epsilon)_+ / (1 + e^own)``, the profile of the
    worst such mechanism: exact for the class.

    Args:
        own_epsilon: Of the guarantee known, finite and >= 0.
        own_delta: Of the guarantee known, in [0, 1).
        epsilon: At which delta is asked for, a number >= 0; or
        delta: at which epsilon is asked for, in [0, 1].

    Returns:
        The other one of the two, rounded up; epsilon is inf where delta < own_delta.

    Raises:
        ParameterError: If a parameter is outside its domain, or not exactly one is given.

    References:
        Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2017,
        theorem 2, for the worst mechanism.

    Example:
        >>> from hockeystick.conversions.theorems import kairouz_oh_viswanath
        >>> round(kairouz_oh_viswanath(2, epsilon=1), 12)
        0.556769941146
    """
    own = finite("own_epsilon", own_epsilon, PARAMETERS["epsilon"])
    known = finite("own_delta", own_delta, PARAMETERS["delta"])
    at = one_of_two(epsilon, delta, zero=True)
    if epsilon is not None:
        return known if at >= own else evaluated(lambda m: _spread(own, known, at, m))
    if at <= known:
        return own if at == known else math.inf

    def back(m: Any) -> Any:
        part = (m.mpf(at) - known) / (1 - m.mpf(known))
        left = 1 - part * (1 + m.exp(-m.mpf(own)))
        return m.zero if left <= 0 else max(own + m.log(left), m.zero)

    return evaluated(back)


def balle_wang(mu: float, *, epsilon: float | None = None, delta: float | None = None) -> float:
    """Return ``delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)`` of mu-GDP, or its epsilon.

    Exact for the class, but for round-off.

    Args:
        mu: Finite and > 0.
        epsilon: At which delta is asked for, a number >= 0; or
        delta: at which epsilon is asked for, in (0, 1].

    Returns:
        The other one of the two, rounded up.

    Raises:
        ParameterError: If a parameter is outside its domain, or not exactly one is given.

    References:
        Balle and Wang, "Improving the Gaussian Mechanism", 2018, theorem 8; Dong, Roth and Su
        2022, corollary 2.13.

    Example:
        >>> from hockeystick.conversions.theorems import balle_wang
        >>> round(balle_wang(1, delta=1e-5), 12)
        4.377178095681
    """
    size = positive_mu(mu)
    at = one_of_two(epsilon, delta)
    from hockeystick.numerics.multiprecision import mp
    from hockeystick.precision.profiles import gaussian_delta

    def delta_at(value: mpf) -> mpf:
        return gaussian_delta(value, mp.mpf(size))

    with working_digits(DIGITS):
        if epsilon is not None:
            return 0.0 if at == math.inf else min(up(delta_at(mp.mpf(at))), 1.0)
        stride = size * math.sqrt(2.0 * -math.log(at) + 1.0)
        return least_epsilon(delta_at, at, root_epsilon(delta_at, at, stride))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu such that mu-GDP implies (epsilon, delta)-DP.

    Exact, but for round-off.

    Args:
        epsilon: Finite and >= 0.
        delta: In (0, 1).

    Returns:
        mu, rounded down.

    References:
        Balle and Wang 2018, theorem 8.

    Example:
        >>> from hockeystick.conversions.theorems import gaussian_mu
        >>> round(gaussian_mu(1, 1e-5), 12)
        0.268051123211
    """
    at, goal = finite("epsilon", epsilon, PARAMETERS["epsilon"]), one_of_two(None, delta)
    if goal == 1.0:
        raise ParameterError("delta", delta, "a number > 0 and < 1")
    from hockeystick.numerics.multiprecision import mp
    from hockeystick.precision.profiles import gaussian_delta

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
    ``a = 1 / (1 + e^eps)``. G_mu runs through the same three points, since
    ``G_mu(a) = Phi(-Phi^-1(a) - mu) = Phi(Phi^-1(a)) = a``; being convex, it lies below both
    chords. A smaller mu has ``G_mu(a) > a``. Hence exact for the class.

    Args:
        epsilon: Finite and >= 0.

    Returns:
        mu, rounded up.

    References:
        Liu et al., "Identification, Amplification and Measurement: A bridge to Gaussian
        Differential Privacy", 2022.

    Example:
        >>> from hockeystick.conversions.theorems import liu_mu
        >>> round(liu_mu(1), 12)
        1.232035385345
    """
    own = finite("epsilon", epsilon, PARAMETERS["epsilon"])
    if own == 0.0:
        return 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        # Phi(-mu/2) <= 1/(1 + e^eps), or erf(mu / sqrt 8) >= tanh(eps/2) where both are near 1/2.
        if own < 1.0:
            return _mu_of_advantage(mp.tanh(mp.mpf(own) / 2))
        return _mu_of_log_rate(-own - mp.log1p(mp.exp(-mp.mpf(own))))


def laplace_mu(epsilon: float) -> float:
    """Return ``mu = -2 Phi^-1(e^(-eps/2) / 2)``, the least of Laplace noise with largest loss eps.

    The scale is 1/eps times the sensitivity. Its trade-off function and ``G_mu`` meet where both
    error rates are ``e^(-eps/2) / 2`` (``conversions._least_mu`` has the proof). Exact.

    Args:
        epsilon: Finite and >= 0.

    Returns:
        mu, rounded up.

    References:
        Dong, Roth and Su 2022, proposition A.6, for the trade-off function.

    Example:
        >>> from hockeystick.conversions.theorems import laplace_mu
        >>> round(laplace_mu(1), 12)
        1.030063997624
    """
    own = finite("epsilon", epsilon, PARAMETERS["epsilon"])
    if own == 0.0:
        return 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        if own < 1.0:
            return _mu_of_advantage(-mp.expm1(-mp.mpf(own) / 2))
        return _mu_of_log_rate(-mp.mpf(own) / 2 - mp.log(2))


def _mu_of_advantage(advantage: mpf) -> float:
    """Return the least mu with ``erf(mu / sqrt 8) >= advantage``, rounded up."""
    from hockeystick.numerics.multiprecision import mp

    root, goal = mp.sqrt(8), advantage * (1 + _MARGIN)
    return _first_float(float(root * mp.erfinv(advantage)), lambda mu: mp.erf(mu / root) >= goal)


def _mu_of_log_rate(log_rate: mpf) -> float:
    """Return the least mu with ``ln Phi(-mu/2)`` at most a number < -1/2, rounded up."""
    from scipy.special import ndtri_exp

    from hockeystick.numerics.multiprecision import mp

    root, goal = mp.sqrt(8), log_rate * (1 + _MARGIN)
    mu = -2.0 * float(ndtri_exp(float(log_rate)))
    return _first_float(mu, lambda mu: mp.log(mp.erfc(mu / root) / 2) <= goal)


def _first_float(mu: float, holds: Callable[[float], Any]) -> float:
    """Return a float from mu upward, by growing steps, for which a condition holds."""
    slack = math.ulp(0.5)
    while not holds(mu):
        mu, slack = math.nextafter(mu * (1.0 + slack), math.inf), 2.0 * slack
    return mu


def steinke_rho(epsilon: float) -> float:
    """Return ``rho = eps tanh(eps/2)``, the least with which eps-DP implies rho-zCDP.

    Exact for the class: it is the Kullback-Leibler divergence of randomized response, the limit of
    ``D_alpha / alpha`` at 1.

    Args:
        epsilon: Finite and >= 0.

    Returns:
        rho, rounded up.

    References:
        Steinke, "Better Privacy Loss Bounds for Pure DP", differentialprivacy.org, 2024, theorems
        4 and 5.

    Example:
        >>> from hockeystick.conversions.theorems import steinke_rho
        >>> round(steinke_rho(1), 12)
        0.46211715726
    """
    own = finite("epsilon", epsilon, PARAMETERS["epsilon"])
    return evaluated(lambda m: own * m.tanh(m.mpf(own) / 2))


def bun_steinke_rho(epsilon: float) -> float:
    """Return ``rho = eps^2 / 2``, with which eps-DP implies rho-zCDP: an upper bound.

    Args:
        epsilon: Finite and >= 0.

    Returns:
        rho, rounded up.

    References:
        Bun and Steinke 2016, proposition 1.4.

    Example:
        >>> from hockeystick.conversions.theorems import bun_steinke_rho
        >>> bun_steinke_rho(1)
        0.5
    """
    own = finite("epsilon", epsilon, PARAMETERS["epsilon"])
    return half_square(own)


def response_divergence(epsilon: float, order: float) -> float:
    """Return the largest Renyi divergence of an eps-DP mechanism, that of randomized response.

    ``eps - ln[(1 + e^-eps) / (1 + e^-(2a-1)eps)] / (a - 1)``: exact for the class.

    Args:
        epsilon: Finite and >= 0.
        order: The order a, finite and > 1.

    Returns:
        The divergence, rounded up.

    References:
        Bun and Steinke 2016, proposition 3.3, whose form with hyperbolic sines is the same.

    Example:
        >>> from hockeystick.conversions.theorems import response_divergence
        >>> round(response_divergence(1, 2), 12)
        0.735325664056
    """
    own, a = finite("epsilon", epsilon, PARAMETERS["epsilon"]), order_of(order)
    if own == 0.0:
        return 0.0
    from hockeystick.numerics.multiprecision import mp

    # What cancels is of the size of eps next to eps^2.
    extra = 2 * max(0, math.ceil(-math.log10(own))) + max(0, math.ceil(-math.log10(a - 1.0)))
    with working_digits(DIGITS + extra):
        c = a - mp.one
        return up(response_moment(c, mp.mpf(own), mp) / c)


def _spread(own: float, known: float, at: float, m: Any) -> Any:
    """Return the profile of the worst mechanism at an epsilon below its own."""
    response = -m.expm1(m.mpf(at) - own) / (1 + m.exp(-m.mpf(own)))
    return known + (1 - m.mpf(known)) * response
