"""The error of running sums, against dense matrices in fractions."""

import math
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.calibration import sums_error
from hockeystick.mechanisms import BandedInverse, BufferedToeplitz, Encoder, SquareRoot, Toeplitz
from hockeystick.mechanisms.streams.strategies import Strategy

UNIT = Fraction(1, 2**256)
STRATEGIES: tuple[Strategy, ...] = (
    Toeplitz([1]),
    Toeplitz([2, 1.5, 0, -0.25]),
    SquareRoot(),
    SquareRoot(4),
    BandedInverse([1.5, -0.75, 0, 0.3]),
    BandedInverse.square_root(3),
    BufferedToeplitz([0.5], [0.25]),
    BufferedToeplitz([0.3, 0.2, 0.01], [0.25, 0.9, 0.999]),
)


def by_elimination(strategy: Strategy, rounds: int) -> list[list[Fraction]]:
    """Return B = A C^-1, row by row: ``B C = A`` from the last column on."""
    c = strategy.diagonals(rounds)
    c += [Fraction(0)] * (rounds - len(c))
    found = []
    for t in range(rounds):
        row = [Fraction(0)] * rounds
        for j in range(t, -1, -1):
            others = sum((row[i] * c[i - j] for i in range(j + 1, t + 1)), Fraction(0))
            row[j] = (1 - others) / c[0]
        found.append(row)
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("rounds", [1, 2, 15])
def test_errors_are_those_of_dense_matrices(strategy: Strategy, rounds: int) -> None:
    squares = [sum((b * b for b in row), Fraction(0)) for row in by_elimination(strategy, rounds)]
    encoder = Encoder.of(strategy, rounds, participations=2, separation=3)
    for kind, true in (("max", max(squares)), ("mean", sum(squares, Fraction(0)) / rounds)):
        found = sums_error(encoder, kind)
        pairs = ((found.error, true), (found.loss, true * encoder.square))
        for value, square in pairs:
            assert square * (1 - 2**20 * UNIT) <= Fraction(value) ** 2
            assert Fraction(value) ** 2 <= square * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_inverses_times_diagonals_are_one(strategy: Strategy) -> None:
    c, d = strategy.diagonals(50), strategy.inverse(50)
    assert len(d) == 50
    for t in range(50):
        product = sum((c[k] * d[t - k] for k in range(min(len(c), t + 1))), -Fraction(t == 0))
        assert abs(product) <= 2**12 * UNIT


def test_the_square_root_has_its_sensitivity_for_an_error() -> None:
    """As A = C C."""
    encoder = Encoder.square_root(1000)
    found = sums_error(encoder)
    assert math.isclose(found.error, encoder.sensitivity, rel_tol=1e-15)
    assert math.isclose(found.loss, float(encoder.square), rel_tol=1e-15)


def test_a_scale_changes_no_loss() -> None:
    one = Encoder.toeplitz([1, 0.5, 0.25], 20)
    other = Encoder.toeplitz([8, 4, 2], 20)
    assert sums_error(one).loss == sums_error(other).loss
    assert sums_error(one).error == 8 * sums_error(other).error


ANY: Any = 3


@pytest.mark.parametrize(
    ("name", "encoder", "kind"),
    [
        ("encoder", ANY, "max"),
        ("encoder", SquareRoot(), "max"),
        ("encoder", Encoder.of_matrix([[1]]), "max"),
        ("encoder", Encoder.toeplitz([0, 1], 3), "max"),
        ("error", Encoder.square_root(3), "worst"),
        ("error", Encoder.square_root(3), ANY),
    ],
)
def test_bad_arguments_are_named(name: str, encoder: Any, kind: Any) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        sums_error(encoder, kind)
    assert caught.value.name == name
