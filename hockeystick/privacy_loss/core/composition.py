"""The privacy losses of a plan: those of its runs with their counts, in both directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from itertools import islice
from typing import ClassVar, Final, TypeAlias, cast, final

from hockeystick.mechanisms import Mechanism, Node, Parallel, evaluate
from hockeystick.numerics import ULP, Ball, FloatAndDecimal, decimal, log_of
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import float_down, float_up, short_up
from hockeystick.precision.profiles import exact
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    NO_INFINITY_MASS,
    AnalyticLoss,
    CGFEstimate,
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    ProfiledLoss,
    dominating_pair,
)

# Factors that cover every reading of a parameter, and a few roundings.
LESS: Final = 1.0 - 2.0**-50
MORE: Final = 1.0 + 2.0**-50


def log_complement(rate: float | Fraction) -> float:
    """Return ``ln(1-p)`` of a rate below 1, also where its float is 1."""
    if rate < 0.99:
        return math.log1p(-float(rate))
    return log_of(1 - Fraction(rate))


@lru_cache(maxsize=256, typed=True)
def complement_bounds(rate: float | Fraction) -> tuple[float, float]:
    """Return bounds of ``ln(1-p)`` over every reading of a rate below 1."""
    value = log_complement(rate)
    if isinstance(rate, float):
        slack = 2.0 * ULP * rate / (1.0 - rate)
    else:
        slack = 2.0 * ULP * float(rate) / max(float(1 - rate), 0.01)
    slack += 64.0 * ULP * abs(value)
    return value - slack, min(value + slack, 0.0)


def largest_when_adding(rate: float | Fraction) -> float:
    """Return ``-ln(1-p)``, rounded up over every reading of a rate below 1."""
    return -complement_bounds(rate)[0]


def log_mixed(exponent: float, weight: float) -> float:
    """Return ``ln(1 - w + w e^k)``, rounded up."""
    if exponent > LARGEST_EXPONENT:
        return (exponent + math.log1p(math.exp(-exponent) / weight)) * (1.0 + 4.0 * ULP)
    return math.log1p(weight * math.expm1(exponent)) * (1.0 + 16.0 * ULP)


def decimal_or_above(rate: Fraction) -> float:
    """Return the float that prints as a rate, or the least one above it where there is none."""
    nearest = float(rate)
    if decimal(nearest) == rate or Fraction(nearest) >= rate:
        return nearest
    return math.nextafter(nearest, math.inf)


def mu_of(noise_multiplier: float | Fraction) -> float:
    """Return ``1/x`` of a noise multiplier to within half a unit in the last place, or inf."""
    try:
        return float(1 / noise_multiplier)
    except OverflowError:
        return math.inf


def mu_squared_upper(noise_multiplier: float | Fraction) -> Fraction:
    """Return ``1/x^2`` of a noise multiplier, exact or rounded up to 40 digits."""
    return short_up(1 / decimal(noise_multiplier) ** 2)


class GaussianNoiseLoss(PrivacyLoss):
    """A loss of outputs N(m, 1), or of mixtures of equal weights, of which an example moves m."""

    __slots__ = ()

    noise_multiplier: float | Fraction

    @property
    def mu(self) -> float:
        """How far m is moved, in units of the noise."""
        return mu_of(self.noise_multiplier)

    @property
    def dominating_mu_squared(self) -> Fraction:
        return mu_squared_upper(self.noise_multiplier)


@dominating_pair.register
def _(mechanism: Parallel) -> DominatingPair:
    raise NoAnalysisError(SPLIT_INSIDE)


Terms: TypeAlias = tuple[tuple[PrivacyLoss, int], ...]
Lines: TypeAlias = tuple[tuple[AnalyticLoss, int], ...]
# For each split of the data: its name, the number of parts, and the part that the record is in.
Place: TypeAlias = tuple[tuple[str, int, int], ...]

SPLIT_INSIDE: Final = (
    "releases of disjoint parts of the data are accounted part by part, in a composition or a "
    "repetition; put what is around them into each of the parts"
)
ALONE: Final = (
    "a selection of partitions is accounted by itself and in compositions, not inside of another "
    "mechanism"
)
# No split has this name: whether a record is the only one of its kind, in all releases alike.
KIND: Final = ""
# The largest number of places where a record may be: each takes an answer of its own.
_LARGEST_SPLIT: Final = 2000


@final
@dataclass(frozen=True, slots=True)
class Composition:
    """The losses of a plan's runs with their counts, one list per direction.

    ``removing`` and ``adding`` are composed separately, to the very end. Where the data are split
    into disjoint parts, they are the losses of a record in one combination of parts (``place``),
    and ``others`` those of a record in the other combinations; epsilon is the largest of all.

    ``alone`` are the losses for all kinds of neighbours of a run that is all there is: what a later
    or earlier release depends on may be of another kind, so that they say nothing of more.
    """

    removing: Terms
    adding: Terms
    others: tuple[Composition, ...] = ()
    place: Place = ()
    alone: tuple[Composition, ...] = ()

    @staticmethod
    def composed(parts: Iterable[Composition]) -> Composition:
        """Return the composition of all."""
        listed = list(parts)
        if len(listed) == 1:
            return listed[0]
        anywhere = [part for part in listed if not part.is_split]
        known = Composition(
            merged(part.removing for part in anywhere), merged(part.adding for part in anywhere)
        )
        for part in listed:
            known = _composed(known, part) if part.is_split else known
        return known

    @staticmethod
    def split(name: str, parts: Sequence[Composition]) -> Composition:
        """Return the composition of releases each of which reads its own part of the data."""
        if len(parts) == 1:
            return parts[0]
        here = (
            Composition((), (), place=((name, len(parts), index),)) for index in range(len(parts))
        )
        pairs = zip(here, parts, strict=True)
        return _alternatives(one for at, part in pairs for one in _composed(at, part).branches)

    def repeat(self, count: int) -> Composition:
        """Return the composition of that many independent runs."""
        if count == 0:
            return EMPTY
        if count == 1:
            return self
        return Composition(
            tuple((loss, runs * count) for loss, runs in self.removing),
            tuple((loss, runs * count) for loss, runs in self.adding),
            tuple(other.repeat(count) for other in self.others),
            self.place,
        )

    @property
    def branches(self) -> tuple[Composition, ...]:
        """The compositions for a record in each of the places."""
        if not self.others:
            return (self,)
        return (Composition(self.removing, self.adding, place=self.place), *self.others)

    @property
    def directions(self) -> tuple[Terms, ...]:
        """The distinct lists of losses: one where all directions have the same."""
        each = (terms for one in self.branches for terms in (one.removing, one.adding))
        return tuple(dict.fromkeys(each))

    @property
    def analytic(self) -> tuple[Lines, ...]:
        """The directions, where all losses have contours; else nothing."""
        losses = (loss for terms in self.directions for loss, _ in terms)
        if all(isinstance(loss, AnalyticLoss) and not loss.out_of_range for loss in losses):
            return cast(tuple[Lines, ...], self.directions)
        return ()

    @property
    def anywhere(self) -> Composition:
        """The same without the places: equal compositions are kept once."""
        if not self.is_split:
            return self
        if self.alone:
            return _alternatives(self.alone)
        return _alternatives(
            dict.fromkeys(Composition(one.removing, one.adding) for one in self.branches)
        )

    @property
    def is_split(self) -> bool:
        """Whether it depends on where the record is."""
        return bool(self.place or self.others)


EMPTY: Final = Composition((), ())


@final
@dataclass(frozen=True, slots=True)
class ComposedLoss(PrivacyLoss):
    """The sum of independent losses with their counts, which a composition has in its place.

    Attained is what is attained of its parts together: all but one of them attain nothing.
    """

    parts: tuple[tuple[PrivacyLoss, int], ...]

    @property
    def expanded(self) -> tuple[tuple[PrivacyLoss, int], ...]:
        return self.parts

    attained: ClassVar[None] = None

    def cgf_estimate(self, c: float) -> CGFEstimate:
        found = [(loss.cgf_estimate(c), runs) for loss, runs in self.parts]
        return CGFEstimate(*(sum(runs * one[k] for one, runs in found) for k in range(3)))

    def cgf_bounds(self, c: float) -> Ball:
        found = [(loss.cgf_bounds(c), runs) for loss, runs in self.parts]
        value = math.fsum(runs * one.midpoint for one, runs in found)
        error = math.fsum(runs * one.radius for one, runs in found)
        return Ball(value, error * (1.0 + 8.0 * ULP) + 8.0 * ULP * abs(value))

    @property
    def supremum(self) -> float:
        return largest_loss(self.parts)

    @property
    def exact_supremum(self) -> FloatAndDecimal | None:
        exact, others = _exact_suprema(self.parts)
        return None if others else exact


class _Losses:
    """The algebra of ``compose``: every error says in which part of the plan it occurred."""

    def expanded(self, mechanism: Mechanism) -> Mechanism:
        return mechanism.expanded

    def single(self, node: Node) -> Composition:
        with _located(node):
            return losses_of_run(node.mechanism)

    def composed(self, node: Node, parts: list[Composition]) -> Composition:
        with _located(node):
            return Composition.composed(parts)

    def repeated(self, node: Node, once: Composition, count: int) -> Composition:
        return once.repeat(count)

    def split(self, node: Node, name: str, parts: list[Composition]) -> Composition:
        with _located(node):
            return Composition.split(name, parts)


@singledispatch
def losses_of_run(mechanism: Mechanism) -> Composition:
    """Return the losses of one run: its dominating pair, or several where no single one is sharp.

    Raises:
        NoAnalysisError: If they are not known.
    """
    pair = dominating_pair(mechanism)
    return Composition(once(pair.removing), once(pair.adding))


@contextmanager
def _located(node: Node) -> Iterator[None]:
    try:
        yield
    except NoAnalysisError as error:
        error.part = str(node)
        raise


def compose(mechanism: Mechanism) -> Composition:
    """Return the losses of all runs of a mechanism.

    Raises:
        NoAnalysisError: If those of a part are not known.
    """
    return evaluate(mechanism, _Losses()).anywhere


def compose_unsplit(mechanism: Mechanism) -> tuple[Terms, Terms]:
    """Return the losses of all runs, removing and adding, of a mechanism inside another one.

    Raises:
        NoAnalysisError: If those of a part are not known, or the data are split.
    """
    whole = evaluate(mechanism, _Losses())
    found = whole.anywhere
    if found.is_split:
        raise NoAnalysisError(SPLIT_INSIDE if any(name for name, *_ in whole.place) else ALONE)
    return found.removing, found.adding


def _composed(first: Composition, second: Composition) -> Composition:
    """Return the composition of both, for a record in each place compatible with both."""
    return _alternatives(
        Composition(
            merged((one.removing, other.removing)), merged((one.adding, other.adding)), (), place
        )
        for one in first.branches
        for other in second.branches
        if (place := _intersection(one.place, other.place)) is not None
    )


def _intersection(first: Place, second: Place) -> Place | None:
    known = {name: (parts, index) for name, parts, index in first}
    for name, parts, index in second:
        if known.setdefault(name, (parts, index)) == (parts, index):
            continue
        if known[name][0] != parts:
            raise NoAnalysisError(
                f"the data are split by {name} in {known[name][0]} parts and again in {parts}; "
                "give two rules two names"
            )
        return None
    return tuple(sorted((name, *rest) for name, rest in known.items()))


def _alternatives(compositions: Iterable[Composition]) -> Composition:
    """Return the compositions for a record in one of several places, as one."""
    first, *others = islice(compositions, _LARGEST_SPLIT + 1)
    if len(others) >= _LARGEST_SPLIT:
        raise NoAnalysisError(
            f"there are more than {_LARGEST_SPLIT} places where a record may be, and each takes an "
            "answer of its own; name splits by the same rule alike, or leave out cheaper parts"
        )
    return Composition(first.removing, first.adding, tuple(others), first.place)


def once(loss: PrivacyLoss | None) -> Terms:
    """Return one run of a loss, its parts where it is composed, nothing where there is none."""
    if isinstance(loss, ComposedLoss):
        return loss.parts
    return () if loss is None else ((loss, 1),)


def merged(lists: Iterable[Terms]) -> Terms:
    """Return the union of several lists, equal losses counted together."""
    counts: dict[PrivacyLoss, int] = {}
    for terms in lists:
        for loss, runs in terms:
            counts[loss] = counts.get(loss, 0) + runs
    return tuple(counts.items())


def expanded(terms: Terms) -> Terms:
    """Return the terms with losses that are sums of a few others replaced by these."""
    return merged(
        tuple((one, runs * count) for one, runs in loss.expanded) for loss, count in terms
    )


def largest_loss(terms: Terms) -> float:
    """Return an upper bound of the supremum of the sum of a direction's losses; 0 for none."""
    exact, others = _exact_suprema(terms)
    if not others:
        return float_up(max(exact))
    rest = math.fsum(count * loss.supremum for loss, count in others)
    return math.fsum((float_up(max(exact)), rest)) * (1.0 + 2.0**-50)


def least_largest_loss(terms: Terms) -> float:
    """Return a lower bound of the supremum of the sum of a direction's attained losses."""
    if any(
        one.supremum == math.inf for loss, count in terms if count for one in loss.also_attained
    ):
        return math.inf
    exact, others = _exact_suprema(attained(terms))
    if not others:
        return float_down(min(exact))
    rest = math.fsum(count * loss.least_supremum for loss, count in others)
    return max(math.fsum((float_down(min(exact)), rest)) * (1.0 - 2.0**-50), 0.0)


def _exact_suprema(terms: Terms) -> tuple[FloatAndDecimal, Terms]:
    """Return the sum of the suprema that are known exactly, and the other terms."""
    each = [(loss.exact_supremum, loss, count) for loss, count in terms]
    known = [(one, count) for one, _, count in each if one is not None]
    sums = (sum((one[side] * count for one, count in known), Fraction(0)) for side in (0, 1))
    return FloatAndDecimal(*sums), tuple((loss, count) for one, loss, count in each if one is None)


def attained(terms: Terms) -> Terms:
    """Return the attained losses; those not known are left out."""
    known = ((loss.attained, count) for loss, count in terms)
    return tuple((loss, count) for loss, count in known if loss is not None)


# With less noise mu is no float.
LEAST_NOISE: Final = 1e-300


@final
@dataclass(frozen=True, slots=True)
class ConstantLoss(PrivacyLoss):
    """A constant loss, known by two ends."""

    low: float
    high: float

    @property
    def constant(self) -> tuple[float, float]:
        return self.low, self.high

    without_constant: ClassVar[None] = None

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return CGFEstimate(c * self.high, self.high, 0.0)

    def cgf_bounds(self, c: float) -> Ball:
        return Ball(c * self.high, c * (self.high - self.low) + 2.0**-50 * abs(c * self.high))

    @property
    def supremum(self) -> float:
        return self.high

    @property
    def least_supremum(self) -> float:
        return self.low


@final
@dataclass(frozen=True, slots=True)
class NoiselessLoss(ProfiledLoss):
    """The pair ``(1-p) d_0 + p d_1`` against ``d_0`` (removing), or the other way round.

    Removing, the loss is infinite with probability p, and ln(1-p) otherwise; adding, it is
    -ln(1-p). For epsilon >= 0 the larger delta is p, from removing.
    """

    rate: float | Fraction
    removing: bool

    @property
    def infinity_mass(self) -> FloatAndDecimal:
        infinite = self.removing or self.rate == 1
        return FloatAndDecimal.of(self.rate) if infinite else NO_INFINITY_MASS

    @property
    def finite(self) -> PrivacyLoss | None:
        if self.rate == 1:
            return None
        return ConstantLoss(*complement_bounds(self.rate)) if self.removing else self

    @property
    def constant(self) -> tuple[float, float]:
        low, high = complement_bounds(self.rate)
        return -high, -low

    without_constant: ClassVar[None] = None

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if self.removing or self.rate == 1.0:
            return CGFEstimate(math.inf, math.inf, 0.0)
        shift = -log_complement(self.rate)
        return CGFEstimate(c * shift, shift, 0.0)

    def cgf_bounds(self, c: float) -> Ball:
        value = self.cgf_estimate(c).value
        return Ball(value, 2.0**-49 * value if value < math.inf else 0.0)

    @property
    def supremum(self) -> float:
        if self.removing or self.rate == 1.0:
            return math.inf
        return largest_when_adding(self.rate)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return p (removing) or (1 - exp(eps) (1 - p))_+ (adding), for epsilon >= 0."""
        p = min(exact(self.rate) * (1 + perturbation * mp.mpf(2) ** -52), 1)
        return p if self.removing else max(mp.zero, 1 - mp.exp(epsilon) * (1 - p))


def edge_pair(noise: float, least: float = 0.0) -> DominatingPair | None:
    """Return the dominating pair for noise 0 or inf; None in between, refused below the least."""
    if noise == math.inf:
        return DominatingPair(None, None)
    if noise == 0.0:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    if noise < least:
        raise NoAnalysisError(f"noise multipliers are analysed from {least:g} on, or 0")
    return None


TermSequence: TypeAlias = Sequence[tuple[PrivacyLoss, int]]

# Orders are searched for ``|ln c|`` up to this.
LARGEST_LOG_ORDER: Final = 60.0


def total(terms: TermSequence, c: float) -> CGFEstimate:
    """Return the estimate of the composition's K, the sum over its runs."""
    value = first = second = 0.0
    for loss, count in terms:
        one = loss.cgf_estimate(c)
        value += count * one.value
        first += count * one.first_derivative
        second += count * one.second_derivative
    return CGFEstimate(value, first, second)


def cgf_upper(terms: Terms, c: float) -> float:
    """Return a proven upper bound of the composition's ``K(c)``."""
    if c > largest_order(terms):
        return math.inf
    return sum_of_bounds(terms, c) * (1.0 + 8.0 * ULP)


def sum_of_bounds(terms: TermSequence, c: float) -> float:
    """Return an upper bound of the composition's ``K(c)``, without the rounding of the products."""
    found = [(loss.cgf_bounds(c), count) for loss, count in terms]
    return math.fsum(count * (cgf.midpoint + cgf.radius) for cgf, count in found)


def largest_order(terms: TermSequence) -> float:
    """Return the largest c at which K is known to be finite; inf for every c."""
    return min((loss.largest_order for loss, _ in terms), default=math.inf)


def breakpoints(terms: TermSequence) -> tuple[float, ...]:
    """Return the orders at which the derivative of the bound of K jumps, ascending."""
    return tuple(sorted({c for loss, _ in terms for c in loss.breakpoints}))


def candidate_orders(terms: TermSequence, c: float) -> tuple[float, ...]:
    """Return c, at most the last order of a finite K, and the breakpoints next to it."""
    last, near = largest_order(terms), breakpoints(terms)
    c = min(c, last)
    below, beyond = [x for x in near if x < c], [x for x in near if c < x <= last]
    return (c, *below[-1:], *beyond[:1])


def minimising_orders(terms: Terms, condition: Callable[[float], float]) -> tuple[float, ...]:
    """Return the orders c one of which minimises a function whose derivative has this sign.

    The function decreases where the condition, which increases, is negative. Where its derivative
    jumps, the minimum may be at a breakpoint next to the change of sign.
    """
    last = largest_order(terms)

    def sign(log_c: float) -> float:
        c = math.exp(log_c)
        return condition(c) if c <= last else math.inf

    log_c = increasing_root(sign, 1.0, tolerance=1e-6, farthest=LARGEST_LOG_ORDER)
    return candidate_orders(terms, math.exp(log_c))
