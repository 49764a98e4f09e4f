"""Oracle: brackets on delta(epsilon) of Poisson-subsampled Gaussians by tilted FFT, in float64.

The loss of one step (see `levy`) is put on a grid {a + i h}, once so that the result dominates and
once so that it is dominated:

* upper, connect the dots: a loss l in a cell [e, e + h) goes to e + h with probability
  (1 - exp(e - l)) / (1 - exp(-h)) and to e otherwise, which keeps the masses under P and under Q;
* lower, data processing: a cell [e - h/2, e + h/2) becomes one outcome, whose loss ln(p/q) is
  lowered to e - eta (or to e - h - eta where it lies below e - eta), one eta for all cells.

Masses are Gauss-Legendre integrals over pieces that no cell boundary cuts. The grid law is tilted
by exp(theta l), raised to the power T by FFT, and untilted. Added to the upper answer and taken
from the lower one: Chernoff bounds on the law outside the FFT window (which is also what wraps
around), the mass cut off in x, and an allowance for round-off.

No inversion, no contour, no quadrature in frequency: nothing is shared with `levy`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

Direction = Literal["remove", "add"]
Floats = NDArray[np.float64]

_WIDEST = 36.0  # |u| beyond which the Gaussian (below 1e-280) is always cut off
_MASS_ERROR = 1e-12  # allowance for the relative error of one tilted mass
_LARGEST = 1 << 23  # FFT length


class LatticeError(ArithmeticError):
    """The window that the width goal needs is too long."""


@dataclass(frozen=True)
class Bracket:
    """Proven lower and upper ends."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Step:
    """One step: rate, noise multiplier, direction."""

    rate: float
    scale: float
    direction: Direction


@dataclass(frozen=True)
class Nodes:
    """Quadrature of one step: losses and their masses under P, in order of x."""

    losses: Floats
    masses: Floats


@dataclass(frozen=True)
class Grid:
    """Masses under P at losses start + i h."""

    start: float
    h: float
    masses: Floats


def _loss(rate: float, scale: float, u: Floats) -> Floats:
    """ln(1 - q + q e^t) at x = s u."""
    t = u / scale - 0.5 / scale**2
    with np.errstate(over="ignore"):
        near = np.log1p(rate * np.expm1(np.minimum(t, 30.0)))
        far = t + np.log(rate + (1 - rate) * np.exp(-np.maximum(t, 30.0)))
    return np.where(t > 30, far, near)


def _inverse(rate: float, scale: float, losses: Floats) -> Floats:
    """u at which the loss is as given; losses must exceed ln(1 - q)."""
    big = losses > 30
    safe = np.where(big, 0.0, losses)
    near = np.log1p(np.maximum(np.expm1(safe) / rate, -1 + 1e-300))
    t = np.where(big, losses - math.log(rate), near)
    return scale * (t + 0.5 / scale**2)


def _nodes(step: Step, cut: float, edges: Floats) -> Nodes:
    """Gauss-Legendre pieces of |u| < cut, cut at the cell edges (losses) and at most 1/4 long."""
    rate, scale, direction = step.rate, step.scale, step.direction
    top = cut + (1 / scale if direction == "remove" else 0.0)
    plain = np.arange(-cut, top + 0.125, 0.25)
    losses = edges if direction == "remove" else -edges
    inside = losses[losses > math.log1p(-rate)] if rate < 1 else losses
    cuts = _inverse(rate, scale, inside)
    ends = np.unique(np.concatenate([plain, cuts[(cuts > -cut) & (cuts < top)]]))
    x, w = np.polynomial.legendre.leggauss(8)
    half = np.diff(ends)[:, None] / 2
    u = ((ends[:-1, None] + half) + half * x).ravel()
    loss = _loss(rate, scale, u)
    log_mass = -u * u / 2 + (loss if direction == "remove" else 0.0)
    masses = (half * w).ravel() * np.exp(log_mass) / math.sqrt(2 * math.pi)
    return Nodes(loss if direction == "remove" else -loss, masses)


def _span(step: Step, cut: float, h: float) -> tuple[float, float]:
    """Least and largest loss for |u| < cut; refuses a grid of step h that would be too long."""
    ends = _loss(step.rate, step.scale, np.array([-cut, cut + 1 / step.scale]))
    if ends[1] - ends[0] > h * _LARGEST / 8:
        raise LatticeError("one step needs too many cells")
    low, high = float(ends[0]), float(ends[1])
    return (low, high) if step.direction == "remove" else (-high, -low)


def _upper(step: Step, cut: float, h: float) -> Grid:
    """Connect the dots; the loss beyond the cut on the high side is left to the caller."""
    low, high = _span(step, cut, h)
    first, last = math.floor(low / h) - 1, math.ceil(high / h) + 2
    edges = np.asarray(np.arange(first, last + 1) * h, dtype=np.float64)
    nodes = _nodes(step, cut, edges)
    cell = np.clip(np.floor(nodes.losses / h).astype(np.int64) - first, 0, last - first - 1)
    rise = np.clip(np.expm1(edges[cell] - nodes.losses) / math.expm1(-h), 0.0, 1.0)
    size = last - first + 1
    masses = np.bincount(cell + 1, nodes.masses * rise, size).astype(np.float64)
    masses += np.bincount(cell, nodes.masses * (1 - rise), size).astype(np.float64)
    masses[0] += math.exp(log_ndtr(-cut))
    return Grid(float(edges[0]), h, masses)


def _lower(step: Step, cut: float, h: float, theta: float) -> Grid:
    """Merge cells centred on grid points, then lower each merged loss to the shifted grid."""
    low, high = _span(step, cut, h)
    anchor = 0.0
    for _ in range(4):
        first = math.floor((low - anchor) / h) - 2
        last = math.ceil((high - anchor) / h) + 2
        points = np.asarray(anchor + np.arange(first, last + 1) * h, dtype=np.float64)
        nodes = _nodes(step, cut, points + h / 2)
        cell = np.rint((nodes.losses - anchor) / h).astype(np.int64) - first
        cell = np.clip(cell, 0, last - first)
        masses: Floats = np.bincount(cell, nodes.masses, points.size).astype(np.float64)
        shrunk = np.bincount(
            cell, nodes.masses * np.expm1(points[cell] - nodes.losses), points.size
        )
        full = masses > 0
        excess = np.zeros(points.size)
        excess[full] = -np.log1p(shrunk[full] / masses[full])
        heaviest = int(np.argmax(masses))
        if abs(excess[heaviest]) < 1e-6 * h:
            break
        anchor = float(points[heaviest] + excess[heaviest])
    tilted = masses * np.exp(theta * (points - high))
    tilted = tilted / float(tilted.sum())
    etas = np.concatenate([[0.0], h * 2.0 ** np.arange(-30, 0.0)]) + 1e-14
    costs = [eta + h * float(tilted[excess < -eta].sum()) for eta in etas]
    eta = float(etas[int(np.argmin(costs))])
    index = np.arange(points.size) - (excess < -eta)
    lowered = np.bincount(index + 1, masses, points.size + 1).astype(np.float64)
    return Grid(float(points[0] - h - eta), h, lowered)


def _cumulant(grid: Grid, theta: float) -> float:
    """ln sum p exp(theta l)."""
    used = np.flatnonzero(grid.masses > 0)
    terms = np.log(grid.masses[used]) + theta * (grid.start + grid.h * used)
    return float(logsumexp(terms))


@dataclass(frozen=True)
class Composed:
    """The T-fold law: tilted masses at start + i h, with everything needed to untilt and bound."""

    start: float
    h: float
    tilted: Floats
    theta: float
    log_moment: float  # T ln M(theta)
    outside: float  # tilted mass outside the window, at most
    rounding: float  # 2-norm of the error of `tilted`, at most
    steps: int

    def terms(self, epsilon: float) -> tuple[float, float]:
        """delta of the grid law, and the allowance on each side of it."""
        gap = self.start + self.h * np.arange(self.tilted.size) - epsilon
        above = gap > 0
        kernel = np.exp(-self.theta * gap[above]) * -np.expm1(-gap[above])
        scale = math.exp(self.log_moment - self.theta * epsilon)
        value = float(kernel @ self.tilted[above])
        noise = float(np.linalg.norm(kernel)) * self.rounding
        slack = _MASS_ERROR * self.steps * abs(value) + noise + self.outside
        return scale * value, scale * slack


def _compose(grid: Grid, steps: int, theta: float) -> Composed:
    """Tilt, find a window by Chernoff, raise to the power by FFT."""
    base = _cumulant(grid, theta)
    goal = 32.0
    ends = []
    for sign in (1.0, -1.0):
        best = math.inf
        for extra in np.geomspace(1e-3, 1e3, 60):
            shift = sign * float(extra)
            reach = (steps * (_cumulant(grid, theta + shift) - base) + goal) / float(extra)
            best = min(best, reach)
        ends.append(sign * best)
    high, low = ends
    size = 1 << max(10, math.ceil(math.log2((high - low) / grid.h + 4 + grid.masses.size / steps)))
    if size > _LARGEST:
        raise LatticeError(f"a window of {size} points")
    losses = grid.start + grid.h * np.arange(grid.masses.size)
    with np.errstate(divide="ignore"):
        law = np.exp(np.log(grid.masses) + theta * losses - base)
    offset = math.floor((low - steps * grid.start) / grid.h)
    wrapped = np.bincount(np.arange(law.size) % size, law, size).astype(np.float64)
    power = np.fft.irfft(np.fft.rfft(wrapped) ** steps, size).astype(np.float64)
    tilted = np.roll(power, -(offset % size))
    unit = 2.0**-53 * math.log2(size) * 4
    rounding = (steps + 1) * unit * float(np.linalg.norm(wrapped)) + steps * 2.0**-53
    return Composed(
        start=steps * grid.start + offset * grid.h,
        h=grid.h,
        tilted=tilted,
        theta=theta,
        log_moment=steps * base,
        outside=4 * math.exp(-goal),
        rounding=rounding,
        steps=steps,
    )


@dataclass(frozen=True)
class Lattice:
    """Lower and upper curves delta(epsilon), tight near the epsilon they were made for."""

    below: Composed
    above: Composed
    cut: float  # the allowance for what is cut off in x
    centre: float  # the epsilon they were made for

    def delta(self, epsilon: float) -> Bracket:
        """Bracket on delta at epsilon."""
        low, low_slack = self.below.terms(epsilon)
        high, high_slack = self.above.terms(epsilon)
        return Bracket(max(0.0, low - low_slack - self.cut), high + high_slack + self.cut)

    def epsilon(self, delta: float) -> Bracket:
        """Bracket on the epsilon at which delta is reached, by bisection."""
        return Bracket(self._solve(delta, upper=False), self._solve(delta, upper=True))

    def _solve(self, delta: float, *, upper: bool) -> float:
        """The safe side of the root, sought outward from `centre`, where the curves are tight."""

        def read(epsilon: float) -> float:
            bracket = self.delta(epsilon)
            return bracket.upper if upper else bracket.lower

        low = high = self.centre
        gap = 1e-6 * self.centre
        while read(high) > delta:
            low, high, gap = high, self.centre + gap, 2 * gap
            if high > 100 * self.centre:
                raise LatticeError("the upper curve does not come down to delta")
        gap = 1e-6 * self.centre
        while read(low) <= delta:
            if low == 0:
                return 0.0
            low, high, gap = max(0.0, self.centre - gap), low, 2 * gap
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if read(middle) > delta else (low, middle)
        return high if upper else low


def lattice(
    rate: float,
    noise_multiplier: float,
    steps: int,
    direction: Direction,
    *,
    epsilon: float,
    width: float = 3e-4,
) -> Lattice:
    """Brackets made for delta near `epsilon`, aiming at the relative width given."""
    step = Step(rate, noise_multiplier, direction)
    nodes = _nodes(step, _WIDEST, np.empty(0))
    log_masses = np.log(nodes.masses)

    def exponent(order: float) -> float:
        """Log of the Chernoff-type bound on delta at this tilt."""
        moment = float(logsumexp(log_masses + order * nodes.losses))
        return steps * moment - order * epsilon - math.log(order * (1 + order))

    theta = min((float(c) for c in np.geomspace(1e-2, 1e5, 700)), key=exponent)
    h = min(math.sqrt(12 * width / (steps * theta * (theta + 1))), 0.02)
    depth = max(-exponent(theta), 0.0) + math.log(steps) + 25
    cut = min(math.sqrt(2 * depth), _WIDEST)
    return Lattice(
        _compose(_lower(step, cut, h / 8, theta), steps, theta),
        _compose(_upper(step, cut, h), steps, theta),
        2 * steps * math.exp(float(log_ndtr(-cut))),
        epsilon,
    )
