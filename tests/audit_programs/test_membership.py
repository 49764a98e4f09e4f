"""Membership inference on digits: the same trainings twice, attacks in order, and no refutation."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hockeystick.audit import attacks
from tests.release.bits import seeded
from tests.systems.programs import AUDIT, program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")

NOISE, TARGETS = 2.0, 240


@pytest.fixture(scope="module")
def few() -> Any:
    """The program with fewer shadow models."""
    membership = program("membership", AUDIT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(membership, "SHADOWS", 96)
        yield membership


@pytest.fixture(scope="module")
def private(few: Any) -> Any:
    recipe = replace(few.TRAINING, noise_multiplier=NOISE)
    return few.attack(recipe, few.digits(), TARGETS, seed=0)


def areas(attacked: Any) -> dict[str, float]:
    return {one.attack: attacks.auc(one.scores_in, one.scores_out) for one in attacked.found}


def test_the_adversary_trains_as_who_is_audited_does() -> None:
    trainings = program("trainings", AUDIT)
    recipe = trainings.Recipe(steps=4, learning_rate=6.0, norm=0.3)
    records = trainings.digits()
    shadow = trainings.simulate(recipe, records, 3, seed=1)
    along = trainings.directions()
    for weights, included in zip(shadow.weights, shadow.included, strict=True):
        exact, _ = trainings._released(recipe, records, included, along, along[:0], seeded(1))
        assert np.abs(weights).max() > 0.1
        assert exact == pytest.approx(weights, abs=1e-5)


def test_no_record_moves_the_weights_of_the_canary() -> None:
    trainings = program("trainings", AUDIT)
    rows = trainings.features(trainings.digits().pixels)
    assert (rows[:, -1] == 0.0).all()
    found = trainings.directions()[0].reshape(rows.shape[1], trainings.CLASSES)
    assert np.flatnonzero(found).tolist() == [found.size - 1]


def test_the_canarys_area_is_that_of_the_certified_curve(private: Any, few: Any) -> None:
    mu = np.sqrt(few.TRAINING.steps) / NOISE
    best = stats.norm.cdf(mu / np.sqrt(2))
    found = areas(private)
    for name in ("canary, one weight", "canary, random direction"):
        assert best - 0.08 < found[name] < best + 0.06


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
