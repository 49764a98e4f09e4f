"""Tuning by the profile of one run: explicit attacks, other accountants, what it refuses."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.errors import UnsupportedError
from hockeystick.mechanisms.selection.tuning import RunCount

tuning = hs.mechanisms.tuning
RandomStopping = hs.mechanisms.RandomStopping

GEOMETRIC = tuning.TruncatedNegativeBinomial(1.0, 0.1)
EACH: tuple[RunCount, ...] = (
    GEOMETRIC,
    tuning.TruncatedNegativeBinomial(-0.5, 0.05),
    tuning.Poisson(6.0),
    tuning.Binomial(20, 0.3),
)
each_count = pytest.mark.parametrize("count", EACH, ids=str)


def phi(count: RunCount, x: float) -> float:
    if isinstance(count, tuning.Poisson):
        return math.exp(count.mean * (x - 1))
    if isinstance(count, tuning.Binomial):
        return float((1 - count.probability * (1 - x)) ** count.trials)
    assert isinstance(count, tuning.TruncatedNegativeBinomial)
    eta, gamma = count.eta, count.gamma
    return float(((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1))


def attack(count: RunCount, mu: float, epsilon: float) -> float:
    """The best of a family of scores: middling outputs last, then large ones, small ones first."""
    best = 0.0
    for low in np.linspace(-9.0, 4.0, 80):
        for high in np.linspace(0.5, 8.0, 120):
            if high <= low:
                continue
            # Outputs are N(mu, 1) against N(0, 1); ranks rise from the middle on.
            middle = [ndtr(high - m) - ndtr(low - m) for m in (mu, 0.0)]
            upto = [1.0 - ndtr(low - m) for m in (mu, 0.0)]
            gain = [phi(count, b) - phi(count, a) for a, b in zip(middle, upto, strict=True)]
            best = max(best, gain[0] - math.exp(epsilon) * gain[1])
    return best


@each_count
def test_an_explicit_score_on_gaussian_runs_costs_nearly_the_lower_end(count: RunCount) -> None:
    mu, epsilon = 0.5, 2.5
    answer = hs.delta(RandomStopping(hs.Gaussian(1.0 / mu), count), epsilon)
    assert answer.accountant == "selection"
    found = attack(count, mu, epsilon)
    assert found <= answer.upper
    assert found > 0.8 * answer.lower
    assert answer.upper < 1.06 * answer.lower


def test_more_than_one_tuning_is_refused() -> None:
    once = RandomStopping(hs.Gaussian(4.0), GEOMETRIC)
    for plan in (once**2, once @ hs.Gaussian(3.0), hs.Gaussian(3.0)):
        with pytest.raises(UnsupportedError, match="not one tuning"):
            hs.epsilon(plan, 1e-6, accountant="selection")
