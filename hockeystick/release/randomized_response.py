"""Reports by randomized response, and how often each category occurs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.local.randomized_response import RandomizedResponse
from hockeystick.numerics.working_precision import integers_around, interval_bits
from hockeystick.release._values import category_array, of_kind
from hockeystick.release.samplers import Bits, secret_bits, uniform_integers
from hockeystick.release.samplers.uniform import coins

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARE: Final = Domain(symbol="h", low=0, high=1, typical=(0.001, 0.5))
USERS: Final = whole_numbers("n", 1, (100, 10**7))
_GUARD: Final = 64


def response_reports(
    mechanism: RandomizedResponse,
    values: NDArray[np.int64],
    rng: np.random.Generator | None = None,
    *,
    bits: Bits = secret_bits,
) -> NDArray[np.int64]:
    """Return one report by randomized response for each category.

    The category itself with probability ``e^epsilon / (e^epsilon + K - 1)``, else one of the
    others, all equally likely.

    Guarantees:
        Without ``rng`` exact if the bits are ideal: the coin is compared with interval arithmetic
        around its probability until it is decided. With ``rng``, for simulation, up to the 53 bits
        of a uniform float: a probability is off by 2^-53 at most, and 0 where it is less.

    Edge cases:
        Epsilon 0 reports any category; inf the category itself.

    Args:
        mechanism: Epsilon and the number K of categories.
        values: The users' categories, integers from 0 to K - 1.
        rng: A generator of floats for simulation, instead of bits.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        As many reports, in the same order.

    Raises:
        ParameterError: If a value is no category.
        OSError: If the operating system has no random bits to give.

    References:
        Warner 1965; Kairouz, Oh and Viswanath, "Extremal Mechanisms for Local Differential
        Privacy", NeurIPS 2014.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> response = hs.RandomizedResponse(2.0, categories=4)
        >>> response_reports(response, np.array([0, 1, 2, 3])).shape
        (4,)
    """
    of_kind(mechanism, RandomizedResponse)
    own = category_array("values", values, mechanism.categories)
    if rng is None:
        return _exact_reports(mechanism, own, bits)
    truly = 1.0 / (1.0 + (mechanism.categories - 1) * math.exp(-mechanism.epsilon))
    other = rng.integers(0, mechanism.categories - 1, size=own.size)
    other += other >= own
    return np.where(rng.random(own.size) < truly, own, other)


def response_frequencies(
    mechanism: RandomizedResponse, reports: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return unbiased estimates of the share of users in each category.

    ``h = ((c/n) (e^epsilon + K - 1) - 1) / (e^epsilon - 1)``, where c of n reports show it.

    Guarantees:
        The mean over the reports' randomness is the share itself, for any data. Estimates add up
        to 1, and may lie outside [0, 1].

    Edge cases:
        Epsilon inf counts. With epsilon 0 there is no estimate.

    Args:
        mechanism: The mechanism that made the reports.
        reports: The reports, in any order, at least one.

    Returns:
        One estimate for each of the K categories.

    Raises:
        ParameterError: If a report is no category, there is none, or epsilon is 0.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> response = hs.RandomizedResponse(np.log(3), categories=2)
        >>> response_frequencies(response, np.array([0, 0, 0, 1])).round(12).tolist()
        [1.0, 0.0]
    """
    of_kind(mechanism, RandomizedResponse)
    shown = category_array("reports", reports, mechanism.categories)
    if shown.size == 0:
        raise ParameterError("reports", reports, "at least one report")
    _informative(mechanism.epsilon)
    shares = np.bincount(shown, minlength=mechanism.categories) / shown.size
    small = math.exp(-mechanism.epsilon)
    inflated = shares * (1.0 + (mechanism.categories - 1) * small) - small
    return np.asarray(inflated / -math.expm1(-mechanism.epsilon), dtype=np.float64)


def response_error(mechanism: RandomizedResponse, users: int, share: float) -> float:
    """Return the mean squared error of a category's estimate, for fixed data.

        (e^epsilon + K - 2) / (n (e^epsilon - 1)^2) + h (K - 2) / (n (e^epsilon - 1))

    Guarantees:
        Exact, to a few units in the last place: for data with the share h, over the reports'
        randomness.

    Edge cases:
        Epsilon 0 has an infinite error, inf none.

    Args:
        mechanism: Epsilon and the number K of categories.
        users: The number n of reports, an integer from 1 to 10^15.
        share: The share h of users in the category, in [0, 1].

    Returns:
        The variance, which is the mean squared error as the estimate is unbiased.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Wang, Blocki, Li and Jha, "Locally Differentially Private Protocols for Frequency
        Estimation", USENIX Security 2017, equation 5. The first term alone, which is often quoted,
        is the error where ``h = 0`` or K = 2.

    Example:
        >>> import hockeystick as hs
        >>> response = hs.RandomizedResponse(1.0, categories=10)
        >>> f"{response_error(response, users=1000, share=0.3):.9f}"
        '0.005026993'
    """
    of_kind(mechanism, RandomizedResponse)
    count = _validate.count("users", users, USERS)
    held = _validate.real("share", share, SHARE)
    if mechanism.epsilon == 0.0:
        return math.inf
    others, small = mechanism.categories - 2, math.exp(-mechanism.epsilon)
    gap = -math.expm1(-mechanism.epsilon)
    return small * ((1.0 + others * small) / gap + held * others) / gap / count


def _exact_reports(
    mechanism: RandomizedResponse, own: NDArray[np.int64], bits: Bits
) -> NDArray[np.int64]:
    """Return reports from exact coins."""
    if mechanism.epsilon == math.inf:
        return own
    truly = coins(lambda fine: _truthful(mechanism, fine), own.size, bits)
    other = uniform_integers(mechanism.categories - 1, own.size, bits=bits)
    other += other >= own
    return np.where(truly, own, other)


def _truthful(mechanism: RandomizedResponse, fine: int) -> tuple[int, int]:
    """Return integers around ``2^fine / (1 + (K - 1) exp(-epsilon))``."""
    from hockeystick.numerics.multiprecision import iv

    with interval_bits(fine + _GUARD):
        others = (mechanism.categories - 1) * iv.exp(-iv.mpf(mechanism.epsilon))
        return integers_around(iv.mpf(2) ** fine / (1 + others))


def _informative(epsilon: float) -> None:
    """Raise where reports say nothing."""
    if epsilon == 0.0:
        raise ParameterError("epsilon", epsilon, "a number > 0 or inf, for reports that say more")
