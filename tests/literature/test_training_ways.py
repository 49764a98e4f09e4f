"""What training costs: ways against mpmath at 30 digits along another route, or enumeration."""

import itertools
import math
from fractions import Fraction

import pytest

from hockeystick.numerics.multiprecision import mp, mpf
from tests.literature.asking import ask, close, gaussian_delta, holds


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


def test_one_round_costs_the_share_in_which_both_clients_are_there() -> None:
    truth = mpf("0.126936737506643945800829624758") / 4
    parameters = {"mu": 1.0, "client_rate": 0.5, "epsilon": 1.0}
    assert holds("federated.one_round_delta", truth, 1e-11, **parameters)


@pytest.mark.parametrize(
    ("rate", "rounds", "observers"), [("0.3", 4, 1), ("0.5", 1, 1), ("0.05", 5, 1), ("0.3", 3, 3)]
)
def test_what_is_carried_over_is_what_enumeration_finds(
    rate: str, rounds: int, observers: int
) -> None:
    p, seen = Fraction(rate), Fraction(0)
    coins = list(itertools.product((False, True), repeat=1 + observers))
    for history in itertools.product(coins, repeat=rounds):
        chance = math.prod(p if coin else 1 - p for one in history for coin in one)
        carried = False
        for sender, *others in history:
            carried = carried or sender
            if carried and any(others):
                seen += chance
                break
    parameters = {"client_rate": float(rate), "rounds": rounds, "observers": observers}
    with mp.workdps(40):
        carried_over = mpf(seen.numerator) / seen.denominator
        claimed = 1 - (1 - mpf(rate) ** 2) ** (observers * rounds)
        assert holds("federated.carried_over", carried_over, **parameters)
        assert holds("federated.many_rounds_bound", claimed, **parameters)


def test_a_local_step_costs_what_its_mixture_does() -> None:
    # P is a mixture of N(0, 1) and N(1, 1), Q is N(0, 1).
    told = {"noise_multiplier": 1.0, "examples": 600, "batch_size": 16, "epsilon": 0.1}
    with mp.workdps(20):
        p, grown = mpf(16) / 600, mp.exp(mpf("0.1"))

        def excess(x: mpf) -> mpf:
            return (1 - p) * mp.npdf(x) + p * mp.npdf(x, 1) - grown * mp.npdf(x)

        edge = mp.log1p((grown - 1) / p) + mpf(1) / 2
        truth = mp.quad(excess, [edge, edge + 3, edge + 8, edge + 20])
    assert close("federated.step_delta", truth, 1e-9, **told)
    assert close("federated.composed_delta", truth, 1e-6, steps=1, **told)


def test_the_gap_is_between_the_composition_and_its_limit() -> None:
    common = {"noise_multiplier": 1.0, "epsilon": 1.0}
    steps = {"examples": 20, "batch_size": 1, "steps": 400}
    finite = ask("federated.composed_delta", **common, **steps)
    limit = ask("federated.limiting_delta", **common, **steps)
    for share in (1.0, 0.2):
        gap = ask("federated.gap_to_the_limit", examples=20, share=share, **common)
        assert gap.lower <= share * (limit.upper - finite.upper) <= gap.upper


@pytest.mark.parametrize("order", [1.5, 3.0, 8.0])
def test_the_divergences_of_zcdp(order: float) -> None:
    with mp.workdps(30):
        a, odds = mpf(order), mp.exp(mpf(0.4))
        one = (odds**a + odds ** (1 - a)) / (1 + odds)
        told = {"epsilon": 0.4, "runs": 3, "order": order}
        assert close("concentrated.divergence_of_responses", 3 * mp.log(one) / (a - 1), **told)
        assert close("concentrated.allowed_divergence", a * 3 * mpf(0.4) ** 2 / 2, **told)
        told = {"noise_multiplier": 3.0, "size": 2, "order": order}
        assert holds("concentrated.group_divergence", a * 4 / 18, **told)
        assert close("concentrated.allowed_group_divergence", a * 4 / 18, **told)
        tail = mp.exp(4 * mpf("0.25") - 2 * mpf("1.5"))
    assert close("concentrated.truncated_tail", tail, rho=0.25, omega=3.0, excess=1.5)
    with pytest.raises(ValueError, match="subgaussian"):
        ask("concentrated.truncated_tail", rho=0.25, omega=3.0, excess=0.9)


def test_batches_are_a_mixture_over_their_hits() -> None:
    told = {"noise_multiplier": 2.0, "epochs": 3, "batches": 4, "order": 3.0}
    with mp.workdps(30):
        moment = mp.fsum(
            mp.binomial(12, k) * mpf(3) ** (12 - k) / mpf(4) ** 12 * mp.exp(mpf(6 * k) / 8)
            for k in range(13)
        )
    assert holds("batches.divergence_of_hits", mp.log(moment) / 2, shuffled=False, **told)
    assert holds("batches.divergence_of_hits", mpf(9) / 8, shuffled=True, **told)
    del told["batches"]
    assert holds("batches.concentrated_divergence", mpf(9) / 8, **told)
    assert holds("batches.concentrated_divergence", mpf(9) / 4, size=2, **told)


@pytest.mark.parametrize(("size", "examples", "batches"), [(2, 6, 3), (3, 8, 4), (3, 6, 2)])
def test_a_group_is_spread_over_batches_as_enumeration_finds(
    size: int, examples: int, batches: int
) -> None:
    places = range(examples)
    counts: dict[int, int] = {}
    for group in itertools.permutations(places, size):
        hit = len({place // (examples // batches) for place in group})
        counts[hit] = counts.get(hit, 0) + 1
    told = {"noise_multiplier": 1.0, "size": size, "examples": examples, "batches": batches}
    with mp.workdps(30):
        shares = {k: mpf(count) / math.perm(examples, size) for k, count in counts.items()}
        delta = mp.fsum(p * gaussian_delta(mp.sqrt(k), mpf(1)) for k, p in shares.items())
        moment = mp.fsum(p * mp.exp(mpf(3) * k) for k, p in shares.items())
    assert holds("batches.clipped_batches_delta", delta, epsilon=1.0, **told)
    assert holds("batches.clipped_batches_divergence", mp.log(moment) / 2, order=3.0, **told)
    with mp.workdps(30):
        whole = mp.log(shares.get(1, mpf(0)) * mp.expm1(3 * size**2) + 1) / 2
    least = ask("batches.one_batch_divergence", order=3.0, **told)
    assert least.lower == pytest.approx(float(whole), rel=1e-12)


def test_the_gaussian_of_the_same_variation_has_it() -> None:
    told = {"noise_multiplier": 1.0, "epochs": 4, "batches": 50}
    at_zero = ask("batches.resampled_delta", epsilon=0.0, **told)
    same = ask("batches.gaussian_of_the_same_variation", epsilon=0.0, **told)
    assert same.upper == pytest.approx(at_zero.upper, rel=1e-12)
    with mp.workdps(30):
        mu = 2 * mp.sqrt(2) * mp.erfinv(mpf(at_zero.upper))
        truth = gaussian_delta(mu, mpf(2))
    found = ask("batches.gaussian_of_the_same_variation", epsilon=2.0, **told)
    assert found.upper == pytest.approx(float(truth), rel=1e-12)


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


def test_the_calibrations_of_dp_sgd_have_the_delta_of_their_noise() -> None:
    # One step on a batch of all examples, and steps on the only example, are Gaussian.
    with mp.workdps(30):
        delta = mpf(1e-5)
        whole = gaussian_delta(1 / mp.sqrt(2 - mp.log(delta)), mpf(2))
        logs = mp.log(2 / delta) * mp.log(mpf("7.5") / delta)
        mu = mp.sqrt(3) / (8 * mp.sqrt(3 * logs))
        single, louder = gaussian_delta(mu, mpf(1)), gaussian_delta(2 * mu, mpf(1))
        one = 1 / (2 * mp.sqrt(6 * mp.log(2 / delta)))
        step = gaussian_delta(mu / mp.sqrt(3), one)
    told = {"examples": 10, "batch_size": 10, "epsilon": 2.0, "delta": 1e-5}
    assert close("dpsgd.hogwild_calibrated_delta", whole, 1e-10, **told)
    told = {"examples": 1, "steps": 3, "epsilon": 1.0, "delta": 1e-5}
    assert close("dpsgd.per_step_calibrated_delta", single, 1e-10, **told)
    assert close("dpsgd.per_step_calibrated_delta", louder, 1e-9, share=0.5, **told)
    assert close("dpsgd.sampled_step_delta", step, 1e-9, **told)
    assert close("dpsgd.promised_step_delta", 1e-5 / 6, steps=3, delta=1e-5)
    with mp.workdps(30):
        promised = 1 / (4 * mp.sqrt(6 * mp.log(2 / delta)))
    assert close("dpsgd.promised_step_epsilon", promised, **told)
    assert close("dpsgd.classical_step_epsilon", promised, **told)


def test_amplification_is_its_formula() -> None:
    told = {"epsilon": 1.0, "batch_size": 10, "examples": 1000}
    assert close("dpsgd.amplified_epsilon", "0.0170368632361765497863852527635", **told)
    assert holds("dpsgd.sampled_response_epsilon", mpf("0.0170368632361765497863852527635"), **told)
    assert close("dpsgd.linear_amplified_epsilon", 0.02, **told)
    assert close("dpsgd.amplified_delta", 1e-7, delta=1e-5, batch_size=10, examples=1000)
    # The sampled mechanism of a tight one is tight there: (m/n) delta.
    for noisy in (1e-3, 1e-5):
        close_to = {"epsilon": 1.0, "delta": noisy, "batch_size": 10, "examples": 1000}
        assert close("dpsgd.sampled_gaussian_delta", noisy / 100, 1e-9, **close_to)


def test_the_stated_error_is_added_to_the_limit() -> None:
    told = {"noise_multiplier": 3.0, "epochs": 10, "epsilon": 5.0, "side": 1}
    with mp.workdps(30):
        mu = mp.sqrt(10 * (1 + 1 / mp.sqrt(20))) / 3
        truth = gaussian_delta(mu, mpf(5))
    assert close("batches.limiting_delta", truth, 1e-10, **told)
    assert close("batches.limiting_delta_with_its_error", truth + mp.exp(-10), 1e-10, **told)
