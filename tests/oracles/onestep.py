"""The plan, and the characteristic function of the loss of one step, panel by panel of y.

`levy` says what is computed and why the moved line is good for every y.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mp
from numpy.typing import NDArray

from tests.oracles.panels import Fixed, Real, Rule, exact, fix


@dataclass(frozen=True)
class Plan:
    """Rate q, noise multiplier s and number of steps T; a float stands for its exact value."""

    rate: float | Fraction
    noise_multiplier: float | Fraction
    steps: int

    @property
    def exact(self) -> tuple[Real, Real]:
        """q and s at the working precision."""
        return exact(self.rate), exact(self.noise_multiplier)

    @property
    def rough(self) -> tuple[float, float]:
        """q and s in float64, for layouts only."""
        return float(self.rate), float(self.noise_multiplier)


@dataclass(frozen=True)
class Scales:
    """Rough float64 scales that lay out the panels: nothing here enters a result."""

    reach: float  # y beyond which phi^T is below the tolerance
    spread: float  # largest shifted loss that carries weight


def _loss(plan: Plan, u: NDArray[Any]) -> NDArray[Any]:
    """L at x = s u, float64, complex u allowed."""
    q, s = plan.rough
    t = u / s - 0.5 / s**2
    big = t.real > 30
    small = np.where(big, 0, t)
    near = np.log1p(q * np.expm1(small))
    far = t + np.log(q + (1 - q) * np.exp(-np.where(big, t, 30)))
    return np.where(big, far, near)


def _shift(plan: Plan) -> float:
    """Im u of the moved line: tau = pi / 2, or less where the Gaussian would grow too much."""
    return min(math.pi * plan.rough[1] / 2, 5.0)


def _base(plan: Plan) -> float:
    """The loss of the near-atom, ln(1 - q), taken out of the oscillation."""
    return math.log1p(-plan.rough[0]) if plan.rate <= 0.5 else 0.0


def renyi_epsilon(plan: Plan, log_delta: float) -> float:
    """An upper bound on epsilon at delta, from Renyi divergences in float64."""
    s = plan.rough[1]
    u = np.linspace(-12, 12, 4001)
    best = math.inf
    for order in np.geomspace(1e-4, 1e6, 400):
        alpha = float(order) + 1
        x = np.sort(np.concatenate([u, u + alpha / s]))
        log_weight = np.log(np.gradient(x)) - x * x / 2 - math.log(2 * math.pi) / 2
        loss = _loss(plan, x)
        height = log_weight + alpha * loss
        peak = float(height.max())
        if peak < 0:
            rise = np.expm1(np.minimum(alpha * loss, 600)) - alpha * np.expm1(loss)
            cumulant = math.log1p(max(float(np.sum(np.exp(log_weight) * rise)), 0.0))
        else:
            cumulant = peak + math.log(float(np.sum(np.exp(height - peak))))
        spent = plan.steps * cumulant - log_delta - math.log(alpha)
        best = min(best, spent / float(order) + math.log(float(order) / alpha))
    return max(best, 0.0) * 1.01 + 1e-6


def scales_of(plan: Plan, digits: float) -> Scales:
    """Where phi^T dies and how far losses reach."""
    s, log_tol = plan.rough[1], -digits * math.log(10)
    width = math.sqrt(2 * digits * math.log(10)) + 1
    v = _shift(plan)
    grid = np.linspace(-9 - v, 9 + v + 1 / s, 3001)
    line = grid + 1j * v
    shifted = _loss(plan, line) - _base(plan)
    weight = np.exp(-line * line / 2) * (grid[1] - grid[0]) / math.sqrt(2 * math.pi)
    reach = 2.0**-20
    while reach < 2.0**110:
        value = min(abs(np.sum(weight * np.exp(1j * reach * shifted))), 1.0)
        if value == 0 or plan.steps * math.log(value) < log_tol:
            break
        reach *= 1.5
    spread = float(_loss(plan, np.array([width + 1 / s]))[0]) - _base(plan)
    return Scales(reach, spread)


@dataclass(frozen=True)
class Layout:
    """Precision and panel sizes of one run."""

    dps: int
    spare: float  # decimal digits that the squarings may lose
    need: float  # digits to which phi is wanted
    nodes: int
    parts: int  # panels per octave
    width: float  # of the first panels


def layout_of(plan: Plan, scales: Scales, digits: float, *, second: bool, parts: int) -> Layout:
    """The layout of the first or of the second, finer and different, run."""
    need = digits + math.log10(plan.steps) + (6 if second else 0)
    spare = max(math.log10(scales.reach), 0.0) + 5
    lost = spare + math.log10(scales.spread + 1) + _shift(plan) ** 2 / 4 + 5
    dps = 16 * math.ceil((need + lost) / 16)
    nodes = 8 * math.ceil((60 + 0.6 * need) / 8) + (12 if second else 0)
    width = min(scales.reach / (4 * parts), 0.3 * nodes / scales.spread)
    return Layout(dps, spare, need, nodes, parts, width * (0.83 if second else 1.0))


@dataclass(frozen=True)
class Line:
    """Nodes in x of one run: shifted losses, and weights under A and under M (re and im)."""

    losses: list[Real]
    weights: Fixed


def _line(plan: Plan, layout: Layout, bits: int) -> Line:
    """The moved line, with its step from the strip of analyticity."""
    q, s = plan.exact
    v = _shift(plan)
    span = layout.need * math.log(10)
    h = mp.mpf(2 * math.pi * v / (span + 2 * v * v + 3))
    edge = math.sqrt(2 * span + v * v) + 0.5
    low, high = math.floor(-edge / float(h)), math.ceil((edge + float(1 / s)) / float(h))
    base = 1 - q if plan.rate <= 0.5 else mp.mpf(1)
    losses, columns = [], []
    for k in range(low, high + 1):
        u = mp.mpc(k * h, v)
        ratio = 1 - q + q * mp.exp(u / s - 1 / (2 * s * s))
        weight = h * mp.exp(-u * u / 2) / mp.sqrt(2 * mp.pi)
        losses.append(mp.log(ratio / base))
        columns.append((weight.real, weight.imag, (weight * ratio).real, (weight * ratio).imag))
    weights = np.stack([fix(list(c), bits) for c in zip(*columns, strict=True)], axis=1)
    return Line(losses, weights)


@dataclass(frozen=True)
class Piece:
    """One panel [a, b] of y with the values of phi (shifted losses) under A and under M."""

    a: Real
    b: Real
    under: dict[str, tuple[Fixed, Fixed]]


def _sums(re: Fixed, im: Fixed, line: Line, bits: int) -> dict[str, tuple[Fixed, Fixed]]:
    """phi at the nodes of a panel, under A and under M."""
    used = line.weights[: re.shape[1]]
    left, right = re.dot(used), im.dot(used)
    return {
        name: ((left[:, i] - right[:, i + 1]) >> bits, (left[:, i + 1] + right[:, i]) >> bits)
        for name, i in (("A", 0), ("M", 2))
    }


def _parts(values: list[Real], bits: int) -> tuple[Fixed, Fixed]:
    """Real and imaginary parts in fixed point."""
    return fix([v.real for v in values], bits), fix([v.imag for v in values], bits)


def pieces(plan: Plan, layout: Layout, rule: Rule) -> Iterator[Piece]:
    """Panels of y in order: equal ones first, then octaves by squaring. Endless."""
    bits = rule.bits
    line = _line(plan, layout, bits)
    width, parts = mp.mpf(layout.width), layout.parts
    offsets = [width * (x + 1) / 2 for x in rule.nodes]
    turn = [1j * loss for loss in line.losses]
    rows = [_parts([mp.exp(y * z) for z in turn], bits) for y in offsets]
    re, im = (np.array(part, dtype=object) for part in zip(*rows, strict=True))
    step_re, step_im = _parts([mp.exp(width * z) for z in turn], bits)
    octave: list[tuple[Fixed, Fixed]] = []
    for p in range(2 * parts):
        if p:
            re, im = ((re * step_re - im * step_im) >> bits, (re * step_im + im * step_re) >> bits)
        if p >= parts:
            octave.append((re, im))
        yield Piece(p * width, (p + 1) * width, _sums(re, im, line, bits))
    while True:
        width = 2 * width
        for i, (re, im) in enumerate(octave):
            re, im = (re + im) * (re - im) >> bits, re * im >> (bits - 1)
            alive = np.flatnonzero((abs(re) + abs(im)).max(axis=0) > 2)
            stop = int(alive[-1]) + 1 if alive.size else 1
            octave[i] = re, im = re[:, :stop], im[:, :stop]
            yield Piece((parts + i) * width, (parts + i + 1) * width, _sums(re, im, line, bits))
