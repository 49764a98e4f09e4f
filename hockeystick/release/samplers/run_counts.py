"""How often a mechanism runs that is tuned: by truncated negative binomial and other numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from itertools import count
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.selection.tuning import (
    A_DISTRIBUTION,
    ETA,
    GAMMA,
    Binomial,
    Poisson,
    RunCount,
    TruncatedNegativeBinomial,
)
from hockeystick.numerics.working_precision import integers_around, interval_bits
from hockeystick.release.samplers._refined import Uniform
from hockeystick.release.samplers.bits import Bits, checked_words, secret_bits
from hockeystick.release.samplers.poisson import poisson
from hockeystick.release.samplers.uniform import bernoulli

# A coin each: some seconds.
TRIALS: Final = Domain(symbol="n", low=1, high=2**24, typical=(2, 1000), whole=True)
_CHUNK: Final = 2**20
_WORD: Final = 64
_GUARD: Final = 96
# Of a float's exponent and mantissa.
_FLOAT_BITS: Final = 1200


def run_count(distribution: RunCount, *, bits: Bits = secret_bits) -> int:
    """Draw the number of runs of a search, exactly.

    Keep it secret: the account of ``RandomStopping`` is of those who do not know it.

    Args:
        distribution: A distribution of ``tuning``.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Raises:
        ParameterError: If the distribution is none of these, a Poisson mean is above 2^30 or
            there are more than 2^24 trials of a binomial number.
        OSError: If the operating system has no random bits to give.

    Example:
        >>> from hockeystick.mechanisms import tuning
        >>> from hockeystick.release.samplers import run_count
        >>> run_count(tuning.Poisson(mean=10)) >= 0
        True
    """
    if isinstance(distribution, Poisson):
        return int(poisson(distribution.mean, 1, bits=bits)[0])
    if isinstance(distribution, Binomial):
        return _binomial(distribution, bits)
    if isinstance(distribution, TruncatedNegativeBinomial):
        return truncated_negative_binomial(distribution.eta, distribution.gamma, bits=bits)
    raise ParameterError("distribution", distribution, A_DISTRIBUTION)


def _binomial(distribution: Binomial, bits: Bits) -> int:
    """Return the number of heads of as many exact coins, drawn in chunks."""
    trials = _validate.count("trials", distribution.trials, TRIALS)
    starts = range(0, trials, _CHUNK)
    sizes = (min(_CHUNK, trials - start) for start in starts)
    chance = distribution.probability
    return sum(int(bernoulli(chance, size, bits=bits).sum()) for size in sizes)


def truncated_negative_binomial(eta: float, gamma: float, *, bits: Bits = secret_bits) -> int:
    """Draw one truncated negative binomial number, exactly.

    ``P(k) = (1-gamma)^k / (gamma^-eta - 1) * prod_{l<k} (l + eta) / (l + 1)`` for k >= 1; for
    eta = 0 the limit ``(1-gamma)^k / (k ln(1/gamma))``.

    Guarantees:
        Exact if the bits are ideal, tails included, for the floats eta and gamma as they are: the
        least k is returned with ``u < P(K <= k)`` for a uniform u, of which as many bits are drawn
        as the bounds of these sums need. It takes as many steps as the number is large.

    Args:
        eta: The shape, in (-1, inf).
        gamma: In (0, 1); the smaller, the larger the numbers.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022,
        definition 1 (the law); Devroye, "Non-Uniform Random Variate Generation", 1986, III.2
        (inversion).

    Example:
        >>> from hockeystick.release.samplers import truncated_negative_binomial
        >>> truncated_negative_binomial(1.0, 0.5) >= 1
        True
    """
    law = Fraction(_validate.real("eta", eta, ETA)), Fraction(_validate.real("gamma", gamma, GAMMA))
    position = Uniform(int(checked_words(bits, 1)[0]), _WORD, bits)
    sums = cache(lambda fine: _Sums(*law, fine))
    return next(k for k in count(1) if position.below(partial(_around, sums, k)))


def _around(sums: Callable[[int], _Sums], k: int, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits P(K <= k)``."""
    return sums(bits).around(k)


@final
class _Sums:
    """Integers around ``2^bits P(K <= k)`` for k = 1, 2, .., computed in order and kept.

    Terms follow by ``P(k + 1) = P(k) (1-gamma) (k + eta) / (k + 1)``, the lower bounds rounded
    down and the upper ones up.
    """

    __slots__ = ("_known", "_more")

    def __init__(self, eta: Fraction, gamma: Fraction, bits: int) -> None:
        self._known: list[tuple[int, int]] = []
        self._more = _cumulative(eta, gamma, bits)

    def around(self, k: int) -> tuple[int, int]:
        """Return the bounds of one sum."""
        while len(self._known) < k:
            self._known.append(next(self._more))
        return self._known[k - 1]


def _cumulative(eta: Fraction, gamma: Fraction, bits: int) -> Iterator[tuple[int, int]]:
    """Give integers around ``2^bits P(K <= k)``, from k = 1 on."""
    low, high = _first_term(eta, gamma, bits + _GUARD)
    least = most = 0
    k = 1
    while True:
        least, most = least + low, most + high
        yield least >> _GUARD, min(-(-most >> _GUARD), 1 << bits)
        ratio = (1 - gamma) * (k + eta) / (k + 1)
        low = low * ratio.numerator // ratio.denominator
        high = -(-high * ratio.numerator // ratio.denominator)
        k += 1


def _first_term(eta: Fraction, gamma: Fraction, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits P(K = 1)``, in interval arithmetic.

    ``P(1) = (1-gamma) eta / (gamma^-eta - 1)``, and ``(1-gamma) / ln(1/gamma)`` for eta = 0.
    """
    from hockeystick.numerics.multiprecision import iv

    with interval_bits(bits + _GUARD + _FLOAT_BITS):
        log_inverse = -iv.log(_interval(gamma))
        if eta == 0:
            mass = _interval(1 - gamma) / log_inverse
        else:
            mass = _interval((1 - gamma) * eta) / (iv.exp(_interval(eta) * log_inverse) - 1)
        return integers_around(mass * iv.mpf(2) ** bits)


def _interval(value: Fraction) -> Any:
    """Return an interval around a fraction."""
    from hockeystick.numerics.multiprecision import iv

    return iv.mpf(value.numerator) / value.denominator
