"""Reports that people randomize themselves, and what is estimated from them.

All are drawn exactly: a report is a function of random words, without a trace of floating point.
They are ``bits``, the operating system's by default; with ``rng``, a ``numpy.random.Generator``,
for simulation, the words are that generator's.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.local.reports import RAPPOR, Encoding, RandomizedResponse, UnaryEncoding
from hockeystick.numerics import largest_reading
from hockeystick.numerics.working_precision import integers_around, interval_bits
from hockeystick.release._values import category_array, of_kind
from hockeystick.release.samplers import Bits, bernoulli, secret_bits, uniform_integers
from hockeystick.release.samplers.bits import coins

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHARE: Final = Domain(symbol="h", low=0, high=1, typical=(0.001, 0.5))
USERS: Final = whole_numbers("n", 1, (100, 10**7))
_CATEGORIES: Final = Domain(symbol="K", low=1, high=10**9, typical=(2, 1000), whole=True)
_SIZE: Final = Domain(symbol="m", low=1, high=2**20, typical=(16, 1024), whole=True)
_COHORT: Final = Domain(symbol="cohort", low=0, high=2**32, typical=(0, 64), whole=True)
_FLIP: Final = Domain(symbol="f", low=0, high=1, typical=(0.1, 0.75))
_MOST_HASHES: Final = 10_000
_GUARD: Final = 64


def source_of(rng: np.random.Generator | None, bits: Bits) -> Bits:
    """Return where words come from."""
    if rng is None:
        return bits
    if not isinstance(rng, np.random.Generator):
        raise ParameterError("rng", rng, "a numpy.random.Generator, or None")
    return lambda count: rng.integers(2**64, size=count, dtype=np.uint64)


def _kept(epsilon: float, others: int, size: int, bits: Bits) -> NDArray[np.bool_]:
    """Return exact coins of probability ``1 / (1 + others exp(-epsilon))``."""
    from hockeystick.numerics.multiprecision import iv

    if epsilon == math.inf:
        return np.ones(size, dtype=np.bool_)

    def around(fine: int) -> tuple[int, int]:
        with interval_bits(fine + _GUARD):
            return integers_around(iv.mpf(2) ** fine / (1 + others * iv.exp(-iv.mpf(epsilon))))

    return coins(around, size, bits)


def _check_informative(epsilon: float) -> None:
    if epsilon == 0.0:
        raise ParameterError("epsilon", epsilon, "a number > 0 or inf, for reports that say more")


def _bit_rows(reports: Any) -> NDArray[np.bool_]:
    """Return at least one row of bits, or raise."""
    rows = np.asarray(reports)
    if rows.ndim != 2 or rows.dtype != np.bool_ or rows.shape[0] == 0:
        raise ParameterError("reports", reports, "an array of bits, one row for each report")
    return rows


def response_reports(
    mechanism: RandomizedResponse,
    values: NDArray[np.int64],
    rng: np.random.Generator | None = None,
    *,
    bits: Bits = secret_bits,
) -> NDArray[np.int64]:
    """Return one report by randomized response for each category, integers from 0 to K - 1.

    The category itself with probability ``e^epsilon / (e^epsilon + K - 1)``, else one of the
    others, all equally likely, exactly: the coin is compared with interval arithmetic around its
    probability until it is decided. Epsilon 0 reports any category; inf the category itself.

    References:
        Warner 1965; Kairouz, Oh and Viswanath, "Extremal Mechanisms for Local Differential
        Privacy", NeurIPS 2014.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> response = hs.RandomizedResponse(2.0, categories=4)
        >>> hs.release.response_reports(response, np.array([0, 1, 2, 3])).shape
        (4,)
    """
    of_kind(mechanism, RandomizedResponse)
    own, source = category_array("values", values, mechanism.categories), source_of(rng, bits)
    if mechanism.epsilon == math.inf:
        return own
    truly = _kept(mechanism.epsilon, mechanism.categories - 1, own.size, source)
    other = uniform_integers(mechanism.categories - 1, own.size, bits=source)
    other += other >= own
    return np.where(truly, own, other)


def response_frequencies(
    mechanism: RandomizedResponse, reports: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return unbiased estimates of the share of users in each of the K categories.

    ``h = ((c/n) (e^epsilon + K - 1) - 1) / (e^epsilon - 1)``, where c of n >= 1 reports show it.
    The mean over the reports' randomness is the share itself, for any data. Estimates add up to 1,
    and may lie outside [0, 1]. With epsilon 0 there is none.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> response = hs.RandomizedResponse(np.log(3), categories=2)
        >>> hs.release.response_frequencies(response, np.array([0, 0, 0, 1])).round(12).tolist()
        [1.0, 0.0]
    """
    of_kind(mechanism, RandomizedResponse)
    shown = category_array("reports", reports, mechanism.categories)
    if shown.size == 0:
        raise ParameterError("reports", reports, "at least one report")
    _check_informative(mechanism.epsilon)
    shares = np.bincount(shown, minlength=mechanism.categories) / shown.size
    small = math.exp(-mechanism.epsilon)
    inflated = shares * (1.0 + (mechanism.categories - 1) * small) - small
    return np.asarray(inflated / -math.expm1(-mechanism.epsilon), dtype=np.float64)


def response_error(mechanism: RandomizedResponse, users: int, share: float) -> float:
    """Return the mean squared error of a category's estimate, for fixed data.

        (e^epsilon + K - 2) / (n (e^epsilon - 1)^2) + h (K - 2) / (n (e^epsilon - 1))

    for n users, of whom the share h, in [0, 1], is in the category; exact to a few units in the
    last place. Epsilon 0 has an infinite error, inf none.

    References:
        Wang, Blocki, Li and Jha, "Locally Differentially Private Protocols for Frequency
        Estimation", USENIX Security 2017, equation 5. The first term alone, which is often quoted,
        is the error where ``h = 0`` or K = 2.

    Example:
        >>> import hockeystick as hs
        >>> response = hs.RandomizedResponse(1.0, categories=10)
        >>> f"{hs.release.response_error(response, users=1000, share=0.3):.9f}"
        '0.005026993'
    """
    of_kind(mechanism, RandomizedResponse)
    count = _validate.count("users", users, USERS)
    held = _validate.real("share", share, _SHARE)
    if mechanism.epsilon == 0.0:
        return math.inf
    others, small = mechanism.categories - 2, math.exp(-mechanism.epsilon)
    gap = -math.expm1(-mechanism.epsilon)
    return small * ((1.0 + others * small) / gap + held * others) / gap / count


def unary_reports(
    mechanism: UnaryEncoding,
    values: NDArray[np.int64],
    categories: int,
    rng: np.random.Generator | None = None,
    *,
    bits: Bits = secret_bits,
) -> NDArray[np.bool_]:
    """Return one row of K randomized bits for each category, an integer from 0 to K - 1.

    The bit of the user's category is 1 with probability p, each other one with probability q, by
    exact coins. Epsilon 0 reports fair coins.

    References:
        Wang, Blocki, Li and Jha 2017, section 4.3.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> encoding = hs.mechanisms.UnaryEncoding(2.0, "optimized")
        >>> hs.release.unary_reports(encoding, np.array([0, 2]), 3).shape
        (2, 3)
    """
    known, source = of_kind(mechanism, UnaryEncoding), source_of(rng, bits)
    columns = _validate.count("categories", categories, _CATEGORIES)
    own = category_array("values", values, columns)
    optimized = known.kind is Encoding.OPTIMIZED
    slope = known.epsilon if optimized else 0.5 * known.epsilon
    rows = ~_kept(slope, 1, own.size * columns, source).reshape(own.size, columns)
    place = np.arange(own.size), own
    rows[place] = bernoulli(0.5, own.size, bits=source) if optimized else ~rows[place]
    return rows


def unary_frequencies(mechanism: UnaryEncoding, reports: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return unbiased estimates of the share of users in each category.

    ``h = (c/n - q) / (p - q)``, where c of n >= 1 reports have the category's bit. The mean over
    the reports' randomness is the share itself, for any data. With epsilon 0 there is none.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> bits = np.array([[True, False], [True, False]])
        >>> hs.release.unary_frequencies(hs.mechanisms.UnaryEncoding(np.inf), bits).tolist()
        [1.0, 0.0]
    """
    epsilon = of_kind(mechanism, UnaryEncoding).epsilon
    shares = _bit_rows(reports).mean(axis=0)
    _check_informative(epsilon)
    optimized = mechanism.kind is Encoding.OPTIMIZED
    small = math.exp(-epsilon if optimized else -0.5 * epsilon)
    falsely = small / (1.0 + small)
    gap = 0.5 * math.tanh(0.5 * epsilon) if optimized else math.tanh(0.25 * epsilon)
    return np.asarray((shares - falsely) / gap, dtype=np.float64)


def unary_error(mechanism: UnaryEncoding, users: int, share: float) -> float:
    """Return the mean squared error of a category's estimate, for fixed data.

        (h p (1 - p) + (1 - h) q (1 - q)) / (n (p - q)^2)

    for n users, of whom the share h is in the category: ``e^(epsilon/2) / (n (e^(epsilon/2) -
    1)^2)`` for the symmetric encoding, whatever h, and ``4 e^epsilon / (n (e^epsilon - 1)^2) +
    h/n`` for the optimized one; exact to a few units in the last place. Epsilon 0 has an infinite
    error; inf has none (symmetric) or h/n (optimized).

    References:
        Wang, Blocki, Li and Jha 2017, equations 8 and 9, which leave out the term in h.

    Example:
        >>> import hockeystick as hs
        >>> encoding = hs.mechanisms.UnaryEncoding(1.0, "optimized")
        >>> f"{hs.release.unary_error(encoding, users=1000, share=0.3):.9f}"
        '0.003982694'
    """
    of_kind(mechanism, UnaryEncoding)
    count = _validate.count("users", users, USERS)
    held = _validate.real("share", share, _SHARE)
    if mechanism.epsilon == 0.0:
        return math.inf
    optimized = mechanism.kind is Encoding.OPTIMIZED
    slope = mechanism.epsilon if optimized else 0.5 * mechanism.epsilon
    gap = -math.expm1(-slope)
    common = math.exp(-slope) / gap / gap
    return (4.0 * common + held) / count if optimized else common / count


def rappor_filters(
    mechanism: RAPPOR, values: Any, size: int, *, cohort: int = 0
) -> NDArray[np.bool_]:
    """Return the Bloom filter of each value, a text or an integer: at most k of m bits are set.

    Bit ``BLAKE2b(value, salt = (j, cohort)) mod m`` is set for each j of the k hashes, the same on
    every machine; hashes that meet set fewer. No noise: a filter tells its value. An integer counts
    as the text of its digits. k is at most 10,000, m from 1 to 2^20, the cohort from 0 to 2^32.

    References:
        Erlingsson, Pihur and Korolova 2014, section 2, step 1.

    Example:
        >>> import hockeystick as hs
        >>> two = hs.mechanisms.RAPPOR(flip=0.5, hashes=2)
        >>> hs.release.rappor_filters(two, ["red", "blue"], 16).sum(axis=1).tolist()
        [2, 2]
    """
    hashes = of_kind(mechanism, RAPPOR).hashes
    if hashes > _MOST_HASHES:
        raise ParameterError("hashes", hashes, f"an integer up to {_MOST_HASHES:,}, to be hashed")
    width = _validate.count("size", size, _SIZE)
    group = _validate.count("cohort", cohort, _COHORT)
    texts = _texts(values)
    places = {text: _places(text, hashes, width, group) for text in set(texts)}
    filters = np.zeros((len(texts), width), dtype=np.bool_)
    for row, text in zip(filters, texts, strict=True):
        row[places[text]] = True
    return filters


def rappor_reports(
    mechanism: RAPPOR, values: Any, size: int, *, cohort: int = 0, bits: Bits = secret_bits
) -> NDArray[np.bool_]:
    """Return the permanent randomized response of each user: a Bloom filter of m bits with noise.

    Each bit of the value's filter (``rappor_filters``) is replaced by a fair coin with probability
    f, the larger of its float and its decimal reading, by exact coins. A report costs what the
    mechanism does. A user who reports one value again sends the same report, or ``rappor_again`` of
    it; noise that is drawn anew is another run of the mechanism.

    References:
        Erlingsson, Pihur and Korolova 2014, section 2, step 2.

    Example:
        >>> import hockeystick as hs
        >>> report = hs.mechanisms.RAPPOR(flip=0.5, hashes=2)
        >>> hs.release.rappor_reports(report, ["red", "blue", "red"], 16).shape
        (3, 16)
    """
    filters = rappor_filters(mechanism, values, size, cohort=cohort)
    return _flipped(filters, largest_reading(mechanism.flip), bits)


def rappor_once(mechanism: RAPPOR, flip: float) -> RAPPOR:
    """Return what one instantaneous report, ``rappor_again`` with flip g, tells by itself.

    Bits that are replaced by fair coins with probability f, and then with probability g, keep
    their value as those that are replaced with probability ``1 - (1 - f)(1 - g)``, rounded down, to
    the side of less privacy. Whoever sees any number of a user's instantaneous reports learns at
    most the permanent response, which costs what the mechanism does.

    References:
        Erlingsson, Pihur and Korolova 2014, theorem 2, with ``q = 1 - g/2`` and ``p = g/2``.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.rappor_once(hs.mechanisms.RAPPOR(flip=0.5, hashes=2), 0.5)
        RAPPOR(flip=0.75, hashes=2)
    """
    first = Fraction(of_kind(mechanism, RAPPOR).flip)
    second = Fraction(_validate.real("flip", flip, _FLIP))
    exact = 1 - (1 - first) * (1 - second)
    rounded = float(exact)
    if Fraction(rounded) > exact:
        rounded = math.nextafter(rounded, 0.0)
    return RAPPOR(rounded, mechanism.hashes)


def rappor_again(
    mechanism: RAPPOR, reports: NDArray[np.bool_], flip: float, *, bits: Bits = secret_bits
) -> NDArray[np.bool_]:
    """Return an instantaneous randomized response of each permanent one, a row of bits.

    Each bit is replaced by a fair coin with probability g, the flip, afresh in each call:
    post-processing, so that any number of these cost at most what the permanent reports do. One
    alone is a report of ``rappor_once(mechanism, flip)``, which is also what estimates take.

    References:
        Erlingsson, Pihur and Korolova 2014, section 2, step 3, where a 1 is reported as 1 with a
        probability q and a 0 with p: here ``p = 1 - q = g/2``.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.RAPPOR(flip=0.5, hashes=2)
        >>> kept = hs.release.rappor_reports(noise, ["red", "blue"], 16)
        >>> hs.release.rappor_again(noise, kept, 0.25).shape
        (2, 16)
    """
    of_kind(mechanism, RAPPOR)
    g = _validate.real("flip", flip, _FLIP)
    return _flipped(_bit_rows(reports), largest_reading(g), bits)


def rappor_shares(mechanism: RAPPOR, reports: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return unbiased estimates of the share of users whose filter has each bit.

    ``t = (c/n - f/2) / (1 - f)``, where c of n >= 1 reports have the bit; the mechanism of
    instantaneous reports is ``rappor_once(...)``. With flip 1 there is no estimate.

    References:
        Erlingsson, Pihur and Korolova 2014, section 4.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> exact = hs.mechanisms.RAPPOR(flip=0, hashes=1)
        >>> hs.release.rappor_shares(exact, np.array([[True, False], [True, True]])).tolist()
        [1.0, 0.5]
    """
    flip = of_kind(mechanism, RAPPOR).flip
    rows = _bit_rows(reports)
    if flip == 1.0:
        raise ParameterError("flip", 1.0, "a number below 1, for reports that say more")
    return np.asarray((rows.mean(axis=0) - 0.5 * flip) / (1.0 - flip), dtype=np.float64)


def rappor_frequencies(
    mechanism: RAPPOR, reports: NDArray[np.bool_], values: Any, *, cohort: int = 0
) -> NDArray[np.float64]:
    """Return estimates of the share of users who hold each of some values, by least squares.

    The h that brings ``X h`` nearest to ``rappor_shares``, X with a candidate's filter in each
    column; these have to be linearly independent, as those of more candidates than bits are not.
    Unbiased where every user holds one of the values; a user who holds another one counts for those
    whose bits are alike. Shares may be below 0 or above 1.

    References:
        Erlingsson, Pihur and Korolova 2014, section 4, which selects candidates by a lasso first.

    Example:
        >>> import hockeystick as hs
        >>> exact = hs.mechanisms.RAPPOR(flip=0, hashes=2)
        >>> reports = hs.release.rappor_reports(exact, ["red", "red", "blue", "red"], 16)
        >>> hs.release.rappor_frequencies(exact, reports, ["red", "blue"]).round(12).tolist()
        [0.75, 0.25]
    """
    shares = rappor_shares(mechanism, reports)
    design = _design(mechanism, values, shares.size, cohort)
    return np.asarray(np.linalg.lstsq(design, shares, rcond=None)[0], dtype=np.float64)


def rappor_error(
    mechanism: RAPPOR, users: int, values: Any, size: int, *, cohort: int = 0
) -> NDArray[np.float64]:
    """Return the standard error of each candidate's estimate from n reports, for fixed data.

        sqrt(((X' X)^-1)_vv (f/2) (1 - f/2) / (n (1 - f)^2))

    Exact but for round-off: every bit of a report has the variance ``(f/2)(1 - f/2)`` whatever the
    data, and all are independent. Single bits' estimates have it with 1 for the first factor. Flip
    1 has an infinite error, 0 has none.

    Example:
        >>> import hockeystick as hs
        >>> half = hs.mechanisms.RAPPOR(flip=0.5, hashes=2)
        >>> hs.release.rappor_error(half, 10_000, ["red", "blue"], 16).round(6).tolist()
        [0.007071, 0.007071]
    """
    flip = of_kind(mechanism, RAPPOR).flip
    count = _validate.count("users", users, USERS)
    design = _design(mechanism, values, _validate.count("size", size, _SIZE), cohort)
    if flip == 1.0:
        return np.full(design.shape[1], math.inf)
    bit = math.sqrt(0.5 * flip * (1.0 - 0.5 * flip) / count) / (1.0 - flip)
    inverse = np.linalg.pinv(design)
    return np.asarray(bit * np.sqrt(np.square(inverse).sum(axis=1)), dtype=np.float64)


def _design(mechanism: RAPPOR, values: Any, size: int, cohort: int) -> NDArray[np.float64]:
    """Return the candidates' filters as columns, or raise where they are dependent."""
    design = rappor_filters(mechanism, values, size, cohort=cohort).T.astype(np.float64)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise ParameterError(
            "values",
            f"{design.shape[1]} candidates with filters of {size} bits",
            "different candidates whose filters are linearly independent; use larger filters",
        )
    return design


def _flipped(rows: NDArray[np.bool_], flip: Fraction, bits: Bits) -> NDArray[np.bool_]:
    """Return bits each of which is replaced by a fair coin with some probability."""
    changed = bernoulli(min(flip, Fraction(1)) / 2, rows.size, bits=bits)
    return np.asarray(rows ^ changed.reshape(rows.shape), dtype=np.bool_)


def _texts(values: Any) -> list[str]:
    """Return texts, integers as their digits, or raise without showing them."""
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    plain = array.ndim == 1 and array.size > 0
    if not plain or not all(
        isinstance(one, str | int | np.integer) and not isinstance(one, bool) for one in array
    ):
        raise ParameterError("values", type(values).__name__, "a row of texts or of integers")
    return [str(one) for one in array]


def _places(text: str, hashes: int, size: int, cohort: int) -> list[int]:
    """Return the bits that a value sets."""
    encoded = text.encode("utf-8", "surrogatepass")
    salts = (index.to_bytes(8, "big") + cohort.to_bytes(8, "big") for index in range(hashes))
    digests = (hashlib.blake2b(encoded, digest_size=16, salt=salt).digest() for salt in salts)
    return [int.from_bytes(digest, "big") % size for digest in digests]
