"""The noise of two queries of one batch: what is released of both costs as much as one release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.numerics.rounding import DIGITS, as_mpf, evaluated_up, float_up
from hockeystick.numerics.working_precision import working_digits

_POSITIVE: Final = Domain(
    symbol="nu", low=0, high=math.inf, low_open=True, high_open=True, typical=(0.5, 10)
)
_INFLATION: Final = Domain(
    symbol="r", low=1, high=math.inf, low_open=True, high_open=True, typical=(1.001, 1.5)
)


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
    of its sensitivity: with multipliers nu_g and nu_q both together cost what one query with
    nu costs where ``nu^-2 = nu_g^-2 + nu_q^-2``. So a plan is accounted with nu as its
    ``noise_multiplier`` while the gradients get nu_g, and the other query, on the same minibatch,
    nu_q.

    Guarantees:
        Both multipliers are rounded up, so that ``nu_g^-2 + nu_q^-2 <= nu^-2``. Exact for
        the joint Gaussian, sampled or not: one sampling covers both queries.

    Args:
        noise_multiplier: nu, what the plan is accounted with, positive and finite.
        query_noise: nu_q, above nu; or
        inflation: nu_g / nu, above 1: exactly one of the two.

    Returns:
        nu_g and nu_q, upper bounds where they are computed.

    Raises:
        ParameterError: If a parameter is outside its domain, or not exactly one is given.

    References:
        Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
        Clipping", NeurIPS 2021, theorem 1. A thesis that builds on it has nu_q in its text, but in
        its algorithm adds noise with nu_g to the query.

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
        Rounded up: both releases together cost at most what the plan with nu does. With bits
        in {0, 1} the sensitivity is 1, and ``joint_noise(nu, query_noise=sigma_b)`` is the right
        one.

    Args:
        noise_multiplier: nu, what the plan is accounted with, positive and finite.
        bit_noise: sigma_b, the standard deviation of the noise on the sum of bits; above nu / 2.

    Returns:
        The noise multiplier of the gradients, an upper bound.

    Raises:
        ParameterError: If a parameter is outside its domain, or the bits' noise leaves nothing.

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
