"""Each error of a contour integral is needed: coarse lines, and values off by all they may be."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from hockeystick.accountants.contour._integral import Integral, integrate, rules_for
from hockeystick.accountants.contour._line import ContourTarget, TailAndBulk, choose_contour
from hockeystick.accountants.contour.ways import _smoothed
from hockeystick.accountants.orders import saddle
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import AnalyticLoss, GaussianLoss
from hockeystick.privacy_loss.core.base import ContourValues

LOSS = GaussianLoss(1.5)
TERMS: Sequence[tuple[AnalyticLoss, int]] = ((LOSS, 3),)
WHOLE = GaussianLoss(1.5 / math.sqrt(3.0))
EPSILON = 2.0


@dataclass(frozen=True)
class Off:
    """A rule whose values are off by as much as they say."""

    rule: Any
    off: float
    side: float

    def line(self, c: float, step: float, size: int) -> ContourValues:
        real, imag, error = self.rule.line(c, step, size)
        signs = self.side * np.where(np.arange(size) % 2, -1.0, 1.0)
        return ContourValues(real + self.off * signs, imag, error + self.off)


def made(accuracy: float, off: float = 0.0, side: float = 1.0) -> Integral:
    """Return the integral along a line for an accuracy."""
    target = ContourTarget(EPSILON, float(mp.log(WHOLE.delta(mp.mpf(EPSILON)))), accuracy)
    line = choose_contour(TERMS, saddle(TERMS, EPSILON), target, 10_000)
    assert line is not None
    rules = rules_for(TERMS, line, target)
    assert rules is not None
    wrong: Any = [Off(one, off, side) for one in rules]
    return integrate(TERMS, line, wrong if off else rules)


@pytest.mark.parametrize("off", [0.0, 1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("accuracy", [0.0, 1.0, 2.0, 4.0, 12.0])
def test_a_coarse_line_proves_less_and_nothing_wrong(
    accuracy: float, off: float, side: float
) -> None:
    found = made(accuracy, off, side)
    for epsilon in np.linspace(0.5, 5.0, 46).tolist():
        scale, lower, _, upper, _ = found.delta(epsilon)
        truth = WHOLE.delta(mp.mpf(epsilon)) * mp.exp(-scale)
        assert lower <= truth <= upper


@pytest.mark.parametrize("off", [1e-6, 1e-2])
def test_aliases_are_bounded_by_the_upper_end_of_k(off: float) -> None:
    found = made(2.0, off, -1.0)
    for (order, k, _), exact in zip(
        found._aliases, (found.cgf_above, found.cgf_below), strict=True
    ):
        assert k >= WHOLE.cgf_estimate(order).value * (1.0 - 1e-14)
        assert k >= exact.midpoint


@pytest.mark.parametrize("log_bulk", [-3.0, -9.0])
def test_outcomes_without_a_large_loss_are_added_to_the_upper_end(log_bulk: float) -> None:
    found = made(12.0)
    beside = replace(found, tails=TailAndBulk((), 1.0, log_bulk))
    scale, lower, estimate, upper, _ = beside.delta(EPSILON)
    more = math.exp(log_bulk - EPSILON - 2.0 * math.log(2.0) - scale)
    assert (lower, estimate) == found.delta(EPSILON)[1:3]
    assert upper - found.delta(EPSILON).upper >= more * (1.0 - 1e-12)


@pytest.mark.parametrize("error", [1.0, 0.1, 1e-3])
def test_what_is_smoothed_has_a_remainder(error: float) -> None:
    pair = _smoothed(TERMS, EPSILON, float(mp.log(WHOLE.delta(mp.mpf(EPSILON)))), error)
    assert pair is not None
    for epsilon in np.linspace(0.5, 5.0, 19).tolist():
        assert pair.lower(epsilon) <= mp.log(WHOLE.delta(mp.mpf(epsilon))) <= pair.upper(epsilon)
