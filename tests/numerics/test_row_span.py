"""Spans of integer rows against elimination in fractions, and ends that hold whatever is put in."""

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.numerics.row_span import RowSpan, row_span

Matrix = list[list[int]]
MATRICES = st.integers(1, 5).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(-9, 9), min_size=size, max_size=size), min_size=1, max_size=5
    )
)


def span_of(rows: Matrix) -> RowSpan:
    first = [np.array(row, dtype=object) for row in rows]
    found = row_span(len(rows[0]), first, lambda row: row, 1)
    assert found is not None
    return found


def orthogonal(rows: Matrix) -> list[list[Fraction]]:
    """Return orthogonal rows of the same span, by Gram and Schmidt in fractions."""
    found: list[list[Fraction]] = []
    for row in rows:
        rest = [Fraction(entry) for entry in row]
        for one in found:
            share = dot(rest, one) / dot(one, one)
            rest = [a - share * b for a, b in zip(rest, one, strict=True)]
        if any(rest):
            found.append(rest)
    return found


def dot(first: list[Fraction], second: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(first, second, strict=True)), Fraction(0))


def truth(rows: Matrix, place: int) -> Fraction:
    """Return the squared length of a unit vector's projection."""
    return sum((one[place] ** 2 / dot(one, one) for one in orthogonal(rows)), Fraction(0))


@given(MATRICES)
def test_the_truth_is_between_narrow_ends(rows: Matrix) -> None:
    span = span_of(rows)
    assert span.rank == len(orthogonal(rows))
    for place in range(len(rows[0])):
        least, most = span.squared_projection(place)
        exact = truth(rows, place)
        assert least <= exact <= most <= least + Fraction(1, 10**25)
        assert (least == most) or 0 < exact < 1


@given(MATRICES, st.data())
def test_the_ends_hold_whatever_is_put_in(rows: Matrix, data: st.DataObject) -> None:
    span = span_of(rows)
    sizes = st.floats(-2, 2)
    near = np.array(data.draw(st.lists(sizes, min_size=len(rows[0]), max_size=len(rows[0]))))
    for place in range(len(rows[0])):
        if span.rank:
            assert span._inside(place, near) <= truth(rows, place)
            assert truth(rows, place) <= 1 - span._orthogonal(place, near)


def test_images_are_taken_as_often_as_said() -> None:
    def shifted(row: Any) -> Any:
        return np.asarray(np.roll(row, 1) + 2 * row)

    first = [np.array([1, 0, 0, 0, 0, 0], dtype=object)]
    ranks = [row_span(6, first, shifted, rounds) for rounds in (0, 1, 2, 5, 6, 10**15)]
    assert [span.rank for span in ranks if span is not None] == [0, 1, 2, 5, 6, 6]
