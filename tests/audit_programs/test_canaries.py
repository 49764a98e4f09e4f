"""Canaries in make_private: they move a step by the clipping norm, and are found as proven."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.audit import attacks
from tests.systems.programs import AUDIT, program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")
pytest.importorskip("torch")

NAMES = ("gradient, one weight", "gradient, random direction", "mislabelled digit")


def with_plan(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> Any:
    """Return the program with another plan: all records in every step."""
    canaries = program("canaries", AUDIT)
    plan = replace(canaries.PLAN, batch_size=None, sampling="full-batch", **changed)
    monkeypatch.setattr(canaries, "PLAN", plan)
    monkeypatch.setattr(canaries, "RECORDS", plan.examples)
    return canaries


@pytest.mark.parametrize("place", range(3), ids=NAMES)
def test_a_canary_moves_each_noiseless_step_by_the_clipping_norm(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 3 if place == 0 else 1
    canaries = with_plan(monkeypatch, noise_multiplier=0.0, steps=steps)
    images, labels = canaries.digits(0)
    canary = canaries.canaries(images, labels)[place]
    assert canary.name == NAMES[place]
    out, into = (canaries.trial(canary, images, labels, inside=one) for one in (False, True))
    # The step divides by the number of records, the trial multiplies by half of it.
    assert 2 * (into - out) == pytest.approx(np.ones(steps), abs=1e-4)
    if place == 0:  # a pixel that is black in all other records, in later steps too
        assert out == pytest.approx(np.zeros(steps))


def test_a_canary_is_found_about_as_often_as_the_curve_allows() -> None:
    canaries = program("canaries", AUDIT)
    (found,) = canaries.run(60, 3, lambda canary: canary.name == NAMES[0])
    noise, rate, steps = 1.5, 0.5, 6
    random = np.random.default_rng(0)
    taken = random.random((20_000, steps)) < rate
    seen = noise * random.standard_normal((2, 20_000, steps)) + [np.zeros_like(taken), taken]
    out, into = attacks.canary_scores(seen, noise_multiplier=noise, rate=rate)
    assert attacks.auc(found.scores_in, found.scores_out) == pytest.approx(
        attacks.auc(into, out), abs=0.2
    )
    assert stats.ks_2samp(found.scores_out, out).pvalue > 1e-4
    assert stats.ks_2samp(found.scores_in, into).pvalue > 1e-4
    assert found.epsilon.value <= hs.epsilon(canaries.PLAN, canaries.DELTA).upper
