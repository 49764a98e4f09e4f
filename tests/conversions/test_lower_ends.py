"""Lower ends of conversions: below every number that holds, by divergences in closed form."""

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.conversions import convert, lower_ends
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics.multiprecision import mp

RATE, SIGMA, STEPS = 0.01, 1.1, 1000
SAMPLED = hs.PoissonSubsampled(hs.Gaussian(SIGMA), rate=RATE) ** STEPS


def sampled_divergence(order: int) -> float:
    """Mironov, Talwar and Zhang 2019, section 3.3: the divergence of a whole order as a sum."""
    with mp.workdps(30):
        q, weight = mp.mpf("0.01"), 1 / (2 * mp.mpf("1.1") ** 2)
        terms = (
            mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp((k * k - k) * weight)
            for k in range(order + 1)
        )
        return float(STEPS * mp.log(mp.fsum(terms)) / (order - 1))


def laplace_divergence(order: Any, scale: Any) -> Any:
    """Mironov 2017, proposition 6."""
    first = order / (2 * order - 1) * mp.exp((order - 1) / scale)
    return mp.log(first + (order - 1) / (2 * order - 1) * mp.exp(-order / scale)) / (order - 1)


def test_a_sampled_plan_needs_the_rho_and_the_mu_of_what_is_not_sampled() -> None:
    """``D_alpha / alpha`` tends to ``steps / (2 sigma^2)`` from below."""
    limit = STEPS / (2 * SIGMA**2)
    (rho,) = lower_ends(SAMPLED, convert(SAMPLED, ZCDP))
    assert limit * (1 - 1e-4) < rho <= limit
    (mu,) = lower_ends(SAMPLED, convert(SAMPLED, GDP))
    assert math.sqrt(2 * limit) * (1 - 1e-4) < mu <= math.sqrt(2 * limit)


def test_a_truncated_rho_is_that_of_its_largest_order() -> None:
    found = convert(SAMPLED, TCDP, omega=32)
    (rho,) = lower_ends(SAMPLED, found)
    truth = max(sampled_divergence(order) / order for order in range(2, 33))
    assert truth * (1 - 1e-9) < rho <= truth * (1 + 1e-14) <= found.rho * (1 + 2e-14)


def test_bounded_losses_need_the_slope_of_small_orders() -> None:
    plan = hs.Parallel((hs.Laplace(2), hs.RandomizedResponse(0.1, categories=9)))
    (rho,) = lower_ends(plan, convert(plan, ZCDP))
    with mp.workdps(40):
        order = 1 + mp.mpf(2) ** -10
        truth = float(laplace_divergence(order, 2) / order)
    assert rho == pytest.approx(truth, rel=1e-9)


def test_what_is_known_by_a_dominating_pair_is_a_bound_and_its_ends_are_of_an_attained_one() -> (
    None
):
    """Of the pair that dominates permute-and-flip, no data have the divergences."""
    plan = hs.mechanisms.PermuteAndFlip(1.5)
    for one in (plan, plan**3, plan @ hs.Gaussian(2.0)):
        found = convert(one, RenyiDP, orders=[2, 8])
        assert found.origin is not None
        assert found.origin.kind == "bound"
        for low, (_, high) in zip(lower_ends(one, found), found.divergences, strict=True):
            assert 0 < low < 0.95 * high


def test_parts_that_are_worst_for_different_records_are_a_bound_together() -> None:
    halves = hs.Parallel((hs.Gaussian(1.0), hs.Gaussian(2.0)), split="halves")
    other = hs.Parallel((hs.Gaussian(2.0), hs.Gaussian(1.0)), split="halves")
    same, mixed = (
        convert(plan, RenyiDP, orders=2) for plan in (halves @ hs.Gaussian(2.0), halves @ other)
    )
    assert same.origin is not None
    assert mixed.origin is not None
    assert (same.origin.kind, mixed.origin.kind) == ("exact", "bound")
    (low,) = lower_ends(halves @ other, mixed)
    # Whoever is in the first half pays 1 + 1/4 at order 2, and so does everybody else.
    assert low == pytest.approx(1.25, rel=1e-12)
    assert mixed.divergences[0][1] == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize(
    ("source", "target", "given"),
    [
        (ZCDP(0.5), ApproxDP, {"delta": 1e-5}),
        (ZCDP(0.5), ApproxDP, {"epsilon": 2}),
        (RenyiDP({2: 0.5, 8: 1.9}), ApproxDP, {"delta": 1e-5}),
        (RenyiDP({2: 0.5, 8: 1.9}), TCDP, {"omega": 4}),
        (hs.mechanisms.ReportNoisyMax(1.5) ** 3, ApproxDP, {"delta": 1e-5}),
        (hs.mechanisms.ReportNoisyMax(1.5), PureDP, {}),
        (hs.RandomizedResponse(1.0, categories=9), ZCDP, {}),
    ],
    ids=str,
)
def test_ends_are_in_order(source: hs.Mechanism, target: type[Notion], given: Any) -> None:
    found: Any = convert(source, target, **given)
    lower = lower_ends(source, found)
    if isinstance(found, ApproxDP):
        assert lower[0] <= found.epsilon
        assert lower[1] <= found.delta
        assert lower["epsilon" in given] > 0
    else:
        assert 0 < lower[0] < getattr(found, "rho", math.inf)


def test_of_what_is_exact_and_of_what_nothing_is_known_there_are_none() -> None:
    plan = hs.Gaussian(2)
    assert lower_ends(plan, convert(plan, ZCDP)) == ()
    assert lower_ends(SAMPLED, convert(SAMPLED, FDP)) == ()
    answer = hs.epsilon(SAMPLED, 1e-5)
    assert lower_ends(SAMPLED, convert(SAMPLED, ApproxDP, delta=1e-5)) == (answer.lower, 0.0)
    answer = hs.delta(SAMPLED, 2.0)
    assert lower_ends(SAMPLED, convert(SAMPLED, ApproxDP, epsilon=2)) == (0.0, answer.lower)
