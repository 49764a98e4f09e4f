"""The contour integral along one line, with every error bounded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.contour._far_outputs import FarOutputs
from hockeystick.accountants.contour._line import (
    AnalyticTerms,
    ContourTarget,
    TailAndBulk,
    VerticalContour,
)
from hockeystick.numerics import ULP, Ball
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss import ContourRule, ContourValues, TailRule
from hockeystick.privacy_loss.core.atomic import complex_log1p
from hockeystick.privacy_loss.core.terms import total

Floats: TypeAlias = NDArray[np.float64]
Complexes: TypeAlias = NDArray[np.complex128]

_Rule = TypeVar("_Rule")

# Newton's steps before the root is bracketed, and the relative length of the last one.
_NEWTON_STEPS: Final = 8
_LAST_STEP: Final = 1e-12
# Overflow ends as an infinite error or nan, and both count as nothing proven.
_OVERFLOW_IGNORED: Final = partial(np.errstate, all="ignore")


class LogDelta(NamedTuple):
    """delta as ``exp(log_scale)`` times a proven interval with an estimate; its derivative."""

    log_scale: float
    lower: float
    estimate: float
    upper: float
    derivative: float

    @property
    def relative_error(self) -> float:
        """The larger distance of an end from the estimate, over the estimate; inf for no number."""
        if not (self.estimate > 0.0 and math.isfinite(self.lower) and math.isfinite(self.upper)):
            return math.inf
        return max(self.upper / self.estimate - 1.0, 1.0 - self.lower / self.estimate)

    def log(self, end: str) -> float:
        """Return ln of one end; -inf where it is not positive."""
        value = float(getattr(self, end))
        return self.log_scale + math.log(value) if value > 0.0 else -math.inf


@dataclass(frozen=True)
class Integral:
    """``delta(epsilon) = (1/pi) Int Re[exp(K(z) - epsilon z) / (z (1 + z))] dy`` along a line.

    At the nodes z, ``real + i imag`` is K, right to ``error``, and ``weight`` the factor of the
    exponential, right to ``weight_error``. ``cgf_above`` and ``cgf_below`` are K at the two orders
    of Chernoff's bound on the aliases. K is computed once; any epsilon near the one that the line
    was chosen for is then a short sum. The bounds hold for every epsilon; they are narrow near it.
    """

    line: VerticalContour
    weight: Complexes
    weight_error: Floats
    real: Floats
    imag: Floats
    error: Floats
    cgf_above: Ball
    cgf_below: Ball
    tails: TailAndBulk | None
    far: FarOutputs | None = None

    def delta(self, epsilon: float) -> LogDelta:
        """Return delta at an epsilon."""
        return self.each(epsilon)[0]

    def each(self, *epsilons: float) -> list[LogDelta]:
        """Return delta at each of some epsilons."""
        found = self.deltas(np.array(epsilons))
        return [LogDelta(*values) for values in zip(*map(np.ndarray.tolist, found), strict=True)]

    def deltas(self, epsilons: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return the fields of ``LogDelta`` at any number of epsilons, as arrays."""
        from hockeystick.kernels import contour_sums

        line = (self.line.c, self.line.step, self.line.truncation)
        values = self.weight, self.weight_error, self.real, self.imag, self.error
        found, growth = contour_sums.deltas(line, self._aliases, *values, epsilons)
        scale, lower, estimate, upper, derivative = found
        if self.tails is None and self.far is None:
            return scale, lower, estimate, upper, derivative
        with _OVERFLOW_IGNORED():
            # Bounds relative to the true |M(c)| become relative to the computed one.
            if self.tails is not None:
                bulk_delta = self.tails.log_bulk_delta(epsilons) - scale
                upper = upper + growth * np.exp(np.minimum(bulk_delta, 700.0))
            if self.far is not None:
                least, middle, most, change = self.far.deltas(epsilons, scale)
                rounding = 4.0 * ULP * (np.abs(estimate) + middle)
                lower = np.maximum(lower, 0.0) + least - rounding
                estimate = estimate + middle
                upper = upper + most + rounding
                derivative = derivative + change
        return scale, lower, estimate, upper, derivative

    def estimates(self, epsilons: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the scale, the estimate and the derivative alone, in a third of the time."""
        from hockeystick.kernels import contour_sums

        line = self.line.c, self.line.step
        values = self.weight, self.real, self.imag
        scale, estimate, derivative = contour_sums.estimates(line, *values, epsilons)
        if self.far is not None:
            with _OVERFLOW_IGNORED():
                _, middle, _, change = self.far.deltas(epsilons, scale)
                estimate, derivative = estimate + middle, derivative + change
        return scale, estimate, derivative

    @cached_property
    def _aliases(self) -> Floats:
        """The orders of Chernoff's bound, the upper ends of K there, and the gaps to the line.

        The aliases, ``sum delta(epsilon + m W) exp(m W c)``, are geometric series in the gaps.
        """
        line = self.line
        bounds = ((line.order_above, self.cgf_above), (line.order_below, self.cgf_below))
        return np.array(
            [(one, k.midpoint + k.radius, abs(one - line.c) * line.window) for one, k in bounds]
        )

    def epsilon_at(self, log_delta: float, guess: float) -> float:
        """Return the epsilon whose estimated delta is the given one, to the last digits."""
        from hockeystick.kernels import contour_sums

        if self.far is not None:
            return self._epsilon_beside(log_delta, guess)
        line = self.line.c, self.line.step
        values = self.weight, self.real, self.imag
        epsilon, is_found = contour_sums.epsilon_at(line, *values, log_delta, guess)
        return epsilon if is_found else self._epsilon_between(log_delta, guess)

    def _epsilon_beside(self, log_delta: float, guess: float) -> float:
        """Return the same where far outputs contribute."""
        epsilon = guess
        for _ in range(_NEWTON_STEPS):
            here = self.delta(epsilon)
            if not (here.estimate > 0.0 and here.derivative < 0.0):
                break
            step = (here.log("estimate") - log_delta) * here.estimate / -here.derivative
            epsilon += step
            if abs(step) <= _LAST_STEP * (abs(epsilon) + 1.0 / self.line.c):
                return epsilon
        return self._epsilon_between(log_delta, guess)

    def _epsilon_between(self, log_delta: float, guess: float) -> float:
        """Return the same by bracketing, from wherever the guess may be."""

        def log_excess(epsilon: float) -> float:
            value = self.delta(epsilon).log("estimate")
            return log_delta - value if value > -math.inf else 700.0

        c = self.line.c
        return increasing_root(
            log_excess, guess, stride=0.1 / c, tolerance=1e-16 * (guess + 1.0 / c)
        )


def integrate(
    terms: AnalyticTerms,
    line: VerticalContour,
    rules: Sequence[ContourRule],
    tails: TailAndBulk | None = None,
    tail_rules: Sequence[TailRule] = (),
) -> Integral:
    """Return the integral along a line by the rules of its losses."""
    with _OVERFLOW_IGNORED():
        return _integrate(terms, line, rules, tails, tail_rules)


def _integrate(
    terms: AnalyticTerms,
    line: VerticalContour,
    rules: Sequence[ContourRule],
    tails: TailAndBulk | None,
    tail_rules: Sequence[TailRule],
) -> Integral:
    """Return the integral; a value out of the range of floats makes its error infinite."""
    size = line.last + 1
    lines = [rule.line(line.c, line.step, size) for rule in rules]
    counts = np.array([float(count) for _, count in terms])
    real = counts @ np.array([values.real for values in lines])
    imag = counts @ np.array([values.imag for values in lines])
    error = counts @ np.array([values.error for values in lines])
    error += ULP * (len(terms) + 2.0) * (np.abs(real) + np.abs(imag))
    z = np.asarray(line.c + 1j * line.step * np.arange(size), dtype=np.complex128)
    weight: Complexes = line.step / math.pi / (z * (1.0 + z))
    weight[0] *= 0.5
    weight_error = np.zeros(size)
    if tails is not None:
        factor, factor_error = _with_tail(counts, lines, line, tail_rules)
        weight_error = np.abs(weight) * factor_error
        weight *= factor
    cgf_above = _real_cgf(terms, rules, line.order_above)
    cgf_below = _real_cgf(terms, rules, line.order_below)
    return Integral(line, weight, weight_error, real, imag, error, cgf_above, cgf_below, tails)


def _with_tail(
    counts: Floats,
    lines: Sequence[ContourValues],
    line: VerticalContour,
    tail_rules: Sequence[TailRule],
) -> tuple[Complexes, Floats]:
    """Return ``1 - prod (1 - J/M)^n`` along a line, and a bound on its error."""
    size = line.last + 1
    exponent = np.zeros(size, dtype=np.complex128)
    error = np.zeros(size)
    for count, values, rule in zip(counts, lines, tail_rules, strict=True):
        tail = rule.line(line.c, line.step, size)
        inverse = np.exp(np.minimum(tail.scale - values.real, 300.0) - 1j * values.imag)
        ratio = (tail.real + 1j * tail.imag) * inverse
        modulus, real, imag = complex_log1p(-ratio.real, -ratio.imag, 0.0)
        exponent += count * (real + 1j * imag)
        log_error = values.error + ULP * (16.0 + 4.0 * (np.abs(values.real) + abs(tail.scale)))
        relative = np.expm1(np.minimum(log_error, 700.0))
        ratio_error = tail.error * np.abs(inverse) * (1.0 + relative) + np.abs(ratio) * relative
        error += count * (1.01 * ratio_error / modulus + 8.0 * ULP * (np.abs(real) + np.abs(imag)))
    half = np.sin(0.5 * exponent.imag)
    growth = np.exp(exponent.real)
    factor = -(
        np.expm1(exponent.real) * np.cos(exponent.imag)
        - 2.0 * half * half
        + 1j * growth * np.sin(exponent.imag)
    )
    slack = growth * np.expm1(np.minimum(error, 700.0)) + 16.0 * ULP * np.abs(factor)
    return factor, slack


def rules_for(
    terms: AnalyticTerms, line: VerticalContour, target: ContourTarget
) -> list[ContourRule] | None:
    """Return the quadrature of each loss, fine enough for its count; None if one has none."""
    margin = _log_margin(terms, line, target)
    return _all(
        loss.rule(
            line.order_above,
            line.height,
            loss.cgf_estimate(line.c).value - margin - math.log(count),
        )
        for loss, count in terms
    )


def tail_rules_for(
    terms: AnalyticTerms, line: VerticalContour, target: ContourTarget, tails: TailAndBulk
) -> list[TailRule] | None:
    """Return the quadrature of each loss's tail, fine enough for its count, or None."""
    margin = _log_margin(terms, line, target)
    return _all(
        split.rule(line.c, line.height, loss.cgf_estimate(line.c).value - margin - math.log(count))
        for (split, count), (loss, _) in zip(tails.splits, terms, strict=True)
    )


def _all(rules: Iterable[_Rule | None]) -> list[_Rule] | None:
    """Return the rules as a list, or None if one is missing."""
    found = []
    for rule in rules:
        if rule is None:
            return None
        found.append(rule)
    return found


def _log_margin(terms: AnalyticTerms, line: VerticalContour, target: ContourTarget) -> float:
    """Return ln of M(c) over the error allowed in one loss's M.

    An error relative to M(c) counts relative to the integrand's size, which exceeds delta.
    """
    log_integrand = total(terms, line.c).value - target.epsilon * line.c - target.log_delta
    excess = log_integrand - math.log(line.c) - math.log1p(line.c)
    return target.accuracy + 4.0 + math.log(len(terms)) + max(excess, 0.0)


def _real_cgf(terms: AnalyticTerms, rules: Sequence[ContourRule], c: float) -> Ball:
    """Return the composition's K at a point of the real axis; at 0 it is 0."""
    if c == 0.0:
        return Ball(0.0, 0.0)
    value = error = 0.0
    for (_, count), rule in zip(terms, rules, strict=True):
        one = rule.line(c, 0.0, 1)
        value += count * float(one.real[0])
        error += count * float(one.error[0])
    return Ball(value, error)
