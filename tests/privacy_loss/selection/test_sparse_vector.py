"""Sparse vector up to its first positive: bounds against runs worked out by quadrature."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import CellLoss, PrivacyLoss, dominating_pair
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.selection.sparse_vector import renyi_bound
from hockeystick.privacy_loss.selection.threshold_attacks import revealing_queries


def profile(loss: CellLoss, epsilon: float) -> float:
    """Return delta from fine cells, an atom or a cell at a time."""
    low = max(loss.infimum, -40.0)
    high = min(loss.supremum, 40.0)
    edges = np.concatenate(([-math.inf], np.linspace(low, high, 40_001), [math.inf]))
    masses, atoms = loss.cells(edges), loss.atoms()
    log_p = np.concatenate((masses.log_p, atoms.log_p))
    log_q = np.concatenate((masses.log_q, atoms.log_p - atoms.loss))
    return float(np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0.0).sum())


def loss_of(mechanism: hs.Mechanism) -> PrivacyLoss:
    removing, adding = dominating_pair(mechanism)
    assert removing is adding
    assert removing is not None
    return removing


def bound_of(mechanism: hs.Mechanism) -> CellLoss:
    loss = loss_of(mechanism)
    assert isinstance(loss, DominatedLoss)
    return loss.dominating


@pytest.mark.parametrize("scales", [(2.0, 4.0), (0.8, 0.9)], ids=str)
def test_the_largest_loss_is_the_classical_one_and_runs_come_near_it(
    scales: tuple[float, float],
) -> None:
    threshold, query = scales
    bound = bound_of(hs.mechanisms.AboveThreshold(threshold, query))
    classical = 1 / threshold + 2 / query
    assert classical <= bound.supremum <= classical * (1 + 4e-15)
    assert bound_of(
        hs.mechanisms.AboveThreshold(threshold, query, monotone=True)
    ).supremum == pytest.approx(1 / threshold + 1 / query, rel=4e-15)


# Delta of some queries by quadrature over the threshold's noise: (epsilon, delta).
@pytest.mark.parametrize(
    ("threshold", "query", "monotone", "scales", "costs"),
    [
        ("laplace", "laplace", False, (2.0, 4.0), ((0.0, 0.0732099700), (0.6, 0.0094014708))),
        ("laplace", "laplace", True, (0.8, 0.9), ((0.2, 0.2057190714), (1.5, 0.0346048419))),
        ("gaussian", "laplace", False, (0.8, 0.9), ((0.6, 0.2194281750), (1.5, 0.1502185418))),
        ("gaussian", "laplace", True, (2.0, 4.0), ((0.0, 0.0590162923), (0.2, 0.0380378074))),
        ("gaussian", "gaussian", False, (2.0, 4.0), ((0.0, 0.1050175672), (0.6, 0.0282695942))),
        ("gaussian", "gaussian", True, (0.8, 0.9), ((0.2, 0.2353773520), (1.5, 0.0810258643))),
    ],
)
def test_the_lower_loss_is_that_of_some_queries(
    threshold: str, query: str, monotone: bool, scales: tuple[float, float], costs: Any
) -> None:
    mechanism = hs.mechanisms.AboveThreshold(
        *scales,
        threshold_noise=threshold,
        query_noise=query,
        monotone=monotone,
        queries=12 if query == "gaussian" else None,
    )
    attained, found = loss_of(mechanism).attained, revealing_queries(mechanism)
    assert isinstance(attained, OutcomesLoss)
    assert found is not None
    moves = found.neighbours_first - found.first, found.neighbours_last - found.last
    assert moves == (Fraction(1), Fraction(0 if monotone else -1))
    for epsilon, cost in costs:
        assert float(attained.delta(mp.mpf(epsilon))) == pytest.approx(cost, rel=1e-7)


# K(c) of runs of two, three and four queries with scales 1 and 2, by quadrature.
@pytest.mark.parametrize(
    ("queries", "moments"),
    [
        (2, ((0.2, 0.0282340153), (1.0, 0.2453733117), (4.0, 2.0824924910))),
        (3, ((0.2, 0.0280339701), (1.0, 0.2823221298), (4.0, 3.1024130927))),
        (4, ((0.2, 0.0042391967), (1.0, 0.0518897566), (4.0, 4.8452696176))),
    ],
)
def test_no_run_with_gaussian_noise_exceeds_the_bound(
    queries: int, moments: tuple[tuple[float, float], ...]
) -> None:
    mechanism = hs.mechanisms.AboveThreshold(
        1.0, 2.0, threshold_noise="gaussian", query_noise="gaussian", queries=queries
    )
    bound, loss = renyi_bound(mechanism, Fraction(2), None), loss_of(mechanism)
    for c, moment in moments:
        found = loss.cgf_bounds(c)
        assert moment <= min(bound.bound(c), found.midpoint + found.radius)


@pytest.mark.parametrize(
    ("threshold", "query", "queries"), [(1.0, 2.0, 1), (10.0, 20.0, 1000), (3.0, 1.0, 50)]
)
@pytest.mark.parametrize("monotone", [False, True])
def test_the_bound_is_the_convex_envelope_of_both(
    threshold: float, query: float, queries: int, monotone: bool
) -> None:
    mechanism = hs.mechanisms.AboveThreshold(
        threshold,
        query,
        threshold_noise="gaussian",
        query_noise="gaussian",
        queries=queries,
        monotone=monotone,
    )
    loss = renyi_bound(mechanism, Fraction(1 if monotone else 2), None)
    move = 1 if monotone else 2
    square = 1 / threshold**2 + (move / query) ** 2
    grid = np.geomspace(1e-3, 1e3, 4001)
    first = queries / query**2 / 2 * grid * (grid + 1)
    second = square / 2 * grid * (grid + 1) + math.log(queries)
    bound = np.array([loss.bound(float(c)) for c in grid])
    slope = np.array([loss.cgf_estimate(float(c)).first_derivative for c in grid])
    assert (bound <= np.minimum(first, second) * (1 + 1e-13)).all()
    assert (np.diff(slope) >= -1e-9 * slope[1:]).all()
    steps = np.diff(bound)
    assert (steps >= slope[:-1] * np.diff(grid) * (1 - 1e-9)).all()
    assert (steps <= slope[1:] * np.diff(grid) * (1 + 1e-9)).all()
    assert bound[0] == pytest.approx(min(first[0], second[0]), rel=1e-9) or loss.left_tangent == 0.0
    assert bound[-1] == pytest.approx(min(first[-1], second[-1]), rel=1e-9)


@pytest.mark.parametrize(
    ("threshold", "query"),
    [("laplace", "laplace"), ("gaussian", "laplace"), ("gaussian", "gaussian")],
)
def test_a_known_threshold_leaves_the_queries_alone(threshold: str, query: str) -> None:
    alone = hs.mechanisms.AboveThreshold(
        math.inf, 4.0, threshold_noise=threshold, query_noise=query, queries=3
    )
    bound = bound_of(alone)
    if query == "gaussian":
        # Releasing three noisy answers costs 3/16 at the order 2.
        assert bound.cgf_bounds(1.0).midpoint < 3 / 16
    else:
        assert profile(bound, 0.0) <= math.tanh(0.25) * (1 + 1e-9)
        assert bound.supremum == pytest.approx(0.5, rel=1e-14)


RUNS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "one": ((0.5,), (-0.5,)),
    "two": ((-1.0, 0.3), (0.0, -0.7)),
    "rare": ((1.5, -2.0), (2.5, -3.0)),
    "three": ((0.4, -0.6, 1.0), (1.4, 0.4, 0.0)),
    "late": ((4.0, 4.0, 4.0, -3.0), (5.0, 5.0, 5.0, -4.0)),
}


SCALES = [(2.0, 4.0), (1.0, 4.0), (3.0, 1.5), (0.8, 0.9)]


each_run = pytest.mark.parametrize("run", RUNS)


each_scale = pytest.mark.parametrize("scales", SCALES, ids=str)


def laplace(scale: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return density and upper tail."""
    b = mp.mpf(scale)

    def tail(x: Any) -> Any:
        return mp.exp(-x / b) / 2 if x > 0 else 1 - mp.exp(x / b) / 2

    return lambda x: mp.exp(-abs(x) / b) / (2 * b), tail


def gaussian(scale: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return density and upper tail."""
    s = mp.mpf(scale)
    return lambda x: mp.npdf(x / s) / s, lambda x: mp.ncdf(-x / s)


def outcomes(answers: Sequence[float], threshold: Any, query: Any, reach: float) -> list[Any]:
    """Return the probabilities of each query to be the first above 0, and of none."""
    found = []
    kinks = sorted({0.0, *answers, -reach, reach, -reach / 4, reach / 4})
    for place in range(len(answers) + 1):

        def integrand(r: Any, place: int = place) -> Any:
            value = threshold[0](r)
            for answer in answers[:place]:
                value *= 1 - query[1](r - answer)
            return value * query[1](r - answers[place]) if place < len(answers) else value

        found.append(mp.fsum(mp.quad(integrand, ends) for ends in pairwise(kinks)))
    return found


def stick(p: Sequence[Any], q: Sequence[Any], epsilon: float) -> Any:
    grown = mp.exp(epsilon)
    return mp.fsum(max(a - grown * b, 0) for a, b in zip(p, q, strict=True))


KINDS = {
    "laplace": (laplace, laplace, 60.0),
    "mixed": (gaussian, laplace, 14.0),
    "gaussian": (gaussian, gaussian, 14.0),
}


@cache
def outcomes_of(kind: str, answers: tuple[float, ...], scales: tuple[float, float]) -> list[Any]:
    """Return the outcomes' probabilities of one data set."""
    of_threshold, of_query, reach = KINDS[kind]
    noises = of_threshold(scales[0]), of_query(scales[1])
    with mp.workdps(15):
        found = outcomes(answers, *noises, reach * scales[0])
    assert float(mp.fsum(found)) == pytest.approx(1.0, abs=1e-10)
    return found


@each_run
@each_scale
@pytest.mark.parametrize("kind", ["laplace", "mixed"])
@pytest.mark.parametrize("monotone", [False, True])
def test_no_run_exceeds_the_dominating_loss(
    monotone: bool, kind: str, run: str, scales: tuple[float, float]
) -> None:
    noise = "gaussian" if kind == "mixed" else "laplace"
    plan = hs.mechanisms.AboveThreshold(*scales, threshold_noise=noise, monotone=monotone)
    lower, other = RUNS[run]
    # Queries that all move one way cost half their share.
    upper = tuple(one + (1.0, 0.6)[k % 2] for k, one in enumerate(lower)) if monotone else other
    p, q = (outcomes_of(kind, one, scales) for one in (lower, upper))
    bound, largest = bound_of(plan), 1 / scales[0] + 2 / scales[1]
    for share in (-0.9, -0.2, 0.0, 0.1, 0.5, 0.9):
        most = profile(bound, share * largest) + 1e-9
        assert stick(p, q, share * largest) <= most
        assert stick(q, p, share * largest) <= most
