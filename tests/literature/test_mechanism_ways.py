"""What mechanisms cost and err: ways against mpmath at 30 digits, or enumeration."""

import math

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp, mpf
from tests.literature.asking import ask, close, gaussian_delta, holds


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (10.0, 1e-5), (6.0, 0.1)])
def test_the_classical_noise_has_its_true_delta(epsilon: float, delta: float) -> None:
    with mp.workdps(30):
        mu = mpf(epsilon) / mp.sqrt(2 * mp.log(mpf("1.25") / mpf(delta)))
        truth, twice = (gaussian_delta(k * mu, mpf(epsilon)) for k in (1, 2))
    told = {"epsilon": epsilon, "delta": delta}
    assert holds("gaussian.classical_delta", truth, **told)
    assert holds("gaussian.covariance_delta", twice, radius=2.0, columns=3, **told)
    assert holds("gaussian.classical_delta", twice, sensitivity=2.0, **told)
    assert close("local.average_delta", truth, 1e-9, users=7, **told)


def test_the_loss_exceeds_its_epsilon_more_often_than_delta() -> None:
    with mp.workdps(30):
        truth = mp.ncdf(mpf("0.5") - mpf("4.37717809568122462765011629324"))
    assert holds("gaussian.tail_of_the_loss", truth, 1e-10, mu=1.0, delta=1e-5)


def test_a_gaussian_s_loss_has_a_lighter_tail_than_its_rho_allows() -> None:
    with mp.workdps(20):
        truth = mp.quad(lambda z: mp.npdf(z, 0.5, 1), [2.5, 5, 20])
    assert holds("gaussian.gaussian_tail", truth, rho=0.5, excess=2.0)
    assert close("gaussian.subgaussian_tail", mp.exp(-2), rho=0.5, excess=2.0)


def test_small_formulas_of_the_gaussian() -> None:
    told = {"noise_multiplier": 12.0, "delta": 1e-5}
    assert close("gaussian.twice_the_classical_epsilon", mp.sqrt(2 * mp.log(125_000)) / 6, **told)
    for variance, times in ((False, 2), (True, 4)):
        told = {"epsilon": 0.3, "delta": 1e-4, "variance": variance}
        assert close("gaussian.noise_for_replacement", times, **told)
    assert close("gaussian.plain_profile", "0.126936737506643945800829624758", mu=1.0, epsilon=1.0)
    told = {"epsilon": 1.0, "delta": 0.1, "alpha": 0.2}
    assert close("gaussian.tradeoff", 0.9 - 0.2 * math.e, **told)
    assert ask("gaussian.tradeoff_as_printed", **told).upper == 0.0
    assert holds("gaussian.norm_of_square", 9, radius=3.0)
    assert close("gaussian.attained_ratio", math.e, epsilon=1.0)


def test_the_theorems_of_composition_are_their_formulas() -> None:
    told = {"epsilon": 0.1, "runs": 30, "delta": 1e-6}
    assert close("composition.advanced_epsilon", "3.19462830153979159898", **told)
    assert close("composition.advanced_epsilon", "3.03687192442632016176", halved=True, **told)
    assert holds("composition.exact_epsilon", mpf("2.34588769300803662271"), **told)
    root = 2 * mp.sqrt(60 * mp.log(mpf(10) ** 6)) / 10
    assert close("composition.doubled_root_epsilon", root, **told)
    # The proof's epsilon_1 is what makes the doubled root epsilon.
    steps = {"epsilon": 0.8, "runs": 200, "delta": 1e-4}
    assert close("composition.doubled_root_of_steps", 0.8, **steps)
    one = 0.8 / (2 * math.sqrt(400 * math.log(2e4)))
    same = ask("composition.exact_epsilon", epsilon=one, runs=200, delta=5e-5)
    assert close("composition.exact_epsilon_of_steps", same.upper, 1e-9, **steps)
    assert same.upper < 0.8


def test_deltas_add_up_to_more_than_they_come_to() -> None:
    with mp.workdps(30):
        truth = 1 - (1 - mpf(0.02)) ** 12
    assert holds("composition.exact_delta", truth, epsilon=0.3, delta=0.02, runs=12)
    assert close("composition.sum_of_deltas", 0.24, delta=0.02, runs=12)


@pytest.mark.parametrize(("epsilon", "delta", "size"), [(2.0, 1e-6, 2), (0.5, 0.01, 4)])
def test_a_mechanism_on_a_chain_attains_the_group_s_delta(
    epsilon: float, delta: float, size: int
) -> None:
    with mp.workdps(40):
        eps, share = mpf(epsilon), mpf(delta)
        one = [share * mp.expm1((size - i) * eps) / mp.expm1(eps) for i in range(size + 1)]
        laws = [(p, 1 - p) for p in one]

        def cost(first: int, second: int, at: mpf) -> mpf:
            pairs = zip(laws[first], laws[second], strict=True)
            return mp.fsum(max(p - mp.exp(at) * q, mp.zero) for p, q in pairs)

        for i in range(size):
            assert cost(i, i + 1, eps) <= share * (1 + mpf(10) ** -30)
            assert cost(i + 1, i, eps) <= share
        truth = cost(0, size, size * eps)
    told = {"epsilon": epsilon, "delta": delta, "size": size}
    assert holds("composition.group_attained", truth, **told)
    with pytest.raises(ValueError, match="smaller delta"):
        ask("composition.group_attained", **{**told, "delta": 0.6})


def test_a_moved_record_is_in_two_blocks() -> None:
    for blocks in (1, 2, 3):
        truth = blocks * mpf(0.7)
        assert holds("composition.moved_record_epsilon", truth, epsilon=0.7, blocks=blocks)


def test_the_largest_of_ten_thousand_errors() -> None:
    example = {"queries": 10_000, "squared_sensitivity": 2.0, "epsilon": 1.0, "delta": 1e-9}
    with mp.workdps(30):
        sigma = 2 * mp.sqrt(mp.log(mpf("1.25e9")))
        inside = (2 * mp.ncdf(34 / sigma) - 1) ** 10_000
        bound = 2 * mp.sqrt(mp.log(mpf("1.25e9")) * mp.log(mpf(10) ** 6))
        at_bound = (2 * mp.ncdf(bound / sigma) - 1) ** 10_000
    assert float(inside) == pytest.approx(0.130, abs=5e-4)
    assert holds("errors.success", inside, bound=34.0, **example)
    assert close("errors.bound_as_printed", bound, failure=0.01, **example)
    assert holds("errors.success_of_the_bound", at_bound, 1e-8, failure=0.01, **example)


@pytest.mark.parametrize(
    ("share", "truth"),
    [
        (0, "3.63024869291551947543e-3"),
        (0.3, "5.02699278940190289395e-3"),
        (1, "8.28606234787013087051e-3"),
    ],
)
def test_the_error_of_randomized_response(share: float, truth: str) -> None:
    told = {"categories": 10, "epsilon": 1.0, "users": 1000}
    assert close("local.squared_error", truth, share=share, **told)
    if share == 0:
        assert close("local.error_as_printed", truth, **told)


@pytest.mark.parametrize("categories", [2, 10])
def test_randomized_response_costs_the_ratio_of_its_chances(categories: int) -> None:
    told = {"categories": categories, "epsilon": 0.7}
    assert holds("local.response_epsilon", mpf(0.7), **told)
    library = hs.epsilon(hs.RandomizedResponse(0.7, categories), 0.0)
    assert (
        library.lower <= ask("local.response_epsilon", **told).upper <= library.upper * (1 + 1e-14)
    )


@pytest.mark.parametrize("shift", [1, 5, 50, 80])
def test_outputs_that_pass_one_by_one_tell_all_together(shift: int) -> None:
    told = {"outputs": 50, "shift": shift, "epsilon": 0.5}
    first, second = set(range(50)), set(range(shift, 50 + shift))
    assert holds("local.event_delta", mpf(len(first - second)) / 50, **told)
    assert ask("local.pointwise_delta", **told).upper == 0.02


def test_a_replaced_record_moves_a_histogram_further() -> None:
    told = {"users": 5, "categories": 4}
    assert holds("local.histogram_sensitivity", mpf(1) / 5, replaced=False, **told)
    with mp.workdps(30):
        assert holds("local.histogram_sensitivity", mp.sqrt(2) / 5, replaced=True, **told)
    # With one category nothing moves.
    assert ask("local.histogram_sensitivity", users=5, categories=1, replaced=True).upper < 1e-300
    assert ask("local.entry_of_a_record", users=5).upper == 0.2


@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_the_printed_constant_and_variance_are_those_of_the_radius(dimension: int) -> None:
    with mp.workdps(20):
        surface = 2 * mp.pi ** (mpf(dimension) / 2) / mp.gamma(mpf(dimension) / 2)

        def moment(power: int) -> mpf:
            weight = power + dimension - 1
            return mp.quad(lambda r: r**weight * mp.exp(-0.75 * r), [0, 5, 20, 100])

        constant, variance = 1 / (surface * moment(0)), moment(2) / moment(0) / dimension
    told = {"dimension": dimension, "epsilon": 0.75}
    assert close("metric.constant_as_printed", constant, **told)
    assert close("metric.variance", variance, **told)
    assert close("metric.variance_as_printed", variance, **told)
    if dimension == 3:
        assert close("metric.constant_in_space", constant, **told)


@pytest.mark.parametrize("dimension", [1, 3])
def test_a_private_scale_tells_the_smaller_update(dimension: int) -> None:
    # Around the update of norm 1: the tail of its own noise, and the most of the other's.
    told = {"dimension": dimension, "noise_multiplier": 3.0, "ratio": 0.5, "distance": 0.5}
    with mp.workdps(30):
        n, t = dimension, 3 * (1 + 3 / mp.sqrt(dimension))

        def beyond(scale: mpf, reach: mpf) -> mpf:
            terms = ((reach / scale) ** k / mp.factorial(k) for k in range(n))
            return mp.exp(-reach / scale) * mp.fsum(terms)

        grown = mp.exp(n / mpf(3))
        bound = beyond(mpf(3) / n, t) - grown * beyond(mpf(3) / n / 2, t - mpf("0.5"))
    answer = ask("metric.private_scale_delta", **told)
    assert answer.lower == pytest.approx(float(bound), rel=1e-12)
    if dimension == 1:
        with mp.workdps(20):
            near = mp.quad(lambda x: mp.exp(-abs(x + 0.5) / 1.5) / 3, [-t, -0.5, t])
            truth = mp.exp(-t / 3) - mp.exp(mpf(1) / 3) * (1 - near)
        assert answer.lower < truth


def test_leakages_are_multiples_of_a_round_s() -> None:
    assert close("metric.leakage", 8.8, dimension=11, noise_multiplier=5.0, rounds=4)
    told = {"dimension": 11, "noise_multiplier": 0.1}
    assert close("metric.unit_of_averages", 11.0, runs=10, **told)
    assert holds("metric.public_radius_epsilon", mpf(2) / 5, dimension=2, noise_multiplier=5.0)


def test_the_laplace_mechanism_is_private_in_its_metric() -> None:
    told = {"epsilon": 0.7, "distance": 2.0}
    assert close("metric.grown_epsilon", 1.4, **told)
    # Along the line through both points the loss is epsilon times what one is nearer: at most 1.4.
    assert holds("metric.epsilon_at_a_distance", mpf(0.7) * 2, dimension=5, **told)


@pytest.mark.parametrize("dimension", [1, 2, 11])
def test_the_mean_norm_is_that_of_a_gamma_law(dimension: int) -> None:
    told = {"dimension": dimension, "epsilon": 0.75}
    with mp.workdps(30):
        powers = (mp.factorial(k) / mpf("0.75") ** (k + 1) for k in (dimension, dimension - 1))
        first, zeroth = powers
    assert holds("metric.mean_norm", first / zeroth, **told)
    assert close("metric.mean_norm_as_printed", first / zeroth, **told)


def test_the_queries_beside_the_gradients() -> None:
    with mp.workdps(30):
        truth = 1 / mp.sqrt(1 - 1 / mpf(1.01) ** 2)
        single = mpf("4.37717809568122462765011629324")
    assert close("tuning.query_noise", truth, inflation=1.01)
    assert close("tuning.query_over_bit_noise", 2.0, 1e-9, inflation=1.01)
    told = {"noise_multiplier": 1.0, "delta": 1e-5}
    assert holds("tuning.one_release_epsilon", single, **told)
    joint = ask("tuning.joint_epsilon", inflation=1.01, **told)
    assert joint.upper == pytest.approx(float(single), rel=1e-12)
    with mp.workdps(30):
        both = ask("tuning.joint_epsilon", inflation=1.01, algorithm=True, **told)
        delta = gaussian_delta(mp.sqrt(2) / mpf(1.01), mpf(both.upper))
    assert float(delta) == pytest.approx(1e-5, rel=1e-10)
