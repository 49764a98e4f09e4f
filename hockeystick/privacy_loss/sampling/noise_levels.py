"""Many levels of noise, and the few that stand for them in a sum of a smooth function over all."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels import noise_levels, sampled_gaussian_contour, uniform_minorant
from hockeystick.mechanisms import GaussianSequence
from hockeystick.numerics import ULP, Ball
from hockeystick.numerics.multiprecision import mp, mpc
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    AnalyticLoss,
    Array,
    CGFEstimate,
    ContourValues,
    DominatingPair,
    NoAnalysisError,
    dominating_pair,
)
from hockeystick.privacy_loss.core.composition import largest_when_adding
from hockeystick.privacy_loss.sampling.sampled_gaussian import FARTHEST, SampledGaussianLoss

# The number of nodes for the levels of one cell; a rule of n is exact up to degree 2n - 1.
_NODES: Final = 12
_DEGREES: Final = 2 * _NODES


@dataclass(frozen=True)
class Cell:
    """The levels in a range of ``x = ln mu``, and the nodes that stand for them.

    For a function that is analytic and at most B in the ellipse with foci at the ends of the range
    and half-axes adding up to ``ellipse`` times half of it, sum and rule differ by at most
    ``B error(ellipse)``: both are sums over its Chebyshev coefficients, of which the n-th is at
    most ``2 B ellipse^-n``.

    References:
        Trefethen, "Approximation Theory and Approximation Practice", theorem 8.1.
    """

    start: int
    points: Array
    centre: float
    half: float
    noise: tuple[float, ...]
    weights: Array

    @property
    def alike(self) -> bool:
        """Whether all levels are one and the same, so that the one node is exact."""
        return len(self.noise) == 1 and self.half == 0.0

    @property
    def runs(self) -> int:
        """How many levels there are in the cell."""
        return int(self.points.size)

    @cached_property
    def _gaps(self) -> Array:
        """How far the rule may be from the sum for each Chebyshev polynomial, round-off covered."""
        nodes = -np.log(np.array(self.noise))
        ones = np.ones(self.runs)
        all_ = noise_levels.chebyshev_sums(self.points, ones, self.centre, self.half, _DEGREES)
        few = noise_levels.chebyshev_sums(nodes, self.weights, self.centre, self.half, _DEGREES)
        # Each x is known to an ulp of 1 and four of itself, u to four more, and |T_n'| <= n^2; the
        # recurrence and the sums add their own.
        place = (1.0 + 4.0 * (abs(self.centre) + self.half)) / self.half
        grown = np.arange(_DEGREES) ** 2 * (8.0 + place) + 8.0
        return np.asarray(np.abs(all_ - few) + 2.0 * self.runs * ULP * grown)

    def error(self, ellipse: float) -> float:
        """Return by how much rule and sum differ at most, over the bound of the function."""
        falling = 2.0 * ellipse ** -np.arange(_DEGREES, dtype=np.float64)
        rest = 4.04 * self.runs * ellipse**-_DEGREES / (1.0 - 1.0 / ellipse)
        return float(falling @ self._gaps) * 1.001 + rest


class Bin(NamedTuple):
    """Levels of noise close to each other: how many, the most noise and the least."""

    runs: int
    most: float
    least: float


class Levels:
    """Levels of noise by ``x = ln mu = -ln(noise multiplier)``, ascending; equal by what they are.

    There may be millions: what is worked out from them is kept.
    """

    def __init__(self, noise_multipliers: tuple[float, ...]) -> None:
        self.noise: Array = np.sort(np.array(noise_multipliers, dtype=np.float64))[::-1]
        self.points: Array = -np.log(self.noise)
        self._cells: dict[tuple[int, int, int], Cell] = {}
        self._hash = hash(self.noise.tobytes())
        # The largest and the smallest noise multiplier, and how many levels there are.
        self.most: float = float(self.noise[0])
        self.least: float = float(self.noise[-1])
        self.runs: int = int(self.points.size)

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Levels):
            return self is other
        return self._hash == other._hash and self.noise.tobytes() == other.noise.tobytes()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells to begin with."""
        return self._even_cells(0.7, _NODES)

    @cached_property
    def estimate_nodes(self) -> tuple[tuple[float, ...], Array]:
        """Noise multipliers and weights that stand for all where nothing is proven."""
        cells = self._even_cells(0.35, 3)
        noise = tuple(one for cell in cells for one in cell.noise)
        return noise, np.concatenate([cell.weights for cell in cells])

    @cached_property
    def bins(self) -> tuple[Bin, ...]:
        """Narrow bins that hold all levels, for uniform minorants."""
        ends = noise_levels.cell_ends(self.points, 0.06).tolist()
        return tuple(
            Bin(end - start, float(self.noise[start]), float(self.noise[end - 1]))
            for start, end in pairwise([0, *ends])
        )

    def halves(self, cell: Cell) -> tuple[Cell, ...]:
        """Return the two halves of a cell whose levels are not all alike, none of them empty."""
        middle = int(np.searchsorted(cell.points, cell.centre))
        if not 0 < middle < cell.runs:
            # Levels next to each other: those that are the first one, and the others.
            noise = self.one_by_one(cell)
            middle = noise.count(noise[0])
        ends = (cell.start, cell.start + middle, cell.start + cell.runs)
        return tuple(self._cell(low, high, _NODES) for low, high in pairwise(ends))

    def one_by_one(self, cell: Cell) -> tuple[float, ...]:
        """Return the noise multipliers of a cell's runs."""
        return tuple(self.noise[cell.start : cell.start + cell.runs].tolist())

    def _even_cells(self, width: float, nodes: int) -> tuple[Cell, ...]:
        low, high = float(self.points[0]), float(self.points[-1])
        count = max(1, math.ceil((high - low) / width))
        inner = np.searchsorted(self.points, np.linspace(low, high, count + 1)[1:-1])
        ends = [0, *inner.tolist(), self.runs]
        return tuple(self._cell(start, end, nodes) for start, end in pairwise(ends) if start < end)

    def _cell(self, start: int, end: int, nodes: int) -> Cell:
        key = (start, end, nodes)
        if key not in self._cells:
            points, first = self.points[start:end].copy(), float(self.noise[start])
            alike = first == self.noise[end - 1]
            if alike:
                count = np.array([float(points.size)])
                self._cells[key] = Cell(start, points, float(points[0]), 0.0, (first,), count)
            else:
                self._cells[key] = _cell_of(start, points, nodes)
        return self._cells[key]


@lru_cache(maxsize=4)
def levels_of(noise_multipliers: tuple[float, ...]) -> Levels:
    """Return levels of noise; the two directions of a plan share them."""
    return Levels(noise_multipliers)


def _cell_of(start: int, points: Array, nodes: int) -> Cell:
    """Return the cell of some levels, with Gauss's rule for them."""
    low, high = float(points[0]), float(points[-1])
    centre = 0.5 * (low + high)
    # A little wider than the points; a range next to nothing would only magnify round-off.
    half = max(0.5 * (high - low) * (1.0 + 1e-9), 0.02)
    diagonal, beside, used = noise_levels.recurrence(points, centre, half, nodes)
    off = np.sqrt(beside[1:used])
    places, vectors = np.linalg.eigh(np.diag(diagonal[:used]) + np.diag(off, 1) + np.diag(off, -1))
    weights = points.size * vectors[0] ** 2
    noise = np.exp(-(centre + half * places))
    return Cell(start, points, centre, half, tuple(noise.tolist()), np.asarray(weights))


# Ellipses that the cost of a run is bounded on, by the sum of their half-axes over half the cell.
_ELLIPSES: Final = (6.0, 4.0, 2.8, 2.0, 1.5)
# |arg mu^2| up to this keeps the Gaussian's density in reach.
_WIDEST_ANGLE: Final = 1.4
# |M - 1| up to this keeps M away from 0.
_FARTHEST_FROM_ONE: Final = 0.9
# A cell that errs by more than its share of this is halved.
_FINE: Final = 1e-9
# How many heights errors are evaluated at, until ln M has decreased by this.
_HEIGHTS: Final = 12
_FALLEN: Final = 18.0
# How far below the composition's M, as a logarithm, a bound of one run's M may be.
_SURE: Final = -14.0
# ln 3, and a little: what is only known to be smaller than something lies within that of it.
_ANYWHERE: Final = 1.1


@final
@dataclass(frozen=True, slots=True)
class GaussianSequenceLoss(AnalyticLoss):
    """The sum of the losses of Poisson-subsampled Gaussians at one rate with noises of their own.

    In ``t = ln`` of the likelihood ratio of the Gaussian, a run has
    ``M(z) = Int q(t; mu) r(t)^w dt`` with ``r = 1 - p + p e^t`` and q the density of
    N(-mu^2/2, mu^2): mu is in q alone, and q is analytic in mu wherever ``|arg mu^2| < pi/2``.
    Since q integrates to 1 and so does ``q r``, ``|M - 1|`` is at most
    ``|z (1 + z)| / (c (1 + c)) C (M(c; a) - 1)`` for ``c = Re z``, with M at the larger real
    ``a = |mu| / sqrt(cos 2 theta)``, ``theta = arg mu``, and
    ``C = exp(|mu|^2 (1/cos 2 theta - cos 2 theta)/8) / sqrt(cos 2 theta)``: for
    ``g(r) = r^w - 1 - w (r - 1)`` has ``|g''| = |w (w - 1)| r^(Re w - 2)``. So ``ln M`` is
    analytic around all levels of noise, and its sum over them that over a few nodes.
    """

    rate: float | Fraction
    levels: Levels
    removing: bool

    def run(self, noise_multiplier: float) -> SampledGaussianLoss:
        """Return the loss of one run with some noise."""
        return SampledGaussianLoss(self.rate, noise_multiplier, self.removing)

    @property
    def runs(self) -> tuple[tuple[SampledGaussianLoss, int], ...]:
        """The losses of the runs, equal ones counted together."""
        counts = Counter(self.levels.noise.tolist())
        return tuple((self.run(noise), count) for noise, count in counts.items())

    @property
    def expanded(self) -> tuple[tuple[AnalyticLoss, int], ...]:
        return self.runs if self.levels.runs <= 400 else ((self, 1),)

    @property
    def attained(self) -> SampledGaussianLoss:
        return self.run(self.levels.least)

    @property
    def out_of_range(self) -> bool:
        return any(self.run(one).out_of_range for one in (self.levels.most, self.levels.least))

    def quadrature_available(self, c: float) -> bool:
        return all(
            self.run(one).quadrature_available(c) for one in (self.levels.most, self.levels.least)
        )

    def cgf_estimate(self, c: float) -> CGFEstimate:
        noise, weights = self.levels.estimate_nodes
        runs = [self.run(one) for one in noise]
        if not self.out_of_range and c <= FARTHEST:
            mus = np.array([run.mu for run in runs])
            rates = np.full(mus.size, float(self.rate))
            found = sampled_gaussian_contour.total((rates, mus, weights, self.removing), c)
            if not math.isnan(found[0]):
                return CGFEstimate(*found)
        value, slope, curvature = weights @ np.array([run.cgf_estimate(c) for run in runs])
        return CGFEstimate(float(value), float(slope), float(curvature))

    @property
    def clt_mu_squared(self) -> float:
        square = self.levels.noise**-2.0
        if square[-1] > LARGEST_EXPONENT:
            return math.inf
        return float(self.rate) ** 2 * float(np.expm1(square).sum())

    @property
    def dominating_mu_squared(self) -> Fraction:
        return sum((loss.dominating_mu_squared * count for loss, count in self.runs), Fraction(0))

    @property
    def supremum(self) -> float:
        if self.removing:
            return math.inf
        return self.levels.runs * largest_when_adding(self.rate) * (1.0 + 4.0 * ULP)

    def cgf_bounds(self, c: float, error: float = _FINE) -> Ball:
        nodes = self.nodes(Needs(c, ((0.0, error),)))
        if nodes is None:
            return self._between(c)
        values = [self.run(one).cgf_bounds(c) for one in nodes.noise]
        value = math.fsum(w * cgf.midpoint for w, cgf in zip(nodes.weights, values, strict=True))
        unsure = math.fsum(w * cgf.radius for w, cgf in zip(nodes.weights, values, strict=True))
        return Ball(value, (unsure + nodes.error(c)) * (1.0 + 1e-12) + 16.0 * ULP * value)

    def _between(self, c: float) -> Ball:
        """Return K between the ends that it has with the most and the least noise of each bin."""
        ends = [
            (one.runs, self.run(one.most).cgf_bounds(c), self.run(one.least).cgf_bounds(c))
            for one in self.levels.bins
        ]
        low = math.fsum(n * max(cgf.midpoint - cgf.radius, 0.0) for n, cgf, _ in ends)
        high = math.fsum(n * (cgf.midpoint + cgf.radius) for n, _, cgf in ends) * (1.0 + 16.0 * ULP)
        return Ball(0.5 * (low + high), 0.5 * (high - low) + 16.0 * ULP * high)

    def nodes(self, needs: Needs) -> Nodes | None:
        """Return nodes that stand for all levels on a line, None for too many.

        Cells are halved until each errs by no more than its share; small ones, and those of runs
        that cost much, are taken run by run, if these are not too many.
        """
        open_, done = list(self.levels.cells), []
        single: tuple[float, ...] = ()
        while open_:
            cell = open_.pop()
            bounds = _bounds_around(self, cell, needs.c)
            if needs.met(bounds, cell.runs / self.levels.runs):
                done.append((cell, bounds))
            elif cell.runs <= 24 or needs.out_of_reach(self._least_excess(cell, needs.c)):
                single += self.levels.one_by_one(cell)
            else:
                open_.extend(self.levels.halves(cell))
            if len(single) > 3000:
                return None
        return Nodes(tuple(done), single)

    def _least_excess(self, cell: Cell, c: float) -> float:
        # That of the run with the most noise, unproven.
        value = self.run(math.exp(-float(cell.points[0]))).cgf_estimate(c).value
        return math.expm1(min(value, LARGEST_EXPONENT))

    def decay(self, c: float) -> SequenceDecay:
        by_bin = [_level_sets(self, one, c) for one in self.levels.bins]
        width, mass = (np.concatenate([sets[k] for sets in by_bin]) for k in (0, 1))
        ends = np.cumsum([sets[0].size for sets in by_bin])
        runs = np.array([float(one.runs) for one in self.levels.bins])
        return SequenceDecay(width, mass, ends, runs)

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> SequenceRule | None:
        least = self.attained
        per_run = math.log(self.levels.runs) + 1.0
        tolerance = min(log_tolerance - self.cgf_estimate(c_high).value, _SURE) - per_run
        one = least.rule(c_high, y_high, tolerance)
        if one is None:
            return None
        return SequenceRule(self, c_high, y_high, tolerance, one.nodes * len(self.levels.cells))


def _growth_along(c: float, y: float) -> float:
    """Return ``|z (1 + z)| / (c (1 + c))`` at ``z = c + iy``."""
    return math.hypot(c, y) * math.hypot(1.0 + c, y) / (c * (1.0 + c)) * (1.0 + 8.0 * ULP)


class Around(NamedTuple):
    """A bound around a cell: what a run's ``M(c) - 1`` is below in an ellipse, and the error."""

    excess: float
    share: float

    def error(self, c: float, y: float = 0.0) -> float:
        """Return by how much the cell's rule for K errs at ``c + iy``; inf where unknown."""
        from_one = self.excess * _growth_along(c, y)
        if not from_one <= _FARTHEST_FROM_ONE:
            return math.inf
        return -math.log1p(-from_one) * (1.0 + 8.0 * ULP) * self.share


class Needs(NamedTuple):
    """What a rule has to do on the line through c: an error of K for each of some heights."""

    c: float
    errors: tuple[tuple[float, float], ...]

    def met(self, bounds: tuple[Around, ...], share: float) -> bool:
        """Return whether the bounds around a cell keep within its share of each error."""
        return all(
            min((one.error(self.c, y) for one in bounds), default=math.inf) <= share * error
            for y, error in self.errors
        )

    def out_of_reach(self, excess: float) -> bool:
        """Return whether M, which is at c so far from 1, is too far from 1 for any rule."""
        return excess * _growth_along(self.c, self.errors[-1][0]) > _FARTHEST_FROM_ONE


def _needs_along(decay: SequenceDecay, c: float, height: float) -> Needs:
    # Where M has fallen, the more may K be off.
    errors = []
    for part in range(_HEIGHTS + 1):
        y = height * part / _HEIGHTS
        fallen = decay.exponent(y) if part else 0.0
        if fallen > _FALLEN:
            break
        errors.append((y, _FINE * math.exp(fallen)))
    return Needs(c, tuple(errors))


@dataclass(frozen=True)
class Nodes:
    """Runs that stand for all on a line, and how far their sum may be off."""

    cells: tuple[tuple[Cell, tuple[Around, ...]], ...]
    single: tuple[float, ...]

    @cached_property
    def noise(self) -> tuple[float, ...]:
        """The noise multiplier of each node."""
        return (*self.single, *(one for cell, _ in self.cells for one in cell.noise))

    @cached_property
    def weights(self) -> Array:
        """How many runs each node stands for."""
        return np.concatenate([np.ones(len(self.single)), *(one.weights for one, _ in self.cells)])

    def error(self, c: float, y: float = 0.0) -> float:
        """Return by how much the sum of K over the nodes errs at ``c + iy``."""
        return math.fsum(min(one.error(c, y) for one in bounds) for _, bounds in self.cells)


@final
@dataclass(frozen=True, slots=True)
class SequenceDecay:
    """Uniform minorants of the densities of all bins, one group after the other."""

    width: Array
    mass: Array
    ends: NDArray[np.int64]
    runs: Array

    def exponent(self, y: float) -> float:
        total = noise_levels.total_exponent(self.width, self.mass, self.ends, self.runs, y)
        return float(total) * (1.0 - 1e-9)


@final
@dataclass(frozen=True)
class SequenceRule:
    """Quadratures of the runs that stand for all."""

    loss: GaussianSequenceLoss
    c_high: float
    y_high: float
    log_tolerance: float
    nodes: int

    def line(self, c: float, step: float, count: int) -> ContourValues:
        if count == 1:
            known = self.loss.cgf_bounds(c, 1e-3)  # it only bounds what is far away
            return ContourValues(*(np.array([one]) for one in (known.midpoint, 0.0, known.radius)))
        decay = self.loss.decay(c)
        nodes = self.loss.nodes(_needs_along(decay, c, step * (count - 1)))
        lines = self._lines(nodes, c, step, count) if nodes else None
        if nodes is None or lines is None:
            nothing = np.zeros(count)
            return ContourValues(nothing, nothing.copy(), np.full(count, np.inf))
        real, imag, error = (np.tensordot(nodes.weights, part, 1) for part in lines)
        size = np.tensordot(nodes.weights, np.abs(lines[0]) + np.abs(lines[1]), 1)
        rule_error = np.array([nodes.error(c, step * k) for k in range(count)])
        error = error * (1.0 + 1e-12) + rule_error + ULP * (nodes.weights.size + 8.0) * size
        return _or_small(ContourValues(real, imag, error), decay, step)

    def _lines(self, nodes: Nodes, c: float, step: float, count: int) -> Array | None:
        lines = []
        for noise in nodes.noise:
            rule = self.loss.run(noise).rule(self.c_high, self.y_high, self.log_tolerance)
            if rule is None:
                return None
            lines.append(rule.line(c, step, count))
        return np.array(lines).transpose(1, 0, 2)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        total = [mp.mpc(0)] * count
        for run, runs in self.loss.runs:
            rule = run.rule(self.c_high, self.y_high, self.log_tolerance)
            if rule is None:
                raise NoAnalysisError("a run of the sequence has no quadrature")
            line = rule.reference_line(c, step, count)
            total = [value + runs * one for value, one in zip(total, line, strict=True)]
        return total


def _or_small(values: ContourValues, decay: SequenceDecay, step: float) -> ContourValues:
    """Return the values, and where nodes prove nothing that M falls below what it is at c."""
    top = values.real[0] + values.error[0]
    for k in np.flatnonzero(~(values.error < _ANYWHERE)).tolist():
        if k > 0:
            values.real[k] = top - decay.exponent(step * k)
            values.imag[k] = 0.0
            values.error[k] = _ANYWHERE
    return values


def _bounds_around(loss: GaussianSequenceLoss, cell: Cell, c: float) -> tuple[Around, ...]:
    """Return what is known of a run's M around a cell, in the ellipses that are in reach."""
    if cell.alike:
        return (Around(0.0, 0.0),)
    bounds = []
    for ellipse in _ELLIPSES:
        high = cell.centre + 0.5 * cell.half * (ellipse + 1.0 / ellipse)
        angle = cell.half * (ellipse - 1.0 / ellipse)
        if angle > _WIDEST_ANGLE:
            continue
        known = loss.run(math.exp(-high) * math.sqrt(math.cos(angle)) * (1.0 - 1e-9)).cgf_bounds(c)
        upper = known.midpoint + known.radius
        if upper > 1.0:
            continue
        # C of the loss's text, at the largest ``|mu|`` of the ellipse.
        mu, cosine = math.exp(high), math.cos(angle)
        exponent = 0.125 * mu * mu * (1.0 / cosine - cosine)
        growth = math.exp(min(exponent, LARGEST_EXPONENT)) / math.sqrt(cosine)
        bounds.append(Around(math.expm1(upper) * growth * (1.0 + 1e-9), cell.error(ellipse)))
    return tuple(bounds)


def _level_sets(loss: GaussianSequenceLoss, one: Bin, c: float) -> tuple[Array, Array]:
    """Return a uniform minorant (widths, masses) of the tilted loss density of a bin's runs.

    For ``mu >= m`` the density of t is at least ``m/mu exp((m^2 - mu^2)/8)`` times that for m, and
    M is larger.
    """
    most, least = loss.run(one.most), loss.run(one.least)
    norm = least.cgf_bounds(c, _SURE)
    p, mu, w = float(loss.rate), most.mu, most.power(c)
    width, mass, _ = uniform_minorant.level_sets(
        p, mu, w, False, norm.midpoint + norm.radius, norm.radius
    )
    shrunk = mu / least.mu * math.exp(0.125 * (mu - least.mu) * (mu + least.mu))
    return width, mass * (shrunk * (1.0 - 1e-9))


@dominating_pair.register
def _(mechanism: GaussianSequence) -> DominatingPair:
    if mechanism.rate == 0:
        return DominatingPair(None, None)
    if mechanism.rate == 1:
        raise NoAnalysisError("without sampling its releases are accounted for one by one")
    levels = levels_of(mechanism.noise_multipliers)
    return DominatingPair(
        *(GaussianSequenceLoss(mechanism.rate, levels, way) for way in (True, False))
    )
