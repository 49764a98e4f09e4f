"""The privacy parameters of Zheng, Chen, Long and Su, "Federated f-differential privacy", 2021.

All 21 entries "mu_max" of tables 1 to 3 are values of the central limit theorem, and come out to
the digits printed: ``mu = sqrt(2) c sqrt(e^(1/s^2) Phi(1.5/s) + 3 Phi(-0.5/s) - 2)`` with
``c = (B/n) sqrt(K R)``: B examples of a client's n in each of K local steps over R rounds. The rate
at which clients are sampled is not in the formula. The paper adds N(0, 4 C^2 s^2) under replace-one
adjacency, so that s is the noise over the sensitivity.

Beside each stands what the limit theorem replaces, delta of the composition ``C_(B/n)(G_(1/s))^KR``
at ``eps = mu^2/2 + mu``, proven, and how many times as large the limit's delta is there: from 1.2
times to 1e87 times. These plans cost less than the paper says.
"""

from fractions import Fraction
from typing import Final, NamedTuple

import pytest

import hockeystick as hs
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.limits.gdp import GaussianLimit, limiting_mu
from hockeystick.conversions.published.federated_limit import limit_delta, limit_mu
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import Composition, Terms
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss


class Row(NamedTuple):
    """What a row of a table says, and the exact delta and the ratio to it at mu^2/2 + mu."""

    table: int
    clients: float
    noise: float
    batch: int
    local_steps: int
    rounds: int
    mu: str
    delta: float
    ratio: float

    @property
    def terms(self) -> Terms:
        """The steps of the row."""
        rate = Fraction(self.batch, 500 if self.table == 3 else 600)
        return ((FixedSizeGaussianLoss(rate, self.noise), self.local_steps * self.rounds),)

    @property
    def plan(self) -> hs.federated.PriFedSync:
        """The row as a plan: the paper's s is half the noise multiplier."""
        local = hs.federated.LocalTraining(
            examples=500 if self.table == 3 else 600,
            batch_size=self.batch,
            noise_multiplier=2.0 * self.noise,
            local_steps=self.local_steps,
        )
        return hs.federated.PriFedSync(clients=local, rounds=self.rounds, client_rate=self.clients)


ROWS: Final = (
    Row(1, 1.0, 1.0, 16, 38, 93, "2.71", 6.826361181e-2, 1.42698),
    Row(1, 1.0, 0.9, 16, 38, 83, "3.10", 5.932906606e-2, 1.73000),
    Row(1, 1.0, 0.75, 16, 38, 64, "3.96", 3.090776948e-2, 3.61311),
    Row(1, 0.5, 1.0, 16, 38, 194, "3.92", 7.027539845e-2, 1.58313),
    Row(1, 0.5, 0.9, 16, 38, 176, "4.51", 5.597489312e-2, 2.07376),
    Row(1, 0.5, 0.75, 16, 38, 127, "5.58", 2.126702878e-2, 5.76893),
    Row(1, 0.25, 1.0, 16, 38, 386, "5.52", 6.692675489e-2, 1.82853),
    Row(1, 0.25, 0.9, 16, 38, 325, "6.13", 4.857732106e-2, 2.58056),
    Row(1, 0.25, 0.75, 16, 38, 245, "7.75", 1.141172372e-2, 11.5108),
    Row(2, 0.5, 1.0, 8, 76, 266, "3.24", 8.407635003e-2, 1.24129),
    Row(2, 0.5, 1.0, 16, 38, 194, "3.92", 7.027539845e-2, 1.58313),
    Row(2, 0.5, 0.9, 8, 76, 229, "3.64", 7.717784539e-2, 1.40772),
    Row(2, 0.5, 0.9, 16, 38, 176, "4.51", 5.597489312e-2, 2.07376),
    Row(2, 0.5, 0.75, 8, 76, 191, "4.84", 4.774918622e-2, 2.47849),
    Row(2, 0.5, 0.75, 16, 38, 127, "5.58", 2.126702878e-2, 5.76893),
    Row(3, 1.0, 1.0, 16, 32, 468, "6.70", 5.511667530e-2, 2.31734),
    Row(3, 1.0, 0.75, 16, 32, 321, "9.77", 3.533116576e-3, 38.6010),
    Row(3, 1.0, 0.5, 16, 32, 207, "26.81", 1.325082580e-48, 1.13176e47),
    Row(3, 0.5, 1.0, 16, 32, 904, "9.31", 4.303514382e-2, 3.14616),
    Row(3, 0.5, 0.75, 16, 32, 671, "14.13", 4.542409479e-4, 314.217),
    Row(3, 0.5, 0.5, 16, 32, 405, "37.51", 7.363941445e-89, 2.06921e87),
)

each_row = pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"table{row.table}-p{row.clients}-s{row.noise}-b{row.batch}"
)


def _limit(terms: Terms, epsilon: float) -> float:
    """Return the delta of the central limit theorem."""
    return GaussianLimit().delta(Composition(terms, terms), epsilon).estimate


def test_there_are_as_many_entries_as_printed() -> None:
    assert [sum(row.table == table for row in ROWS) for table in (1, 2, 3)] == [9, 6, 6]


@each_row
def test_each_mu_max_is_that_of_the_plan_whatever_the_rate_of_clients(row: Row) -> None:
    assert f"{limit_mu(row.plan):.2f}" == row.mu
    assert limit_mu(row.plan) == pytest.approx(limiting_mu(row.terms), rel=1e-14)


@each_row
def test_each_mu_max_is_the_central_limit_theorem_to_the_digits_printed(row: Row) -> None:
    assert f"{limiting_mu(row.terms):.2f}" == row.mu


@pytest.mark.parametrize(
    ("index", "mu"),
    [
        (0, 2.7110298),
        (8, 7.7529275),
        (9, 3.2420421),
        (15, 6.6969983),
        (17, 26.814195),
        (20, 37.506549),
    ],
)
def test_more_digits_of_some_entries(index: int, mu: float) -> None:
    assert limiting_mu(ROWS[index].terms) == pytest.approx(mu, rel=3e-8)


@each_row
def test_the_central_limit_theorem_overstates_delta_of_each_row(row: Row) -> None:
    mu = limiting_mu(row.terms)
    epsilon = 0.5 * mu * mu + mu
    exact = Contour().delta_of(row.terms, epsilon)
    limit = _limit(row.terms, epsilon)
    assert exact.upper < limit
    assert exact.upper - exact.lower < 1e-7 * exact.lower
    assert exact.estimate == pytest.approx(row.delta, rel=1e-8)
    assert limit / exact.estimate == pytest.approx(row.ratio, rel=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "delta", "limit"),
    [(8.0, 0.0183788206638339704, 0.03058), (12.0, 1.768e-4, 4.661e-4)],
)
def test_the_first_row_far_out(epsilon: float, delta: float, limit: float) -> None:
    exact = Contour().delta_of(ROWS[0].terms, epsilon)
    assert exact.estimate == pytest.approx(delta, rel=1e-9 if epsilon == 8.0 else 5e-4)
    assert _limit(ROWS[0].terms, epsilon) == pytest.approx(limit, rel=2e-4)
    if epsilon == 8.0:
        assert exact.lower <= delta <= exact.upper


@pytest.mark.parametrize("epsilon", [8.0, 12.0])
def test_the_plan_of_the_first_row_costs_at_most_theorem_2_and_less_than_the_limit(
    epsilon: float,
) -> None:
    # The product of symmetric functions is what theorem 2 proves; the plan's own upper end is it.
    product = hs.delta(hs.FDP(hs.tradeoffs.G(1.0).subsample(16 / 600)) ** (38 * 93), epsilon)
    found = hs.delta(ROWS[0].plan, epsilon)
    assert product.upper - product.lower < 1e-9 * product.lower
    assert product.lower <= found.upper <= product.upper * (1 + 1e-3)
    assert found.upper < limit_delta(ROWS[0].plan, epsilon).value


def test_the_delta_of_the_first_row_by_theorem_2_is_two_thirds_of_the_limits() -> None:
    exact = hs.delta(hs.FDP(hs.tradeoffs.G(1.0).subsample(16 / 600)) ** (38 * 93), 8.0)
    assert exact.estimate == pytest.approx(0.0183788206638339704, rel=1e-10)
    assert limit_delta(ROWS[0].plan, 8.0).value == pytest.approx(0.03058, rel=2e-4)


def test_lemma_3_8_is_not_tight_in_a_single_round() -> None:
    """With probability p^2 the round is a release with f, and otherwise nothing: delta = p^2 d.

    The lemma has max(f, 1 - alpha - p^2) in its place, which is min(d, p^2) as a delta.
    """
    p = 0.5
    round_ = hs.mechanisms.RevealedSample(hs.Gaussian(1.0), p * p)
    with mp.workdps(30):
        alone = mp.ncdf(-0.5) - mp.e * mp.ncdf(-1.5)
        variation = mp.erf(1 / mp.sqrt(8))
        for epsilon, truth, printed in ((1.0, alone, "0.03173"), (0.0, variation, "0.09573")):
            found = hs.delta(round_, epsilon)
            assert found.lower <= p * p * truth <= found.upper
            assert f"{found.estimate:.5f}" == printed
        assert mp.nstr(min(alone, p * p), 5) == "0.12694"
        assert min(variation, p * p) == 0.25


def test_theorem_1_claims_less_than_what_the_server_passes_on() -> None:
    """What i may see of j is in the server's model from the first round in which j is drawn.

    Theorem 1 bounds the total variation by 1 - (1 - p^2)^R whatever the noise. Without noise, i
    sees what j sent as soon as i is drawn then or later: not, where j is first drawn in round r,
    in r to R, nor where j is drawn in none, together (1 - p)^R (1 + R p).
    """
    p, rounds = mp.mpf("0.01"), 1000
    claimed = 1 - (1 - p * p) ** rounds
    never = (1 - p) ** rounds
    unseen = sum((1 - p) ** (r - 1) * p * (1 - p) ** (rounds - r + 1) for r in range(1, rounds + 1))
    assert unseen + never == pytest.approx(float((1 - p) ** rounds * (1 + rounds * p)), rel=1e-12)
    assert claimed < 0.0952
    assert 1 - never - unseen > 0.999
