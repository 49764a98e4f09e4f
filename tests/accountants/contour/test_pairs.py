"""Plans between two pairs: the upper end is the dominating one's, the lower the attained one's."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.contour._pairs import AnalyticPairs
from hockeystick.accountants.interval import Interval, SettledInterval, worse
from hockeystick.privacy_loss import compose

STEP = 1e-3


def fixed(noise: float, batch: int, examples: int, runs: int) -> hs.Mechanism:
    """Return runs on samples of a fixed size, one of whose examples may be replaced."""
    return hs.FixedSizeSubsampled(hs.Gaussian(noise), batch, examples) ** runs


def dominating_delta(rate: float, mu: float, runs: int, epsilon: float, up: bool) -> float:
    """Return a bound of the symmetric pair's delta, by convolving losses rounded to a grid.

    Above 0 the loss is ``ln(1 - p + p e^t)`` of an output x, under P with the density of the
    mixture; below 0 it is mirrored with that of N(0, 1); the rest is at 0.
    """
    grid = STEP * np.arange(12_000)
    x = np.log1p(np.expm1(grid) / rate) / mu + 0.5 * mu
    beyond_q, beyond_p = ndtr(-x), (1.0 - rate) * ndtr(-x) + rate * ndtr(mu - x)
    above, below = -np.diff(beyond_p, append=0.0), -np.diff(beyond_q, append=0.0)
    masses = np.zeros(2 * grid.size + 1)
    middle = grid.size
    # A loss in (l, l + STEP] is rounded up or down, and so is its reflection.
    masses[middle + up : middle + up + grid.size] += above
    masses[middle - (not up) - np.arange(grid.size)] += below
    masses[middle] += 1.0 - above.sum() - below.sum()
    size = masses.size * runs
    composed = np.fft.irfft(np.fft.rfft(masses, size) ** runs, size)
    losses = STEP * (np.arange(size) - runs * middle)
    far = losses > epsilon
    return float((composed[far] * -np.expm1(epsilon - losses[far])).sum())


@pytest.mark.parametrize(
    ("noise", "batch", "examples", "runs", "epsilon"),
    [(3.0, 20, 100, 30, 0.5), (3.0, 20, 100, 100, 1.0), (2.0, 50, 100, 20, 2.0)],
)
def test_the_upper_end_is_that_of_the_symmetric_pair(
    noise: float, batch: int, examples: int, runs: int, epsilon: float
) -> None:
    found = hs.delta(fixed(noise, batch, examples, runs), epsilon, accountant="contour")
    low, high = (
        dominating_delta(batch / examples, 1.0 / noise, runs, epsilon, up) for up in (False, True)
    )
    assert low * (1.0 - 1e-9) <= found.upper <= high * (1.0 + 1e-9)
    assert high < 1.3 * low


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_the_lower_end_is_that_of_the_attained_pair(adjacency: Any) -> None:
    plan = hs.FixedSizeSubsampled(hs.Gaussian(3.0), 20, 100, adjacency) ** 100
    noise = 3.0 if adjacency == "replace-one" else 6.0
    attained = hs.PoissonSubsampled(hs.Gaussian(noise), 0.2) ** 100
    for ask, value in ((hs.epsilon, 1e-6), (hs.delta, 1.5)):
        found, alone = ask(plan, value), ask(attained, value)
        assert found.accountant == "contour"
        assert found.lower == pytest.approx(alone.lower, rel=1e-9)
        assert found.lower <= alone.upper


def test_there_are_no_pairs_of_losses_that_are_attained() -> None:
    exact = compose(hs.PoissonSubsampled(hs.Gaussian(1.0), 0.01) ** 10)
    assert AnalyticPairs.of(exact.removing) is None
    cells = compose(hs.FixedSizeSubsampled(hs.Laplace(1.0), 3, 30) ** 10)
    assert AnalyticPairs.of(cells.removing) is None


def test_a_loss_with_a_transform_of_its_own_is_exact_beside_one_between_two_pairs() -> None:
    schedule = hs.DPSGD(
        noise_multiplier=2.0, rate=0.01, steps=40, schedule=hs.schedules.Linear(end=0.5)
    )
    assert AnalyticPairs.of(compose(schedule).removing) is None
    both = compose(fixed(3.0, 20, 100, 100) @ hs.PureDP(0.1) ** 3)
    pairs = AnalyticPairs.of(both.removing)
    assert pairs is not None
    assert {type(loss).__name__ for loss, _ in pairs.attained} == {
        "SampledGaussianLoss",
        "RandomizedResponsePairLoss",
    }


def test_an_end_that_is_not_sharp_settles_nothing() -> None:
    pairs = AnalyticPairs.of(compose(fixed(3.0, 20, 100, 100)).removing)
    assert pairs is not None
    assert pairs.between(2.0, lambda _: Interval(1.0, 1.0, 1.1)) is None
    assert pairs.between(2.0, lambda _: Interval(1.0, 1.0, math.inf)) is None
    assert pairs.between(2.0, lambda _: Interval.point(1.0)) == (1.0, 1.0, 1.0)


def test_the_larger_of_two_is_settled_only_where_both_are() -> None:
    settled, other = SettledInterval(1.0, 3.0, 3.0), Interval(0.5, 1.0, 2.0)
    assert worse([settled, settled]).is_narrow(1e-12)
    assert not worse([settled, other]).is_narrow(1e-12)
    assert not settled.within(other).is_narrow(1e-12)


def test_the_contours_of_both_directions_are_asked_once_each() -> None:
    composition = compose(fixed(3.0, 20, 100, 100))
    ends = [Contour().epsilon_of(terms, 1e-5) for terms in composition.directions]
    assert Contour().epsilon(composition, 1e-5) == worse(ends)
