"""Composition on a lattice: tilted masses, multiplied in Fourier space, with every error bounded.

With masses tilted by c and normalised, ``delta(eps)`` of the composition is

    exp(K - c eps) sum_j w_j g(l_j - eps),    g(x) = exp(-c x) (1 - exp(-x)) for x > 0,

with ``K = sum n_i ln(total_i)``. The round-off of the transforms, and the mass outside the window,
which wraps around into it, are absolute errors of w: relative ones of delta's Chernoff bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from hockeystick.accountants.base import Interval
from hockeystick.accountants.prv.discretise import (
    NO_TRUNCATION,
    CoarseLosses,
    LatticePoints,
    TiltedMasses,
    Truncation,
    coarsened,
    cover,
    dominated_masses,
    dominating_masses,
    window,
)
from hockeystick.accountants.prv.sums import (
    Combinations,
    ComposedMasses,
    SplitMasses,
    combinations,
    composed_masses,
    expm1_or_inf,
    log_or_none,
    masses_with_tail,
    split_masses_of,
    tail_absolute_error,
    tail_mass,
    with_absolute_errors,
)
from hockeystick.numerics import ULP
from hockeystick.numerics.roots import minimum
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.composition import total

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array
    from hockeystick.privacy_loss import CellLoss


# The distance from a multiple of the spacing, over the spacing, up to which an atom is at it.
_NEAR: Final = 1e-9
# Atoms closer together than this share of their span are not put on a common lattice.
_CLOSEST: Final = 1e-7
# Atoms of a loss that count for the step, times the points that it may take, and what is tried.
_MOST_ATOMS: Final = 64
_FINER: Final = 1.25
_MOST_STEPS: Final = 256
_MOST_LOSSES: Final = 16
# The mass of the cells next to the end of a loss that have a point there.
_HEAVY: Final = 0.25


def natural_step(terms: Sequence[tuple[CellLoss, int]]) -> float | None:
    """Return the step of a lattice that holds all losses exactly, each from its own offset on."""
    spacings = []
    for loss, _ in terms:
        atoms = loss.atoms().loss
        if not is_atomic(loss):
            return None
        if atoms.size > 1:
            span, gap = float(atoms[-1] - atoms[0]), float(np.diff(atoms).min())
            if gap <= _CLOSEST * span:
                return None
            spacings.append(span / round(span / gap))
    if not spacings:
        return None
    step = min(spacings)
    for loss, _ in terms:
        position = (loss.atoms().loss - loss.atoms().loss[0]) / step
        if np.any(np.abs(position - np.round(position)) > _NEAR):
            return None
    return step


# A loss, its lattice and its number of runs.
Part: TypeAlias = "tuple[CellLoss, LatticePoints, int]"


def parts_for(
    terms: Sequence[tuple[CellLoss, int]],
    tilt: float,
    step: float,
    log_least: tuple[float, float],
    truncation: Truncation = NO_TRUNCATION,
) -> list[Part]:
    """Return each loss on a lattice of at most this step, with a point at an atom or an end."""
    heavy = [(*_heavy_atoms(loss, tilt), count) for loss, count in terms]
    step = _aligned(step, heavy)
    parts: list[Part] = []
    for (loss, count), (atoms, *_) in zip(terms, heavy, strict=True):
        offset = float(atoms[0]) if atoms.size else 0.0
        end = next(filter(math.isfinite, (loss.infimum, loss.supremum)), 0.0)
        if not atoms.size and _mass_near(loss, end, step) > _HEAVY:
            # The cell next to the end then has half a cell to take from.
            offset = math.remainder(end, step)
        value = truncation.cgf_estimate(loss, tilt).value
        parts.append((loss, cover(loss, offset, step, tilt, log_least, value), count))
    return parts


def _mass_near(loss: CellLoss, end: float, step: float) -> float:
    cells = loss.cells(np.array([-math.inf, end - step, end + step, math.inf]))
    return float(np.exp(cells.log_p[1]))


def _aligned(step: float, heavy: Sequence[tuple[Array, Array, int]]) -> float:
    """Return the step, at most this, at which atoms are rounded down least.

    It holds two atoms of one loss: of that where they weigh most, or where few points are added.
    """
    spans = [(n * w[1], abs(float(at[1] - at[0]))) for at, w, n in heavy if at.size > 1]
    spans = sorted((one for one in spans if one[1] > step), reverse=True)
    steps = np.array([span / math.ceil(span / step - _NEAR) for _, span in spans[:1]] or [step])
    for _, span in spans[:_MOST_LOSSES]:
        least = math.ceil(span / step - _NEAR)
        more = np.arange(least, min(_FINER * span / step, least + _MOST_STEPS))
        steps = np.concatenate((steps, span / more))
    lost = np.zeros(steps.size)
    for atoms, weight, count in heavy:
        place = np.divide.outer(atoms - atoms[:1], steps)
        lost += count * weight @ np.maximum(place - np.floor(place + _NEAR) - _NEAR, 0.0)
    return float(steps[np.argmin(lost * steps)])


def is_atomic(loss: CellLoss) -> bool:
    """Return whether a loss has atoms only."""
    return bool(loss.cells(np.array([-math.inf, math.inf])).log_p[0] == -math.inf)


def _heavy_atoms(loss: CellLoss, tilt: float) -> tuple[Array, Array]:
    """Return the atoms that weigh most once tilted, the heaviest first, and their weights."""
    atoms = loss.atoms()
    exponent = atoms.log_p + tilt * atoms.loss
    order = np.argsort(-exponent)[:_MOST_ATOMS]
    return atoms.loss[order], np.exp(exponent[order] - exponent.max(initial=-math.inf))


Discretization: TypeAlias = "Callable[[CellLoss, LatticePoints, float], TiltedMasses]"

# A lattice takes no more points than this, which keeps memory below 500 MB.
MOST_POINTS: Final = 2**22
# The memory that a point of one loss takes, over that of a point of the sum.
_COST_OF_A_LOSS_POINT: Final = 6.0


@dataclass(frozen=True)
class Lattice:
    """A composition on a lattice: tilted masses from the point ``start`` on.

    The errors are those of ``TiltedMasses``, added up: ``relative_error`` of the factors,
    ``mass_error`` the tilted mass that is outside the window or uncertain, ``infinity_mass`` and
    ``displacement``. The widest loss alone takes ``widest`` points. With ``bulk`` the masses are
    those of outcomes with a run in the tail only.
    """

    tilt: float
    step: float
    start: float
    masses: ComposedMasses
    log_total: float
    mass_error: float
    relative_error: float
    infinity_mass: float
    displacement: float
    widest: int
    bulk: Bulk | None = None

    @property
    def share_of_memory(self) -> float:
        """The share of the memory allowed for lattices that this one took."""
        size = self.masses.size
        return max(size, 0.5 * (size + _COST_OF_A_LOSS_POINT * self.widest)) / MOST_POINTS

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ``ln delta``, of a composition of dominating masses."""
        value, error, scale = self._sum(epsilon - self.displacement)
        log_value = scale + self.relative_error + log_or_none(max(value, 0.0) + error)
        if not log_value < math.inf:
            return math.inf
        log_value = float(np.logaddexp(log_value, log_or_none(self.infinity_mass)))
        if self.bulk is not None:
            rest = self.bulk.upper(epsilon - self.displacement, log_value)
            log_value = float(np.logaddexp(log_value, rest))
        return log_value + 16.0 * ULP

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ``ln delta``, of a composition of dominated masses."""
        value, error, scale = self._sum(epsilon + self.displacement)
        bound = scale - self.relative_error + log_or_none(value - error) - 8.0 * ULP
        bound = -math.inf if math.isnan(bound) else bound
        if self.bulk is not None:
            bound = float(np.logaddexp(bound, self.bulk.lower(epsilon + self.displacement, bound)))
        return bound - 8.0 * ULP

    def _sum(self, epsilon: float) -> tuple[float, float, float]:
        c, count = self.tilt, self.masses.size
        first = min(max(math.ceil((epsilon - self.start) / self.step), 0), count)
        x = max(self.start + self.step * first - epsilon, 0.0)
        value, error = self.masses.sum_from(first, x, c, self.step)
        error += math.exp(log_cks_factor(c)) * self.mass_error
        scale = self.log_total - c * epsilon
        place = abs(self.start) + self.step * count
        rounding = 4.0 * ULP * (abs(self.log_total) + abs(c * epsilon) + c * place)
        return value, error * (1.0 + 1e-12) + rounding * abs(value) + _UNDERFLOW, scale


# Where an outcome of a huge loss has nearly all the tilted mass, that of others underflows.
_UNDERFLOW: Final = 1e-300
# The number of points on which the bulk is bounded.
_COARSE_POINTS: Final = 2048
# A contribution below exp of minus this of another is bounded by Chernoff alone.
_NEGLIGIBLE_BULK: Final = 24.0
# The tilts of lattices for the bulk: their number per octave.
_PER_OCTAVE: Final = 3


@dataclass(frozen=True)
class Bulk:
    """The outcomes whose runs are all in the bulk: what they contribute to delta.

    That is at most Chernoff's bound. Where that is not negligible next to the others, ``compose``
    puts them on a lattice of their own, tilted to their own saddle.
    """

    split_masses: Sequence[SplitMasses]
    step: float
    tilt: float
    compose: Callable[[Sequence[tuple[TiltedMasses, int]], float], Lattice | None]

    def upper(self, epsilon: float, log_others: float) -> float:
        """Return an upper bound of ``ln`` of the contribution, given that of the others."""
        order, bound = self._chernoff(epsilon)
        if bound < log_others - _NEGLIGIBLE_BULK:
            return bound
        ends = self._tilted(order)
        return bound if ends is None else min(bound, ends.upper(epsilon))

    def lower(self, epsilon: float, log_others: float) -> float:
        """Return a lower bound of ``ln`` of the contribution; -inf for none."""
        order, bound = self._chernoff(epsilon)
        ends = None if bound < log_others - _NEGLIGIBLE_BULK else self._tilted(order)
        return -math.inf if ends is None else ends.lower(epsilon)

    def _chernoff(self, epsilon: float) -> tuple[float, float]:
        """Return the best order, and Chernoff's bound of ``ln`` of the contribution there."""

        def bound(log_order: float) -> float:
            order = math.exp(log_order)
            moment = float(self._coarse.log_moment(order - self.tilt))
            away = 16.0 * ULP * (abs(moment) + abs(self._log_scale) + order * abs(epsilon))
            return moment + self._log_scale - order * epsilon + log_cks_factor(order) + away

        start = -math.log(max(epsilon, 1e-300))
        best = minimum(bound, start, start + 8.0, tolerance=0.05)
        return math.exp(best), bound(best)

    def _tilted(self, order: float) -> Lattice | None:
        place = round(_PER_OCTAVE * math.log2(order))
        if place not in self._known:
            tilt = 2.0 ** (place / _PER_OCTAVE)
            weights = [
                (one.bulk.retilted(self.step, self.tilt, tilt), one.runs)
                for one in self.split_masses
            ]
            self._known[place] = self.compose(weights, tilt)
        return self._known[place]

    @cached_property
    def _known(self) -> dict[int, Lattice | None]:
        return {}

    @cached_property
    def _coarse(self) -> CoarseLosses:
        """The bulk's losses on few points, convexly larger, with their absolute errors added."""
        return coarsened(
            [(with_absolute_errors(one.bulk), one.runs) for one in self.split_masses],
            self.step,
            _COARSE_POINTS,
        )

    @cached_property
    def _log_scale(self) -> float:
        """The logarithm of the masses' common factor, with their relative errors added."""
        return math.fsum(
            n * (one.log_total + one.relative_error) for one, _, n in self.split_masses
        )


def compose(
    parts: Sequence[Part],
    tilt: float,
    log_outside: float,
    discretize: Discretization,
    threshold: float | None = None,
) -> Lattice | None:
    """Return the composition of the parts, each discretised: to dominate, or to be dominated.

    With a threshold, losses above it are split off as rare. None where a lattice takes more than
    ``MOST_POINTS``.
    """
    if any(lattice.last - lattice.first > MOST_POINTS for _, lattice, _ in parts):
        return None
    weights = [(discretize(loss, lattice, tilt), count) for loss, lattice, count in parts]
    return _composed(weights, parts[0][1].step, tilt, log_outside, threshold)


def _composed(
    weights: Sequence[tuple[TiltedMasses, int]],
    step: float,
    tilt: float,
    log_outside: float,
    threshold: float | None,
) -> Lattice | None:
    from scipy.fft import next_fast_len

    split_masses = None if threshold is None else split_masses_of(weights, step, threshold)
    log_all = log_outside
    if split_masses is not None:
        tail = tail_mass(split_masses)
        if not tail or not all(bool(one.bulk.weight.any()) for one in split_masses):
            return None
        log_outside += min(math.log(tail), 0.0)
    low, high, outside = window(weights, step, log_outside)
    if not high - low < MOST_POINTS * step:
        return None
    offset = math.fsum(count * one.offset for one, count in weights)
    first = math.floor((low - offset) / step) - 1
    size = int(next_fast_len(max(int((high - low) / step) + 4, 16), real=True))
    place = abs(offset) + abs(first * step) + size * step
    rotation = first % size

    def bulk_lattice(bulk: Sequence[tuple[TiltedMasses, int]], order: float) -> Lattice | None:
        return _composed(bulk, step, order, log_all, None)

    if split_masses is None:
        masses: ComposedMasses = composed_masses(weights, size, rotation)
        mass_error = 1.01 * expm1_or_inf(
            math.fsum(count * one.absolute_error for one, count in weights)
        )
    else:
        masses, mass_error = (
            masses_with_tail(split_masses, size, rotation),
            tail_absolute_error(split_masses),
        )
    return Lattice(
        tilt=tilt,
        step=step,
        start=offset + first * step,
        masses=masses,
        log_total=math.fsum(count * one.log_total for one, count in weights),
        mass_error=outside + mass_error,
        relative_error=math.fsum(count * one.relative_error for one, count in weights)
        * (1.0 + 1e-9),
        infinity_mass=min(
            math.fsum(count * one.infinity_mass for one, count in weights) * (1.0 + 1e-9), 1.0
        ),
        displacement=math.fsum(count * one.displacement for one, count in weights)
        + 8.0 * ULP * place,
        widest=max(one.weight.size for one, _ in weights),
        bulk=None if split_masses is None else Bulk(split_masses, step, tilt, bulk_lattice),
    )


LatticeSum: TypeAlias = Lattice | Combinations
CellTerms: TypeAlias = "tuple[tuple[CellLoss, int], ...]"
AnswerOf: TypeAlias = "Callable[[LatticeSum | None, LatticeSum], Interval]"

# The least number of points of a first lattice.
_LEAST_POINTS: Final = 2**12
# A lattice that takes this share of the memory allowed is not refined further.
_LARGEST_SHARE_OF_MEMORY: Final = 0.5
_ROUNDS: Final = 9
# The factor by which the step grows where a lattice takes too many points.
_COARSENING: Final = 8.0
# A delta below its guess by more than exp of this takes another lattice of the same step.
_LOG_DELTA_OFF: Final = 3.0
# Errors other than those of rounding to the lattice are kept to this share of the tolerance.
_SHARE_OF_OTHER_ERRORS: Final = 1e-3
# A round that leaves more than this of the width is without gain. Two such rounds end the search,
# or one where the attained losses are not the dominating ones: the interval then stays wide.
_NO_GAIN: Final = 0.8
# A lattice that is so many times wider than the tolerance may have to be another's.
_FAR: Final = 64.0
# The share of the tolerance that is fine enough; nearly all, where more of the width was left.
_ENOUGH: Final = 0.3


class LatticeTarget(NamedTuple):
    """What the lattice is chosen for: attained and dominating losses, and about which delta.

    A relative error of the answer is ``gain`` times as much in delta. A ``step`` is kept to; with a
    ``threshold``, losses above it are split off.
    """

    lower: CellTerms
    upper: CellTerms
    tilt: float
    log_delta: float
    gain: float
    tolerance: float
    step: float | None
    for_delta: bool
    truncation: Truncation
    threshold: float | None = None

    def about(self, found: Interval | None) -> LatticeTarget:
        """Return the target, its delta no more than the upper end found where delta is sought."""
        if found is None or not self.for_delta or not 0.0 < found.upper < math.inf:
            return self
        return self._replace(log_delta=min(self.log_delta, math.log(found.upper)))

    @property
    def runs(self) -> float:
        """The number of runs, at least 1."""
        return max(math.fsum(count for _, count in self.upper), 1.0)


def refined(
    target: LatticeTarget, read: AnswerOf, retry: Callable[[], bool] = lambda: True
) -> Interval | None:
    """Return the narrowest interval of ever finer lattices, None where there is none.

    Without ``retry`` a lattice that is far from narrow enough is the last.
    """
    exact = target.step or natural_step((*target.lower, *target.upper))
    sums = None if exact else _combined(target)
    if sums:
        return read(*sums)
    step = exact if exact and _window(target) <= MOST_POINTS * exact else _first_step(target)
    best: Interval | None = None
    rounds_without_gain = 0 if target.lower == target.upper else 1
    for _ in range(_ROUNDS):
        pair = dominated_and_dominating(target, step)
        if pair is None:
            if best is not None or step == target.step:
                break
            step *= _COARSENING
            continue
        found = read(*pair)
        before = math.inf if best is None else best.relative_width
        best = found if best is None else found.within(best)
        last, target = target, target.about(best)
        taken = pair[1].share_of_memory
        if target.log_delta < last.log_delta - _LOG_DELTA_OFF and target.step is None:
            # The tails beyond the lattice were chosen for a delta far too large.
            continue
        rounds_without_gain += 1 if best.relative_width > _NO_GAIN * before else 0
        enough = _ENOUGH if best.relative_width < _ENOUGH * before else _NO_GAIN
        done = best.relative_width <= enough * target.tolerance or step == exact
        done = done or _NO_GAIN * found.relative_width > before
        done = done or (best.relative_width > _FAR * target.tolerance and not retry())
        if done or rounds_without_gain >= 2 or taken >= _LARGEST_SHARE_OF_MEMORY:
            break
        finer = math.sqrt(0.5 * target.tolerance / max(found.relative_width, 1e-300))
        step *= max(min(finer, 0.5), 1.0 / 64.0, 1.01 * _FINER * taken)
    return best


def _combined(target: LatticeTarget) -> tuple[LatticeSum | None, LatticeSum] | None:
    upper = combinations(target.upper, target.tilt)
    if upper is None or target.lower == target.upper:
        return None if upper is None else (upper, upper)
    lower = combinations(target.lower, target.tilt) if target.lower else None
    return None if target.lower and lower is None else (lower, upper)


def dominated_and_dominating(
    target: LatticeTarget, step: float
) -> tuple[Lattice | None, Lattice] | None:
    """Return the dominated and the dominating composition on a lattice of about this step.

    None where that takes more points than memory allows.
    """
    log_tolerance = math.log(target.tolerance) - math.log(target.runs)
    log_above = log_tolerance + math.log(_SHARE_OF_OTHER_ERRORS) + target.log_delta
    log_least = log_tolerance - 30.0, log_above
    log_outside = math.log(_SHARE_OF_OTHER_ERRORS * target.tolerance) - 8.0

    def composed(terms: CellTerms, discretize: Discretization) -> Lattice | None:
        parts = parts_for(terms, target.tilt, step, log_least, target.truncation)
        return compose(parts, target.tilt, log_outside, discretize, target.threshold)

    upper = composed(target.upper, dominating_masses)
    lower = composed(target.lower, dominated_masses) if target.lower and upper else None
    return (lower, upper) if upper else None


def _first_step(target: LatticeTarget) -> float:
    """Return the step whose errors, of second order in it, are about the tolerance."""
    c = target.tilt
    tolerance = 0.9 * target.tolerance * max(target.gain, 1.0)
    wanted = math.sqrt(tolerance / (target.runs * c * (c + 1.0)))
    width = _window(target)
    return min(max(wanted, width / (MOST_POINTS // 4)), width / _LEAST_POINTS)


def _window(target: LatticeTarget) -> float:
    """Return an estimate of the width of the tilted sum, or of the widest tilted loss."""
    c = target.tilt
    curvature = total(target.truncation.terms(target.upper), c).second_derivative
    widest = 0.0
    for loss, _ in target.upper:
        cgf = target.truncation.cgf_estimate(loss, c)
        lowest = max(loss.infimum, (cgf.value - 50.0) / c)
        widest = max(
            widest,
            min(loss.supremum, cgf.first_derivative + 40.0 * math.sqrt(cgf.second_derivative))
            - lowest,
        )
    return max(16.0 * math.sqrt(curvature) + 1.0 / c, widest)
