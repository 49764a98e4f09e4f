"""Composition on a lattice: tilted masses, multiplied in Fourier space, with every error bounded.

With masses tilted by c and made to add up to 1, ``delta(eps)`` of the composition is

    exp(K - c eps) sum_j w_j g(l_j - eps),    g(x) = exp(-c x) (1 - exp(-x)) for x > 0,

with ``K = sum n_i ln(total_i)``. What the transforms round off, and what lies outside the window
and is folded into it, is an absolute error in w: a relative one of delta's Chernoff bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from hockeystick._solve import minimum
from hockeystick.accountants._orders import log_kappa
from hockeystick.accountants.prv._discretise import Steps, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hockeystick._kernels.series import Array
    from hockeystick.losses import CellLoss

Put: TypeAlias = "Callable[[CellLoss, Steps, float], Weights]"

_ULP: Final = 2.0**-52
# A lattice takes no more points than this.
MOST_POINTS: Final = 2**22
# A real transform of N points errs by at most this times log2(N), relative in the 2-norm.
_TRANSFORM: Final = 4.0 * _ULP
# Beyond this many 1/c above epsilon, what is left of a term is far below its round-off.
_TAIL: Final = 60.0
# Moments for the window are taken over about so many blocks of points.
_BLOCKS: Final = 4096
_LARGEST_EXPONENT: Final = 700.0
# Batches of transforms hold at most so many numbers at a time.
_BATCH: Final = 2**21


@dataclass(frozen=True)
class Part:
    """A loss on its lattice, and how often it runs."""

    loss: CellLoss
    count: int
    steps: Steps


@dataclass(frozen=True)
class Lattice:
    """A composition on a lattice: tilted masses from the point ``start`` on.

    ``folded`` bounds the tilted mass that lies outside the window or is wrong, ``round_off`` the
    error of the masses in the 2-norm, ``error`` that of the factors, relative; ``lost`` the
    probability of an infinite loss; ``slack`` how far each point is from where its mass belongs.
    The widest loss alone takes ``widest`` points.
    """

    tilt: float
    step: float
    start: float
    mass: Array
    log_total: float
    folded: float
    round_off: float
    error: float
    lost: float
    slack: float
    widest: int

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ``ln delta`` of what dominates the composition."""
        value, spread, scale = self._sum(epsilon - self.slack)
        log_value = scale + self.error + _log(max(value, 0.0) + spread)
        if not log_value < math.inf:
            return math.inf
        return float(np.logaddexp(log_value, _log(self.lost))) + 8.0 * _ULP

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ``ln delta`` of what the composition dominates."""
        value, spread, scale = self._sum(epsilon + self.slack)
        bound = scale - self.error + _log(value - spread) - 8.0 * _ULP
        return -math.inf if math.isnan(bound) else bound

    def _sum(self, epsilon: float) -> tuple[float, float, float]:
        """Return the sum, a bound of its error, and the logarithm of what both are scaled by."""
        c, count = self.tilt, self.mass.size
        first = min(max(math.floor((epsilon - self.start) / self.step), 0), count)
        last = min(first + math.ceil(_TAIL / (c * self.step)) + 2, count)
        x = self.start + self.step * np.arange(first, last, dtype=np.float64) - epsilon
        x = np.maximum(x, 0.0)
        factor = np.exp(-c * x) * -np.expm1(-x)
        value = float((factor * self.mass[first:last]).sum())
        rest = math.exp(-_TAIL) if last < count else 0.0
        largest = math.exp(log_kappa(c))
        rounding = _ULP * (16.0 + (last - first) + 4.0 * _TAIL) * abs(value)
        spread = norm(factor) * self.round_off + largest * self.folded
        spread += rest + rounding
        scale = self.log_total - c * epsilon
        place = abs(self.start) + self.step * count
        slack = 4.0 * _ULP * (abs(self.log_total) + abs(c * epsilon) + c * place)
        return value, spread * (1.0 + 1e-12) + slack * abs(value), scale


def compose(parts: Sequence[Part], tilt: float, log_outside: float, put: Put) -> Lattice | None:
    """Return the composition of the parts, each put on its lattice by ``above`` or ``below``.

    None where that takes more than ``MOST_POINTS``.
    """
    if any(part.steps.last - part.steps.first > MOST_POINTS for part in parts):
        return None
    from scipy.fft import irfft, next_fast_len

    step = parts[0].steps.step
    weights = [(put(part.loss, part.steps, tilt), part.count) for part in parts]
    low, high, folded = _window(weights, step, log_outside)
    offset = math.fsum(count * one.offset for one, count in weights)
    if not high - low < MOST_POINTS * step:
        return None
    first = math.floor((low - offset) / step) - 1
    size = int(next_fast_len(max(int((high - low) / step) + 4, 16), real=True))
    spectrum, round_off = _spectrum(weights, size)
    mass = np.roll(irfft(spectrum, size), -(first % size))
    round_off += _TRANSFORM * math.log2(size) * norm(mass) * 1.01
    place = abs(offset) + abs(first * step) + size * step
    return Lattice(
        tilt=tilt,
        step=step,
        start=offset + first * step,
        mass=mass,
        log_total=math.fsum(count * one.log_total for one, count in weights),
        folded=folded + grown_by(math.fsum(count * one.loose for one, count in weights)),
        round_off=round_off,
        error=math.fsum(count * one.error for one, count in weights) * (1.0 + 1e-9),
        lost=min(math.fsum(count * one.lost for one, count in weights) * (1.0 + 1e-9), 1.0),
        slack=math.fsum(count * one.slack for one, count in weights) + 8.0 * _ULP * place,
        widest=max(one.weight.size for one, _ in weights),
    )


def _spectrum(
    weights: Sequence[tuple[Weights, int]], size: int
) -> tuple[NDArray[np.complex128], float]:
    """Return the transform of the composition, and the 2-norm of its error in the masses.

    Where ``|F| <= 1 + e`` and F errs by e in the 2-norm, ``F^n`` errs by at most ``n e (1+e)^n``.
    """
    from scipy.fft import rfft

    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    unit = _TRANSFORM * math.log2(size)
    error = 0.0
    batch = max(_BATCH // size, 1)
    for start in range(0, len(weights), batch):
        chosen = weights[start : start + batch]
        folded = np.array([_folded(one, size) for one, _ in chosen])
        error += math.fsum(
            count * unit * norm(row) for (_, count), row in zip(chosen, folded, strict=True)
        )
        for (_, count), values in zip(chosen, rfft(folded, axis=-1), strict=True):
            spectrum *= values if count == 1 else _power(values, count)
    # A product of complex numbers errs by at most sqrt(5) half units; F^n takes n - 1 of them.
    products = math.fsum(count for _, count in weights)
    size_in_norm = norm(spectrum) * math.sqrt(2.0 / size)
    growth = 1.01 + grown_by(error * math.sqrt(size))
    return spectrum, (error + 1.5 * _ULP * products * size_in_norm) * growth


def _power(values: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """Return a power by repeated squaring."""
    result = np.ones_like(values)
    while True:
        if count & 1:
            result *= values
        count >>= 1
        if not count:
            return result
        values = values * values


def _folded(one: Weights, size: int) -> Array:
    """Return masses with those that lie a multiple of ``size`` points apart put together."""
    lead = one.first % size
    length = -(-(lead + one.weight.size) // size) * size
    padded = np.zeros(length)
    padded[lead : lead + one.weight.size] = one.weight
    folded: Array = padded.reshape(-1, size).sum(axis=0)
    return folded


def _window(
    weights: Sequence[tuple[Weights, int]], step: float, log_outside: float
) -> tuple[float, float, float]:
    """Return where the tilted sum lies but for ``exp(log_outside)`` on either side, by Chernoff."""
    blocks = [(_blocks(one, step), count) for one, count in weights]
    spread = math.sqrt(max(math.fsum(n * block.variance for block, n in blocks), 1e-300))
    start = -math.log(spread)
    ends, outside = [], 0.0
    for side in (-1.0, 1.0):

        def needed(log_s: float, side: float = side) -> float:
            s = math.exp(log_s)
            return (_log_moment(blocks, side * s) - log_outside) / s

        best = minimum(needed, start - 8.0, start + 10.0, tolerance=0.1)
        farthest = math.fsum(n * block.farthest(side) for block, n in blocks)
        reached = needed(best) * (1.0 + 1e-9)
        ends.append(side * min(farthest, reached))
        outside += 0.0 if farthest <= reached else math.exp(log_outside)
    return min(ends), max(ends), outside * (1.0 + 1e-6)


class _Blocks(NamedTuple):
    """Masses of neighbouring points put together: from where to where, and how much."""

    low: Array
    high: Array
    weight: Array

    @property
    def variance(self) -> float:
        """The variance, of each block at its lower end."""
        mean = float((self.weight * self.low).sum())
        return float((self.weight * (self.low - mean) ** 2).sum())

    def farthest(self, side: float) -> float:
        """Return how far from 0 the masses reach on one side."""
        return float((side * (self.high if side > 0.0 else self.low)).max())


def _blocks(one: Weights, step: float) -> _Blocks:
    """Return the points that have mass, in blocks."""
    kept = np.flatnonzero(one.weight > 0.0)
    points = one.offset + step * (one.first + kept.astype(np.float64))
    starts = np.arange(0, kept.size, max(kept.size // _BLOCKS, 1))
    ends = np.append(starts[1:], kept.size) - 1
    return _Blocks(points[starts], points[ends], np.add.reduceat(one.weight[kept], starts))


def _log_moment(blocks: Sequence[tuple[_Blocks, int]], s: float) -> float:
    """Return ``ln E exp(s S)`` of the tilted sum S, each block at its farther end, rounded up."""
    total = 0.0
    for block, count in blocks:
        exponent = s * (block.high if s > 0.0 else block.low)
        top = float(exponent.max())
        value = top + math.log(float((block.weight * np.exp(exponent - top)).sum()))
        total += count * (value + 1e-12 * (1.0 + abs(top)))
    return total


def norm(values: Array | NDArray[np.complex128]) -> float:
    """Return the 2-norm, without the threads of linear algebra, and without underflow."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * math.sqrt(float(((np.abs(values) / largest) ** 2).sum()))


def grown_by(exponent: float) -> float:
    """Return ``exp(x) - 1``, infinite where that is too large a number."""
    return math.expm1(exponent) if exponent < _LARGEST_EXPONENT else math.inf


def _log(value: float) -> float:
    """Return the logarithm, -inf where there is none."""
    return -math.inf if value <= 0.0 else math.log(value)
