"""Plans of which only a part has contour lines."""

import math
from fractions import Fraction

import pytest

import hockeystick as hs
from hockeystick.accountants.base import can_be_infinite, composition_of
from hockeystick.errors import UnsupportedError
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.profiles import gaussian_delta

TRAINING = hs.PoissonSubsampled(hs.Gaussian(1.0), 0.01) ** 1000


@pytest.mark.parametrize("plan", [TRAINING, hs.PureDP(1.0), hs.ZCDP(0.1) ** 3], ids=str)
def test_a_plan_of_one_kind_is_refused(plan: hs.Mechanism) -> None:
    with pytest.raises(UnsupportedError, match="parts known exactly and parts known by a bound"):
        hs.epsilon(plan, 1e-5, accountant="parts")


def test_what_several_accountants_prove_is_intersected() -> None:
    plan = hs.PureDP(0.5) ** 4 @ hs.ZCDP(0.1) @ hs.GDP(1)
    parts, zcdp = (hs.delta(plan, 0.7, accountant=name) for name in ("parts", "zcdp"))
    assert parts.lower > zcdp.lower
    assert parts.upper > zcdp.upper
    found = hs.delta(plan, 0.7)
    assert (found.lower, found.upper, found.accountant) == (parts.lower, zcdp.upper, "zcdp")


# Which of the two costs more depends on epsilon: noise with light tails, and a largest loss of 1.
WIDE, TALL = hs.Gaussian(2.0), hs.Laplace(1.0)
EITHER = hs.Parallel((WIDE, TALL), "hospital")
SAMPLED = hs.PoissonSubsampled(hs.Gaussian(1.5), 0.1)


@pytest.mark.parametrize("epsilon", [0.0, 0.25, 0.5, 0.9, 0.99, 1.0, 1.5])
def test_delta_is_the_larger_of_the_parts_whichever_that_is(epsilon: float) -> None:
    with mp.workdps(40):
        laplace = max(-mp.expm1((mp.mpf(epsilon) - 1) / 2), 0)
        truth = max(gaussian_delta(epsilon, mp.mpf(1) / 2), laplace)
        found = hs.delta(EITHER, epsilon)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= mp.mpf("1e-12") * truth


def test_a_part_that_shows_everything_counts_wherever_it_stands() -> None:
    shows = hs.Gaussian(0.0)
    for parts in ((shows, WIDE), (WIDE, shows)):
        plan = hs.Parallel(parts)
        assert can_be_infinite(composition_of(plan, "test"))
        assert hs.epsilon(plan, 1e-5).upper == math.inf
        assert hs.delta(plan, math.inf).upper == 1.0


THREE = hs.Parallel((WIDE, TALL, SAMPLED), "hospital")
UNKNOWN = hs.mechanisms.RevealedSample(WIDE**2, 0.5)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (EITHER @ THREE, "by hospital in 2 parts and again in 3"),
        (hs.PoissonSubsampled(EITHER, 0.1), "into each of the parts"),
        (hs.Parallel((WIDE, UNKNOWN)) ** 3, r"plan\.inner\.parts\[1\]"),
    ],
    ids=str,
)
def test_parts_that_cannot_be_told_apart_are_refused(plan: hs.Mechanism, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        hs.epsilon(plan, 1e-5)


def test_too_many_places_are_refused_before_any_is_asked() -> None:
    splits = [
        hs.Parallel((hs.Gaussian(2.0 + k), hs.Gaussian(3.0 + k)), f"split {k}") for k in range(11)
    ]
    assert len(composition_of(hs.Composed(splits[:10]), "test").branches) == 1024
    with pytest.raises(UnsupportedError, match="more than 2000 places"):
        hs.epsilon(hs.Composed(splits), 1e-5)


def test_a_renyi_divergence_is_that_of_the_worst_part() -> None:
    orders = (2.0, 16.0)
    found = hs.convert(EITHER, hs.RenyiDP, orders=orders)
    parts = [hs.convert(one, hs.RenyiDP, orders=orders) for one in (WIDE, TALL)]
    for place, (_, size) in enumerate(found.divergences):
        assert size == max(one.divergences[place][1] for one in parts)


def shown(rate: float, runs: int) -> hs.Mechanism:
    """Return runs that show the record whenever it is sampled."""
    return hs.PoissonSubsampled(hs.Gaussian(0), rate) ** runs


def truth(epsilon: float, rate: float, runs: int, mu: float) -> float:
    """Return delta of such runs beside one Gaussian, from the two directions' definitions."""
    with mp.workdps(40):
        hidden = (1 - mp.mpf(repr(rate))) ** runs
        shift = mp.log(hidden)
        removing = 1 - hidden + hidden * gaussian_delta(epsilon - shift, mp.mpf(mu))
        adding = gaussian_delta(epsilon + shift, mp.mpf(mu))
        return float(max(removing, adding))


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.01, 0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize(("rate", "runs", "mu"), [(1e-3, 3, 1.0), (0.2, 1, 0.1), (1e-9, 7, 2.0)])
def test_delta_beside_a_gaussian_holds_the_truth(
    epsilon: float, rate: float, runs: int, mu: float
) -> None:
    answer = hs.delta(shown(rate, runs) @ hs.Gaussian(1 / mu), epsilon)
    assert answer.lower <= truth(epsilon, rate, runs, mu) <= answer.upper
    if epsilon > -runs * math.log1p(-rate):
        assert answer.relative_width < 1e-10


def test_what_shows_is_out_of_reach_or_covered_by_delta() -> None:
    assert hs.epsilon(shown(1e-3, 3) @ hs.Gaussian(1), 0.0029).lower == math.inf
    assert hs.epsilon(shown(1e-3, 3), 0.003).upper == 0.0
    assert hs.delta(shown(1e-3, 3), 2.0).upper == pytest.approx(1 - 0.999**3, rel=1e-11)
    for noise in (0, 1):  # at a rate that rounds to 1
        step = hs.PoissonSubsampled(hs.Gaussian(noise), 1 - Fraction(1, 10**20))
        assert hs.epsilon(step**3, 0.0).lower == math.inf
        assert 0.0 < hs.delta(step**3, 1.0).upper <= 1.0


@pytest.mark.parametrize("rest", [None, hs.Gaussian(1)])
@pytest.mark.parametrize(
    "hidden", [hs.Gaussian(0), hs.PoissonSubsampled(hs.Gaussian(0), 0.5) ** 2000]
)
def test_what_surely_shows_costs_everything_up_to_the_last_delta(
    rest: hs.Mechanism | None, hidden: hs.Mechanism
) -> None:
    plan = hidden if rest is None else hidden @ rest
    assert hs.epsilon(plan, 1 - 1e-13).lower == math.inf


@pytest.mark.parametrize("accountant", ["auto", "contour", "rdp"])
@pytest.mark.parametrize("epsilon", [math.inf, 1e300])
def test_far_out_only_what_shows_is_left(accountant: str, epsilon: float) -> None:
    plan = shown(0.1, 1) @ hs.PoissonSubsampled(hs.Gaussian(1), 0.1) ** 100
    answer = hs.delta(plan, epsilon, accountant=accountant)
    assert isinstance(answer, hs.Certified)
    assert answer.lower <= 0.1 <= answer.upper < 0.1 + 1e-11
