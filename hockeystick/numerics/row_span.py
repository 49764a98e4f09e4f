"""The span of integer rows, by exact elimination, and projections onto it between proven ends.

For a subspace S of R^n with the orthogonal projection P, and a unit vector e_u,

    |P e_u|^2      = max over y in S                of  2 y_u - |y|^2,
    1 - |P e_u|^2  = max over z orthogonal to S     of  2 z_u - |z|^2,

since ``2 y_u - |y|^2 = |P e_u|^2 - |y - P e_u|^2`` for y in S, and so for its complement. Any y and
z that one puts in give proven ends. With a reduced echelon form of integers both are exact: y is an
integer combination of the rows, and z is determined by its entries outside the pivots. So floats
only choose y and z, and their error enters squared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Row = NDArray[np.object_]

# Binary digits of what is put in, beyond those of the pivots.
_BITS: Final = 96
# Products of integers that are made before one gives up.
_MOST_WORK: Final = 10**8
# How often each entry of a row that is put in is looked at.
_LOOKS: Final = 4


class RowSpan:
    """A subspace of R^n that grows row by row: integer rows in reduced echelon form, by pivots.

    At its own pivot each row is positive, at those of all others 0; rows have no common divisor.
    ``work`` counts products of integers, long ones by their words, and entries that are looked at.
    """

    def __init__(self, size: int) -> None:
        self.work: int = 0
        self._size = size
        self._rows: dict[int, Row] = {}

    @property
    def rank(self) -> int:
        """The dimension of the subspace."""
        return len(self._rows)

    def squared_projection(self, place: int) -> tuple[Fraction, Fraction]:
        """Return proven ends of ``|P e_u|^2``, exact where it is 0 or 1.

        It is 0 where the column of u is, and 1 where e_u is a row: the echelon form is unique.
        """
        if not any(row[place] for row in self._rows.values()):
            return Fraction(0), Fraction(0)
        if place in self._rows and np.count_nonzero(self._rows[place]) == 1:
            return Fraction(1), Fraction(1)
        near = self._near(place)
        least = max(self._inside(place, near), Fraction(0))
        most = min(1 - self._orthogonal(place, near), Fraction(1))
        return least, most

    def kernel_lengths(self) -> tuple[int, ...]:
        """Return upper bounds of the lengths of integer vectors that span the complement.

        One for each place j that is no pivot: d at j, and ``-d row_j / pivot`` at the rows' pivots,
        d the least number for which all are integers.
        """
        found = []
        for place in self._no_pivots():
            rows = self._rows.items()
            parts = [Fraction(row[place], row[at]) for at, row in rows if row[place]]
            scale = math.lcm(*(part.denominator for part in parts))
            square = scale * scale + sum(int(part * scale) ** 2 for part in parts)
            found.append(math.isqrt(square - 1) + 1)
        return tuple(found)

    def _no_pivots(self) -> list[int]:
        return [place for place in range(self._size) if place not in self._rows]

    def _near(self, place: int) -> NDArray[np.float64]:
        """Return ``P e_u`` as floats have it; nothing is proven of it."""
        scaled = np.array([[entry / row[at] for entry in row] for at, row in self._rows.items()])
        basis = np.linalg.qr(scaled.T)[0]
        return np.asarray(basis @ basis[place])

    def _inside(self, place: int, near: NDArray[np.float64]) -> Fraction:
        """Return ``2 y_u - |y|^2`` for a y of the subspace, at the pivots nearly that given."""
        rows = self._rows.items()
        shift = _BITS + max(int(row[at]).bit_length() for at, row in rows)
        total = reduce(np.add, (_fixed(near[at], shift) // row[at] * row for at, row in rows))
        square = sum(int(entry) ** 2 for entry in total)
        return Fraction((int(total[place]) << (shift + 1)) - square, 1 << (2 * shift))

    def _orthogonal(self, place: int, near: NDArray[np.float64]) -> Fraction:
        """Return at most ``2 z_u - |z|^2`` for a z of the complement, elsewhere nearly e_u - near.

        At a row's pivot z is minus the row's product with z elsewhere, over the pivot.
        """
        chosen = {at: _fixed(float(at == place) - near[at], _BITS) for at in self._no_pivots()}
        square = sum(value * value for value in chosen.values())
        entry = Fraction(chosen.get(place, 0))
        unit = Fraction(1, 1 << _BITS)
        for at, row in self._rows.items():
            product = -sum(value * row[one] for one, value in chosen.items())
            square += -(-product * product // (int(row[at]) ** 2))
            if at == place:
                entry = Fraction(product, int(row[at]))
        return 2 * entry * unit - square * unit * unit

    def add(self, row: Row) -> Row | None:
        """Return what of a row is new, after it was put in; None where it is in the span."""
        self._count(_LOOKS * self._size, 0)
        rest = self._reduced(row)
        if not any(rest):
            return None
        place = max(range(self._size), key=lambda at: abs(rest[at]))
        rest = rest if rest[place] > 0 else -rest
        for at, known in self._rows.items():
            if known[place]:
                self._count(self._size, rest[place])
                self._rows[at] = _primitive(known * rest[place] - rest * known[place])
        self._rows[place] = rest
        return rest

    def _reduced(self, row: Row) -> Row:
        """Return a multiple of a row, less multiples of those that there are: 0 at their pivots."""
        known = [(at, one) for at, one in self._rows.items() if row[at] != 0]
        scale = math.lcm(*(int(one[at]) for at, one in known))
        rest = row * scale
        for at, one in known:
            self._count(self._size, one[at])
            rest = rest - one * (row[at] * (scale // one[at]))
        return _primitive(rest)

    def _count(self, products: int, factor: int) -> None:
        self.work += products * (1 + int(factor).bit_length() // 64)


def row_span(
    size: int,
    first: Iterable[Row],
    image: Callable[[Row], Row],
    rounds: int,
    *,
    image_products: int = 0,
) -> RowSpan | None:
    """Return the span of some rows, and of their images under up to ``rounds - 1`` powers of a map.

    Each step takes the images of what was new in the step before: with ``S_(t+1) = S_t + A S_t``,
    those of all else are in the span already. It ends where nothing is new or can be. None where
    it takes more than some ten seconds; an image takes ``image_products`` products of integers.
    """
    span, left = RowSpan(size), iter(first)

    def counted(row: Row) -> Row:
        span._count(image_products, max(map(abs, row)))
        return image(row)

    for _ in range(min(rounds, size + 1)):
        new = []
        for row in left:
            found = span.add(row)
            if span.rank == size:
                return span
            if found is not None:
                new.append(found)
            if span.work > _MOST_WORK:
                return None
        left = map(counted, new)
    return span


def _primitive(row: Row) -> Row:
    divisor = math.gcd(*row.tolist())
    return row // divisor if divisor > 1 else row


def _fixed(value: Any, bits: int) -> int:
    return int(Fraction(float(value)) * (1 << bits))
