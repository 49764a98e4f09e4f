"""Canaries reach the certified curve and do not pass it; gradients give records away."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.audit import attacks
from hockeystick.errors import ParameterError
from hockeystick.release.noise.clipped_sum import noisy_sum
from tests.audit.attacks.test_scores import beats, misses

TRIALS = 20_000


def test_the_ratio_is_that_of_a_mixture_of_normal_densities() -> None:
    seen = np.array([[-30.0, 0.2], [0.9, 60.0]])
    noise, rate = np.array([0.5, 1.5]), 0.2
    out = stats.norm(0, noise)
    into = np.log(rate) + stats.norm(1, noise).logpdf(seen)
    ratios = np.logaddexp(np.log(1 - rate) + out.logpdf(seen), into) - out.logpdf(seen)
    found = attacks.canary_scores(seen, noise_multiplier=noise, rate=rate)
    assert found == pytest.approx(ratios.sum(axis=1))


@pytest.mark.parametrize("kind", ["dirac", "random"])
def test_a_canary_in_exact_noisy_sums_is_found_as_often_as_the_curve_allows(kind: str) -> None:
    """Other gradients are orthogonal to it, so that the best test is that of one Gaussian."""
    norm, noise, size = 0.5, 0.7, 20
    direction = (
        attacks.dirac_direction(size, 3)
        if kind == "dirac"
        else attacks.random_direction(size, seed=1)
    )
    random = np.random.default_rng(0)
    others = random.standard_normal((5, size))
    others -= np.outer(others @ direction, direction)
    sums = [
        noisy_sum(
            np.vstack([others, trial * 9 * direction[None]]), norm=norm, noise_multiplier=noise
        )
        for trial in (0, 1)
        for _ in range(1500)
    ]
    seen = attacks.canary_projections(np.array(sums), direction, norm=norm)
    scores = attacks.canary_scores(seen[:, None], noise_multiplier=noise)
    f = hs.tradeoffs.GaussianTradeOff(1 / noise)
    assert beats(f, scores[1500:], scores[:1500]) < 4
    assert misses(f, scores[1500:], scores[:1500]) < 0.08


def test_a_layer_gives_its_input_away_clipped_or_not() -> None:
    random = np.random.default_rng(4)
    record, errors = random.standard_normal(12), random.standard_normal(5)
    for clip in (1.0, 1e-3, 1e-160):
        found = attacks.first_layer_input(clip * np.outer(errors, record), clip * errors)
        assert found == pytest.approx(record, rel=1e-9)


@pytest.mark.parametrize("noise", [0.3, 1.0, 4.0])
def test_no_candidate_is_named_more_often_than_the_curve_allows(noise: float) -> None:
    """Orthogonal gradients of the clipping norm's length are the worst case of N candidates."""
    random, count = np.random.default_rng(5), 30
    candidates, truth = np.eye(count), random.integers(count, size=TRIALS)
    seen = candidates[truth] + noise * random.standard_normal((TRIALS, count))
    share = float((attacks.nearest_candidate(seen, candidates) == truth).mean())
    bound = hs.tradeoffs.GaussianTradeOff(1 / noise).power(1 / count)
    assert 1 / count < share < bound + 3 * 0.5 / np.sqrt(TRIALS)
    below = (bound - share) / bound
    assert below < 0.3


def test_the_nearest_is_that_of_the_least_distance() -> None:
    random = np.random.default_rng(6)
    candidates, seen = random.standard_normal((9, 4)), random.standard_normal((5, 7, 4))
    apart = np.linalg.norm(seen[..., None, :] - candidates, axis=-1)
    assert np.array_equal(attacks.nearest_candidate(seen, candidates), apart.argmin(axis=-1))


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (lambda: attacks.canary_scores([[1.0]], noise_multiplier=0.0), "noise_multiplier"),
        (lambda: attacks.canary_scores([[1.0]], noise_multiplier=[1.0, 1.0]), "noise_multiplier"),
        (lambda: attacks.canary_scores([[1.0]], noise_multiplier=1.0, rate=0.0), "rate"),
        (lambda: attacks.canary_scores([], noise_multiplier=1.0), "projections"),
        (lambda: attacks.dirac_direction(3, 3), "coordinate"),
        (lambda: attacks.canary_projections([[1.0]], [0.0], norm=1.0), "direction"),
        (lambda: attacks.canary_projections([[1.0, 2.0]], [1.0], norm=1.0), "sums"),
        (lambda: attacks.canary_projections([[1.0]], [1.0], norm=0.0), "norm"),
        (lambda: attacks.first_layer_input([[1.0]], [0.0]), "bias_gradient"),
        (lambda: attacks.first_layer_input([[1.0]], [1.0, 2.0]), "weight_gradient"),
        (lambda: attacks.logit_gaps([[1.0], [2.0]], [0, 0]), "logits"),
        (lambda: attacks.logit_gaps([[1.0, 2.0]], [-1]), "labels"),
        (lambda: attacks.logit_gaps([[1.0, 2.0]], [0.0]), "labels"),
    ],
)
def test_what_is_no_such_argument_is_named(asked: Callable[[], object], named: str) -> None:
    with pytest.raises(ParameterError, match=f"^{named} must be"):
        asked()
