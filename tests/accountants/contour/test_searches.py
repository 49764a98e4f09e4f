"""Lines that are guessed: they prove as much as those that are searched for, or are not used."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.base import Interval, SettledInterval, worse
from hockeystick.accountants.contour.accountant import Contour
from hockeystick.accountants.contour.search import integral_for_epsilon
from hockeystick.accountants.contour.ways import (
    AnalyticPairs,
    LineGuess,
    LocatedIntegral,
    integral_at_once,
    smoothed_delta,
)
from hockeystick.kernels import sampled_gaussian_contour as kernel
from hockeystick.privacy_loss import LaplaceLoss, SampledGaussianLoss, compose

EPSILON, LOG_DELTA = 1.0, math.log(1e-5)
# Few hits decide for the first, many far outputs for the second, and none for the last.
PLANS = [(0.001, 0.535, 25), (2.18e-5, 0.642, 1427), (0.004, 1.3, 2000)]


def terms_of(rate: float, noise: float, runs: int) -> tuple[tuple[SampledGaussianLoss, int], ...]:
    return ((SampledGaussianLoss(rate, noise, True), runs),)


def ends(found: LocatedIntegral | None) -> tuple[float, float]:
    assert found is not None
    value = found.integral.delta(EPSILON)
    return value.log("lower"), value.log("upper")


@pytest.mark.parametrize("way", ["plain", "near", "rare"])
@pytest.mark.parametrize("c", [0.01, 3.0, 400.0])
def test_a_line_that_is_guessed_badly_proves_nothing_false(way: str, c: float) -> None:
    terms = terms_of(*PLANS[0])
    guess = LineGuess(LOG_DELTA - 3.0, c, way)
    low, high = ends(integral_for_epsilon(terms, EPSILON, guess=guess))
    least, most = ends(integral_for_epsilon(terms, EPSILON))
    assert max(low, least) <= min(high, most)
    assert high - low < 3e-8


def test_a_rough_guess_asks_for_six_digits() -> None:
    rough = LineGuess(LOG_DELTA, rough=True)
    low, high = ends(integral_for_epsilon(terms_of(*PLANS[0]), EPSILON, guess=rough))
    least, most = ends(integral_for_epsilon(terms_of(*PLANS[0]), EPSILON))
    assert low <= least <= most <= high
    assert 10.0 * (most - least) < high - low < 3e-5


def fixed(noise: float, batch: int, examples: int, runs: int) -> hs.Mechanism:
    """Return runs on samples of a fixed size, one of whose examples may be replaced."""
    return hs.FixedSizeSubsampled(hs.Gaussian(noise), batch, examples) ** runs


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


def plan(noise: float, rate: float, steps: int) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** steps


def test_directions_that_are_no_opposites_are_both_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ask = Contour.epsilon_of

    def counted(self: Contour, terms: object, delta: float) -> object:
        asked.append(terms)
        return ask(self, terms, delta)  # type: ignore[arg-type]

    monkeypatch.setattr(Contour, "epsilon_of", counted)
    hs.epsilon(plan(0.7, 1e-6, 100), 1e-5, accountant="contour")
    assert len(asked) == 1
    monkeypatch.setattr(SampledGaussianLoss, "opposite", None)
    hs.epsilon(plan(0.7, 1e-6, 100), 1e-5, accountant="contour")
    assert len(asked) == 3


@pytest.mark.parametrize("short", [1e-2, 1e-4, 1e-6])
def test_no_quadrature_is_made_next_to_the_largest_loss(short: float) -> None:
    loss = SampledGaussianLoss(0.01, 1.0, removing=False)
    epsilon = 100 * loss.supremum * (1.0 - short)
    assert integral_at_once(((loss, 100),), epsilon, 6.0, at_epsilon=True) is None
    one = np.array([0.01]), np.array([1.0])
    nodes, *_ = kernel.quadratures(*one, False, 1e4, 10.0, np.array([-30.0]), 1e3)
    assert nodes.shape == (4, 0)


def test_one_run_holds_its_closed_form() -> None:
    loss = LaplaceLoss(1.0)
    for epsilon in (0.1, 0.5, 0.9):
        found = smoothed_delta(((loss, 1),), epsilon, 1e-4)
        assert found is not None
        assert found.lower <= -math.expm1(0.5 * (epsilon - 1.0)) <= found.upper
        assert found.relative_width <= 1e-3
