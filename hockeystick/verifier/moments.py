"""M and B of one run, steps 5 and 6 of the argument: a closed form, a sum, or an integral over x.

``on(box, bits)`` of a loss returns what has ``moment(z)``, M, and ``bound(c, y)``, B, for z of the
box.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from flint import acb, arb, ctx

from .balls import (
    LN2,
    Ball,
    Box,
    NotCovered,
    ball,
    ellipse,
    gauss_error,
    many,
    middle,
    normal_tail,
    point,
    points_needed,
    rule,
    within,
)

MOST_PANELS: Final = 1000
NO_PATH: Final = "no path was found on which a moment generating function is integrated easily"


@dataclass(frozen=True)
class GaussianLoss:
    """``N(mu, 1)`` against ``N(0, 1)``: ``M(z) = e^{mu^2 z(z+1)/2}``."""

    mu: Fraction

    def on(self, box: Box, bits: float) -> GaussianLoss:
        return self

    def moment(self, z: Ball) -> Ball:
        """Return M(z)."""
        return (ball(self.mu) ** 2 * z * (z + 1) / 2).exp()

    def bound(self, c: float, y: float) -> Ball:
        """Return ``|M(c + iy)|``."""
        return (ball(self.mu) ** 2 * (arb(c) * (arb(c) + 1) - arb(y) ** 2) / 2).exp()


@dataclass(frozen=True)
class AtomicLoss:
    """Atoms of P-mass and loss; ``rest(c)`` bounds M(c) of those left out.

    Where ``span`` is given, the losses are ``least`` plus multiples of it, up to ``largest``.
    """

    atoms: Sequence[tuple[Ball, Ball]]
    span: Fraction | None = None
    least: Fraction = Fraction(0)
    largest: Fraction | None = None
    rest: Callable[[Ball], Ball] = lambda c: arb(0)

    def on(self, box: Box, bits: float) -> AtomicLoss:
        return self

    def moment(self, z: Ball) -> Ball:
        return sum(
            (mass * (z * loss).exp() for mass, loss in self.atoms), within(self.rest(z.real))
        )

    def bound(self, c: float, y: float) -> Ball:
        return sum((mass * (c * loss).exp() for mass, loss in self.atoms), self.rest(arb(c)))


@dataclass(frozen=True)
class DensityLoss:
    """Densities with an analytic loss each, and atoms; the scale if it is Laplace noise."""

    densities: Sequence[SampledGaussian | SampledLaplace]
    atoms: Sequence[tuple[Ball, Ball]] = ()
    scale: Fraction | None = None

    def on(self, box: Box, bits: float) -> Quadrature:
        """Return nodes that are good for all z of the box."""
        return Quadrature(self, box, bits)


class Arc(NamedTuple):
    """A part of a path of x: ``x(t)`` and ``dx/dt`` for ``0 <= t <= stop``."""

    stop: float
    x: Callable[[Ball], Ball]
    slope: Callable[[Ball], Ball]


def line(a: Ball, b: Ball) -> Arc:
    """Return the way straight from a to b."""
    return Arc(1.0, lambda t: a + (b - a) * t, lambda t: b - a)


class SampledGaussian:
    """``w(x) = 1 - q + q e^{u(x)}`` with ``u = x/s - 1/(2 s^2)``, for a standard normal x.

    The way "remove" has the density ``phi w`` and the loss ``ln w``; "add" has phi and ``-ln w``;
    "replace" has ``phi w`` and ``ln w(x) - ln w(-x)``. Only x from a start on count.
    """

    def __init__(
        self, rate: Fraction, noise: Fraction, way: str, start: Ball | None = None
    ) -> None:
        self.q: Ball = ball(rate)
        self.s: Ball = ball(noise)
        self.way: str = way
        self.start: Ball | None = start
        self.inverse: Ball = 1 / self.s
        self.shift: Ball = 1 / (2 * self.s**2)
        self.log_q: Ball = self.q.log()
        self.log_odds: Ball = (self.q / (1 - self.q)).log()
        self.against: Ball = (1 - self.q) / self.q
        self.log_norm: Ball = (2 * arb.pi()).log() / 2

    def log_w(self, x: Ball, sure: bool) -> Ball:
        """Return ln w, continued from the real axis to all x but those above and below a zero of w.

        These have ``Re v = 0``, with ``v = u + ln(q/(1-q))``. To be sure of the sign of arg w, let
        ``|Im v| < pi`` where ``Re v < 0``.
        """
        u = x * self.inverse - self.shift
        v = u.real + self.log_odds
        if v > 0:
            return u + self.log_q + (1 + self.against * (-u).exp()).log(True)
        if (v < 0 and not sure) or abs(u.imag) < arb.pi():
            return (1 - self.q + self.q * u.exp()).log(True)
        return acb(arb.nan())

    def at(self, x: Ball) -> tuple[Ball, Ball]:
        """Return the logarithm of the density, and the loss.

        Where ``Im x >= 0`` ("add": <= 0), ``Im L >= 0``: if ``|Im u| < pi``, arg w has the sign of
        Im u; if not, ``Re v > 0`` and arg w is Im u up to pi/2, while arg w(-x) is at most pi/2.
        """
        log_phi, log_w = -x * x / 2 - self.log_norm, self.log_w(x, True)
        if self.way == "add":
            return log_phi, -log_w
        return log_phi + log_w, log_w if self.way == "remove" else log_w - self.log_w(-x, False)

    def powers(self, c: Ball) -> tuple[Ball, Ball]:
        """Return k and l of ``|p e^{zL}| = |phi w(x)^k w(-x)^l| e^{-y Im L}``."""
        return {"remove": (c + 1, 0 * c), "add": (-c, 0 * c), "replace": (c + 1, -c)}[self.way]

    def path(self, box: Box, digits: float) -> list[Arc]:
        """Return a path where ``|p e^{zL}|`` is small.

        It goes up where w begins to turn, and, if the size grows with x nevertheless, further up
        behind the zeros of w.
        """
        s, y, log_odds = float(self.s), max(box.low, 0.0), float(self.log_odds)
        powers = [float(k) for c in box[:2] for k in self.powers(arb(c))]
        level = s * (1.2 if min(powers) < -1 else 2.3)
        odds = y * s / (level * (1 + s * s))
        height = level * odds / (1 + odds)
        base, power = math.sqrt(2 * digits), max(powers)
        size = max(power * (power - 1), 0.0) / (2 * s * s)
        top = max(base, power / s + math.sqrt(2 * (digits + size))) if power > 0 else base
        bottom = -top if self.way == "replace" and box.left < -1 else -base
        begin = self.start if self.start is not None else arb(bottom)
        join = max(s * (1.5 - log_odds) + 0.5 / s, float(begin) + 0.5)
        down = -1 if self.way == "add" else 1
        sigmoid = self.curve(begin, arb(down * height), arb(log_odds + math.log1p(odds)))
        if not height or top < join:
            return [sigmoid(top)]
        bend = sigmoid(join)
        corner, room = bend.x(acb(bend.stop)), (y / s) ** 2 - 2 * (size + digits + 0.01 * y)
        rise = max(abs(float(corner.imag)), y / s - math.sqrt(max(room, 0.0)))
        high = complex(join + 4 * s, down * rise)
        last = complex(max(high.real + 0.5, top if room <= 0 else 0.0), high.imag)
        return [bend, line(corner, point(high)), line(point(high), point(last))]

    def curve(self, begin: Ball, height: Ball, log_odds: Ball) -> Callable[[float], Arc]:
        """Return arcs ``r + i height S(r)`` from r = begin on, with a sigmoid S, or two."""
        both, imaginary = self.way == "replace", acb(0, 1) * height

        def sigmoid(r: Ball) -> Ball:
            return 1 / (1 + (self.shift - r * self.inverse - log_odds).exp())

        zero = arb(0) if self.start is None else sigmoid(begin)

        def x(t: Ball) -> Ball:
            r = begin + t
            return r + imaginary * (sigmoid(r) - zero + (sigmoid(-r) if both else 0))

        def slope(t: Ball) -> Ball:
            right, left = sigmoid(begin + t), sigmoid(-begin - t) if both else arb(0)
            return 1 + imaginary * self.inverse * (right * (1 - right) - left * (1 - left))

        if not height:
            return lambda end: Arc(end - float(begin), lambda t: begin + t, lambda t: acb(1))
        return lambda end: Arc(end - float(begin), x, slope)

    def rest(self, c: float, y: float, first: Ball, last: Ball) -> Ball:
        """Return a bound of the integral of ``|p e^{zL}|`` from both ends horizontally to infinity.

        There ``|w|^k <= 1 + e^{k Re u}`` for ``k >= 0``, and ``|w| >= (1-q) m`` for ``k < 0``,
        where m is 1 for ``|Im u| <= pi/2`` or ``v > 1``, 1 - e^v for ``v < -1``, and else
        sin |Im u|, with v the real part of ``u + ln(q/(1-q))``. To the right of an end with
        ``v > 1``, arg w exceeds ``Im u - 2 e^-v``; and ``|arg w(-x)| < 2 e^v`` where ``v < -1``.
        No horizontal meets the points above a zero of w: ``|Im u| < pi``, or v is beyond 0.
        """
        total = arb(0)
        for end, side in [(last, 1)] if self.start is not None else [(last, 1), (first, -1)]:
            x, height = side * end.real, abs(end.imag)
            angle, terms, gain = height * self.inverse, [(arb(0), height**2 / 2)], arb(0)
            for power, way in zip(self.powers(arb(c)), (side, -side), strict=True):
                v = way * x * self.inverse - self.shift + self.log_odds
                beyond = v > 1 if way > 0 else v < -1
                if not (beyond or angle < 3.14):
                    return arb("inf")
                if power >= 0:
                    cases = [(arb(0), arb(0)), (way * power * self.inverse, -power * self.shift)]
                else:
                    thin = arb(1) if beyond or angle < 1.57 else angle.sin()
                    thin = 1 - v.exp() if beyond and way < 0 else thin
                    cases = [(arb(0), power * ((1 - self.q) * thin).log())]
                terms = [(a + d, b + e) for a, b in terms for d, e in cases]
                if way > 0:
                    gain += angle - 2 * (-v).exp() if beyond else arb("-inf")
                elif self.way == "replace":
                    gain -= 2 * v.exp() if beyond else arb("inf")
            saved = y * gain if side > 0 and y > 0 and gain > 0 else arb(0)
            for a, b in terms:
                total += (b - saved + a * a / 2).exp() * normal_tail(x - a)
        return total.upper() if total.is_finite() else arb("inf")


class SampledLaplace:
    """Laplace noise in [0, 1]: ``w = 1 - q + q e^{(2x-1)/b}``, ``p = e^{-x/b}/2b``."""

    def __init__(self, rate: Fraction, scale: Fraction, way: str) -> None:
        self.q: Ball = ball(rate)
        self.b: Ball = ball(scale)
        self.way: str = way

    def at(self, x: Ball) -> tuple[Ball, Ball]:
        """Return the logarithm of the density, and the loss; Im L is as with Gaussian noise."""
        u = (2 * x - 1) / self.b
        log_w = (
            (1 - self.q + self.q * u.exp()).log(True) if abs(u.imag) < arb.pi() else acb(arb.nan())
        )
        log_p = -x / self.b - (2 * self.b).log()
        return (log_p + log_w, log_w) if self.way == "remove" else (log_p, -log_w)

    def path(self, box: Box, digits: float) -> list[Arc]:
        """Return the parabola through 0 and 1 where ``|p e^{zL}|`` is about least: a guess."""
        z = acb((box.left + box.right) / 2, max(box.low, 0.0))
        most = (1 if self.way == "remove" else -1) * min(4.0, 4 * float(self.b))
        bows = [0.0] + [most / 2**k for k in range(12)] if box.low > 0 else [0.0]
        return [
            min((self.parabola(acb(0, bow)) for bow in bows), key=lambda arc: self.size(arc, z))
        ]

    def parabola(self, bow: Ball) -> Arc:
        return Arc(1.0, lambda t: t + bow * t * (1 - t), lambda t: 1 + bow * (1 - 2 * t))

    def size(self, arc: Arc, z: Ball) -> float:
        """Return about the integral of ``|p e^{zL}|``."""
        total = 0.0
        for k in range(16):
            t = acb((k + 0.5) / 16)
            log_p, loss = self.at(arc.x(t))
            total += middle((log_p + z * loss).real.exp() * abs(arc.slope(t)))
        return total if math.isfinite(total) else math.inf

    def rest(self, c: float, y: float, first: Ball, last: Ball) -> Ball:
        """Return 0: the path covers all."""
        return arb(0)


class Quadrature:
    """Nodes of x for the M and the B of a loss, with a bound of their error for all z of a box."""

    def __init__(self, loss: DensityLoss, box: Box, bits: float) -> None:
        self.atoms: AtomicLoss = AtomicLoss(loss.atoms)
        self.error: Ball = arb(0)
        self.nodes: list[tuple[Ball, Ball, Ball]] = []
        for density in loss.densities:
            self.add(density, box, bits + 3)
        self.error = self.error.upper()

    def add(self, density: SampledGaussian | SampledLaplace, box: Box, bits: float) -> None:
        """Cover a path with panels, each with the points that bring its error below a goal."""
        arcs, corners = density.path(box, bits * LN2), [acb(*corner) for corner in box.corners()]

        def integrand(arc: Arc, t: Ball) -> tuple[Ball, Ball]:
            log_p, loss = density.at(arc.x(t))
            return log_p + arc.slope(t).log(True), loss

        todo = [
            (arc, arc.stop * k / 16, arc.stop * (k + 1) / 16) for arc in arcs for k in range(16)
        ]
        samples = [integrand(arc, acb((a + b) / 2)) for arc, a, b in todo]
        peaks = (max(middle((p + z * loss).real) for p, loss in samples) for z in corners)
        goal = min(peaks) - bits * LN2
        if not math.isfinite(goal):
            raise NotCovered(NO_PATH)
        for _ in range(MOST_PANELS):
            if not todo:
                break
            arc, a, b = todo.pop()
            half, centre = (b - a) / 2, (a + b) / 2
            if half < 1e-12 * (1 + abs(a)):
                raise NotCovered(NO_PATH)
            log_p, loss = integrand(arc, ellipse(a, b))
            tops = [(log_p + z * loss).real.exp().upper() for z in corners]
            top = max(tops) if all(each.is_finite() for each in tops) else arb("inf")
            n = points_needed(top, half, goal)
            if n > many(bits):
                todo += [(arc, a, centre), (arc, centre, b)]
            elif top * half * 150 < arb(goal).exp():
                self.error += 2 * top * arb(half, 1e-9 * half)
            else:
                self.error += gauss_error(top, half, int(n))
                width = (arb(b) - arb(a)) / 2
                for x, weight in rule(int(n), ctx.prec):
                    self.nodes.append(
                        (*integrand(arc, acb(arb(a) + width * (1 + x))), weight * width)
                    )
        else:
            raise NotCovered(NO_PATH)
        ends = arcs[0].x(acb(0)), arcs[-1].x(acb(arcs[-1].stop))
        self.error += max(density.rest(*corner, *ends) for corner in box.corners())

    def moment(self, z: Ball) -> Ball:
        total = within(self.error) + self.atoms.moment(z)
        for log_p, loss, weight in self.nodes:
            total += (log_p + z * loss).exp() * weight
        return total

    def bound(self, c: float, y: float) -> Ball:
        total, real, imaginary = self.error + self.atoms.bound(c, y), arb(c), arb(y)
        for log_p, loss, weight in self.nodes:
            total += (log_p.real + real * loss.real - imaginary * loss.imag).exp() * weight
        return total
