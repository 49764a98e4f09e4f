"""The losses of random allocation, each record in k of t steps: means by doubling, from both sides.

A record that takes part in one of t steps, chosen at random, has the likelihood ratio
``Sbar = (S_1 + ... + S_t)/t`` with ``S_i = exp(z_i/s - 1/(2 s^2))``, independent, where z_i is
standard normal without the record. Every profile in either direction is a convex function of Sbar,

    delta_removing(eps) = E (Sbar - e^eps)_+,    delta_adding(eps) = E (1 - e^eps Sbar)_+,

and what makes a summand larger (smaller) in the convex order does so to the sum. ABOVE, the mass
that falls between two nodes goes to both, in such shares that its mean is kept; BELOW, all the mass
of a cell goes to its mean. Both are of second order in the distance of the nodes, which are dense
where the mass is and follow the tails with a part of their width. All is sums of positive products.

A sum of variables that are each off by a factor within ``exp(+-off)`` is off by no more, and masses
right within factors ``exp(error)`` multiply to one right within the sum of the errors. What is too
rare to be kept is ``lost``: its probability and its part of the mean of Sbar are bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, final

import numpy as np

from hockeystick.kernels import doubling
from hockeystick.kernels.doubling import Indices
from hockeystick.mechanisms.sampling.fixed_size import RandomAllocation
from hockeystick.numerics import ULP, Ball, decimal
from hockeystick.numerics.rounding import short_up
from hockeystick.privacy_loss.core.atomic import AtomListLoss, kept, read_only_atoms, sums_over
from hockeystick.privacy_loss.core.base import (
    Array,
    Atoms,
    CGFEstimate,
    DominatingPair,
    PrivacyLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import POWERS, log_psi
from hockeystick.privacy_loss.core.composition import Composition, Terms, losses_of_run, once
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    exact_edges,
    gaussian_edges,
    log_masses,
)
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.noise.score_sums import losses_of_sums, score_sums

# Standard normals beyond this have less than exp(-840): times any number of steps, exp(-820).
FARTHEST: Final = 41.0
# Masses below this are lost, and so are products below the other.
_LEAST: Final = 1e-280
_LEAST_PRODUCT: Final = 1e-290
# More than all that underflows together.
_UNDERFLOW: Final = 1e-300
# The largest spacing of nodes, relative to the width, and in the tails in units of 1/s.
_FINE: Final = 0.012
_COARSE: Final = 0.012
# The number of widths from the middle beyond which the spacing grows.
_FLAT: Final = 6.0
_KNOTS: Final = 4096
# Nodes go beyond the values that they are for by so much, which covers all rounding.
_MARGIN: Final = 1e-9
# What one value may be moved by when it is put on nodes or averaged, and a node by rounding.
_MOVED: Final = 16.0 * ULP


@dataclass(frozen=True)
class Points:
    """Masses on values: of a sum of ``count`` likelihood ratios, or of a product of means (1).

    ``width`` is about the standard deviation of the logarithm. ``lost`` bounds the probability of
    what is left out, and its share of the mean.
    """

    mass: Array
    at: Array
    count: int
    width: float
    error: float
    off: float
    lost: tuple[float, float]


@dataclass(frozen=True)
class Rule:
    """How distributions are put on nodes: above or below, and ``step``, that of the last nodes."""

    noise: float
    above: bool
    step: float

    def first(self) -> Points:
        """Return one likelihood ratio: the logarithm is that of a Gaussian's."""
        reach, middle = FARTHEST / self.noise, 0.5 / self.noise / self.noise
        width = spread_of(self.noise, 1)
        nodes = self._nodes(-reach - middle, reach + middle, -middle, width)
        return _lognormal(nodes if self.above else _edges(nodes), self.noise, self.above)

    def combined(self, x: Points, y: Points, *, product: bool, last: bool) -> Points:
        """Return the sum or the product of two independent ones."""
        ends = [float(np.log(x.at[k]) + np.log(y.at[k])) for k in (0, -1)]
        count, width, centre = 1, math.hypot(x.width, y.width), 0.0
        if not product:
            ends = [float(np.log(x.at[k] + y.at[k])) for k in (0, -1)]
            count = x.count + y.count
            width, centre = spread_of(self.noise, count), math.log(count)
        nodes = self._nodes(ends[0], ends[1], centre, width)
        if last and self.above:
            nodes = centre + self._on_lattice(nodes - centre)
        return _paired(
            x, y, np.exp(nodes if self.above else _edges(nodes)), count, width, self.above
        )

    def _nodes(self, low: float, high: float, centre: float, width: float) -> Array:
        low, high = low - _MARGIN, high + _MARGIN
        near = centre + width * np.linspace(-4.0 * _FLAT, 4.0 * _FLAT, _KNOTS)
        knots = np.unique(np.clip(np.append(near, np.linspace(low, high, _KNOTS)), low, high))
        out = np.maximum(np.abs(knots - centre) / width - _FLAT, 0.0)
        gap = np.minimum(_FINE * width * (1.0 + 0.5 * out), _COARSE / self.noise)
        pace = 0.5 * (1.0 / gap[1:] + 1.0 / gap[:-1]) * np.diff(knots)
        passed = np.concatenate(([0.0], np.cumsum(pace)))
        return np.interp(np.linspace(0.0, passed[-1], math.ceil(passed[-1]) + 2), passed, knots)

    def _on_lattice(self, nodes: Array) -> Array:
        """Return the lattice's points next to some nodes, ends included, and all in the middle."""
        index = np.round(nodes / self.step)
        index[0], index[-1] = math.floor(nodes[0] / self.step), math.ceil(nodes[-1] / self.step)
        dense = np.diff(nodes) < 2.0 * self.step
        reach = nodes[:-1][dense] if bool(dense.any()) else nodes[:1]
        middle = np.arange(round(float(reach[0]) / self.step), round(float(reach[-1]) / self.step))
        return np.asarray(self.step * np.unique(np.append(index, middle)))


@lru_cache(maxsize=32)
def allocated(noise: float, steps: int, participations: int, above: bool) -> tuple[Points, float]:
    """Return the likelihood ratio of several independent 1-of-``steps`` allocations, and a step.

    ``steps`` is 2 or more. Above, the logarithms are multiples of the step.
    """
    width = math.sqrt(participations) * spread_of(noise, steps)
    rule = Rule(noise, above, 2.0 ** math.floor(math.log2(_FINE * width)))
    alone = participations == 1
    total = _repeated(rule.first(), steps, rule, product=False, last=alone)
    mean = replace(total, at=total.at / steps, count=1, off=total.off + _MOVED)
    found = mean if alone else _repeated(mean, participations, rule, product=True, last=True)
    for column in (found.mass, found.at):
        column.flags.writeable = False
    return found, rule.step


def spread_of(noise: float, count: int) -> float:
    """Return about the standard deviation of the logarithm of a sum of likelihood ratios."""
    return math.sqrt(math.log1p(math.expm1(noise**-2.0) / count))


def _repeated(one: Points, times: int, rule: Rule, *, product: bool, last: bool) -> Points:
    found = one
    digits = bin(times)[3:]
    for k, digit in enumerate(digits):
        ends = last and k == len(digits) - 1
        found = rule.combined(found, found, product=product, last=ends and digit == "0")
        if digit == "1":
            found = rule.combined(found, one, product=product, last=ends)
    return found


def _edges(nodes: Array) -> Array:
    return np.concatenate((nodes[:1], 0.5 * (nodes[1:] + nodes[:-1]), nodes[-1:]))


def _lognormal(edges: Array, noise: float, above: bool) -> Points:
    """Return one likelihood ratio; its part of the mean in a cell is the mass with the record."""
    exact = exact_edges(edges)
    log_q, error_q = log_masses(gaussian_edges(exact, 1.0 / noise, -1.0))
    log_p, error_p = log_masses(gaussian_edges(exact, 1.0 / noise, 1.0))
    error = error_q + error_p
    kept = (log_q > math.log(_LEAST)) & (error < 1e-6)
    lost = tuple(
        float(np.exp(np.minimum(log + error, 0.0))[~kept].sum()) * (1.0 + 1e-9) + _UNDERFLOW
        for log in (log_q, log_p)
    )
    worst = float(error[kept].max()) + 1024.0 * ULP
    mass, rest = np.exp(log_q[kept]), (log_p - log_q - edges[:-1])[kept]
    rest = np.clip(rest, 0.0, np.diff(edges)[kept])
    off = 2.0 * worst + ULP * float(np.abs(edges).max()) + _MOVED
    if not above:
        at = np.exp(edges[:-1][kept] + rest)
        return Points(mass, at, 1, 0.0, worst, off, (lost[0], lost[1]))
    up = np.expm1(rest) / np.expm1(np.diff(edges)[kept])
    found = np.zeros(edges.size)
    found[:-1][kept] += mass * (1.0 - up)
    found[1:][kept] += mass * up
    return _kept(Points(found, np.exp(edges), 1, 0.0, worst, off, (lost[0], lost[1])))


def _paired(x: Points, y: Points, at: Array, count: int, width: float, above: bool) -> Points:
    product = count == 1
    same = x is y
    first, last = _partners(x.mass, y.mass)
    given = ((x.mass, y.mass), (x.at, y.at), first, last, at, same, product)
    error = x.error + y.error + (x.mass.size + y.mass.size + 16.0) * ULP
    off = max(x.off, y.off) + _MOVED if not product else x.off + y.off + _MOVED
    lost = _left_out(x, y, first, last, product)
    low, high = doubling.shares(*given)
    if above:
        mass = np.r_[low, 0.0] + np.r_[0.0, high]
        return _kept(Points(mass, at, count, width, error, off, lost))
    mass = low + high
    mean = at[:-1] + high / np.where(mass > 0.0, mass, 1.0) * np.diff(at)
    # Weights that are off move a mean by no more than the cell is wide.
    off += 2.0 * error * float((at[1:] / at[:-1]).max() - 1.0) + 2.0 * error * ULP
    off += 2.0 * (x.mass.size + y.mass.size) * ULP
    return _kept(Points(mass, mean, count, width, error, off, lost))


def _partners(x: Array, y: Array) -> tuple[Indices, Indices]:
    least = _LEAST_PRODUCT / x
    first = np.searchsorted(np.maximum.accumulate(y), least)
    last = y.size - np.searchsorted(np.maximum.accumulate(y[::-1]), least)
    return first.astype(np.int64), np.maximum(last, first).astype(np.int64)


def _left_out(
    x: Points, y: Points, first: Indices, last: Indices, product: bool
) -> tuple[float, float]:

    def outside(values: Array) -> Array:
        sums = np.concatenate(([0.0], np.cumsum(values)))
        back = np.concatenate((np.cumsum(values[::-1])[::-1], [0.0]))
        return np.asarray(sums[first] + back[last])

    mass, part = outside(y.mass), outside(y.mass * y.at)
    # Where both are the same, half of the pairs are met and count twice.
    pairs = 2.0 * float((x.mass * mass).sum())
    shares = 2.0 * float((x.mass * x.at * (part if product else mass)).sum())
    if product:
        before = x.lost[1] + y.lost[1]
    else:
        shares = (shares + 2.0 * float((x.mass * part).sum())) / (x.count + y.count)
        before = x.count * (x.lost[1] + y.lost[0]) + y.count * (y.lost[1] + x.lost[0])
        before /= x.count + y.count
    return (
        (x.lost[0] + y.lost[0] + pairs) * (1.0 + 1e-9) + _UNDERFLOW,
        (before + shares) * (1.0 + 1e-9) + _UNDERFLOW,
    )


def _kept(points: Points) -> Points:
    kept = points.mass >= _LEAST
    rare, place = points.mass[~kept], points.at[~kept]
    lost = (
        points.lost[0] + 2.0 * float(rare.sum()) + _UNDERFLOW,
        points.lost[1] + 2.0 * float((rare * (place / points.count)).sum()) + _UNDERFLOW,
    )
    mass, at = (np.ascontiguousarray(one[kept]) for one in (points.mass, points.at))
    return replace(points, mass=mass, at=at, lost=lost)


# The largest logarithm of a likelihood ratio that is listed.
_FARTHEST_LOSS: Final = 650.0
# The lattice from below is finer by this, as all that its losses are rounded is lost.
_FINER: Final = 64.0
# Losses are moved by multiples of this, so that they stay multiples of the step next to it.
_UNIT: Final = 2.0**-44
# All that is missing has less than exp of this under P and under Q.
_MISSING: Final = -800.0
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
    """Return those of one allocation in each block, of two lengths; none where one does."""
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
    return (ends, 1), (replace(rest, attains=(0, 0)), 1)


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
    with ``mu = k/(s sqrt(t))``. ``attains`` names t and k where the loss is but a part of it, 0
    where another part attains the whole.

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
        if not self.above:
            return self
        steps, times = self.attains or (self.steps, self.participations)
        if times == 0:
            return None
        if times > 1 and score_sums(self.noise_multiplier, steps, times) is None:
            return _summed(self.noise_multiplier, steps, times)
        return AllocationLoss(self.noise_multiplier, steps, times, self.removing, above=False)

    @property
    def also_attained(self) -> tuple[PrivacyLoss, ...]:
        steps, times = self.attains or (self.steps, self.participations)
        if not self.above or times < 2:
            return ()
        summed = _summed(self.noise_multiplier, steps, times)
        return () if self.attained == summed else (summed,)

    infimum: ClassVar[float] = -math.inf

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

    @kept(64)
    def atoms(self) -> Atoms:
        if not self.above and self.participations > 1:
            return _atoms_of_scores(self)
        points, step = _points(self)
        off, place = _off(self), np.log(points.at)
        log_p = np.log(points.mass) + (place if self.removing else 0.0)
        error = points.error + points.off + ULP * (8.0 * float(np.abs(log_p).max()) + 16.0)
        side = 1.0 if self.removing else -1.0
        if self.above:
            own = side * step * np.round(place / step) + off
            own, log_p = _with_lost(self, own[:: int(side)], log_p[:: int(side)], step, off)
        else:
            own, log_p = _rounded_down(side * place - off, log_p, step / _FINER, points.width)
        return read_only_atoms(own, log_p, np.full(log_p.size, error))

    def cgf_estimate(self, c: float) -> CGFEstimate:
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
            value = float(np.logaddexp.reduce(atoms.log_p + c * atoms.loss))
            sizes = float((np.abs(atoms.log_p) + np.abs(c * atoms.loss)).max())
            return Ball(value, float(atoms.error.max()) + ULP * (_SUMS + 8.0 * sizes))
        lost, atoms = float(atoms.log_p[-1]), Atoms(*(column[:-1] for column in atoms))
        places = atoms.loss - np.where(atoms.loss > 0.0, 0.0, 2.0 * _off(self))
        terms = atoms.log_p + log_psi(places, c)
        excess = float(np.logaddexp.reduce(terms))
        sizes = float(atoms.error.max()) + ULP * (_SUMS + 8.0 * (1.0 + c) * _FARTHEST_LOSS)
        # A bound of what the atoms lack under Q, or to be a distribution.
        log_lost = math.log(sum(_points(self)[0].lost))
        rest = np.logaddexp(self._missing(c, lost), math.log(c) + log_lost)
        high = float(np.logaddexp(excess + sizes, rest)) + 8.0 * ULP * abs(excess)
        value, upper = float(np.logaddexp(0.0, excess)), float(np.logaddexp(0.0, high))
        upper = min(upper * (1.0 + 8.0 * ULP), self._simple(c))
        value = min(value, upper)
        return Ball(value, (upper - value) * (1.0 + 4.0 * ULP) + 4.0 * ULP * upper)

    def _simple(self, c: float) -> float:
        square = self.noise_multiplier * self.noise_multiplier
        slope = c if self.removing else c / (self.steps // self.participations)
        return 0.5 * self.participations * c * (slope + 1.0) / square * (1.0 + 16.0 * ULP)

    def _missing(self, c: float, log_lost: float) -> float:
        """Return a bound of ``ln E_P[e^(c L)]`` over omitted mass (Hoelder)."""
        log_p = max(log_lost, _MISSING) + math.log(2.0)
        # Nodes are at most twice the coarsest spacing apart. Adding and multiplying copies takes at
        # most two turns for a binary digit of the steps, of which there are as many as are chosen.
        turns = 4.0 * self.steps.bit_length() + 2.0
        moved = self.participations * 2.0 * _COARSE / self.noise_multiplier * turns
        exponents = (
            (1.0 - 1.0 / r) * log_p + (self._simple(r * c) + (r * c + 1.0) * moved) / r
            for r in POWERS
        )
        return min(exponents)


def _listed(noise: float, block: int, times: int) -> bool:
    """Return whether there is a lattice, or only bounds that hold for any parameters."""
    known = 0.1 <= noise <= 1e4 and 2 <= block <= 10**8 and times <= 10**4
    return known and times * (FARTHEST / noise + 0.5 / noise / noise) <= _FARTHEST_LOSS


def _summed(noise: float, steps: int, times: int) -> GaussianLoss:
    return _scaled(noise, times / math.sqrt(steps), 1.0)


def _scaled(noise: float, moved: float, side: float) -> GaussianLoss:
    """Return a Gaussian's loss with the noise divided, rounded up (1) or down (-1)."""
    if moved == 1.0:
        return GaussianLoss(noise)
    return GaussianLoss(noise / moved * (1.0 + side * 8.0 * ULP))


def _points(loss: AllocationLoss) -> tuple[Points, float]:
    block = loss.steps // loss.participations
    return allocated(loss.noise_multiplier, block, loss.participations, loss.above)


def _atoms_of_scores(loss: AllocationLoss) -> Atoms:
    noise, steps, times = loss.noise_multiplier, loss.steps, loss.participations
    sums = score_sums(noise, steps, times)
    assert sums is not None
    place, log_p, error = losses_of_sums(sums, loss.removing)
    order = np.argsort(place, kind="stable")
    width = math.sqrt(times) * spread_of(noise, steps // times)
    step = 2.0 ** math.floor(math.log2(_FINE * width))
    own, log_p = _rounded_down(place[order], log_p[order], step / _FINER, width)
    return read_only_atoms(own, log_p, np.full(own.size, error))


def _off(loss: AllocationLoss) -> float:
    """Return by how much the losses are moved: no less than all round-off may have moved them."""
    points = _points(loss)[0]
    return _whole(points.off + 16.0 * ULP * (1.0 + float(np.abs(np.log(points.at)).max())))


def _whole(move: float) -> float:
    return max(2.0 ** math.ceil(math.log2(move)), _UNIT)


def _with_lost(
    loss: AllocationLoss, own: Array, log_p: Array, step: float, off: float
) -> tuple[Array, Array]:
    """Return the atoms with the omitted mass at an upper bound of its loss.

    All else comes of likelihood ratios within the first nodes, and no mean exceeds what it is the
    mean of. Spread to that loss and to none, its masses under P and Q kept, it costs more.
    """
    noise, times = loss.noise_multiplier, loss.participations
    farthest = times * (FARTHEST / noise + 0.5 / noise / noise) * (1.0 + 1e-9) + 1e-6 + step
    place = step * math.ceil(max(farthest, float(own[-1])) / step + 1.0) + off
    lost = _points(loss)[0].lost[1 if loss.removing else 0]
    return np.append(own, place), np.append(log_p, math.log(lost))


def _rounded_down(place: Array, log_p: Array, step: float, width: float) -> tuple[Array, Array]:
    """Return losses rounded down to a lattice that is moved down by what costs least.

    Some ways to move it are compared under a typical tilt. Half of the first one's mass is placed a
    step further, so that the spacing can be read off.
    """
    exponent = log_p + 3.0 / width * place
    weight = np.exp(exponent - exponent.max())
    heavy = np.argsort(-weight)[:200]
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
