"""What dominates where only bounds are known: a loss with what some data attain, and two halves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, ClassVar, Final, TypeAlias, final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, lowest
from hockeystick.privacy_loss.core.atomic import AtomListLoss, kept
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    AnalyticLoss,
    Array,
    Atoms,
    CGFEstimate,
    ClosedFormProfile,
    DominatingPair,
    Masses,
    NoAnalysisError,
    PrivacyLoss,
    both,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss, effective_range


class _OfDominating:
    """An attribute that is the dominating loss's."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, loss: DominatedLoss | None, owner: type) -> Any:
        return self if loss is None else getattr(loss.dominating, self.name)


@final
@dataclass(frozen=True, slots=True)
class DominatedLoss(CellLoss):
    """A loss by two others: upper ends are those of ``dominating``, lower ends of ``attained``.

    Some data and queries have the attained loss in each of many runs; None where no case is known.
    ``exact`` tells that some pair of data sets attains the dominating profile in a single run, at
    ``eps >= 0``.
    """

    # Fields without a default, where dataclasses would take the base's properties for one.
    dominating: CellLoss = field()
    attained: PrivacyLoss | None = field()
    also_attained: tuple[PrivacyLoss, ...] = ()
    exact: bool = False
    attained_in_samples: bool = False

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        return self.dominating.closed_form_profile if self.exact else None

    analytic: ClassVar[Any] = _OfDominating()
    atoms: ClassVar[Any] = _OfDominating()
    cells: ClassVar[Any] = _OfDominating()
    cgf_bounds: ClassVar[Any] = _OfDominating()
    cgf_estimate: ClassVar[Any] = _OfDominating()
    clt_mu_squared: ClassVar[Any] = _OfDominating()
    dominating_mu_squared: ClassVar[Any] = _OfDominating()
    endpoint_tolerance: ClassVar[Any] = _OfDominating()
    infimum: ClassVar[Any] = _OfDominating()
    sixth_moment_upper: ClassVar[Any] = _OfDominating()
    supremum: ClassVar[Any] = _OfDominating()
    zcdp_line: ClassVar[Any] = _OfDominating()


def dominated_pair(above: CellLoss, below: PrivacyLoss | None) -> DominatingPair:
    """Return the losses of a pair that is the same in both directions."""
    return both(above if above == below else DominatedLoss(above, below))


# The order, times the standard deviation of the loss, at which the losses of data are compared.
_ORDER: Final = 5.0


def costliest(losses: Sequence[PrivacyLoss]) -> PrivacyLoss | None:
    """Return the loss with the largest K at an order that decides epsilon at common deltas."""
    deviation = math.sqrt(
        max((one.cgf_estimate(1e-3).second_derivative for one in losses), default=0.0)
    )
    order = _ORDER / deviation if deviation > 0.0 else 1.0
    return max(losses, key=lambda one: one.cgf_estimate(order).value, default=None)


# Upper bounds of pairs of profiles at epsilons that ascend from 0.
Choices: TypeAlias = Callable[[Array], Sequence[tuple[Array, Array]]]


@final
@dataclass(frozen=True, slots=True)
class EitherWay:
    """The profiles of two losses by their cells, each moved to its ends, rounded up.

    With ``odds`` c the inner outputs A, B and C are any within a factor of c. As F is convex, their
    densities may be 1 and c, up to a factor; the mean of F is largest where at most three of these
    triples have weight, as A, B and C add up to 1: those of two answers, or all turns of one.
    """

    above: CellLoss
    reverse: CellLoss
    odds: float = 0.0

    def __call__(self, epsilons: Array) -> Sequence[tuple[Array, Array]]:
        above, reverse = _profile(self.above, epsilons), _profile(self.reverse, epsilons)
        c = self.odds
        if not c:
            return [(above, reverse)]
        one, two = above * (1.0 + c) / (c + 2.0), reverse * (1.0 + c) / (2.0 * c + 1.0)
        return [(above, reverse), (one, one), (two, two)]


# Losses of B against C, ranges of the sum of A, and the most epsilons.
_LOSSES: Final = 32
_RANGES: Final = 16
_MOST_EPSILONS: Final = 4096


@final
@dataclass(frozen=True, slots=True)
class FreeThird:
    """The profiles where a loss dominates B against C, and A is within a factor of both.

    The factor is c, of the largest loss. B and C are what some kernel makes of the loss's pair B'
    and C'. Where an output y has ``B >= C``, A is between ``B/c`` and ``c C``, and a convex F costs
    at most what both ends do, at random: functions of B and C alone, convex and homogeneous, so at
    most means over the kernel's inputs x. There sticks below 1 cost nothing, as those above 1 do
    where ``B < C``. So each x with ``B' > C'`` is split in three: some of it has ``A = B'/c``, some
    ``A = c C'``, and the rest, which goes where ``B < C``, costs nothing and takes at most
    ``A = c B'``. Let the A of all these x add up to a. For any ``mu >= 0`` the sticks above 1 cost
    at most the sum of the largest ``cost + mu A``, less ``mu a``; the least of these is at a mu
    with two parts alike. It falls with a, from where all have ``A = B'/c``, and those below 1 cost
    the same of ``1 - a``, the loss being the same both ways. Choices are ranges of a.
    """

    rate: Fraction
    replaced: CellLoss

    def __call__(self, epsilons: Array) -> Sequence[tuple[Array, Array]]:
        if epsilons.size > _MOST_EPSILONS:
            return ()
        rate, end = float(self.rate), self.replaced.supremum
        losses = end / _LOSSES * np.arange(_LOSSES + 1.0)
        profile = _profile(self.replaced, losses)
        profile[-1] = 0.0
        b = _on_lattice(profile, profile.copy(), end / _LOSSES)[0][_LOSSES:-1]
        b[0] *= 0.5
        c, x = math.exp(end), np.exp(epsilons)[:, None]
        a = np.array([b / c, b * np.exp(end - losses), b * c])[:, None]
        with np.errstate(all="ignore"):
            costs = rate * b * (1.0 - x * np.exp(-losses)) - float(1 - self.rate) * (x - 1.0) * a
            costs = np.maximum(costs, 0.0)
            costs[2] = 0.0
            alike = [(costs[i] - costs[j]) / (a[j] - a[i]) for i, j in ((0, 1), (0, 2), (1, 2))]
        sums = np.linspace(a[0].sum(), 1.0 - a[0].sum(), _RANGES + 1)[:, None]
        found = np.full((_RANGES + 1, epsilons.size), math.inf)
        for mu in (np.zeros(epsilons.size), *np.nan_to_num(np.concatenate(alike, axis=1)).T):
            most = (costs + mu[:, None] * a).max(axis=0).sum(axis=1) * (1.0 + 2.0**-44)
            np.minimum(found, most - mu * sums, out=found)
        found += 2.0**-46 * (1.0 + end) * rate
        return [(found[k], found[_RANGES - 1 - k]) for k in range(_RANGES // 2)]


@final
@dataclass(frozen=True, slots=True)
class SharedBits:
    """The profiles of A, B and C where each reports which bits of a set of its own are 1.

    ``held`` are the chances that a bit of the set is reported as 0 and as 1, ``missing`` those of
    another bit. Reports of smaller sets are made of those of sets with ``bits`` bits by replacing
    reports of bits that no other set has; bits of all three tell nothing, and are so replaced too.
    """

    rate: Fraction
    held: tuple[float, float]
    missing: tuple[float, float]
    bits: int

    def __call__(self, epsilons: Array) -> Sequence[tuple[Array, Array]]:
        n = self.bits if epsilons.size <= _MOST_EPSILONS else -1
        return [
            self._profiles(np.exp(epsilons)[:, None], ab, ac, bc)
            for ab in range(n + 1)
            for ac in range(min(ab, n - ab) + 1)
            for bc in range(n - ab + 1)
        ]

    def _profiles(self, x: Array, ab: int, ac: int, bc: int) -> tuple[Array, Array]:
        n = self.bits
        held = (ab, ac, bc, n - ab - ac, n - ab - bc, n - ac - bc)
        a, b, c = (
            reduce(np.multiply.outer, map(self._ones, held, one)).ravel()
            for one in ((1, 1, 0, 1, 0, 0), (1, 0, 1, 0, 1, 0), (0, 1, 1, 0, 0, 1))
        )
        p, q = (float(1 - self.rate) * a + float(self.rate) * one for one in (b, c))
        ways = ((1.0 + 2.0**-44) * one - x * other for one, other in ((p, q), (q, p)))
        above, reverse = (np.maximum(one, 0.0).sum(axis=1) for one in ways)
        return above, reverse

    def _ones(self, bits: int, held: int) -> Array:
        zero, one = self.held if held else self.missing
        return np.array([math.comb(bits, k) * one**k * zero ** (bits - k) for k in range(bits + 1)])


def _profile(loss: CellLoss, epsilons: Array) -> Array:
    atoms, (log_p, log_q, error) = loss.atoms(), loss.cells(np.append(epsilons, math.inf))
    p, q = (np.cumsum(np.exp(one)[::-1])[::-1] for one in (log_p + error, log_q - error))
    mass, own = np.exp(atoms.log_p + atoms.error), epsilons[:, None] - atoms.loss
    found = p - np.exp(epsilons) * q + np.maximum(-np.expm1(own), 0.0) @ mass
    return np.asarray(found * (1.0 + 2.0**-36) + 2.0**-46 * (p + (own < 0.0) @ mass))


@final
@dataclass(frozen=True, slots=True)
class JoinedLoss(CellLoss):
    """Above 0 the loss of ``above``, below 0 the reflection of ``reverse``, and the rest at 0.

    Neighbours in one order may have the profile of ``above`` for ``eps >= 0`` at most, and in the
    other order that of ``reverse``. Then the profile in the first order is at most
    ``1 - e^eps + e^eps H(-eps)`` for ``eps < 0``, H that of ``reverse``. This is the loss with both
    halves: above 0 as ``above``, and at -l the mass that ``reverse`` has at l under its Q. In the
    other order it is the one with the two exchanged. Where neighbours may be exchanged, the two
    are the same, and the pair dominates every pair of neighbours at every order.

    ``P(l > 0)`` of ``above`` and ``Q(l > 0)`` of ``reverse`` must add up to 1 at most, and so must
    those of the other distributions. Only the profile at ``eps >= 0`` is that of ``above``.

    ``choices`` are pairs of such profiles: of each run, one or its exchange is nowhere below.
    """

    above: CellLoss
    reverse: CellLoss
    choices: tuple[Choices, ...] = ()

    @property
    def _symmetric(self) -> bool:
        return self.above == self.reverse

    @property
    def _with_quadrature(self) -> PrivacyLoss | None:
        return self.above.symmetrized_quadrature if self._symmetric else None

    @property
    def analytic(self) -> AnalyticLoss | None:
        quadrature = self._with_quadrature
        return quadrature.analytic if quadrature else None

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        return self.above.closed_form_profile

    @property
    def supremum(self) -> float:
        return max(self.above.supremum, 0.0)

    @property
    def infimum(self) -> float:
        return min(-self.reverse.supremum, 0.0)

    @property
    def endpoint_tolerance(self) -> float:
        return max(self.above.endpoint_tolerance, self.reverse.endpoint_tolerance)

    @property
    def clt_mu_squared(self) -> float:
        quadrature = self._with_quadrature
        if quadrature:
            return quadrature.clt_mu_squared
        twice = 2.0 * self.above.clt_mu_squared
        return twice if self._symmetric else super(JoinedLoss, self).clt_mu_squared

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        """The larger one of both: ``G_mu`` is symmetric."""
        one, other = self.above.dominating_mu_squared, self.reverse.dominating_mu_squared
        return None if one is None or other is None else max(one, other)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        quadrature = self._with_quadrature
        return quadrature.cgf_estimate(c) if quadrature else CellLoss.cgf_estimate(self, c)

    def cgf_bounds(self, c: float) -> Ball:
        quadrature = self._with_quadrature
        return quadrature.cgf_bounds(c) if quadrature else CellLoss.cgf_bounds(self, c)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 + M)`` with M of the loss above 0: losses <= 0 contribute at most 1."""
        if self._symmetric:
            known = self.above.cgf_bounds(c)
            return _log_one_more(known.midpoint + known.radius)
        return _log_one_more(self.above.cgf_upper(c))

    def zcdp_line(self) -> ZCDPLine | None:
        # The unsampled losses are the same in both directions.
        unsampled = self.above.unsampled if self._symmetric else None
        return lowest((CellLoss.zcdp_line(self), unsampled.zcdp_line() if unsampled else None))

    def atoms(self) -> Atoms:
        right, left = _positive_atoms(self.above), _positive_atoms(self.reverse)
        log_q = left.log_p - left.loss
        unsure = left.error + ULP * (4.0 * left.loss + np.abs(left.log_p))
        logs, errors = np.append(right.log_p, log_q), np.append(right.error, unsure)
        rest, relative = _mass_at_zero(self.above, self.reverse, logs, errors)
        return Atoms(
            np.concatenate((-left.loss[::-1], [0.0], right.loss)),
            np.concatenate((log_q[::-1], [rest], right.log_p)),
            np.concatenate((unsure[::-1], [relative], right.error)),
        )

    def cells(self, edges: Array) -> Masses:
        edges = np.asarray(edges, dtype=np.float64)
        negative, positive = edges[edges < 0.0], edges[edges > 0.0]
        log_p, log_q = (np.full(edges.size - 1, -math.inf) for _ in range(2))
        error = np.zeros(edges.size - 1)
        if positive.size:
            found = self.above.cells(np.concatenate(([0.0], positive)))
            # The first of them starts at 0, which may lie before all edges.
            first = edges.size - positive.size - 1
            for own, part in zip((log_p, log_q, error), found, strict=True):
                own[max(first, 0) :] = part[max(-first, 0) :]
        if negative.size:
            found = self.reverse.cells(np.concatenate(([0.0], -negative[::-1])))
            last = min(negative.size, edges.size - 1)
            mirrored = [part[::-1][:last] for part in (found.log_q, found.log_p, found.error)]
            log_p[:last] = np.logaddexp(log_p[:last], mirrored[0])
            log_q[:last] = np.logaddexp(log_q[:last], mirrored[1])
            sizes = np.where(log_p[:last] > -math.inf, np.abs(log_p[:last]), 0.0)
            error[:last] = np.maximum(error[:last], mirrored[2]) + ULP * (4.0 * sizes + 4.0)
        return Masses(log_p, log_q, error)


def _log_one_more(exponent: float) -> float:
    if exponent > LARGEST_EXPONENT:
        return exponent * (1.0 + 4.0 * ULP)
    return math.log1p(math.exp(exponent)) * (1.0 + 16.0 * ULP)


def _positive_atoms(loss: CellLoss) -> Atoms:
    own = loss.atoms()
    return Atoms(*(column[own.loss > 0.0] for column in own))


def _mass_at_zero(
    above: CellLoss, reverse: CellLoss, logs: Array, errors: Array
) -> tuple[float, float]:
    positive = np.array([0.0, math.inf])
    right = above.cells(positive)
    left = right if reverse is above else reverse.cells(positive)
    logs = np.concatenate((logs, right.log_p, left.log_q))
    errors = np.concatenate((errors, right.error, left.error))
    masses = np.exp(logs)
    rest = 1.0 - float(masses.sum())
    unsure = float((masses * np.expm1(np.minimum(errors, 1.0))).sum()) + 8.0 * ULP
    if rest <= 2.0 * unsure:
        return math.log(max(rest, 0.0) + 2.0 * unsure), math.inf
    return math.log(rest), 2.0 * unsure / rest + 2.0 * ULP * abs(math.log(rest))


def exchanged_pair(
    worst: PrivacyLoss, *attained: PrivacyLoss | None, choices: tuple[Choices, ...] = ()
) -> DominatingPair:
    """Return the dominating pair under replace-one adjacency.

    ``worst`` dominates all pairs for ``eps >= 0``; ``attained`` are losses of some data sets.
    """
    if not isinstance(worst, CellLoss):
        raise NoAnalysisError("its loss is not known cell by cell; state what holds of a sample")
    joined, exact = JoinedLoss(worst, worst, choices), attained[0] is worst
    return DominatingPair(*(DominatedLoss(joined, one, exact=exact) for one in attained))


# Of each mass, more than what rounding took off it; of a step, by how much its point may be off.
_MORE: Final = 2.0**-50
_OFF: Final = 2.0**-20


@final
@dataclass(frozen=True, eq=False)
class AdaptiveLoss(AtomListLoss):
    """The loss whose profile is ``upper`` at ``e^(j step)``, ``|j| <= m``, and chords between.

    Before these points the chord from 1, behind them that to 0 at the largest loss.
    """

    step: float
    upper: Array
    largest: float

    @classmethod
    def of(cls, step: float, upper: Array, largest: float) -> AdaptiveLoss:
        """Return the loss, its profile and end rounded up."""
        ends = np.minimum(upper * (1.0 + 2.0**-40) + 1e-290, 1.0)
        return cls(step, ends, largest * (1.0 + 2.0**-50))

    def is_above(self, loss: PrivacyLoss, runs: int) -> bool:
        """Return whether it seems to cost more than so many independent losses."""
        order = _ORDER / math.sqrt(runs * loss.cgf_estimate(1e-3).second_derivative)
        return self.cgf_estimate(order).value > runs * loss.cgf_estimate(order).value

    @kept(64)
    def atoms(self) -> Atoms:
        """Return the places where chords meet, with the change of slope there as Q's mass."""
        at = self.step * np.arange(-(self.upper.size // 2), self.upper.size // 2 + 1.0)
        inside = np.abs(at) < min(self.largest, LARGEST_EXPONENT)
        at, values = at[inside], self.upper[inside]
        last = values[-1] / -math.expm1(at[-1] - self.largest)
        x = np.exp(at)
        falls = -np.diff(values, prepend=1.0) / np.diff(x, prepend=0.0)
        falls = np.append(falls, last * math.exp(-self.largest))
        rounding = _MORE * (np.abs(falls[1:]) + np.abs(falls[:-1]))
        masses = (np.maximum(-np.diff(falls), 0.0) + rounding) * x
        at, masses = np.append(at, self.largest), np.append(masses, last)
        known = masses > 0.0
        error = np.full(int(known.sum()), 4.0 * _MORE)
        return Atoms(at[known] + _OFF * self.step, np.log(masses[known]), error)


# Points of a lattice per standard deviation of a run; its reach in those of all runs; its work.
_MOST_POINTS: Final = 10.0
_FEWEST_POINTS: Final = 2.0
_REACH: Final = 8.0
_MOST_WORK: Final = 4e6
# The error of a transform of N points in the 2-norm over log2(N), as for a sum of losses.
_TRANSFORM: Final = 4.0 * ULP


@lru_cache(maxsize=64)
def adaptive_upper(joined: PrivacyLoss, runs: int) -> AdaptiveLoss | None:
    """Return a loss with upper ends of delta of that many runs, whose own need not be above them.

    Let ``H_k(x)`` be the largest ``E_P (1 - x e^-L)_+`` of k runs, of which earlier outcomes may
    choose each: ``sup E_P H_(k-1)(x e^-L)`` over one run's pairs. As H is convex, that is a mean of
    profiles with weights >= 0: at most that of a choice that is nowhere below the pair, and of its
    chords between points, the least of what all ``choices`` tell. These have a loss on the lattice,
    whose masses are second differences; negative ones are round-off. Beyond the last point H is at
    most what it is there, before the first below the chord from ``H(0) = 1``.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    if runs == 1 or not isinstance(joined, JoinedLoss) or not joined.choices:
        return None
    deviation = math.sqrt(joined.cgf_estimate(1e-3).second_derivative)
    if not 1e-12 < deviation < 1.0:
        return None
    reach = _REACH * math.sqrt(runs) + runs * deviation
    far_out = effective_range(joined, math.log(1e-18 / runs))[1] / deviation
    points = min(_MOST_POINTS, _MOST_WORK / (2.0 * runs * (reach + far_out)))
    if points < _FEWEST_POINTS:
        return None
    step, size, far = deviation / points, math.ceil(reach * points), math.ceil(far_out * points) + 1
    length = int(next_fast_len(2 * size + 1 + 2 * far, real=True))
    known = [one(step * np.arange(far + 1.0)) for one in joined.choices]
    ways = [[row for pair in one for row in _on_lattice(*pair, step)] for one in known if one]
    if not ways:
        return None
    largest = max(float(row[:-1].sum()) for way in ways for row in way)
    error = 4.0 * _TRANSFORM * math.log2(length) * largest
    transforms = [[(rfft(row[:-1], length), row[-1]) for row in way] for way in ways]
    value = np.maximum(-np.expm1(step * np.arange(-size, size + 1)), 0.0)
    inside, before = slice(2 * far, 2 * far + value.size), np.exp(step * np.arange(-far, 0))
    for _ in range(runs):
        padded = np.pad(value, far, mode="edge")
        padded[:far] = 1.0 - (1.0 - value[0]) * before
        # One row at a time stays in the processor's cache, and a dot product would wake threads.
        spectrum, rounding = rfft(padded, length), error * math.sqrt(float((padded**2).sum()))
        value = np.full(value.size, 1.0)
        for way in transforms:
            found = (irfft(spectrum * row, length)[inside] + infinite for row, infinite in way)
            np.minimum(value, reduce(np.maximum, found) + rounding, out=value)
        np.maximum(value, 0.0, out=value)
    # Points are off by less than 2^-20 of a step in all.
    value[1:] -= 2.0**-20 * np.diff(value)
    if not np.isfinite(value).all():
        return None
    end = runs * joined.supremum if joined.supremum < math.inf else (size + 1) * step
    return AdaptiveLoss.of(step, value, end)


def chord(values: Array, step: float, place: float) -> float:
    """Return what lies on the chords of a profile, in e^eps, by its values a step apart."""
    left = min(math.floor(place), values.size - 2)
    share = math.expm1(min(place - left, 1.0) * step) / math.expm1(step)
    return float(values[left] + share * (values[left + 1] - values[left]))


def _on_lattice(above: Array, reverse: Array, step: float) -> tuple[Array, Array]:
    above[0] = reverse[0] = max(above[0], reverse[0])
    ratio = np.exp(step * np.arange(above.size))
    falls = [np.append(-np.diff(one) / np.diff(ratio), 0.0) for one in (above, reverse)]
    rare = [-np.diff(fall) for fall in falls]
    # Of each mass, more than what rounding took off it.
    more = [2.0**-50 * (np.abs(fall[1:]) + np.abs(fall[:-1])) for fall in falls]
    found = []
    for one, other, infinite in ((0, 1, above[-1]), (1, 0, reverse[-1])):
        right, left = (rare[one] * ratio[1:], more[one] * ratio[1:]), (rare[other], more[other])
        rest = 1.0 - sum(mass.sum() - spare.sum() for mass, spare in (right, left)) - infinite
        sides = [np.maximum(mass, 0.0) + spare for mass, spare in (right, left)]
        middle = max(rest, 0.0) + 2.0**-50 * above.size
        found.append(np.concatenate((sides[1][::-1], [middle], sides[0], [infinite])))
    return found[0], found[1]
