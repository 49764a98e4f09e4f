"""Products and powers of transforms, and the masses that they are the transform of.

Where many runs have been composed, next to all of the spectrum has fallen below round-off: what is
left is summed as it is, and nothing is ever transformed back.
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
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor

if TYPE_CHECKING:
    from hockeystick.accountants.prv._discretise import Weights
    from hockeystick.kernels.series import Array

Complexes: TypeAlias = NDArray[np.complex128]
Indices: TypeAlias = NDArray[np.signedinteger[Any]]

# A real transform of N points errs by at most this times log2(N), relative in the 2-norm.
TRANSFORM: Final = 4.0 * ULP
# Frequencies fainter than this are left out.
_FAINT: Final = 2.0**-60
# Where a larger share of the frequencies is left, masses are transformed back.
_FEW: Final = 1.0 / 32.0
# The most numbers that a batch of transforms holds at a time.
_BATCH: Final = 2**21
# Beyond this many 1/c above epsilon, what is left of a term is far below its round-off.
_TAIL: Final = 60.0
_LARGEST_EXPONENT: Final = 700.0
# The round-off of one term of a sum over frequencies.
_TERM: Final = 128.0


class Sum(NamedTuple):
    """The sum of masses times ``g(x) = exp(-c x) (1 - exp(-x))``, and a bound of its error."""

    value: float
    error: float


class Masses(Protocol):
    """Masses on points a step apart, and a bound of their errors' 2-norm."""

    @property
    def size(self) -> int:
        """How many points there are."""
        ...

    @property
    def round_off(self) -> float:
        """What the masses are off by, in the 2-norm."""
        ...

    def beyond(self, first: int, x: float, c: float, step: float) -> Sum:
        """Return the sum over the points from ``first`` on, of which the first is at ``x >= 0``."""
        ...


@dataclass(frozen=True)
class Listed:
    """Masses one by one, which add up to no more than ``most``."""

    mass: Array
    round_off: float
    most: float = 1.0

    @property
    def size(self) -> int:
        """How many points there are."""
        return self.mass.size

    def beyond(self, first: int, x: float, c: float, step: float) -> Sum:
        """Return the sum over the points from ``first`` on."""
        last = min(first + math.ceil(_TAIL / (c * step)) + 2, self.size)
        at = x + step * np.arange(last - first, dtype=np.float64)
        factor = np.exp(-c * at) * -np.expm1(-at)
        value = float((factor * self.mass[first:last]).sum())
        rest = self.most * math.exp(-_TAIL) if last < self.size else 0.0
        rounding = ULP * (16.0 + (last - first) + 4.0 * _TAIL) * abs(value)
        return Sum(value, norm(factor) * self.round_off * (1.0 + 1e-9) + rest + rounding)


@dataclass(frozen=True)
class Few:
    """Masses by the few frequencies k that are left of their transform W.

    Point j has ``1/N sum_k W_k exp(i theta_k (lead + j))`` with ``theta_k = 2 pi k/N``, and a sum
    over points turns into one over frequencies of geometric series.
    """

    size: int
    lead: int
    index: Indices
    value: Complexes
    round_off: float

    @cached_property
    def _weight(self) -> Complexes:
        """``W_k / N``, twice where the frequency -k is another one."""
        alone = (self.index == 0) | (2 * self.index == self.size)
        return np.asarray(self.value * np.where(alone, 1.0, 2.0) / self.size)

    def beyond(self, first: int, x: float, c: float, step: float) -> Sum:
        """Return the sum over the points from ``first`` on: all beyond it, less all beyond the end.

        From x on, turned back to angle 0, a series adds up to
        ``exp(-c x) ((1 - e^-x) + u (e^-x - e^-step)) / ((1 - u) (1 - u e^-step))`` with
        ``u = exp(i theta - c step)``.
        """
        less = self._one_less(c * step)
        weight = self._weight / (less * self._one_less((c + 1.0) * step))
        largest = float(np.abs(weight).sum())
        value, rounding = 0.0, 0.0
        for point, sign in ((first, 1.0), (self.size, -1.0)):
            at = x + step * (point - first)
            scale = math.exp(-min(c * at, _LARGEST_EXPONENT))
            own, following = -math.expm1(-at), math.exp(-step) * math.expm1(step - at)
            terms = weight * self._turned(point) * (own + following * (1.0 - less))
            value += sign * scale * float(terms.real.sum())
            error = _TERM + self.index.size + min(c * at, _LARGEST_EXPONENT)
            rounding += ULP * error * scale * (abs(own) + abs(following)) * largest
        return Sum(value, _norm_of_factor(c, step) * self.round_off + rounding)

    def _one_less(self, exponent: float) -> Complexes:
        """Return ``1 - exp(i theta_k - a)`` without cancellation."""
        theta = 2.0 * math.pi * (self.index / self.size)
        scale = math.exp(-exponent)
        real = -math.expm1(-exponent) + 2.0 * scale * np.sin(0.5 * theta) ** 2
        return np.asarray(real - 1j * scale * np.sin(theta))

    def _turned(self, point: int) -> Complexes:
        """Return ``exp(i theta_k (lead + point))``, whole turns left out."""
        turns = (self.index * ((self.lead + point) % self.size)) % self.size
        return np.asarray(np.exp(2j * math.pi * (turns / self.size)))


def _norm_of_factor(c: float, step: float) -> float:
    """Return a bound of the 2-norm of g on points a step apart: its square is at most max x sum.

    As g rises and falls once, its sum is at most its integral over the step and its maximum.
    """
    largest = math.exp(log_cks_factor(c))
    return math.sqrt(largest * (largest + 1.0 / (step * c * (c + 1.0)))) * (1.0 + 1e-12)


def masses_of(weights: Sequence[tuple[Weights, int]], size: int, lead: int) -> Masses:
    """Return the masses of the composition on ``size`` points, the first of them at ``lead``.

    Where ``|F| <= 1 + e`` and F errs by e in the 2-norm, ``F^n`` errs by at most ``n e (1+e)^n``.
    """
    index, spectrum, error = _product(weights, size)
    # A product of complex numbers errs by at most sqrt(5) half units; F^n takes n - 1 of them.
    products = math.fsum(count for _, count in weights)
    size_in_norm = norm(spectrum) * math.sqrt(2.0 / size)
    growth = 1.01 + grown_by(error * math.sqrt(size))
    round_off = (error + 1.5 * ULP * products * size_in_norm + 2.0 * _FAINT) * growth
    if index.size <= _FEW * size:
        return Few(size, lead, index, spectrum, round_off)
    from scipy.fft import irfft

    full = np.zeros(size // 2 + 1, dtype=np.complex128)
    full[index] = spectrum
    mass = np.roll(irfft(full, size), -lead)
    return Listed(mass, round_off + TRANSFORM * math.log2(size) * norm(mass) * 1.01)


def _product(weights: Sequence[tuple[Weights, int]], size: int) -> tuple[Indices, Complexes, float]:
    """Return the frequencies that are left, the composition's transform there, and its error.

    The error is in the 2-norm of the masses; all factors are at most 1, so that what is too faint
    stays so.
    """
    from scipy.fft import rfft

    index: Indices = np.arange(size // 2 + 1)
    spectrum: Complexes = np.broadcast_to(np.complex128(1.0), index.shape)
    unit = TRANSFORM * math.log2(size)
    error = 0.0
    batch = max(_BATCH // size, 1)
    for start in range(0, len(weights), batch):
        chosen = weights[start : start + batch]
        rows = np.array([folded(one, size) for one, _ in chosen])
        error += math.fsum(
            count * unit * norm(row) for (_, count), row in zip(chosen, rows, strict=True)
        )
        for (_, count), values in zip(chosen, rfft(rows, axis=-1), strict=True):
            own = values[index]
            strong = _stronger(own, _FAINT ** (1.0 / count))
            index, spectrum = index[strong], spectrum[strong] * power(own[strong], count)
    strong = _stronger(spectrum, _FAINT)
    return index[strong], spectrum[strong], error


def _stronger(values: Complexes, least: float) -> Indices:
    """Return where values are larger than the least one that counts."""
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


def folded(one: Weights, size: int) -> Array:
    """Return masses with those that lie a multiple of ``size`` points apart put together."""
    lead = one.first % size
    length = -(-(lead + one.weight.size) // size) * size
    padded = np.zeros(length)
    padded[lead : lead + one.weight.size] = one.weight
    folded: Array = padded if length == size else padded.reshape(-1, size).sum(axis=0)
    return folded


def norm(values: Array | Complexes) -> float:
    """Return the 2-norm, without the threads of linear algebra, and without underflow."""
    flat = values.view(np.float64)
    square = float((flat * flat).sum())
    if square > 1e-200:
        return math.sqrt(square)
    largest = float(np.abs(flat).max(initial=0.0))
    return largest * math.sqrt(float(((flat / largest) ** 2).sum())) if largest else 0.0


def grown_by(exponent: float) -> float:
    """Return ``exp(x) - 1``, infinite where that is too large a number."""
    return math.expm1(exponent) if exponent < _LARGEST_EXPONENT else math.inf
