"""What is true of all conversions: there and back, chains, monotone, above the truth."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.conversions import convert, theorems
from hockeystick.mechanisms import Exponential
from hockeystick.notions import FDP, GDP, NOTIONS, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics.multiprecision import mp

SOURCES: list[Notion] = [
    PureDP(1.2),
    ApproxDP(0.8, 0.0),
    ApproxDP(0.5, 1e-3),
    GDP(0.7),
    ZCDP(0.2),
    TCDP(0.1, 8),
    RenyiDP({3: 0.4}),
    RenyiDP({2: 0.3, 4: 0.9, 8: 1.4}),
    FDP(hs.tradeoffs.GaussianTradeOff(1.1)),
]
GIVEN: dict[str, list[dict[str, Any]]] = {
    "ApproxDP": [{"delta": 0.01}, {"delta": 1e-5}, {"epsilon": 0.0}, {"epsilon": 0.4}],
    "TCDP": [{"omega": 1.5}, {"omega": 3}],
    "RenyiDP": [{"orders": [1.5, 2, 3]}],
}
FINAL = {**GIVEN, "RenyiDP": [{"orders": [1.5, 2.5]}], "TCDP": [{"omega": 1.4}]}
RATES = np.array([1e-9, 1e-4, 0.01, 0.1, 0.3, 0.6, 0.95])


def numbers(result: Notion) -> list[float]:
    """Return what is smaller where more is promised."""
    if isinstance(result, FDP):
        return [float(value) for value in result.tradeoff.power(RATES)]
    if isinstance(result, RenyiDP):
        return [size for _, size in result.divergences]
    if isinstance(result, ApproxDP):
        return [result.epsilon, result.delta]
    names = ("epsilon", "mu", "rho")
    return [getattr(result, name) for name in names if hasattr(result, name)]


def converted(source: Notion, target: str, given: dict[str, Any]) -> Notion | None:
    """Return the result, None where the conversion is refused."""
    try:
        return convert(source, target, **given)
    except hs.errors.IncompatibleError:
        return None


@pytest.mark.parametrize("source", SOURCES, ids=repr)
@pytest.mark.parametrize("middle", NOTIONS)
def test_a_chain_never_beats_the_direct_route(source: Notion, middle: str) -> None:
    """And what the direct route refuses, no chain reaches."""
    for given in GIVEN.get(middle, [{}]):
        step = converted(source, middle, given)
        if step is None:
            continue
        for target in NOTIONS:
            for last in FINAL.get(target, [{}]):
                chained, direct = converted(step, target, last), converted(source, target, last)
                if chained is None:
                    continue
                assert direct is not None, (source, middle, target)
                for long, short in zip(numbers(chained), numbers(direct), strict=True):
                    assert long >= short * (1 - 1e-9), (source, step, target, last)


@pytest.mark.parametrize("source", SOURCES, ids=repr)
@pytest.mark.parametrize("middle", NOTIONS)
def test_there_and_back_returns_at_least_the_start(source: Notion, middle: str) -> None:
    own = type(source).__name__
    back_to: dict[str, Any] = {}
    if isinstance(source, ApproxDP):
        back_to = {"delta": source.delta}
    elif isinstance(source, TCDP):
        back_to = {"omega": source.omega}
    elif isinstance(source, RenyiDP):
        back_to = {"orders": [order for order, _ in source.divergences]}
    for given in GIVEN.get(middle, [{}]):
        step = converted(source, middle, given)
        back = None if step is None else converted(step, own, back_to)
        if back is not None:
            for end, start in zip(numbers(back), numbers(source), strict=True):
                assert end >= start * (1 - 1e-12)


@pytest.mark.parametrize(
    ("source", "middle", "given"),
    [
        (PureDP(1.2), FDP, {}),
        (PureDP(1.2), ApproxDP, {"delta": 0}),
        (GDP(0.7), FDP, {}),
        (ZCDP(0.2), TCDP, {"omega": math.inf}),
        (ApproxDP(0.5, 1e-3), ApproxDP, {"epsilon": 0.5}),
    ],
    ids=str,
)
def test_there_and_back_returns_the_start_where_both_are_exact(
    source: Notion, middle: type[Notion], given: dict[str, Any]
) -> None:
    step = convert(source, middle, **given)
    delta = {"delta": source.delta} if isinstance(source, ApproxDP) else {}
    back = convert(step, type(source), **delta)
    assert numbers(back) == pytest.approx(numbers(source), rel=1e-12)


LADDERS: list[list[Notion]] = [
    [PureDP(e) for e in (1e-6, 0.1, 1, 3, 40)],
    [ApproxDP(0.5, d) for d in (0.0, 1e-9, 1e-3, 0.2)],
    [ApproxDP(e, 1e-3) for e in (0.0, 0.1, 2)],
    [GDP(m) for m in (1e-4, 0.3, 1, 5)],
    [ZCDP(r) for r in (1e-6, 0.01, 0.5, 4, 100)],
    [TCDP(r, 5) for r in (1e-4, 0.1, 2)],
    [TCDP(0.3, w) for w in (50, 4, 2.5)],
    [RenyiDP({4: d}) for d in (1e-5, 0.1, 1, 6)],
    [RenyiDP({3: 0.4, 9: 0.8}), RenyiDP({3: 0.4}), RenyiDP({2.9: 0.4})],
    [FDP(hs.tradeoffs.GaussianTradeOff(m)) for m in (0.01, 0.5)],
]


@pytest.mark.parametrize("ladder", LADDERS, ids=str)
@pytest.mark.parametrize("target", NOTIONS)
def test_conversions_are_monotone_in_every_parameter(ladder: list[Notion], target: str) -> None:
    for given in {**GIVEN, "TCDP": [{"omega": 2.2}], "RenyiDP": [{"orders": [1.5, 2]}]}.get(
        target, [{}]
    ):
        found = [converted(source, target, given) for source in ladder]
        known = [numbers(one) for one in found if one is not None]
        for less, more in itertools.pairwise(known):
            assert all(a <= b * (1 + 1e-9) + 1e-300 for a, b in zip(less, more, strict=True))


@pytest.mark.parametrize("source", [ZCDP(0.3), GDP(1), PureDP(1), RenyiDP({5: 0.7})], ids=str)
def test_results_are_monotone_in_what_is_asked(source: Notion) -> None:
    deltas = [convert(source, ApproxDP, epsilon=e).delta for e in (0, 0.01, 0.1, 0.5, 0.9, 3)]
    assert deltas == sorted(deltas, reverse=True)
    epsilons = [convert(source, ApproxDP, delta=d).epsilon for d in (0.4, 0.1, 1e-3, 1e-9, 1e-99)]
    assert epsilons == sorted(epsilons)


@pytest.mark.parametrize("rho", [1e-4, 0.1, 0.5, 3.0, 50.0])
@pytest.mark.parametrize("delta", [0.05, 1e-5, 1e-12, 1e-100])
def test_concentrated_privacy_costs_more_than_the_gaussian_and_less_than_by_the_textbook(
    rho: float, delta: float
) -> None:
    epsilon = convert(ZCDP(rho), ApproxDP, delta=delta).epsilon
    gaussian = theorems.balle_wang(math.sqrt(2 * rho) * (1 - 1e-15), delta=delta)
    textbook = theorems.canonne_kamath_steinke_concentrated(rho, delta=delta)
    assert gaussian <= epsilon <= textbook * (1 + 1e-14)
    assert textbook <= theorems.bun_steinke(rho, delta=delta)


@pytest.mark.parametrize(("rho", "omega"), [(0.1, 5.0), (0.1, 50.0), (2.0, 1.5)])
def test_truncation_costs_less_than_by_the_textbook(rho: float, omega: float) -> None:
    epsilon = convert(TCDP(rho, omega), ApproxDP, delta=1e-5).epsilon
    textbook = theorems.canonne_kamath_steinke_concentrated(rho, omega, delta=1e-5)
    assert convert(ZCDP(rho), ApproxDP, delta=1e-5).epsilon <= epsilon * (1 + 1e-12)
    assert epsilon <= textbook
    assert textbook <= theorems.bun_dwork_rothblum_steinke(rho, omega, delta=1e-5) * (1 + 1e-15)


@pytest.mark.parametrize("rho", [0.02, 0.5, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.5, 6.0])
def test_no_release_with_two_outcomes_under_the_line_exceeds_delta(
    rho: float, epsilon: float
) -> None:
    """Pairs of Bernoulli variables with all divergences checked are an oracle from below."""
    delta = convert(ZCDP(rho), ApproxDP, epsilon=epsilon).delta
    rng = np.random.default_rng(7)
    orders = np.r_[1 + 10.0 ** np.linspace(-6, 5, 120)]
    best = 0.0
    for _ in range(300):
        x, v = sorted(rng.random(2) ** 2)
        if x <= 0.0 or v >= 1.0:
            continue
        with np.errstate(over="ignore"):
            under = all(
                (
                    np.logaddexp(
                        orders * np.log(p) + (1 - orders) * np.log(q),
                        orders * np.log1p(-p) + (1 - orders) * np.log1p(-q),
                    )
                    <= (orders - 1) * rho * orders
                ).all()
                for p, q in ((x, v), (v, x))
            )
        if under:
            best = max(best, v - math.exp(epsilon) * x)
    assert best <= delta


def test_interpolated_orders_hold_for_a_known_mechanism() -> None:
    """The divergences of a Gaussian at three orders imply no less than its own at others."""
    known = RenyiDP({order: 0.32 * order for order in (1.5, 4, 12)})
    for order in (1.2, 2.0, 7.0, 11.9):
        ((_, size),) = convert(known, RenyiDP, orders=order).divergences
        assert 0.32 * order <= size <= 0.32 * order * 1.6
    truncated = convert(known, TCDP, omega=9)
    assert 0.32 <= truncated.rho <= 0.32 * 1.6
    for order in np.linspace(1.001, 9, 300):
        ((_, size),) = convert(known, RenyiDP, orders=float(order)).divergences
        assert size <= truncated.rho * order * (1 + 1e-14)


def test_more_orders_never_hurt() -> None:
    few, many = RenyiDP({3: 0.4}), RenyiDP({2: 0.3, 3: 0.4, 20: 2.5})
    for delta in (0.1, 1e-5, 1e-30):
        assert convert(many, ApproxDP, delta=delta).epsilon <= convert(
            few, ApproxDP, delta=delta
        ).epsilon * (1 + 1e-13)


def test_the_claim_of_more_digits_is_checked_at_the_float_returned() -> None:
    """The epsilon of zCDP, proven once more at 40 digits by proposition 12 at a fixed order."""
    epsilon = convert(ZCDP(0.5), ApproxDP, delta=1e-5).epsilon
    with mp.workdps(40):
        a = mp.mpf("5.43")
        cks = mp.exp((a - 1) * (a / 2 - epsilon)) * (a - 1) ** (a - 1) / a**a
        # Proposition 12 is looser by less than 1e-4 here, and by more than nothing.
        assert mp.mpf(1e-5) < cks < mp.mpf(1e-5) * (1 + mp.mpf("1e-4"))


@pytest.mark.parametrize(
    ("plan", "rho"),
    [
        (hs.Gaussian(10) ** 100, 0.5),
        (hs.DiscreteGaussian(10) ** 102, 0.51),
        (hs.Gaussian(10) ** 30 @ hs.DiscreteGaussian(10) ** 70, 0.5),
        (hs.Gaussian(10) ** 100 @ hs.ZCDP(0.25), 0.75),
        # 0.2 as a float is above 1/5, and 16 times of it as much above 16/5.
        (hs.ZCDP(0.2) ** 16, 3.2),
        (Exponential(0.5) ** 30, 0.9375),
    ],
)
def test_the_rhos_of_runs_add_up_before_they_are_rounded(plan: hs.Mechanism, rho: float) -> None:
    assert hs.convert(plan, hs.ZCDP).rho == rho
    assert not hs.convert(plan @ hs.Gaussian(1e6), hs.ZCDP).rho <= rho


def test_as_many_runs_fit_a_rho_as_the_sum_says() -> None:
    found = hs.calibrate(hs.Gaussian(10) ** 1, "count", hs.ZCDP(0.5))
    assert found.value == 100
