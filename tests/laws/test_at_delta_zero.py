"""Epsilon at delta = 0, and where failures use up delta: the largest loss, from both sides."""

import math
from collections.abc import Callable
from typing import Final

import pytest

import hockeystick as hs
from hockeystick.notions import FDP, ApproxDP
from hockeystick.tradeoffs import (
    IDENTITY,
    ApproxTradeOff,
    GaussianTradeOff,
    LaplaceTradeOff,
    TradeOff,
    discrete_tradeoff,
    mixture,
    tradeoff_of_deltas,
)

PURE: Final = ApproxTradeOff(1.0, 0.0)
COINS: Final = discrete_tradeoff([0.25, 0.75], [0.75, 0.25])
LEANING: Final = discrete_tradeoff([0.5, 0.25, 0.25], [0.25, 0.25, 0.5])
# Functions, the largest loss of the worst release with each, and what is proven to be reached.
KNOWN: Final[tuple[tuple[TradeOff, float, bool], ...]] = (
    (IDENTITY, 0.0, True),
    (discrete_tradeoff([0.5, 0.5], [0.5, 0.5]), 0.0, True),
    (COINS, math.log(3.0), True),
    (LEANING, math.log(2.0), True),
    (discrete_tradeoff([0.5, 0.5], [0.0, 1.0]), math.inf, True),
    (PURE, 1.0, True),
    (ApproxTradeOff(1.0, 0.25), math.inf, True),
    (PURE.group(3), 3.0, True),
    (tradeoff_of_deltas([(1.0, 0.0)]), 1.0, False),
    (tradeoff_of_deltas([(0.5, 0.1), (2.0, 0.0), (3.0, 0.0)]), 2.0, False),
    (mixture([(0.5, PURE), (0.5, IDENTITY)]), 1.0, True),
    (mixture([(0.25, COINS), (0.75, LEANING)]), math.log(3.0), True),
    (mixture([(0.25, GaussianTradeOff(1.0)), (0.75, LEANING)]), math.inf, False),
    (GaussianTradeOff(0.1), math.inf, True),
    (LaplaceTradeOff(0.5), 2.0, True),
    (LaplaceTradeOff(0.5).group(2), 4.0, True),
    (PURE.subsample(0.5), math.log(0.5 + 0.5 * math.e), True),
)
ROUNDING: Final = 1e-12


@pytest.mark.parametrize(("f", "truth", "reached"), KNOWN, ids=lambda one: str(one)[:60])
@pytest.mark.parametrize("runs", [1, 3])
def test_what_is_known_by_f_loses_at_delta_zero_what_it_can_lose(
    f: TradeOff, truth: float, reached: bool, runs: int
) -> None:
    found = hs.epsilon(FDP(f) ** runs, 0.0)
    total = runs * truth
    assert found.lower <= total * (1.0 + 2.0**-52)
    assert total <= found.upper * (1.0 + 2.0**-52)
    assert found.upper <= total * (1.0 + ROUNDING)
    if reached:
        assert found.lower >= total * (1.0 - ROUNDING) or total == math.inf == found.lower


# Guarantees that fail, the delta that their failures use up, and the epsilons of the others.
JUMPS: Final[tuple[tuple[Callable[[], hs.Mechanism], float, float], ...]] = (
    (lambda: ApproxDP(1, 0.25) @ ApproxDP(2, 0.5), 0.625, 3.0),
    (lambda: ApproxDP(1, 0.5) ** 10, 1.0 - 2.0**-10, 10.0),
    (lambda: ApproxDP(0, 0.5) @ ApproxDP(2, 0), 0.5, 2.0),
    (lambda: ApproxDP(1, 0.1), 0.1, 1.0),
    (lambda: ApproxDP(1, 0.25) @ hs.Laplace(0.5), 0.25, 3.0),
    (lambda: ApproxDP(1, 0.25) @ hs.RandomizedResponse(2.0, 4), 0.25, 3.0),
    (lambda: ApproxDP(1, 0.25) @ FDP(COINS), 0.25, 1.0 + math.log(3.0)),
    (lambda: ApproxDP(1, 0.25) @ hs.Gaussian(3.0), 0.25, math.inf),
    (lambda: FDP(ApproxTradeOff(1, 0.25)) @ FDP(ApproxTradeOff(2, 0.5)), 0.625, 3.0),
)


@pytest.mark.parametrize(("plan", "delta", "truth"), JUMPS)
def test_at_the_delta_that_failures_use_up_epsilon_is_what_the_rest_can_lose(
    plan: Callable[[], hs.Mechanism], delta: float, truth: float
) -> None:
    found = hs.epsilon(plan(), delta)
    assert found.lower <= truth * (1.0 + 2.0**-52)
    assert truth <= found.upper * (1.0 + 2.0**-52)
    assert found.lower >= truth * (1.0 - ROUNDING)
    assert found.upper <= truth * (1.0 + ROUNDING)
    assert hs.epsilon(plan(), math.nextafter(delta, 0.0)).upper == math.inf


def test_at_the_delta_that_decimals_alone_use_up_both_readings_are_inside() -> None:
    found = hs.epsilon(ApproxDP(1, 0.1) @ ApproxDP(2, 0.2), 0.28)
    assert 2.99 < found.lower <= 3.0
    assert hs.epsilon(ApproxDP(1, 0.1) @ ApproxDP(2, 0.2), 0.29).upper < 3.0


def test_a_loss_that_is_only_bounded_is_not_taken_for_one_that_is_reached() -> None:
    unknown = mixture([(0.5, tradeoff_of_deltas([(1.0, 0.01)])), (0.5, IDENTITY)])
    assert hs.epsilon(FDP(unknown), 0.0).lower == 0.0
    found = hs.epsilon(ApproxDP(1.0, 0.25) @ FDP(unknown), 0.25)
    assert found.lower <= 1.0
    assert found.upper == math.inf
