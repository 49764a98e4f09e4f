"""The pair of losses of random allocation: each record in k of t steps, chosen at random."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.mechanisms.sampling.random_allocation import RandomAllocation
from hockeystick.numerics import ULP, Ball, decimal
from hockeystick.numerics.rounding import short_up
from hockeystick.privacy_loss.core.atomic import AtomListLoss, read_only_atoms, sums_over
from hockeystick.privacy_loss.core.base import Atoms, CGFEstimate, PrivacyLoss
from hockeystick.privacy_loss.core.composition import Composition, Terms, losses_of_run, once
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.log_sums import log_psi
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.noise.score_sums import losses_of_sums, score_sums
from hockeystick.privacy_loss.sampling.mean_likelihood_ratio import (
    FARTHEST,
    Points,
    allocated,
    farthest_move,
    spread_of,
)

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Noise multipliers, numbers of steps and of participations for which there are lattices.
_LEAST_NOISE: Final = 0.1
_MOST_NOISE: Final = 1e4
_MOST_STEPS: Final = 10**8
_MOST_PARTICIPATIONS: Final = 10**4
# The largest logarithm of a likelihood ratio that is listed.
_FARTHEST_LOSS: Final = 650.0
# The lattice from below is finer by this, as all that its losses are rounded is lost.
_FINER: Final = 64.0
# The spacing of the lattice of scores over the width of the loss, before it is made finer.
_SPACING: Final = 0.012
# The allocation that a part attains where another part attains the whole.
_NOTHING: Final = (0, 0)
# Losses are moved by multiples of this, so that they stay multiples of the step next to it.
_UNIT: Final = 2.0**-44
# All that is missing has less than exp of this under P and under Q.
_MISSING: Final = -800.0
# The powers that Hoelder's inequality is tried with.
_POWERS: Final = tuple(1.0 + 2.0**k for k in range(-6, 8))
# How many ways to move the points of the lower distribution are compared.
_SHIFTS: Final = 200
# The tilt at which these are compared, over the width of the loss.
_TILT: Final = 3.0
# Sums of up to 10^5 positive terms, and what their terms round off, in units in the last place.
_SUMS: Final = 1024.0


@dominating_pair.register
def _(mechanism: RandomAllocation) -> DominatingPair:
    noise = mechanism.inner.noise_multiplier
    steps, times = mechanism.steps, mechanism.participations
    if times == 0:
        return DominatingPair(None, None)
    if noise in (0.0, math.inf) or steps == 1:
        return dominating_pair(mechanism.inner)
    if not _listed(noise, steps // times, times):
        attained = _scaled(noise, math.sqrt(times), -1.0)
        both = DominatedLoss(attained, _summed(noise, steps, times))
        return DominatingPair(both, both)
    return DominatingPair(*(AllocationLoss(noise, steps, times, one) for one in (True, False)))


@losses_of_run.register
def _(mechanism: RandomAllocation) -> Composition:
    removing, adding = _by_blocks(mechanism, True), _by_blocks(mechanism, False)
    if removing and adding:
        return Composition(removing, adding)
    pair = dominating_pair(mechanism)
    return Composition(once(pair.removing), once(pair.adding))


def _by_blocks(mechanism: RandomAllocation, removing: bool) -> Terms:
    """Return the losses of one allocation in each block, of two lengths; none where one does."""
    noise = mechanism.inner.noise_multiplier
    steps, times = mechanism.steps, mechanism.participations
    if times == 0 or steps % times == 0 or noise in (0.0, math.inf):
        return ()
    block, longer = divmod(steps, times)
    whole = AllocationLoss(noise, steps, times, removing)
    if not _listed(noise, block + 1, times):
        return ()
    ends = AllocationLoss(noise, (block + 1) * longer, longer, removing, attains=(steps, times))
    if block == 1:
        return (ends, 1), (DominatedLoss(GaussianLoss(noise), None), times - longer)
    rest = replace(whole, steps=block * (times - longer), participations=times - longer)
    return (ends, 1), (replace(rest, attains=_NOTHING), 1)


@final
@dataclass(frozen=True, slots=True)
class AllocationLoss(AtomListLoss):
    """The loss of ``participations`` k of ``steps`` t, removing or adding, from above or below.

    Above, for any k: that of k independent allocations of one of ``floor(t/k)`` steps. Cut the
    steps, in a random order, into k blocks of any lengths that are fixed, and choose one step of
    each: the result does not depend on the order's names, so that each k-subset is as likely. An
    adversary who is told the blocks sees more: one allocation in each. ``t mod k`` of the blocks
    may have a step more, which are terms of their own.
    For k = 1 that is the loss itself, so that what is below it, by conditional means, is attained.
    For k > 1 a sum of scores (``score_sums``) is attained, and the sum of all outputs, a Gaussian
    with ``mu = k/(s sqrt(t))``. ``attains`` names t and k where the loss is but a part of it.

    Of what is too rare for the lattice, all that has more than ``exp(-800)`` is counted as the
    largest loss. In moments it is bounded with the help of simple ones: powers of means are at
    most means of powers, so that ``K(c) <= k c (c+1)/(2 s^2)``, and where adding, as no mean is
    below the geometric one, ``K(c) <= k c (1 + c/b)/(2 s^2)`` with b the steps of a block.

    References:
        Feldman and Shenfeld, "Privacy amplification by random allocation", 2025 (arXiv 2502.08202),
        for the blocks; Chua et al. 2025 (arXiv 2412.16802), for the pair.
    """

    noise_multiplier: float
    steps: int
    participations: int
    removing: bool
    above: bool = True
    attains: tuple[int, int] | None = None

    @property
    def attained(self) -> PrivacyLoss | None:
        """The loss from below: by conditional means, by scores, or of the sum of all outputs."""
        if not self.above:
            return self
        steps, times = self.attains or (self.steps, self.participations)
        if times == 0:
            return None
        if times > 1 and score_sums(self.noise_multiplier, steps, times) is None:
            return _summed(self.noise_multiplier, steps, times)
        return AllocationLoss(self.noise_multiplier, steps, times, self.removing, above=False)

    @property
    def attained_gaussian(self) -> GaussianLoss | None:
        steps, times = self.attains or (self.steps, self.participations)
        if not self.above or times < 2:
            return None
        summed = _summed(self.noise_multiplier, steps, times)
        return None if self.attained == summed else summed

    @property
    def infimum(self) -> float:
        """Minus infinity: the likelihood ratio of a Gaussian has no bounds."""
        return -math.inf

    @property
    def supremum(self) -> float:
        return math.inf if self.above else float(self.atoms().loss[-1])

    @property
    def clt_mu_squared(self) -> float:
        """The chi-square divergence, k times ``(e^(1/s^2) - 1)/t`` of blocks of t steps."""
        block = self.steps // self.participations
        return self.participations * math.expm1(self.noise_multiplier**-2.0) / block

    @property
    def dominating_mu_squared(self) -> Fraction:
        """That of every participation at a known step, by joint convexity."""
        return short_up(self.participations / decimal(self.noise_multiplier) ** 2)

    def atoms(self) -> Atoms:
        return _atoms(self)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives by sums over the atoms, without the mass lost above."""
        listed = slice(None, -1 if self.above else None)
        return sums_over(Atoms(*(column[listed] for column in self.atoms())), c)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K of the atoms; above no more than the Gaussian's, and what is missing added.

        From above ``M - 1 <= E psi(L) + c q``, where psi(l) = ``e^(cl) - 1 + c (e^-l - 1)`` and q
        bounds what the lattice lacks of Q: all terms are positive. psi grows away from 0, so that
        losses are moved away from it by what they may be off. What is lost or missing adds no more
        than Hoelder's inequality allows, where the simple bound of K is that of the lattice but for
        the distance that nodes may have moved a loss.
        """
        atoms = self.atoms()
        if not self.above:
            return _direct(atoms, c)
        lost, atoms = float(atoms.log_p[-1]), Atoms(*(column[:-1] for column in atoms))
        places = atoms.loss - np.where(atoms.loss > 0.0, 0.0, 2.0 * _off(self))
        terms = atoms.log_p + log_psi(places, c)
        excess = float(np.logaddexp.reduce(terms))
        sizes = float(atoms.error.max()) + ULP * (_SUMS + 8.0 * (1.0 + c) * _FARTHEST_LOSS)
        rest = np.logaddexp(self._missing(c, lost), math.log(c) + _log_lost(self))
        high = float(np.logaddexp(excess + sizes, rest)) + 8.0 * ULP * abs(excess)
        value, upper = float(np.logaddexp(0.0, excess)), float(np.logaddexp(0.0, high))
        upper = min(upper * (1.0 + 8.0 * ULP), self._simple(c))
        value = min(value, upper)
        return Ball(value, (upper - value) * (1.0 + 4.0 * ULP) + 4.0 * ULP * upper)

    def _simple(self, c: float) -> float:
        """Return the simple bound of K, rounded up."""
        square = self.noise_multiplier * self.noise_multiplier
        slope = c if self.removing else c / (self.steps // self.participations)
        return 0.5 * self.participations * c * (slope + 1.0) / square * (1.0 + 16.0 * ULP)

    def _missing(self, c: float, log_lost: float) -> float:
        """Return a bound of ``ln E_P[e^(c L)]`` over omitted mass (Hoelder)."""
        log_p = max(log_lost, _MISSING) + math.log(2.0)
        moved = self.participations * farthest_move(self.noise_multiplier, self.steps)
        exponents = (
            (1.0 - 1.0 / r) * log_p + (self._simple(r * c) + (r * c + 1.0) * moved) / r
            for r in _POWERS
        )
        return min(exponents)


def _listed(noise: float, block: int, times: int) -> bool:
    """Return whether there is a lattice, or only bounds that hold for any parameters."""
    farthest = times * (FARTHEST / noise + 0.5 / noise / noise) if noise > 0.01 else math.inf
    return (
        _LEAST_NOISE <= noise <= _MOST_NOISE
        and 2 <= block <= _MOST_STEPS
        and times <= _MOST_PARTICIPATIONS
        and farthest <= _FARTHEST_LOSS
    )


def _summed(noise: float, steps: int, times: int) -> GaussianLoss:
    """Return the loss of the sum of all steps' outputs: the record moves it by k, for sure."""
    return _scaled(noise, times / math.sqrt(steps), 1.0)


def _scaled(noise: float, moved: float, side: float) -> GaussianLoss:
    """Return a Gaussian's loss with the noise divided, rounded up (1) or down (-1)."""
    if moved == 1.0:
        return GaussianLoss(noise)
    return GaussianLoss(noise / moved * (1.0 + side * 8.0 * ULP))


def _points(loss: AllocationLoss) -> tuple[Points, float]:
    """Return the likelihood ratio that a loss is the logarithm of, and the step of its lattice."""
    block = loss.steps // loss.participations
    return allocated(loss.noise_multiplier, block, loss.participations, loss.above)


def _log_lost(loss: AllocationLoss) -> float:
    """Return the logarithm of a bound of what the atoms lack under Q, or to be a distribution."""
    return math.log(sum(_points(loss)[0].lost))


@lru_cache(maxsize=64)
def _atoms(loss: AllocationLoss) -> Atoms:
    """Return the losses on a lattice, ascending, moved to the safe side by all round-off."""
    if not loss.above and loss.participations > 1:
        return _atoms_of_scores(loss)
    points, step = _points(loss)
    off, place = _off(loss), np.log(points.at)
    log_p = np.log(points.mass) + (place if loss.removing else 0.0)
    error = points.error + points.off + ULP * (8.0 * float(np.abs(log_p).max()) + 16.0)
    side = 1.0 if loss.removing else -1.0
    if loss.above:
        own = side * step * np.round(place / step) + off
        own, log_p = _with_lost(loss, own[:: int(side)], log_p[:: int(side)], step, off)
    else:
        own, log_p = _rounded_down(side * place - off, log_p, step / _FINER, points.width)
    return read_only_atoms(own, log_p, np.full(log_p.size, error))


def _atoms_of_scores(loss: AllocationLoss) -> Atoms:
    """Return the losses of the sum of all scores on a lattice, moved down."""
    noise, steps, times = loss.noise_multiplier, loss.steps, loss.participations
    sums = score_sums(noise, steps, times)
    assert sums is not None
    place, log_p, error = losses_of_sums(sums, loss.removing)
    order = np.argsort(place, kind="stable")
    width = math.sqrt(times) * spread_of(noise, steps // times)
    step = 2.0 ** math.floor(math.log2(_SPACING * width))
    own, log_p = _rounded_down(place[order], log_p[order], step / _FINER, width)
    return read_only_atoms(own, log_p, np.full(own.size, error))


def _off(loss: AllocationLoss) -> float:
    """Return by how much the losses are moved: no less than all round-off may have moved them."""
    points = _points(loss)[0]
    return _whole(points.off + 16.0 * ULP * (1.0 + float(np.abs(np.log(points.at)).max())))


def _whole(move: float) -> float:
    """Return a multiple of the unit, or of a coarser power of 2, that is no smaller."""
    return max(2.0 ** math.ceil(math.log2(move)), _UNIT)


def _with_lost(
    loss: AllocationLoss, own: Array, log_p: Array, step: float, off: float
) -> tuple[Array, Array]:
    """Return the atoms with the omitted mass at an upper bound of its loss.

    All that is not missing comes of likelihood ratios within the first nodes, and no mean exceeds
    what it is the mean of. Spread to that loss and to none, with its masses under both P and Q
    kept, it costs more than where it is.
    """
    noise, times = loss.noise_multiplier, loss.participations
    farthest = times * (FARTHEST / noise + 0.5 / noise / noise) * (1.0 + 1e-9) + 1e-6 + step
    place = step * math.ceil(max(farthest, float(own[-1])) / step + 1.0) + off
    lost = _points(loss)[0].lost[1 if loss.removing else 0]
    return np.append(own, place), np.append(log_p, math.log(lost))


def _rounded_down(place: Array, log_p: Array, step: float, width: float) -> tuple[Array, Array]:
    """Return losses rounded down to a lattice that is moved down by what costs least.

    Half of the first one's mass is placed a step further, so that the spacing can be read off.
    """
    exponent = log_p + _TILT / width * place
    weight = np.exp(exponent - exponent.max())
    heavy = np.argsort(-weight)[:_SHIFTS]
    shifts = np.mod(-place[heavy], step)
    costs = [float((weight * np.mod(place + shift, step)).sum()) for shift in shifts]
    shift = float(shifts[int(np.argmin(costs))])
    shift = math.ceil(shift / _UNIT + 1.0) * _UNIT
    index, member = np.unique(np.floor((place + shift) / step), return_inverse=True)
    mass = np.full(index.size, -np.inf)
    np.logaddexp.at(mass, member, log_p)
    index, mass = np.append(index[0] - 1.0, index), np.append(mass[0], mass)
    mass[:2] -= math.log(2.0)
    farthest = float(np.abs(place).max()) + step
    return step * index - shift - _whole(4.0 * ULP * farthest), mass


def _direct(atoms: Atoms, c: float) -> Ball:
    """Return ``ln E e^(c L)`` over the atoms, with its round-off."""
    exponent = atoms.log_p + c * atoms.loss
    value = float(np.logaddexp.reduce(exponent))
    sizes = float((np.abs(atoms.log_p) + np.abs(c * atoms.loss)).max())
    return Ball(value, float(atoms.error.max()) + ULP * (_SUMS + 8.0 * sizes))
