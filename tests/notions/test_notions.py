"""Guarantees as values: what they say and refuse, and what groups and samples make of them."""

import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import Gaussian
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, Origin, PureDP, RenyiDP
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs import discrete_tradeoff
from tests.examples import GUARANTEED


@pytest.mark.parametrize("notion", GUARANTEED, ids=str)
def test_a_notion_is_for_any_neighbours_and_its_origin_is_not_compared(notion: Notion) -> None:
    assert notion.adjacency is None
    assert notion.origin is None
    told = notion.because(Origin("bound", "a theorem"))
    assert (told, hash(told)) == (notion, hash(notion))
    assert pickle.loads(pickle.dumps(told)).origin == Origin("bound", "a theorem")


def test_divergences_are_kept_in_order_and_the_smaller_of_two_counts() -> None:
    given_twice = RenyiDP([(10, 3.0), (2, 0.5), (10, 1.0)])
    assert given_twice.divergences == ((2.0, 0.5), (10.0, 1.0))
    assert given_twice == RenyiDP({2: 0.5, 10: 1})


@given(st.floats(0, 1e300), st.integers(1, 10**6))
def test_linear_and_quadratic_groups_are_rounded_up_by_less_than_one_unit(
    value: float, size: int
) -> None:
    # Both readings of a float count: its own value and the decimal that it prints as.
    read = max(Fraction(value), Fraction(repr(value))) if size > 1 else Fraction(value)
    for found, exact in (
        (PureDP(value).group(size).epsilon, size * read),
        (GDP(value).group(size).mu, size * read),
        (ZCDP(value).group(size).rho, size**2 * read),
    ):
        assert found == math.inf or Fraction(found) >= exact
        assert Fraction(math.nextafter(found, 0.0)) < exact or exact == 0


@pytest.mark.parametrize(
    ("notion", "size", "delta"),
    [
        (ApproxDP(1, 1e-6), 3, 1.11073379273896954625907e-5),
        (ApproxDP(0.5, 1e-8), 10, 2.27236512444677395989919e-6),
    ],
)
def test_the_delta_of_a_group_is_a_geometric_sum(notion: ApproxDP, size: int, delta: float) -> None:
    group = notion.group(size)
    assert group.epsilon == size * notion.epsilon
    assert delta <= group.delta <= delta * (1 + 2**-51)


@pytest.mark.parametrize(
    ("notion", "size", "group"),
    [
        (PureDP(math.inf), 3, PureDP(math.inf)),
        (ApproxDP(math.inf, 0.1), 3, ApproxDP(math.inf, 1.0)),
        (ZCDP(math.inf), 3, ZCDP(math.inf)),
        (TCDP(0.0, math.inf), 3, TCDP(0.0, math.inf)),
        (TCDP(0.125, 50), 4, TCDP(2.0, 12.5)),
        (ApproxDP(0.0, 0.25), 3, ApproxDP(0.0, 0.75)),
        (ApproxDP(0.0, 0.25), 5, ApproxDP(0.0, 1.0)),
        (ApproxDP(1.0, 0.0), 5, ApproxDP(5.0, 0.0)),
        (ApproxDP(1000.0, 1e-300), 2, ApproxDP(2000.0, 1.0)),
        (ApproxDP(5e-324, 0.125), 2, ApproxDP(1.5e-323, math.nextafter(0.25, 1))),
    ],
)
def test_the_group_of_a_guarantee_at_its_edges(notion: Any, size: int, group: Notion) -> None:
    assert notion.group(size) == group


def test_the_orders_of_a_group_of_truncated_concentration_are_rounded_down() -> None:
    assert Fraction(TCDP(1.0, 10.0).group(3).omega) <= Fraction(10, 3)


@pytest.mark.parametrize(
    ("notion", "size", "reason"),
    [
        (TCDP(0.1, 5), 5, "the size must be below omega"),
        (TCDP(0.1, 5), 10**15, "the size must be below omega"),
        (RenyiDP({2.0: 0.1}), 10**6, "no order above 1 is left"),
    ],
)
def test_a_group_that_leaves_no_order_is_refused(notion: Any, size: int, reason: str) -> None:
    with pytest.raises(IncompatibleError, match=reason):
        notion.group(size)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_a_group_of_a_gaussian_curve_loses_next_to_nothing(size: int) -> None:
    rho = 0.05
    orders = [2.0, 3.5, 8.0, 64.0, 512.0]
    for order, divergence in RenyiDP({a: rho * a for a in orders}).group(size).divergences:
        assert divergence >= rho * size**2 * order * (1 - 1e-12)
        assert divergence <= rho * size**2 * order * (1 + size / order)


def test_a_group_of_two_is_the_weak_triangle_inequality_at_its_order() -> None:
    """D_b(P||R) <= (b - 1/p)/(b - 1) D_pb(P||Q) + D_(pb-1)/(p-1)(Q||R), both at order alpha."""
    alpha, tau = 10.0, 0.7
    ((order, divergence),) = RenyiDP({alpha: tau}).group(2).divergences
    p = alpha / order
    assert (p * order - 1) / (p - 1) == pytest.approx(alpha, rel=1e-12)
    assert divergence == pytest.approx((order - 1 / p) / (order - 1) * tau + tau, rel=1e-12)
    assert order > alpha / 2
    assert divergence < 3 * tau


def test_a_sample_amplifies_by_the_formula_of_balle_barthe_and_gaboardi() -> None:
    sampled = PureDP(1.0).subsample(0.01)
    assert sampled.epsilon == pytest.approx(0.0170368632361765497863852527635, rel=1e-15)
    both = ApproxDP(1.0, 1e-5).subsample(0.01)
    assert both.epsilon == sampled.epsilon
    assert both.delta == pytest.approx(1e-7, rel=1e-15)


@given(st.floats(0, 1e300), st.floats(0, 1))
# The decimal 5e-324 is far, relatively, from the number that this float is.
@example(5.0, 5e-324)
@example(4.0, 1e-320)
def test_the_sampled_epsilon_is_rounded_up_and_below_the_whole(epsilon: float, rate: float) -> None:
    found = ApproxDP(epsilon, rate).subsample(rate)
    with mp.workdps(80):
        binary = amplified(mp.mpf(epsilon), mp.mpf(rate))
        decimal = amplified(mp.mpf(repr(epsilon)), mp.mpf(repr(rate)))
        assert found.epsilon <= epsilon
        assert found.epsilon >= min(max(binary, decimal), epsilon) * (1 - mp.mpf(10) ** -60)
        assert found.epsilon <= max(binary, decimal) * (1 + mp.mpf(2) ** -50) + 1e-323
    assert Fraction(found.delta) >= Fraction(rate) ** 2


def amplified(epsilon: Any, rate: Any) -> Any:
    if epsilon < 1e4:
        return mp.log1p(rate * mp.expm1(epsilon))
    return max(epsilon + mp.log(rate), 0) if rate > 0 else mp.zero


@pytest.mark.parametrize("notion", [PureDP(0.7), ApproxDP(0.7, 1e-5)], ids=str)
def test_a_sample_of_nothing_releases_nothing_and_of_all_everything(
    notion: PureDP | ApproxDP,
) -> None:
    assert notion.subsample(1) == notion
    nothing = notion.subsample(0)
    assert nothing.epsilon == 0.0
    assert isinstance(nothing, PureDP) or nothing.delta == 0.0


@pytest.mark.parametrize("rate", [0.25, 0.5, 1.0])
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ((0.25, 0.5, 0.25), (0.5, 0.5, 0.0)),
        ((0.0, 0.75, 0.25), (0.125, 0.0, 0.875)),
        ((0.5, 0.25, 0.25), (0.25, 0.25, 0.5)),
    ],
)
def test_a_sample_under_an_asymmetric_f_covers_replacements_either_way(
    p: tuple[float, ...], q: tuple[float, ...], rate: float
) -> None:
    sampled = FDP(discrete_tradeoff(p, q)).subsample(rate).tradeoff
    for without, other in ((p, q), (q, p)):
        mixed = [(1 - rate) * a + rate * b for a, b in zip(without, other, strict=True)]
        for one, two in ((mixed, without), (without, mixed)):
            for epsilon in (0.0, 0.25, 1.0, 3.0):
                gains = (a - math.exp(epsilon) * b for a, b in zip(one, two, strict=True))
                attack = sum(max(gain, 0.0) for gain in gains)
                assert sampled.delta(epsilon).upper >= attack * (1 - 1e-15)


REFUSED: list[tuple[Callable[..., object], str, list[Any]]] = [
    *(
        (one.group, "size must be an integer from 1", [0, -1, 1.5, math.nan, math.inf, True, "2"])
        for one in GUARANTEED
    ),
    (
        lambda delta: ApproxDP(1.0, delta),
        "delta must be a number from 0 to 1",
        [1.5, math.inf, math.nextafter(1.0, 2.0)],
    ),
    (PureDP(0.7).subsample, "rate must be a number from 0 to 1", [-0.1, 1.1, math.nan, True]),
    (lambda omega: TCDP(0.1, omega), "omega must be a number > 1 or inf", [1.0, 0.5]),
    (
        lambda order: RenyiDP({order: 1.0}),
        "order must be a finite number > 1",
        [1.0, 0.5, math.inf],
    ),
    (
        RenyiDP,
        "divergences must be a mapping",
        [{}, [], None, 3, "ab", [(2,)], [2, 3], [(2, 3, 4)]],
    ),
    (FDP, "tradeoff must be a trade-off function", [None, 1.0, "f", Gaussian(1), lambda a: 1 - a]),
    (lambda origin: PureDP(1.0, origin=origin), "origin must be an Origin or None", ["because"]),
]


@pytest.mark.parametrize(
    ("make", "reason", "value"),
    [(make, reason, value) for make, reason, values in REFUSED for value in values],
)
def test_what_is_out_of_the_domain_is_refused_by_name(
    make: Callable[..., object], reason: str, value: Any
) -> None:
    with pytest.raises(ParameterError, match=reason):
        make(value)
