"""The contour integral in arbitrary precision: the same line and nodes, summed by mpmath.

The bounds on aliasing, truncation and quadrature are the float ones, for as many digits as asked;
the arithmetic carries enough more that its round-off is below them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from hockeystick.accountants.base import Interval
from hockeystick.accountants.contour._far_outputs import AnalyticTerms, ContourTarget
from hockeystick.accountants.contour._integral import choose_contour, rules_for
from hockeystick.accountants.contour.search import integral_for_delta, integral_for_epsilon
from hockeystick.accountants.rdp import saddle
from hockeystick.numerics.multiprecision import mp, working_digits

if TYPE_CHECKING:
    from mpmath import mpc, mpf

    from hockeystick.results import Quantity


_LN_10: Final = math.log(10.0)
_ROUNDS: Final = 8
_NEWTON_STEPS: Final = 60
_MOST_CANCELLED_DIGITS: Final = 300.0
_MOST_WORK: Final = 5_000_000
_MOST_NODES: Final = 40_000


def digits_of(
    terms: AnalyticTerms, quantity: Quantity, value: float, digits: int
) -> Interval | None:
    """Return epsilon (at a delta) or delta (at an epsilon) to a number of digits, as mpf.

    None where the line for these digits takes too many nodes.
    """
    from hockeystick.precision.profiles import exact

    if quantity == "epsilon":
        log_delta = math.log(value)
        found = integral_for_delta(terms, log_delta)
        epsilon = math.nan if found is None else found.epsilon
    else:
        found = integral_for_epsilon(terms, value)
        epsilon = value
        log_delta = math.nan if found is None else found.integral.delta(value).log("estimate")
    if found is None:
        return None
    working = digits
    guard = 0
    for _ in range(_ROUNDS):
        target = ContourTarget(epsilon, log_delta, (working + 4) * _LN_10)
        contour = _MpmathContour.choose(terms, target, working + guard)
        if contour is None:
            return None
        with working_digits(working + guard + 10):
            if quantity == "epsilon":
                read = contour.epsilon(exact(value), mp.mpf(epsilon), working)
            else:
                read = contour.delta(exact(value))
            cancelled = math.ceil(read.cancelled) + 5
            if read.value <= 0 or cancelled > guard:
                guard = max(cancelled, guard + working if read.value <= 0 else 0)
                continue
            actual = float(mp.log(read.value))
            if actual < log_delta - 1.0 or abs(float(read.epsilon) - epsilon) * contour.c > 1.0:
                # The line was chosen for another epsilon than the answer.
                log_delta, epsilon = min(log_delta, actual), max(float(read.epsilon), 0.0)
                continue
            near, missing = _interval(read, quantity, working, digits)
            if missing <= 0:
                return near
            working += missing + 1
    return None


def _interval(
    read: _DeltaAt, quantity: Quantity, working: int, digits: int
) -> tuple[Interval, int]:
    error = mp.mpf(10) ** -(working + 2)
    if quantity == "delta":
        ends = (read.value * (1 - error), read.value, read.value * (1 + error))
        return Interval(*(min(end, mp.one) for end in ends)), 0
    slack = error * read.value / abs(read.derivative)
    near = Interval(*(max(read.epsilon + side * slack, mp.zero) for side in (-1, 0, 1)))
    # Near 0 an epsilon has fewer digits than the delta that it comes from.
    short = mp.log10(slack / near.estimate) + digits + 1 if near.estimate else mp.zero
    return near, max(math.ceil(short), 0)


class _DeltaAt(NamedTuple):
    """Delta at an epsilon, its derivative, and the digits that cancelled in the sum."""

    epsilon: mpf
    value: mpf
    derivative: mpf
    cancelled: float


class _MpmathContour:
    """The line, and K at its nodes, as mpmath numbers."""

    def __init__(self, c: float, points: list[mpc], values: list[mpc], step: mpf) -> None:
        self.c = c
        self._points = points
        self._values = values
        self._step = step

    @classmethod
    def choose(
        cls, terms: AnalyticTerms, target: ContourTarget, digits: int
    ) -> _MpmathContour | None:
        line = choose_contour(terms, saddle(terms, target.epsilon), target, _MOST_NODES)
        if line is None:
            return None
        rules = rules_for(terms, line, target)
        if rules is None or line.last * sum(rule.nodes for rule in rules) > _MOST_WORK:
            return None
        size = line.last + 1
        most = max(count for _, count in terms)
        with working_digits(digits + 25 + math.ceil(math.log10(most))):
            values = [mp.mpc(0)] * size
            for (_, count), rule in zip(terms, rules, strict=True):
                for k, value in enumerate(rule.reference_line(line.c, line.step, size)):
                    values[k] += count * value
            points = [mp.mpc(line.c, mp.mpf(line.step) * k) for k in range(size)]
            return cls(line.c, points, values, mp.mpf(line.step))

    def delta(self, epsilon: mpf) -> _DeltaAt:
        total = derivative = size = mp.zero
        for k, (z, value) in enumerate(zip(self._points, self._values, strict=True)):
            term = mp.exp(value - epsilon * z) / (z * (1 + z))
            share = mp.mpf(0.5) if k == 0 else 1
            total += share * term.real
            derivative -= share * (z * term).real
            size += abs(term)
        cancelled = float(mp.log10(size / abs(total))) if total else math.inf
        scale = self._step / mp.pi
        return _DeltaAt(
            epsilon, total * scale, derivative * scale, min(cancelled, _MOST_CANCELLED_DIGITS)
        )

    def epsilon(self, delta: mpf, guess: mpf, digits: int) -> _DeltaAt:
        """Return it where a delta is reached, by Newton's method on its logarithm.

        The root is that of the formula, which holds for negative epsilons too. It ends early where
        a sum is not positive.
        """
        goal = mp.log(delta)
        error = mp.mpf(10) ** -(digits + 5)
        read = self.delta(guess)
        for _ in range(_NEWTON_STEPS):
            if read.value <= 0 or read.derivative >= 0:
                return read._replace(value=mp.zero)
            move = (goal - mp.log(read.value)) * read.value / read.derivative
            if abs(move * read.derivative) < read.value * error:
                return read
            read = self.delta(read.epsilon + move)
        return read._replace(value=mp.zero)
