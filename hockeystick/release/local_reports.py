"""Reports that people randomize themselves, and what is estimated from them.

All are drawn exactly, from ``bits``; with ``rng``, a ``numpy.random.Generator`` for simulation,
from that generator's words. ``users`` is the number n of reports, ``share`` the h of users who hold
a category, and c of n >= 1 reports show it. Estimates of shares are unbiased for any data, and may
lie outside [0, 1]; errors are for fixed data, to a few units in the last place. Reports that say
nothing have no estimate, and an infinite error. (Warner 1965; Wang, Blocki, Li and Jha, USENIX
Security 2017, section 4, whose equations 5, 8 and 9 leave out the terms in h; RAPPOR: Erlingsson,
Pihur and Korolova, CCS 2014.)
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Gaussian, Laplace, Mechanism
from hockeystick.mechanisms.local.reports import RAPPOR, Encoding, RandomizedResponse, UnaryEncoding
from hockeystick.numerics import largest_reading
from hockeystick.numerics.multiprecision import integers_around, interval_bits, iv
from hockeystick.numerics.rounding import float_down
from hockeystick.release import _values, samplers
from hockeystick.release._values import Grid, grid_of, of_kind, released, root_up, shaped
from hockeystick.release.samplers import Bits, bernoulli, secret_bits
from hockeystick.release.samplers.bits import POSITIVE, Bools, Floats, Integers, words_from

Rng = np.random.Generator | None
_SHARE: Final = Domain(symbol="h", low=0, high=1, typical=(0.001, 0.5))
_CATEGORIES: Final = Domain(symbol="K", low=1, high=10**9, typical=(2, 1000), whole=True)
_SIZE: Final = Domain(symbol="m", low=1, high=2**20, typical=(16, 1024), whole=True)
_COHORT: Final = Domain(symbol="cohort", low=0, high=2**32, typical=(0, 64), whole=True)
_MOST_HASHES: Final = 10_000
_GUARD: Final = 64
_EPSILON: Final = Domain(symbol="eps", low=0, high=math.inf, low_open=True, typical=(0.1, 8))
_END: Final = Domain("a", -1e150, 1e150, (-1, 1), low_open=True, high_open=True)
_NORM: Final = Domain(symbol="C", low=1e-100, high=1e100, typical=(0.01, 100))
_ENTRIES: Final = Domain(symbol="d", low=1, high=2**18, typical=(1, 1000), whole=True)
_ANY: Final = 1.7976931348623157e308
# What a clipped vector's norm may be above the clipping norm, by round-off: 2^18 terms and some.
_CLIPPED: Final = 1 + Fraction(1, 2**30)


def source_of(rng: Rng, bits: Bits) -> Bits:
    """Return where words come from."""
    if rng is None:
        return bits
    if not isinstance(rng, np.random.Generator):
        raise ParameterError("rng", rng, "a numpy.random.Generator, or None")
    return lambda count: rng.integers(2**64, size=count, dtype=np.uint64)


class LocalReports(NamedTuple):
    """What shows with probability p for a user who holds a category, and q for one who does not.

    ``gap`` is p - q. With ``s = e^-slope`` K categories have 1 and s over ``1 + (K - 1) s``.
    """

    p: float
    not_p: float
    q: float
    gap: float

    @classmethod
    def of(cls, mechanism: RandomizedResponse | UnaryEncoding | RAPPOR) -> LocalReports:
        """Return what a mechanism's reports show."""
        if isinstance(mechanism, RAPPOR):
            half = 0.5 * mechanism.flip
            return cls(1.0 - half, half, half, 1.0 - mechanism.flip)
        others = mechanism.categories - 1 if isinstance(mechanism, RandomizedResponse) else 1
        small, gap = math.exp(-_slope(mechanism)), -math.expm1(-_slope(mechanism))
        whole = 1.0 + others * small
        if isinstance(mechanism, UnaryEncoding) and mechanism.kind is Encoding.OPTIMIZED:
            return cls(0.5, 0.5, small / whole, 0.5 * gap / whole)
        return cls(1.0 / whole, others * small / whole, small / whole, gap / whole)

    def frequencies(self, shown: Floats) -> Floats:
        """Return ``h = (c/n - q) / (p - q)``, or raise."""
        if self.gap == 0.0:
            raise ParameterError("mechanism", "noise alone", "one whose reports say something")
        return np.asarray((shown - self.q) / self.gap)

    def error(self, users: int, share: float) -> float:
        """Return ``(h p (1 - p) + (1 - h) q (1 - q)) / (n (p - q)^2)``, inf where p is q."""
        count = _validate.count("users", users, POSITIVE)
        held = _validate.real("share", share, _SHARE)
        spread = held * self.p * self.not_p + (1.0 - held) * self.q * (1.0 - self.q)
        return spread / self.gap / self.gap / count if self.gap else math.inf


def _slope(mechanism: RandomizedResponse | UnaryEncoding) -> float:
    """Return the epsilon of a coin: half of the whole where two of them change."""
    halved = isinstance(mechanism, UnaryEncoding) and mechanism.kind is Encoding.SYMMETRIC
    return 0.5 * mechanism.epsilon if halved else mechanism.epsilon


def _kept(epsilon: float, others: int, size: int, bits: Bits) -> Bools:
    """Return exact coins of probability ``1 / (1 + others exp(-epsilon))``."""
    if epsilon == math.inf:
        return np.ones(size, dtype=np.bool_)

    def around(fine: int) -> tuple[int, int]:
        with interval_bits(fine + _GUARD):
            return integers_around(iv.mpf(2) ** fine / (1 + others * iv.exp(-iv.mpf(epsilon))))

    return samplers.bits.coins(around, size, bits)


def _bit_rows(reports: Any) -> Bools:
    rows = np.asarray(reports)
    if rows.ndim != 2 or rows.dtype != np.bool_ or rows.shape[0] == 0:
        raise ParameterError("reports", reports, "an array of bits, one row for each report")
    return rows


def response_reports(
    mechanism: RandomizedResponse, values: Any, rng: Rng = None, *, bits: Bits = secret_bits
) -> Integers:
    """Return one report by randomized response for each category, an integer from 0 to K - 1.

    The category with probability ``e^epsilon / (e^epsilon + K - 1)``, else any other one alike.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.response_reports(hs.RandomizedResponse(1, categories=4), [0, 3, 1, 1]).shape
        (4,)
    """
    of_kind(mechanism, RandomizedResponse)
    own = _values.category_array("values", values, mechanism.categories)
    source = source_of(rng, bits)
    if mechanism.epsilon == math.inf:
        return own
    truly = _kept(mechanism.epsilon, mechanism.categories - 1, own.size, source)
    other = samplers.uniform_integers(mechanism.categories - 1, own.size, bits=source)
    other += other >= own
    return np.where(truly, own, other)


def response_frequencies(mechanism: RandomizedResponse, reports: Any) -> Floats:
    """Return estimates of the shares of the K categories, which add up to 1.

    ``h = ((c/n) (e^epsilon + K - 1) - 1) / (e^epsilon - 1)``.

    Example:
        >>> import hockeystick as hs
        >>> coin = hs.RandomizedResponse(1, categories=2)
        >>> hs.release.response_frequencies(coin, [0, 0, 0, 1]).round(3)
        array([ 1.041, -0.041])
    """
    count = of_kind(mechanism, RandomizedResponse).categories
    shown = _values.category_array("reports", reports, count)
    if shown.size == 0:
        raise ParameterError("reports", reports, "at least one report")
    return LocalReports.of(mechanism).frequencies(np.bincount(shown, minlength=count) / shown.size)


def response_error(mechanism: RandomizedResponse, users: int, share: float) -> float:
    """Return ``(e^epsilon + K - 2) / (n (e^epsilon - 1)^2) + h (K - 2) / (n (e^epsilon - 1))``.

    The mean squared error of a category's estimate.

    Example:
        >>> import hockeystick as hs
        >>> f"{hs.release.response_error(hs.RandomizedResponse(1, 4), users=1000, share=0.25):.6f}"
        '0.001889'
    """
    return LocalReports.of(of_kind(mechanism, RandomizedResponse)).error(users, share)


def unary_reports(
    mechanism: UnaryEncoding,
    values: Any,
    categories: int,
    rng: Rng = None,
    *,
    bits: Bits = secret_bits,
) -> Bools:
    """Return one row of K randomized bits for each category, an integer from 0 to K - 1.

    The bit of the user's category is 1 with probability p, each other one with probability q.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.unary_reports(hs.mechanisms.UnaryEncoding(2), [0, 2, 1], categories=3).shape
        (3, 3)
    """
    known, source = of_kind(mechanism, UnaryEncoding), source_of(rng, bits)
    columns = _validate.count("categories", categories, _CATEGORIES)
    own = _values.category_array("values", values, columns)
    rows = ~_kept(_slope(known), 1, own.size * columns, source).reshape(own.size, columns)
    place, fair = (np.arange(own.size), own), known.kind is Encoding.OPTIMIZED
    rows[place] = bernoulli(0.5, own.size, bits=source) if fair else ~rows[place]
    return rows


def unary_frequencies(mechanism: UnaryEncoding, reports: Any) -> Floats:
    """Return ``h = (c/n - q) / (p - q)`` for each category.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.unary_frequencies(hs.mechanisms.UnaryEncoding(4), [[True, False]]).round(3)
        array([ 1.157, -0.157])
    """
    own = LocalReports.of(of_kind(mechanism, UnaryEncoding))
    return own.frequencies(_bit_rows(reports).mean(axis=0))


def unary_error(mechanism: UnaryEncoding, users: int, share: float) -> float:
    """Return the mean squared error of a category's estimate.

    ``e^(epsilon/2) / (n (e^(epsilon/2) - 1)^2)`` for the symmetric encoding, and
    ``4 e^epsilon / (n (e^epsilon - 1)^2) + h/n`` for the optimized one.

    Example:
        >>> import hockeystick as hs
        >>> f"{hs.release.unary_error(hs.mechanisms.UnaryEncoding(4), users=100, share=0.5):.6f}"
        '0.001810'
    """
    return LocalReports.of(of_kind(mechanism, UnaryEncoding)).error(users, share)


def rappor_filters(mechanism: RAPPOR, values: Any, size: int, *, cohort: int = 0) -> Bools:
    """Return the Bloom filter of each value, a text or an integer: at most k of m bits are set.

    Bit ``BLAKE2b(value, salt = (j, cohort)) mod m`` for each j of the k <= 10,000 hashes, without
    noise; an integer counts as its digits. m is from 1 to 2^20, the cohort from 0 to 2^32.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.rappor_filters(hs.mechanisms.RAPPOR(0.5, 2), ["cat", "dog"], size=16).shape
        (2, 16)
    """
    hashes = of_kind(mechanism, RAPPOR).hashes
    if hashes > _MOST_HASHES:
        raise ParameterError("hashes", hashes, f"at most {_MOST_HASHES:,} where values are hashed")
    width = _validate.count("size", size, _SIZE)
    group = _validate.count("cohort", cohort, _COHORT)
    array = np.array(values, dtype=object)
    kinds = {type(one) for one in array} if array.ndim == 1 else set()
    if not kinds or not all(issubclass(kind, str | int) and kind is not bool for kind in kinds):
        raise ParameterError("values", type(values).__name__, "a row of texts or of integers")
    texts = [str(one) for one in array]
    places = {text: _places(text, hashes, width, group) for text in set(texts)}
    filters = np.zeros((len(texts), width), dtype=np.bool_)
    for row, text in zip(filters, texts, strict=True):
        row[places[text]] = True
    return filters


def rappor_reports(
    mechanism: RAPPOR, values: Any, size: int, *, cohort: int = 0, bits: Bits = secret_bits
) -> Bools:
    """Return the permanent randomized response of each user: a Bloom filter of m bits with noise.

    Each bit of ``rappor_filters`` is replaced by a fair coin with probability f. A user reports one
    value again by the same report, or ``rappor_again`` of it; fresh noise is another run.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.rappor_reports(hs.mechanisms.RAPPOR(0.5, 2), ["cat", "dog"], size=16).shape
        (2, 16)
    """
    filters = rappor_filters(mechanism, values, size, cohort=cohort)
    return _flipped(filters, largest_reading(mechanism.flip), bits)


def rappor_once(mechanism: RAPPOR, flip: float) -> RAPPOR:
    """Return what one instantaneous report, ``rappor_again`` with flip g, tells by itself.

    Its flip is ``1 - (1 - f)(1 - g)``, rounded down, to the side of less privacy (theorem 2).

    Example:
        >>> import hockeystick as hs
        >>> print(hs.release.rappor_once(hs.mechanisms.RAPPOR(0.5, 2), flip=0.5))
        RAPPOR (flip 0.75, 2 hashes)
    """
    first = Fraction(of_kind(mechanism, RAPPOR).flip)
    second = Fraction(_validate.real("flip", flip, _SHARE))
    return RAPPOR(float_down(1 - (1 - first) * (1 - second)), mechanism.hashes)


def rappor_again(
    mechanism: RAPPOR, reports: Any, flip: float, *, bits: Bits = secret_bits
) -> Bools:
    """Return an instantaneous randomized response of each permanent one, a row of bits.

    Each bit is replaced by a fair coin with probability g, the flip, afresh in each call. All tell
    at most the permanent one, one alone is ``rappor_once(mechanism, flip)``, as estimates take it.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.rappor_again(hs.mechanisms.RAPPOR(0.5, 2), [[True, False]], flip=0.5).shape
        (1, 2)
    """
    of_kind(mechanism, RAPPOR)
    g = largest_reading(_validate.real("flip", flip, _SHARE))
    return _flipped(_bit_rows(reports), g, bits)


def rappor_shares(mechanism: RAPPOR, reports: Any) -> Floats:
    """Return ``(c/n - f/2) / (1 - f)`` for each bit.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.rappor_shares(hs.mechanisms.RAPPOR(0.5, 2), [[True, False]]).tolist()
        [1.5, -0.5]
    """
    own = LocalReports.of(of_kind(mechanism, RAPPOR))
    return own.frequencies(_bit_rows(reports).mean(axis=0))


def rappor_frequencies(mechanism: RAPPOR, reports: Any, values: Any, *, cohort: int = 0) -> Floats:
    """Return estimates of the share of users who hold each of some values, by least squares.

    ``X h`` is nearest to ``rappor_shares``; X's columns are independent: the candidates' filters.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.RAPPOR(flip=0.25, hashes=2)
        >>> reports = hs.release.rappor_reports(noise, ["cat", "dog", "cat", "cat"] * 9, size=16)
        >>> hs.release.rappor_frequencies(noise, reports, ["cat", "dog", "emu"]).shape
        (3,)
    """
    shares = rappor_shares(mechanism, reports)
    design = _design(mechanism, values, shares.size, cohort)
    return np.asarray(np.linalg.lstsq(design, shares, rcond=None)[0], dtype=np.float64)


def rappor_error(
    mechanism: RAPPOR, users: int, values: Any, size: int, *, cohort: int = 0
) -> Floats:
    """Return the standard errors, ``sqrt(((X' X)^-1)_vv (f/2) (1 - f/2) / (n (1 - f)^2))``.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.RAPPOR(flip=0.5, hashes=2)
        >>> hs.release.rappor_error(noise, users=1000, values=["cat", "dog"], size=16).round(4)
        array([0.0194, 0.0194])
    """
    bit = LocalReports.of(of_kind(mechanism, RAPPOR)).error(users, 0.0)
    design = _design(mechanism, values, _validate.count("size", size, _SIZE), cohort)
    lengths = np.linalg.norm(np.linalg.pinv(design), axis=1)
    return np.asarray(math.sqrt(bit) * lengths, dtype=np.float64)


def _design(mechanism: RAPPOR, values: Any, size: int, cohort: int) -> Floats:
    design = rappor_filters(mechanism, values, size, cohort=cohort).T.astype(np.float64)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        allowed = "different candidates whose filters are linearly independent"
        raise ParameterError("values", f"{design.shape[1]} with filters of {size} bits", allowed)
    return design


def _flipped(rows: Bools, flip: Fraction, bits: Bits) -> Bools:
    changed = bernoulli(min(flip, Fraction(1)) / 2, rows.size, bits=bits)
    return np.asarray(rows ^ changed.reshape(rows.shape), dtype=np.bool_)


def _places(text: str, hashes: int, size: int, cohort: int) -> list[int]:
    encoded = text.encode("utf-8", "surrogatepass")
    salts = (index.to_bytes(8, "big") + cohort.to_bytes(8, "big") for index in range(hashes))
    digests = (hashlib.blake2b(encoded, digest_size=16, salt=salt).digest() for salt in salts)
    return [int.from_bytes(digest, "big") % size for digest in digests]


@dataclass(frozen=True, slots=True)
class LocalMean(ABC):
    """How each of n users reports a number in [low, high], epsilon-DP, and what their mean is.

    Epsilon is in (0, inf]; w is the width of the interval. Reports are unbiased for their values.
    """

    epsilon: float
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _values.set_numbers(self, epsilon=_EPSILON, low=_END, high=_END)
        if not self.low < self.high:
            raise ParameterError("high", self.high, f"a number > low, which is {self.low:g}")

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What one report is, for accounting."""

    def reports(self, values: Any, rng: Rng = None, *, bits: Bits = secret_bits) -> Floats:
        """Return one report for each value."""
        return self._reports(self._checked(values), source_of(rng, bits))

    @abstractmethod
    def _reports(self, values: Floats, bits: Bits) -> Floats: ...

    @abstractmethod
    def error(self, values: Any) -> float:
        """Return the mean squared error of the estimate, for these data."""

    def estimate(self, reports: Any) -> float:
        """Return the mean of one or more reports."""
        return float(_values.real_array("reports", reports, -_ANY, _ANY).mean())

    def _checked(self, values: Any) -> Floats:
        return _values.real_array("values", values, self.low, self.high)

    def _scaled(self, values: Any) -> Floats:
        """Return numbers scaled to [-1, 1], the ends exactly: beyond them bits would tell more."""
        known = self._checked(values)
        both = (known - self.low) - (self.high - known)
        return np.asarray(np.clip(both / (self.high - self.low), -1.0, 1.0), dtype=np.float64)


@final
class OneBitMean(LocalMean):
    """A number as one bit: one of two values, the likelier the nearer its end is.

    With ``y`` the number scaled to [-1, 1] and ``tau = tanh(epsilon/2)``, the report is ``+1/tau``
    with probability ``(1 + tau y) / 2``, else ``-1/tau``, scaled back: an end drawn at random, and
    reported by binary randomized response. The mean squared error is ``(w/2)^2 (1/tau^2 - mean of
    y^2) / n`` (Duchi, Jordan and Wainwright, FOCS 2013).

    Example:
        >>> import hockeystick as hs
        >>> mean = hs.release.OneBitMean(epsilon=1.0, low=0.0, high=10.0)
        >>> abs(mean.estimate(mean.reports([3.0] * 10_000)) - 3.0) < 1.5
        True
    """

    __slots__ = ()

    @property
    def mechanism(self) -> RandomizedResponse:
        return RandomizedResponse(self.epsilon, 2)

    def _reports(self, values: Floats, bits: Bits) -> Floats:
        # 53 bits of a word against a multiple of 2^-53.
        steps = np.rint(np.ldexp(0.5 + 0.5 * self._scaled(values), 53)).astype(np.uint64)
        ends = (words_from(bits, steps.size) >> np.uint64(11) < steps).astype(np.int64)
        heads = response_reports(self.mechanism, ends, bits=bits)
        half = 0.5 * (self.high - self.low)
        away = (2 * heads - 1) * half / math.tanh(0.5 * self.epsilon)
        return np.asarray(self.low + half + away, dtype=np.float64)

    def error(self, values: Any) -> float:
        own, half = self._scaled(values), 0.5 * (self.high - self.low)
        # 1/tau^2 - 1 is 1/sinh^2, which keeps its digits.
        gap = -math.expm1(-self.epsilon)
        excess = 4.0 * math.exp(-self.epsilon) / gap / gap
        return float(half**2 * (excess + ((1.0 - own) * (1.0 + own)).mean()) / own.size)


@final
class LaplaceMean(LocalMean):
    """A number with Laplace noise of scale ``(high - low) / epsilon``, as ``laplace`` draws it.

    Its mean squared error is ``2 (w / epsilon)^2 / n``, and up to 2^-18 of it more by the grid of
    the noise. Epsilon inf reports the number itself.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.LaplaceMean(epsilon=1.0, low=0.0, high=10.0).reports([3.0, 7.5]).shape
        (2,)
    """

    __slots__ = ()

    @property
    def mechanism(self) -> Laplace:
        return Laplace(0.0 if self.epsilon == math.inf else 1.0 / self.epsilon)

    def _reports(self, values: Floats, bits: Bits) -> Floats:
        scale = self.mechanism.scale
        if scale == 0.0:
            return values
        grid = grid_of(self.mechanism, scale, self.high - self.low, 1)
        away = values - self.low
        return self.low + released(grid, away, self.mechanism, None, samplers.rounded_laplace, bits)

    def error(self, values: Any) -> float:
        scale = (self.high - self.low) / self.epsilon
        return 2.0 * scale * scale / self._checked(values).size


def gaussian_reports(
    mechanism: Gaussian, values: Any, norm: float, *, bits: Bits = secret_bits
) -> Floats:
    """Return each user's vector, clipped to a norm, plus Gaussian noise of the user's own.

    ``v min(1, C/||v||) + N(0, (2 C z)^2 I)``, with C the public norm, from 1e-100 to 1e100, and z
    the finite noise multiplier in units of 2C, how far two values of one user may be apart. Values
    are a number for each user, or a row of up to 2^18. Each costs its user what the mechanism does,
    under replace-one: ``gaussian`` with the sensitivity ``2 C (1 + 2^-30)``, which covers the
    round-off of clipping (Kasiviswanathan et al., FOCS 2008).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.gaussian_reports(hs.Gaussian(2), [[3.0, 4.0], [0.5, 0.0]], norm=1).shape
        (2, 2)
    """
    known = of_kind(mechanism, Gaussian)
    given = _one_or_two_axes("values", values)
    rows = given.reshape(given.shape[0], -1)
    grid = _gaussian_grid(known, norm, rows.shape[1])
    answer, draw = _clipped(rows, float(norm)), samplers.rounded_gaussian
    return released(grid, answer, known, None, draw, bits).reshape(given.shape)


def gaussian_mean(mechanism: Gaussian, reports: Any) -> Floats:
    """Return the mean of the reports, entry by entry: unbiased for that of the clipped vectors.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.gaussian_mean(hs.Gaussian(2), [[1.5, -2.0], [3.5, 1.0]])
        array([ 2.5, -0.5])
    """
    of_kind(mechanism, Gaussian)
    return np.asarray(_one_or_two_axes("reports", reports).mean(axis=0), np.float64)


def gaussian_error(mechanism: Gaussian, users: int, norm: float, *, entries: int = 1) -> float:
    """Return the standard error of each entry of the mean, ``2 C z / sqrt(n)``.

    Of the noise that is drawn, which is larger by at most ``2^-15``.

    Example:
        >>> import hockeystick as hs
        >>> f"{hs.release.gaussian_error(hs.Gaussian(2), users=10_000, norm=1):.4f}"
        '0.0400'
    """
    known = of_kind(mechanism, Gaussian)
    count = _validate.count("users", users, POSITIVE)
    grid = _gaussian_grid(known, norm, entries)
    return math.ldexp(grid.scale, grid.exponent) / math.sqrt(count)


def _one_or_two_axes(name: str, values: Any) -> Floats:
    allowed = "a row of one or more numbers, or one row of them for each user"
    return shaped(name, values, allowed, lambda given: given.ndim in (1, 2) and given.size)


def _gaussian_grid(mechanism: Gaussian, norm: float, entries: int) -> Grid:
    length = _validate.count("entries", entries, _ENTRIES)
    reach = largest_reading(_validate.real("norm", norm, _NORM)) * 2 * _CLIPPED
    return grid_of(mechanism, mechanism.noise_multiplier, reach, root_up(length))


def _clipped(rows: Floats, norm: float) -> Floats:
    """Return rows scaled to a norm of C, up to round-off, those above it; others as they are."""
    # Measured by the largest entry, so that no square overflows, and none that counts underflows.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    shape = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0.0)
    length = np.sqrt(np.square(shape).sum(axis=1, keepdims=True))
    # Above C as far as floats can tell; the largest entry times a length may overflow.
    above = largest > norm / np.maximum(length, 1.0)
    return np.where(above, shape * (norm / np.maximum(length, 1.0)), rows)
