"""Twin of ``kernels.comparison_runs``: one point and one comparison after the other."""

from __future__ import annotations

from collections.abc import Sequence

from hockeystick.numerics.multiprecision import mp, mpf


def run_excess(
    gain: Sequence[Sequence[mpf]],
    spans: Sequence[tuple[int, int, int, int]],
    weights: Sequence[tuple[mpf, mpf]],
    comparisons: int,
) -> list[mpf]:
    """Return Z at each point after so many comparisons, from 0; beyond the ends it is as there."""
    last = len(gain[0]) - 1
    excess = [mp.zero] * (last + 1)
    for _ in range(comparisons):
        new = list(excess)
        for (k, start, stop, offset), (low, high) in zip(spans, weights, strict=True):
            for j in range(start, stop):
                first, second = (min(max(j + offset + one, 0), last) for one in (0, 1))
                value = gain[k][j] + low * excess[first] + high * excess[second]
                new[j] = max(new[j], value)
        excess = new
    return excess
