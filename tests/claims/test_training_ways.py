"""What training costs: ways against mpmath at 30 digits along another route, or enumeration."""

import itertools
import math
from fractions import Fraction

import pytest
from mpmath import mp, mpf

from tests.claims.asking import ask, close, gaussian_delta, holds


@pytest.mark.parametrize(("noise", "batch", "rounds"), [(1.0, 16, 93), (0.75, 8, 191)])
def test_the_limit_is_the_integral_that_it_comes_from(
    noise: float, batch: int, rounds: int
) -> None:
    parameters = {"noise_multiplier": noise, "batch_size": batch, "rounds": rounds}
    with mp.workdps(30):
        mu = 1 / mpf(noise)
        ratio = mp.quad(
            lambda z: mp.expm1(mu * z - mu**2 / 2) ** 2 * mp.npdf(z), [mu / 2, 2, 5, 12]
        )
        truth = mpf(batch) / 600 * mp.sqrt(2 * 38 * rounds * ratio)
    assert close("federated.limiting_mu", truth, examples=600, local_steps=38, **parameters)
    strong = ask("federated.strong_mu", clients=26, examples=600, local_steps=38, **parameters)
    assert strong.upper == pytest.approx(5 * float(truth), rel=1e-12)


def test_the_composed_mu_has_the_epsilon_of_the_composition() -> None:
    # epsilon 13.877225734 at delta 1e-5, by composition of C_(16/600)(G_1).
    with mp.workdps(30):
        answer = ask(
            "federated.composed_mu",
            noise_multiplier=1.0,
            batch_size=16,
            examples=600,
            local_steps=38,
            rounds=93,
            delta=1e-5,
        )
        for mu in (answer.lower, answer.upper):
            found_delta = gaussian_delta(mpf(mu), mpf("13.877225734061"))
            assert float(found_delta) == pytest.approx(1e-5, rel=1e-10)


def test_one_round_s_bound_is_the_most_that_its_trade_off_function_allows() -> None:
    def above(alpha: float) -> float:
        f = float(mp.ncdf(-mp.erfinv(2 * mpf(alpha) - 1) * mp.sqrt(2) - 1))
        return 1.0 - max(f, 1.0 - alpha - 0.25) - math.e * alpha

    most = max(above(i / 4000) for i in range(1, 1000))
    bound = ask("federated.one_round_bound", mu=1.0, client_rate=0.5, epsilon=1.0).upper
    assert most <= bound <= most + 1e-6
    with pytest.raises(ValueError, match="another formula"):
        ask("federated.one_round_bound", mu=1.0, client_rate=0.1, epsilon=1.0)


def test_one_round_costs_the_share_in_which_both_clients_are_there() -> None:
    truth = mpf("0.126936737506643945800829624758") / 4
    parameters = {"mu": 1.0, "client_rate": 0.5, "epsilon": 1.0}
    assert holds("federated.one_round_delta", truth, 1e-11, **parameters)


@pytest.mark.parametrize(("rate", "rounds"), [("0.3", 4), ("0.5", 1), ("0.05", 5)])
def test_what_is_carried_over_is_what_enumeration_finds(rate: str, rounds: int) -> None:
    p, seen, together = Fraction(rate), Fraction(0), Fraction(0)
    coins = list(itertools.product((False, True), repeat=2))
    for history in itertools.product(coins, repeat=rounds):
        chance = math.prod(((p if a else 1 - p) * (p if b else 1 - p) for a, b in history))
        carried = False
        for sender, observer in history:
            carried = carried or sender
            if carried and observer:
                seen += chance
                break
        together += chance * any(sender and observer for sender, observer in history)
    parameters = {"client_rate": float(rate), "rounds": rounds}
    with mp.workdps(40):
        carried_over = mpf(seen.numerator) / seen.denominator
        claimed = mpf(together.numerator) / together.denominator
        assert holds("federated.carried_over", carried_over, **parameters)
        assert holds("federated.many_rounds_bound", claimed, **parameters)


@pytest.mark.parametrize(
    ("rate", "steps", "truth"),
    [(0.01, 10_000, "0.822734"), (0.1, 101, "0.853553"), (0.01, 100, "0.084058")],
)
def test_the_moments_are_those_of_the_binomial_sum(rate: float, steps: int, truth: str) -> None:
    with mp.workdps(30):
        q, best = mpf(str(rate)), mp.inf
        for a in (*range(5, 64), 128, 256, 512):
            moment = mp.fsum(
                mp.binomial(a, k) * (1 - q) ** (a - k) * q**k * mp.exp(mpf(k * k - k) / 72)
                for k in range(a + 1)
            )
            best = min(best, (steps * mp.log(moment) - mp.log(mpf("1e-5"))) / (a - 1))
    assert float(best) == pytest.approx(float(truth), abs=1e-6)
    parameters = {"noise_multiplier": 6.0, "rate": rate, "delta": 1e-5}
    assert close("fed_cdp.moments_epsilon", best, steps=steps, **parameters)
    assert close("fed_cdp.rounds_epsilon", best, rounds=steps, **parameters)


def test_the_text_s_rate_is_that_of_the_batches_of_all_clients() -> None:
    parameters = {"noise_multiplier": 6.0, "steps": 1000, "delta": 1e-5}
    batches = {"batch_size": 5, "clients": 100, "examples": 50_000}
    assert ask("fed_cdp.global_rate_epsilon", **batches, **parameters) == ask(
        "fed_cdp.moments_epsilon", rate=0.01, **parameters
    )


def test_a_budget_is_spent_in_the_round_that_reaches_it() -> None:
    constant = {
        "start": 6.0,
        "end": 6.0,
        "rate": 0.01,
        "local_steps": 100,
        "delta": 1e-5,
        "near": "5",
    }
    for policy in ("linear", "exponential", "staircase"):
        for epsilon, rounds in ((0.28500, 11), (0.28502, 12), (0.2, 6)):
            told = {"policy": policy, "rounds": 12, "epsilon": epsilon, **constant}
            one = {"noise_multiplier": 6.0, "rate": 0.01, "delta": 1e-5}
            before, then = (
                ask("fed_cdp.moments_epsilon", steps=100 * count, **one).upper
                for count in (rounds - 1, rounds)
            )
            assert before < epsilon <= then
            assert ask("fed_cdp.round_of_the_budget", **told).upper == rounds
    assert ask("fed_cdp.round_of_the_budget", **{**told, "epsilon": 0.9}).upper == math.inf


def test_noise_that_falls_to_nothing_spends_every_budget() -> None:
    told = {
        "policy": "cyclic",
        "rounds": 100,
        "start": 15.0,
        "end": 4.85,
        "rate": 0.01,
        "near": "90",
    }
    answer = ask("fed_cdp.round_of_the_budget", local_steps=100, delta=1e-5, epsilon=2.8, **told)
    assert 78 < answer.upper < 100


def spent_by(noises: list[float], epsilon: float) -> bool:
    """Return whether steps at rate 0.01, 100 in each round, cost epsilon by every order."""
    with mp.workdps(30):
        costs = []
        for a in (*range(5, 64), 128, 256, 512):
            moments = [
                mp.fsum(
                    mp.binomial(a, k)
                    * mpf(99) ** (a - k)
                    * mp.exp((k * k - k) / (2 * mpf(noise) ** 2))
                    for k in range(a + 1)
                )
                / mpf(100) ** a
                for noise in noises
            ]
            spent = 100 * mp.fsum(map(mp.log, moments))
            costs.append((spent - mp.log(mpf("1e-5"))) / (a - 1))
    return bool(min(costs) >= epsilon)


@pytest.mark.parametrize(
    ("policy", "last_two", "last"),
    [
        # 15 exp(-g t) with 4.85 at t = 3, and stairs two rounds wide, 15 (1 - g floor(t/2)).
        ("exponential", [15 * (4.85 / 15) ** (2 / 3), 4.85], 3.0),
        ("staircase", [4.85, 4.85], 3.0),
        ("linear", [15 - 2 * 10.15 / 3, 4.85], math.inf),
    ],
)
def test_noise_decays_as_the_formulas_of_round_t_from_1_to_the_last(
    policy: str, last_two: list[float], last: float
) -> None:
    first = {
        "exponential": 15 * (4.85 / 15) ** (1 / 3),
        "staircase": 15.0,
        "linear": 15 - 10.15 / 3,
    }
    assert spent_by([first[policy], *last_two], 0.138) == (last == 3.0)
    told = {"rounds": 3, "start": 15.0, "end": 4.85, "rate": 0.01, "local_steps": 100}
    found = ask(
        "fed_cdp.round_of_the_budget", policy=policy, epsilon=0.138, delta=1e-5, near="3", **told
    )
    assert found.upper == last


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


def test_resampled_batches_are_a_mixture_over_their_hits() -> None:
    told = {"noise_multiplier": 2.0, "epochs": 3, "batches": 4, "order": 3.0}
    with mp.workdps(30):
        moment = mp.fsum(
            mp.binomial(12, k) * mpf(3) ** (12 - k) / mpf(4) ** 12 * mp.exp(mpf(6 * k) / 8)
            for k in range(13)
        )
    assert holds("batches.resampled_divergence", mp.log(moment) / 2, **told)
    del told["batches"]
    assert holds("batches.concentrated_divergence", mpf(9) / 8, **told)
    assert close("batches.shuffled_divergence", mpf(9) / 8, **told)


def test_the_share_of_shuffles_with_a_whole_group_in_one_batch() -> None:
    together = sum(
        1
        for batch in itertools.combinations(range(6), 3)
        if {0, 1} <= set(batch) or not {0, 1} & set(batch)
    )
    share = Fraction(together, math.comb(6, 3))
    told = {"noise_multiplier": 1.0, "epsilon": 3.0, "size": 2, "examples": 6, "batches": 2}
    with mp.workdps(30):
        truth = gaussian_delta(mpf(2), mpf(3)) * share.numerator / share.denominator
    assert close("batches.one_batch_delta", 1.0, **told)
    lower = ask("batches.one_batch_delta", **told).lower
    assert lower <= truth
    assert lower == pytest.approx(float(truth), rel=1e-12)


def test_shuffled_epochs_are_gaussians() -> None:
    told = {"noise_multiplier": 3.0, "epochs": 9, "epsilon": 2.0}
    with mp.workdps(30):
        truth = gaussian_delta(mpf(1), mpf(2))
        grown = gaussian_delta(mp.sqrt(2), mpf(2))
    assert holds("batches.shuffled_delta", truth, **told)
    assert holds("batches.root_delta", truth, **told)
    assert close("batches.root_delta", grown, size=2, **told)
    assert close("batches.twice_the_epochs_delta", grown, **told)
    assert close("batches.less_noise_at_the_end_delta", grown, **told)
    assert close("batches.clipped_batches_delta", grown, size=2, **told)


def test_the_calibrations_of_dp_sgd_have_the_delta_of_their_noise() -> None:
    # One step on a batch of all examples, and steps on the only example, are Gaussian.
    with mp.workdps(30):
        delta = mpf(1e-5)
        whole = gaussian_delta(1 / mp.sqrt(2 - mp.log(delta)), mpf(2))
        logs = mp.log(2 / delta) * mp.log(mpf("7.5") / delta)
        single = gaussian_delta(mp.sqrt(3) / (8 * mp.sqrt(3 * logs)), mpf(1))
    told = {"examples": 10, "batch_size": 10, "epsilon": 2.0, "delta": 1e-5}
    assert close("dpsgd.hogwild_calibrated_delta", whole, 1e-10, **told)
    told = {"examples": 1, "steps": 3, "epsilon": 1.0, "delta": 1e-5}
    assert close("dpsgd.per_step_calibrated_delta", single, 1e-10, **told)


def test_amplification_is_its_formula() -> None:
    told = {"epsilon": 1.0, "batch_size": 10, "examples": 1000}
    assert close("dpsgd.amplified_epsilon", "0.0170368632361765497863852527635", **told)
    assert holds("dpsgd.sampled_response_epsilon", mpf("0.0170368632361765497863852527635"), **told)
    assert close("dpsgd.linear_amplified_epsilon", 0.02, **told)
