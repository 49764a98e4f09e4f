"""Published figures on metric privacy, and on the error of the Gaussian mechanism.

Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group Privacy for Personalized Federated Learning",
2022, as chapter 2 of Galli's thesis has it: a client pays n/nu in each of its rounds, in which it
is told apart from any point as near as its own update is long. That the noise is scaled by this
private length makes the guarantee invalid as stated; over a public radius it is what the figures
say, and pure DP is all that they use.

Teaching material on private machine learning: the L-infinity error of the Gaussian mechanism.
"""

import math
from typing import Final

import pytest

import hockeystick as hs

HYPOTHESES: Final = (7, 5, 3, 1)
# Table 2.3, hospital charges, n = 11: median and largest budget of 2062 clients, for each number of
# hypotheses, on average over 10 runs.
TABLE: Final = {
    0.1: ((517.0, 1551.0), (418.0, 1342.0), (473.0, 1386.0), (528.0, 1540.0)),
    1.0: ((36.3, 126.5), (40.7, 127.6), (44.0, 138.6), (49.5, 147.4)),
    2.0: ((15.4, 57.8), (14.3, 54.5), (22.0, 69.3), (21.5, 66.6)),
    3.0: ((7.7, 32.3), (8.4, 36.7), (12.5, 40.0), (12.1, 40.0)),
    5.0: ((5.7, 21.3), (5.9, 22.0), (5.5, 21.6), (5.3, 20.9)),
}
ENTRIES: Final = [
    (multiplier, hypotheses, kind, pair[place])
    for multiplier, row in TABLE.items()
    for hypotheses, pair in zip(HYPOTHESES, row, strict=True)
    for place, kind in enumerate(("median", "largest"))
]
# The largest rounding of a mean to one decimal, and of the table's own sums.
ROUNDED: Final = 0.0501


@pytest.mark.parametrize(("multiplier", "hypotheses", "kind", "budget"), ENTRIES)
def test_every_budget_of_the_table_is_of_whole_rounds_in_ten_runs(
    multiplier: float, hypotheses: int, kind: str, budget: float
) -> None:
    rounds = round(10 * budget * multiplier / 11)
    plan = hs.federated.FederatedClustering(multiplier, dimension=11, radius=1.0, rounds=rounds)
    assert abs(hs.epsilon(plan, delta=0).upper / 10 - budget) <= ROUNDED


def test_the_table_could_not_be_of_other_multiples() -> None:
    # Were a round n/nu with n = 12, not every budget would be of whole rounds.
    off = [abs(round(10 * b * m / 12) * 12 / m / 10 - b) for m, _, _, b in ENTRIES]
    assert max(off) > 2 * ROUNDED


@pytest.mark.parametrize(("dimension", "multiplier", "round_costs"), [(2, 5, 0.4), (11, 3, 11 / 3)])
def test_what_one_round_costs(dimension: int, multiplier: float, round_costs: float) -> None:
    plan = hs.federated.FederatedClustering(multiplier, dimension, radius=1.0, rounds=1)
    assert hs.epsilon(plan, delta=0).upper == pytest.approx(round_costs, rel=1e-14)


def test_the_largest_budget_at_noise_multiplier_3_is_less_with_a_delta() -> None:
    # 11 rounds are 40.3 in pure DP; the exact loss composes to about half of that.
    plan = hs.federated.FederatedClustering(3.0, dimension=11, radius=1.0, rounds=11)
    found = hs.epsilon(plan, delta=1e-6)
    assert isinstance(found, hs.Certified)
    assert 21.3 < found.lower <= found.upper < 21.4


def test_n_over_nu_says_nothing_of_a_million_parameters_though_there_is_something_to_say() -> None:
    # The network for images has 1,206,590 parameters; nu = 1000 gives n/nu = 1206.59 a round.
    plan = hs.federated.FederatedClustering(1000.0, dimension=1_206_590, radius=1.0, rounds=1)
    assert hs.epsilon(plan, delta=0).upper == pytest.approx(1206.59, rel=1e-12)
    assert hs.epsilon(plan, delta=1e-6).upper < 5.5
    # With nu = 1 neither helps: mu = sqrt(n)/nu = 1098.
    assert hs.epsilon(hs.GDP(math.sqrt(1_206_590)), delta=1e-6).lower > 600_000


CLASSICAL: Final = math.sqrt(2) * math.sqrt(2 * math.log(1.25e9))
NAMES: Final = 10_000


def printed(share: float, *, divided: bool) -> float:
    """Return the printed bound: ``sqrt(4 ln(1.25/delta) ln(K/beta))``, or with a division."""
    of_names = math.log(NAMES / share)
    of_delta = 4 * math.log(1.25e9)
    return math.sqrt(of_delta / of_names if divided else of_delta * of_names)


def test_the_printed_expression_is_34_only_with_another_sign_and_another_beta() -> None:
    assert f"{printed(0.05, divided=True):.2f}" == "2.62"
    assert f"{printed(0.05, divided=False):.2f}" == "31.98"
    assert f"{printed(0.01, divided=False):.2f}" == "34.02"


def test_no_error_exceeds_34_with_probability_0_130_and_not_0_99() -> None:
    assert pytest.approx(9.15345, abs=5e-6) == CLASSICAL
    assert f"{hs.calibration.max_error_probability(34, CLASSICAL, NAMES):.3f}" == "0.130"


def test_with_probability_0_99_no_error_exceeds_44_77() -> None:
    found = hs.calibration.max_error_quantile(CLASSICAL, NAMES, 0.01)
    assert found == pytest.approx(44.766321812487789, rel=1e-14)
    assert f"{hs.calibration.max_error_union_bound(CLASSICAL, NAMES, 0.01):.2f}" == "49.31"


def test_the_least_noise_for_the_same_guarantee_errs_by_38_01() -> None:
    sigma = math.sqrt(2) * hs.calibration.gaussian_noise(1, 1e-9)
    assert sigma == pytest.approx(7.77148, abs=5e-6)
    found = hs.calibration.max_error_quantile(sigma, NAMES, 0.01)
    assert found == pytest.approx(38.007591765455340, rel=1e-13)


def test_the_printed_bound_lacks_a_root_of_2_and_a_2_in_the_logarithm() -> None:
    corrected = math.sqrt(2) * math.sqrt(4 * math.log(1.25e9) * math.log(2 * NAMES / 0.01))
    union = hs.calibration.max_error_union_bound(CLASSICAL, NAMES, 0.01)
    assert union == pytest.approx(corrected, rel=1e-14)


def test_the_classical_noise_is_not_proven_at_the_epsilon_of_the_example() -> None:
    with pytest.raises(hs.errors.ParameterError, match="proven for these alone"):
        hs.calibration.classical_gaussian_noise(1.0, 1e-9)
