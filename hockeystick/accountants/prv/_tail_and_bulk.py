"""Rare large losses, summed separately where no tilt makes round-off relative to them.

Where few runs have a large loss, the tail of the sum falls slower than any exponential, and a tilt
to the losses next to epsilon gives most weight to far larger ones. With ``M = A + J`` for each
run's tilted masses (bulk: losses up to a threshold; tail: losses above it) the outcomes with a
large loss have the transform ``prod M^n - prod A^n``, which is computed without cancellation: its
round-off is relative to their mass ``sum n J``, however rare they are. The outcomes without a large
loss are composed at a tilt of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from hockeystick.accountants.prv._spectrum import (
    TRANSFORM,
    Complexes,
    PointMasses,
    expm1_or_inf,
    norm,
    power,
    wrapped,
)
from hockeystick.accountants.prv._window import CoarseLosses, coarsened
from hockeystick.numerics import ULP
from hockeystick.numerics.roots import minimum
from hockeystick.privacy_loss.bounds.moments import log_cks_factor

if TYPE_CHECKING:
    from hockeystick.accountants.prv._discretise import TiltedMasses

# The number of points on which outcomes without a large loss are bounded.
_COARSE_POINTS: Final = 2048
# A contribution below exp of minus this of another is bounded by Chernoff alone.
_NEGLIGIBLE: Final = 24.0
# The tilts of lattices for small losses: their number per octave.
_PER_OCTAVE: Final = 3
# A bound of the round-off of subnormal numbers.
_DENORMAL: Final = 1e-322
# Where |J| is less than this share of |A|, powers are subtracted without cancellation.
_SMALL: Final = 0.5
# Round-off of the subtraction in ULPs: for itself, and for each run.
_SUBTRACTED: Final = 128.0
_FOR_EACH_RUN: Final = 8.0


class SplitMasses(NamedTuple):
    """The masses of small losses and of large ones, and how often the loss runs."""

    small: TiltedMasses
    large: TiltedMasses
    runs: int


class LogDeltaBounds(Protocol):
    """What delta is read off."""

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ln delta."""
        ...

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ln delta; -inf for none."""
        ...


@dataclass(frozen=True)
class Bulk:
    """The outcomes without a large loss: what they contribute to delta.

    That is at most Chernoff's bound. Where that is not negligible next to the others, ``compose``
    puts them on a lattice of their own, tilted to their own saddle.
    """

    split_masses: Sequence[SplitMasses]
    step: float
    tilt: float
    compose: Callable[[Sequence[tuple[TiltedMasses, int]], float], LogDeltaBounds | None]

    def upper(self, epsilon: float, log_others: float) -> float:
        """Return an upper bound of ``ln`` of the contribution, given that of the others."""
        order, bound = self._chernoff(epsilon)
        if bound < log_others - _NEGLIGIBLE:
            return bound
        ends = self._tilted(order)
        return bound if ends is None else min(bound, ends.upper(epsilon))

    def lower(self, epsilon: float, log_others: float) -> float:
        """Return a lower bound of ``ln`` of the contribution; -inf for none."""
        order, bound = self._chernoff(epsilon)
        ends = None if bound < log_others - _NEGLIGIBLE else self._tilted(order)
        return -math.inf if ends is None else ends.lower(epsilon)

    def _chernoff(self, epsilon: float) -> tuple[float, float]:
        """Return the best order, and Chernoff's bound of ``ln`` of the contribution there."""

        def bound(log_order: float) -> float:
            order = math.exp(log_order)
            moment = self._coarse.log_moment(order - self.tilt)
            away = 16.0 * ULP * (abs(moment) + abs(self._log_scale) + order * abs(epsilon))
            return moment + self._log_scale - order * epsilon + log_cks_factor(order) + away

        start = -math.log(max(epsilon, 1e-300))
        best = minimum(bound, start, start + 8.0, tolerance=0.05)
        return math.exp(best), bound(best)

    def _tilted(self, order: float) -> LogDeltaBounds | None:
        """Return the composition of small losses on a lattice tilted to about an order."""
        place = round(_PER_OCTAVE * math.log2(order))
        if place not in self._known:
            tilt = 2.0 ** (place / _PER_OCTAVE)
            weights = [
                (one.small.retilted(self.step, self.tilt, tilt), one.runs)
                for one in self.split_masses
            ]
            self._known[place] = self.compose(weights, tilt)
        return self._known[place]

    @cached_property
    def _known(self) -> dict[int, LogDeltaBounds | None]:
        """The lattices made so far."""
        return {}

    @cached_property
    def _coarse(self) -> CoarseLosses:
        """The small losses on few points, convexly larger, with their absolute errors added."""
        return coarsened(
            [(_with_absolute_errors(one.small), one.runs) for one in self.split_masses],
            self.step,
            _COARSE_POINTS,
        )

    @cached_property
    def _log_scale(self) -> float:
        """The logarithm of the masses' common factor, with their relative errors added."""
        return math.fsum(
            n * (one.log_total + one.relative_error) for one, _, n in self.split_masses
        )


def split_masses_of(
    weights: Sequence[tuple[TiltedMasses, int]], step: float, threshold: float
) -> list[SplitMasses]:
    """Return the masses of small and of large losses."""
    return [SplitMasses(*one.split(step, threshold), count) for one, count in weights]


def mass_of_large(split_masses: Sequence[SplitMasses]) -> float:
    """Return a bound of the tilted mass of all outcomes with a large loss, relative to all."""
    return math.fsum(
        n * float(large.weight.sum()) for _, large, n in split_masses
    ) * _growth_by_composition(split_masses)


def _growth_by_composition(split_masses: Sequence[SplitMasses]) -> float:
    """Return ``prod max(total, 1)^n``, where rounding lets a total exceed 1 a little."""
    totals = ((float(low.weight.sum() + high.weight.sum()), n) for low, high, n in split_masses)
    return math.exp(math.fsum(n * max(math.log(total), 0.0) for total, n in totals)) * (1.0 + 1e-9)


def absolute_error_of_large(split_masses: Sequence[SplitMasses]) -> float:
    """Return a bound of the absolute error in the mass of outcomes with a large loss.

    If A has the absolute error a and J has j, ``M^n - A^n`` changes by at most ``n j + n J n a``,
    times the growth of a power whose total exceeds 1.
    """
    small = math.fsum(one.runs * one.small.absolute_error for one in split_masses)
    large = math.fsum(one.runs * one.large.absolute_error for one in split_masses)
    grown = (1.0 + expm1_or_inf(small + large)) * _growth_by_composition(split_masses)
    return (large + (mass_of_large(split_masses) + large) * small) * grown


def masses_with_large_loss(
    split_masses: Sequence[SplitMasses], size: int, rotation: int
) -> PointMasses:
    """Return the masses of the outcomes with a large loss, the first of them at ``rotation``.

    An error e_A of A's transform, in the 2-norm, is one of ``n (n - 1) |J| e_A`` of the power's
    difference, and e_J is one of ``n e_J``; both grow as the powers of what exceeds 1 do.
    """
    from scipy.fft import irfft, rfft

    unit = TRANSFORM * math.log2(size)
    rare: Complexes = np.zeros(size // 2 + 1, dtype=np.complex128)
    bulk: Complexes = np.ones_like(rare)
    error_small, error_large, norms, runs = 0.0, 0.0, 0.0, 0.0
    for one, count in ((half, half.runs) for half in split_masses):
        low, high = wrapped(one.small, size), wrapped(one.large, size)
        small, large = rfft(low), rfft(high)
        own, alone = _difference(small, large, count), power(small, count)
        rare = rare * (alone + own) + bulk * own
        bulk = bulk * alone
        error_small += count * unit * norm(low)
        error_large += count * unit * norm(high)
        norms += count * norm(high)
        runs += count
    growth = 1.01 * _growth_by_composition(split_masses) + expm1_or_inf(
        (error_small + error_large) * math.sqrt(size)
    )
    transformed = error_large + mass_of_large(split_masses) * error_small
    rounding = ULP * (_SUBTRACTED + _FOR_EACH_RUN * (runs + len(split_masses)))
    mass = np.roll(irfft(rare, size), -rotation)
    back = unit * norm(mass) * 1.01
    round_off = (transformed + rounding * norms) * growth + back + runs * size * _DENORMAL
    return PointMasses(mass, round_off, mass_of_large(split_masses))


def _with_absolute_errors(one: TiltedMasses) -> TiltedMasses:
    """Return masses with their absolute errors added."""
    return (
        replace(one, weight=one.weight + one.absolute_errors) if one.absolute_errors.size else one
    )


def _difference(small: Complexes, large: Complexes, count: int) -> Complexes:
    """Return ``(A + J)^n - A^n``, right to a few n units of ``n |J|``."""
    if count == 1:
        return large
    near = np.abs(large) < min(_SMALL, 1.0 / count) * np.abs(small)
    ratio = np.where(near, large, 0.0) / np.where(near, small, 1.0)
    x, y = ratio.real, ratio.imag
    real = 0.5 * count * np.log1p(2.0 * x + x * x + y * y)
    turn = count * np.arctan2(y, 1.0 + x)
    grown = np.expm1(real) * np.cos(turn) - 2.0 * np.sin(0.5 * turn) ** 2
    less_one = grown + 1j * np.exp(real) * np.sin(turn)
    alone = power(small, count)
    return np.asarray(np.where(near, alone * less_one, power(small + large, count) - alone))
