"""Groups of records: what the trade-off function of every plan says of them, and attacks.

An attack is a pair of output laws of two data sets at distance g, written down here by its
likelihoods: none may beat what the lower end of f promises. Where the worst pair is known, the
upper end may not be below it either.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pytest
from scipy.stats import binom, norm

import hockeystick as hs
from hockeystick.notions import GDP, ZCDP

Rates: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True)
class Attack:
    """Two data sets at distance ``size``: false positives and powers of tests that tell them."""

    plan: hs.Mechanism
    size: int
    tests: Callable[[], Rates]
    is_worst: bool = False
    epsilons: tuple[float, ...] = (0.0, 0.7, 2.0)


THRESHOLDS = np.linspace(-6.0, 8.0, 36)


def shifted_laplace(scale: float, shift: float) -> Rates:
    """Tests of Lap(0, scale) against Lap(shift, scale) by a threshold, which are the best ones."""

    def above(x: Any) -> Any:
        tail = 0.5 * np.exp(-np.abs(x) / scale)
        return np.where(x >= 0.0, tail, 1.0 - tail)

    return above(THRESHOLDS), above(THRESHOLDS - shift)


def shifted_normal(noise: float, shift: float) -> Rates:
    """Tests of N(0, noise^2) against N(shift, noise^2) by a threshold, which are the best ones."""
    return norm.sf(THRESHOLDS / noise), norm.sf((THRESHOLDS - shift) / noise)


def sampled(noise: float, rate: float, here: int, there: int = 0) -> Rates:
    """Tests where some records push the sum up, and others that are not there would push it down.

    Each is in the sample at the rate, independently.
    """
    first = sum(
        binom.pmf(k, there, rate) * norm.sf((THRESHOLDS + k) / noise) for k in range(there + 1)
    )
    second = sum(
        binom.pmf(k, here, rate) * norm.sf((THRESHOLDS - k) / noise) for k in range(here + 1)
    )
    return np.clip(first, 0.0, 1.0), np.clip(second, 0.0, 1.0)


def one_of_three(noise: float, moved: int) -> Rates:
    """Tests of one example of three, some of which are 1 and were zeroed out."""
    zero, one = norm.sf(THRESHOLDS / noise), norm.sf((THRESHOLDS - 1.0) / noise)
    return zero, (1.0 - moved / 3.0) * zero + moved / 3.0 * one


def one_of_three_vectors(noise: float, moved: int) -> Rates:
    """Tests of one of three vectors, some of which are 1/2 and were zeroed, the others -1/2."""
    below, zero, above = (norm.sf((THRESHOLDS - at) / noise) for at in (-0.5, 0.0, 0.5))
    share = moved / 3.0
    return (1.0 - share) * below + share * zero, (1.0 - share) * below + share * above


def response(epsilon: float) -> Rates:
    """The test of a response that is true: a group of any size changes it but once."""
    lie = 1.0 / (1.0 + math.exp(epsilon))
    return np.array([lie]), np.array([1.0 - lie])


def discrete(scale: float, shift: int) -> Rates:
    """Tests of two discrete Laplace laws by a threshold, which are the best ones."""
    t, x = math.exp(-1.0 / scale), np.arange(-200, 201)
    mass = (1.0 - t) / (1.0 + t) * t ** np.abs(x)
    above = np.cumsum(mass[::-1])[::-1]
    return above[shift + 1 :], above[1:-shift]


ATTACKS = {
    "Laplace": Attack(hs.Laplace(2.0), 3, lambda: shifted_laplace(2.0, 3.0), True),
    "Gaussian": Attack(hs.Gaussian(2.0), 3, lambda: shifted_normal(2.0, 3.0), True),
    "GDP": Attack(GDP(0.5), 3, lambda: shifted_normal(2.0, 3.0), True),
    "zCDP": Attack(ZCDP(0.125), 3, lambda: shifted_normal(2.0, 3.0)),
    "discrete Laplace": Attack(hs.DiscreteLaplace(2.0), 3, lambda: discrete(2.0, 3), True),
    "response": Attack(hs.RandomizedResponse(1.0), 2, lambda: response(1.0), True),
    "four come": Attack(
        hs.PoissonSubsampled(hs.Gaussian(0.5), 0.3), 4, lambda: sampled(0.5, 0.3, 4)
    ),
    "one comes, one goes": Attack(
        hs.PoissonSubsampled(hs.Gaussian(0.5), 0.3), 2, lambda: sampled(0.5, 0.3, 1, 1)
    ),
    "three come, one goes": Attack(
        hs.PoissonSubsampled(hs.Gaussian(1.0), 0.9), 4, lambda: sampled(1.0, 0.9, 3, 1)
    ),
    "of many steps one": Attack(
        hs.DPSGD(noise_multiplier=1.0, rate=0.3, steps=5),
        3,
        lambda: sampled(1.0, 0.3, 3),
        epsilons=(0.7,),
    ),
    "one of three examples": Attack(
        hs.FixedSizeSubsampled(hs.Gaussian(0.3), 1, 3, "zero-out"), 2, lambda: one_of_three(0.3, 2)
    ),
    "two of three vectors": Attack(
        hs.FixedSizeSubsampled(hs.Gaussian(0.3), 1, 3, "zero-out", clipped=True),
        2,
        lambda: one_of_three_vectors(0.3, 2),
    ),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_attack_on_a_group_beats_the_lower_end(attack: Attack) -> None:
    alpha, power = attack.tests()
    f = hs.tradeoff(attack.plan).group(attack.size)
    lower, upper = f.bounds(alpha)
    assert (lower <= 1.0 - power + 1e-12).all()
    assert (f.power(alpha) >= power - 1e-12).all()
    for epsilon in attack.epsilons:
        found = max(float((power - math.exp(epsilon) * alpha).max()), 0.0)
        assert f.delta(epsilon).upper >= found - 1e-12
    if attack.is_worst:
        assert (upper >= 1.0 - power - 1e-12).all()


def test_groups_of_what_has_no_noise_and_of_what_releases_nothing() -> None:
    assert hs.tradeoff(hs.Laplace(0.0)).group(3).bounds(0.3)[0] == 0.0
    lower, upper = hs.tradeoff(hs.Gaussian(math.inf)).group(3).bounds(0.25)
    assert 0.75 - 1e-15 <= lower <= 0.75 <= upper


@pytest.mark.parametrize("runs", [1, 3])
def test_groups_of_capped_batches_are_refused(runs: int) -> None:
    capped = hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(2.0), 0.5, cap=3, examples=10)
    plan = hs.DPSGD(noise_multiplier=2.0, examples=10, rate=0.5, steps=runs, batch_cap=3)
    for one in (capped**runs, capped @ hs.Laplace(1.0), plan):
        f = hs.tradeoff(one)
        assert f.group(1) is f
        with pytest.raises(hs.errors.IncompatibleError, match="exactly 10 examples and one less"):
            f.group(2)
