"""Groups under epsilon-DP and (epsilon, delta)-DP: attained, by likelihoods on concrete data."""

import math
from itertools import pairwise

import numpy as np
import pytest

import hockeystick as hs


def _power(alpha: float, epsilon: float, delta: float) -> float:
    """The most power of a test of neighbours, at a false positive rate."""
    above = (1.0 - delta - alpha) * math.exp(-epsilon)
    return min(delta + math.exp(epsilon) * alpha, 1.0 - max(above, 0.0))


def _iterated(alpha: float, epsilon: float, delta: float, size: int) -> float:
    for _ in range(size):
        alpha = _power(alpha, epsilon, delta)
    return alpha


@pytest.mark.parametrize(
    ("epsilon", "delta", "size"), [(1.0, 1e-4, 4), (0.3, 0.05, 3), (0.5, 0.2, 4), (0.0, 0.1, 3)]
)
def test_a_group_has_the_power_iterated_and_a_chain_of_neighbours_attains_it(
    epsilon: float, delta: float, size: int
) -> None:
    grown = hs.ApproxDP(epsilon, delta).for_group(size)
    # P_j on thousands of cells of [0, 1], of which the first stands for the point 0.
    cuts = np.concatenate(([0.0], np.linspace(0.0, 1.0, 4001)[1:]))
    above = [np.array([_iterated(cut, epsilon, delta, j) for cut in cuts]) for j in range(size + 1)]
    laws = [np.diff(one, prepend=0.0) for one in above]
    for near, next_one in pairwise(laws):
        for p, q in ((near, next_one), (next_one, near)):
            assert np.maximum(q - math.exp(epsilon) * p, 0.0).sum() <= delta + 1e-9
    for at in (0.1, epsilon, 2.0 * epsilon, size * epsilon):
        attained = np.maximum(laws[-1] - math.exp(at) * laws[0], 0.0).sum()
        found = hs.delta(grown, at)
        assert found.lower - 5e-4 <= attained <= found.upper + 1e-12


def test_a_group_under_pure_dp_costs_discrete_laplace_noise_at_its_distance() -> None:
    runs = hs.PureDP(0.1).for_group(4) ** 10
    theirs = hs.epsilon(hs.DiscreteLaplace(10.0, sensitivity=4) ** 10, 1e-2)
    ours = hs.epsilon(runs, 1e-2)
    assert ours.lower <= theirs.upper
    assert theirs.lower <= ours.upper <= theirs.upper + 1e-9
    assert ours.upper < hs.epsilon(hs.PureDP(0.1).group(4) ** 10, 1e-2).lower


def test_a_group_has_the_textbook_delta_at_its_epsilon() -> None:
    one = hs.ApproxDP(1.0, 1e-10)
    found = hs.delta(one.for_group(4), 4.0)
    assert found.lower <= 1e-10 * math.expm1(4.0) / math.expm1(1.0) * (1 + 1e-12)
    assert found.upper == pytest.approx(one.group(4).delta, rel=1e-3)
    assert found.upper >= one.group(4).delta * (1.0 - 1e-12)


def test_no_group_is_answered_by_none() -> None:
    for plan in (
        hs.RandomizedResponse(1.0),
        hs.RenyiDP({2.0: 0.5}),
        hs.PureDP(1.0).for_group(1) @ hs.RandomizedResponse(1.0),
        hs.PoissonSubsampled(hs.Gaussian(1.0), rate=0.1),
        hs.TCDP(0.1, 1.5),
        hs.PureDP(0.1).group(51) @ hs.RandomizedResponse(1.0),
        hs.DiscreteLaplace(1.0, sensitivity=10**15),
    ):
        with pytest.raises(hs.errors.NoGroupFormError, match="groups of 2"):
            plan.for_group(2)
    with pytest.raises(hs.errors.NoGroupFormError, match=r"\.group\(51\) has a bound: 5\.1"):
        hs.PureDP(0.1).for_group(51)
    assert hs.RandomizedResponse(1.0).for_group(1) == hs.RandomizedResponse(1.0)
    f = hs.tradeoffs.GaussianTradeOff
    assert hs.FDP(f(0.5)).for_group(2) == hs.FDP(f(1.0))
