"""The losses of one shuffled epoch: the dominating pair, and an attained one.

Let the noise be 1, with mu the reciprocal of the noise multiplier. Where all other examples
contribute -1 along one direction, the batches' sums, each less what they would be without the
example that differs, are independent N(0, 1), but for one batch, any with the same chance, whose
mean is p mu or q mu. The largest of T of them has the distribution functions

    F_p(z) = Phi(z - p mu) Phi(z)^(T-1)    and    F_q(z) = Phi(z - q mu) Phi(z)^(T-1),

whichever the batch is. It is discretised; both are post-processing. The sum of all batches is a
Gaussian with ``(p - q) mu / sqrt(T)``, whose loss may be larger with many noisy batches.

Where the examples beyond the last whole batch are dropped, T/(T+1) is the least probability with
which the example takes part, and the largest sum has

    F_p(z) = (T/(T+1) Phi(z - p mu) + 1/(T+1) Phi(z)) Phi(z)^(T-1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, cast, final

import numpy as np

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.sampling.fixed_size import LastBatch
from hockeystick.mechanisms.sampling.poisson import Clipping
from hockeystick.mechanisms.sampling.shuffled import Shuffled
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import ULP, decimal
from hockeystick.privacy_loss.bounds.shifted_interpolation import LARGEST_GROUP, squares_of_batches
from hockeystick.privacy_loss.core.atomic import AtomListLoss, kept, read_only_atoms
from hockeystick.privacy_loss.core.base import (
    Array,
    Atoms,
    DominatingPair,
    NoAnalysisError,
    both,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import edge_pair
from hockeystick.privacy_loss.core.mixtures import merged, observed_mixture
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

# The least noise of the largest-sum statistic, and the least distance of its means.
_LEAST_NOISE: Final = 0.04
_SMALLEST_MU: Final = 1e-4
# Larger noise is replaced by this for the upper bound; the lower one is then 0.
_MOST_NOISE: Final = 1e10
# With noise below this the loss is out of the range of floats.
_NO_NOISE: Final = 1e-100
# The spacing of atoms is about mu over this; the number of points of the curve that places them.
_ATOMS_PER_MU: Final = 512.0
_POINTS: Final = 2**15
# The range of the cells beyond the means; the log mass below which a tail is one cell.
_REACH: Final = 36.0
_LEAST: Final = -745.0
# Cells whose log mass has a larger error are left out, which lowers the profile.
_SURE: Final = 1e-6
# Shifts of the atoms' grid are whole multiples of this share of its step.
_FINE: Final = 2.0**-20


class Shifts(NamedTuple):
    """The means of the batch with the example that differs, under P and under Q, over mu."""

    under_p: int
    under_q: int


@final
@dataclass(frozen=True, slots=True)
class LargestBatchLoss(AtomListLoss):
    """The loss of the largest of ``steps`` Gaussian sums, discretised and rounded down.

    Each cell is one atom, whose loss is rounded down to a grid: every profile is at most that of
    the largest sum itself, by about one part in 10^3 for deltas from 10^-10 on.
    """

    noise_multiplier: float
    steps: int
    shifts: Shifts
    dropped: bool = False

    @kept(64)
    def atoms(self) -> Atoms:
        mu = 1.0 / self.noise_multiplier
        shifts = (self.shifts.under_p * mu, self.shifts.under_q * mu)
        with np.errstate(all="ignore"):
            edges, step = _edges(self.steps, *shifts, self.dropped)
            (log_p, error_p), (log_q, error_q) = (
                _masses(_curve(edges, self.steps, shift, self.dropped)) for shift in shifts
            )
            known = (log_p > -math.inf) & (error_p < _SURE) & (error_q < _SURE)
            log_p, error = log_p[known], error_p[known]
            log_q, error_q = log_q[known], error_q[known]
            rounding = 4.0 * ULP * (np.abs(log_p) + np.abs(log_q))
            less = log_p - log_q - (error + error_q + rounding)
        values = _rounded_down(less, log_p + 4.0 / mu * less, step)
        return Atoms(*read_only_atoms(*merged(Atoms(values, log_p, error))))


class _Curve(NamedTuple):
    """``ln F`` of the largest sum with one mean, a bound on the error, and the hazard rate."""

    log_f: Array
    error: Array
    rate: Array


def _curve(z: Array, steps: int, shift: float, dropped: bool) -> _Curve:
    at = z - shift
    one, other = _log_phi(at), _log_phi(z)
    others = float(steps - 1)
    # The shift is known to 2 units in the last place.
    moved = ULP * (2.0 * abs(shift) + np.abs(at))
    one = one._replace(error=one.error + 1.01 * one.rate * moved)
    if dropped:
        one = _mixed(one, other, 1.0 / (steps + 1.0))
    error = one.error + others * other.error
    log_f = one.log_f + others * other.log_f
    return _Curve(log_f, error + 4.0 * ULP * np.abs(log_f), one.rate + others * other.rate)


def _mixed(one: _Curve, other: _Curve, share: float) -> _Curve:
    """Return the curve of a mixture, in which the second has this share.

    The sum's relative error is at most the larger one of its parts.
    """
    first = one.log_f + math.log1p(-share)
    second = other.log_f + math.log(share)
    log_f = np.logaddexp(first, second)
    rounding = 16.0 * ULP * (1.0 + np.abs(first) + np.abs(second) - math.log(share))
    weight = np.exp(first - log_f)
    rate = weight * one.rate + (1.0 - weight) * other.rate
    return _Curve(log_f, np.maximum(one.error, other.error) + rounding, rate)


def _log_phi(at: Array) -> _Curve:
    """Return ``ln Phi`` with its error, which includes that of the exponent."""
    from scipy.special import log_ndtr

    value = log_ndtr(at)
    ulps = 64.0 + 2.0 * np.where(at > 0.0, at * at, 0.0)
    rate = np.exp(-0.5 * at * at - 0.5 * math.log(2.0 * math.pi) - value)
    return _Curve(value, ULP * ulps * np.abs(value) + 1e-320, rate)


def _edges(steps: int, first: float, second: float, dropped: bool) -> tuple[Array, float]:
    """Return outputs at which the loss is midway between points of a grid, and the grid's step.

    Any outputs give a valid lower bound.
    """
    z = np.linspace(-_REACH, max(first, second) + _REACH, _POINTS)
    likely = [_curve(z, steps, shift, dropped).log_f for shift in (first, second)]
    start = float(z[np.argmax(np.minimum(*likely) > _LEAST)])
    z = np.linspace(start, max(min(first, second), 0.0) + _REACH, _POINTS)
    above, below = (_curve(z, steps, shift, dropped) for shift in (first, second))
    ratio = above.log_f - below.log_f + np.log(above.rate) - np.log(below.rate)
    side = 1.0 if first > second else -1.0
    ratio = np.maximum.accumulate(side * ratio)
    step = 2.0 ** math.floor(math.log2(abs(first - second) / _ATOMS_PER_MU))
    least = math.ceil(ratio[0] / step - 0.5)
    levels = np.arange(least, max(math.floor(ratio[-1] / step + 0.5), least + 1)) + 0.5
    return np.unique(np.interp(step * levels, ratio, z)), step


def _masses(curve: _Curve) -> tuple[Array, Array]:
    """Return the logarithms of the masses below, between and above the edges, and their errors.

    ``ln(F(b) - F(a)) = ln F(b) + ln(1 - e^-D)`` with ``D = ln F(b) - ln F(a)``; of the last factor,
    the relative error is at most that of D.
    """
    log_f = np.append(curve.log_f, 0.0)
    error = np.append(curve.error, 0.0)
    between = np.diff(log_f)
    relative_error = (error[1:] + error[:-1]) / between
    relative_error = np.where(relative_error < 0.1, 1.2 * relative_error + 16.0 * ULP, math.inf)
    value = log_f[1:] + np.log(-np.expm1(-between))
    error_of = error[1:] + relative_error + 8.0 * ULP * np.abs(value)
    return np.append(log_f[0], value), np.append(error[0], error_of)


def _rounded_down(values: Array, exponent: Array, step: float) -> Array:
    """Return values rounded down to a grid, with the shift of the least mean loss.

    A shift s lowers all values by s, and by a step those further than s below a grid point.
    """
    nearest = np.round(values / step)
    short = np.maximum(nearest * step - values, 0.0)
    weight = np.exp(exponent - exponent.max())
    order = np.argsort(short)
    own = weight[order] / weight.sum()
    cost = short[order] + step * (1.0 - np.cumsum(own))
    shift = step * _FINE * math.ceil(float(short[order][np.argmin(cost)]) / (step * _FINE))
    places = np.floor((values + shift) / step)
    found = places * step - shift
    return np.asarray(np.where(found > values, found - step, found))


@dominating_pair.register
def _(mechanism: Shuffled) -> DominatingPair:
    noise = mechanism.noise_multiplier
    if edge := edge_pair(noise):
        return edge
    if noise < _NO_NOISE:
        raise NoAnalysisError(f"its noise is out of reach; use 0, or at least {_NO_NOISE:g}")
    replaced = mechanism.adjacency is Adjacency.REPLACE_ONE
    batch_clipped = mechanism.clipping is Clipping.BATCH
    distance = 2 if replaced or batch_clipped else 1
    group = 1 if batch_clipped else mechanism.group
    dropped = mechanism.last_batch is LastBatch.DROPPED
    if mechanism.steps == 1 and not dropped:
        reach = distance * group
        return both(_gaussian(noise, reach)) if reach > 1 else dominating_pair(Gaussian(noise))
    above = _batches_seen(min(noise, _MOST_NOISE), distance, mechanism)
    pairs = _REPLACED if replaced else _WHOLE if batch_clipped else _ZEROED
    found = (_largest_attained(noise, mechanism.steps, pair, group, dropped) for pair in pairs)
    return DominatingPair(*(DominatedLoss(above, one) for one in found))


def _batches_seen(noise: float, distance: int, mechanism: Shuffled) -> CellLoss:
    """Return the loss to whoever sees which batch each example is in."""
    group, steps = mechanism.group, mechanism.steps
    if mechanism.clipping is Clipping.BATCH:
        return _moved(noise, distance, min(group, steps))
    if group > LARGEST_GROUP:
        return _gaussian(noise, distance * group)
    law = squares_of_batches(group, mechanism.whole_batches)
    seen = observed_mixture((chance, _moved(noise, distance, square)) for square, chance in law)
    # No allocation leaves all the sums where they are.
    return cast(CellLoss, seen)


def _moved(noise: float, distance: int, square: int) -> GaussianLoss:
    """Return the Gaussian loss at a distance times a square root, which is rounded up."""
    return GaussianLoss(decimal(noise) / (distance * square_root(Fraction(square))))


# The example that differs contributes 1, nothing or -1, and every other one -1 or 1; removing it,
# adding it. Where neighbours are exchanged either one may be the first.
_ZEROED: Final = ((Shifts(2, 1),), (Shifts(1, 2), Shifts(1, 0)))
_REPLACED: Final = ((Shifts(2, 0),), (Shifts(2, 0),))
# Clipped as a whole, a batch has the sum 1 with it and -1 without it.
_WHOLE: Final = ((Shifts(2, 0),), (Shifts(0, 2),))


def _gaussian(noise: float, distance: int) -> GaussianLoss:
    return GaussianLoss(decimal(noise) / distance)


def _largest_attained(
    noise: float, steps: int, pairs: tuple[Shifts, ...], group: int, dropped: bool
) -> CellLoss | None:
    """Return the attained loss with the largest K at the order ``noise``, a typical one.

    Of a group, all may move the sum of all batches, which is no Gaussian where some are dropped,
    or one alone may differ.
    """
    if noise > _MOST_NOISE:
        return None
    distance = group * abs(pairs[0].under_p - pairs[0].under_q)
    of_all = GaussianLoss(noise * math.sqrt(steps) / distance * (1.0 + 8.0 * ULP))
    found: list[CellLoss] = [] if dropped else [of_all]
    if noise <= 1.0 / _SMALLEST_MU:
        enough = max(noise, _LEAST_NOISE)
        found += [LargestBatchLoss(enough, steps, shifts, dropped) for shifts in pairs]
    return max(found, key=lambda one: one.cgf_estimate(noise).value, default=None)
