"""Losses known between two pairs, an attained and a dominating one, both with an analytic cgf.

Under replace-one adjacency, say, each of many runs has the larger loss of both directions, which
no data set attains in all of them. The composition of dominating pairs dominates that of the plan,
which dominates that of attained pairs (Zhu, Dong and Wang 2022, theorem 10): epsilon and delta are
at most those of the former and at least those of the latter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from hockeystick.accountants.interval import Interval, SettledInterval
from hockeystick.privacy_loss import AnalyticLoss, Terms

# Ends of this relative width are as sharp as those of a fine lattice.
_SHARP: Final = 1e-6
# A transform that falls by less than exp of this, far out, has no end that is sharp: the unproven
# estimate by which no line is sought in vain.
_LEAST_DECAY: Final = 20.0
_FAR_OUT: Final = 1e6


class AnalyticPairs(NamedTuple):
    """The attained and the dominating losses of one direction, with their counts."""

    attained: Terms
    dominating: Terms

    @classmethod
    def of(cls, terms: Terms) -> AnalyticPairs | None:
        """Return the pairs; None where they are the same, or one has no analytic cgf.

        A loss that has one of its own is exact.
        """
        found: list[Terms] = []
        if all(isinstance(loss, AnalyticLoss) for loss, _ in terms):
            return None
        known = [loss if isinstance(loss, AnalyticLoss) else loss.attained for loss, _ in terms]
        for pairs in ([(loss, n) for loss, (_, n) in zip(known, terms, strict=True)], terms):
            analytic = [(loss.analytic if loss else None, n) for loss, n in pairs]
            found.append(tuple((loss, n) for loss, n in analytic if loss is not None))
            if len(found[-1]) < len(terms):
                return None
        return cls(*found)

    def between(self, order: float, read: Callable[[Terms], Interval]) -> Interval | None:
        """Return the interval between the two pairs; None where an end is not sharp.

        ``order`` is about the one that is best for the dominating losses.
        """
        if self._decay(order) < _LEAST_DECAY:
            return None
        upper = read(self.dominating)
        if not _is_sharp(upper):
            return None
        lower = read(self.attained)
        return SettledInterval(lower.lower, upper.upper, upper.upper) if _is_sharp(lower) else None

    def _decay(self, order: float) -> float:
        """Return about how far ``ln|M|`` of the dominating losses falls along a vertical line."""
        losses = [(one, n) for loss, n in self.dominating if (one := loss.analytic)]
        if not all(one.quadrature_available(order) for one, _ in losses):
            return 0.0
        return math.fsum(n * one.decay(order).exponent(_FAR_OUT) for one, n in losses)


def _is_sharp(interval: Interval) -> bool:
    """Return whether no effort would change an end by much."""
    return interval.upper < math.inf and interval.is_narrow(_SHARP)
