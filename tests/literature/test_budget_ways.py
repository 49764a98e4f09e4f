"""What clients' rounds spend: ways against mpmath at 30 digits, or along another route."""

import math
from typing import cast

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp, mpf
from tests.claims import catalogue
from tests.claims.budgets import _moments
from tests.literature.asking import ask, close, gaussian_delta, holds

CYCLIC = [
    ("fed-alpha-cdp/table-8/mnist-cyclic", False),
    ("fed-alpha-cdp/table-8/adult-cyclic", False),
    ("fed-alpha-cdp/table-8/lfw-cyclic", True),
    ("fed-alpha-cdp/table-11/rounds/base-cyclic", False),
    ("fed-alpha-cdp/table-11/rounds/advanced-cyclic", False),
    ("fed-alpha-cdp/table-11/rounds/zcdp-cyclic", False),
]


@pytest.mark.parametrize(("id_", "some"), CYCLIC)
def test_a_number_of_cycles_gives_the_printed_round_or_none_does(id_: str, some: bool) -> None:
    claim = catalogue().claims[id_]
    assert claim.own is not None
    told = dict(claim.own.parameters)
    rounds = range(1, int(cast("float", told["rounds"])) + 1)
    found = [ask(claim.own.way, **{**told, "cycles": cycles}).upper for cycles in rounds]
    assert (float(claim.published) in found) is some


def test_noise_that_is_at_its_end_by_round_45_and_stays_spends_the_budget_in_round_95() -> None:
    noises = [15 - 10.15 * min(t, 45) / 45 for t in range(1, 101)]
    spent = list(_moments(noises, 0.01, 100, math.log(1e5), 0.823))
    assert spent[93] < 0.823 <= spent[94]


def test_decayed_noise_is_composed_round_by_round() -> None:
    told = {"start": 6.0, "end": 6.0, "rate": 0.01, "local_steps": 100, "delta": 1e-5}
    plan = {"noise_multiplier": 6.0, "rate": 0.01, "steps": 400, "delta": 1e-5}
    constant = ask("fed_cdp.certified_epsilon", **plan)
    for policy in ("linear", "exponential", "staircase"):
        found = ask("budgets.decayed_epsilon", policy=policy, rounds=4, **told)
        assert found.upper == pytest.approx(constant.upper, rel=1e-9)
    # Stairs two rounds wide: 15, then twice the end.
    stairs = {**told, "start": 15.0, "policy": "staircase", "rounds": 3}
    first = hs.PoissonSubsampled(hs.Gaussian(15.0), 0.01) ** 100
    truth = hs.epsilon(first @ hs.PoissonSubsampled(hs.Gaussian(6.0), 0.01) ** 200, 1e-5).upper
    assert ask("budgets.decayed_epsilon", width=2, **stairs).upper == pytest.approx(truth, rel=1e-9)


def test_the_compositions_of_the_time_are_their_formulas() -> None:
    step = {"noise_multiplier": 6.0, "rate": 0.01, "steps": 10_000, "delta": 1e-5}
    with mp.workdps(30):
        log = -mp.log(mpf("1e-5"))
        for decimals, plain in ((0, mp.sqrt(2 * mp.log(125_000)) / 6), (3, mpf("0.807"))):
            one = mp.log(1 + (mp.exp(plain) - 1) / 100)
            advanced = mp.sqrt(20_000 * log) * one + 10_000 * one * (mp.exp(one) - 1)
            told = {**step, "decimals": decimals}
            assert close("fed_cdp.base_composition_epsilon", 10_000 * one, **told)
            assert close("fed_cdp.advanced_composition_epsilon", advanced, **told)
        rho = mpf(1) / 36
        assert close("fed_cdp.concentrated_epsilon", rho + 2 * mp.sqrt(rho * log), **step)


def test_a_scale_that_tells_costs_what_the_balls_say() -> None:
    def inside(half: int, x: mpf) -> mpf:
        return 1 - mp.exp(-x) * mp.fsum(x**k / mp.factorial(k) for k in range(half))

    with mp.workdps(30):
        truth = inside(3, mpf(9)) - mp.exp(mpf("0.5")) * inside(3, 9 * mpf("0.25"))
    told = {"epsilon": 0.5, "norm": 4.0, "other_norms": 2.0, "coordinates": 6}
    answer = ask("fed_cdp.largest_norm_delta", **told)
    assert answer.lower <= float(truth) == pytest.approx(answer.lower, rel=1e-12)
    assert answer.upper == 1.0


@pytest.mark.parametrize("order", [2, 5])
def test_a_round_s_moments_are_integrals_over_its_law(order: int) -> None:
    told = {"noise_multiplier": 1.0, "client_rate": 0.3, "rate": 0.2, "local_steps": 1}
    with mp.workdps(20):
        # With one step, sampling a client and then an example is sampling at the product's rate.
        def moment(x: mpf) -> mpf:
            return mp.npdf(x) * (mpf("0.94") + mpf("0.06") * mp.exp(x - mpf(1) / 2)) ** order

        truth = mp.log(mp.quad(moment, [-12, 0, 3, 6, 25])) / (order - 1)
    for way in ("fed_cdp.global_round_divergence", "fed_cdp.local_round_divergence"):
        assert close(way, truth, 1e-10, order=order, **told)


def test_the_steps_of_a_client_in_the_round_come_together() -> None:
    told = {"noise_multiplier": 1.0, "client_rate": 0.3, "rate": 1.0, "local_steps": 4, "order": 2}
    with mp.workdps(30):
        # Four steps on the only example are one of noise 1/2, which a client is in or not.
        truth = mp.log1p(mpf("0.09") * mp.expm1(4))
    assert close("fed_cdp.local_round_divergence", truth, **told)


def test_a_client_s_round_is_a_gaussian() -> None:
    told = {"noise_multiplier": 6.0, "local_steps": 9, "client_rate": 1.0, "rounds": 4}
    found = ask("fed_cdp.client_epsilon", delta=1e-5, **told)
    with mp.workdps(30):
        assert gaussian_delta(mpf(1), mpf(found.upper)) == pytest.approx(1e-5, rel=1e-9)


def test_the_density_of_theorem_5_is_that_of_the_laplace_mechanism() -> None:
    told = {"epsilon": 0.6, "batch_size": 5, "sensitivity": 3.0}
    assert holds("fed_cdp.density_epsilon", mpf(0.6), coordinates=4, **told)
    assert ask("fed_cdp.gaussian_density_epsilon", **told).lower == math.inf
