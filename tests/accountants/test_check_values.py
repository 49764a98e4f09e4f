"""Published check values and exact references, each accountant against its own formula."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from mpmath import mp

import hockeystick as hs
from hockeystick.accountants.contour import Contour
from hockeystick.privacy_loss import SampledGaussianLoss
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor

REFERENCE = Path(__file__).parents[1] / "oracles" / "epsilon_reference.json"
CASES: list[dict[str, Any]] = json.loads(REFERENCE.read_text(encoding="utf-8"))["cases"]
WORST = [case for case in CASES if case["direction"] == "remove"]


def name_of(case: dict[str, Any]) -> str:
    keys = ("sampling_rate", "noise_multiplier", "steps", "delta", "direction")
    return " ".join(str(case[key]) for key in keys)


def plan_of(case: dict[str, Any]) -> hs.Mechanism:
    noise = hs.Gaussian(float(case["noise_multiplier"]))
    steps: int = case["steps"]
    return hs.PoissonSubsampled(noise, Fraction(case["sampling_rate"])) ** steps


def certified(answer: hs.Certified | hs.Approximate) -> hs.Certified:
    assert isinstance(answer, hs.Certified)
    return answer


def holds(answer: Any, truth: str) -> bool:
    """Return whether an interval holds a decimal, to the last of the decimal's digits."""
    with mp.workdps(60):
        number = mp.mpf(truth)
        digits = len(truth.lower().split("e")[0].replace(".", "").lstrip("0"))
        last = abs(number) * mp.mpf(10) ** (1 - digits)
        return bool(answer.lower - last <= number <= answer.upper + last)


@pytest.mark.parametrize(
    ("epsilon", "noise", "delta"),
    [(1, 1.0, "0.126936737506643945800829624758"), (5, 2.0, "4.41544347029961926997758165125e-24")],
)
def test_the_gaussian_profile_has_its_closed_form(epsilon: float, noise: float, delta: str) -> None:
    for accountant in ("closed-form", "contour"):
        answer = certified(hs.delta(hs.Gaussian(noise), epsilon, accountant=accountant))
        assert holds(answer, delta)
        assert answer.relative_width <= 1e-6
    assert holds(hs.delta(hs.Gaussian(noise), epsilon, digits=28), delta)


@pytest.mark.parametrize(
    ("delta", "epsilon"),
    [(1e-5, "4.37717809568122462765011629324"), (1e-10, "6.54792406686495100581928943696")],
)
def test_the_gaussian_epsilon_inverts_its_profile(delta: float, epsilon: str) -> None:
    for accountant in ("closed-form", "contour"):
        answer = certified(hs.epsilon(hs.Gaussian(1), delta, accountant=accountant))
        assert holds(answer, epsilon)
        assert answer.relative_width <= 1e-6
    assert holds(hs.epsilon(hs.Gaussian(1), delta, digits=28), epsilon)


def test_the_mu_of_epsilon_1_costs_epsilon_1() -> None:
    plan = hs.Gaussian(1 / 0.26805112321129421790303557237)
    assert certified(hs.epsilon(plan, 1e-5)).estimate == pytest.approx(1.0, rel=1e-12)


def test_the_conversion_factor_is_that_of_canonne_kamath_and_steinke() -> None:
    order, tau, epsilon = 10, 1, 3
    found = math.exp((order - 1) * (tau - epsilon) + log_cks_factor(order - 1))
    assert found == pytest.approx(5.90040620015666167320335816846e-10, rel=1e-12)


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"),
    [(0.5, 1e-5, 4.72838698494331389997), (0.1, 1e-6, 2.14193892838547366139 - 1e-14)],
)
def test_renyi_converts_a_gaussian_at_its_best_order(
    rho: float, delta: float, epsilon: float
) -> None:
    plan = hs.Gaussian(1 / math.sqrt(2 * rho))
    assert float(certified(hs.epsilon(plan, delta, accountant="rdp"))) == pytest.approx(
        epsilon, rel=1e-9
    )


@pytest.mark.parametrize(
    ("rate", "noise", "epsilon", "delta"),
    [
        (0.01, 1.0, 1.0, "2.73200926154613113569168569554e-9"),
        (0.1, 2.0, 0.2, "2.88571111801261534128e-4"),
    ],
)
def test_a_single_sampled_run_has_its_closed_form(
    rate: float, noise: float, epsilon: float, delta: str
) -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(noise), rate)
    answer = certified(hs.delta(plan, epsilon))
    assert answer.accountant == "closed-form"
    assert holds(answer, delta)
    assert answer.relative_width <= 1e-11
    wide = certified(hs.delta(plan, epsilon, accountant="contour"))
    assert holds(wide, delta)


@pytest.mark.parametrize(
    ("rate", "noise", "removing", "order", "divergence"),
    [
        (0.01, 1.0, True, 2.0, 1.71813422074547930990657278983e-4),
        (0.01, 1.0, True, 32.0, 11.2462759370480688354082125437),
        (0.1, 2.0, True, 2.5, 0.00359407719941322788672140027),
        (0.1, 2.0, False, 2.5, 0.00324690830762672607621973916),
    ],
)
def test_the_renyi_divergence_is_the_cumulant_over_the_order_less_one(
    rate: float, noise: float, removing: bool, order: float, divergence: float
) -> None:
    found = SampledGaussianLoss(rate, noise, removing).cgf_bounds(order - 1)
    truth = divergence * (order - 1)
    assert abs(found.midpoint - truth) <= found.radius + 1e-15 * truth
    assert found.midpoint == pytest.approx(truth, rel=1e-10)


DELTAS = [
    (0.1, 2.0, 50, True, 1.0, "0.00135525177912980502559200087801"),
    (0.1, 2.0, 50, True, 3.0, "1.38467307696103016807362890479e-11"),
    (0.1, 2.0, 50, False, 1.0, "2.07188670100435853770955239256e-4"),
    (0.01, 1.0, 1000, True, 1.0, "2.612420578626923815571174269e-3"),
    (0.01, 1.0, 1000, True, 2.0, "2.665571924761790252417294603e-6"),
    (0.01, 1.0, 1000, True, 8.0, "3.14211030220527e-26"),
    (0.01, 1.0, 1000, False, 1.0, "7.945901735717182519953604361e-4"),
]


@pytest.mark.parametrize(("rate", "noise", "steps", "removing", "epsilon", "delta"), DELTAS)
def test_the_contour_holds_delta_in_either_direction(
    rate: float, noise: float, steps: int, removing: bool, epsilon: float, delta: str
) -> None:
    terms = ((SampledGaussianLoss(rate, noise, removing), steps),)
    found = Contour().delta_of(terms, epsilon)
    assert holds(found, delta)
    assert found.upper - found.lower <= 1e-6 * found.estimate
    if removing:
        plan = hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** steps
        answer = certified(hs.delta(plan, epsilon, accountant="contour"))
        assert (answer.lower, answer.upper) == (found.lower, found.upper)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_contour_holds_the_reference_epsilon_in_either_direction(case: dict[str, Any]) -> None:
    loss = SampledGaussianLoss(
        Fraction(case["sampling_rate"]),
        float(case["noise_multiplier"]),
        case["direction"] == "remove",
    )
    found = Contour().epsilon_of(((loss, case["steps"]),), float(case["delta"]))
    truth = mp.mpf(case["epsilon"])
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1e-6 * found.estimate
    assert found.estimate == pytest.approx(float(truth), rel=1e-9)


@pytest.mark.parametrize("case", WORST, ids=name_of)
def test_every_accountant_is_on_its_side_of_the_reference_epsilon(case: dict[str, Any]) -> None:
    delta, truth = float(case["delta"]), mp.mpf(case["epsilon"])
    for row in hs.compare(plan_of(case), delta=delta):
        if isinstance(row.answer, hs.Certified):
            assert row.answer.lower <= truth <= row.answer.upper
    assert certified(hs.epsilon(plan_of(case), delta)).relative_width <= 1e-6
    renyi = float(certified(hs.epsilon(plan_of(case), delta, accountant="rdp")))
    assert renyi <= 1.25 * float(truth)


def test_digits_meet_a_30_digit_delta() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(2), 0.1) ** 50
    answer = certified(hs.delta(plan, 1, digits=30))
    truth = "0.00135525177912980502559200087801"
    assert holds(answer, truth)
    assert answer.relative_width <= 1e-29


@pytest.mark.parametrize("case", WORST, ids=name_of)
def test_digits_meet_the_20_digits_of_the_reference(case: dict[str, Any]) -> None:
    answer = certified(hs.epsilon(plan_of(case), float(case["delta"]), digits=20))
    assert answer.relative_width <= 1e-18
    assert holds(answer, case["epsilon"])


@pytest.mark.parametrize("digits", [5, 17, 60])
def test_more_digits_of_a_closed_form_are_a_narrower_interval_inside_the_wider(digits: int) -> None:
    wide = certified(hs.epsilon(hs.Gaussian(1.3), 1e-6, digits=digits))
    fine = certified(hs.epsilon(hs.Gaussian(1.3), 1e-6, digits=digits + 20))
    assert wide.lower <= fine.lower <= fine.estimate <= fine.upper <= wide.upper
    assert 0 < fine.width < wide.width < mp.mpf(10) ** (1 - digits)


def test_the_central_limit_is_the_gaussian_of_the_published_mu() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(1), 0.01) ** 1000
    limit = hs.Gaussian(1 / 0.414521631336537760104)
    found = hs.epsilon(plan, 1e-5, accountant="gdp")
    assert isinstance(found, hs.Approximate)
    assert found.value == pytest.approx(float(certified(hs.epsilon(limit, 1e-5))), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1.759e-3), (2.0, 1.489e-7)])
def test_the_central_limit_is_below_the_truth_by_as_much_as_published(
    epsilon: float, delta: float
) -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(1), 0.01) ** 1000
    found = hs.delta(plan, epsilon, accountant="gdp")
    assert isinstance(found, hs.Approximate)
    assert found.value == pytest.approx(delta, rel=1e-3)
    assert found.value < certified(hs.delta(plan, epsilon)).lower


@pytest.mark.parametrize("below", [1e-3, 1e-9, 1e-15, -1e-10])
@pytest.mark.parametrize(
    "plan",
    [hs.PoissonSubsampled(hs.Gaussian(2.0), 0.5) ** 30 @ hs.Gaussian(1.5), hs.Gaussian(1.5)],
    ids=["contour", "closed-form"],
)
def test_digits_near_an_epsilon_of_0_are_digits_of_epsilon(plan: Any, below: float) -> None:
    delta = float(hs.delta(plan, 0.0, digits=30).estimate * (1 - below))
    truth = hs.epsilon(plan, delta, digits=30)
    for digits in (2, 5, 15):
        answer = hs.epsilon(plan, delta, digits=digits)
        assert answer.lower <= truth.estimate <= answer.upper
    assert (truth.upper == 0) == (below < 0)


@pytest.mark.parametrize(("epsilon", "digits"), [(40.0, 20), (100.0, 30)])
def test_digits_reach_beyond_the_largest_loss_of_one_direction(epsilon: float, digits: int) -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(0.9), 0.01024) ** 2930
    exact, plain = hs.delta(plan, epsilon, digits=digits), hs.delta(plan, epsilon)
    assert plain.lower <= exact.estimate <= plain.upper


def test_too_many_digits_are_refused_by_the_accountant_that_was_asked() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(0.9), 0.01024) ** 2930
    with pytest.raises(
        hs.errors.UnsupportedError, match="1000 digits take too long; ask for fewer"
    ):
        hs.epsilon(plan, 1e-5, digits=1000)


@pytest.mark.parametrize(
    ("plan", "epsilon", "digits"),
    [
        (hs.Gaussian(0.05), 0.0, 20),
        (hs.Gaussian(3.954) ** 2851, 0.0, 2),
        (hs.PoissonSubsampled(hs.Gaussian(0.364), 0.0175) ** 3000, 0.01, 5),
    ],
)
def test_digits_of_a_delta_near_1_do_not_exceed_it(plan: Any, epsilon: float, digits: int) -> None:
    answer = hs.delta(plan, epsilon, digits=digits)
    assert 0.99 < answer.lower <= answer.estimate <= answer.upper <= 1


def test_digits_of_an_epsilon_of_0_are_0() -> None:
    assert hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(1), 0.01) ** 1000, 0.9, digits=20).upper == 0


def test_digits_survive_a_line_on_which_most_of_the_sum_cancels() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(1.851), 0.000379) ** 7 @ hs.Gaussian(9.25)
    few, more = (hs.delta(plan, 4.0, digits=digits) for digits in (2, 10))
    assert few.lower <= more.lower < more.upper <= few.upper
    assert more.upper - more.lower < 1e-9 * more.lower


def test_a_tiny_answer_is_told_with_its_exponent_or_refused() -> None:
    assert "e-262538 " in str(hs.delta(hs.Gaussian(1.1), 1e3, digits=20))
    with pytest.raises(hs.errors.UnsupportedError):
        hs.delta(hs.Gaussian(1.1), 1e7, digits=20)


def test_hardly_any_noise_and_hardly_any_sampling_keep_an_upper_end() -> None:
    runs = hs.PoissonSubsampled(hs.Gaussian(0.001), 1e-220) ** 2
    assert hs.delta(runs, 502_500.0).upper >= 2.63347e-223
    assert hs.epsilon(hs.Gaussian(1e-200), 1e-5).lower < math.inf
    assert hs.delta(hs.Gaussian(1e-200), math.inf).upper == 0.0
