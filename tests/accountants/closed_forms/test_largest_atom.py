"""The atom of the largest loss: what a plan surely costs at the smallest delta."""

import math

import pytest

import hockeystick as hs
from hockeystick.accountants.closed_forms.largest_atom import LargestAtomBound, largest_atom_bound
from hockeystick.accountants.composition import composition_of
from hockeystick.numerics.multiprecision import mp


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


def test_what_has_no_largest_loss_adds_nothing() -> None:
    plan = hs.Laplace(1.0) @ hs.Gaussian(1.0) @ hs.PoissonSubsampled(hs.Laplace(2.0), 0.5)
    for terms in composition_of(plan, "test").directions:
        found = largest_atom_bound(terms)
        assert 0.0 < found.loss < 1.5
        assert found.log_mass < 2.0 * math.log(0.5)
    for terms in composition_of(hs.Gaussian(1.0), "test").directions:
        assert (
            largest_atom_bound(terms).epsilon(1e-9) == largest_atom_bound(terms).delta(0.0) == 0.0
        )


@pytest.mark.parametrize(
    ("plan", "delta"),
    [
        (hs.Exponential(1e-2) ** 5, 0.05),
        (hs.Laplace(100.0) @ hs.Exponential(0.1), 0.9),
        (hs.mechanisms.AboveThreshold(100.0, 100.0) ** 3, 0.1),
    ],
    ids=str,
)
def test_a_delta_above_that_of_epsilon_0_costs_nothing(plan: hs.Mechanism, delta: float) -> None:
    found = hs.epsilon(plan, delta)
    assert (found.lower, found.upper) == (0.0, 0.0)


@pytest.mark.parametrize(
    "plan",
    [
        hs.mechanisms.TreeAggregation(5e-324, 3),
        hs.mechanisms.GaussianMixture(5e-324, (0, 1), (0.5, 0.5)),
    ],
    ids=str,
)
def test_noise_too_small_for_floats_costs_everything(plan: hs.Mechanism) -> None:
    assert hs.epsilon(plan, 1e-5).upper == math.inf


def test_a_sampled_loss_too_large_for_floats_is_refused() -> None:
    with pytest.raises(hs.errors.UnsupportedError, match="too large for floats"):
        hs.epsilon(hs.PoissonSubsampled(hs.Laplace(5e-324), 0.1) ** 10, 1e-5)


def test_all_runs_together_have_the_product_of_their_chances() -> None:
    for terms in composition_of(hs.Laplace(20.0) ** 100, "test").directions:
        found = largest_atom_bound(terms)
        assert found.log_mass == pytest.approx(100.0 * math.log(0.5), rel=1e-12)
        assert found.loss == pytest.approx(5.0, rel=1e-12)
        assert found.epsilon(1e-30) == 0.0


@pytest.mark.parametrize(
    ("plan", "least", "most"),
    [
        (
            hs.mechanisms.RandomStopping(
                hs.PureDP(0.5), hs.mechanisms.tuning.TruncatedNegativeBinomial(1, 0.01)
            ),
            0.5,
            1.5,
        ),
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
