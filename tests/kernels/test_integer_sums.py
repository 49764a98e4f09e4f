"""Rows become the nearest integers, whose sums and squared lengths are exact."""

from typing import Any

import numpy as np
import pytest

from hockeystick.kernels.integer_sums import LANES, add_rounded

ROWS = 5


def _added(rows: Any, scales: Any, weights: Any) -> tuple[Any, Any]:
    """Return sums and squared lengths."""
    sums, squares = np.zeros((len(weights), rows.shape[1])), np.zeros((len(rows), LANES))
    add_rounded(rows, scales, weights, sums, squares)
    return sums, squares.sum(axis=1)


@pytest.mark.parametrize("entries", [0, 1, LANES - 1, LANES, LANES + 1, 1024, 1025, 2500])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_and_squares_are_those_of_pythons_integers(dtype: Any, entries: int) -> None:
    source = np.random.default_rng(entries)
    rows = source.standard_normal((ROWS, entries)).astype(dtype)
    scales = source.uniform(0, 2.0**20, ROWS)
    weights = np.array([[1.0, 1, 1, 1, 1], [0, 1, 0, 0, 1], [0, 0, 0, 0, 0]])
    whole = [
        [round(one * scale) for one in row]
        for row, scale in zip(rows.tolist(), scales, strict=True)
    ]
    sums, squares = _added(rows, scales, weights)
    for found, chosen in zip(sums, weights, strict=True):
        kept = [row for row, weight in zip(whole, chosen, strict=True) if weight]
        assert found.tolist() == [sum(row[place] for row in kept) for place in range(entries)]
    assert squares.tolist() == [sum(one * one for one in row) for row in whole]


def test_halves_go_to_even_integers() -> None:
    rows = np.array([[0.5, 1.5, -2.5, 0.49999999999999994, -0.5000000000000001]])
    sums, _ = _added(rows, np.ones(1), np.ones((1, 1)))
    assert sums.tolist() == [[0, 2, -2, 0, -1]]


def test_a_row_that_is_no_number_has_no_squared_length_and_is_in_no_other_sum() -> None:
    rows = np.array([[np.nan, 1.0], [np.inf, 1.0], [3.0, 4.0]])
    sums, squares = _added(rows, np.ones(3), np.array([[0.0, 0.0, 1.0]]))
    assert sums.tolist() == [[3, 4]]
    assert not (squares[:2] <= 2.0**44).any()
    assert squares[2] == 25
