"""The limit theorems: the Gaussian limit, the Edgeworth expansion and the Berry-Esseen interval."""

import math
from itertools import pairwise
from typing import Final

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.base import DirectedAccountant, Interval
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.accountants.limits import (
    BerryEsseen,
    Edgeworth,
    GaussianLimit,
    Normal,
    NormalPair,
    limiting_mu,
    normals_of,
)
from hockeystick.errors import UnsupportedError
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss import (
    BoundedRangeLoss,
    Composition,
    DominatedLoss,
    GaussianLoss,
    NoiselessLoss,
    PrivacyLoss,
    RandomizedResponsePairLoss,
    SampledGaussianLoss,
    Terms,
)
from hockeystick.privacy_loss.bounds.moments import FourCumulants
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss
from tests.precision.twins import responses_delta

REMOVING: Final[Terms] = ((SampledGaussianLoss(0.01, 1.0, removing=True), 1000),)
ADDING: Final[Terms] = ((SampledGaussianLoss(0.01, 1.0, removing=False), 1000),)
FIXED: Final[Terms] = ((FixedSizeGaussianLoss(0.01, 1.0), 1000),)
RESPONSES: Final[Terms] = ((RandomizedResponsePairLoss(0.1), 30),)
MIXED: Final[Terms] = (
    (SampledGaussianLoss(0.05, 2.0, removing=True), 4000),
    (GaussianLoss(6.0), 3),
    (FixedSizeGaussianLoss(0.02, 1.5), 500),
)
PLANS: Final = {
    "removing": REMOVING,
    "adding": ADDING,
    "fixed": FIXED,
    "responses": RESPONSES,
    "mixed": MIXED,
}
EPSILONS: Final = (0.0, 0.3, 1.0, 2.4)

each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS)
each_expanding = pytest.mark.parametrize(
    "accountant", [Edgeworth(), BerryEsseen()], ids=["edgeworth", "berry-esseen"]
)


def test_the_mu_of_a_plan_is_that_of_its_formula_and_of_its_worst_part() -> None:
    sampled = hs.DPSGD(rate=0.01, noise_multiplier=1, steps=1000)
    mu = hs.accountants.central_limit_mu(sampled)
    assert mu.value == pytest.approx(0.01 * math.sqrt(1000 * math.expm1(1)))
    parts = hs.Parallel((hs.Gaussian(4), hs.Gaussian(2)), "region")
    assert hs.accountants.central_limit_mu(parts).value == 0.5


@pytest.mark.parametrize(
    ("loss", "count", "mu"),
    [
        (FixedSizeGaussianLoss(0.01, 1.0), 10_000, 1.71014247559533060905),
        (FixedSizeGaussianLoss(0.005, 2.0), 10_000, 0.313776320864419676239),
        (SampledGaussianLoss(0.01, 1.0, removing=True), 1000, 0.414521631336537760104),
        (SampledGaussianLoss(0.01, 1.0, removing=False), 1000, 0.414521631336537760104),
        (GaussianLoss(2.0), 12, math.sqrt(3.0)),
    ],
    ids=str,
)
def test_each_loss_has_the_limit_that_is_its_own(loss: PrivacyLoss, count: int, mu: float) -> None:
    assert limiting_mu(((loss, count),)) == pytest.approx(mu, rel=1e-13)


@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 3.0])
def test_a_loss_without_a_limit_of_its_own_has_its_chi_square(epsilon: float) -> None:
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    chi = likely * math.expm1(epsilon) + (1.0 - likely) * math.expm1(-epsilon)
    assert RandomizedResponsePairLoss(epsilon).clt_mu_squared == pytest.approx(chi, rel=1e-10)


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_a_mu_out_of_range_costs_everything(noise: float) -> None:
    terms: Terms = ((SampledGaussianLoss(0.1, noise, removing=True), 10),)
    assert limiting_mu(terms) == math.inf
    assert GaussianLimit().delta(Composition(terms, terms), 1.0).estimate == 1.0
    assert GaussianLimit().epsilon(Composition(terms, terms), 1e-5).estimate == math.inf


def expanded(law: FourCumulants, runs: int, s: mpf) -> mpf:
    mean, variance, third, fourth = (mp.mpf(value) * runs for value in law)
    x = (s - mean) / mp.sqrt(variance)
    skew, excess = third / variance ** mp.mpf(1.5), fourth / variance**2
    correction = (
        skew / 6 * (x**2 - 1)
        + excess / 24 * (x**3 - 3 * x)
        + skew**2 / 72 * (x**5 - 10 * x**3 + 15 * x)
    )
    return mp.ncdf(-x) + mp.npdf(x) * correction


@pytest.mark.parametrize("plan", ["removing", "fixed", "responses"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 1.7])
def test_the_expansion_is_the_formula(plan: str, epsilon: float) -> None:
    ((loss, runs),) = PLANS[plan]
    with mp.workdps(30):
        e = mp.mpf(repr(epsilon))
        cumulants = loss.cumulants()
        assert cumulants is not None
        under_p, under_q = cumulants
        wanted = expanded(under_p, runs, e) - mp.exp(e) * expanded(under_q, runs, e)
    assert wanted > 0
    found = Edgeworth().delta_of(PLANS[plan], epsilon).estimate
    assert found == pytest.approx(float(wanted), rel=1e-9)


@pytest.mark.parametrize("noise", [0.05, 1.0, 30.0])
def test_the_expansion_is_exact_for_gaussians(noise: float) -> None:
    terms: Terms = ((GaussianLoss(noise), 9),)
    for epsilon in EPSILONS:
        exact = ClosedForm().delta_of(terms, epsilon).estimate
        found = Edgeworth().delta_of(terms, epsilon).estimate
        assert found == pytest.approx(exact, rel=1e-9, abs=1e-15)
        if 1e-12 < exact < 0.999:
            assert Edgeworth().epsilon_of(terms, exact).estimate == pytest.approx(epsilon, abs=1e-6)


ODD: Final[tuple[Terms, ...]] = (
    ((SampledGaussianLoss(1e-6, 0.3, removing=True), 1),),
    ((FixedSizeGaussianLoss(1e-9, 900.0), 1),),
    ((RandomizedResponsePairLoss(500.0), 3), (GaussianLoss(0.1), 2)),
    ((GaussianLoss(1e-90), 1),),
)


@each_expanding
@pytest.mark.parametrize("terms", ODD, ids=str)
def test_the_answers_of_far_out_plans_are_numbers_and_fall(
    terms: Terms, accountant: DirectedAccountant
) -> None:
    deltas = [accountant.delta_of(terms, e) for e in (0.0, 1e-9, 1.0, 300.0, 1e14)]
    epsilons = [accountant.epsilon_of(terms, d) for d in (1e-300, 1e-12, 1e-5, 0.1, 0.9)]
    for found, most in ((deltas, 1.0), (epsilons, math.inf)):
        for one in found:
            assert all(0.0 <= end <= most for end in one)
        for more, less in pairwise(found):
            assert less.estimate <= more.estimate * (1 + 1e-9)


def test_where_the_expansion_rises_again_delta_is_what_it_rises_to() -> None:
    terms: Terms = ((SampledGaussianLoss(1e-4, 0.5, removing=True), 2000),)
    expansion = Edgeworth()._expansion(terms)
    grid = np.linspace(0.0, 3.0, 3001)
    raw = expansion.value(grid)
    assert (np.diff(raw) > 0.0).any()
    assert raw.min() < 0.0
    for index in (0, 50, 300, 1500):
        found = expansion.delta(float(grid[index]))
        largest = max(float(raw[index:].max()), 0.0)
        assert largest <= found <= largest * 1.001 + 1e-18


@each_epsilon
def test_the_upper_end_is_reached_where_the_distance_lies_beyond_epsilon(epsilon: float) -> None:
    from scipy.stats import norm

    pair = NormalPair(Normal(0.5, 1.0, 0.02, 0.02), Normal(-0.5, 1.0, 0.0, 0.0))
    largest = norm.sf(epsilon - 0.5) + 0.02 - math.exp(epsilon) * norm.sf(epsilon + 0.5)
    assert largest <= pair.upper(epsilon) * (1 + 1e-12)


def test_below_gamma_only_the_largest_loss_is_known_of_epsilon() -> None:
    assert BerryEsseen().epsilon_of(REMOVING, 1e-3).upper == math.inf
    adding = BerryEsseen().epsilon_of(ADDING, 1e-3).upper
    assert adding == pytest.approx(-1000 * math.log1p(-0.01), rel=1e-9)
    assert BerryEsseen().delta_of(ADDING, 10.1) == Interval.point(0.0)


@pytest.mark.parametrize(
    "terms",
    [
        FIXED,
        ((GaussianLoss(0.02), 1),),
        ((GaussianLoss(1e4), 1),),
        ((RandomizedResponsePairLoss(8.0), 50),),
    ],
    ids=str,
)
@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.1, 1.0, 30.0, 1200.0, 1300.0])
def test_the_round_off_of_an_expectation_under_the_normal_covers_it(
    terms: Terms, epsilon: float
) -> None:
    normal = normals_of(terms).under_p
    with mp.workdps(800):
        m, s = mp.mpf(normal.mean), mp.mpf(normal.deviation)
        z = (m - mp.mpf(epsilon)) / s
        first = mp.erfc(-z / mp.sqrt(2)) / 2
        truth = first - mp.exp(s * (s / 2 - z)) * mp.erfc((s - z) / mp.sqrt(2)) / 2
    value, error = normal.expected(epsilon)
    assert abs(mp.mpf(value) - truth) <= error
    assert error < 1e-12


@each_epsilon
def test_lower_ends_rest_on_losses_that_some_data_reach(epsilon: float) -> None:
    bounded, reached = BoundedRangeLoss(0.2), RandomizedResponsePairLoss(0.1)
    assert bounded.attained == reached
    found = BerryEsseen().delta_of(((bounded, 400),), epsilon)
    own = BerryEsseen().delta_of(((reached, 400),), epsilon)
    assert found.lower == own.lower
    with mp.workdps(30):
        truth = responses_delta(0.1, 400, epsilon)
    assert found.upper >= truth * (1 - 1e-12)
    rest: Terms = ((RandomizedResponsePairLoss(0.01), 10),)
    nothing = BerryEsseen().delta_of(((DominatedLoss(bounded, None), 400), *rest), epsilon)
    assert nothing.lower == BerryEsseen().delta_of(rest, epsilon).lower
    unknown = DominatedLoss(bounded, NoiselessLoss(0.1, removing=True))
    assert BerryEsseen().delta_of(((unknown, 400), *rest), epsilon).lower == 0.0
    assert BerryEsseen().epsilon_of(((unknown, 400), *rest), 0.05).lower == 0.0
    assert nothing.upper > found.estimate


@each_expanding
@pytest.mark.parametrize(
    "loss",
    [
        SampledGaussianLoss(1e-12, 1.0, removing=True),
        FixedSizeGaussianLoss(0.5, 1e-4),
        NoiselessLoss(0.1, removing=True),
        RandomizedResponsePairLoss(1.0, 1e-6),
    ],
    ids=str,
)
def test_a_loss_out_of_reach_is_refused_by_name(
    loss: PrivacyLoss, accountant: DirectedAccountant
) -> None:
    for question in (accountant.delta_of, accountant.epsilon_of):
        with pytest.raises(UnsupportedError, match=accountant.name):
            question(((loss, 3),), 0.5)
