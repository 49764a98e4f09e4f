"""Plans of which a record is in one part only: every answer is that of the worst part."""

import itertools
import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.infinity import can_be_infinite
from hockeystick.errors import ParameterError, UnsupportedError
from hockeystick.numerics.multiprecision import mp

# Which of the two costs more depends on epsilon: noise with light tails, and a largest loss of 1.
WIDE, TALL = hs.Gaussian(2.0), hs.Laplace(1.0)
EITHER = hs.Parallel((WIDE, TALL), "hospital")
SAMPLED = hs.PoissonSubsampled(hs.Gaussian(1.5), 0.1)


def _numbers(found: hs.Certified | hs.Approximate) -> tuple[float, ...]:
    """The numbers of an answer."""
    return (found.value,) if isinstance(found, hs.Approximate) else (found.lower, found.upper)


def _gaussian(mu: Any, epsilon: Any) -> Any:
    """delta of mu-GDP, by its formula."""
    tail = mp.ncdf(-epsilon / mu + mu / 2)
    return tail - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize("epsilon", [0.0, 0.25, 0.5, 0.9, 0.99, 1.0, 1.5])
def test_delta_is_the_larger_of_the_parts_whichever_that_is(epsilon: float) -> None:
    with mp.workdps(40):
        laplace = max(-mp.expm1((mp.mpf(epsilon) - 1) / 2), 0)
        truth = max(_gaussian(mp.mpf(1) / 2, mp.mpf(epsilon)), laplace)
        found = hs.delta(EITHER, epsilon)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= mp.mpf("1e-12") * truth


def test_either_part_is_the_worst_somewhere() -> None:
    worst = {hs.delta(WIDE, e).lower > hs.delta(TALL, e).upper for e in (0.25, 0.9, 1.0, 1.5)}
    assert worst == {True, False}


@pytest.mark.parametrize("accountant", ["auto", "contour", "prv", "rdp", "zcdp", "gdp"])
@pytest.mark.parametrize("runs", [1, 7])
def test_every_accountant_reads_the_worst_part(accountant: str, runs: int) -> None:
    found = _numbers(hs.epsilon(EITHER**runs, 1e-5, accountant=accountant))
    parts = [_numbers(hs.epsilon(p**runs, 1e-5, accountant=accountant)) for p in (WIDE, TALL)]
    assert found == tuple(max(ends) for ends in zip(*parts, strict=True))


def test_many_digits_are_those_of_the_worst_part() -> None:
    found = hs.epsilon(hs.Parallel((WIDE, hs.Gaussian(3.0))), 1e-5, digits=30)
    assert found.upper == hs.epsilon(WIDE, 1e-5, digits=30).upper


def test_splits_of_different_names_may_meet_in_any_way() -> None:
    noises = (1.0, 9.0), (8.0, 2.0)
    first, second = (
        hs.Parallel(map(hs.Gaussian, both), name)
        for both, name in zip(noises, ("site", "year"), strict=True)
    )
    found = hs.epsilon(first @ second**3, 1e-5)
    each = [hs.Gaussian(a) @ hs.Gaussian(b) ** 3 for a, b in itertools.product(*noises)]
    assert found.upper == max(hs.epsilon(one, 1e-5).upper for one in each)
    assert len(composition_of(first @ second**3, "test").branches) == 4


def test_parts_that_cost_the_same_are_asked_once() -> None:
    assert composition_of(hs.Parallel((WIDE,) * 1000) ** 3, "test") == composition_of(
        WIDE**3, "test"
    )


def test_a_single_part_is_that_mechanism() -> None:
    assert composition_of(hs.Parallel((EITHER,)), "test") == composition_of(EITHER, "test")


def test_a_part_that_shows_everything_counts_wherever_it_stands() -> None:
    shows = hs.Gaussian(0.0)
    for parts in ((shows, WIDE), (WIDE, shows)):
        plan = hs.Parallel(parts)
        assert can_be_infinite(composition_of(plan, "test"))
        assert hs.epsilon(plan, 1e-5).upper == math.inf
        assert hs.delta(plan, math.inf).upper == 1.0


def test_one_name_for_two_numbers_of_parts_is_refused() -> None:
    three = hs.Parallel((WIDE, TALL, SAMPLED), "hospital")
    with pytest.raises(UnsupportedError, match="by hospital in 2 parts and again in 3"):
        hs.epsilon(EITHER @ three, 1e-5)


def test_too_many_places_are_refused_before_any_is_asked() -> None:
    splits = [
        hs.Parallel((hs.Gaussian(2.0 + k), hs.Gaussian(3.0 + k)), f"split {k}") for k in range(11)
    ]
    assert len(composition_of(hs.Composed(splits[:10]), "test").branches) == 1024
    with pytest.raises(UnsupportedError, match="more than 2000 places"):
        hs.epsilon(hs.Composed(splits), 1e-5)


def test_parts_inside_a_sample_are_refused_with_what_to_do() -> None:
    with pytest.raises(UnsupportedError, match="put what is around them into each of the parts"):
        hs.epsilon(hs.PoissonSubsampled(EITHER, 0.1), 1e-5)


def test_a_part_without_an_analysis_is_named() -> None:
    unknown = hs.mechanisms.RevealedSample(WIDE**2, 0.5)
    with pytest.raises(UnsupportedError, match=r"plan\.inner\.parts\[1\]"):
        hs.epsilon(hs.Parallel((WIDE, unknown)) ** 3, 1e-5)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.3, 0.6])
def test_the_tradeoff_function_lies_below_that_of_each_part(alpha: float) -> None:
    low, high = hs.tradeoff(EITHER).bounds(alpha)
    parts = [hs.tradeoff(one).bounds(alpha) for one in (WIDE, TALL)]
    assert low <= min(above for _, above in parts)
    assert low >= 0.95 * min(below for below, _ in parts)
    assert high <= min(above for _, above in parts) * (1 + 1e-9)


def test_the_tradeoff_function_of_gaussian_parts_is_that_of_the_worst() -> None:
    assert hs.tradeoff(hs.Parallel((hs.Gaussian(4.0), WIDE)) ** 4) == hs.tradeoffs.G(1.0)


def test_a_view_is_for_plans_of_several_clients() -> None:
    for plan in (WIDE, EITHER, SAMPLED**3):
        with pytest.raises(ParameterError, match=r"view must be left out: .* has no clients"):
            hs.tradeoff(plan, view="one-client")


def test_a_renyi_divergence_is_that_of_the_worst_part() -> None:
    orders = (2.0, 16.0)
    found = hs.convert(EITHER, hs.RenyiDP, orders=orders)
    parts = [hs.convert(one, hs.RenyiDP, orders=orders) for one in (WIDE, TALL)]
    for place, (_, size) in enumerate(found.divergences):
        assert size == max(one.divergences[place][1] for one in parts)


def test_a_part_can_be_solved_for() -> None:
    plan = hs.Parallel((WIDE, hs.Gaussian(3.0)), "site") ** 10
    found = hs.calibrate(plan, "inner.parts[0].noise_multiplier", hs.ApproxDP(6.0, 1e-5))
    assert isinstance(found.achieved, hs.Certified)
    assert found.achieved.upper <= 6.0
    alone = hs.calibrate(WIDE**10, "noise_multiplier", hs.ApproxDP(6.0, 1e-5))
    assert found.value == pytest.approx(alone.value, rel=1e-6)
