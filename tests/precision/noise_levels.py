"""Twin of ``kernels.noise_levels``: Chebyshev moments and orthogonal polynomials of points."""

from __future__ import annotations

from collections.abc import Sequence

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision.sampled_gaussian import cumulant_sums
from tests.precision.uniform_minorant import minorant_exponent


def chebyshev_sums(
    points: Sequence[mpf], weights: Sequence[mpf], centre: mpf, half: mpf, count: int
) -> list[mpf]:
    """Return ``sum of w T_n((x - centre) / half)``, n < count; ``T_n(u) = cos(n arccos u)``."""
    scaled = [(x - centre) / half for x in points]
    return [
        mp.fsum(w * mp.cos(n * mp.acos(u)) for u, w in zip(scaled, weights, strict=True))
        for n in range(count)
    ]


def recurrence(
    points: Sequence[mpf], centre: mpf, half: mpf, most: int
) -> tuple[list[mpf], list[mpf], int]:
    """Return the recurrence of the monic polynomials that are orthogonal on the points.

    Gram and Schmidt: each is ``u`` times the one before, less its projections on all before. The
    diagonal is ``<u f, f> / <f, f>``; beside it are the ratios of the squares ``<f, f>``, the first
    one 0. There are as many as different points, ``most`` at the most.
    """
    scaled = [(x - centre) / half for x in points]
    used = min(most, len(set(scaled)))
    found: list[list[mpf]] = [[mp.one] * len(scaled)]
    while len(found) < used:
        grown = [u * f for u, f in zip(scaled, found[-1], strict=True)]
        shares = [mp.fdot(grown, one) / mp.fdot(one, one) for one in found]
        found.append(
            [g - mp.fdot(shares, values) for g, *values in zip(grown, *found, strict=True)]
        )
    squares = [mp.fdot(one, one) for one in found]
    diagonal = [
        mp.fsum(u * f * f for u, f in zip(scaled, one, strict=True)) / square
        for one, square in zip(found, squares, strict=True)
    ]
    beside = [mp.zero, *(squares[k] / squares[k - 1] for k in range(1, used))]
    return diagonal, beside, used


def cell_ends(points: Sequence[mpf], width: mpf) -> list[int]:
    """Return where cells of ascending points end: each is as long as ``width`` lets it be."""
    ends, first = [], points[0]
    for j, x in enumerate(points):
        if x - first > width:
            ends.append(j)
            first = x
    return [*ends, len(points)]


def total_exponent(
    width: Sequence[mpf], mass: Sequence[mpf], ends: Sequence[int], runs: Sequence[mpf], y: mpf
) -> mpf:
    """Return the sum over groups of densities of ``runs`` times their exponent at height y."""
    groups = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    exponents = [minorant_exponent(width[one], mass[one], mp.inf, y) for one in groups]
    return mp.fdot(runs, exponents)


def total_cgf_estimate(
    p: mpf, mus: Sequence[mpf], weights: Sequence[mpf], removing: bool, c: mpf
) -> tuple[mpf, mpf, mpf]:
    """Return the weighted sums of ``K = ln M``, ``K' = M'/M`` and ``K'' = M''/M - K'^2`` at c."""
    sums = [cumulant_sums(p, mu, removing, c) for mu in mus]
    values = [mp.log1p(excess) for excess, _, _ in sums]
    first = [one / (1 + excess) for excess, one, _ in sums]
    second = [two / (1 + excess) - k * k for (excess, _, two), k in zip(sums, first, strict=True)]
    return mp.fdot(weights, values), mp.fdot(weights, first), mp.fdot(weights, second)
