"""Encoders: how far a participant moves them, against every pattern of participation."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.mechanisms import Encoder
from hockeystick.mechanisms.streams.sensitivity import Pattern

Matrix = Sequence[Sequence[Any]]


def patterns(rounds: int, participations: int, separation: int) -> Iterator[tuple[int, ...]]:
    for count in range(1, participations + 1):
        for places in combinations(range(rounds), count):
            if all(b - a >= separation for a, b in pairwise(places)):
                yield places


def gram(matrix: Matrix) -> Any:
    columns = np.array(matrix, dtype=object).T
    return columns @ columns.T


def by_hand(matrix: Matrix, participations: int, separation: int) -> tuple[Any, Any]:
    """Return the largest sums of inner products and of their sizes over all patterns."""
    products = gram(matrix)
    sums = [
        [products[i][j] for i in places for j in places]
        for places in patterns(len(matrix[0]), participations, separation)
    ]
    return max(sum(one) for one in sums), max(sum(map(abs, one)) for one in sums)


def test_one_participation_is_the_largest_column_exactly() -> None:
    encoder = Encoder.of_matrix([[1, 2.5, 0], [1, -1.5, 3], [0, 0.5, 0]])
    assert encoder.square == encoder.least_square == 9
    assert encoder.sensitivity == 3.0
    # The nearest floats of the roots of 2 and of 3 are above and below them.
    assert Encoder.of_matrix([[1, 1], [1, 0]]).sensitivity == math.sqrt(2)
    three = Encoder.of_matrix([[1], [1], [1]]).sensitivity
    assert three == math.nextafter(math.sqrt(3), 2)


def matrices(low: int) -> st.SearchStrategy[Matrix]:
    sizes = st.tuples(st.integers(1, 5), st.integers(1, 6))
    return sizes.flatmap(
        lambda size: st.lists(
            st.lists(st.integers(low, 9), min_size=size[1], max_size=size[1]),
            min_size=size[0],
            max_size=size[0],
        )
    )


@given(matrices(-9), st.integers(1, 3), st.integers(1, 3))
def test_few_patterns_of_any_columns_are_between_a_participant_and_the_bound(
    matrix: Matrix, participations: int, separation: int
) -> None:
    encoder = Encoder.of_matrix(matrix, participations=participations, separation=separation)
    together, most = by_hand(matrix, participations, separation)
    products = gram(matrix)
    apart = max(
        sum(products[i][i] for i in places)
        for places in patterns(len(matrix[0]), participations, separation)
    )
    banded = all(
        products[i][j] == 0
        for i in range(len(matrix[0]))
        for j in range(i + separation, len(matrix[0]))
    )
    assert encoder.least_square == (apart if banded else max(together, apart))
    assert encoder.least_square <= encoder.square <= most


@pytest.mark.parametrize(("bands", "separation"), [(1, 1), (2, 2), (3, 3), (2, 4), (3, 4)])
@pytest.mark.parametrize("participations", [1, 2, 3])
def test_banded_matrices_are_exact_by_dynamic_programming(
    bands: int, separation: int, participations: int
) -> None:
    rng = np.random.default_rng(bands)
    full = rng.integers(-9, 9, (11, 11))
    matrix = np.tril(full) - np.tril(full, -bands)
    encoder = Encoder.of_matrix(matrix, participations=participations, separation=separation)
    norms = (matrix**2).sum(axis=0)
    truth = max(sum(norms[list(places)]) for places in patterns(11, participations, separation))
    assert encoder.square == encoder.least_square == truth


def test_patterns_are_counted_without_listing_them() -> None:
    for rounds in range(1, 8):
        for participations in range(1, 4):
            for separation in range(1, 4):
                listed = list(patterns(rounds, participations, separation))
                pattern = Pattern(participations, separation)
                assert pattern.count(rounds) == len(listed)
                assert sorted(pattern.every(rounds)) == sorted([(), *listed])
