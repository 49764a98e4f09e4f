"""Twin of ``kernels.doubling``: every pair of values, one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from hockeystick.numerics.multiprecision import mp, mpf


def spread(
    masses: tuple[Sequence[mpf], Sequence[mpf]],
    values: tuple[Sequence[mpf], Sequence[mpf]],
    node: Sequence[mpf],
    product: bool,
) -> list[mpf]:
    """Return masses on nodes: what falls between two goes to both, its mean kept."""
    found = [mp.zero] * len(node)
    for mass, value in _pairs(masses, values, product):
        n = min(max(bisect_right(node, value) - 1, 0), len(node) - 2)
        share = (value - node[n]) / (node[n + 1] - node[n])
        found[n] += mass * (1 - share)
        found[n + 1] += mass * share
    return found


def merge(
    masses: tuple[Sequence[mpf], Sequence[mpf]],
    values: tuple[Sequence[mpf], Sequence[mpf]],
    edge: Sequence[mpf],
    product: bool,
) -> tuple[list[mpf], list[mpf]]:
    """Return the mass in each cell between edges, and the mean; the lower edge where none is."""
    found = [mp.zero] * (len(edge) - 1)
    moment = [mp.zero] * (len(edge) - 1)
    for mass, value in _pairs(masses, values, product):
        n = min(max(bisect_right(edge, value) - 1, 0), len(edge) - 2)
        found[n] += mass
        moment[n] += mass * value
    means = [m / p if p else low for m, p, low in zip(moment, found, edge, strict=False)]
    return found, means


def _pairs(
    masses: tuple[Sequence[mpf], Sequence[mpf]],
    values: tuple[Sequence[mpf], Sequence[mpf]],
    product: bool,
) -> Iterator[tuple[mpf, mpf]]:
    """Yield the mass and the value of each pair."""
    for p, x in zip(masses[0], values[0], strict=True):
        for q, y in zip(masses[1], values[1], strict=True):
            yield p * q, x * y if product else x + y
