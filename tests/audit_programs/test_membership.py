"""Membership inference on digits: the same trainings twice, attacks in order, and no refutation."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
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


@pytest.fixture(scope="module")
def openly(few: Any) -> Any:
    return few.attack(few.without_privacy(few.TRAINING), few.digits(), TARGETS, seed=0)


def areas(attacked: Any) -> dict[str, float]:
    return {one.attack: attacks.auc(one.scores_in, one.scores_out) for one in attacked.found}


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


def test_shadow_models_find_more_than_a_threshold_on_losses(private: Any, openly: Any) -> None:
    for found in (areas(private), areas(openly)):
        assert 0.65 < found["loss threshold"] < found["LiRA, offline"] - 0.02
        assert found["LiRA, online"] > found["loss threshold"] + 0.02
        assert found["noisy neighbours"] > 0.65
    assert areas(openly)["LiRA, online"] > areas(private)["LiRA, online"] + 0.05


def test_noisy_neighbours_need_noise_of_some_size(openly: Any) -> None:
    assert openly.scan.max() > openly.scan[0] + 0.05


def test_on_a_linear_model_noisy_neighbours_say_the_opposite(
    few: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loss is convex in the pixels: the score is a curvature, less where the model is sure."""
    trainings = program("trainings", AUDIT)
    monkeypatch.setattr(trainings, "features", lambda pixels: pixels)
    records = trainings.digits()
    trained = trainings.simulate(trainings.Recipe(100, 1.0), records, 30, seed=0)
    at = trainings.losses(trained.weights, records.pixels, records.labels)
    scores = attacks.neighbour_scores(at, few.neighbour_losses(trained, records, 0.3))
    assert attacks.auc(scores[trained.included], scores[~trained.included]) < 0.45
    assert attacks.auc(-at[trained.included], -at[~trained.included]) > 0.6


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


def test_trials_are_one_record_of_each_model(private: Any) -> None:
    for one in private.found:
        assert len(one.trials_in) + len(one.trials_out) == TARGETS
    whole = [len(one.scores_in) + len(one.scores_out) for one in private.found]
    assert whole[:4] == [100 * TARGETS] * 4


def test_the_record_of_a_model_is_fixed_beforehand(few: Any) -> None:
    models = np.arange(50)
    scores = np.arange(50.0 * 100).reshape(50, 100)
    included = np.random.default_rng(0).random(scores.shape) < 0.5
    found = few._split("by hand", scores, included)
    own = models % 20
    truth = included[models, own]
    assert found.trials_in.tolist() == scores[models, own][truth].tolist()
    assert found.trials_out.tolist() == scores[models, own][~truth].tolist()


def test_an_estimate_is_the_largest_ratio_of_the_trials(few: Any) -> None:
    found = few.Found("by hand", None, None, np.array([3.0, 2.0, 2.0, 0.0]), np.array([2.0, 1.0]))
    assert found.estimate == pytest.approx(np.log((0.75 - few.DELTA) / 0.5))


def test_it_prints_a_table_and_draws_it(
    few: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program("pictures", AUDIT)
    path = tmp_path / "membership.png"
    monkeypatch.setattr(few, "NOISES", (2.5,))
    monkeypatch.setattr(few, "SHADOWS", 40)
    monkeypatch.setattr(sys, "argv", ["membership.py", "--targets", "60", "--figure", str(path)])
    few.main()
    printed = capsys.readouterr().out
    assert printed.startswith("without privacy: epsilon inf certified")
    assert "noise multiplier 2.5: epsilon 4.208 certified at delta 0.001" in printed
    assert printed.count("canary, one weight") == 1
    assert path.read_bytes().startswith(b"\x89PNG")
