"""Sums of scores: their distribution for every choice of steps, and what they bound."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from hockeystick.privacy_loss.noise.score_sums import _one, losses_of_sums, score_sums


def by_enumeration(own: np.ndarray, other: np.ndarray, steps: int, times: int) -> np.ndarray:
    """Return the mean over all sets of steps of the distribution of the sum, one set at a time."""
    found, sets = np.zeros(steps * (own.size - 1) + 1), 0
    for chosen in itertools.combinations(range(steps), times):
        whole = np.ones(1)
        for step in range(steps):
            whole = np.convolve(whole, own if step in chosen else other)
        found, sets = found + whole, sets + 1
    return found / sets


def test_the_score_of_a_step_has_the_masses_of_its_intervals() -> None:
    """Edges are found again, by solving for the outputs whose score is half way."""
    noise, rate, unit = 0.9, 0.2, 0.05
    for side, mean in ((1.0, 1.0), (-1.0, 0.0)):
        scores = _one(noise, rate, unit, side)
        middles = (np.arange(400) + 0.5) * unit
        ratio = ((1 - rate) * np.exp(middles) - (1 - rate)) / rate
        x = noise**2 * (np.log(ratio) + 0.5 / noise**2)
        below = norm.cdf((x - mean) / noise)
        known = np.diff(np.concatenate(([0.0], below)))[: scores.mass.size - 1]
        assert scores.first == 0
        assert scores.mass[:-1] == pytest.approx(known, rel=1e-7, abs=1e-15)
        assert scores.lost < 1e-50
        assert scores.mass.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("steps", "times"), [(4, 2), (5, 3), (6, 2)])
def test_sums_are_distributed_as_over_all_sets_of_steps(steps: int, times: int) -> None:
    sums = score_sums(1.3, steps, times)
    assert sums is not None
    unit_pair = _parts(1.3, steps, times)
    for found, known in zip(sums, unit_pair, strict=True):
        there = known[found.first : found.first + found.mass.size]
        assert found.mass == pytest.approx(there, rel=1e-9, abs=1e-55)
        assert known.sum() - there.sum() <= found.lost + 1e-12


def _parts(noise: float, steps: int, times: int) -> tuple[np.ndarray, np.ndarray]:
    """Return both distributions by enumeration, from the scores of one step."""
    from hockeystick.privacy_loss.noise.score_sums import _unit

    rate = times / steps
    unit = _unit(noise, steps, rate)
    assert unit is not None
    single = [_one(noise, rate, unit, side) for side in (1.0, -1.0)]
    size = max(one.first + one.mass.size for one in single)
    own, other = (np.pad(one.mass, (one.first, size - one.first - one.mass.size)) for one in single)
    return by_enumeration(own, other, steps, times), by_enumeration(other, other, steps, times)


@pytest.mark.parametrize("removing", [True, False])
def test_each_outcome_is_rounded_to_the_safe_side(removing: bool) -> None:
    sums = score_sums(1.0, 50, 4)
    assert sums is not None
    loss, log_p, error = losses_of_sums(sums, removing)
    own, other = sums if removing else sums[::-1]
    p, q = np.exp(log_p), np.exp(log_p - loss)
    assert error < 1e-6
    assert p.sum() <= 1.0 + 1e-9
    assert q.sum() >= 1.0 - 1e-9
    kept = own.mass > 1e-60
    places = (own.first + np.arange(own.mass.size))[kept] - other.first
    inside = (places >= 0) & (places < other.mass.size)
    assert (q[inside] >= other.mass[places[inside]]).all()


def test_so_many_steps_that_scores_say_little_have_none() -> None:
    assert score_sums(1.0, 10**8, 2) is None
