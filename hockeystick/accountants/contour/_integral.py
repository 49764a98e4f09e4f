"""The contour integral along one line, with every error bounded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick._solve import increasing_root
from hockeystick.accountants.contour._line import (
    Line,
    LineTerms,
    Target,
    log_chernoff,
    log_truncation,
)
from hockeystick.losses import Bounded, LineRule

Floats: TypeAlias = NDArray[np.float64]
Complexes: TypeAlias = NDArray[np.complex128]

_ULP: Final = 2.0**-52


class LogDelta(NamedTuple):
    """delta as ``exp(log_scale)`` times a proven interval; an estimate in it, and its slope."""

    log_scale: float
    lower: float
    estimate: float
    upper: float
    slope: float

    @property
    def relative_error(self) -> float:
        """The larger distance of an end from the estimate, over the estimate."""
        if not self.estimate > 0.0:
            return math.inf
        return max(self.upper / self.estimate - 1.0, 1.0 - self.lower / self.estimate)

    def log(self, end: str) -> float:
        """Return ln of one end; -inf where it is not positive."""
        value = float(getattr(self, end))
        return self.log_scale + math.log(value) if value > 0.0 else -math.inf


@dataclass(frozen=True)
class Integral:
    """``delta(epsilon) = (1/pi) Int Re[exp(K(z) - epsilon z) / (z (1 + z))] dy`` along a line.

    The values of K are computed once; any epsilon near the one that the line was drawn for is then
    a short sum. The bounds hold for every epsilon; they are narrow near that one.
    """

    line: Line
    z: Complexes
    weight: Complexes
    real: Floats
    imag: Floats
    error: Floats
    above: Bounded
    below: Bounded
    truncation: float

    def delta(self, epsilon: float) -> LogDelta:
        """Return delta at an epsilon."""
        scale = self.real[0] - epsilon * self.line.c
        with np.errstate(under="ignore", over="ignore"):
            phase = 1j * (self.imag - epsilon * self.z.imag)
            terms = np.exp(self.real - self.real[0] + phase) * self.weight
            size = np.abs(terms)
            arguments = np.abs(self.real) + np.abs(self.imag) + epsilon * np.abs(self.z)
            round_off = _ULP * (32.0 + size.size + 4.0 * arguments)
            spread = float(size @ np.expm1(np.minimum(self.error + round_off, 700.0)))
        estimate = float(terms.real.sum())
        slope = -float((terms * self.z).real.sum())
        slack = spread + self.truncation
        lower = estimate - slack - self._aliases(epsilon, scale)
        return LogDelta(scale, lower, estimate, estimate + slack, slope)

    def _aliases(self, epsilon: float, log_scale: float) -> float:
        """Bound the sum over the neighbouring windows, over exp(log_scale)."""
        line, total = self.line, 0.0
        for point, k in ((line.above, self.above), (line.below, self.below)):
            gap = abs(point - line.c) * line.window
            first = log_chernoff(k.value + k.error, point, epsilon) - gap - log_scale
            total += math.exp(min(first, 700.0)) / -math.expm1(-gap)
        return total * (1.0 + 1e-9)

    def epsilon_at(self, log_delta: float, guess: float) -> float:
        """Return the epsilon whose estimated delta is the one asked, to the last digits."""

        def above(epsilon: float) -> float:
            value = self.delta(epsilon).log("estimate")
            return log_delta - value if value > -math.inf else 700.0

        c = self.line.c
        return increasing_root(above, guess, stride=0.1 / c, tolerance=1e-16 * (guess + 1.0 / c))


def integrate(terms: LineTerms, line: Line, rules: Sequence[LineRule]) -> Integral:
    """Return the integral along a line by the rules of its losses."""
    size = line.last + 1
    real, imag, error = np.zeros(size), np.zeros(size), np.zeros(size)
    above = below = Bounded(0.0, 0.0)
    for (_, count), rule in zip(terms, rules, strict=True):
        values = rule.line(line.c, line.step, size)
        real += count * values.real
        imag += count * values.imag
        error += count * values.error
        above = _add(above, rule, line.above, count)
        below = _add(below, rule, line.below, count)
    error += _ULP * (len(terms) + 2.0) * (np.abs(real) + np.abs(imag))
    z = line.c + 1j * line.step * np.arange(size)
    weight = line.step / math.pi / (z * (1.0 + z))
    weight[0] *= 0.5
    truncation = math.exp(min(log_truncation(line.decays, line.height, 100.0), 700.0))
    return Integral(line, z, weight, real, imag, error, above, below, truncation)


def rules_for(terms: LineTerms, line: Line, target: Target) -> list[LineRule]:
    """Return the quadrature of each loss, fine enough for its count."""
    share = target.accuracy + 4.0 + math.log(len(terms))
    return [loss.rule(line.above, line.height, -share - math.log(count)) for loss, count in terms]


def _add(so_far: Bounded, rule: LineRule, c: float, count: int) -> Bounded:
    """Add one loss's K at a point of the real axis; at 0 every K is 0."""
    if c == 0.0:
        return so_far
    values = rule.line(c, 0.0, 1)
    value = so_far.value + count * float(values.real[0])
    return Bounded(value, so_far.error + count * float(values.error[0]))
