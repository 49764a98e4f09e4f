"""Correlated noise: rows of C^-1 Z, by what each memory makes of unit vectors."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import BandedInverse, BufferedToeplitz, Encoder, SquareRoot, Toeplitz
from hockeystick.mechanisms.streams.strategies import Strategy
from hockeystick.release import CorrelatedNoise

STRATEGIES: tuple[Strategy, ...] = (
    Toeplitz([1]),
    Toeplitz([2, 1.5, 0, -0.25]),
    Toeplitz([1] * 50),
    SquareRoot(),
    SquareRoot(7),
    BandedInverse([1]),
    BandedInverse([1.5, -0.75, 0, 0.3]),
    BandedInverse.square_root(5),
    BufferedToeplitz([0.5], [0.25]),
    BufferedToeplitz([0.3, 0.2, 0.01], [0.25, 0.9, 0.999]),
)


def dense(strategy: Strategy, rounds: int) -> Any:
    """Return C as an array of floats."""
    found = [float(one) for one in strategy.diagonals(rounds)]
    padded = np.array(found + [0.0] * (rounds - len(found)))
    places = np.subtract.outer(np.arange(rounds), np.arange(rounds))
    return np.where(places >= 0, padded[np.abs(places)], 0.0)


def rows_of(strategy: Strategy, fresh: Any) -> Any:
    """Return all rows of noise."""
    noise = CorrelatedNoise(Encoder.of(strategy, len(fresh)))
    return np.stack([noise.next(one) for one in fresh])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("rounds", [1, 2, 40])
def test_unit_vectors_become_the_inverse(strategy: Strategy, rounds: int) -> None:
    """Row t of C^-1 I: so the noise is linear in Z, of covariance C^-1 C^-T, and causal."""
    found = rows_of(strategy, np.eye(rounds))
    assert np.abs(dense(strategy, rounds) @ found - np.eye(rounds)).max() < 1e-12
    assert np.abs(found - np.linalg.inv(dense(strategy, rounds))).max() < 1e-12
    assert (np.triu(found, 1) == 0.0).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_becomes_of_a_row_does_not_matter_to_the_next(strategy: Strategy) -> None:
    fresh = np.random.default_rng(3).normal(size=(12, 2)).astype(np.float32)
    noise, found = CorrelatedNoise(Encoder.of(strategy, 12)), []
    for one in fresh:
        given = one.copy()
        row = noise.next(given)
        found.append(row.copy())
        row *= math.nan
        given *= math.nan
    assert np.array_equal(found, rows_of(strategy, fresh))
    assert found[0].dtype == np.float32


def test_rows_end_with_the_rounds() -> None:
    noise = CorrelatedNoise(Encoder.square_root(2))
    assert noise.encoder == Encoder.square_root(2)
    for rows in (1, 2):
        noise.next(np.zeros(3))
        assert noise.rows == rows
        with pytest.raises(ParameterError, match=r"^fresh must be of shape \(3,\)"):
            noise.next(np.zeros(1))
    with pytest.raises(IncompatibleError, match="for 2 rounds"):
        noise.next(np.zeros(3))
    assert noise.rows == 2


HUGE: Any = [1e-308, 1e308]


@pytest.mark.parametrize(
    "encoder",
    [
        3,
        None,
        Toeplitz([1]),
        Encoder.of_matrix([[1]]),
        Encoder.toeplitz([0, 1], 5),
        Encoder.toeplitz(HUGE, 5),
        Encoder.toeplitz([Fraction(1, 10**400)], 5),
    ],
)
def test_what_has_no_inverse_is_refused(encoder: Any) -> None:
    with pytest.raises(ParameterError, match=r"^encoder must be an Encoder of a strategy"):
        CorrelatedNoise(encoder)


@pytest.mark.extras
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_tensors_of_torch_are_rows_too(strategy: Strategy) -> None:
    torch = pytest.importorskip("torch")
    noise = CorrelatedNoise(Encoder.of(strategy, 20))
    found = torch.stack([noise.next(one) for one in torch.eye(20, dtype=torch.float64)])
    assert np.abs(found.numpy() - rows_of(strategy, np.eye(20))).max() < 1e-14
