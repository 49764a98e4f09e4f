"""Groups: closed forms against the iterated function, and the known value."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs.functions.laplace import LaplaceTradeOff
from hockeystick.tradeoffs.functions.piecewise import IDENTITY, ApproxTradeOff, discrete_tradeoff
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
from hockeystick.tradeoffs.operations.group import GroupTradeOff
from hockeystick.tradeoffs.profiles.by_function import FunctionProfile

RATES = np.array([1e-250, 1e-12, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 1 - 1e-6, 1 - 1e-12])
EXAMPLES: dict[str, hs.tradeoffs.TradeOff] = {
    "identity": IDENTITY,
    "G_1": hs.tradeoffs.GaussianTradeOff(1.0),
    "Laplace": LaplaceTradeOff(2.0),
    "C_p(G_1)": SampledGaussianTradeOff(1.0, 0.3),
    "budget": ApproxTradeOff(0.5, 1e-3),
    "discrete": discrete_tradeoff([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "one-sided": discrete_tradeoff([0.5, 0.3, 0.2], [0.1, 0.7, 0.2]),
    "of a group": GroupTradeOff(SampledGaussianTradeOff(1.0, 0.3), 2),
}


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_walk_agrees_with_the_gaussian_closed_form(size: int) -> None:
    walk = GroupTradeOff(SampledGaussianTradeOff(0.3, 1.0), size)
    lower, upper = walk.bounds(RATES)
    low, high = hs.tradeoffs.GaussianTradeOff(0.3).group(size).bounds(RATES)
    assert (lower <= high).all()
    assert (low <= upper).all()
    assert np.allclose(lower, upper, rtol=1e-8, atol=0.0)
    power, closed = (
        walk._power(RATES),
        hs.tradeoffs.GaussianTradeOff(0.3).group(size)._power(RATES),
    )
    assert (power.lower <= closed.upper).all()
    assert (closed.lower <= power.upper).all()
    assert np.allclose(power.lower, power.upper, rtol=1e-8, atol=0.0)


@pytest.mark.parametrize("size", [2, 5])
def test_the_walk_agrees_with_the_laplace_closed_form(size: int) -> None:
    walk, closed = GroupTradeOff(LaplaceTradeOff(2.0), size), LaplaceTradeOff(2.0).group(size)
    assert isinstance(closed, LaplaceTradeOff)
    assert 2.0 / size * (1 - 2**-51) <= closed.scale <= 2.0 / size
    lower, upper = walk.bounds(RATES)
    low, high = closed.bounds(RATES)
    assert (lower <= high).all()
    assert (low <= upper).all()
    assert np.allclose(lower, upper, rtol=1e-11, atol=0.0)


def test_three_records_of_a_budget_have_the_known_delta() -> None:
    f = ApproxTradeOff(1.0, 1e-6).group(3)
    value = mp.mpf("1.11073379273896954625907e-5")
    with mp.workdps(30):
        power = f._power(np.zeros(1))
        assert power.lower[0] <= value * (1 + mp.mpf("1e-16"))
        assert value * (1 - mp.mpf("1e-16")) <= power.upper[0] <= value * (1 + mp.mpf("1e-12"))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [2, 4])
def test_it_is_the_function_iterated(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    f = discrete_tradeoff(rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5)))
    for alpha in rng.random(8):
        low, high = alpha, alpha
        for _ in range(size):
            low, high = 1.0 - f.bounds(low)[1], 1.0 - f.bounds(high)[0]
        lower, upper = f.group(size).bounds(alpha)
        assert lower <= 1.0 - low + 1e-15
        assert upper >= 1.0 - high - 1e-15
        assert upper - lower <= 1e-12


@pytest.mark.parametrize("f", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_a_group_of_one_is_the_function_and_groups_of_groups_multiply(
    f: hs.tradeoffs.TradeOff,
) -> None:
    assert f.group(1) is f
    lower, upper = f.group(2).group(3).bounds(RATES)
    low, high = f.group(6).bounds(RATES)
    assert (lower <= high).all()
    assert (low <= upper).all()


@pytest.mark.parametrize("f", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_a_group_is_less_private_and_its_inverse_is_that_of_the_inverse(
    f: hs.tradeoffs.TradeOff,
) -> None:
    grown = f.group(3)
    assert (grown(RATES) <= f.bounds(RATES)[1]).all()
    # Strictly between the ends f falls; there the inverse leads back.
    alpha = np.array([1e-3, 0.05, 0.2])
    beta = grown(alpha)
    inside = beta > 1e-3
    assert (grown.inverse()(beta[inside]) <= alpha[inside] * (1.0 + 1e-9) + 1e-12).all()
    assert (grown.inverse().bounds(beta[inside])[1] >= alpha[inside] * (1.0 - 1e-9)).all()


@pytest.mark.parametrize("mu", [0.1, 0.3, 1.7])
def test_the_mu_of_a_group_is_rounded_up(mu: float) -> None:
    for size in range(2, 100):
        grown = hs.tradeoffs.GaussianTradeOff(mu).group(size)
        assert isinstance(grown, hs.tradeoffs.GaussianTradeOff)
        exact = size * Fraction(mu)
        assert exact <= Fraction(grown.mu) <= exact * (1 + Fraction(2) ** -51)


def test_thousands_of_records_end_at_no_privacy() -> None:
    f = SampledGaussianTradeOff(1.0, 0.1).group(4000)
    lower, upper = f.bounds(np.array([0.0, 1e-6, 0.5, 1.0]))
    assert lower[0] == pytest.approx(1.0)
    assert (upper[1:] <= 1e-280).all()
    assert (lower[1:] >= 0.0).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 3.0, 20.0])
def test_the_profile_from_the_function_is_that_of_the_closed_form(epsilon: float) -> None:
    for f in (
        hs.tradeoffs.GaussianTradeOff(0.9),
        SampledGaussianTradeOff(1.0, 0.2),
        LaplaceTradeOff(0.5),
    ):
        ours = FunctionProfile(f).at(np.array([epsilon]))
        theirs = f.forward.at(np.array([epsilon]))
        assert ours.lower[0] <= theirs.upper[0]
        assert theirs.lower[0] <= ours.upper[0]
        assert ours.upper[0] - ours.lower[0] <= 1e-8 * theirs.upper[0] + 1e-250


def test_a_group_of_a_budget_has_the_known_profile() -> None:
    f = ApproxTradeOff(1.0, 1e-6).group(3)
    value = 1.11073379273896954625907e-5
    values = f.forward.at(np.array([3.0, 4.0, 700.0]))
    assert (values.lower <= value * (1 + 1e-9)).all()
    assert (values.upper >= value * (1 - 1e-15)).all()
    assert np.allclose(values.upper, value, rtol=1e-9)
    assert f.forward.supremum == pytest.approx(3.0)


@pytest.mark.parametrize("size", [0, -1, 1.5, float("nan"), "2", None, 10**16])
def test_only_counts_will_do(size: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="size must be an integer from 1"):
        hs.tradeoffs.GaussianTradeOff(1.0).group(size)


def test_a_group_of_a_plan_is_of_its_own_form_and_a_sample_written_out_has_none() -> None:
    training = hs.DPSGD(noise_multiplier=1.1, rate=0.004, steps=100)
    assert hs.tradeoff(training).group(4).release == training.for_group(4)
    written_out = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.004) ** 100
    assert hs.tradeoff(written_out).group(4).release is None
