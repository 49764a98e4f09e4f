"""Oracle: delta(epsilon) of Poisson-subsampled Gaussians by Levy inversion at high precision.

The loss of one step is L = ln(1 - q + q e^t), t = (2x - 1) / (2 s^2), with A = N(0, s^2) and
M = (1 - q) A + q N(1, s^2). "remove" is (P, Q) = (M, A), with loss L; "add" is (A, M), with loss
-L. S is the sum of T losses. Gil-Pelaez for the tail under P and Bromwich on Re z = 1 for the tail
under Q, where the transform of Q is the characteristic function phi of P, give

    P[S > e]       = 1/2 + (1/pi) Int_0^inf Re[phi(y)^T exp(-i y e) / (i y)] dy,
    e^e Q[S > e]   =       (1/pi) Int_0^inf Re[phi(y)^T exp(-i y e) / (1 + i y)] dy,

and delta is their difference. `two_tails` inverts the characteristic function of Q instead.

How each integral is done, none of it shared with the library:

* phi(y): the x line is moved to Im t = tau > 0, where |exp(i y L)| <= 1 for every y >= 0 and the
  oscillation at large losses dies out. The integrand is analytic and bounded for 0 < Im t < 2 tau,
  so the rule's error is below exp(-2 pi v / h + 2 v^2), v = tau s, whatever y is.
* exp(i y L) is carried in fixed point from panel to panel of y: the nodes of [2a, 2b] are twice
  those of [a, b], so a squaring moves up an octave.
* The y integral: Legendre series of phi^T on each panel, bisected until the series ends below the
  tolerance, against exp(-i y e) in closed form (spherical Bessel functions).

Every answer is computed twice, at two precisions and on different panels and steps, and
`LevyError` is raised unless the two agree. The parameters are read as the exact binary numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from mpmath import mp

from tests.oracles.onestep import Piece, Plan, layout_of, pieces, renyi_epsilon, scales_of
from tests.oracles.panels import Fixed, Real, Rule, bessel, complexes, exact, fix, rule_of, unfix

__all__ = ["Direction", "LevyError", "Plan", "deltas", "epsilons", "renyi_epsilon", "two_tails"]

Direction = Literal["remove", "add"]
Kernel = Literal["delta", "tail"]

AGREE = 22  # decimal digits of delta that the two runs must share
_GUARD = 25  # relative digits of delta that each run aims at


class LevyError(ArithmeticError):
    """The two runs disagree, or a panel could not be resolved."""


# ---- the y integral ------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """Legendre series of one panel, with exp(i y turn) taken out: ready for any epsilon."""

    middle: Real
    half: Real
    turn: Real
    coefficients: list[Real]


@dataclass(frozen=True)
class Start:
    """Node values of the panel at y = 0, where 1/y is met only together with exp(-i y e)."""

    y: list[Real]
    values: list[Real]


class Transform:
    """Int_0^inf Re[phi(y)^T exp(-i y e) k(y)] dy for one direction, any e."""

    def __init__(
        self, plan: Plan, *, under: str, sign: int, kernel: Kernel, rule: Rule, tol: Real
    ) -> None:
        self._plan, self._under, self._sign, self._kernel = plan, under, sign, kernel
        self._rule, self._tol = rule, tol
        base = mp.log(1 - plan.exact[0]) if plan.rate <= 0.5 else mp.mpf(0)
        self.centre = sign * plan.steps * base
        self._panels: list[Panel] = []
        self._start: list[Start] = []
        self._quiet = 0

    @property
    def done(self) -> bool:
        """Whether the last octave was below the tolerance throughout."""
        return self._quiet >= 4

    def add(self, piece: Piece, reach: Real) -> None:
        """Take the next panel; reach bounds |e| and sizes the panel at 0."""
        re, im = piece.under[self._under]
        im = im if self._sign > 0 else -im
        self._take(piece.a, piece.b, re, im, reach, 0)

    def _take(self, a: Real, b: Real, re: Fixed, im: Fixed, reach: Real, depth: int) -> None:
        """Keep the panel if its series ends below the tolerance, else its two halves."""
        if depth > 30:
            raise LevyError("a panel could not be resolved")
        bits, nodes = self._rule.bits, self._rule.nodes
        half, middle = (b - a) / 2, (a + b) / 2
        phi = complexes(re, im, bits)
        y = [middle + half * x for x in nodes]
        powers = [mp.exp(self._plan.steps * mp.log(g)) if g else mp.mpc(0) for g in phi]
        if a == 0:
            kept = self._keep_start(Start(y, powers), half, reach)
        else:
            kept = self._keep(y, powers, phi, middle, half)
        if not kept:
            gain = max((abs(p / g) for p, g in zip(powers, phi, strict=True) if g), default=0)
            gain *= half * abs(self._factor(a)) if a else 1
            tail = self._tail(re) + self._tail(im)
            if self._plan.steps * gain * tail > self._tol / 100:
                raise LevyError("phi is not resolved on a panel")
            for side, (lo, hi) in enumerate(((a, middle), (middle, b))):
                inner = self._rule.halves[side]
                r, i = inner.dot(re) >> bits, inner.dot(im) >> bits
                self._take(lo, hi, r, i, reach, depth + 1)

    def _tail(self, values: Fixed) -> Real:
        """Size of the last Legendre coefficients of fixed-point node values."""
        bits = self._rule.bits
        return max(abs(unfix(c, bits)) for c in self._rule.series[-4:].dot(values) >> bits)

    def _keep_start(self, start: Start, half: Real, reach: Real) -> bool:
        """Keep the panel at 0 if its integrand is resolved at both ends of the range of e."""
        if any(self._from_start(start, half, e) is None for e in (mp.mpf(0), reach)):
            return False
        self._start = [start]
        self._half = half
        return True

    def _keep(
        self, y: list[Real], powers: list[Real], phi: list[Real], middle: Real, half: Real
    ) -> bool:
        """Keep a panel away from 0 if resolved."""
        size = max(abs(p) for p in powers) * half * abs(self._factor(y[0]))
        if size < self._tol / 100:
            self._quiet += 1
            return True
        self._quiet = 0
        m = len(y) // 2
        slope = mp.arg(phi[m] / phi[m - 1]) / (y[m] - y[m - 1])
        turn = self._plan.steps * slope
        values = [
            half * p * mp.expj(-v * turn) * self._factor(v) for p, v in zip(powers, y, strict=True)
        ]
        coefficients = self._series(values)
        if max(abs(c) for c in coefficients[-4:]) > self._tol / 100:
            return False
        while len(coefficients) > 3 and abs(coefficients[-1]) < self._tol / 10**6:
            coefficients.pop()
        self._panels.append(Panel(middle, half, turn, coefficients))
        return True

    def _series(self, values: list[Real]) -> list[Real]:
        """Legendre coefficients of node values."""
        bits, matrix = self._rule.bits, self._rule.series
        re = matrix.dot(fix([v.real for v in values], bits)) >> bits
        im = matrix.dot(fix([v.imag for v in values], bits)) >> bits
        return complexes(re, im, bits)

    def _factor(self, y: Real) -> Real:
        """The kernel k(y): 1/(iy) for a tail; minus 1/(1 + iy) more for delta."""
        return 1 / mp.mpc(0, y) if self._kernel == "tail" else 1 / mp.mpc(-y * y, y)

    def _from_start(self, start: Start, half: Real, e: Real) -> Real | None:
        """The panel at 0 for this e, or None if its series does not end in time."""
        values = [
            half * (p * mp.expj(-v * (e - self.centre)) * self._factor(v)).real
            for p, v in zip(start.values, start.y, strict=True)
        ]
        if self._tail(fix(values, self._rule.bits)) > self._tol / 100:
            return None
        return mp.fsum(w * v for w, v in zip(self._rule.weights, values, strict=True))

    def at(self, e: Real) -> Real:
        """1/2 + (1/pi) times the integral."""
        total = self._from_start(self._start[0], self._half, e)
        if total is None:
            raise LevyError("the panel at 0 is not resolved")
        for panel in self._panels:
            rate = e - self.centre - panel.turn
            j = bessel(len(panel.coefficients), panel.half * rate, mp.dps)
            c = panel.coefficients
            parts = [mp.fdot(c[r::4], j[r::4]) for r in range(4)]
            value = (parts[0] - parts[2]) - 1j * (parts[1] - parts[3])
            total += 2 * (mp.expj(-panel.middle * rate) * value).real
        return mp.mpf(1) / 2 + total / mp.pi


# ---- answers -------------------------------------------------------------------------------

_PAIRS: dict[Direction, tuple[tuple[str, int], tuple[str, int]]] = {
    "remove": (("M", 1), ("A", 1)),
    "add": (("A", -1), ("M", -1)),
}


@dataclass(frozen=True)
class Run:
    """Transforms ready to be read at any e, at one precision."""

    dps: int
    transforms: tuple[Transform, ...]

    def at(self, e: Real) -> list[Real]:
        """Every transform at e."""
        with mp.workdps(self.dps):
            return [t.at(e) for t in self.transforms]


def _run(
    plan: Plan, wanted: list[tuple[str, int, Kernel]], *, top: float, digits: float, second: bool
) -> Run:
    """Fill transforms of (measure, sign, kernel) from one pass over the panels; top bounds e."""
    scales = scales_of(plan, digits)
    for parts in (2, 4, 8) if digits < 120 else (4, 8):
        layout = layout_of(plan, scales, digits, second=second, parts=parts)
        rule = rule_of(layout.nodes, layout.dps)
        with mp.workdps(layout.dps):
            tol = mp.mpf(10) ** -(digits + (6 if second else 0))
            ready = tuple(
                Transform(plan, under=u, sign=s, kernel=k, rule=rule, tol=tol) for u, s, k in wanted
            )
            try:
                _fill(ready, pieces(plan, layout, rule), mp.mpf(top), mp.mpf(10) ** layout.spare)
            except LevyError:
                continue
            return Run(layout.dps, ready)
    raise LevyError(f"not resolved: {plan}")


def _fill(ready: tuple[Transform, ...], pieces: Iterator[Piece], top: Real, limit: Real) -> None:
    """Feed panels until every transform has died out."""
    for piece in pieces:
        for transform in ready:
            if not transform.done:
                transform.add(piece, top)
        if all(t.done for t in ready):
            return
        if piece.b > limit:
            raise LevyError("phi does not decay within the working precision")


def _agreed(first: Real, second: Real, what: str, least: Real = 0) -> None:
    """Raise unless both numbers share AGREE digits, counted from `least` at least."""
    if not abs(first - second) <= max(abs(second), least) * mp.mpf(10) ** -AGREE:
        raise LevyError(f"the two runs disagree on {what}: {first} and {second}")


def deltas(plan: Plan, epsilon: float | Fraction, least: float) -> dict[Direction, Real]:
    """delta(epsilon) of both directions, to 22 digits; below `least`, to 22 digits of that."""
    wanted: list[tuple[str, int, Kernel]] = [(*_PAIRS[d][0], "delta") for d in _PAIRS]
    digits = _GUARD - math.log10(least)
    out: dict[Direction, Real] = {}
    one, two = (
        _run(plan, wanted, top=float(epsilon), digits=digits, second=k) for k in (False, True)
    )
    with mp.workdps(two.dps):
        e = exact(epsilon)
        for direction, a, b in zip(_PAIRS, one.at(e), two.at(e), strict=True):
            _agreed(a, b, f"delta, {direction}", exact(least))
            out[direction] = b
    return out


def two_tails(plan: Plan, epsilon: float | Fraction, least: float) -> dict[Direction, Real]:
    """delta = P[S > e] - exp(e) Q[S > e], each tail from its own characteristic function."""
    wanted: list[tuple[str, int, Kernel]] = [(*m, "tail") for d in _PAIRS for m in _PAIRS[d]]
    top = float(epsilon)
    digits = _GUARD - math.log10(least) + top / math.log(10)
    run = _run(plan, wanted, top=top, digits=digits, second=False)
    with mp.workdps(run.dps):
        e = exact(epsilon)
        tails = run.at(e)
        return {d: tails[2 * i] - mp.exp(e) * tails[2 * i + 1] for i, d in enumerate(_PAIRS)}


def epsilons(
    plan: Plan, delta: float | Fraction, directions: tuple[Direction, ...] = ("remove", "add")
) -> dict[Direction, Real]:
    """epsilon at delta, per direction, to 21 digits; 0 where delta(0) <= delta."""
    wanted: list[tuple[str, int, Kernel]] = [(*_PAIRS[d][0], "delta") for d in directions]
    log_delta = math.log(Fraction(delta).numerator) - math.log(Fraction(delta).denominator)
    top = renyi_epsilon(plan, log_delta)
    digits = _GUARD - log_delta / math.log(10)
    one, two = (_run(plan, wanted, top=top, digits=digits, second=k) for k in (False, True))
    out: dict[Direction, Real] = {}
    for i, direction in enumerate(directions):
        with mp.workdps(two.dps):
            out[direction] = _root(one, two, i, exact(delta), mp.mpf(top))
    return out


def _root(one: Run, two: Run, index: int, delta: Real, top: Real) -> Real:
    """The root of ln delta(e) - ln delta in [0, top] by the first run, confirmed by the second."""

    def read(run: Run, e: Real) -> Real:
        with mp.workdps(run.dps):
            return run.transforms[index].at(e)

    def excess(e: Real) -> Real:
        return mp.log(max(read(one, e), delta * delta) / delta)

    zero = read(two, mp.mpf(0))
    if zero <= delta:
        if zero > delta * (1 - mp.mpf(10) ** -AGREE):
            raise LevyError("delta(0) and delta are too close to tell apart")
        return mp.mpf(0)
    low, high = mp.mpf(0), top
    f_low, f_high = excess(low), excess(high)
    if not f_low > 0 > f_high:
        raise LevyError("no bracket for epsilon")
    aim = mp.mpf(10) ** -(AGREE + 2)
    a, fa, b, fb = low, f_low, high, f_high
    for _ in range(200):
        e = b - fb * (b - a) / (fb - fa) if fa != fb else (low + high) / 2
        if not low < e < high:
            e = (low + high) / 2
        f = excess(e)
        low, high = (e, high) if f > 0 else (low, e)
        a, fa, b, fb = b, fb, e, f
        if abs(b - a) <= aim * abs(b) or f == 0:
            break
    else:
        raise LevyError("the root did not settle")
    _agreed(read(one, e), read(two, e), "delta at the root")
    margin = e * mp.mpf(10) ** (1 - AGREE)
    if not read(two, e - margin) > delta > read(two, e + margin):
        raise LevyError("the second run moves the root")
    return e
