"""Searches of hyperparameters: as many runs as drawn, all charged first, each one's noise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")

EXAMPLES = 1438
OPTUNA = ("Optuna at random, logarithmic number of runs", "Optuna by earlier scores (TPE)")
FREE = "for free, last run quoted: not private as quoted"
RANDOM = (
    "random, geometric number of runs",
    "random, logarithmic number of runs",
    "random, negative binomial number of runs",
    "random, Poisson number of runs",
)
METHODS = ("grid", *RANDOM, *OPTUNA, FREE)


@pytest.fixture(scope="module")
def example() -> Any:
    return program("tuning")


def plan(steps: int = 2, noise: float = 4.0) -> hs.DPSGD:
    return hs.DPSGD(examples=EXAMPLES, batch_size=256, steps=steps, noise_multiplier=noise)


def counted(example: Any, method: str, seed: int) -> tuple[int, int]:
    """Return how many runs a search made, and how many its words say, without any training."""
    if method in OPTUNA:
        pytest.importorskip("optuna")
    charge, made = hs.Accountant(), list[bool]()
    total = example.whole(method, plan())

    def run(candidate: tuple[float, float]) -> tuple[Any, float]:
        made.append(charge.plan == total)
        assert example.RATES[0] <= candidate[0] <= example.RATES[-1]
        assert example.NORMS[0] <= candidate[1] <= example.NORMS[-1]
        return np.zeros(1), -float(len(made))

    class Counted(example.Runs):  # type: ignore[misc]
        __call__ = staticmethod(run)

    bits = np.random.PCG64(seed).random_raw
    recorded = example.Recorded(bits)
    runs = Counted(plan(), None, seed, bits, charge)
    best = example.search(method, runs, recorded)
    assert charge.plan == total
    assert all(made)
    assert (best is None) == (not made)
    return len(made), example.drawn(method, recorded)


@pytest.mark.parametrize("method", METHODS)
def test_there_are_as_many_runs_as_drawn_and_all_are_charged_first(
    example: Any, method: str
) -> None:
    found = [counted(example, method, seed) for seed in range(3)]
    assert all(made == drawn for made, drawn in found)


@pytest.mark.parametrize("wrong", ["charged first", "runs", "steps"])
def test_what_is_not_as_accounted_is_seen(
    example: Any, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search charged when it is over, one with a run more, one with longer runs."""
    right = example.search

    def search(method: str, runs: Any, bits: Any) -> Any:
        total = example.whole(method, runs.plan)
        if wrong == "charged first":
            found = hs.release.random_search(total, example.GRID, runs, bits=bits)
            runs.charge.step(total)
            return found
        if wrong == "steps":
            runs.plan = replace(runs.plan, steps=runs.plan.steps + 1)
        found = right(method, runs, bits)
        if wrong == "runs":
            runs(found.candidate)
        return found

    monkeypatch.setattr(example, "search", search)
    checks = example.run(1, method=RANDOM[0], plan=plan()).checks
    assert not checks[wrong]
    assert checks["runs"] == (wrong != "runs")


def test_one_image_moves_a_score_by_one_and_its_noise_is_what_is_charged(example: Any) -> None:
    """The same noise with the first image and without it; with weights that read it rightly."""
    data = example.digits()
    weights = np.zeros((10, 65))
    weights[data.labels[0], -1] = 1.0
    fewer = replace(data, rows=data.rows[1:], labels=data.labels[1:])
    pair = [example.noisy_score(weights, one, words(3)) for one in (data, fewer)]
    assert pair[0] - pair[1] == pytest.approx(1.0)
    none = replace(data, rows=data.rows[:0], labels=data.labels[:0])
    bits = words(4)
    drawn = np.array([example.noisy_score(weights, none, bits) for _ in range(1000)]) / 20
    assert 1e-6 < stats.chi2.sf(float((drawn**2).sum()), 1000) < 1 - 1e-6
    assert example.SCORE == hs.Gaussian(noise_multiplier=20)


def words(seed: int) -> Any:
    return np.random.PCG64(seed).random_raw
