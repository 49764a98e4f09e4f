"""Plans whose epsilon is 0: exactly those whose total variation distance is at most delta."""

import math

import pytest

import hockeystick as hs
from hockeystick.accountants.closed_forms.total_variation import has_no_epsilon
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import compose


def sampled(rate: float, noise: float, runs: int) -> hs.Mechanism:
    """Return so many runs of a sampled Gaussian."""
    return hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** runs


@pytest.mark.parametrize(("rate", "noise"), [(1e-8, 0.7), (0.01, 1.0), (0.3, 5.0)])
def test_of_a_single_run_it_is_the_closed_form(rate: float, noise: float) -> None:
    with mp.workdps(30):
        distance = float(mp.mpf(str(rate)) * mp.erf(1 / (mp.mpf(str(noise)) * mp.sqrt(8))))
    composition = compose(sampled(rate, noise, 1))
    assert has_no_epsilon(composition, distance * (1.0 + 1e-9))
    assert not has_no_epsilon(composition, distance * (1.0 - 1e-9))


@pytest.mark.parametrize(
    ("rate", "noise", "runs"),
    [(1e-6, 1.0, 10), (1e-8, 3.0, 10_000), (1e-4, 0.7, 3), (1e-7, 0.6, 1_000_000), (0.5, 9.0, 2)],
)
def test_a_plan_without_epsilon_has_no_larger_delta_at_0(
    rate: float, noise: float, runs: int
) -> None:
    plan = sampled(rate, noise, runs)
    composition = compose(plan)
    least = min(k for k in range(-40, 1) if has_no_epsilon(composition, 2.0**k))
    # By another route: the lattice's lower end of delta at 0.
    lower = hs.delta(plan, 0.0, accountant="prv").lower
    assert 0.0 < lower <= 2.0**least
    assert not has_no_epsilon(composition, 0.999 * lower)


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_no_bound_is_below_the_distance_of_two_products(runs: int) -> None:
    # A product of coins, whose distance is a sum over the number of heads.
    plan = hs.PureDP(0.01) ** runs
    p = 1.0 / (1.0 + math.exp(-0.01))
    heads = [math.comb(runs, k) for k in range(runs + 1)]
    pairs = [
        (p**k * (1 - p) ** (runs - k), (1 - p) ** k * p ** (runs - k)) for k in range(runs + 1)
    ]
    distance = 0.5 * sum(n * abs(a - b) for n, (a, b) in zip(heads, pairs, strict=True))
    assert not has_no_epsilon(compose(plan), 0.999 * distance)


def test_the_answer_is_0_and_exact() -> None:
    found = hs.epsilon(sampled(1e-8, 0.7, 1000), 1e-5)
    assert (found.lower, found.upper, found.accountant) == (0.0, 0.0, "closed-form")


@pytest.mark.parametrize("runs", [1, 3])
def test_what_may_be_infinite_counts_in_full(runs: int) -> None:
    # Without their failures the guarantees are next to 0; with them the distance is 1e-4 a run.
    plan = hs.ApproxDP(1e-9, 1e-4) ** runs @ sampled(1e-8, 5.0, 10)
    assert not has_no_epsilon(compose(plan), 0.9e-4 * runs)
    assert hs.epsilon(plan, 0.9e-4 * runs).upper > 0.0
