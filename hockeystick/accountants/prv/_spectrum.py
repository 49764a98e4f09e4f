"""Products and powers of transforms, and sums over the masses that these transforms belong to.

After many runs next to all frequencies have fallen below round-off; sums over masses are then
computed from the few that are left, without an inverse transform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.moments import log_cks_factor

if TYPE_CHECKING:
    from hockeystick.accountants.prv._discretise import TiltedMasses
    from hockeystick.kernels.series import Array

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
# The sum over masses ends this many 1/c above epsilon; the rest is bounded.
_TAIL: Final = 60.0
_LARGEST_EXPONENT: Final = 700.0
# The round-off of one term of a sum over frequencies.
_TERM: Final = 128.0


class Sum(NamedTuple):
    """The sum of masses times ``g(x) = exp(-c x) (1 - exp(-x))``, and a bound of its error."""

    value: float
    error: float


class ComposedMasses(Protocol):
    """Masses on points a step apart, and a bound of their errors' 2-norm."""

    @property
    def size(self) -> int:
        """How many points there are."""
        ...

    @property
    def round_off(self) -> float:
        """A bound of the masses' error in the 2-norm."""
        ...

    def sum_from(self, first: int, x: float, c: float, step: float) -> Sum:
        """Return the sum over the points from ``first`` on, of which the first is at ``x >= 0``."""
        ...


@dataclass(frozen=True)
class PointMasses:
    """Masses one by one, which add up to no more than ``most``."""

    mass: Array
    round_off: float
    most: float = 1.0

    @property
    def size(self) -> int:
        """How many points there are."""
        return self.mass.size

    def sum_from(self, first: int, x: float, c: float, step: float) -> Sum:
        """Return the sum over the points from ``first`` on."""
        last = min(first + math.ceil(_TAIL / (c * step)) + 2, self.size)
        at = x + step * np.arange(last - first, dtype=np.float64)
        factor = np.exp(-c * at) * -np.expm1(-at)
        value = float((factor * self.mass[first:last]).sum())
        rest = self.most * math.exp(-_TAIL) if last < self.size else 0.0
        rounding = ULP * (16.0 + (last - first) + 4.0 * _TAIL) * abs(value)
        return Sum(value, norm(factor) * self.round_off * (1.0 + 1e-9) + rest + rounding)


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

    def sum_from(self, first: int, x: float, c: float, step: float) -> Sum:
        """Return the sum over the points from ``first`` on: two infinite series, subtracted.

        From x on, a series at angle 0 adds up to
        ``exp(-c x) ((1 - e^-x) + u (e^-x - e^-step)) / ((1 - u) (1 - u e^-step))`` with
        ``u = exp(i theta - c step)``.
        """
        less = self._one_minus(c * step)
        weight = self._weight / (less * self._one_minus((c + 1.0) * step))
        largest = float(np.abs(weight).sum())
        value, rounding = 0.0, 0.0
        for point, sign in ((first, 1.0), (self.size, -1.0)):
            at = x + step * (point - first)
            scale = math.exp(-min(c * at, _LARGEST_EXPONENT))
            own, following = -math.expm1(-at), math.exp(-step) * math.expm1(step - at)
            terms = weight * self._phase(point) * (own + following * (1.0 - less))
            value += sign * scale * float(terms.real.sum())
            error = _TERM + self.index.size + min(c * at, _LARGEST_EXPONENT)
            rounding += ULP * error * scale * (abs(own) + abs(following)) * largest
        return Sum(value, _norm_of_factor(c, step) * self.round_off + rounding)

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
    error = 0.0
    batch = max(_BATCH // size, 1)
    for start in range(0, len(weights), batch):
        chosen = weights[start : start + batch]
        rows = np.array([wrapped(one, size) for one, _ in chosen])
        error += math.fsum(
            count * unit * norm(row) for (_, count), row in zip(chosen, rows, strict=True)
        )
        for (_, count), values in zip(chosen, rfft(rows, axis=-1), strict=True):
            own = values[index]
            kept = _larger_than(own, _NEGLIGIBLE ** (1.0 / count))
            index, spectrum = index[kept], spectrum[kept] * power(own[kept], count)
    kept = _larger_than(spectrum, _NEGLIGIBLE)
    return index[kept], spectrum[kept], error


def _larger_than(values: Complexes, least: float) -> Indices:
    """Return the indices of values of a larger modulus than ``least``."""
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


def wrapped(one: TiltedMasses, size: int) -> Array:
    """Return masses modulo ``size``: those whose indices differ by a multiple of it are added."""
    start = one.first % size
    length = -(-(start + one.weight.size) // size) * size
    padded = np.zeros(length)
    padded[start : start + one.weight.size] = one.weight
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
