"""Membership inference on digits: the same trainings twice, attacks in order, and no refutation."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from tests.release.bits import seeded
from tests.systems.programs import AUDIT, program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")

NOISE, TARGETS = 2.0, 240


@pytest.fixture(scope="module")
def few() -> Any:
    membership = program("membership", AUDIT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(membership, "SHADOWS", 96)
        yield membership


@pytest.fixture(scope="module")
def private(few: Any) -> Any:
    recipe = replace(few.TRAINING, noise_multiplier=NOISE)
    return few.attack(recipe, few.digits(), TARGETS, seed=0)


def test_the_adversary_trains_as_who_is_audited_does() -> None:
    """Without noise and canaries both trainings end at the same weights, to what a grid rounds."""
    trainings = program("trainings", AUDIT)
    recipe = trainings.Recipe(steps=4, learning_rate=6.0, norm=0.3)
    records = trainings.digits()
    shadow = trainings.simulate(recipe, records, 3, seed=1)
    along = trainings.directions()
    for weights, included in zip(shadow.weights, shadow.included, strict=True):
        exact, _ = trainings._released(recipe, records, included, along, along[:0], seeded(1))
        assert np.abs(weights).max() > 0.1
        assert exact == pytest.approx(weights, abs=1e-5)


def test_the_adversarys_noise_is_that_of_the_plan() -> None:
    trainings = program("trainings", AUDIT)
    quiet = trainings.Recipe(steps=1, learning_rate=1.0, norm=0.3)
    noisy, records = replace(quiet, noise_multiplier=2.0), trainings.digits()
    same = [trainings.simulate(one, records, 20, seed=2).weights for one in (quiet, noisy)]
    deviation = 2.0 * 0.3 / (trainings.POOL / 2)
    assert stats.kstest(((same[1] - same[0]) / deviation).ravel(), "norm").pvalue > 1e-4


def test_no_record_moves_the_weights_of_the_canary() -> None:
    trainings = program("trainings", AUDIT)
    rows = trainings.features(trainings.digits().pixels)
    assert (rows[:, -1] == 0.0).all()
    found = trainings.directions()[0].reshape(rows.shape[1], trainings.CLASSES)
    assert np.flatnonzero(found).tolist() == [found.size - 1]


def test_the_plan_is_that_of_the_steps(private: Any, few: Any) -> None:
    mu = np.sqrt(few.TRAINING.steps) / NOISE
    f = hs.tradeoffs.GaussianTradeOff(mu)
    assert private.certified == pytest.approx(f.epsilon(few.DELTA).upper)
    assert private.curve(0.1) == pytest.approx(f(0.1))


def test_what_is_proven_stays_below_the_account(private: Any) -> None:
    assert all(0.0 <= one.bound <= private.certified for one in private.found)
    assert max(one.bound for one in private.found) > 0.5


def test_the_account_is_not_refuted_and_that_of_three_times_the_noise_is(
    private: Any, few: Any
) -> None:
    assert few.refuting(private, private.curve) == []
    quieter = replace(few.TRAINING, noise_multiplier=3 * NOISE)
    found = few.refuting(private, quieter.plan)
    assert {"canary, one weight", "canary, random direction"} <= set(found)


def test_the_record_of_a_model_is_fixed_beforehand(few: Any) -> None:
    models = np.arange(50)
    scores = np.arange(50.0 * 100).reshape(50, 100)
    included = np.random.default_rng(0).random(scores.shape) < 0.5
    found = few._split("by hand", scores, included)
    own = models % 20
    truth = included[models, own]
    assert found.trials_in.tolist() == scores[models, own][truth].tolist()
    assert found.trials_out.tolist() == scores[models, own][~truth].tolist()
