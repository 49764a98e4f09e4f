"""Means of numbers that people randomize themselves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.local.randomized_response import RandomizedResponse
from hockeystick.mechanisms.noise.laplace import Laplace
from hockeystick.release._values import real_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hockeystick.mechanisms.base import Mechanism

_EPSILON: Final = Domain(symbol="eps", low=0, high=math.inf, low_open=True, typical=(0.1, 8))
_END: Final = Domain(
    symbol="a", low=-1e150, high=1e150, low_open=True, high_open=True, typical=(-1, 1)
)
_ANY: Final = 1.7976931348623157e308


@dataclass(frozen=True, slots=True, init=False)
class LocalMean(ABC):
    """How each of n users reports a number in [low, high], and how their mean is estimated."""

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
    def reports(self, values: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return one report for each value, whose mean over the randomness is the value."""

    @abstractmethod
    def error(self, values: Any) -> float:
        """Return the mean squared error of the estimate, for these data."""

    def estimate(self, reports: Any) -> float:
        """Return the mean of the reports, which is an unbiased estimate of that of the values.

        Args:
            reports: Reports of this randomizer, in any order, at least one.

        Raises:
            ParameterError: If they are no row of numbers.
        """
        return float(real_array("reports", reports, -_ANY, _ANY).mean())

    def _values(self, values: Any) -> NDArray[np.float64]:
        """Return the users' numbers, or raise."""
        return real_array("values", values, self.low, self.high)

    def _scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers scaled to [-1, 1], the ends exactly: beyond them bits would tell more."""
        both = (values - self.low) - (self.high - values)
        return np.asarray(np.clip(both / (self.high - self.low), -1.0, 1.0), dtype=np.float64)

    @property
    def _half(self) -> float:
        """Half of the width of the interval."""
        return 0.5 * (self.high - self.low)


@final
class OneBitMean(LocalMean):
    """A number as one bit: one of two values, the likelier the nearer its end is.

    With ``y`` the number scaled to [-1, 1] and ``tau = tanh(epsilon/2)``, the report is
    ``+1/tau`` with probability ``(1 + tau y) / 2``, else ``-1/tau``, scaled back.

    Guarantees:
        epsilon-DP for the person who reports: numbers at the two ends are a binary randomized
        response, and others mix the two. The bits carry no trace of floating point; the bias is
        exact up to the 53 bits of a uniform float: a probability is off by 2^-53 or so, and 0 where
        it is less, as at the ends with epsilon above 36. The error is exact.

    Edge cases:
        Epsilon inf rounds each number to an end at random.

    Args:
        epsilon: In (0, inf].
        low: The least number, finite.
        high: The largest one, finite and above low.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Duchi, Jordan and Wainwright, "Local Privacy and Statistical Minimax Rates", FOCS 2013.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> mean = OneBitMean(epsilon=1.0, low=0.0, high=10.0)
        >>> reports = mean.reports(np.full(100_000, 3.0), np.random.default_rng(7))
        >>> abs(mean.estimate(reports) - 3.0) < 5 * mean.error(np.full(100_000, 3.0)) ** 0.5
        True
        >>> print(hs.mechanisms.ShuffledReports(mean.mechanism, users=100_000))
        shuffled reports of [randomized response (epsilon 1, 2 categories)] (100000 users)
    """

    __slots__ = ()

    @property
    def mechanism(self) -> RandomizedResponse:
        """The binary randomized response of which each report is a mixture."""
        return RandomizedResponse(self.epsilon, 2)

    def reports(self, values: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return one of two numbers for each value.

        Args:
            values: The users' numbers, each in [low, high].
            rng: Where randomness comes from.

        Raises:
            ParameterError: If a value is outside.
        """
        own, center = self._values(values), self.low + self._half
        tau = math.tanh(0.5 * self.epsilon)
        heads = rng.random(own.size) < 0.5 + 0.5 * tau * self._scaled(own)
        return np.asarray(center + np.where(heads, 1.0, -1.0) * self._half / tau, dtype=np.float64)

    def error(self, values: Any) -> float:
        """Return ``(w/2)^2 (1/tau^2 - mean of y^2) / n`` with w the width of the interval.

        Args:
            values: The users' numbers, each in [low, high].

        Raises:
            ParameterError: If a value is outside.
        """
        own = self._scaled(self._values(values))
        # 1/tau^2 - 1 is 1/sinh^2, which keeps its digits.
        gap = -math.expm1(-self.epsilon)
        excess = 4.0 * math.exp(-self.epsilon) / gap / gap
        return float(self._half**2 * (excess + ((1.0 - own) * (1.0 + own)).mean()) / own.size)


@final
class LaplaceMean(LocalMean):
    """A number with Laplace noise of scale ``(high - low) / epsilon``.

    Guarantees:
        epsilon-DP for the person who reports, in exact arithmetic. A float drawn this way shows in
        its low bits which numbers it can have come from: use it for simulation, or where that is
        accepted. The error is exact.

    Edge cases:
        Epsilon inf reports the number itself.

    Args:
        epsilon: In (0, inf].
        low: The least number, finite.
        high: The largest one, finite and above low.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Dwork, McSherry, Nissim and Smith 2006; Mironov, "On Significance of the Least Significant
        Bits for Differential Privacy", CCS 2012, for the low bits.

    Example:
        >>> LaplaceMean(epsilon=2.0).error([0.0] * 1000)
        0.002
    """

    __slots__ = ()

    @property
    def mechanism(self) -> Laplace:
        return Laplace(0.0 if self.epsilon == math.inf else 1.0 / self.epsilon)

    def reports(self, values: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return each value with noise.

        Args:
            values: The users' numbers, each in [low, high].
            rng: Where randomness comes from.

        Raises:
            ParameterError: If a value is outside.
        """
        own = self._values(values)
        return own + rng.laplace(0.0, 2.0 * self._half / self.epsilon, own.size)

    def error(self, values: Any) -> float:
        """Return ``2 (w / epsilon)^2 / n`` with w the width of the interval, whatever the values.

        Args:
            values: The users' numbers, each in [low, high].

        Raises:
            ParameterError: If a value is outside.
        """
        scale = 2.0 * self._half / self.epsilon
        return 2.0 * scale * scale / self._values(values).size
