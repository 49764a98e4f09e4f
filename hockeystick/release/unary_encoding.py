"""Reports by unary encoding, and how often each category occurs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.local.unary_encoding import Encoding, UnaryEncoding
from hockeystick.release._values import category_array, of_kind
from hockeystick.release.randomized_response import SHARE, USERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CATEGORIES: Final = Domain(symbol="K", low=1, high=10**9, typical=(2, 1000), whole=True)


def unary_reports(
    mechanism: UnaryEncoding, values: NDArray[np.int64], categories: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return one row of randomized bits for each category.

    The bit of the user's category is 1 with probability p, each other one with probability q.

    Guarantees:
        The distribution is that of the mechanism up to the 53 bits of a uniform float: a
        probability is off by 2^-53 at most, and 0 where it is less.

    Edge cases:
        Epsilon 0 reports fair coins.

    Args:
        mechanism: Epsilon, and which p and q.
        values: The users' categories, integers from 0 to K - 1.
        categories: How many categories K there are, an integer from 1 to 10^9.
        rng: Where randomness comes from; for actual reports, one that nobody can predict.

    Returns:
        An array of K bits for each value, in rows.

    Raises:
        ParameterError: If it is another mechanism, or a value is no category.

    References:
        Wang, Blocki, Li and Jha 2017, section 4.3.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> encoding = hs.mechanisms.UnaryEncoding(2.0, "optimized")
        >>> unary_reports(encoding, np.array([0, 2]), 3, np.random.default_rng(7)).shape
        (2, 3)
    """
    truly, falsely = _probabilities(of_kind(mechanism, UnaryEncoding))
    columns = _validate.count("categories", categories, _CATEGORIES)
    own = category_array("values", values, columns)
    chance = np.full((own.size, columns), falsely)
    chance[np.arange(own.size), own] = truly
    return np.asarray(rng.random(chance.shape) < chance, dtype=np.bool_)


def unary_frequencies(mechanism: UnaryEncoding, reports: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return unbiased estimates of the share of users in each category.

    ``h = (c/n - q) / (p - q)``, where c of n reports have the category's bit.

    Guarantees:
        The mean over the reports' randomness is the share itself, for any data.

    Edge cases:
        With epsilon 0 there is no estimate.

    Args:
        mechanism: The mechanism that made the reports.
        reports: One row of bits for each report, at least one.

    Returns:
        One estimate for each category.

    Raises:
        ParameterError: If it is another mechanism, the reports are no such array, or epsilon is
            0.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> bits = np.array([[True, False], [True, False]])
        >>> unary_frequencies(hs.mechanisms.UnaryEncoding(np.inf), bits).tolist()
        [1.0, 0.0]
    """
    _, falsely = _probabilities(of_kind(mechanism, UnaryEncoding))
    bits = np.asarray(reports)
    if bits.ndim != 2 or bits.dtype != np.bool_ or bits.shape[0] == 0:
        raise ParameterError("reports", reports, "an array of bits, one row for each report")
    if mechanism.epsilon == 0.0:
        raise ParameterError("epsilon", 0.0, "a number > 0 or inf, for reports that say more")
    shares = bits.mean(axis=0)
    return np.asarray((shares - falsely) / _gap(mechanism), dtype=np.float64)


def unary_error(mechanism: UnaryEncoding, users: int, share: float) -> float:
    """Return the mean squared error of a category's estimate, for fixed data.

        (h p (1 - p) + (1 - h) q (1 - q)) / (n (p - q)^2)

    which is ``e^(epsilon/2) / (n (e^(epsilon/2) - 1)^2)`` for the symmetric encoding, whatever h,
    and ``4 e^epsilon / (n (e^epsilon - 1)^2) + h/n`` for the optimized one.

    Guarantees:
        Exact, to a few units in the last place: for data with the share h, over the reports'
        randomness.

    Edge cases:
        Epsilon 0 has an infinite error; inf has none (symmetric) or h/n (optimized).

    Args:
        mechanism: Epsilon, and which p and q.
        users: The number n of reports, an integer from 1 to 10^15.
        share: The share h of users in the category, in [0, 1].

    Returns:
        The variance, which is the mean squared error as the estimate is unbiased.

    Raises:
        ParameterError: If it is another mechanism, or a parameter is outside its domain.

    References:
        Wang, Blocki, Li and Jha 2017, equations 8 and 9, which leave out the term in h.

    Example:
        >>> import hockeystick as hs
        >>> encoding = hs.mechanisms.UnaryEncoding(1.0, "optimized")
        >>> f"{unary_error(encoding, users=1000, share=0.3):.9f}"
        '0.003982694'
    """
    of_kind(mechanism, UnaryEncoding)
    count = _validate.count("users", users, USERS)
    held = _validate.real("share", share, SHARE)
    if mechanism.epsilon == 0.0:
        return math.inf
    optimized = mechanism.kind is Encoding.OPTIMIZED
    slope = mechanism.epsilon if optimized else 0.5 * mechanism.epsilon
    gap = -math.expm1(-slope)
    common = math.exp(-slope) / gap / gap
    return (4.0 * common + held) / count if optimized else common / count


def _probabilities(mechanism: UnaryEncoding) -> tuple[float, float]:
    """Return p and q."""
    if mechanism.kind is Encoding.OPTIMIZED:
        return 0.5, _logistic(-mechanism.epsilon)
    return _logistic(0.5 * mechanism.epsilon), _logistic(-0.5 * mechanism.epsilon)


def _gap(mechanism: UnaryEncoding) -> float:
    """Return p - q."""
    if mechanism.kind is Encoding.OPTIMIZED:
        return 0.5 * math.tanh(0.5 * mechanism.epsilon)
    return math.tanh(0.25 * mechanism.epsilon)


def _logistic(x: float) -> float:
    """Return ``1 / (1 + e^-x)``."""
    small = math.exp(-abs(x))
    return 1.0 / (1.0 + small) if x >= 0.0 else small / (1.0 + small)
