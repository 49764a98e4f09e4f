"""Pruned gradients and decaying noise: each step's noise, what is sent, what selection shows."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def example() -> Any:
    return program("pruning")


METHODS = (
    "all coordinates",
    "half, at random",
    "a tenth, largest of the noisy sum",
    "linear decay",
    "cyclic decay with a floor",
)


@pytest.mark.parametrize("method", METHODS)
def test_each_step_releases_what_its_plan_counts(
    example: Any, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, keep, schedule = example.METHODS[method]
    seen: list[tuple[float, float]] = []

    def recorded(mechanism: Any, rows: Any, **given: Any) -> Any:
        seen.append((mechanism.noise_multiplier, given["norm"]))
        clean = {name: given[name] for name in ("norm", "keep")}
        words = [np.random.PCG64(len(seen)).random_raw for _ in range(2)]
        pair = [
            release(hs.Gaussian(0), one, bits=word, **clean)
            for one, word in zip((rows, rows[1:]), words, strict=True)
        ]
        if release is example.randomly_pruned_sum or keep == 1.0:
            assert float(np.linalg.norm(pair[0] - pair[1])) <= given["norm"] * (1 + 1e-12)
        return release(mechanism, rows, **given)

    monkeypatch.setitem(example.METHODS, method, (recorded, keep, schedule))
    plan = example.planned(method, 1438, steps=4)
    found = example.run(1, method=method, plan=plan)
    assert seen == [(noise, example.NORM) for noise in plan.noise_multipliers.tolist()]
    assert all(found.checks.values())
    assert found.epsilon == pytest.approx(example.EPSILON, rel=1e-3)


def test_a_decay_begins_with_more_noise_and_ends_with_less(example: Any) -> None:
    constant = example.planned("all coordinates", 1438).noise_multiplier
    for method in METHODS[3:]:
        noises = example.planned(method, 1438).noise_multipliers
        assert noises.min() < constant < noises.max() == noises[0]


def test_more_coordinates_than_are_to_be_sent_are_seen(
    example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = example.METHODS["a tenth, at random"]
    everything = (example.METHODS["all coordinates"][0], own[1], None)

    def all_of_them(mechanism: Any, rows: Any, **given: Any) -> Any:
        return everything[0](mechanism, rows, **(given | {"keep": 1.0}))

    monkeypatch.setitem(example.METHODS, "a tenth, at random", (all_of_them, *own[1:]))
    found = example.run(1, method="a tenth, at random", steps=2)
    assert not found.checks["coordinates"]


def test_selection_by_the_gradients_shows_single_images(example: Any) -> None:
    assert example.shown_by_selection(64) > 0.5


def test_a_training_at_the_budget_learns(example: Any) -> None:
    assert example.run(0).result["accuracy"] > 0.85
