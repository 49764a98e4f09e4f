"""Reports by RAPPOR, and how often each value occurs."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.local.unary_encoding import RAPPOR
from hockeystick.numerics import largest_reading
from hockeystick.release._values import of_kind
from hockeystick.release.randomized_response import USERS
from hockeystick.release.samplers import Bits, bernoulli, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIZE: Final = Domain(symbol="m", low=1, high=2**20, typical=(16, 1024), whole=True)
_COHORT: Final = Domain(symbol="cohort", low=0, high=2**32, typical=(0, 64), whole=True)
_FLIP: Final = Domain(symbol="f", low=0, high=1, typical=(0.1, 0.75))
_MOST_HASHES: Final = 10_000


def rappor_filters(
    mechanism: RAPPOR, values: Any, size: int, *, cohort: int = 0
) -> NDArray[np.bool_]:
    """Return the Bloom filter of each value: at most k of m bits are set.

    Bit ``BLAKE2b(value, salt = (j, cohort)) mod m`` is set for each j of the k hashes.

    Guarantees:
        The same on every machine. No noise: a filter tells its value.

    Edge cases:
        Hashes that meet set fewer than k bits. An integer counts as the text of its digits.

    Args:
        mechanism: Its number of hashes k, at most 10,000.
        values: A row of texts or integers.
        size: How many bits m a filter has, an integer from 1 to 2^20.
        cohort: Which k hash functions, an integer from 0 to 2^32.

    Returns:
        An array of m bits for each value, in rows.

    Raises:
        ParameterError: If it is another mechanism, or an argument is outside its domain.

    References:
        Erlingsson, Pihur and Korolova 2014, section 2, step 1.

    Example:
        >>> import hockeystick as hs
        >>> two = hs.mechanisms.RAPPOR(flip=0.5, hashes=2)
        >>> rappor_filters(two, ["red", "blue"], 16).sum(axis=1).tolist()
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
    """Return the permanent randomized response of each user: a Bloom filter with noise.

    Each bit of the value's filter is replaced by a fair coin with probability f.

    Guarantees:
        Exact if the bits are ideal: a bit changes with probability f/2, f the larger of its float
        and its decimal reading, by exact coins. A report costs what the mechanism does. A user who
        reports one value again sends the same report, or ``rappor_again`` of it; noise that is
        drawn anew is another run of the mechanism.

    Edge cases:
        Flip 1 reports fair coins, 0 the filter itself.

    Args:
        mechanism: The flip f and the number of hashes k.
        values: The users' values, a row of texts or integers.
        size: How many bits m a filter has, an integer from 1 to 2^20.
        cohort: Which k hash functions, an integer from 0 to 2^32.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of m bits for each value, in rows.

    Raises:
        ParameterError: If it is another mechanism, or an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Erlingsson, Pihur and Korolova 2014, section 2, step 2.

    Example:
        >>> import hockeystick as hs
        >>> report = hs.mechanisms.RAPPOR(flip=0.5, hashes=2)
        >>> rappor_reports(report, ["red", "blue", "red"], 16).shape
        (3, 16)
    """
    filters = rappor_filters(mechanism, values, size, cohort=cohort)
    return _flipped(filters, largest_reading(mechanism.flip), bits)


def rappor_once(mechanism: RAPPOR, flip: float) -> RAPPOR:
    """Return what one instantaneous report tells of the value by itself.

    Bits that are replaced by fair coins with probability f, and then with probability g, keep
    their value as those that are replaced with probability ``1 - (1 - f)(1 - g)``.

    Guarantees:
        Its flip is rounded down, to the side of less privacy. It is for whoever sees one
        instantaneous report of a user; whoever sees any number of them learns at most the permanent
        response, which costs what ``mechanism`` does.

    Args:
        mechanism: The permanent randomized response.
        flip: The probability g of ``rappor_again``.

    Raises:
        ParameterError: If it is another mechanism, or the flip is outside its domain.

    References:
        Erlingsson, Pihur and Korolova 2014, theorem 2, with ``q = 1 - g/2`` and ``p = g/2``.

    Example:
        >>> import hockeystick as hs
        >>> rappor_once(hs.mechanisms.RAPPOR(flip=0.5, hashes=2), 0.5)
        RAPPOR(flip=0.75, hashes=2)
    """
    first = Fraction(of_kind(mechanism, RAPPOR).flip)
    second = Fraction(_validate.real("flip", flip, _FLIP))
    exact = 1 - (1 - first) * (1 - second)
    rounded = float(exact)
    return RAPPOR(
        rounded if Fraction(rounded) <= exact else math.nextafter(rounded, 0.0), mechanism.hashes
    )


def rappor_again(
    mechanism: RAPPOR, reports: NDArray[np.bool_], flip: float, *, bits: Bits = secret_bits
) -> NDArray[np.bool_]:
    """Return an instantaneous randomized response of each permanent one.

    Each bit is replaced by a fair coin with probability g, afresh in each call.

    Guarantees:
        Post-processing: any number of these cost at most what the permanent reports do. One alone
        is a report of ``rappor_once(mechanism, flip)``, which is also what estimates take.

    Edge cases:
        Flip 0 repeats the reports, 1 tells nothing.

    Args:
        mechanism: The mechanism that made the permanent reports.
        reports: One row of bits for each user.
        flip: The probability g, in [0, 1].
        bits: As for ``rappor_reports``.

    Returns:
        An array of bits of the same shape.

    Raises:
        ParameterError: If it is another mechanism, or an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Erlingsson, Pihur and Korolova 2014, section 2, step 3, where a 1 is reported as 1 with a
        probability q and a 0 with p: here ``p = 1 - q = g/2``.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.RAPPOR(flip=0.5, hashes=2)
        >>> kept = rappor_reports(noise, ["red", "blue"], 16)
        >>> rappor_again(noise, kept, 0.25).shape
        (2, 16)
    """
    of_kind(mechanism, RAPPOR)
    g = _validate.real("flip", flip, _FLIP)
    return _flipped(_bits(reports), largest_reading(g), bits)


def rappor_shares(mechanism: RAPPOR, reports: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return unbiased estimates of the share of users whose filter has each bit.

    ``t = (c/n - f/2) / (1 - f)``, where c of n reports have the bit.

    Guarantees:
        The mean over the reports' randomness is the share itself, for any data.

    Edge cases:
        With flip 1 there is no estimate.

    Args:
        mechanism: The mechanism of the reports; ``rappor_once(...)`` for instantaneous ones.
        reports: One row of bits for each report, at least one.

    Returns:
        One estimate for each bit.

    Raises:
        ParameterError: If it is another mechanism, the reports are no such array, or flip is 1.

    References:
        Erlingsson, Pihur and Korolova 2014, section 4.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> exact = hs.mechanisms.RAPPOR(flip=0, hashes=1)
        >>> rappor_shares(exact, np.array([[True, False], [True, True]])).tolist()
        [1.0, 0.5]
    """
    flip = of_kind(mechanism, RAPPOR).flip
    rows = _bits(reports)
    if flip == 1.0:
        raise ParameterError("flip", 1.0, "a number below 1, for reports that say more")
    return np.asarray((rows.mean(axis=0) - 0.5 * flip) / (1.0 - flip), dtype=np.float64)


def rappor_frequencies(
    mechanism: RAPPOR, reports: NDArray[np.bool_], values: Any, *, cohort: int = 0
) -> NDArray[np.float64]:
    """Return estimates of the share of users who hold each of some values, by least squares.

    The h that brings ``X h`` nearest to the shares of the bits, X with a filter in each column.

    Guarantees:
        Unbiased over the reports' randomness where every user holds one of the values. A user who
        holds another one counts for those whose bits are alike.

    Edge cases:
        With flip 1 there is no estimate. Shares may be below 0 or above 1.

    Args:
        mechanism: The mechanism of the reports; ``rappor_once(...)`` for instantaneous ones.
        reports: One row of m bits for each report, at least one.
        values: The candidates, a row of different texts or integers.
        cohort: Which k hash functions.

    Returns:
        One estimate for each candidate.

    Raises:
        ParameterError: If an argument is outside its domain, or the candidates' filters are
            linearly dependent, as those of more candidates than bits are.

    References:
        Erlingsson, Pihur and Korolova 2014, section 4, which selects candidates by a lasso first.

    Example:
        >>> import hockeystick as hs
        >>> exact = hs.mechanisms.RAPPOR(flip=0, hashes=2)
        >>> reports = rappor_reports(exact, ["red", "red", "blue", "red"], 16)
        >>> rappor_frequencies(exact, reports, ["red", "blue"]).round(12).tolist()
        [0.75, 0.25]
    """
    shares = rappor_shares(mechanism, reports)
    design = _design(mechanism, values, shares.size, cohort)
    return np.asarray(np.linalg.lstsq(design, shares, rcond=None)[0], dtype=np.float64)


def rappor_error(
    mechanism: RAPPOR, users: int, values: Any, size: int, *, cohort: int = 0
) -> NDArray[np.float64]:
    """Return the standard error of each candidate's estimate, for fixed data.

        sqrt(((X' X)^-1)_vv (f/2) (1 - f/2) / (n (1 - f)^2))

    Guarantees:
        Exact but for round-off: every bit of a report has the variance ``(f/2)(1 - f/2)``
        whatever the data, and all are independent. The estimates of single bits have it with 1
        for the first factor.

    Edge cases:
        Flip 1 has an infinite error, 0 has none.

    Args:
        mechanism: The mechanism of the reports; ``rappor_once(...)`` for instantaneous ones.
        users: The number n of reports, an integer from 1 to 10^15.
        values: The candidates, a row of different texts or integers.
        size: How many bits m a filter has, an integer from 1 to 2^20.
        cohort: Which k hash functions.

    Returns:
        One standard error for each candidate.

    Raises:
        ParameterError: As ``rappor_frequencies``.

    Example:
        >>> import hockeystick as hs
        >>> half = hs.mechanisms.RAPPOR(flip=0.5, hashes=2)
        >>> rappor_error(half, 10_000, ["red", "blue"], 16).round(6).tolist()
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


def _bits(reports: Any) -> NDArray[np.bool_]:
    """Return at least one row of bits, or raise."""
    rows = np.asarray(reports)
    if rows.ndim != 2 or rows.dtype != np.bool_ or rows.shape[0] == 0:
        raise ParameterError("reports", reports, "an array of bits, one row for each report")
    return rows


def _texts(values: Any) -> list[str]:
    """Return texts, integers as their digits, or raise without showing them."""
    allowed = "a row of texts or of integers"
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    plain = array.ndim == 1 and array.size > 0
    if not plain or not all(
        isinstance(one, str | int | np.integer) and not isinstance(one, bool) for one in array
    ):
        raise ParameterError("values", type(values).__name__, allowed)
    return [str(one) for one in array]


def _places(text: str, hashes: int, size: int, cohort: int) -> list[int]:
    """Return the bits that a value sets."""
    encoded = text.encode("utf-8", "surrogatepass")
    salts = (index.to_bytes(8, "big") + cohort.to_bytes(8, "big") for index in range(hashes))
    digests = (hashlib.blake2b(encoded, digest_size=16, salt=salt).digest() for salt in salts)
    return [int.from_bytes(digest, "big") % size for digest in digests]
