"""Lines that are guessed: they prove as much as those that are searched for, or are not used."""

import math

import pytest

from hockeystick.accountants.contour.search import (
    guess_for_epsilon,
    integral_for_epsilon,
    single_run_guess,
)
from hockeystick.accountants.contour.ways import LineGuess, LocatedIntegral
from hockeystick.privacy_loss import SampledGaussianLoss

EPSILON, LOG_DELTA = 1.0, math.log(1e-5)
# Few hits decide for the first, many far outputs for the second, and none for the last.
PLANS = [(0.001, 0.535, 25), (2.18e-5, 0.642, 1427), (0.004, 1.3, 2000)]


def terms_of(rate: float, noise: float, runs: int) -> tuple[tuple[SampledGaussianLoss, int], ...]:
    return ((SampledGaussianLoss(rate, noise, True), runs),)


def ends(found: LocatedIntegral | None) -> tuple[float, float]:
    assert found is not None
    value = found.integral.delta(EPSILON)
    return value.log("lower"), value.log("upper")


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("off", [1e-9, 1e-3, 0.03])
def test_the_line_of_a_like_plan_proves_the_same(
    plan: tuple[float, float, int], off: float
) -> None:
    rate, noise, runs = plan
    like = integral_for_epsilon(terms_of(rate, noise * (1.0 + off), runs), EPSILON)
    assert like is not None
    terms = terms_of(*plan)
    low, high = ends(integral_for_epsilon(terms, EPSILON, guess=like.guess(LOG_DELTA)))
    least, most = ends(integral_for_epsilon(terms, EPSILON))
    assert max(low, least) <= min(high, most)
    assert high - low < 3e-8


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


def test_runs_alone_are_about_all_where_few_hits_decide() -> None:
    terms = terms_of(*PLANS[0])
    low, high = ends(integral_for_epsilon(terms, EPSILON))
    alone = single_run_guess(terms, EPSILON)
    assert alone <= guess_for_epsilon(terms, EPSILON)
    assert high - 0.01 < alone < low
    many = terms_of(*PLANS[2])
    assert single_run_guess(many, EPSILON) < ends(integral_for_epsilon(many, EPSILON))[0] - 5.0
