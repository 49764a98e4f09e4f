"""The trade-off function of a plan: its ends fall, in order, and it says what delta says."""

import math
from typing import Any, Final

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.notions import ApproxDP
from tests.laws.test_group_laws import PLANS

RATES: Final = np.array(
    [0.0, 1e-300, 1e-12, 1e-5, 1e-3, 0.01, 0.1, 0.2, 0.4, 0.45, 0.5, 0.6, 0.8, 0.99, 1 - 1e-6, 1.0]
)
EPSILONS: Final = (0.0, 0.5, 2.0)
# What chords between the epsilons that were asked about may lose.
CHORDS: Final = 1e-3

EVERY: Final = PLANS | {
    "Laplace": hs.Laplace(2.0),
    "Laplace, thrice": hs.Laplace(2.0) ** 3,
    "responses": hs.RandomizedResponse(1.0, categories=3) ** 2,
    "both discrete": hs.DiscreteLaplace(2.0) @ hs.RandomizedResponse(1.0),
    "sparse vector": hs.mechanisms.SparseVector(2.0, 4.0),
    "revealed round": hs.federated.RevealedRound(
        hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1) ** 3, 0.5
    )
    ** 3,
    "concentrated": hs.ZCDP(0.125),
    "shown, and Laplace": hs.PoissonSubsampled(hs.Gaussian(0.0), 0.1) @ hs.Laplace(2.0),
    "with a failure": ApproxDP(1.0, 1e-3) @ hs.mechanisms.SparseVector(2.0, 4.0),
    "rarely sampled, little noise": hs.PoissonSubsampled(hs.Gaussian(0.5), 0.01) ** 100,
    "revealed rounds": hs.federated.RevealedRound(hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1), 0.5)
    ** 3,
    "multivariate": hs.mechanisms.MultivariateLaplace(1.0, 3) ** 4,
}
each_plan = pytest.mark.parametrize("plan", EVERY.values(), ids=EVERY.keys())


@each_plan
def test_both_ends_fall_and_are_in_order(plan: hs.Mechanism) -> None:
    f = hs.tradeoff(plan)
    lower, upper = f.bounds(RATES)
    assert (0.0 <= lower).all()
    assert (lower <= upper).all()
    assert (np.diff(lower) <= 0.0).all()
    assert (np.diff(upper) <= 0.0).all()
    singly = np.array([f.bounds(alpha) for alpha in RATES])
    assert (singly[:, 0] <= upper).all()
    assert (np.diff(singly, axis=0) <= 1e-9).all()


@each_plan
def test_it_is_no_weaker_than_the_deltas_of_the_plan(plan: hs.Mechanism) -> None:
    f = hs.tradeoff(plan)
    lower = f(RATES)
    for epsilon in EPSILONS:
        answer = hs.delta(plan, epsilon)
        proven = implied(epsilon, answer.upper)
        assert (lower >= proven - CHORDS).all()
        found = f.delta(epsilon)
        assert found.lower <= answer.upper
        assert answer.lower <= found.upper <= answer.upper * (1.0 + CHORDS) + 1e-12


@each_plan
def test_its_upper_end_is_no_stronger_than_the_deltas_of_the_plan(plan: hs.Mechanism) -> None:
    f = hs.tradeoff(plan)
    fine = np.linspace(0.0, 1.0, 201)
    upper = f.bounds(fine)[1]
    for epsilon in EPSILONS:
        # What the truth reaches somewhere, the upper end may not exceed everywhere.
        shown = float((1.0 - f(fine) - math.exp(epsilon) * fine).max())
        assert hs.delta(plan, epsilon).lower <= shown + 1e-2 * math.exp(epsilon)
        reached = float((1.0 - upper - math.exp(epsilon) * fine).max())
        assert reached <= hs.delta(plan, epsilon).upper + 1e-12


def implied(epsilon: float, delta: float) -> Any:
    """The trade-off function of one (epsilon, delta) guarantee."""
    steep = 1.0 - delta - math.exp(epsilon) * RATES
    flat = math.exp(-epsilon) * (1.0 - delta - RATES)
    return np.maximum(np.maximum(steep, flat), 0.0)
