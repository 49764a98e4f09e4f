"""Sparse vector up to its first positive: bounds against runs worked out by quadrature."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import PrivacyLoss, dominating_pair
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss
from hockeystick.privacy_loss.selection.sparse_vector import renyi_bound
from hockeystick.privacy_loss.selection.threshold_attacks import nearly_largest, revealing_queries


def loss_of(mechanism: hs.Mechanism) -> PrivacyLoss:
    removing, adding = dominating_pair(mechanism)
    assert removing is adding
    assert removing is not None
    return removing


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
    assert found.neighbours_last - found.last == Fraction(0 if monotone else -1)
    for epsilon, cost in costs:
        assert float(attained.delta(mp.mpf(epsilon))) == pytest.approx(cost, rel=1e-7)


# By quadrature, as above.
@pytest.mark.parametrize(
    ("monotone", "scales", "costs"),
    [
        (False, (2.0, 4.0), ((0.6, 0.00096303156892), (0.9, 0.00027526125704))),
        (True, (0.8, 0.9), ((1.5, 0.0029491296872), (2.2, 0.00075914235088))),
    ],
)
def test_many_answers_at_the_threshold_reveal_nearly_all_for_once(
    monotone: bool, scales: tuple[float, float], costs: Any
) -> None:
    mechanism = hs.mechanisms.AboveThreshold(*scales, monotone=monotone)
    found = nearly_largest(mechanism)
    assert found is not None
    for epsilon, cost in costs:
        assert float(found.delta(mp.mpf(epsilon))) == pytest.approx(cost, rel=1e-7)


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
    assert bound[0] == pytest.approx(min(first[0], second[0]), rel=1e-9) or loss.left_tangent == 0.0
    assert bound[-1] == pytest.approx(min(first[-1], second[-1]), rel=1e-9)
