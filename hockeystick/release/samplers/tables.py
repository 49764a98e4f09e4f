"""Integers from a table of cumulative probabilities, compared with 64 random bits or more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, count
from typing import Any, Final, NamedTuple

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.selection import tuning
from hockeystick.numerics.multiprecision import integers_around, interval_bits, iv, mp
from hockeystick.precision import inverse_transform as laws
from hockeystick.release.samplers import Bits, bernoulli, rounded_gaussian, secret_bits
from hockeystick.release.samplers.bits import COUNT, WORD, Integers, Uniform, Words, words_from
from hockeystick.release.samplers.real_noise import SCALE

# A table has some 20 sqrt(mean) entries, of some microseconds each.
_MEAN: Final = Domain(symbol="lambda", low=0, high=2.0**30, low_open=True, typical=(1, 10**6))
# Of a smaller float the half need not be a float.
VARIANCE: Final = Domain(symbol="mu", low=2.0**-1021, high=2.0**31, typical=(1, 10**6))
# A coin each: some seconds.
_TRIALS: Final = Domain(symbol="n", low=1, high=2**24, typical=(2, 1000), whole=True)
_CHUNK: Final = 2**20
# Tables have some 19 entries per unit of the scale; one in 8 s^2 proposals needs exact arithmetic.
_WIDE: Final = 64.0
_GUARD: Final = 64
_RUNS_GUARD: Final = 96
# Of a float's exponent and mantissa.
_FLOAT_BITS: Final = 1200
# From here on Stirling's series gains more than ten bits with every term.
_STIRLING: Final = 1000


class Cumulative(NamedTuple):
    """Integers around ``2^bits P(X <= first + i)``, for i = 0, 1, ..; below: ``P(X < first)``."""

    first: int
    below: int
    lows: tuple[int, ...]
    highs: tuple[int, ...]

    def around(self, k: int, bits: int) -> tuple[int, int]:
        """Return integers around ``2^bits P(X <= k)`` for any k."""
        place = k - self.first
        if place < 0:
            return 0, self.below
        if place >= len(self.lows):
            return self.lows[-1], 1 << bits
        return self.lows[place], self.highs[place]


Law = Callable[[float, int], Cumulative]
"""Of a parameter and a number of bits: all but less than ``2^-bits`` is listed."""


def draw(law: Law, parameter: float, size: int, bits: Bits) -> Integers:
    """Draw the integer k with ``P(X < k) <= u < P(X <= k)`` for u uniform on (0, 1)."""
    first, lows, highs = _table(law, parameter)
    words = words_from(bits, size)
    places = np.searchsorted(highs, words, side="right")
    unsure = np.flatnonzero(words >= lows[places])
    drawn = places.astype(np.int64) + first
    for place in unsure:
        position = Uniform(int(words[place]), WORD, bits)

        def at_most(k: int, u: Uniform = position) -> bool:
            return u.below(lambda fine: law(parameter, fine).around(k, fine))

        while not at_most(int(drawn[place])):
            drawn[place] += 1
        while at_most(int(drawn[place]) - 1):
            drawn[place] -= 1
    return drawn


@lru_cache(maxsize=16)
def _table(law: Law, parameter: float) -> tuple[int, Words, Words]:
    table = law(parameter, WORD)
    listed = sum(high < 1 << WORD for high in table.highs)
    lows = np.array(table.lows[: listed + 1], dtype=np.uint64)
    return table.first, lows, np.array(table.highs[:listed], dtype=np.uint64)


def discrete_gaussian(scale: float, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw integers with probability proportional to ``exp(-k^2 / (2 s^2))``, s in (0, 2^44].

    (Canonne, Kamath and Steinke, NeurIPS 2020; their sampler rejects from geometric noise.)

    Guarantees:
        For s < 64, a table of cumulative probabilities is compared with 64 bits, and with more
        where these do not decide. From there on, ``k = round(N(0, s^2))`` is proposed, whose
        probability is

            q(k) = exp(-k^2 / (2 s^2)) I(k) / (s sqrt(2 pi)),
            I(k) = integral of exp(-t^2 / (2 s^2)) cosh(k t / s^2) over |t| <= 1/2,

        and accepted with probability ``I(0) / I(k) <= 1``. The probability to refuse is at most
        ``cosh(k / (2 s^2)) - 1``; only uniforms within that of 1 need ``I(0) / I(k)`` in intervals.

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.discrete_gaussian(2.0, size=3).shape
        (3,)
    """
    s = _validate.real("scale", scale, SCALE)
    number = _validate.count("size", size, COUNT)
    if s < _WIDE:
        return draw(narrow_gaussian, s, number, bits)
    found = rounded_gaussian(s, number, bits=bits)
    again = _refused(found, s, bits)
    while len(again):
        proposed = rounded_gaussian(s, len(again), bits=bits)
        found[again] = proposed
        again = again[_refused(proposed, s, bits)]
    return found


@lru_cache(maxsize=2)
def narrow_gaussian(scale: float, bits: int) -> Cumulative:
    """Return the sums of the weights ``exp(-k^2 / (2 s^2))``, over their sum.

    Beyond K, ``exp(-k^2 / (2 s^2)) <= exp(-K^2 / (2 s^2)) r^(k - K)`` with ``r = exp(-K / s^2)``.
    """
    fine = bits + _GUARD
    variance = Fraction(scale) ** 2
    last = math.ceil(scale * math.sqrt(2 * math.log(2) * (fine + 2))) + 1
    half = [laws.enclosure(laws.EXPONENTIAL, k * k / (2 * variance), fine) for k in range(last + 1)]
    ratio = laws.enclosure(laws.EXPONENTIAL, last / variance, fine)[1]
    tail = half[-1][1] * ratio // ((1 << fine) - ratio) + 1
    weights = [*half[:0:-1], *half]
    lows = list(accumulate(low for low, _ in weights))
    highs = list(accumulate((high for _, high in weights), initial=tail))[1:]
    least, most = lows[-1], highs[-1] + tail
    return Cumulative(
        -last,
        -((-tail << bits) // least),
        tuple((low << bits) // most for low in lows),
        tuple(min(-((-high << bits) // least), 1 << bits) for high in highs),
    )


def _refused(proposed: Integers, s: float, bits: Bits) -> np.ndarray:
    words = words_from(bits, len(proposed))
    # cosh(x) - 1 <= 0.51 x^2 for |x| <= 0.3. Here x = k / (2 s^2) is less, as s >= 64, and
    # |k| < 38 s as no u below 2^-1024 is told from 0.
    gap = (proposed / (2 * s * s)) ** 2 * 0.52 + 2.0**-52
    near = np.flatnonzero(words.astype(np.float64) * 2.0**-WORD >= 1.0 - gap)
    refused = [i for i in near if not _accepted(int(proposed[i]), s, int(words[i]), bits)]
    return np.array(refused, int)


def _accepted(k: int, s: float, word: int, bits: Bits) -> bool:
    return Uniform(word, WORD, bits).below(lambda fine: _ratio(abs(k), s, fine))


def _ratio(k: int, s: float, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits I(0) / I(k)``.

    With the mass ``m(k) = S((k - 1/2)/s) - S((k + 1/2)/s)`` of one side, S the half normal's
    survival function, ``I(k)`` is m(k) exp(k^2 / (2 s^2)) up to a factor, and ``I(0)`` twice the
    mass of [0, 1/2], ``1 - S(1/(2 s))``, up to the same.
    """
    if k == 0:
        return 1 << bits, 1 << bits
    exact = Fraction(s)
    fine = bits + _GUARD + 2 * int(k * k / (s * s)) + 2 * math.ceil(math.log2(s))
    low, high, none = (
        laws.enclosure(laws.HALF_NORMAL, at / (2 * exact), fine) for at in (2 * k - 1, 2 * k + 1, 1)
    )
    weight = laws.enclosure(laws.EXPONENTIAL, k * k / (2 * exact**2), fine)
    top = ((1 << fine) - none[1], (1 << fine) - none[0])
    below = (low[0] - high[1], low[1] - high[0])
    return (
        2 * top[0] * weight[0] // below[1] << bits >> fine,
        -(-(-(-2 * top[1] * weight[1] // below[0]) << bits) >> fine),
    )


def poisson(mean: float, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw Poisson numbers, ``P(k) = exp(-lambda) lambda^k / k!``, lambda in (0, 2^30].

    By inversion (Devroye 1986, III.2). The first draw of a mean makes its table.

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.poisson(4.0, size=3).shape
        (3,)
    """
    known = _validate.real("mean", mean, _MEAN)
    return draw(poisson_law, known, _validate.count("size", size, COUNT), bits)


def skellam(variance: float, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw differences of two Poisson numbers of mean ``variance / 2``; from 2^-1021 to 2^31.

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.skellam(8.0, size=3).shape
        (3,)
    """
    mean = _validate.real("variance", variance, VARIANCE) / 2
    return poisson(mean, size, bits=bits) - poisson(mean, size, bits=bits)


# Only words next to a boundary ask again, and some are large: 70 MB for a mean of 2^30.
@lru_cache(maxsize=2)
def poisson_law(mean: float, bits: int) -> Cumulative:
    """Return the sums of Poisson probabilities, from the mode by ``P(k + 1) = P(k) m / (k + 1)``.

    What is beyond the least and the largest number listed is bounded by a geometric series.
    """
    fine = bits + _GUARD
    top, bottom = mean.as_integer_ratio()
    mode = int(mean)
    start = point_mass(mean, mode, fine)
    upper, _ = _run(start, lambda i: (top, bottom * (mode + i)), mode, down=False)
    lower, below = _run(start, lambda i: (bottom * (mode + 1 - i), top), mode, down=True)
    terms = [*reversed(lower), start, *upper]
    lows = accumulate(low for low, _ in terms)
    highs = list(accumulate((high for _, high in terms), initial=below))[1:]
    return Cumulative(
        mode - len(lower),
        -(-below >> _GUARD),
        tuple(low >> _GUARD for low in lows),
        tuple(min(-(-high >> _GUARD), 1 << bits) for high in highs),
    )


def _run(
    start: tuple[int, int], ratio: Callable[[int], tuple[int, int]], mode: int, *, down: bool
) -> tuple[list[tuple[int, int]], int]:
    """Return bounds of the terms on one side of the mode, and of the sum of those not listed.

    The i-th term is the one before times ``ratio(i)``, which falls with i.
    """
    terms: list[tuple[int, int]] = []
    low, high = start
    while not (down and len(terms) == mode):
        top, bottom = ratio(len(terms) + 1)
        if high >> (_GUARD // 2) == 0 and top < bottom:
            return terms, -(-high * top // (bottom - top))
        low, high = low * top // bottom, -(-high * top // bottom)
        terms.append((low, high))
    return terms, 0


def point_mass(mean: float, k: int, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits exp(-lambda) lambda^k / k!``, in interval arithmetic."""
    with interval_bits(bits + _GUARD + 2 * max(k, 2).bit_length() + 64):
        log_factorial = _log_factorial(k, bits + _GUARD)
        log_mass = k * iv.log(iv.mpf(mean)) - iv.mpf(mean) - log_factorial
        return integers_around(iv.exp(log_mass) * iv.mpf(2) ** bits)


def _log_factorial(k: int, bits: int) -> Any:
    """Return an interval around ``ln k!``, by Stirling's series where k is large.

    The series envelops: what is left out is between 0 and the first term left out.
    """
    if k < _STIRLING:
        return iv.log(iv.mpf(math.factorial(k)))
    total = (k + iv.mpf(0.5)) * iv.log(k) - k + iv.log(2 * iv.pi) / 2
    for j in count(1):
        top, bottom = mp.bernfrac(2 * j)
        term = iv.mpf(int(top)) / (int(bottom) * 2 * j * (2 * j - 1) * k ** (2 * j - 1))
        if abs(term).b < iv.mpf(2) ** -bits:
            return total + term * iv.mpf([0, 1])
        total += term
    raise AssertionError


def run_count(distribution: tuning.RunCount, *, bits: Bits = secret_bits) -> int:
    """Draw the number of runs of a search from a distribution of ``tuning``, to be kept secret.

    A Poisson mean may be up to 2^30, and a binomial number have up to 2^24 trials.

    Example:
        >>> from hockeystick.mechanisms import tuning
        >>> from hockeystick.release import samplers
        >>> samplers.run_count(tuning.Binomial(10, 0.5)) <= 10
        True
    """
    if isinstance(distribution, tuning.Poisson):
        return int(poisson(distribution.mean, 1, bits=bits)[0])
    if isinstance(distribution, tuning.Binomial):
        trials = _validate.count("trials", distribution.trials, _TRIALS)
        sizes = (min(_CHUNK, trials - start) for start in range(0, trials, _CHUNK))
        chance = distribution.probability
        return sum(int(bernoulli(chance, size, bits=bits).sum()) for size in sizes)
    if isinstance(distribution, tuning.TruncatedNegativeBinomial):
        return truncated_negative_binomial(distribution.eta, distribution.gamma, bits=bits)
    raise ParameterError("distribution", distribution, tuning.A_DISTRIBUTION)


def truncated_negative_binomial(eta: float, gamma: float, *, bits: Bits = secret_bits) -> int:
    """Draw one truncated negative binomial number, eta > -1 and gamma in (0, 1).

    ``P(k) = (1-gamma)^k / (gamma^-eta - 1) * prod_{l<k} (l + eta) / (l + 1)`` for k >= 1; for eta =
    0 the limit ``(1-gamma)^k / (k ln(1/gamma))`` (Papernot and Steinke, ICLR 2022, definition 1).
    It is the least k with ``u < P(K <= k)`` for a uniform u, in as many steps.

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.truncated_negative_binomial(eta=1.0, gamma=0.2) >= 1
        True
    """
    shape = Fraction(_validate.real("eta", eta, tuning.ETA))
    rest = Fraction(_validate.real("gamma", gamma, tuning.GAMMA))
    position = Uniform(int(words_from(bits, 1)[0]), WORD, bits)
    known: Callable[[int], RunSums] = cache(lambda fine: RunSums(shape, rest, fine))
    for k in count(1):
        if position.below(lambda fine, k=k: known(fine).around(k)):  # type: ignore[misc]
            return k
    raise AssertionError


class RunSums:
    """Integers around ``2^bits P(K <= k)`` for k = 1, 2, .., computed in order and kept.

    Terms follow by ``P(k + 1) = P(k) (1-gamma) (k + eta) / (k + 1)``, rounded outward.
    """

    __slots__ = ("_known", "_more")

    def __init__(self, eta: Fraction, gamma: Fraction, bits: int) -> None:
        self._known: list[tuple[int, int]] = []
        self._more = self._sums(eta, gamma, bits)

    def around(self, k: int) -> tuple[int, int]:
        """Return the bounds of one sum."""
        while len(self._known) < k:
            self._known.append(next(self._more))
        return self._known[k - 1]

    @staticmethod
    def _sums(eta: Fraction, gamma: Fraction, bits: int) -> Iterator[tuple[int, int]]:
        low, high = _first_term(eta, gamma, bits + _RUNS_GUARD)
        least = most = 0
        for k in count(1):
            least, most = least + low, most + high
            yield least >> _RUNS_GUARD, min(-(-most >> _RUNS_GUARD), 1 << bits)
            ratio = (1 - gamma) * (k + eta) / (k + 1)
            low = low * ratio.numerator // ratio.denominator
            high = -(-high * ratio.numerator // ratio.denominator)


def _first_term(eta: Fraction, gamma: Fraction, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits P(K = 1)``, in interval arithmetic.

    ``P(1) = (1-gamma) eta / (gamma^-eta - 1)``, and ``(1-gamma) / ln(1/gamma)`` for eta = 0.
    """

    def around(value: Fraction) -> Any:
        return iv.mpf(value.numerator) / value.denominator

    with interval_bits(bits + _RUNS_GUARD + _FLOAT_BITS):
        log_inverse = -iv.log(around(gamma))
        if eta == 0:
            mass = around(1 - gamma) / log_inverse
        else:
            mass = around((1 - gamma) * eta) / (iv.exp(around(eta) * log_inverse) - 1)
        return integers_around(mass * iv.mpf(2) ** bits)
