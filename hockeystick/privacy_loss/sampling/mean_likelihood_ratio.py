"""The mean of independent likelihood ratios, by doubling, as distributions above and below it.

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

References:
    Chua et al., "Balls-and-bins sampling for DP-SGD", 2024 (arXiv 2412.16802), for the pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.uncertain_endpoints import exact_edges
from hockeystick.privacy_loss.noise.normal_masses import gaussian_edges, log_masses

if TYPE_CHECKING:
    from hockeystick.kernels.doubling import Indices
    from hockeystick.kernels.series import Array

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
        """Return nodes from below one end to beyond the other, dense within some widths."""
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
    off = total.off + _MOVED
    mean = Points(total.mass, total.at / steps, 1, total.width, total.error, off, total.lost)
    found = mean if alone else _repeated(mean, participations, rule, product=True, last=True)
    for column in (found.mass, found.at):
        column.flags.writeable = False
    return found, rule.step


def farthest_move(noise: float, steps: int) -> float:
    """Return the largest change of the logarithm of one allocation's ratio by all nodes.

    Adding and multiplying copies takes twice as many turns as a number has binary digits, at most;
    there are no more participations than steps. The spacing of nodes is at most twice the coarsest.
    """
    return 2.0 * _COARSE / noise * (4.0 * steps.bit_length() + 2.0)


def spread_of(noise: float, count: int) -> float:
    """Return about the standard deviation of the logarithm of a sum of likelihood ratios."""
    return math.sqrt(math.log1p(math.expm1(noise**-2.0) / count))


def _repeated(one: Points, times: int, rule: Rule, *, product: bool, last: bool) -> Points:
    """Return the sum or product of ``count`` copies, by the binary digits of the number."""
    found = one
    digits = bin(times)[3:]
    for k, digit in enumerate(digits):
        ends = last and k == len(digits) - 1
        found = rule.combined(found, found, product=product, last=ends and digit == "0")
        if digit == "1":
            found = rule.combined(found, one, product=product, last=ends)
    return found


def _edges(nodes: Array) -> Array:
    """Return the edges of the cells around nodes: the outermost nodes, and halfway between."""
    return np.concatenate((nodes[:1], 0.5 * (nodes[1:] + nodes[:-1]), nodes[-1:]))


def _lognormal(edges: Array, noise: float, above: bool) -> Points:
    """Return one likelihood ratio: cells between edges, spread to these or merged.

    Its part of the mean in a cell is the mass that the cell has with the record.
    """
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
    """Return the sum (or, for 1, the product) of two variables on nodes or in cells."""
    from hockeystick.kernels import doubling

    product = count == 1
    same = x is y
    first, last = _partners(x.mass, y.mass)
    given = ((x.mass, y.mass), (x.at, y.at), first, last, at, same, product)
    error = x.error + y.error + (x.mass.size + y.mass.size + 16.0) * ULP
    off = max(x.off, y.off) + _MOVED if not product else x.off + y.off + _MOVED
    lost = _left_out(x, y, first, last, product)
    if above:
        return _kept(Points(doubling.spread(*given), at, count, width, error, off, lost))
    mass, mean = doubling.merge(*given)
    # Weights that are off move a mean by no more than the cell is wide.
    off += 2.0 * error * float((at[1:] / at[:-1]).max() - 1.0) + 2.0 * error * ULP
    off += 2.0 * (x.mass.size + y.mass.size) * ULP
    return _kept(Points(mass, mean, count, width, error, off, lost))


def _partners(x: Array, y: Array) -> tuple[Indices, Indices]:
    """Return, for each mass of one variable, which of the other's are enough together with it."""
    least = _LEAST_PRODUCT / x
    first = np.searchsorted(np.maximum.accumulate(y), least)
    last = y.size - np.searchsorted(np.maximum.accumulate(y[::-1]), least)
    return first.astype(np.int64), np.maximum(last, first).astype(np.int64)


def _left_out(
    x: Points, y: Points, first: Indices, last: Indices, product: bool
) -> tuple[float, float]:
    """Return bounds of all that has been lost, before or as a negligible pair."""

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
    """Return the points with those of hardly any mass lost."""
    kept = points.mass >= _LEAST
    rare, place = points.mass[~kept], points.at[~kept]
    lost = (
        points.lost[0] + 2.0 * float(rare.sum()) + _UNDERFLOW,
        points.lost[1] + 2.0 * float((rare * (place / points.count)).sum()) + _UNDERFLOW,
    )
    return Points(
        np.ascontiguousarray(points.mass[kept]),
        np.ascontiguousarray(points.at[kept]),
        points.count,
        points.width,
        points.error,
        points.off,
        lost,
    )
