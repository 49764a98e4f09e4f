"""Means of numbers and of vectors that people randomize themselves, drawn exactly."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.local.reports import RandomizedResponse
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.noise.laplace import Laplace
from hockeystick.numerics import largest_reading
from hockeystick.release._values import Grid, grid_of, numbers, of_kind, real_array, root_up
from hockeystick.release.local_reports import USERS, response_reports, source_of
from hockeystick.release.samplers import Bits, rounded_gaussian, rounded_laplace, secret_bits
from hockeystick.release.samplers.bits import checked_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hockeystick.mechanisms.base import Mechanism

_EPSILON: Final = Domain(symbol="eps", low=0, high=math.inf, low_open=True, typical=(0.1, 8))
_END: Final = Domain(
    symbol="a", low=-1e150, high=1e150, low_open=True, high_open=True, typical=(-1, 1)
)
_NORM: Final = Domain(symbol="C", low=1e-100, high=1e100, typical=(0.01, 100))
_ENTRIES: Final = Domain(symbol="d", low=1, high=2**18, typical=(1, 1000), whole=True)
_ANY: Final = 1.7976931348623157e308
# What a clipped vector's norm may be above the clipping norm, by round-off: 2^18 terms and some.
_CLIPPED: Final = 1 + Fraction(1, 2**30)


@dataclass(frozen=True, slots=True, init=False)
class LocalMean(ABC):
    """How each of n users reports a number in [low, high], and how their mean is estimated.

    Epsilon is in (0, inf], and low below high, both finite.
    """

    epsilon: float
    low: float
    high: float

    def __init__(self, epsilon: float, low: float = -1.0, high: float = 1.0) -> None:
        object.__setattr__(self, "epsilon", _validate.real("epsilon", epsilon, _EPSILON))
        object.__setattr__(self, "low", _validate.real("low", low, _END))
        object.__setattr__(self, "high", _validate.real("high", high, _END))
        if not self.low < self.high:
            raise ParameterError("high", high, f"a number > low, which is {self.low:g}")

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What one report is, for accounting."""

    @abstractmethod
    def reports(
        self, values: Any, rng: np.random.Generator | None = None, *, bits: Bits = secret_bits
    ) -> NDArray[np.float64]:
        """Return one report for each value, whose mean over the randomness is the value."""

    @abstractmethod
    def error(self, values: Any) -> float:
        """Return the mean squared error of the estimate, for these data."""

    def estimate(self, reports: Any) -> float:
        """Return the mean of one or more reports, an unbiased estimate of that of the values."""
        return float(real_array("reports", reports, -_ANY, _ANY).mean())

    def _values(self, values: Any) -> NDArray[np.float64]:
        return real_array("values", values, self.low, self.high)

    def _scaled(self, values: Any) -> NDArray[np.float64]:
        """Return numbers scaled to [-1, 1], the ends exactly: beyond them bits would tell more."""
        known = self._values(values)
        both = (known - self.low) - (self.high - known)
        return np.asarray(np.clip(both / (self.high - self.low), -1.0, 1.0), dtype=np.float64)


@final
class OneBitMean(LocalMean):
    """A number as one bit: one of two values, the likelier the nearer its end is.

    With ``y`` the number scaled to [-1, 1] and ``tau = tanh(epsilon/2)``, the report is
    ``+1/tau`` with probability ``(1 + tau y) / 2``, else ``-1/tau``, scaled back. Its mean squared
    error is ``(w/2)^2 (1/tau^2 - mean of y^2) / n``, w the width of the interval.

    Guarantees:
        epsilon-DP for the person who reports, exactly: the number is rounded to an end at random,
        and the end reported by binary randomized response. Scaling and reports are floats, so that
        the mean is off by some units in the last place. Epsilon inf reports the end.

    References:
        Duchi, Jordan and Wainwright, "Local Privacy and Statistical Minimax Rates", FOCS 2013.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> mean = hs.release.OneBitMean(epsilon=1.0, low=0.0, high=10.0)
        >>> reports = mean.reports(np.full(100_000, 3.0), np.random.default_rng(7))
        >>> abs(mean.estimate(reports) - 3.0) < 5 * mean.error(np.full(100_000, 3.0)) ** 0.5
        True
        >>> print(hs.mechanisms.ShuffledReports(mean.mechanism, users=100_000))
        shuffled reports of [randomized response (epsilon 1, 2 categories)] (100000 users)
    """

    __slots__ = ()

    @property
    def mechanism(self) -> RandomizedResponse:
        return RandomizedResponse(self.epsilon, 2)

    def reports(
        self, values: Any, rng: np.random.Generator | None = None, *, bits: Bits = secret_bits
    ) -> NDArray[np.float64]:
        source = source_of(rng, bits)
        # 53 bits of a word against a multiple of 2^-53.
        steps = np.rint(np.ldexp(0.5 + 0.5 * self._scaled(values), 53)).astype(np.uint64)
        ends = (checked_words(source, steps.size) >> np.uint64(11) < steps).astype(np.int64)
        heads = response_reports(self.mechanism, ends, bits=source)
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

    It is epsilon-DP for the person who reports. Its mean squared error is
    ``2 (w / epsilon)^2 / n``, w the width of the interval, and up to 2^-18 of it more by the grid
    of the noise. Epsilon inf reports the number itself.

    References:
        Dwork, McSherry, Nissim and Smith 2006; Mironov, "On Significance of the Least Significant
        Bits for Differential Privacy", CCS 2012, for the low bits.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.LaplaceMean(epsilon=2.0).error([0.0] * 1000)
        0.002
    """

    __slots__ = ()

    @property
    def mechanism(self) -> Laplace:
        return Laplace(0.0 if self.epsilon == math.inf else 1.0 / self.epsilon)

    def reports(
        self, values: Any, rng: np.random.Generator | None = None, *, bits: Bits = secret_bits
    ) -> NDArray[np.float64]:
        own, source, scale = self._values(values), source_of(rng, bits), self.mechanism.scale
        if scale == 0.0:
            return own
        grid = grid_of(self.mechanism, scale, self.high - self.low, 1)
        steps = grid.steps("values", own - self.low)
        noisy = grid.floats(steps + rounded_laplace(grid.scale, own.size, bits=source))
        return np.asarray(self.low + noisy)

    def error(self, values: Any) -> float:
        scale = (self.high - self.low) / self.epsilon
        return 2.0 * scale * scale / self._values(values).size


def gaussian_reports(
    mechanism: Gaussian, values: Any, norm: float, *, bits: Bits = secret_bits
) -> NDArray[np.float64]:
    """Return each user's vector, clipped to a norm, plus Gaussian noise of the user's own.

    With C the norm, from 1e-100 to 1e100 and public, and z the finite noise multiplier in units of
    2C, ``v min(1, C/||v||) + N(0, (2 C z)^2 I)``: two values of one user are at most 2C apart.
    Values are a row of numbers, one for each user, or one row of up to 2^18 for each. Multiplier 0
    reports the clipped vectors, rounded to the grid.

    Guarantees:
        Each row costs its user what the mechanism does, under replace-one and whatever the floats:
        as ``gaussian``, on a grid, with the sensitivity ``2 C (1 + 2^-30)``, which covers the
        round-off of clipping. No server has to be trusted, and no other user.

    References:
        Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith, "What Can We Learn Privately?", FOCS
        2008 (local privacy); Mironov 2012 (the attack on floats).

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> noise = hs.Gaussian(noise_multiplier=1.5)
        >>> reports = hs.release.gaussian_reports(noise, np.full((9000, 2), [0.6, -0.2]), norm=1.0)
        >>> off = np.abs(hs.release.gaussian_mean(noise, reports) - [0.6, -0.2])
        >>> bool((off < 6 * hs.release.gaussian_error(noise, 9000, norm=1.0, entries=2)).all())
        True
    """
    known = of_kind(mechanism, Gaussian)
    given = _one_or_two_axes("values", values, "user")
    rows = given.reshape(given.shape[0], -1)
    grid = _gaussian_grid(known, norm, rows.shape[1])
    steps = grid.steps("values", _clipped(rows, float(norm)))
    if known.noise_multiplier > 0.0:
        steps = steps + rounded_gaussian(grid.scale, steps.size, bits=bits).reshape(steps.shape)
    return grid.floats(steps).reshape(given.shape)


def gaussian_mean(mechanism: Gaussian, reports: Any) -> NDArray[np.float64]:
    """Return the mean of the reports, entry by entry.

    Unbiased for the mean of the clipped vectors, but for the rounding of each entry to a grid of at
    most ``2^-20`` times the sensitivity. What clipping takes away is not given back.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.gaussian_mean(hs.Gaussian(1), [[1.0, 2.0], [3.0, 4.0]]).tolist()
        [2.0, 3.0]
    """
    of_kind(mechanism, Gaussian)
    return np.asarray(_one_or_two_axes("reports", reports, "report").mean(axis=0), np.float64)


def gaussian_error(mechanism: Gaussian, users: int, norm: float, *, entries: int = 1) -> float:
    """Return the standard error of each entry of the mean, for fixed data: ``2 C z / sqrt(n)``.

    That of the noise that is drawn for n users and reports of d entries, which is above it by a
    share of ``2^-15`` at most, as the noise covers the grid; rounding adds less than a grid step.

    Example:
        >>> import hockeystick as hs
        >>> f"{hs.release.gaussian_error(hs.Gaussian(2), users=10_000, norm=0.5):.4f}"
        '0.0200'
    """
    known = of_kind(mechanism, Gaussian)
    count = _validate.count("users", users, USERS)
    grid = _gaussian_grid(known, norm, entries)
    return math.ldexp(grid.scale, grid.exponent) / math.sqrt(count)


def _one_or_two_axes(name: str, values: Any, whose: str) -> NDArray[np.float64]:
    given = numbers(name, values)
    if given.ndim not in (1, 2) or given.size == 0:
        allowed = f"a row of one or more numbers, or one row of them for each {whose}"
        raise ParameterError(name, f"an array of shape {given.shape}", allowed)
    return given


def _gaussian_grid(mechanism: Gaussian, norm: float, entries: int) -> Grid:
    """Return the grid for reports of vectors of some length and norm."""
    length = _validate.count("entries", entries, _ENTRIES)
    reach = largest_reading(_validate.real("norm", norm, _NORM)) * 2 * _CLIPPED
    return grid_of(mechanism, mechanism.noise_multiplier, reach, root_up(length))


def _clipped(rows: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """Return rows scaled to a norm of C, up to round-off, those above it; others as they are.

    Each is measured by its largest entry, so that no square overflows, and none that counts
    underflows. A sum of d squares is off by d + 1 units in the last place at most.
    """
    largest = np.abs(rows).max(axis=1, keepdims=True)
    shape = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0.0)
    length = np.sqrt(np.square(shape).sum(axis=1, keepdims=True))
    # Above C as far as floats can tell; the largest entry times a length may overflow.
    above = largest > norm / np.maximum(length, 1.0)
    return np.where(above, shape * (norm / np.maximum(length, 1.0)), rows)
