"""The contour integral in arbitrary precision: the same line and nodes, summed by mpmath.

The bounds on aliasing, truncation and quadrature are the float ones, drawn for as many digits as
asked; the arithmetic carries enough digits for its round-off not to count.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from hockeystick.accountants._interval import Interval
from hockeystick.accountants._orders import saddle
from hockeystick.accountants.contour._integral import rules_for
from hockeystick.accountants.contour._line import LineTerms, Target, draw
from hockeystick.accountants.contour._search import integral_for_delta, integral_for_epsilon

if TYPE_CHECKING:
    from mpmath import mpc, mpf

    from hockeystick.results import Quantity

_LN_10: Final = math.log(10.0)
_ROUNDS: Final = 3
_MOST_WORK: Final = 3_000_000
_MOST_NODES: Final = 40_000


def digits_of(terms: LineTerms, quantity: Quantity, value: float, digits: int) -> Interval | None:
    """Return epsilon (at a delta) or delta (at an epsilon) to so many digits, as mpf.

    None where the line for so many digits takes too many nodes.
    """
    from mpmath import mp

    from hockeystick._reference.profiles import exact

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
    kept = digits
    for _ in range(_ROUNDS):
        contour = _Contour.draw(terms, Target(epsilon, log_delta, (kept + 4) * _LN_10), kept)
        if contour is None:
            return None
        with mp.workdps(kept + 10):
            if quantity == "epsilon":
                answer, slack = contour.epsilon(exact(value), mp.mpf(epsilon), kept)
            else:
                answer = contour.delta(exact(value))[0]
                slack = answer * mp.mpf(10) ** -(kept + 2)
            ends = (max(end, mp.zero) for end in (answer - slack, answer, answer + slack))
            near = Interval(*ends)
            # Near 0 an epsilon has fewer digits than the delta that it comes from.
            lost = mp.log10(slack / near.estimate) + digits + 1 if near.estimate else mp.zero
        if lost <= 0:
            break
        kept += math.ceil(lost) + 1
    return near


class _Contour:
    """The line, and K at its nodes, as mpmath numbers."""

    def __init__(self, points: list[mpc], values: list[mpc], step: mpf) -> None:
        self._points = points
        self._values = values
        self._step = step

    @classmethod
    def draw(cls, terms: LineTerms, target: Target, digits: int) -> _Contour | None:
        """Return the contour for a target; None where it takes too much work."""
        from mpmath import mp

        line = draw(terms, saddle(terms, target.epsilon), target, _MOST_NODES)
        if line is None:
            return None
        rules = rules_for(terms, line, target)
        if rules is None or line.last * sum(rule.nodes for rule in rules) > _MOST_WORK:
            return None
        size = line.last + 1
        most = max(count for _, count in terms)
        with mp.workdps(digits + 25 + math.ceil(math.log10(most))):
            values = [mp.mpc(0)] * size
            for (_, count), rule in zip(terms, rules, strict=True):
                for k, value in enumerate(rule.reference_line(line.c, line.step, size)):
                    values[k] += count * value
            points = [mp.mpc(line.c, mp.mpf(line.step) * k) for k in range(size)]
            return cls(points, values, mp.mpf(line.step))

    def delta(self, epsilon: mpf) -> tuple[mpf, mpf]:
        """Return delta and its derivative at an epsilon."""
        from mpmath import mp

        total = slope = mp.zero
        for k, (z, value) in enumerate(zip(self._points, self._values, strict=True)):
            term = mp.exp(value - epsilon * z) / (z * (1 + z))
            share = mp.mpf(0.5) if k == 0 else 1
            total += share * term.real
            slope -= share * (z * term).real
        return total * self._step / mp.pi, slope * self._step / mp.pi

    def epsilon(self, delta: mpf, guess: mpf, digits: int) -> tuple[mpf, mpf]:
        """Return where delta is reached, by Newton's method on its logarithm, and the error there.

        Each of the errors of delta is less than ``10^-(digits + 4)`` of it, and there are few; the
        root is that of the formula, which holds for negative epsilons too.
        """
        from mpmath import mp

        goal = mp.log(delta)
        error = mp.mpf(10) ** -(digits + 2)
        here = guess
        for _ in range(60):
            value, slope = self.delta(here)
            move = (goal - mp.log(value)) * value / slope
            here += move
            if abs(move * slope) < abs(value) * error / 1024:
                break
        return here, error * value / abs(slope)
