"""Trade-off functions: the least type II error that any test has at each type I error."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from hockeystick._validate import PARAMETERS, Domain, count, real, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.numerics import ULP
from hockeystick.results import Certified
from hockeystick.tradeoffs.profiles.profile import Array, Profile, ends_at, epsilon_interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_ACCOUNTANT: Final = "f-dp"
_PROBABILITY: Final = Domain(symbol="pi", low=0, high=1, typical=(0.01, 0.99))
_SLOPE: Final = Domain("y", -math.inf, math.inf, (-10, 0), low_open=True, high_open=True)
_SIZE: Final = whole_numbers("g", 1, (1, 100))
_DOWN: Final = 1.0 - 2.0**-48
_LEAST_LOG: Final = -700.0
_LOGS_ALLOWED: Final = "a number <= 0, or an array of such"


class Ends(NamedTuple):
    """Proven lower and upper ends, arrays of one shape."""

    lower: Array
    upper: Array


class Bounds(NamedTuple):
    """Proven lower and upper ends of a number."""

    lower: float
    upper: float


class TradeOff(ABC):
    """``f = T(P, Q)``: the least false negative rate of any test of P against Q.

    ``f(alpha)`` is the least type II error at type I error (false positive rate) ``alpha``; f is
    convex, continuous and falling, and ``0 <= f(alpha) <= 1 - alpha``. The larger f, the more
    private. A mechanism is f-DP if ``T(M(D), M(D')) >= f`` for all neighbours.

    Guarantees:
        Calling f returns a proven LOWER end: no test has a smaller type II error. ``bounds``
        returns both ends, precise relative to f in both tails, as is ``power`` to 1 - f.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, definitions 2.1 and 2.3.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def forward(self) -> Profile:
        """The profile of (Q, P): delta where f is steeper than -1."""

    @property
    @abstractmethod
    def backward(self) -> Profile:
        """The profile of (P, Q): delta where f is flatter than -1."""

    @abstractmethod
    def _type_ii(self, alpha: Array) -> Ends:
        """Return the ends of f, precise relative to f."""

    @abstractmethod
    def _power(self, alpha: Array) -> Ends:
        """Return the ends of 1 - f, precise relative to 1 - f."""

    def type_ii_of_complement(self, rest: Array) -> Ends:
        """Return f(1 - rest) for rests up to 1/2; some functions are precise for tiny rests."""
        alpha = 1.0 - rest
        lower = self._type_ii(np.minimum(alpha + ULP, 1.0)).lower
        return Ends(lower, self._type_ii(np.maximum(alpha - ULP, 0.0)).upper)

    @abstractmethod
    def inverse(self) -> TradeOff:
        """Return T(Q, P), the inverse function."""

    @property
    def release(self) -> object:
        """The mechanism or plan whose trade-off function it is; None for a function by itself.

        Tensor products compose the releases, which is tighter than the functions alone.
        """
        return None

    @property
    def without_release(self) -> TradeOff:
        """The same function without its release."""
        return self

    @property
    def is_symmetric(self) -> bool:
        """Whether f is its own inverse, as it is for all pairs of neighbours together."""
        return self.forward == self.backward

    def __call__(self, alpha: ArrayLike) -> Any:
        """Return the proven lower end of f, of the same shape as alpha."""
        return self.bounds(alpha)[0]

    def bounds(self, alpha: ArrayLike) -> tuple[Any, Any]:
        """Return both ends of f at false positive rates, each of the same shape as alpha.

        f decreases, so that bounds at one of the rates asked about tighten those at the others.
        """

        def ends(a: Array) -> Ends:
            lower, upper = self._type_ii(a)
            return _falling(a, Ends(np.maximum(lower, 0.0), np.minimum(upper, _guessing(a))))

        return _shaped("alpha", alpha, ends)

    def power(self, fpr: ArrayLike) -> Any:
        """Return the power 1 - f, the largest true positive rate: a proven upper end."""
        return self.power_bounds(fpr)[1]

    def power_bounds(self, fpr: ArrayLike) -> tuple[Any, Any]:
        """Return both ends of 1 - f, each precise relative to itself."""

        def ends(a: Array) -> Ends:
            lower, upper = self._power(a)
            return _falling(-a, Ends(np.maximum(lower, a), np.clip(upper, a, 1.0)))

        return _shaped("fpr", fpr, ends)

    def log_bounds(self, log_alpha: ArrayLike) -> tuple[Any, Any]:
        """Return both ends of ``ln f`` at ``ln alpha``, for rates that no float can hold."""
        return _shaped("log_alpha", log_alpha, self._log_type_ii)

    def log_power_bounds(self, log_fpr: ArrayLike) -> tuple[Any, Any]:
        """Return both ends of ``ln(1 - f)`` at ``ln fpr``, for rates that no float can hold."""
        return _shaped("log_alpha", log_fpr, self._log_power)

    def _log_type_ii(self, log_alpha: Array) -> Ends:
        """Return ``ln f``; f decreases, so that alpha rounded up gives a lower end."""
        lower = self._type_ii(_exp_of_logs(log_alpha, 1.0)).lower
        return _logs(Ends(lower, self._type_ii(_exp_of_logs(log_alpha, -1.0)).upper))

    def _log_power(self, log_alpha: Array) -> Ends:
        """Return ``ln(1 - f)``, which increases."""
        lower = self._power(_exp_of_logs(log_alpha, -1.0)).lower
        return _logs(Ends(lower, self._power(_exp_of_logs(log_alpha, 1.0)).upper))

    def delta(self, epsilon: float) -> Certified:
        """Return the least delta such that f-DP implies (epsilon, delta)-DP.

        The larger of both directions, ``1 + f*(-e^epsilon)``, at an epsilon in [0, inf].
        """
        return self._certified("delta", ends_at, real("epsilon", epsilon))

    def epsilon(self, delta: float) -> Certified:
        """Return the least epsilon >= 0 such that f-DP implies (epsilon, delta)-DP."""
        return self._certified("epsilon", epsilon_interval, real("delta", delta))

    def _certified(
        self, quantity: Any, ask: Callable[[Profile, float], tuple[float, float, float]], at: float
    ) -> Certified:
        ways = [self.forward] if self.is_symmetric else [self.forward, self.backward]
        ends = map(max, zip(*(ask(one, at) for one in ways), strict=True))
        return Certified(*ends, quantity=quantity, accountant=_ACCOUNTANT, at=at)

    def conjugate(self, slope: float) -> tuple[float, float]:
        """Return both ends of the convex conjugate ``f*(y) = sup over x of y x - f(x)``.

        ``f*(-e^eps) = delta(eps) - 1`` of the forward profile, ``f*(-e^-eps) = e^-eps (delta(eps)
        - 1)`` of the backward one, and ``f*(y) = y`` for ``y >= 0``.

        Args:
            slope: The slope y, a finite number.
        """
        y = real("slope", slope, _SLOPE)
        if y >= 0.0:
            return y, y
        steep = y <= -1.0
        profile = self.forward if steep else self.backward
        size = 1.0 if steep else -y
        epsilon = abs(math.log(-y))
        lower, _, upper = ends_at(profile, epsilon)
        slack = 2.0**-48 * (1.0 + epsilon) * size
        return size * (lower - 1.0) - slack, min(size * (upper - 1.0) + slack, 0.0)

    def biconjugate(self) -> TradeOff:
        """Return ``f**``, the lower convex envelope: f itself, which is closed and convex."""
        return self

    def symmetrize(self) -> TradeOff:
        """Return ``min(f, f^-1)**``, what f-DP means for both orders of each two neighbours."""
        from hockeystick.tradeoffs.operations.order import symmetrize

        return symmetrize(self)

    def subsample(self, rate: float) -> TradeOff:
        """Return ``C_p(f) = min(f_p, f_p^-1)**`` with ``f_p = p f + (1-p) (1 - alpha)``.

        A mechanism that is f-DP under replace-one, run on a random subset of fixed size that holds
        each record with probability p, is ``C_p(f)``-DP under replace-one. An asymmetric f is
        symmetrized: a sample without the record has the outputs of one with either of its values.

        Args:
            rate: The probability p, in [0, 1]; 0 gives ``1 - alpha`` and 1 gives f symmetrized.

        References:
            Dong, Roth and Su 2022, theorem 4.2. One step is tight; a composition of the result is
            valid, but not attained.

        Example:
            >>> import hockeystick as hs
            >>> hs.tradeoffs.GaussianTradeOff(1.0).subsample(0.1)
            SampledGaussianTradeOff(mu=1.0, rate=0.1)
        """
        from hockeystick.tradeoffs.operations.order import subsample

        return subsample(self, real("rate", rate))

    def group(self, size: int) -> TradeOff:
        """Return ``1 - (1 - f)^og``, the trade-off function for groups of g records.

        Exact for Gaussians and Laplace; of a plan with a form for groups, such as a ``DPSGD`` with
        Poisson batches, the function of ``plan.for_group(size)``; proven ends otherwise (see
        ``GroupTradeOff``). It is for groups in one order: all of g pairs of neighbours have f, none
        of them its inverse. For groups of which some records come and others go, symmetrize f.

        Of a ``PoissonSubsampled`` that is written out, the pair of its groups is
        ``mechanisms.PoissonSubsampledGroup(inner, rate, size) ** steps``: the lower ends of both
        are proven, and the larger of the two holds.

        Args:
            size: The number g of records, an integer from 1 to 10^15. Where there is no closed form
                the work grows with it up to 5,000 steps, after which the power counts as 1.

        References:
            Dong, Roth and Su 2022, theorem 2.14.

        Example:
            >>> import hockeystick as hs
            >>> hs.tradeoffs.GaussianTradeOff(0.5).group(3)
            GaussianTradeOff(mu=1.5)
            >>> print(f"{hs.tradeoffs.ApproxTradeOff(1.0, 1e-6).group(3).power(0.0):.10e}")
            1.1107337927e-05
        """
        from hockeystick.tradeoffs.operations.group import group_of

        g = count("size", size, _SIZE)
        if g == 1:
            return self
        known = None
        if self.release is not None:
            from hockeystick.accountants.tradeoff import group_of_release

            known = group_of_release(self.release, g)
        return known or group_of(self, g)

    def renyi_divergence(self, order: float) -> tuple[float, float]:
        """Return both ends of the larger Renyi divergence of both directions, at an order > 1."""
        from hockeystick.tradeoffs.operations.renyi_integral import renyi_divergence

        lower, upper = renyi_divergence(self, order)
        return lower, upper

    def __ge__(self, other: TradeOff) -> bool:
        """Return whether f >= g is proven for all rates from 1e-300 on: f is as private as g."""
        if not isinstance(other, TradeOff):
            return NotImplemented
        return self.compare(other) is True

    def __le__(self, other: TradeOff) -> bool:
        """Return whether g >= f is proven for all rates from 1e-300 on: g is as private as f."""
        return other >= self if isinstance(other, TradeOff) else NotImplemented

    def compare(self, other: TradeOff) -> bool | None:
        """Return whether f >= g everywhere: True and False are proven, None is undecided."""
        if not isinstance(other, TradeOff):
            raise ParameterError("other", other, "a trade-off function")
        from hockeystick.tradeoffs.operations.order import at_least

        return at_least(self, other)

    def plot(self, *others: TradeOff, **how: Any) -> Any:
        """Draw this function, and others over it; see ``hockeystick.tradeoffs.plot.plot``."""
        from hockeystick.tradeoffs.plot import plot

        return plot(self, *others, **how)

    def __matmul__(self, other: TradeOff) -> TradeOff:
        """Return the tensor product ``T(P x P', Q x Q')``, that of both releases together.

        It is accounted like any plan: exact for Gaussians, certified for all else.
        """
        if not isinstance(other, TradeOff):
            raise ParameterError("the right side of @", other, "a trade-off function")
        from hockeystick.accountants.tradeoff import tensor

        return tensor(((self, 1), (other, 1)))

    def __pow__(self, runs: float) -> TradeOff:
        """Return the tensor product of several copies, that of independent runs."""
        from hockeystick.accountants.tradeoff import tensor

        return tensor(((self, count("count", runs)),))

    @property
    def advantage(self) -> float:
        """The largest difference of true and false positive rate: delta(0), rounded up."""
        return self.delta(0.0).upper

    def bayes_error(self, prior: float) -> float:
        """Return the least error of guessing whether it was P (with the prior) or Q, rounded down.

        ``min over alpha of prior alpha + (1 - prior) f(alpha)``.
        """
        first = real("prior", prior, _PROBABILITY)
        if first in (0.0, 1.0):
            return 0.0
        weight, profile = 1.0 - first, self.forward
        epsilon = math.log(first / weight)
        if epsilon < 0.0:
            weight, profile, epsilon = first, self.backward, -epsilon
        upper = ends_at(profile, epsilon * _DOWN)[2]
        return max(weight * (1.0 - upper) * _DOWN - 5e-324, 0.0)

    def reconstruction(self, baseline: float) -> float:
        """Return the largest success probability of an attack with this prior probability.

        ``1 - f(baseline)``, an upper end (Kaissis, Hayes, Ziller and Rueckert 2023).

        Args:
            baseline: The probability of success without the release, in [0, 1].
        """
        return float(self.power(real("baseline", baseline, _PROBABILITY)))


class SymmetricTradeOff(TradeOff):
    """A trade-off function that is its own inverse."""

    __slots__ = ()

    @property
    def backward(self) -> Profile:
        return self.forward

    @property
    def is_symmetric(self) -> bool:
        return True

    def inverse(self) -> Self:
        return self


def _falling(x: Array, ends: Ends) -> Ends:
    """Return the ends of a decreasing function, each tightened by those at the other x."""
    order = np.argsort(x, kind="stable")
    lower, upper = np.empty_like(x), np.empty_like(x)
    lower[order] = np.maximum.accumulate(ends.lower[order][::-1])[::-1]
    upper[order] = np.minimum.accumulate(ends.upper[order])
    return Ends(lower, upper)


def _logs(ends: Ends) -> Ends:
    """Return the logarithms of ends, rounded outward."""
    with np.errstate(divide="ignore"):
        lower, upper = np.log(np.maximum(ends.lower, 0.0)), np.log(np.minimum(ends.upper, 1.0))
    return Ends(lower - 4.0 * ULP * np.abs(lower), upper + 4.0 * ULP * np.abs(upper))


def _shaped(name: str, values: ArrayLike, ask: Callable[[Array], Ends]) -> tuple[Any, Any]:
    """Return ends in the shape of the rates, or logarithms, asked about; floats for a number."""
    logs = name.startswith("log")
    allowed = _LOGS_ALLOWED if logs else PARAMETERS["delta"].allowed
    try:
        given = np.asarray(values)
        numbers = np.asarray(given, dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(name, values, allowed) from None
    # Texts and truth values are no numbers.
    if given.size and given.dtype.kind not in "iufO":
        raise ParameterError(name, values, allowed)
    inside = numbers <= 0.0 if logs else (numbers >= 0.0) & (numbers <= 1.0)
    if not inside.all():
        raise ParameterError(name, float(numbers[~inside][0]), allowed)
    ends = ask(numbers if numbers.size else np.zeros(1))
    lower, upper = (end[: numbers.size].reshape(given.shape) for end in ends)
    return (lower, upper) if given.shape else (float(lower), float(upper))


def complement(ends: Ends) -> Ends:
    """Return one less a rate: the ends of 1 - f from those of f."""
    return Ends((1.0 - ends.upper) * (1.0 - ULP), (1.0 - ends.lower) * (1.0 + ULP))


def _guessing(alpha: Array) -> Array:
    """Return ``1 - alpha``, rounded up: the type II error of guessing."""
    rest = 1.0 - alpha
    return np.where(1.0 - rest == alpha, rest, np.minimum(np.nextafter(rest, 2.0), 1.0))


def _exp_of_logs(logs: Array, sign: float) -> Array:
    """Return ``e^logs``, rounded up (sign 1) or down (-1), as rates; refuse to underflow."""
    if not (logs >= _LEAST_LOG).all():
        least = float(logs.min())
        raise ParameterError("log_alpha", least, f"at least {_LEAST_LOG:g} for this function")
    return np.minimum(np.exp(logs) * (1.0 + sign * 8.0 * ULP), 1.0)
