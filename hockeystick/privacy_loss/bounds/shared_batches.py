"""How the records of a group fall into the batches of one shuffled epoch.

Given that k_j of them are in batch j, the sums of the batches move by at most k_j each, and by
``sqrt(sum k_j^2)`` together. Whoever sees the allocation, which does not depend on the data, faces
a mixture over it whose index is observed; whoever does not sees less.

Batches of b places each are filled by one record of the group after the other, each in one of the
free places: of T batches, the i that have most of the group get the next record with a probability
of at most i/T. That is what they get where each record is in any batch with the same chance. So
there is a coupling in which the next record of the former never goes to a batch of a higher rank,
by fullness, than that of the latter. If counts are majorized by others, in descending order, they
still are where each has one more, the former's at no higher a rank. Hence the sum of squares of
records in batches of one size is at most that of independent records in this coupling, and as
larger distances cost more, independent records bound shuffled ones whatever b is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

# For each sum of squares, in ascending order, its probability.
Law: TypeAlias = tuple[tuple[int, Fraction], ...]

# Groups up to this size are taken apart: there are 37,338 ways to split 40 records into batches.
LARGEST_GROUP: Final = 40
# Sums of squares are kept as they are while there are no more of them, else rounded up a little.
_FEW: Final = 64
_STEP: Final = Fraction(17, 16)
# No probability is below this: what is less is counted with the next larger sum of squares.
_LEAST: Final = Fraction(1, 10**250)


@lru_cache(maxsize=256)
def squares_of_batches(records: int, batches: int) -> Law:
    """Return the law of ``sum k_j^2`` of independent records, rounded up where it is long."""
    return _thinned(exact_law(records, batches))


def exact_law(records: int, batches: int) -> Law:
    """Return the law of ``sum k_j^2``, each record in one of the batches, all equally likely."""
    ways: dict[int, int] = defaultdict(int)
    for square, count in _allocations(records, records, batches):
        ways[square] += count
    every = batches**records
    return tuple((square, Fraction(count, every)) for square, count in sorted(ways.items()))


def _allocations(records: int, largest: int, batches: int) -> Iterator[tuple[int, int]]:
    """Yield sums of squares, none above a largest count, and in how many ways each comes about."""
    if records == 0:
        yield 0, 1
        return
    top = min(largest, records)
    if top == 0 or top * batches < records:
        return
    chosen = 1
    for many in range(min(records // top, batches) + 1):
        left = records - many * top
        ways = chosen * math.comb(batches, many)
        for square, count in _allocations(left, top - 1, batches - many):
            yield square + many * top * top, ways * count
        chosen = chosen * math.comb(left, top)


def _thinned(law: Law) -> Law:
    """Return a law that is stochastically larger, of fewer numbers, none of them too unlikely."""
    kept: dict[int, Fraction] = {}
    gathered, last = Fraction(0), law[-1][0]
    before = law[0][0] - 1
    few = len(law) <= _FEW
    for place, (square, chance) in enumerate(law):
        gathered += chance
        further = place + 1 == len(law) or law[place + 1][0] > before * _STEP
        if gathered >= _LEAST and (few or further):
            kept[square] = gathered
            gathered, before = Fraction(0), square
    if gathered:
        kept[last] = gathered
        if gathered < _LEAST:
            kept[min(kept)] -= _LEAST - gathered
            kept[last] = _LEAST
    return tuple((square, chance) for square, chance in kept.items() if chance)
