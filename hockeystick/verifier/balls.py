"""The argument: delta of a composition as a ball, from the losses of its runs.

1.  ``epsilon <= u`` says ``delta(u) <= delta``, and ``epsilon >= l`` says ``delta(l) >= delta``
    (`claims`); the delta of a plan is the larger one of two directions, in each of which the runs
    compose (`judged`).
2.  For a pair (P, Q) with the loss ``L = ln dP/dQ`` let ``M(z) = E_P e^{zL}``. Independent runs
    multiply M (`product`). Since ``(1 - e^-t)_+ = 1/(2 pi i) int e^{tz} / (z (z+1)) dz`` over any
    line ``Re z = c > 0``, Fubini gives (`Kernel`)

        delta(epsilon) = failure + 1/(2 pi i) int M(z) e^{-epsilon z} / (z (z+1)) dz

    and, for losses on a lattice of span d, the same over ``|Im z| <= pi/d`` (`LatticeKernel`).
3.  The integrand is analytic but at 0 and -1 and conjugate below the real axis, so the line may be
    bent into segments above the axis and a vertical half-line from ``c + iY`` on (`integral`).
4.  n points of Gauss and Legendre miss the integral over a segment by at most
    ``64/15 T rho^(2-2n) / (1 - rho^-2)`` half lengths, T being the largest size of the integrand on
    the ellipse with the segment's ends as foci and half axes that add up to rho half lengths
    (Trefethen 2013, theorem 19.3; `gauss_error`).
5.  M is an integral over x as well, along any path to which Cauchy's theorem lets it be moved. On a
    path with ``Im L >= 0``, ``|M(c + iy)| <= B(c, y) = int |p e^{zL}| |dx|``, which falls with y
    and is log-convex in c: two corners bound it on a box of z (`log_bound`), and the half-line adds
    at most ``B(c, Y) e^{-epsilon c} / Y`` (`Kernel.beyond`).
6.  M and B are found as in 4, panel by panel (`Quadrature`). There T comes from one ball that holds
    the ellipse, finite only if the integrand is analytic on it; being the exponential of a linear
    function of z, it is bounded on a box by the corners; |f| is continued to complex t by
    ``sqrt(f(t) conj f(conj t))``, at most the larger of |f| at both. Beyond both ends of the path
    normal tails bound it (`SampledGaussian.rest`).

A few runs of Laplace noise have an integrand that decays slowly, and a finite sum instead of it
(`laplace_sum`).

Paths, segments, numbers of points and precision are found by trial in floating point: a bad choice
makes a ball wide or the search long, but no choice makes a ball wrong.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from flint import acb, arb, arb_poly, ctx

Ball: TypeAlias = Any  # a real number (arb) or a complex one (acb)
Losses: TypeAlias = Sequence[tuple[Any, int]]  # of one run each, and how often it runs

RHO: Final = 2.6  # any number above 1 is right
MOST_SEGMENTS: Final = 80
MOST_PANELS: Final = 1000
LN2: Final = math.log(2)
NO_PATH: Final = "no path was found on which a moment generating function is integrated easily"


class NotCovered(Exception):  # noqa: N818 - it is no error
    """An answer of a known form that cannot be judged here."""


# Quadrature


@cache
def rule(n: int, bits: int) -> list[tuple[Ball, Ball]]:
    """Return nodes on [-1, 1] and weights of Gauss and Legendre's rule of n points."""
    return [arb.legendre_p_root(n, k, weight=True) for k in range(n)]


def ellipse(a: complex, b: complex) -> Ball:
    """Return a ball that holds the ellipse of 4 about the segment from a to b."""
    half, centre = (b - a) / 2, (a + b) / 2
    long, short, axis = RHO + 1 / RHO, RHO - 1 / RHO, half / 2 * (1 + 1e-9)
    rounding = 1e-15 * (abs(a) + abs(b))
    width = math.hypot(long * axis.real, short * axis.imag) + rounding
    height = math.hypot(long * axis.imag, short * axis.real) + rounding
    return acb(arb(centre.real, width), arb(centre.imag, height))


def points_needed(top: Ball, half: float, log_goal: float) -> float:
    """Return how many points bring the bound of 4 below a goal."""
    log_top = float(top.log()) if top > 0 else -1e9
    return (
        max(2, math.ceil((log_top + math.log(half) + 3.5 - log_goal) / (2 * math.log(RHO))))
        if log_top < 1e9
        else math.inf
    )


def many(bits: float) -> float:
    """Return from how many points on two shorter segments take less time."""
    return 8 + bits / 2


def gauss_error(top: Ball, half: float, n: int) -> Ball:
    """Return the bound of 4."""
    rho = arb(RHO)
    return (
        arb(64) / 15 * top * rho ** (2 - 2 * n) / (1 - rho**-2) * arb(half, 1e-9 * half)
    ).upper()


def within(radius: Ball) -> Ball:
    """Return a ball around 0 that holds all complex numbers up to a size."""
    return acb(arb(0, radius), arb(0, radius))


def normal_tail(x: Ball) -> Ball:
    """Return the probability that a standard normal exceeds x."""
    return (x / arb(2).sqrt()).erfc() / 2


def ball(value: Fraction) -> Ball:
    """Return a ball around a fraction."""
    return arb(value.numerator) / arb(value.denominator)


def point(z: complex) -> Ball:
    """Return a floating-point number exactly."""
    return acb(z.real, z.imag)


def middle(value: Ball) -> float:
    """Return the floating-point number in the middle of a ball."""
    return float(value.mid())


class Box(NamedTuple):
    """The z = c + iy with ``left <= c <= right`` and ``low <= y <= high``."""

    left: float
    right: float
    low: float
    high: float

    def corners(self) -> list[tuple[float, float]]:
        """Return its corners."""
        return [(c, y) for c in {self.left, self.right} for y in {self.low, self.high}]


# Losses of one run: `on(box, bits)` returns what has `moment(z)`, M, and `bound(c, y)`, B, for z of
# the box.


@dataclass(frozen=True)
class GaussianLoss:
    """``N(mu, 1)`` against ``N(0, 1)``: ``M(z) = e^{mu^2 z(z+1)/2}``."""

    mu: Fraction

    def on(self, box: Box, bits: float) -> GaussianLoss:
        """Return itself."""
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
        """Return itself."""
        return self

    def moment(self, z: Ball) -> Ball:
        """Return M(z)."""
        return sum(
            (mass * (z * loss).exp() for mass, loss in self.atoms), within(self.rest(z.real))
        )

    def bound(self, c: float, y: float) -> Ball:
        """Return M(c)."""
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
        self.q, self.s, self.way, self.start = ball(rate), ball(noise), way, start
        self.inverse, self.shift, self.log_q = 1 / self.s, 1 / (2 * self.s**2), self.q.log()
        self.log_odds, self.against = (self.q / (1 - self.q)).log(), (1 - self.q) / self.q
        self.log_norm = (2 * arb.pi()).log() / 2

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
        self.q, self.b, self.way = ball(rate), ball(scale), way

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
        """Return a path from 0 to 1."""
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
        self.atoms, self.error = AtomicLoss(loss.atoms), arb(0)
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
        """Return M(z), for a z of the box."""
        total = within(self.error) + self.atoms.moment(z)
        for log_p, loss, weight in self.nodes:
            total += (log_p + z * loss).exp() * weight
        return total

    def bound(self, c: float, y: float) -> Ball:
        """Return B(c, y), for a c + iy of the box."""
        total, real, imaginary = self.error + self.atoms.bound(c, y), arb(c), arb(y)
        for log_p, loss, weight in self.nodes:
            total += (log_p.real + real * loss.real - imaginary * loss.imag).exp() * weight
        return total


# The integral over z


class Kernel(NamedTuple):
    """``e^{-epsilon z} / (z (z+1))``, by which M is multiplied."""

    epsilon: Fraction
    stop: float = math.inf

    @property
    def rate(self) -> Ball:
        """Return epsilon."""
        return ball(self.epsilon)

    def factor(self, z: Ball) -> Ball:
        """Return what ``e^{-rate z}`` is multiplied by."""
        return 1 / (z * (z + 1))

    def end(self, far: complex) -> Ball:
        """Return where a segment ends."""
        return point(far)

    def beyond(self, z: complex) -> Ball:
        """Return a bound of the integral of ``|factor|`` from z upwards."""
        return 1 / arb(z.imag)


class LatticeKernel(NamedTuple):
    """``d sum e^{-s z} (1 - e^{epsilon - s})`` over the sums ``s = least + d k`` above epsilon."""

    epsilon: Fraction
    span: Fraction
    least: Fraction

    @property
    def stop(self) -> float:
        """Return pi/d, rounded."""
        return math.pi / float(self.span)

    @property
    def rate(self) -> Ball:
        """Return the least sum above epsilon."""
        return ball(self.least)

    def factor(self, z: Ball) -> Ball:
        """Return what ``e^{-rate z}`` is multiplied by."""
        d, ratio = ball(self.span), ball(self.epsilon - self.least).exp()
        return d / (1 - (-d * z).exp()) - d * ratio / (1 - (-d * (z + 1)).exp())

    def end(self, far: complex) -> Ball:
        """Return where a segment ends, the last one in a ball around pi/d."""
        return acb(far.real, arb.pi() / ball(self.span)) if self.beyond(far) == 0 else point(far)

    def beyond(self, z: complex) -> Ball:
        """Return 0 for the end of the last segment."""
        return arb(0) if z.imag > self.stop * (1 - 1e-15) else arb("inf")


AnyKernel: TypeAlias = Kernel | LatticeKernel


def laplace_sum(scale: Fraction, count: int, epsilon: Fraction) -> Ball:
    """Return delta of Laplace noise that is added count times, by the theorem of residues.

    With ``a = 1/scale``, ``(2z+1) M(z) = (z+1) e^{az} + z e^{-a(z+1)}``. In the binomial sum for
    ``M^count``, the term of k has the exponent ``z t`` with ``t = (count - 2k) a - epsilon``. The
    line closes to the right where ``t <= 0``, around nothing, and to the left where ``t > 0``,
    around -1/2 and, for k = 0, around 0, where the residue is 1.
    """
    total, half = arb(0), arb(1) / 2
    for k in range(count + 1):
        t = (count - 2 * k) / scale - epsilon
        if t <= 0:
            break
        series = [(-ball(t) / 2).exp()]  # e^{zt} in powers of z + 1/2
        for j in range(1, count):
            series.append(series[-1] * ball(t) / j)
        term = arb_poly(series)
        for pole, power in ((half, count - k - 1), (-half, k - 1)):
            inverse = [-(arb(2) ** (j + 1)) for j in range(count)]  # 1/z
            term *= arb_poly([pole, 1]) ** power if power >= 0 else arb_poly(inverse)
        weight = math.comb(count, k) * (-k / ball(scale)).exp() / arb(2) ** count
        total += weight * term[count - 1] + (1 if k == 0 else 0)
    return total


def near(losses: Losses, box: Box, bits: float) -> Losses:
    """Return what evaluates each loss on a box, to more digits if it runs often, or nothing."""
    try:
        return [(loss.on(box, bits + math.log2(count)), count) for loss, count in losses]
    except NotCovered:
        return []


def product(losses: Losses, z: Ball) -> Ball:
    """Return M of all runs."""
    value = acb(1)
    for loss, count in losses:
        value *= loss.moment(z) ** count
    return value


def log_bound(losses: Losses, kernel: AnyKernel, c: float, y: float) -> Ball:
    """Return ln of ``B(c, y) e^{-rate c}`` of all runs, which is convex in c."""
    return sum((count * loss.bound(c, y).log() for loss, count in losses), -kernel.rate * c)


def saddle(losses: Losses, kernel: AnyKernel, enough: float = -math.inf) -> tuple[float, float]:
    """Return a c > 0 where the integrand is about least, and ln of it there.

    The search ends early where c times the integrand is below ``e^enough``.
    """

    def height(log_c: float) -> float:
        c = math.exp(log_c)
        parts = near(losses, Box(c, c, 0.0, 0.0), 8)
        if not parts:
            return math.inf
        return middle(log_bound(parts, kernel, c, 0.0) + kernel.factor(arb(c)).log())

    at, step, here = 0.5, 1.0, height(0.5)
    while step > 0.08 and here + at > enough:
        for there in (at + step, at - step):
            if abs(there) < 20 and (value := height(there)) < here:
                at, here = there, value
                break
        else:
            step /= 2
    if not math.isfinite(here):
        raise NotCovered("no line was found to integrate along")
    if here + at > enough:  # to the left, rare losses disturb the integrand less
        heights = [(at - step, height(at - step)) for step in (0.5, 0.4, 0.3, 0.2, 0.1, 0.0)]
        at, here = next(pair for pair in heights if pair[1] < here + 4.5)
    return math.exp(at), here


class Segment(NamedTuple):
    """Where a segment ends, what evaluates the losses about it, points, and errors by 4 and 5."""

    end: complex
    losses: Losses
    points: int
    errors: list[Ball]


def segment(
    losses: Losses,
    kernels: Sequence[AnyKernel],
    at: complex,
    step: complex,
    bits: float,
    goal: float,
) -> Segment | None:
    """Return the longest segment from a point in a direction that few points integrate, if any."""
    while abs(step) > 1e-6 * abs(at):
        around = ellipse(at, at + step)
        left, right = float(around.real.lower()), float(around.real.upper())
        low, high = (max(float(end), 0.0) for end in (around.imag.lower(), around.imag.upper()))
        factors = [abs(kernel.factor(around)) for kernel in kernels]
        far = not all(factor.is_finite() for factor in factors)
        parts = [] if far else near(losses, Box(left, right, low, high), bits)
        sizes = [
            [log_bound(parts, kernel, c, low).upper() for c in (left, right)] for kernel in kernels
        ]
        if parts and all(size.is_finite() for ends in sizes for size in ends):
            tops = [
                (factor * max(ends).exp()).upper()
                for factor, ends in zip(factors, sizes, strict=True)
            ]
            n = max(points_needed(top, abs(step) / 2, goal) for top in tops)
            if n <= many(bits):
                errors = [gauss_error(top, abs(step) / 2, int(n)) for top in tops]
                return Segment(at + step, parts, int(n), errors)
        step *= 0.6
    return None


def turn(losses: Losses, kernel: AnyKernel, at: complex, length: float) -> complex:
    """Return in which direction what remains gets small fastest: a guess with few digits."""

    def remains(way: complex) -> float:
        z = at + way * length
        parts = near(losses, Box(z.real, z.real, z.imag, z.imag), 8)
        if not parts:
            return math.inf
        return middle(log_bound(parts, kernel, z.real, z.imag)) - 2 * math.log(z.imag)

    return min((cmath.rect(1, math.pi / 2 - angle) for angle in (0, 0.35, -0.35)), key=remains)


def integral(
    losses: Losses, kernels: Sequence[AnyKernel], c: float, bits: float, goal: float
) -> tuple[list[Ball], bool]:
    """Return a ball around ``1/(2 pi i) int M(z) kernel(z) dz`` for each kernel, up from c.

    The goal is about ln of its radius, and the bits are what it takes. Also whether the goal is
    reached; if not, no more bits help.
    """
    stop, enough = kernels[0].stop, (arb(goal) + math.log(c)).exp()
    totals, tails, at, way, length = [acb(0) for _ in kernels], [], complex(c), 1j, 0.7 * c
    for _ in range(MOST_SEGMENTS):
        part = segment(losses, kernels, at, way * min(length, stop - at.imag), bits, goal)
        if part is None:
            break
        half = (kernels[0].end(part.end) - point(at)) / 2
        for x, weight in rule(part.points, ctx.prec):
            z = point(at) + half * (1 + x)
            value = product(part.losses, z) * half * weight
            for k, kernel in enumerate(kernels):
                totals[k] += value * (-kernel.rate * z).exp() * kernel.factor(z)
        totals = [sum_ + within(error) for sum_, error in zip(totals, part.errors, strict=True)]
        length = abs(part.end - at) * (1.7 if part.points < 0.85 * many(bits) else 1.1)
        at = part.end
        tails = [
            (log_bound(part.losses, kernel, at.real, at.imag).exp() * kernel.beyond(at)).upper()
            for kernel in kernels
        ]
        if all(tail < enough for tail in tails):
            break
        if stop == math.inf:
            way = turn(losses, kernels[0], at, length)
    found = [
        (sum_ + within(tail)).imag / arb.pi() for sum_, tail in zip(totals, tails, strict=False)
    ]
    return found or [arb(0, "inf")] * len(kernels), all(tail < enough for tail in tails)
