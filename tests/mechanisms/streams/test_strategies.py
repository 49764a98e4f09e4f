"""Strategies: diagonals against exact fractions, sensitivities against every pattern."""

import math
from fractions import Fraction

import pytest

from hockeystick.mechanisms import BandedInverse, BufferedToeplitz, Encoder, SquareRoot, Toeplitz
from hockeystick.mechanisms.streams.strategies import Strategy
from tests.mechanisms.streams.test_matrix_factorization import by_hand

UNIT = Fraction(1, 2**256)
BLT = BufferedToeplitz(scales=[0.3, 0.2, 0.01], decays=[0.25, 0.9, 0.999])
BISR = BandedInverse.square_root(bands=4)
MIXED = BandedInverse([1.5, -0.75, 0.3])
WIDE = BufferedToeplitz([1.5], [0.5])


def exact(strategy: Strategy, rounds: int) -> list[Fraction]:
    match strategy:
        case Toeplitz():
            given = [Fraction(one) for one in strategy.coefficients]
            return (given + [Fraction(0)] * rounds)[:rounds]
        case BufferedToeplitz():
            pairs = list(zip(strategy.scales, strategy.decays, strict=True))
            powers = [[Fraction(w) * Fraction(p) ** k for w, p in pairs] for k in range(rounds)]
            return [Fraction(1), *(sum(one, Fraction(0)) for one in powers)][:rounds]
        case BandedInverse():
            d = [Fraction(one) for one in strategy.coefficients]
            found = [1 / d[0]]
            for t in range(1, rounds):
                found.append(-sum(d[k] * found[t - k] for k in range(1, min(len(d), t + 1))) / d[0])
            return found
        case _:
            half = [Fraction(math.comb(2 * k, k), 4**k) for k in range(rounds)]
            kept = getattr(strategy, "bands", None) or rounds
            return half[:kept] + [Fraction(0)] * (rounds - kept)


def square_by_hand(diagonals: list[Fraction], participations: int, separation: int) -> Fraction:
    """Return the largest sum of sizes of inner products over all patterns."""
    rounds = len(diagonals)
    columns = [[Fraction(0)] * j + diagonals[: rounds - j] for j in range(rounds)]
    found: Fraction = by_hand(list(zip(*columns, strict=True)), participations, separation)[1]
    return found


@pytest.mark.parametrize("strategy", [BLT, BISR, SquareRoot(), SquareRoot(5), Toeplitz([1, 0.3])])
def test_diagonals_are_the_definitions_to_200_digits(strategy: Strategy) -> None:
    found = strategy.diagonals(40)
    true = exact(strategy, 40)
    assert len(found) <= 40
    padded = found + [Fraction(0)] * (40 - len(found))
    assert all(abs(a - b) <= 200 * UNIT for a, b in zip(padded, true, strict=True))


@pytest.mark.parametrize("strategy", [BLT, BISR, BandedInverse([1, 0, -0.9]), BandedInverse([2])])
def test_diagonals_of_recurrences_without_negative_factors_are_never_below(
    strategy: Strategy,
) -> None:
    pairs = zip(strategy.diagonals(60), exact(strategy, 60), strict=True)
    assert all(found >= true for found, true in pairs)


@pytest.mark.parametrize(
    "strategy",
    [
        SquareRoot(),
        BLT,
        BufferedToeplitz([1e-40, 0.9], [0.7, 0.3]),
        MIXED,
        BandedInverse([1.1, -2.9, 0.7, 1.3]),
        BandedInverse([3e100, 1e100]),
        BandedInverse([7e-200, -3e-200]),
    ],
)
def test_what_fixed_point_loses_is_bounded(strategy: Strategy) -> None:
    rounds = 150
    true = exact(strategy, rounds)
    diagonals, most = strategy.enclosed(rounds)
    lost = [abs(found - one) for found, one in zip(diagonals, true, strict=True)]
    assert 0 < max(lost) <= most <= 2**9 * rounds * UNIT * max(map(abs, true))
    encoder = Encoder.of(strategy, rounds)
    square = sum(one * one for one in true)
    assert encoder.least_square < square < encoder.square
    assert encoder.square - encoder.least_square < square / 2**200


@pytest.mark.parametrize(
    "strategy", [BLT, BISR, MIXED, WIDE, SquareRoot(3), Toeplitz([1, 0.5, -0.25])]
)
@pytest.mark.parametrize(("participations", "separation"), [(1, 1), (2, 3), (3, 2), (7, 1)])
def test_sensitivities_hold_for_every_pattern(
    strategy: Strategy, participations: int, separation: int
) -> None:
    encoder = Encoder.of(strategy, 7, participations=participations, separation=separation)
    true = square_by_hand(exact(strategy, 7), participations, separation)
    assert encoder.least_square <= true <= encoder.square
    if strategy in (BLT, BISR, SquareRoot(3)):
        assert encoder.square - encoder.least_square <= true * 10_000 * UNIT
        assert encoder.sensitivity**2 >= true * (1 - Fraction(1, 2**51))


def test_scales_that_sum_to_more_than_one_are_bounded_where_several_take_part() -> None:
    encoder = Encoder.of(WIDE, 6, participations=2, separation=2)
    assert encoder.least_square < encoder.square
    once = Encoder.of(WIDE, 6)
    assert once.least_square == once.square


@pytest.mark.parametrize(
    ("encoder", "same"),
    [
        (Encoder.toeplitz([1, 0.5], 9, participations=2), Toeplitz([1.0, 0.5])),
        (Encoder.square_root(9, bands=4, participations=2), SquareRoot(bands=4)),
        (Encoder.banded_inverse([1, -0.5], 9, participations=2), BandedInverse((1.0, -0.5))),
        (
            Encoder.buffered_toeplitz([0.5], [0.25], 9, participations=2),
            BufferedToeplitz((0.5,), (0.25,)),
        ),
    ],
)
def test_shorthands_are_encoders_of_their_strategies(encoder: Encoder, same: Strategy) -> None:
    assert encoder == Encoder.of(same, 9, participations=2)
    assert hash(encoder) == hash(Encoder.of(same, 9, participations=2))
    assert encoder.strategy == same
    assert encoder != Encoder.of(same, 9)
