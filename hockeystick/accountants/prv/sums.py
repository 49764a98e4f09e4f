"""Products and powers of transforms, and sums over the masses that these transforms belong to.

After many runs next to all frequencies have fallen below round-off; sums over masses are then
computed from the few that are left, without an inverse transform.

Sums of few values are listed one by one, those of many runs of one loss by convolution.

The tilted masses of n runs are the n-fold convolution of those of one. Nothing is negative in it,
so that round-off is relative: a convolution with m terms adds less than ``m + 2`` units in the last
place to what its factors are off by, and that of n runs is made of n - 1 of them at most. What
comes near underflow, where round-off is no longer relative, is left out and counted.

Tail and bulk: rare large losses, summed separately where no tilt makes round-off relative to them.

Each run's tilted masses are ``M = A + J``: the bulk A of losses up to a threshold, and the tail J
of those above it. Where few runs are in the tail, the sum's mass falls slower than any exponential,
and a tilt to the losses next to epsilon gives most weight to far larger ones. The outcomes with a
run in the tail have the transform ``prod M^n - prod A^n``, which is computed without cancellation:
its round-off is relative to their mass ``sum n J``, however rare they are. Those whose runs are all
in the bulk are composed at a tilt of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.moments import log_cks_factor

if TYPE_CHECKING:
    from hockeystick.accountants.prv.discretise import TiltedMasses
    from hockeystick.kernels.series import Array
    from hockeystick.privacy_loss import CellLoss

Complexes: TypeAlias = NDArray[np.complex128]
Indices: TypeAlias = NDArray[np.signedinteger[Any]]

# The relative error of a transform of N points in the 2-norm is at most this times log2(N): by
# theorem 24.2 of Higham, "Accuracy and Stability of Numerical Algorithms", 2002, it is at most
# (1 + 4 sqrt(2)) u log2(N), or 3.4 ULP log2(N), for radix 2 and twiddle factors right to u = ULP/2.
# The theorem says nothing of scipy's radices 3, 5 and 7; tests hold all to a quarter of this.
TRANSFORM: Final = 4.0 * ULP
# Frequencies of a smaller modulus are omitted; the error bounds include them.
_NEGLIGIBLE: Final = 2.0**-60
# The largest share of frequencies for which sums are taken over these.
_SPARSE: Final = 1.0 / 32.0
# The most numbers that a batch of transforms holds at a time.
_BATCH: Final = 2**21
# Short losses are convolved in groups of at most this share of the points.
_GROUP: Final = 1.0 / 8.0
# The sum over masses ends this many 1/c above epsilon; the rest is bounded.
_TAIL: Final = 60.0
_LARGEST_EXPONENT: Final = 700.0
# The round-off of one term of a sum over frequencies.
_TERM: Final = 128.0


@dataclass(frozen=True)
class PointMasses:
    """Masses a step apart, up to ``most`` in all; ``round_off`` bounds their error's 2-norm."""

    mass: Array
    round_off: float
    most: float = 1.0

    @property
    def size(self) -> int:
        """How many points there are."""
        return self.mass.size

    def sum_from(self, first: int, x: float, c: float, step: float) -> tuple[float, float]:
        """Return the sum of masses times ``g(x) = exp(-c x) (1 - exp(-x))``, and its error's bound.

        It is over the points from ``first`` on, of which the first is at ``x >= 0``.
        """
        last = min(first + math.ceil(_TAIL / (c * step)) + 2, self.size)
        at = x + step * np.arange(last - first, dtype=np.float64)
        factor = np.exp(-c * at) * -np.expm1(-at)
        value = float((factor * self.mass[first:last]).sum())
        rest = self.most * math.exp(-_TAIL) if last < self.size else 0.0
        rounding = ULP * (16.0 + (last - first) + 4.0 * _TAIL) * abs(value)
        return (value, norm(factor) * self.round_off * (1.0 + 1e-9) + rest + rounding)


@dataclass(frozen=True)
class SparseSpectrum:
    """Masses given by the few frequencies k of their transform W that are not negligible.

    Point j has the mass ``1/N sum_k W_k exp(i theta_k (rotation + j))`` with
    ``theta_k = 2 pi k/N``, so that a sum over points is one of geometric series over frequencies.
    """

    size: int
    rotation: int
    index: Indices
    value: Complexes
    round_off: float

    @cached_property
    def _weight(self) -> Complexes:
        """``W_k / N``, doubled where k and -k are different frequencies."""
        alone = (self.index == 0) | (2 * self.index == self.size)
        return np.asarray(self.value * np.where(alone, 1.0, 2.0) / self.size)

    def sum_from(self, first: int, x: float, c: float, step: float) -> tuple[float, float]:
        """Return the sum over the points from ``first`` on: two infinite series, subtracted.

        From x on, a series at angle 0 adds up to
        ``exp(-c x) ((1 - e^-x) + u (e^-x - e^-step)) / ((1 - u) (1 - u e^-step))`` with
        ``u = exp(i theta - c step)``.
        """
        if (c, step) not in self._series:
            less = self._one_minus(c * step)
            weight = self._weight / (less * self._one_minus((c + 1.0) * step))
            self._series[c, step] = less, weight, float(np.abs(weight).sum())
        less, weight, largest = self._series[c, step]
        value, rounding = 0.0, 0.0
        for point, sign in ((first, 1.0), (self.size, -1.0)):
            at = x + step * (point - first)
            scale = math.exp(-min(c * at, _LARGEST_EXPONENT))
            own, following = -math.expm1(-at), math.exp(-step) * math.expm1(step - at)
            if c * at > _TAIL and sign < 0.0:
                rounding += scale * (abs(own) + abs(following)) * largest * (1.0 + 1e-9)
                continue
            terms = weight * self._phase(point) * (own + following * (1.0 - less))
            value += sign * scale * float(terms.real.sum())
            error = _TERM + self.index.size + min(c * at, _LARGEST_EXPONENT)
            rounding += ULP * error * scale * (abs(own) + abs(following)) * largest
        return (value, _norm_of_factor(c, step) * self.round_off + rounding)

    @cached_property
    def _series(self) -> dict[tuple[float, float], tuple[Complexes, Complexes, float]]:
        return {}

    def _one_minus(self, exponent: float) -> Complexes:
        """Return ``1 - exp(i theta_k - a)`` without cancellation."""
        theta = 2.0 * math.pi * (self.index / self.size)
        scale = math.exp(-exponent)
        real = -math.expm1(-exponent) + 2.0 * scale * np.sin(0.5 * theta) ** 2
        return np.asarray(real - 1j * scale * np.sin(theta))

    def _phase(self, point: int) -> Complexes:
        """Return ``exp(i theta_k (lead + point))``, whole turns left out."""
        turns = (self.index * ((self.rotation + point) % self.size)) % self.size
        return np.asarray(np.exp(2j * math.pi * (turns / self.size)))


ComposedMasses: TypeAlias = PointMasses | SparseSpectrum


def _norm_of_factor(c: float, step: float) -> float:
    """Return a bound of the 2-norm of g on points a step apart: its square is at most max x sum.

    As g rises and falls once, its sum is at most its integral over the step and its maximum.
    """
    largest = math.exp(log_cks_factor(c))
    return math.sqrt(largest * (largest + 1.0 / (step * c * (c + 1.0)))) * (1.0 + 1e-12)


def composed_masses(
    weights: Sequence[tuple[TiltedMasses, int]], size: int, rotation: int
) -> ComposedMasses:
    """Return the masses of the composition on ``size`` points, the first of them at ``rotation``.

    Where ``|F| <= 1 + e`` and F errs by e in the 2-norm, ``F^n`` errs by at most ``n e (1+e)^n``.
    """
    index, spectrum, error = _product(weights, size)
    # A product of complex numbers errs by at most sqrt(5) half units; F^n takes n - 1 of them.
    products = math.fsum(count for _, count in weights)
    size_in_norm = norm(spectrum) * math.sqrt(2.0 / size)
    growth = 1.01 + expm1_or_inf(error * math.sqrt(size))
    round_off = (error + 1.5 * ULP * products * size_in_norm + 2.0 * _NEGLIGIBLE) * growth
    if index.size <= _SPARSE * size:
        return SparseSpectrum(size, rotation, index, spectrum, round_off)
    from scipy.fft import irfft

    full = np.zeros(size // 2 + 1, dtype=np.complex128)
    full[index] = spectrum
    mass = np.roll(irfft(full, size), -rotation)
    return PointMasses(mass, round_off + TRANSFORM * math.log2(size) * norm(mass) * 1.01)


def _product(
    weights: Sequence[tuple[TiltedMasses, int]], size: int
) -> tuple[Indices, Complexes, float]:
    """Return the frequencies that are not negligible, the transform there, and its error.

    The error is in the 2-norm of the masses; no factor exceeds 1, so that a negligible frequency
    remains negligible.
    """
    from scipy.fft import rfft

    index: Indices = np.arange(size // 2 + 1)
    spectrum: Complexes = np.broadcast_to(np.complex128(1.0), index.shape)
    unit = TRANSFORM * math.log2(size)
    factors, error = _gathered(weights, size)
    batch = max(_BATCH // size, 1)
    for start in range(0, len(factors), batch):
        chosen = factors[start : start + batch]
        rows = np.array([wrapped(first, weight, size) for first, weight, _ in chosen])
        error += math.fsum(
            count * unit * norm(weight if weight.size <= size else row)
            for (_, weight, count), row in zip(chosen, rows, strict=True)
        )
        for (*_, count), values in zip(chosen, rfft(rows, axis=-1), strict=True):
            own = values if index.size == values.size else values[index]
            kept = _larger_than(own, _NEGLIGIBLE ** (1.0 / count))
            index, spectrum = index[kept], spectrum[kept] * power(own[kept], count)
    kept = _larger_than(spectrum, _NEGLIGIBLE)
    return index[kept], spectrum[kept], error


def _gathered(
    weights: Sequence[tuple[TiltedMasses, int]], size: int
) -> tuple[list[tuple[int, Array, int]], float]:
    """Return first points, masses and counts, short losses that run once convolved; and round-off.

    A group of them is transformed on no more points than its convolution has. Its round-off in the
    2-norm is that of the transforms, of the product and of the way back.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    most = int(_GROUP * size)
    short = [one for one, count in weights if count == 1 and 2 * one.weight.size <= most]
    rows = [(one.first, one.weight, n) for one, n in weights if n > 1 or 2 * one.weight.size > most]
    each, error = most // max((one.weight.size for one in short), default=1), 0.0
    for group in (short[start : start + each] for start in range(0, len(short), each)):
        points = int(next_fast_len(sum(one.weight.size for one in group), real=True))
        product = np.prod([rfft(one.weight, points) for one in group], axis=0)
        masses = irfft(product, points)
        unit = TRANSFORM * math.log2(points)
        after = (1.5 * ULP * len(group) + unit) * norm(masses) * 1.01
        error += math.fsum(unit * norm(one.weight) for one in group) + after
        rows.append((sum(one.first for one in group), masses, 1))
    return rows, error


def _larger_than(values: Complexes, least: float) -> Indices:
    return np.flatnonzero(values.real**2 + values.imag**2 > least * least)


def power(values: Complexes, count: int) -> Complexes:
    """Return a power by repeated squaring."""
    result = np.ones_like(values) if count > 1 else values
    while count > 1:
        if count & 1:
            result *= values
        count >>= 1
        values = values * values
        if count == 1:
            result *= values
    return result


def wrapped(first: int, weight: Array, size: int) -> Array:
    """Return masses modulo ``size``: those whose indices differ by a multiple of it are added."""
    start = first % size
    length = -(-(start + weight.size) // size) * size
    padded = np.zeros(length)
    padded[start : start + weight.size] = weight
    cycles: Array = padded if length == size else padded.reshape(-1, size).sum(axis=0)
    return cycles


def norm(values: Array | Complexes) -> float:
    """Return the 2-norm, without threads and without underflow."""
    flat = values.view(np.float64)
    square = float((flat * flat).sum())
    if square > 1e-200:
        return math.sqrt(square)
    largest = float(np.abs(flat).max(initial=0.0))
    return largest * math.sqrt(float(((flat / largest) ** 2).sum())) if largest else 0.0


def expm1_or_inf(exponent: float) -> float:
    """Return ``exp(x) - 1``, infinite where that overflows."""
    return math.expm1(exponent) if exponent < _LARGEST_EXPONENT else math.inf


# A bound of the round-off of subnormal numbers.
_DENORMAL: Final = 1e-322
# Where |J| is less than this share of |A|, powers are subtracted without cancellation.
_SMALL: Final = 0.5
# Round-off of the subtraction in ULPs: for itself, and for each run.
_SUBTRACTED: Final = 128.0
_FOR_EACH_RUN: Final = 8.0


class SplitMasses(NamedTuple):
    """The masses of the bulk and of the tail, and how often the loss runs."""

    bulk: TiltedMasses
    tail: TiltedMasses
    runs: int


def split_masses_of(
    weights: Sequence[tuple[TiltedMasses, int]], step: float, threshold: float
) -> list[SplitMasses]:
    """Return the masses of bulk and tail."""
    return [SplitMasses(*one.split(step, threshold), count) for one, count in weights]


def tail_mass(split_masses: Sequence[SplitMasses]) -> float:
    """Return a bound of the tilted mass of outcomes with a run in the tail, relative to all."""
    return math.fsum(
        n * float(tail.weight.sum()) for _, tail, n in split_masses
    ) * _growth_by_composition(split_masses)


def _growth_by_composition(split_masses: Sequence[SplitMasses]) -> float:
    """Return ``prod max(total, 1)^n``, where rounding lets a total exceed 1 a little."""
    totals = ((float(low.weight.sum() + high.weight.sum()), n) for low, high, n in split_masses)
    return math.exp(math.fsum(n * max(math.log(total), 0.0) for total, n in totals)) * (1.0 + 1e-9)


def tail_absolute_error(split_masses: Sequence[SplitMasses]) -> float:
    """Return a bound of the absolute error in the mass of outcomes with a run in the tail.

    If A has the absolute error a and J has j, ``M^n - A^n`` changes by at most ``n j + n J n a``,
    times the growth of a power whose total exceeds 1.
    """
    bulk = math.fsum(one.runs * one.bulk.absolute_error for one in split_masses)
    tail = math.fsum(one.runs * one.tail.absolute_error for one in split_masses)
    grown = (1.0 + expm1_or_inf(bulk + tail)) * _growth_by_composition(split_masses)
    return (tail + (tail_mass(split_masses) + tail) * bulk) * grown


def masses_with_tail(split_masses: Sequence[SplitMasses], size: int, rotation: int) -> PointMasses:
    """Return the masses of the outcomes with a run in the tail, the first at ``rotation``.

    An error e_A of A's transform, in the 2-norm, is one of ``n (n - 1) |J| e_A`` of the power's
    difference, and e_J is one of ``n e_J``; both grow as the powers of what exceeds 1 do.
    """
    from scipy.fft import irfft, rfft

    unit = TRANSFORM * math.log2(size)
    rare: Complexes = np.zeros(size // 2 + 1, dtype=np.complex128)
    bulk: Complexes = np.ones_like(rare)
    error_bulk, error_tail, norms, runs = 0.0, 0.0, 0.0, 0.0
    for one, count in ((half, half.runs) for half in split_masses):
        low, high = (wrapped(part.first, part.weight, size) for part in (one.bulk, one.tail))
        transform = rfft(low)
        own, alone = _difference(transform, rfft(high), count), power(transform, count)
        rare = rare * (alone + own) + bulk * own
        bulk = bulk * alone
        error_bulk += count * unit * norm(low)
        error_tail += count * unit * norm(high)
        norms += count * norm(high)
        runs += count
    growth = 1.01 * _growth_by_composition(split_masses) + expm1_or_inf(
        (error_bulk + error_tail) * math.sqrt(size)
    )
    transformed = error_tail + tail_mass(split_masses) * error_bulk
    rounding = ULP * (_SUBTRACTED + _FOR_EACH_RUN * (runs + len(split_masses)))
    mass = np.roll(irfft(rare, size), -rotation)
    back = unit * norm(mass) * 1.01
    round_off = (transformed + rounding * norms) * growth + back + runs * size * _DENORMAL
    return PointMasses(mass, round_off, tail_mass(split_masses))


def with_absolute_errors(one: TiltedMasses) -> TiltedMasses:
    """Return masses with their absolute errors added."""
    return (
        replace(one, weight=one.weight + one.absolute_errors) if one.absolute_errors.size else one
    )


def _difference(bulk: Complexes, tail: Complexes, count: int) -> Complexes:
    """Return ``(A + J)^n - A^n``, right to a few n units of ``n |J|``."""
    if count == 1:
        return tail
    near = np.abs(tail) < min(_SMALL, 1.0 / count) * np.abs(bulk)
    ratio = np.where(near, tail, 0.0) / np.where(near, bulk, 1.0)
    x, y = ratio.real, ratio.imag
    real = 0.5 * count * np.log1p(2.0 * x + x * x + y * y)
    turn = count * np.arctan2(y, 1.0 + x)
    grown = np.expm1(real) * np.cos(turn) - 2.0 * np.sin(0.5 * turn) ** 2
    less_one = grown + 1j * np.exp(real) * np.sin(turn)
    alone = power(bulk, count)
    return np.asarray(np.where(near, alone * less_one, power(bulk + tail, count) - alone))


# Atoms of less tilted mass than exp(-this) are omitted.
_OMITTED_LOG_MASS: Final = 700.0
# Sums of less tilted mass than this are left out.
_LEAST: Final = 1e-295
# Atoms this close to a lattice, relatively, are taken to be there; the distance is counted.
_ON_LATTICE: Final = 1e-12


def convolved(loss: CellLoss, count: int, tilt: float, *, most: int) -> Combinations | None:
    """Return every sum of a number of atoms of one loss; None where they are many, or uneven."""
    one = tilted_atoms(loss, tilt, _OMITTED_LOG_MASS)
    if one is None or one.loss.size < 2 or count * (one.loss.size - 1) >= most:
        return None
    first, last = float(one.loss[0]), float(one.loss[-1])
    step = (last - first) / (one.loss.size - 1)
    off = float(np.abs(one.loss - (first + step * np.arange(one.loss.size))).max())
    largest = max(abs(first), abs(last))
    if off > _ON_LATTICE * largest:
        return None
    mass = _power(np.exp(one.log_mass), count)
    logs = _OMITTED_LOG_MASS + count * abs(one.log_total) + count * tilt * largest
    return Combinations(
        tilt=tilt,
        loss=count * first + step * np.arange(mass.size, dtype=np.float64),
        mass=mass,
        log_total=count * one.log_total,
        omitted_mass=expm1_or_inf(count * (one.omitted_mass + mass.size * _LEAST)) * (1.0 + 1e-9),
        relative_error=count * (one.error + ULP * (mass.size + 4.0)) + ULP * (16.0 * logs + 64.0),
        displacement=count * (off + 32.0 * ULP * largest),
    )


def _power(mass: Array, count: int) -> Array:
    """Return the convolution of so many times the same masses, by squaring."""
    found = np.ones(1)
    for digit in f"{count:b}":
        found = np.convolve(found, found)
        if digit == "1":
            found = np.convolve(found, mass)
        found[found < _LEAST] = 0.0
    return found


# The largest number of combinations.
_MOST: Final = 2_000_000
# A bound of the sum of all underflows.
_UNDERFLOW: Final = 1e-290
# Atoms of less tilted mass than exp(-this) are omitted, and their mass is bounded.
_ENUMERATE_OMITTED_LOG_MASS: Final = 60.0


@dataclass(frozen=True)
class Combinations:
    """All sums of the losses with their tilted masses, ``exp(log_p + tilt * loss - log_total)``.

    ``relative_error`` bounds the error of the logarithm of each mass, ``displacement`` that of each
    loss, and ``omitted_mass`` the tilted mass of combinations that are omitted.
    """

    tilt: float
    loss: Array
    mass: Array
    log_total: float
    omitted_mass: float
    relative_error: float
    displacement: float

    @property
    def size(self) -> int:
        """The number of combinations."""
        return int(self.loss.size)

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ln delta."""
        value, missing, scale = self._sum(epsilon - self.displacement)
        return scale + self.relative_error + log_or_none(value + missing)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ln delta; -inf for none."""
        value, _, scale = self._sum(epsilon + self.displacement)
        return scale - self.relative_error + log_or_none(value - _UNDERFLOW)

    def _sum(self, epsilon: float) -> tuple[float, float, float]:
        """Return the sum, a bound of the omitted part, and the logarithm of their common factor."""
        x = np.maximum(self.loss - epsilon, 0.0)
        value = float((np.exp(-self.tilt * x) * -np.expm1(-x) * self.mass).sum())
        missing = math.exp(log_cks_factor(self.tilt)) * self.omitted_mass + _UNDERFLOW
        return value, missing, self.log_total - self.tilt * epsilon


class TiltedAtoms(NamedTuple):
    """The tilted atoms of one loss, without negligible ones."""

    loss: Array
    log_mass: Array
    log_total: float
    omitted_mass: float
    error: float


def combinations(
    terms: Sequence[tuple[CellLoss, int]], tilt: float, *, most: int = _MOST
) -> Combinations | None:
    """Return every combination of atoms; None for too many, or losses that are not atomic."""
    kept = [(tilted_atoms(loss, tilt), count) for loss, count in terms]
    if any(one is None for one, _ in kept):
        return None
    known = [(one, count) for one, count in kept if one is not None]
    sizes = [math.comb(n + one.loss.size - 1, n) for one, n in known]
    if math.prod(sizes) > most:
        return None
    loss, log_mass = np.zeros(1), np.zeros(1)
    for one, count in known:
        more_loss, more_mass = _multisets(one, count)
        loss = np.add.outer(loss, more_loss).ravel()
        log_mass = np.add.outer(log_mass, more_mass).ravel()
    runs = math.fsum(n for _, n in known)
    largest = math.fsum(n * float(np.abs(one.loss).max()) for one, n in known)
    logs = float(np.abs(log_mass).max()) + runs * (math.log(runs + 1.0) + 2.0)
    log_total = math.fsum(n * one.log_total for one, n in known)
    rounding = ULP * (16.0 * logs + 4.0 * abs(log_total) + loss.size + 4.0 * tilt * largest)
    return Combinations(
        tilt=tilt,
        loss=loss,
        mass=np.exp(log_mass),
        log_total=log_total,
        omitted_mass=expm1_or_inf(math.fsum(n * one.omitted_mass for one, n in known))
        * (1.0 + 1e-9),
        relative_error=math.fsum(n * one.error for one, n in known) + rounding,
        displacement=ULP * (16.0 + 2.0 * runs) * largest,
    )


def tilted_atoms(
    loss: CellLoss, tilt: float, omitted: float = _ENUMERATE_OMITTED_LOG_MASS
) -> TiltedAtoms | None:
    """Return a loss's tilted atoms without negligible ones; None if it is not atomic."""
    if loss.cells(np.array([-math.inf, math.inf])).log_p[0] > -math.inf:
        return None
    atoms = loss.atoms()
    if not atoms.loss.size:  # all its mass is at infinity
        return None
    exponent = atoms.log_p + tilt * atoms.loss
    top = float(exponent.max())
    log_total = top + math.log(float(np.exp(exponent - top).sum()))
    log_mass = exponent - log_total
    kept = log_mass > -omitted
    sizes = np.abs(atoms.log_p) + np.abs(tilt * atoms.loss) + abs(log_total)
    error = float((atoms.error + ULP * (8.0 * sizes + 16.0))[kept].max())
    omitted_mass = float(np.exp(log_mass[~kept]).sum()) * 1.01
    return TiltedAtoms(atoms.loss[kept], log_mass[kept], log_total, omitted_mass, error)


def _multisets(one: TiltedAtoms, count: int) -> tuple[Array, Array]:
    """Return the sums of ``count`` atoms, one for each multiset, and their masses' logs."""
    from scipy.special import gammaln

    if count == 1:
        return one.loss, one.log_mass
    left = np.array([count], dtype=np.int64)
    loss, log_mass = np.zeros(1), np.full(1, math.lgamma(count + 1.0))
    for value, log_one in zip(one.loss[:-1], one.log_mass[:-1], strict=True):
        times = left + 1
        parent = np.repeat(np.arange(left.size), times)
        taken = np.arange(parent.size) - np.repeat(np.cumsum(times) - times, times)
        loss = loss[parent] + taken * value
        log_mass = log_mass[parent] + taken * log_one - gammaln(taken + 1.0)
        left = left[parent] - taken
    loss = loss + left * one.loss[-1]
    log_mass = log_mass + left * one.log_mass[-1] - gammaln(left + 1.0)
    return loss, log_mass


def log_or_none(value: float) -> float:
    """Return the logarithm, -inf where there is none."""
    return math.log(value) if value > 0.0 else -math.inf
