"""Targets as constraints: the proven interval of a quantity of a plan, and the limit on it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, final

from hockeystick import accountants
from hockeystick._suggest import same_name
from hockeystick._validate import one_of
from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.calibration.solve.targets import (
    Advantage,
    BayesError,
    Reconstruction,
    TruePositiveRate,
)
from hockeystick.conversions.convert import convert
from hockeystick.conversions.to_renyi import plan_divergence
from hockeystick.errors import ParameterError, UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.privacy_loss import Composition
from hockeystick.results import Certified

if TYPE_CHECKING:
    from hockeystick.accountants.contour.ways import LineGuess

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

# More than the rounding of an exact conversion, relative to its result.
_ROUNDING: Final = 2.0**-40
_OUTWARD: Final = 2.0**-48
_AUTO: Final = "auto"


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
        """Return the upper end."""
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
        """Return whether delta of one direction alone is proven to exceed its limit."""
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
        """Return the largest true positive rate at the false positive rate."""
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
        lower = max(p * (1.0 - most) * (1.0 - _OUTWARD) - _OUTWARD * p, 0.0) if most else p
        upper = min(p * (1.0 - least) * (1.0 + _OUTWARD) + _OUTWARD * p, p)
        return Measured(min(lower, upper), upper, self.quantity)

    def meets(self, found: Achieved) -> bool:
        return found.lower >= self.limit

    def violates(self, found: Achieved) -> bool:
        return found.upper < self.limit

    def excess(self, found: Achieved) -> float:
        """Return ln of the advantage over the prior, over the one allowed."""
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
        """Return the notion's parameter; with a lower end where the conversion is exact."""
        found = convert(plan, self.notion, **dict(self.given))
        upper = float(getattr(found, self._field))
        exact = found.origin is not None and found.origin.kind == "exact"
        return Measured(upper * (1.0 - _ROUNDING) if exact else 0.0, upper, self._field)

    @property
    def _field(self) -> str:
        """The name of the notion's first parameter."""
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
        """Return the largest ratio; a lower end where the conversion is exact."""
        found = convert(plan, RenyiDP, orders=tuple(order for order, _ in self.allowed))
        exact = found.origin is not None and found.origin.kind == "exact"
        upper = max(
            _over(size, most, 1.0 + _OUTWARD)
            for (_, size), (_, most) in zip(found.divergences, self.allowed, strict=True)
        )
        lower = 0.0
        if exact and upper > 0.0:
            directions = composition_of(plan, "rdp").directions
            lower = max(
                _over(plan_divergence(terms, order)[0], most, 1.0 - _OUTWARD)
                for terms in directions
                for order, most in self.allowed
            )
        return Measured(min(lower, upper), upper, self.quantity)

    @property
    def sentence(self) -> str:
        first = ", ".join(f"{order:g}: {most:g}" for order, most in self.allowed[:3])
        return f"RenyiDP({{{first}{', ...' if len(self.allowed) > 3 else ''}}})"


@singledispatch
def constraint_of(target: object, accountant: str) -> Constraint:
    """Return a target as a constraint, or raise."""
    allowed = (
        "ApproxDP, PureDP, GDP, ZCDP, TCDP, RenyiDP, TruePositiveRate, Advantage, BayesError or "
        "Reconstruction"
    )
    if isinstance(target, tuple | list) and len(target) == len(("epsilon", "delta")):
        allowed += f" (write ApproxDP({target[0]!r}, {target[1]!r}))"
    elif isinstance(target, int | float):
        allowed += f" (write ApproxDP({target!r}, delta=1e-5), or PureDP({target!r}))"
    raise ParameterError("target", target, allowed)


@constraint_of.register
def _(target: ApproxDP, accountant: str) -> Constraint:
    return EpsilonConstraint(target.epsilon, _proving(accountant), target.delta)


@constraint_of.register
def _(target: PureDP, accountant: str) -> Constraint:
    return EpsilonConstraint(target.epsilon, _proving(accountant), 0.0)


@constraint_of.register
def _(target: GDP, accountant: str) -> Constraint:
    return NotionConstraint(target.mu, _only_auto(accountant), GDP)


@constraint_of.register
def _(target: ZCDP, accountant: str) -> Constraint:
    return NotionConstraint(target.rho, _only_auto(accountant), ZCDP)


@constraint_of.register
def _(target: TCDP, accountant: str) -> Constraint:
    return NotionConstraint(target.rho, _only_auto(accountant), TCDP, (("omega", target.omega),))


@constraint_of.register
def _(target: RenyiDP, accountant: str) -> Constraint:
    return RenyiConstraint(1.0, _only_auto(accountant), target.divergences)


@constraint_of.register
def _(target: Advantage, accountant: str) -> Constraint:
    return AdvantageConstraint(target.value, _proving(accountant))


@constraint_of.register
def _(target: BayesError, accountant: str) -> Constraint:
    return BayesErrorConstraint(target.value, _proving(accountant), target.prior)


@constraint_of.register
def _(target: TruePositiveRate, accountant: str) -> Constraint:
    return PowerConstraint(target.rate, _only_auto(accountant), target.fpr)


@constraint_of.register
def _(target: Reconstruction, accountant: str) -> Constraint:
    return PowerConstraint(target.probability, _only_auto(accountant), target.baseline)


def _proving(accountant: str) -> str:
    """Return the name of an accountant whose answers are proven, or raise."""
    names = tuple(name for name, one in ACCOUNTANTS.items() if one.kind != "approximation")
    return one_of("accountant", same_name(accountant, names), names)


def _only_auto(accountant: str) -> str:
    """Return "auto", or raise: what else is read than epsilon and delta has its own route."""
    return one_of("accountant", accountant, (_AUTO,))


def _certified(found: object) -> Certified:
    """Return an answer that is proven, as every accountant's is that ``_proving`` lets through."""
    if not isinstance(found, Certified):
        raise ParameterError("accountant", found, "one whose answers are proven")
    return found


def _log_ratio(value: float, limit: float) -> float:
    """Return ln(value / limit) with its ends."""
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
