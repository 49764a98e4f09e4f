"""Twin of ``kernels.doubling``: every pair of values, one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from hockeystick.numerics.multiprecision import mp, mpf


def shares(
    masses: tuple[Sequence[mpf], Sequence[mpf]],
    values: tuple[Sequence[mpf], Sequence[mpf]],
    edge: Sequence[mpf],
    product: bool,
) -> tuple[list[mpf], list[mpf]]:
    """Return what each cell between edges gives to its lower and upper edge, its mean kept."""
    lower, upper = [mp.zero] * (len(edge) - 1), [mp.zero] * (len(edge) - 1)
    for mass, value in _pairs(masses, values, product):
        n = min(max(bisect_right(edge, value) - 1, 0), len(edge) - 2)
        share = (value - edge[n]) / (edge[n + 1] - edge[n])
        lower[n] += mass * (1 - share)
        upper[n] += mass * share
    return lower, upper


def _pairs(
    masses: tuple[Sequence[mpf], Sequence[mpf]],
    values: tuple[Sequence[mpf], Sequence[mpf]],
    product: bool,
) -> Iterator[tuple[mpf, mpf]]:
    """Yield the mass and the value of each pair."""
    for p, x in zip(masses[0], values[0], strict=True):
        for q, y in zip(masses[1], values[1], strict=True):
            yield p * q, x * y if product else x + y
