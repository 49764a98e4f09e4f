"""Targets: guarantees, and bounds on the success of an attack; each is a limit on one quantity."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, final

from hockeystick import _validate, accountants
from hockeystick._validate import Domain, name_in, one_of
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.contour import Contour
from hockeystick.conversions.by_losses import plan_divergence
from hockeystick.conversions.convert import convert
from hockeystick.errors import ParameterError, UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics.rounding import OUTWARD_32
from hockeystick.privacy_loss import Composition
from hockeystick.results import Certified

if TYPE_CHECKING:
    from hockeystick.accountants.contour.search import LineGuess

_PROBABILITY: Final = Domain(symbol="p", low=0, high=1, typical=(0.01, 0.5))
_PRIOR: Final = Domain("pi", 0, 1, (0.01, 0.5), low_open=True, high_open=True)
# More than the rounding of an exact conversion, relative to its result.
_ROUNDING: Final = 2.0**-40
_AUTO: Final = "auto"


@final
@dataclass(frozen=True, slots=True)
class TruePositiveRate:
    """At most this true positive rate for every membership test with this false positive rate.

    ``1 - f(fpr) <= rate``, f the trade-off function of the plan.

    Args:
        rate: The largest true positive rate, from fpr to 1.
        fpr: The false positive rate, in [0, 1].

    References:
        Dong, Roth and Su 2022, definition 2.1.

    Example:
        >>> import hockeystick as hs
        >>> hs.calibration.TruePositiveRate(rate=0.1, fpr=0.01)
        TruePositiveRate(rate=0.1, fpr=0.01)
    """

    rate: float
    fpr: float

    def __post_init__(self) -> None:
        _check_probabilities(self, "rate", "fpr")
        _refuse_less_than_a_guess("rate", self.rate, "fpr", self.fpr)


@final
@dataclass(frozen=True, slots=True)
class Advantage:
    """At most this difference of true and false positive rate, for every membership test.

    ``delta(0) <= value``: the total variation distance of the outputs.

    Args:
        value: The largest advantage, in [0, 1].

    Example:
        >>> import hockeystick as hs
        >>> target = hs.calibration.Advantage(0.3829249225480262)
        >>> found = hs.calibrate(hs.Gaussian(3), "noise_multiplier", target)
        >>> round(found.value, 6)
        1.0
    """

    value: float

    def __post_init__(self) -> None:
        _check_probabilities(self, "value")


@final
@dataclass(frozen=True, slots=True)
class BayesError:
    """At least this error for everyone who guesses membership from the release and a prior.

    ``p (1 - delta(ln((1-p)/p))) >= value`` with p the smaller of prior and 1 - prior.

    Args:
        value: The least error, in [0, 1].
        prior: The probability of membership before the release, above 0 and below 1.

    References:
        Dong, Roth and Su 2022, section 2.

    Example:
        >>> import hockeystick as hs
        >>> hs.calibration.BayesError(value=0.09, prior=0.1)
        BayesError(value=0.09, prior=0.1)
    """

    value: float
    prior: float

    def __post_init__(self) -> None:
        _check_probabilities(self, "value")
        object.__setattr__(self, "prior", _validate.real("prior", self.prior, _PRIOR))


@final
@dataclass(frozen=True, slots=True)
class Reconstruction:
    """At most this chance of a reconstruction that has a baseline chance without the release.

    ``1 - f(baseline) <= probability``.

    Guarantees:
        Sufficient, and necessary only for attacks that come down to one test.

    Args:
        probability: The largest chance of success, from baseline to 1.
        baseline: The chance of success of a guess without the release, in [0, 1].

    References:
        Balle, Cherubin and Hayes 2022; Kaissis, Hayes, Ziller and Rueckert 2023.

    Example:
        >>> import hockeystick as hs
        >>> hs.calibration.Reconstruction(probability=0.4, baseline=0.1)
        Reconstruction(probability=0.4, baseline=0.1)
    """

    probability: float
    baseline: float

    def __post_init__(self) -> None:
        _check_probabilities(self, "probability", "baseline")
        _refuse_less_than_a_guess("probability", self.probability, "baseline", self.baseline)


def _check_probabilities(target: object, *names: str) -> None:
    for name in names:
        value = _validate.real(name, getattr(target, name), _PROBABILITY)
        object.__setattr__(target, name, value)


def _refuse_less_than_a_guess(name: str, value: float, other: str, least: float) -> None:
    if value < least:
        allowed = f"at least {other}, which is {least:g}: a blind guess reaches as much"
        raise ParameterError(name, value, allowed)


Target: TypeAlias = (
    ApproxDP
    | PureDP
    | GDP
    | ZCDP
    | TCDP
    | RenyiDP
    | TruePositiveRate
    | Advantage
    | BayesError
    | Reconstruction
)


@final
@dataclass(frozen=True, slots=True)
class Measured:
    """A proven interval of the quantity that a target bounds.

    Args:
        lower: Proven lower end; 0 where none is known.
        upper: Proven upper end.
        quantity: What it is.
    """

    lower: float
    upper: float
    quantity: str

    def __float__(self) -> float:
        return self.upper


Achieved: TypeAlias = Certified | Measured


@dataclass(frozen=True, slots=True)
class Constraint(ABC):
    """A target as an upper limit on one quantity of a plan, unless a subclass says otherwise."""

    limit: float
    accountant: str
    quantity: ClassVar[str]

    @abstractmethod
    def evaluate(self, plan: Mechanism) -> Achieved:
        """Return the quantity's proven ends for a plan."""

    def meets(self, found: Achieved) -> bool:
        """Return whether the target is proven to be met."""
        return found.upper <= self.limit

    def violates(self, found: Achieved) -> bool:
        """Return whether the target is proven not to be met."""
        return found.lower > self.limit

    def excess(self, found: Achieved) -> float:
        """Return ln of the upper end over the limit; it only guides the search."""
        return _log_ratio(found.upper, self.limit)

    def costs_more(self, one: Achieved, other: Achieved) -> bool:
        """Return whether one is proven to be less private than another."""
        return one.lower > other.upper

    def misses(self, plan: Mechanism, direction: int = 0, line: LineGuess | None = None) -> bool:
        """Return whether a cheap proof shows that a plan does not meet the target.

        The direction that is tried first and the line to begin with prove nothing.
        """
        return False

    @property
    def sentence(self) -> str:
        """The target in words, to follow "reaches"."""
        return f"{self.quantity} {self.limit:g}"


@final
@dataclass(frozen=True, slots=True)
class EpsilonConstraint(Constraint):
    """``epsilon(delta) <= limit``."""

    delta: float
    quantity: ClassVar[str] = "epsilon"

    def evaluate(self, plan: Mechanism) -> Achieved:
        return _certified(accountants.epsilon(plan, self.delta, accountant=self.accountant))

    def misses(self, plan: Mechanism, direction: int = 0, line: LineGuess | None = None) -> bool:
        # Delta of one direction alone is proven to exceed its limit.
        if self.accountant not in (_AUTO, Contour.name) or not self.limit < math.inf:
            return False
        contour = Contour(smooths=False, guess=line)
        try:
            directions = composition_of(plan, Contour.name).directions
            compositions = [
                Composition(terms, terms)
                for terms in (*directions[direction:], *directions[:direction])
            ]
            return any(contour.delta(one, self.limit).lower > self.delta for one in compositions)
        except UnsupportedError:
            return False

    @property
    def sentence(self) -> str:
        return f"epsilon {self.limit:g} at delta {self.delta:g}"


@final
@dataclass(frozen=True, slots=True)
class AdvantageConstraint(Constraint):
    """``delta(0) <= limit``."""

    quantity: ClassVar[str] = "advantage"

    def evaluate(self, plan: Mechanism) -> Achieved:
        found = accountants.delta(plan, 0.0, accountant=self.accountant)
        return Measured(_certified(found).lower, float(_certified(found)), self.quantity)


@final
@dataclass(frozen=True, slots=True)
class PowerConstraint(Constraint):
    """``1 - f(fpr) <= limit``."""

    fpr: float
    quantity: ClassVar[str] = "true positive rate"

    def evaluate(self, plan: Mechanism) -> Achieved:
        lower, upper = accountants.tradeoff(plan).power_bounds(self.fpr)
        return Measured(float(lower), float(upper), self.quantity)

    @property
    def sentence(self) -> str:
        return f"true positive rate {self.limit:g} at false positive rate {self.fpr:g}"


@final
@dataclass(frozen=True, slots=True)
class BayesErrorConstraint(Constraint):
    """``p (1 - delta(ln((1-p)/p))) >= limit``: a lower limit."""

    prior: float
    quantity: ClassVar[str] = "Bayes error"

    def evaluate(self, plan: Mechanism) -> Achieved:
        p = min(self.prior, 1.0 - self.prior)
        # 1 - p is off by half an ulp where prior > 1/2, which is far less than this slack.
        epsilon, slack = math.log1p(-p) - math.log(p), 2.0**-46
        low, high = max(epsilon - slack * (1.0 + epsilon), 0.0), epsilon + slack * (1.0 + epsilon)
        most = _certified(accountants.delta(plan, epsilon=low, accountant=self.accountant)).upper
        least = _certified(accountants.delta(plan, epsilon=high, accountant=self.accountant)).lower
        lower = max(p * (1.0 - most) * (1.0 - OUTWARD_32) - OUTWARD_32 * p, 0.0) if most else p
        upper = min(p * (1.0 - least) * (1.0 + OUTWARD_32) + OUTWARD_32 * p, p)
        return Measured(min(lower, upper), upper, self.quantity)

    def meets(self, found: Achieved) -> bool:
        return found.lower >= self.limit

    def violates(self, found: Achieved) -> bool:
        return found.upper < self.limit

    def excess(self, found: Achieved) -> float:
        p = min(self.prior, 1.0 - self.prior)
        return _log_ratio(p - found.lower, p - self.limit)

    def costs_more(self, one: Achieved, other: Achieved) -> bool:
        return one.upper < other.lower

    @property
    def sentence(self) -> str:
        return f"Bayes error {self.limit:g} at prior {self.prior:g}"


@final
@dataclass(frozen=True, slots=True)
class NotionConstraint(Constraint):
    """The parameter of a notion that a plan converts to: the upper end is that of the theorem."""

    notion: type[Notion]
    given: tuple[tuple[str, float], ...] = ()
    quantity: ClassVar[str] = "parameter"

    def evaluate(self, plan: Mechanism) -> Achieved:
        found = convert(plan, self.notion, **dict(self.given))
        upper = float(getattr(found, self._field))
        exact = found.origin is not None and found.origin.kind == "exact"
        return Measured(upper * (1.0 - _ROUNDING) if exact else 0.0, upper, self._field)

    @property
    def _field(self) -> str:
        return "mu" if self.notion is GDP else "rho"

    @property
    def sentence(self) -> str:
        rest = "".join(f", {name}={value:g}" for name, value in self.given)
        return f"{self.notion.__name__}({self._field}={self.limit:g}{rest})"


@final
@dataclass(frozen=True, slots=True)
class RenyiConstraint(Constraint):
    """``D_order <= allowed`` for all given orders: the largest ratio of the two, at most 1."""

    allowed: tuple[tuple[float, float], ...]
    quantity: ClassVar[str] = "largest divergence over the one allowed"

    def evaluate(self, plan: Mechanism) -> Achieved:
        found = convert(plan, RenyiDP, orders=tuple(order for order, _ in self.allowed))
        exact = found.origin is not None and found.origin.kind == "exact"
        upper = max(
            _over(size, most, 1.0 + OUTWARD_32)
            for (_, size), (_, most) in zip(found.divergences, self.allowed, strict=True)
        )
        lower = 0.0
        if exact and upper > 0.0:
            directions = composition_of(plan, "rdp").directions
            lower = max(
                _over(plan_divergence(terms, order)[0], most, 1.0 - OUTWARD_32)
                for terms in directions
                for order, most in self.allowed
            )
        return Measured(min(lower, upper), upper, self.quantity)

    @property
    def sentence(self) -> str:
        first = ", ".join(f"{order:g}: {most:g}" for order, most in self.allowed[:3])
        return f"RenyiDP({{{first}{', ...' if len(self.allowed) > 3 else ''}}})"


def constraint_of(target: object, accountant: str) -> Constraint:
    """Return a target as a constraint, or raise."""
    make = _CONSTRAINTS.get(type(target))
    if make is not None:
        return make(target, accountant)
    kinds = ", ".join(kind.__name__ for kind in _CONSTRAINTS)
    raise ParameterError("target", target, f"one such as ApproxDP(epsilon=1, delta=1e-5): {kinds}")


def _proving(accountant: str) -> str:
    names = tuple(name for name, one in ACCOUNTANTS.items() if one.kind != "approximation")
    return name_in("accountant", accountant, names)


def _only_auto(accountant: str) -> str:
    return one_of("accountant", accountant, (_AUTO,))


def _certified(found: object) -> Certified:
    if not isinstance(found, Certified):
        raise ParameterError("accountant", found, "one whose answers are proven")
    return found


def _log_ratio(value: float, limit: float) -> float:
    if value <= 0.0:
        return -math.inf
    if limit <= 0.0 or value == math.inf:
        return math.inf
    return math.log(value) - math.log(limit) if limit < math.inf else -math.inf


def _over(size: float, most: float, outward: float) -> float:
    """Return size / most, pushed outward; 0 for nothing, inf where nothing is allowed."""
    if size == 0.0 or most == math.inf:
        return 0.0
    return size / most * outward if most > 0.0 else math.inf


_CONSTRAINTS: Final[Mapping[type, Callable[[Any, str], Constraint]]] = {
    ApproxDP: lambda one, name: EpsilonConstraint(one.epsilon, _proving(name), one.delta),
    PureDP: lambda one, name: EpsilonConstraint(one.epsilon, _proving(name), 0.0),
    GDP: lambda one, name: NotionConstraint(one.mu, _only_auto(name), GDP),
    ZCDP: lambda one, name: NotionConstraint(one.rho, _only_auto(name), ZCDP),
    TCDP: lambda one, name: NotionConstraint(
        one.rho, _only_auto(name), TCDP, (("omega", one.omega),)
    ),
    RenyiDP: lambda one, name: RenyiConstraint(1.0, _only_auto(name), one.divergences),
    Advantage: lambda one, name: AdvantageConstraint(one.value, _proving(name)),
    BayesError: lambda one, name: BayesErrorConstraint(one.value, _proving(name), one.prior),
    TruePositiveRate: lambda one, name: PowerConstraint(one.rate, _only_auto(name), one.fpr),
    Reconstruction: lambda one, name: PowerConstraint(
        one.probability, _only_auto(name), one.baseline
    ),
}
