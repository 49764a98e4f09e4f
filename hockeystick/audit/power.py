"""How many trials it takes to refute a claim that is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy import special

from hockeystick._validate import Domain, count, real, whole_numbers
from hockeystick.audit.bounds import tradeoff_of
from hockeystick.audit.region import SPARE, at_least, fewest, quarter_ellipse, upper_rate
from hockeystick.audit.scores import Array, error_probability
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.numerals import at_least as shown_down
from hockeystick.tradeoffs import TradeOff

_POWER: Final = Domain("1 - b", 0, 1, (0.5, 0.99), low_open=True, high_open=True)
_TRIALS: Final = whole_numbers("n", 1, (100, 10**6))
_MOST_TRIALS: Final = 10**9
_PRECISION: Final = 1000
_CELLS: Final = 32
_SHARES: Final = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95)
_RATES: Final = np.linspace(-6.0, 6.0, 121)
_CLAIMED_RATES: Final = np.linspace(-8.0, 8.0, 641)
_TAIL: Final = 1e-6
_MOST_COUNTS: Final = 128


@final
@dataclass(frozen=True, slots=True)
class Detection:
    """A test that refutes a wrong claim, and with which probability it does.

    With ``trials`` of each kind, a threshold at ``fpr``, where the actual mechanism has at least
    ``tpr``, that ``share`` and ``confidence``, ``falsify`` refutes with probability >= ``power``.
    """

    trials: int
    fpr: float
    tpr: float
    share: float
    power: float
    confidence: float

    def __str__(self) -> str:
        return (
            f"{self.trials} trials of each kind refute the claim with probability at least "
            f"{shown_down(self.power, 3)}, at a false positive rate of {self.fpr:.3g}"
        )


def trials_needed(
    claimed: Mechanism | TradeOff,
    actual: Mechanism | TradeOff,
    *,
    confidence: float = 0.95,
    power: float = 0.9,
) -> int:
    """Return how many trials of each kind refute a claim, where something else runs.

    By exact binomial sums for the best attack on the actual mechanism, at the threshold that tells
    the two trade-off functions apart best, which ``detection`` names. Up to a part in a thousand
    fewer may do; a weaker attack, or a threshold chosen from the scores, needs more. Claimed and
    actual are mechanisms, plans or trade-off functions; confidence, that of the refutation, and
    power, the probability of it, are in (0, 1).

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick import audit
        >>> 3_000 < audit.trials_needed(hs.Gaussian(1.0), hs.Gaussian(0.9), power=0.9) < 10_000
        True
    """
    alpha, wanted = error_probability(confidence), real("power", power, _POWER)
    test = _best_test(claimed, actual, alpha)

    def enough(trials: int) -> bool:
        return test.power(trials) >= wanted

    high = test.about
    while not enough(high):
        high *= 2
        if high > _MOST_TRIALS:
            raise ParameterError("actual", actual, _NOT_WORSE)
    low = 0
    while high - low > 1 + high // _PRECISION:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def detection(
    claimed: Mechanism | TradeOff,
    actual: Mechanism | TradeOff,
    trials: int,
    *,
    confidence: float = 0.95,
) -> Detection:
    """Return the test that refutes a claim where something else runs, and its power.

    The power is a proven lower end for the best attack on the actual mechanism, up to the round-off
    of SciPy's binomial sums. Where the order of neighbours matters, it is that which is easier to
    tell apart: the trials may have to call the other one "in". Arguments are those of
    ``trials_needed``, and the trials of each kind, an integer >= 1.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick import audit
        >>> print(audit.detection(hs.Gaussian(1.0), hs.Gaussian(0.5), trials=1000))
        1000 trials of each kind refute the claim with probability at least ..., at a ...
    """
    number = count("trials", trials, _TRIALS)
    test = _best_test(claimed, actual, error_probability(confidence))
    return Detection(number, test.fpr, test.tpr, test.share, test.power(number), float(confidence))


_NOT_WORSE: Final = "provably less private than what is claimed, at some false positive rate"


@dataclass(frozen=True, slots=True)
class _Test:
    """A test at a point of the actual curve, against the claimed one."""

    claimed: TradeOff
    fpr: float
    tpr: float
    share: float
    alpha: float
    about: int

    def power(self, trials: int) -> float:
        """Return a lower end of the probability of a refutation, by the exact binomial laws.

        Counts cover all but a negligible part of the law of false positives, not too many. What
        lies between two of them is as if it were the larger one, which is harder to refute by.
        """
        from scipy.stats import binom

        levels = np.linspace(_TAIL, 1.0 - _TAIL, _MOST_COUNTS)
        counts = np.unique(np.maximum(binom.ppf(levels, trials, self.fpr), 0.0))
        needed = self._hits_needed(counts, trials)
        above = at_least(counts + 1.0, trials, self.fpr)
        masses = -np.diff(above, prepend=1.0)
        return float(np.clip(masses @ at_least(needed, trials, self.tpr), 0.0, 1.0))

    def _hits_needed(self, counts: Array, trials: int) -> Array:
        for_errors, for_hits = quarter_ellipse(self.alpha, self.share, _CELLS)
        q = upper_rate(counts.astype(np.int64)[:, np.newaxis], trials, for_errors)
        limit = np.minimum(self.claimed.power(q) * (1.0 + SPARE), 1.0)
        needed = fewest(for_hits * (1.0 - 4.0 * SPARE), trials, limit)
        return np.asarray(needed.max(axis=-1))


def _best_test(claimed: object, actual: object, alpha: float) -> _Test:
    """Return the test whose rates are the least likely under a claim.

    The logarithm of the likelihood ratio is about n times the least sum of the two relative
    entropies from a point of the actual curve to the claimed one.
    """
    f, truth = tradeoff_of("claimed", claimed), tradeoff_of("actual", actual)
    rates, others = np.asarray(special.ndtr(_RATES)), np.asarray(special.ndtr(_CLAIMED_RATES))
    hits, allowed = truth.power_bounds(rates)[0], f.power(others)
    of_hits = _relative_entropy(hits[:, np.newaxis], allowed)
    of_errors = _relative_entropy(rates[:, np.newaxis], others)
    nearest = np.argmin(of_hits + of_errors, axis=1)
    chosen = np.arange(rates.size), nearest
    above = hits > f.power(rates)
    information = np.where(above, (of_hits + of_errors)[chosen], 0.0)
    best = int(np.argmax(information))
    if information[best] * _MOST_TRIALS < 1.0:
        raise ParameterError("actual", actual, _NOT_WORSE)
    at = best, nearest[best]
    about = max(math.ceil(2.0 / float(information[best])), 2)
    share = _share(float(of_hits[at]), float(of_errors[at]), alpha)
    return _Test(f, float(rates[best]), float(hits[best]), share, alpha, about)


def _relative_entropy(p: Array, of: Array) -> Array:
    return np.asarray(special.rel_entr(p, of) + special.rel_entr(1.0 - p, 1.0 - of))


def _share(of_hits: float, of_errors: float, alpha: float) -> float:
    """Return the share of which the region is the least wide in a direction."""
    total = of_hits + of_errors

    def width(share: float) -> float:
        for_errors, for_hits = quarter_ellipse(alpha, share, _CELLS)
        b, a = -float(special.ndtri(for_errors[-1])), -float(special.ndtri(for_hits[0]))
        return a * a * of_hits / total + b * b * of_errors / total

    return min(_SHARES, key=width)
