"""In one run: what no mechanism at all exceeds, by linear programs over all of them.

How many of r guesses are right, of m canaries, has a law p of which (epsilon, delta)-DP asks, for
each of its pairs, with canaries averaged,

    sum over k of (k p_k - e^eps (r - k + 1) p_(k-1))+ <= m delta

and the same with right and wrong exchanged. Mechanisms whose outputs agree with who was included in
a random set of places attain every such law.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

import hockeystick as hs
from hockeystick.audit.one_run import Guesses, Inverse, epsilon_by_binomial, of_lines, rejected

Pairs = list[tuple[float, float]]
ROUNDING = 1e-6


def largest_probability(guesses: Guesses, pairs: Pairs) -> float:
    """The largest probability of so many right guesses, of all mechanisms."""
    m, r, v = guesses.canaries, guesses.made, guesses.correct
    columns = r + 1 + 2 * r * len(pairs)
    rows: list[np.ndarray] = []
    limits: list[float] = []
    for at, (epsilon, delta) in enumerate(pairs):
        growth, first = math.exp(epsilon), r + 1 + 2 * r * at
        for k in range(r):
            for more, less, own, place in ((k + 1, k, k + 1, 0), (k, k + 1, r - k, r)):
                row = np.zeros(columns)
                row[more], row[less] = own / m, -growth * (r - k if place == 0 else k + 1) / m
                row[first + place + k] = -1.0
                rows.append(row)
                limits.append(0.0)
        row = np.zeros(columns)
        row[first : first + 2 * r] = 1.0
        rows.append(row)
        limits.append(delta)
    gain, all_mass = np.zeros(columns), np.zeros(columns)
    gain[v : r + 1], all_mass[: r + 1] = -1.0, 1.0
    found = linprog(gain, np.array(rows), limits, all_mass[np.newaxis], [1.0])
    assert found.status == 0
    assert found.fun is not None
    return -float(found.fun)


def recursion_rejects_at(guesses: Guesses, inverse: Inverse, parameter: float) -> float:
    """The least level, nearly, at which the recursion rejects."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        found = bool(rejected(guesses, middle, inverse, np.array([parameter]))[0])
        low, high = (low, middle) if found else (middle, high)
    return high


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02, 0.2])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(("canaries", "made"), [(1, 1), (3, 2), (5, 5), (20, 7), (30, 20)])
def test_one_run_rejects_exactly_what_no_mechanism_has(
    canaries: int, made: int, epsilon: float, delta: float
) -> None:
    for correct in {1, (3 * made) // 4, made} - {0}:
        guesses = Guesses(canaries, made, correct)
        most = largest_probability(guesses, [(epsilon, delta)])
        assert epsilon_by_binomial(guesses, delta, most * (1.0 - ROUNDING) - 1e-9) <= epsilon
        if most < 0.99:
            assert epsilon_by_binomial(guesses, delta, most * (1.0 + ROUNDING) + 1e-7) >= epsilon
        assert (
            recursion_rejects_at(guesses, of_lines(np.array([epsilon]), np.array([delta])), epsilon)
            > most - ROUNDING
        )


def test_a_mechanism_exceeds_the_bound_that_was_published() -> None:
    """All guesses wrong is made rarer, so that it is within 0.02 of itself with one flipped."""
    m, delta = 5, 0.02
    wrong = (1.0 + delta) / 2**m - delta
    others = (1.0 - wrong) / (2**m - 1)
    assert others - wrong == pytest.approx(delta, abs=1e-15)
    chance = float(binom.sf(0, m, 0.5))
    published = chance + 2 * m * delta * (1.0 - chance)
    assert 1.0 - wrong > published + 0.01
    guesses = Guesses(m, m, 1)
    assert largest_probability(guesses, [(0.0, delta)]) == pytest.approx(1.0 - wrong, abs=1e-9)
    assert epsilon_by_binomial(guesses, delta, 0.98) == 0.0


@pytest.mark.parametrize(
    "plan",
    [hs.Gaussian(1.0), hs.PoissonSubsampled(hs.Gaussian(0.7), rate=0.3), hs.Laplace(0.7)],
    ids=str,
)
def test_no_mechanism_within_a_plan_is_refuted_more_often_than_it_may(plan: hs.Mechanism) -> None:
    f = hs.tradeoff(plan)
    epsilons = np.linspace(0.0, 6.0, 25)
    deltas = np.array([f.delta(float(one)).upper for one in epsilons])
    pairs = list(zip(epsilons.tolist(), deltas.tolist(), strict=True))
    for correct in (9, 10):
        guesses = Guesses(12, 10, correct)
        most = largest_probability(guesses, pairs)
        found = recursion_rejects_at(guesses, of_lines(epsilons, deltas), 0.0)
        assert most - ROUNDING < found < most * 1.3
