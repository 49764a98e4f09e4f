"""Upper ends by closed forms of what dominates a plan."""

import math

import pytest

import hockeystick as hs
from hockeystick.accountants.ask import has_no_epsilon
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.closed_form import (
    HitsProfile,
    LargestAtomBound,
    closed_delta_upper,
    closed_epsilon_upper,
    dominating_closed_form,
    largest_atom_bound,
)
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import SampledGaussianLoss, compose

SHUFFLED = hs.Shuffled(hs.Gaussian(2.0), steps=20)
REPLACED = hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(1.0), 10, 1000)


def test_epochs_are_gaussians_together_and_with_others() -> None:
    terms = composition_of(SHUFFLED**3 @ hs.Gaussian(4.0), "prv").removing
    whole = hs.Gaussian(2.0) ** 3 @ hs.Gaussian(4.0)
    assert closed_epsilon_upper(terms, 1e-6) == hs.epsilon(whole, 1e-6).upper
    assert closed_delta_upper(terms, 1.0) == hs.delta(whole, 1.0).upper
    assert dominating_closed_form(terms)


@pytest.mark.parametrize(
    "plan", [REPLACED**2, SHUFFLED @ hs.Laplace(3.0), hs.Gaussian(2.0), hs.Laplace(1.0)], ids=str
)
def test_nothing_is_said_where_no_form_is_known_or_none_is_needed(plan: hs.Mechanism) -> None:
    terms = composition_of(plan, "prv").removing
    assert closed_epsilon_upper(terms, 1e-6) == math.inf
    assert closed_delta_upper(terms, 1.0) == math.inf
    assert not dominating_closed_form(terms)


def test_the_bounds_are_the_atom_s_own() -> None:
    atom = LargestAtomBound(2.0, math.log(0.25))
    for epsilon in (0.0, 0.3, 1.999):
        with mp.workdps(30):
            exact = mp.mpf(0.25) * -mp.expm1(mp.mpf(epsilon) - 2)
            assert exact * (1 - 1e-13) <= atom.delta(epsilon) <= exact
            again = mp.mpf(2) + mp.log1p(-mp.mpf(atom.delta(epsilon)) / mp.mpf(0.25))
        found = atom.epsilon(atom.delta(epsilon))
        assert again - 1e-12 <= found <= again
    assert atom.delta(2.0) == atom.delta(3.0) == 0.0
    assert atom.epsilon(0.25) == atom.epsilon(0.9) == 0.0


@pytest.mark.parametrize(
    ("plan", "delta"),
    [
        (hs.Exponential(1e-2) ** 5, 0.05),
        (hs.Laplace(100.0) @ hs.Exponential(0.1), 0.9),
        (hs.PoissonSubsampled(hs.Gaussian(0.7), 1e-8) ** 1000, 1e-5),
    ],
    ids=str,
)
def test_a_delta_above_that_of_epsilon_0_costs_nothing(plan: hs.Mechanism, delta: float) -> None:
    found = hs.epsilon(plan, delta)
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_a_sampled_loss_too_large_for_floats_is_refused() -> None:
    with pytest.raises(hs.errors.UnsupportedError, match="too large for floats"):
        hs.epsilon(hs.PoissonSubsampled(hs.Laplace(5e-324), 0.1) ** 10, 1e-5)


def test_all_runs_together_have_the_product_of_their_chances() -> None:
    for terms in composition_of(hs.Laplace(20.0) ** 100, "test").directions:
        found = largest_atom_bound(terms)
        assert found == pytest.approx((5.0, 100.0 * math.log(0.5)), rel=1e-12)
        assert found.epsilon(1e-30) == 0.0


@pytest.mark.parametrize(
    ("plan", "least", "most"),
    [
        (hs.Exponential(1.0), 0.5, 1.0),
        (hs.Exponential(1.0) ** 3, 1.5, 3.0),
        (hs.Laplace(1.0), 1.0, 1.0),
        (hs.RandomizedResponse(1.0), 1.0, 1.0),
        (hs.Laplace(2.0) @ hs.Exponential(1.0), 1.0, 1.5),
    ],
    ids=str,
)
def test_no_delta_at_all_costs_at_least_what_some_data_surely_lose(
    plan: hs.Mechanism, least: float, most: float
) -> None:
    answer = hs.epsilon(plan, 0.0)
    assert answer.lower == pytest.approx(least, rel=1e-12)
    assert answer.lower <= least
    assert answer.upper == pytest.approx(most, rel=1e-12)
    assert most <= answer.upper


def sampled(rate: float, noise: float, runs: int) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** runs


@pytest.mark.parametrize(("rate", "noise"), [(1e-8, 0.7), (0.01, 1.0), (0.3, 5.0)])
def test_of_a_single_run_it_is_the_closed_form(rate: float, noise: float) -> None:
    with mp.workdps(30):
        distance = float(mp.mpf(str(rate)) * mp.erf(1 / (mp.mpf(str(noise)) * mp.sqrt(8))))
    composition = compose(sampled(rate, noise, 1))
    assert has_no_epsilon(composition, distance * (1.0 + 1e-9))
    assert not has_no_epsilon(composition, distance * (1.0 - 1e-9))
    # Three runs are further apart than one.
    assert not has_no_epsilon(compose(sampled(rate, noise, 3)), distance * (1.0 + 1e-9))


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_no_bound_is_below_the_distance_of_two_products(runs: int) -> None:
    # A product of coins, whose distance is a sum over the number of heads.
    p = 1.0 / (1.0 + math.exp(-0.01))
    chances = [
        (p**k * (1 - p) ** (runs - k), (1 - p) ** k * p ** (runs - k)) for k in range(runs + 1)
    ]
    distance = 0.5 * sum(math.comb(runs, k) * abs(a - b) for k, (a, b) in enumerate(chances))
    assert not has_no_epsilon(compose(hs.PureDP(0.01) ** runs), 0.999 * distance)


@pytest.mark.parametrize("runs", [1, 3])
def test_what_may_be_infinite_counts_in_full(runs: int) -> None:
    # Without their failures the guarantees are next to 0; with them the distance is 1e-4 a run.
    plan = hs.ApproxDP(1e-9, 1e-4) ** runs @ sampled(1e-8, 5.0, 10)
    assert not has_no_epsilon(compose(plan), 0.9e-4 * runs)
    assert hs.epsilon(plan, 0.9e-4 * runs).upper > 0.0


@pytest.mark.parametrize(("rate", "noise"), [(0.1, 0.03), (0.9, 0.0375), (1e-9, 0.001)])
@pytest.mark.parametrize("removing", [True, False])
def test_hits_of_one_run_hold_its_closed_form(rate: float, noise: float, removing: bool) -> None:
    loss = SampledGaussianLoss(rate, noise, removing)
    hit = 0.5 / noise**2 + math.log(rate)
    for epsilon in [hit + x / noise for x in (-6.0, -1.0, 3.0, 8.0)] if removing else [0.0, 0.05]:
        low, high = (HitsProfile(loss, 1).delta(mp.mpf(epsilon), side) for side in (-1, 1))
        with mp.workdps(40):
            assert low <= loss.delta(mp.mpf(epsilon)) <= high
        assert high - low <= 1e-9 * high + 1e-13


def test_little_noise_is_known_by_the_number_of_hits() -> None:
    # Sums over the hits of 1,000 runs, of Gaussians at sqrt(hits)/noise, in 50 digits.
    for noise, truth in ((0.03, 78882.644287), (0.02, 177941.287176), (0.01, 713336.010033)):
        found = hs.epsilon(sampled(0.1, noise, 1000), 1e-5)
        assert (found.lower, found.upper) == pytest.approx((truth, truth), abs=1e-6)
        assert found.relative_width < 1e-11
