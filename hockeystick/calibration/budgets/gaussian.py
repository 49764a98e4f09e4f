"""Gaussian noise: the least for a budget, that of two queries, and the largest error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.accountants import delta as delta_of
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Gaussian
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.numerics.multiprecision import working_digits
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import DIGITS, as_mpf, evaluated_down, evaluated_up, float_up

if TYPE_CHECKING:
    from mpmath import mpf

_EPSILON: Final = Domain(symbol="eps", low=0, high=1e15, typical=(0.01, 20))
_OPEN_DELTA: Final = Domain("delta", 0, 1, (1e-12, 1e-4), low_open=True, high_open=True)
_BELOW_ONE: Final = Domain("eps", 0, 1, (0.01, 0.9), low_open=True, high_open=True)
_WHY: Final = (
    "; the theorem is proven for these alone, and fails for large epsilons: at delta = 1e-5 from "
    "8.42 on. gaussian_noise(epsilon, delta) holds for all, with less noise"
)
_TOLERANCE: Final = 2.0**-52
_LARGEST_LOG_NOISE: Final = 700.0
_LEAST_FLOAT: Final = 5e-324
_POSITIVE: Final = Domain("nu", 0, math.inf, (0.5, 10), low_open=True, high_open=True)
_INFLATION: Final = Domain("r", 1, math.inf, (1.001, 1.5), low_open=True, high_open=True)
_SIGMA: Final = Domain(symbol="sigma", low=0, high=1e150, typical=(0.1, 1000))
_COORDINATES: Final = whole_numbers("K", 1, (1, 10**6))
_FAILURE: Final = Domain(symbol="beta", low=1e-200, high=1, high_open=True, typical=(1e-6, 0.1))
_ERROR: Final = Domain(symbol="t", low=0, high=math.inf, typical=(0.1, 1000))
# Steps of Newton's method from a float's accuracy, and the slack that is then proven to be enough.
_STEPS: Final = 4
_SLACK: Final = 30
# No smaller error than this many standard deviations away makes a difference to a float.
_MOST_DEVIATIONS: Final = 1000


def gaussian_noise(epsilon: float, delta: float) -> float:
    """Return the least noise multiplier for which Gaussian noise is (epsilon, delta)-DP.

    With ``mu = 1 / noise_multiplier`` it is where ``Phi(mu/2 - epsilon/mu) - e^epsilon
    Phi(-mu/2 - epsilon/mu) = delta``.

    Guarantees:
        ``hs.Gaussian(gaussian_noise(epsilon, delta))`` is proven to be (epsilon, delta)-DP: rounded
        up, by some units in the last place. delta = 0 takes infinite noise, and delta = 1 none.

    Args:
        epsilon: In [0, 10^15].
        delta: In [0, 1].

    References:
        Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018,
        theorem 8.

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.calibration.gaussian_noise(1, 1e-5):.6f}")
        3.730632
    """
    eps = _validate.real("epsilon", epsilon, _EPSILON)
    target = _validate.real("delta", delta)
    if target == 0.0:
        return math.inf
    if target == 1.0:
        return 0.0

    def excess(log_noise: float) -> float:
        found = _delta(math.exp(log_noise), eps)
        # A delta that is rounded up to the least float there is says nothing of the noise.
        known = found > max(target * 1e-300, _LEAST_FLOAT)
        return math.log(target / found) if known else math.inf

    noise = math.exp(
        increasing_root(excess, 0.0, tolerance=_TOLERANCE, farthest=_LARGEST_LOG_NOISE)
    )
    slack = 2.0**-52
    noise *= 1.0 - 8.0 * slack
    while _delta(noise, eps) > target:
        noise, slack = noise * (1.0 + slack), 1.25 * slack
    return noise


def classical_gaussian_noise(epsilon: float, delta: float) -> float:
    """Return the noise multiplier that the classical theorem asks for.

    ``sqrt(2 ln(1.25/delta)) / epsilon``, for epsilon below 1.

    Guarantees:
        ``hs.Gaussian`` with this noise is (epsilon, delta)-DP; it is more than ``gaussian_noise``
        asks for: 4.85 rather than 3.74 just below epsilon = 1 at delta = 1e-5. Rounded up.

    Edge cases:
        epsilon >= 1 is refused: the theorem is proven below 1, and fails at delta = 1e-5 from
        epsilon = 8.42 on.

    Args:
        epsilon: In (0, 1).
        delta: In (0, 1).

    References:
        Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, theorem A.1.

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.calibration.classical_gaussian_noise(0.5, 1e-5):.6f}")
        9.689611
    """
    if not _BELOW_ONE.contains(epsilon):
        raise ParameterError("epsilon", epsilon, _BELOW_ONE.allowed + _WHY)
    eps = _validate.real("epsilon", epsilon, _BELOW_ONE)
    target = _validate.real("delta", delta, _OPEN_DELTA)
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        ratio = mp.mpf("1.25") / as_mpf(least_reading(target))
        return evaluated_up(mp.sqrt(2 * mp.log(ratio)) / as_mpf(least_reading(eps)))


def _delta(noise: float, epsilon: float) -> float:
    return delta_of(Gaussian(noise), epsilon=epsilon, accountant="closed-form").upper


@final
@dataclass(frozen=True, slots=True)
class JointNoise:
    """The noise multipliers of two queries, each in units of its own sensitivity.

    Args:
        gradient: That of the gradients' sum.
        query: That of the other query.
    """

    gradient: float
    query: float


def joint_noise(
    noise_multiplier: float, *, query_noise: float | None = None, inflation: float | None = None
) -> JointNoise:
    """Return how to noise gradients and another query so that both cost what one release costs.

    Gaussian noise on two queries of the same data is Gaussian noise on both as one, each in units
    of its sensitivity: ``nu^-2 = nu_g^-2 + nu_q^-2``. So a plan is accounted with nu while the
    gradients get nu_g, and the other query, on the same minibatch, nu_q.

    Guarantees:
        Both multipliers are rounded up, so that ``nu_g^-2 + nu_q^-2 <= nu^-2``. Exact for
        the joint Gaussian, sampled or not: one sampling covers both queries.

    Args:
        noise_multiplier: nu, what the plan is accounted with, positive and finite.
        query_noise: nu_q, above nu; or
        inflation: nu_g / nu, above 1: exactly one of the two.

    References:
        Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
        Clipping", NeurIPS 2021, theorem 1.

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.calibration.joint_noise(1.0, inflation=1.01).query:.6f}")
        7.123991
    """
    nu = _validate.real("noise_multiplier", noise_multiplier, _POSITIVE)
    if (query_noise is None) == (inflation is None):
        given = (query_noise, inflation)
        raise ParameterError("query_noise, inflation", given, "given one without the other")
    if query_noise is not None:
        query = _validate.real("query_noise", query_noise, _POSITIVE)
        return JointNoise(_rest("query_noise", query, nu, least_reading(query)), query)
    ratio = _validate.real("inflation", inflation, _INFLATION)
    gradient = float_up(largest_reading(nu) * largest_reading(ratio))
    if gradient == math.inf:
        raise ParameterError("inflation", ratio, f"so small that {nu!r} times it is still a float")
    return JointNoise(gradient, _rest("inflation", ratio, nu, least_reading(gradient)))


def clipping_noise(noise_multiplier: float, bit_noise: float) -> float:
    """Return the gradients' noise multiplier where the clipping norm follows a noisy quantile.

    Each round releases beside the gradients how many examples were clipped, as a sum of bits in
    {-1/2, 1/2} with Gaussian noise of standard deviation sigma_b. The sum's sensitivity is 1/2
    under add-remove, so that its noise multiplier is 2 sigma_b, and the gradients need
    ``(nu^-2 - (2 sigma_b)^-2)^(-1/2)``.

    Guarantees:
        Rounded up: both releases together cost at most what the plan with nu does. For bits in
        {0, 1}, of sensitivity 1, take ``joint_noise(nu, query_noise=sigma_b)``.

    Args:
        noise_multiplier: nu, what the plan is accounted with, positive and finite.
        bit_noise: sigma_b, the standard deviation of the noise on the sum of bits; above nu / 2.

    References:
        Andrew, Thakkar, McMahan and Ramaswamy 2021, theorem 1.

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.calibration.clipping_noise(1.0, bit_noise=5.0):.6f}")
        1.005038
    """
    nu = _validate.real("noise_multiplier", noise_multiplier, _POSITIVE)
    sigma = _validate.real("bit_noise", bit_noise, _POSITIVE)
    return _rest("bit_noise", sigma, nu, 2 * least_reading(sigma))


def _rest(name: str, given: float, noise_multiplier: float, other: Fraction) -> float:
    """Return the noise that is left beside that of the other query, rounded up, or raise."""
    own = largest_reading(noise_multiplier)
    if not other > own:
        needed = f"so large that something is left of {noise_multiplier!r} beside the other query"
        raise ParameterError(name, given, needed)
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        square = own**2 * other**2 / (other**2 - own**2)
        return evaluated_up(mp.sqrt(as_mpf(square)))


def max_error_quantile(sigma: float, coordinates: int, failure: float) -> float:
    """Return what the largest of K independent Gaussian errors exceeds with probability beta.

    ``sigma PhiInv((1 + (1 - beta)^(1/K)) / 2)``, the quantile of the L-infinity norm of N(0,
    sigma^2 I_K): the error of a Gaussian mechanism on K queries at once.

    Guarantees:
        Exact, rounded up: with probability at least 1 - beta no error is larger.

    Args:
        sigma: The standard deviation of each error, in [0, 1e150]: noise multiplier times
            sensitivity.
        coordinates: The number K of errors, an integer >= 1.
        failure: The probability beta of a larger error, in [1e-200, 1).

    References:
        The usual bound is ``max_error_union_bound``. Teaching material gives it as
        ``sigma sqrt(ln(K/beta))``, which lacks a factor sqrt(2) and a 2 inside the logarithm: with
        K = 10^4 and beta = 0.01 errors stay below it with probability 0.130, not 0.99.

    Example:
        >>> import hockeystick as hs
        >>> quantile = hs.calibration.max_error_quantile
        >>> print(f"{quantile(9.15345, coordinates=10_000, failure=0.01):.3f}")
        44.766
    """
    spread = _validate.real("sigma", sigma, _SIGMA)
    count = _validate.count("coordinates", coordinates, _COORDINATES)
    beta = _validate.real("failure", failure, _FAILURE)
    if spread == 0.0:
        return 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        share = -mp.expm1(mp.log1p(-as_mpf(least_reading(beta))) / count)
        return evaluated_up(mp.sqrt(2) * as_mpf(largest_reading(spread)) * _inverse_erfc(share))


def max_error_probability(error: float, sigma: float, coordinates: int) -> float:
    """Return with what probability none of K independent Gaussian errors is larger than t.

    ``(2 Phi(t/sigma) - 1)^K``.

    Guarantees:
        Exact, rounded down.

    Args:
        error: The error t, in [0, inf].
        sigma: The standard deviation of each error, in [0, 1e150].
        coordinates: The number K of errors, an integer >= 1.

    References:
        See ``max_error_quantile`` for what is often printed instead.

    Example:
        >>> import hockeystick as hs
        >>> print(
        ...     f"{hs.calibration.max_error_probability(34, sigma=9.15345, coordinates=10_000):.3f}"
        ... )
        0.130
    """
    limit = _validate.real("error", error, _ERROR)
    spread = _validate.real("sigma", sigma, _SIGMA)
    count = _validate.count("coordinates", coordinates, _COORDINATES)
    if spread == 0.0 or limit == math.inf:
        return 1.0
    if limit == 0.0:
        return 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        ratio = as_mpf(least_reading(limit)) / as_mpf(largest_reading(spread))
        place = min(ratio / mp.sqrt(2), mp.mpf(_MOST_DEVIATIONS))
        # Of a small place erf keeps the digits, of a large one erfc.
        log_one = mp.log(mp.erf(place)) if place < 1 else mp.log1p(-mp.erfc(place))
        return evaluated_down(mp.exp(count * log_one))


def max_error_union_bound(sigma: float, coordinates: int, failure: float) -> float:
    """Return a bound of the largest of K Gaussian errors, which need not be independent.

    ``sigma sqrt(2 ln(2 K / beta))``, from the tail bound ``P(|N| > t) <= 2 exp(-t^2/2)`` and a
    union over coordinates.

    Guarantees:
        An upper bound, rounded up: with probability at least 1 - beta no error is larger. It is
        more than ``max_error_quantile`` says of independent errors.

    Arguments are those of ``max_error_quantile``.

    References:
        Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014 (the idea).

    Example:
        >>> import hockeystick as hs
        >>> bound = hs.calibration.max_error_union_bound
        >>> print(f"{bound(9.15345, coordinates=10_000, failure=0.01):.2f}")
        49.31
    """
    spread = _validate.real("sigma", sigma, _SIGMA)
    count = _validate.count("coordinates", coordinates, _COORDINATES)
    beta = _validate.real("failure", failure, _FAILURE)
    if spread == 0.0:
        return 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        log_share = mp.log(2 * count / as_mpf(least_reading(beta)))
        return evaluated_up(as_mpf(largest_reading(spread)) * mp.sqrt(2 * log_share))


def _inverse_erfc(share: mpf) -> mpf:
    """Return the x at which ``erfc(x)`` is a share in (0, 1), proven to be above it."""
    from scipy.special import erfcinv

    from hockeystick.numerics.multiprecision import mp

    x = mp.mpf(float(erfcinv(float(share))))
    for _ in range(_STEPS):
        tail = mp.erfc(x)
        # The logarithm of the tail is concave, and nearly a parabola.
        x += mp.log(tail / share) * tail * mp.sqrt(mp.pi) / (2 * mp.exp(-x * x))
    slack = mp.mpf(10) ** -_SLACK
    while mp.erfc(x * (1 + slack)) > share:
        slack *= 10
    return x * (1 + slack)
