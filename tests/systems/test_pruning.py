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
