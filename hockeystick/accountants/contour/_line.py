"""Where the vertical line stands, how fine its nodes are and where it ends.

The trapezoid rule of step h on the line ``Re z = c`` sums ``delta(epsilon + m W) exp(m W c)`` over
all integers m, with the window ``W = 2 pi / h``. Every term is at least 0; Chernoff's bound at a
point above c covers m > 0, at a point below c (or at 0) m < 0. The line ends where the proven decay
of ``|M|`` leaves nothing that counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from hockeystick.accountants._orders import log_kappa, total
from hockeystick.losses import Decay, LineLoss

LineTerms: TypeAlias = Sequence[tuple[LineLoss, int]]

_ABOVE: Final = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
_BELOW: Final = (1.0, 2.0, 4.0, 8.0, math.inf)
_LEFTWARD: Final = (0.96, 0.9, 0.82, 0.72, 0.6, 0.48)
_DOUBLINGS: Final = 64


@dataclass(frozen=True, slots=True)
class Target:
    """What the line is drawn for: about this epsilon and delta, to exp(-accuracy) of delta."""

    epsilon: float
    log_delta: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Line:
    """A vertical line: nodes ``c + i k step`` for k = 0..last, and the two points of Chernoff."""

    c: float
    above: float
    below: float
    step: float
    last: int
    decays: tuple[tuple[Decay, int], ...]

    @property
    def height(self) -> float:
        """The imaginary part at which the line ends."""
        return self.step * self.last

    @property
    def window(self) -> float:
        """The distance in epsilon at which the trapezoid rule repeats itself."""
        return 2.0 * math.pi / self.step


def draw(terms: LineTerms, c: float, target: Target, most_nodes: int) -> Line | None:
    """Return a line through c that is fine and long enough, or None if it takes too many nodes."""
    k = total(terms, c)
    spread = math.sqrt(k.curvature + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c)))
    window, above, below = _window(terms, c, spread, target)
    decays = tuple((loss.decay(c), count) for loss, count in terms)
    longest = most_nodes * 2.0 * math.pi / window
    log_scale = k.value - target.epsilon * c - target.log_delta
    height = _height(decays, 2.0 / spread, longest, log_scale, target.accuracy)
    if height is None:
        return None
    last = math.ceil(height * window / (2.0 * math.pi))
    return Line(c, above, below, 2.0 * math.pi / window, last, decays)


def draw_cheaper(
    terms: LineTerms, line: Line | None, c: float, target: Target, most_nodes: int
) -> Line | None:
    """Return a line further left if one takes far fewer nodes and costs few digits.

    Where rare large losses take over beyond some order, the saddle sits right at the edge of it,
    and a little to its left the same answer is had from a far shorter line.
    """
    best = line
    height = total(terms, c).value - target.epsilon * c
    for factor in _LEFTWARD:
        left = factor * c
        lost = total(terms, left).value - target.epsilon * left - height - 2.0 * math.log(factor)
        if lost > 9.0:
            break
        limit = most_nodes if best is None else best.last
        other = draw(terms, left, target, limit)
        if other is not None and (best is None or other.last < 0.7 * best.last):
            best = other
    return best


def log_truncation(decays: tuple[tuple[Decay, int], ...], y: float, enough: float) -> float:
    """Bound ``ln((1/pi) Int_y^inf |M(c + iv) / M(c)| / v^2 dv)``, summing until below -enough."""
    logs = []
    for _ in range(_DOUBLINGS):
        exponent = sum(count * decay.exponent(y) for decay, count in decays)
        logs.append(-exponent - math.log(2.0 * math.pi * y))
        if exponent > enough:
            break
        y *= 2.0
    logs[-1] += math.log(2.0)
    top = max(logs)
    return top + math.log(math.fsum(math.exp(term - top) for term in logs)) + 1e-12


def log_chernoff(value: float, c: float, epsilon: float) -> float:
    """Return the bound ``K(c) - c epsilon + ln kappa(c)`` of ln delta; 0 at c = 0."""
    return value - c * epsilon + log_kappa(c)


def _window(
    terms: LineTerms, c: float, spread: float, target: Target
) -> tuple[float, float, float]:
    """Return the narrowest window that keeps both neighbours below accuracy, and the points."""

    def needed(point: float) -> float:
        value = total(terms, point).value if point > 0.0 else 0.0
        excess = log_chernoff(value, point, target.epsilon) - target.log_delta + target.accuracy
        return excess / abs(point - c)

    ups = [c + factor / spread for factor in _ABOVE]
    downs = {max(c - factor / spread, 0.0) for factor in _BELOW}
    window_up, above = min((needed(point), point) for point in ups)
    window_down, below = min((needed(point), point) for point in downs)
    return max(window_up, window_down, 1e-300), above, below


def _height(
    decays: tuple[tuple[Decay, int], ...],
    start: float,
    longest: float,
    log_scale: float,
    accuracy: float,
) -> float | None:
    """Return where the line may end, or None if beyond the longest allowed."""
    enough = log_scale + accuracy + 30.0
    y = start
    while log_truncation(decays, y, enough) + log_scale > -accuracy:
        y *= 1.12
        if y > longest:
            return None
    return y
