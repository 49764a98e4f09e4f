"""Profiles of many runs, from P alone, by Laplace inversion on a vertical line in extended floats.

With M(z) = E_P[(p / q)^z] of one run, any theta > 0, z = theta + i y and S the sum of n losses,

    delta(e) = (1/pi) Int_0^inf Re[M(z)^n exp(-z e) / (z (1 + z))] dy.

The outcomes of one run are a list of masses: those of a discrete output, or the nodes of a
quadrature of a continuous one. The trapezoid rule in y of step h has the period 2 pi / h in e. The
integral is cut off at a height, and computed on two lines with two steps and two heights: `agreed`
tells how far apart the two are, which is what the answers are trusted to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp
from numpy.typing import NDArray

from tests.oracles.zoo_outputs import Pair, Real

Wide = NDArray[Any]  # longdouble or clongdouble

EXACT_FIGURES = 28  # digits to which a root is sought where a curve is exact
WIDE_FIGURES = 17  # and where it is a sum of extended floats
_EMPTY = math.log(1e-25)  # nodes of less probability matter to no answer
_BLOCK = 1 << 21  # complex exponentials at a time


def wide(values: list[Real]) -> Wide:
    return np.array([np.longdouble(mp.nstr(v, 25)) for v in values], dtype=np.longdouble)


@dataclass(frozen=True)
class Line:
    """How an integral is done: where the line is, its step, and where it ends."""

    theta: Real
    step: float
    top: float


@dataclass(frozen=True)
class Inverse:
    """M^n / M(theta)^n on one line, ready for any epsilon."""

    line: Line
    log_moment: Real  # n ln M(theta)
    y: Wide
    power: Wide  # divided by z (1 + z), the first value halved

    def delta(self, epsilon: Real) -> Real:
        turned = np.exp(-1j * self.y * wide([epsilon])[0]) * self.power
        total = mp.mpf(np.format_float_scientific(np.sum(turned.real), precision=24))
        scale = mp.exp(self.log_moment - self.line.theta * epsilon)
        return scale * total * self.line.step / mp.pi

    def epsilon(self, delta: Real) -> Real:
        high = (self.log_moment - mp.log(delta)) / self.line.theta
        return root(self.delta, delta, high, WIDE_FIGURES)


def root(
    curve: Callable[[Real], Real], delta: Real, high: Real, figures: float = EXACT_FIGURES
) -> Real:
    """Where a falling curve reaches delta between 0 and high: regula falsi on its logarithm."""

    def gap(e: Real) -> Real:
        value = curve(e)
        return mp.log(value / delta) if value > 0 else mp.mpf(-50)

    (a, f), (b, g) = (mp.mpf(0), gap(mp.mpf(0))), (high, gap(high))
    if f <= 0:
        return mp.mpf(0)
    turn = 0
    while b - a > mp.mpf(10) ** -figures * b:
        turn += 1
        middle = (a + b) / 2 if turn % 4 == 0 else b - g * (b - a) / (g - f)
        if not a < middle < b:
            middle = (a + b) / 2
        found = gap(middle)
        if found > 0:
            a, f, g = middle, found, g / 2
        else:
            b, g, f = middle, found, f / 2
    return (a + b) / 2


def losses(one: Pair) -> list[Real]:
    return [mp.log(p / q) for p, q in zip(one.p, one.q, strict=True)]


def inverse(one: Pair, runs: int, line: Line) -> Inverse:
    values = losses(one)
    tilted = [p * mp.exp(line.theta * v) for p, v in zip(one.p, values, strict=True)]
    moment = mp.fsum(tilted)
    centre = mp.fsum(t * v for t, v in zip(tilted, values, strict=True)) / moment
    weights, turns = wide([t / moment for t in tilted]), wide([v - centre for v in values])
    used = weights > np.longdouble(1e-24)
    weights, turns = weights[used], turns[used]
    y = np.arange(math.ceil(line.top / line.step), dtype=np.longdouble) * np.longdouble(line.step)
    rows = max(1, _BLOCK // weights.size)
    parts = [
        np.exp(1j * np.multiply.outer(y[i : i + rows], turns)) @ weights
        for i in range(0, y.size, rows)
    ]
    z = wide([line.theta])[0] + 1j * y
    shift = wide([runs * centre])[0]
    power = np.concatenate(parts) ** runs * np.exp(1j * y * shift) / (z * (1 + z))
    power[0] /= 2
    return Inverse(line, runs * mp.log(moment), y, power)


def _moments(one: Pair, runs: int) -> list[tuple[float, float]]:
    """(theta, n ln M(theta)) on a grid of theta, in float64."""
    value = np.array([float(v) for v in losses(one)])
    log_p = np.array([float(mp.log(p)) for p in one.p])
    found = []
    for theta in np.geomspace(1e-2, 1e4, 1200):
        height = log_p + theta * value
        peak = float(height.max())
        if log_p[int(np.argmax(height))] < _EMPTY:
            continue  # the mass lies at the end of the nodes or beyond
        found.append((float(theta), runs * (peak + math.log(np.exp(height - peak).sum()))))
    return found


def saddle(one: Pair, runs: int, *, delta: Real | None = None, epsilon: Real | None = None) -> Real:
    """The theta whose Chernoff bound on epsilon (on delta) is least."""

    def bound(theta: float, log_m: float) -> float:
        prefactor = math.log(theta) + math.log1p(theta)
        if epsilon is not None:
            return log_m - theta * float(epsilon) - prefactor
        return (log_m - float(mp.log(delta)) - prefactor) / theta

    return mp.mpf(min(_moments(one, runs), key=lambda row: bound(*row))[0])


@dataclass(frozen=True)
class MomentBound:
    """An upper bound of a profile, from moments: Canonne, Kamath and Steinke 2020, prop. 12."""

    pair: Pair
    runs: int

    def _rows(self) -> list[tuple[float, float]]:
        return [
            (theta, log_m + theta * math.log(theta) - (1 + theta) * math.log1p(theta))
            for theta, log_m in _moments(self.pair, self.runs)
        ]

    def delta(self, epsilon: Real) -> Real:
        return mp.exp(min(row - theta * float(epsilon) for theta, row in self._rows()))

    def epsilon(self, delta: Real) -> Real:
        target = float(mp.log(delta))
        return mp.mpf(min((row - target) / theta for theta, row in self._rows()))


@dataclass(frozen=True)
class Inverted:
    """The profile by two inversions; `digits` is how many decimal digits they must share."""

    first: Inverse
    second: Inverse
    digits: float

    @classmethod
    def of(cls, one: Pair, runs: int, *, theta: Real, top: float, digits: float = 13) -> Inverted:
        spread = runs * max(abs(v) for v in losses(one))
        period = min(float(spread) * 2 + 1, 400 / float(theta))
        lines = (
            Line(theta, 2 * math.pi / period, top),
            Line(theta * mp.mpf("0.83"), 2 * math.pi / (1.37 * period), 0.4 * top),
        )
        first, second = (inverse(one, runs, line) for line in lines)
        return cls(first, second, digits)

    def _agreed(self, a: Real, b: Real) -> Real:
        if abs(a - b) > mp.mpf(10) ** -self.digits * abs(a):
            raise ArithmeticError(f"two lines disagree: {mp.nstr(a, 20)} and {mp.nstr(b, 20)}")
        return a

    def delta(self, epsilon: Real) -> Real:
        return self._agreed(self.first.delta(epsilon), self.second.delta(epsilon))

    def epsilon(self, delta: Real) -> Real:
        return self._agreed(self.first.epsilon(delta), self.second.epsilon(delta))
