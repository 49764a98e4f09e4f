"""Groups on a Poisson sample: against quadrature, vectors of all kinds, and a peer."""

import math
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import PoissonSubsampledGroup
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import compose, dominating_pair

each_adjacency = pytest.mark.parametrize("adjacency", list(Adjacency))


def counts(rate: float, size: int) -> list[Any]:
    """Return the binomial probabilities."""
    q = mp.mpf(str(rate))
    return [mp.binomial(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]


def stick(noise: float, rate: float, size: int, other: int, epsilon: float) -> Any:
    """Return the larger hockey-stick divergence of the sum's mixtures, by quadrature.

    The neighbour's examples contribute ``other`` times the group's.
    """
    chances, z = counts(rate, size), mp.mpf(str(noise))

    def densities(x: Any) -> tuple[Any, Any]:
        p, q = (
            mp.fsum(w * mp.npdf(x - side * j / z) for j, w in enumerate(chances))
            for side in (1, other)
        )
        return p, q

    def excess(x: Any, first: int) -> Any:
        both = densities(x)
        return max(both[first] - mp.exp(epsilon) * both[1 - first], 0)

    reach = 14 + size / z
    cuts = mp.linspace(-reach, reach, 161)
    return max(mp.quad(lambda x, i=i: excess(x, i), cuts) for i in (0, 1))


@each_adjacency
@pytest.mark.parametrize(("noise", "rate", "size"), [(1.0, 0.1, 2), (2.0, 0.3, 5), (0.7, 0.02, 3)])
def test_delta_of_one_run_holds_the_quadrature(
    noise: float, rate: float, size: int, adjacency: Adjacency
) -> None:
    plan = PoissonSubsampledGroup(hs.Gaussian(noise), rate, size, adjacency)
    other = -1 if adjacency is Adjacency.REPLACE_ONE else 0
    for epsilon in (0.0, 0.4, 1.5):
        answer = hs.delta(plan, epsilon)
        assert isinstance(answer, hs.Certified)
        with mp.workdps(20):
            truth = float(stick(noise, rate, size, other, epsilon))
        assert answer.lower <= truth * (1 + 1e-6)
        assert truth * (1 - 1e-6) <= answer.upper
        assert answer.upper <= answer.lower * (1 + 1e-2)


@each_adjacency
def test_a_group_of_one_is_a_record(adjacency: Adjacency) -> None:
    one = PoissonSubsampledGroup(hs.Gaussian(1.5), 0.1, 1, adjacency)
    record = hs.PoissonSubsampled(hs.Gaussian(1.5), 0.1, adjacency)
    assert dominating_pair(one) == dominating_pair(record)


@each_adjacency
def test_at_rate_1_the_whole_group_moves_the_sum(adjacency: Adjacency) -> None:
    whole = PoissonSubsampledGroup(hs.Gaussian(8.0), 1, 4, adjacency)
    move = 8 if adjacency is Adjacency.REPLACE_ONE else 4
    assert hs.epsilon(whole, 1e-6).upper == pytest.approx(
        hs.epsilon(hs.Gaussian(8.0 / move), 1e-6).upper, rel=1e-9
    )


@each_adjacency
@pytest.mark.parametrize("inner", [0.0, math.inf])
def test_noise_without_end_and_none(adjacency: Adjacency, inner: float) -> None:
    plan = PoissonSubsampledGroup(hs.Gaussian(inner), 0.1, 3, adjacency)
    answer = hs.delta(plan, 1.0)
    assert isinstance(answer, hs.Certified)
    truth = 0.0 if inner else 1 - 0.9**3
    assert answer.lower == pytest.approx(truth, rel=1e-12)
    assert answer.upper == pytest.approx(truth, rel=1e-12)


@each_adjacency
def test_rare_counts_are_moved_and_both_ends_stay_together(adjacency: Adjacency) -> None:
    plan = PoissonSubsampledGroup(hs.Gaussian(60.0), Fraction(1, 1000), 200, adjacency) ** 100
    answer = hs.epsilon(plan, 1e-8)
    assert isinstance(answer, hs.Certified)
    assert 0.0 < answer.lower <= answer.upper <= answer.lower * 1.01
    smaller = PoissonSubsampledGroup(hs.Gaussian(60.0), Fraction(1, 1000), 100, adjacency) ** 100
    assert hs.epsilon(smaller, 1e-8).upper < answer.lower


def test_a_fraction_is_another_rate_than_the_float_that_equals_it() -> None:
    """The float 0.1 means 1/10, and ``Fraction(0.1)`` a little more."""
    one, other = (hs.PoissonSubsampled(hs.Gaussian(4.0), rate) for rate in (0.1, Fraction(0.1)))
    assert one == other
    assert len(compose(one**10 @ other**10).removing) == 2
