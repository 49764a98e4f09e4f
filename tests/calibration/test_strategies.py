"""The error of running sums against dense matrices in fractions, and strategies that make it small.

Exact gradients, brute force where few numbers matter, theorems beyond.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.calibration import optimise_banded, optimise_buffered, sums_error
from hockeystick.calibration.strategies import _loss
from hockeystick.mechanisms import Encoder
from hockeystick.mechanisms.streams.strategies import Strategy
from tests.release.test_streams import STRATEGIES

PATTERNS = [(50, 4, 10), (37, 5, 3), (9, 9, 1)]
UNIT = Fraction(1, 2**256)


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


@pytest.mark.parametrize(("rounds", "participations", "separation"), PATTERNS)
@pytest.mark.parametrize("error", ["max", "mean"])
def test_the_loss_and_its_gradient(
    rounds: int, participations: int, separation: int, error: str
) -> None:
    loss = _loss(rounds, participations, separation, error)
    c = np.sort(np.random.default_rng(1).random(8))[::-1].copy()
    value, slope = loss.at(c)
    encoder = Encoder.toeplitz(
        c.tolist(), rounds, participations=participations, separation=separation
    )
    assert abs(np.exp(value) / sums_error(encoder, error).loss - 1) < 1e-12
    for j in range(8):
        step = 1e-6 * np.eye(8)[j]
        assert abs((loss.at(c + step)[0] - loss.at(c - step)[0]) / 2e-6 - slope[j]) < 1e-8


def test_as_many_bands_as_rounds_are_the_square_root() -> None:
    """It has the least largest error of all Toeplitz matrices for one participation."""
    best = sums_error(Encoder.square_root(300)).loss
    found = sums_error(optimise_banded(300, 300)).loss
    assert abs(found / best - 1) < 1e-12


WORD: Any = "x"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("rounds", lambda: optimise_banded(0, 3)),
        ("rounds", lambda: optimise_buffered(10**6 + 1, 3)),
        ("bands", lambda: optimise_banded(9, 0)),
        ("bands", lambda: optimise_banded(9, WORD)),
        ("buffers", lambda: optimise_buffered(9, 21)),
        ("buffers", lambda: optimise_buffered(9, 1.5)),
        ("participations", lambda: optimise_banded(9, 3, participations=0)),
        ("separation", lambda: optimise_buffered(9, 3, separation=-1)),
        ("error", lambda: optimise_banded(9, 3, error="worst")),
        ("error", lambda: sums_error(Encoder.square_root(3), "worst")),
        ("encoder", lambda: sums_error(WORD)),
        ("encoder", lambda: sums_error(Encoder.of_matrix([[1]]))),
        ("encoder", lambda: sums_error(Encoder.toeplitz([0, 1], 3))),
    ],
)
def test_bad_arguments_are_named(name: str, call: Any) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        call()
    assert caught.value.name == name
