"""Shuffled reports in mpmath: plain sums over all numbers of reports in each category."""

from __future__ import annotations

import math

from hockeystick.numerics.multiprecision import mp, mpf


def binomial(trials: int, odds: mpf) -> list[mpf]:
    """Return the masses of all counts."""
    rate = odds / (1 + odds)
    return [
        mp.binomial(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(trials + 1)
    ]


def clone_masses(totals: int, common: mpf, difference: mpf) -> list[tuple[mpf, mpf]]:
    """Return the masses under P and Q for each x of t = ``totals`` reports.

    ``b(x; t) (common + 2 difference x/t)``, and the same at t - x.
    """
    fair = [mp.binomial(totals, x) / mp.mpf(2) ** totals for x in range(totals + 1)]
    more = [common + 2 * difference * mp.mpf(x) / totals for x in range(totals + 1)]
    return [(b * p, b * q) for b, p, q in zip(fair, more, reversed(more), strict=True)]


def clones_delta(local: mpf, users: int, epsilon: mpf, overlap: mpf | None = None) -> mpf:
    """Return delta of ``(A + D, C - A + 1 - D)`` against ``(A + 1 - D, C - A + D)``.

    C is the number of n - 1 others that are clones, each with probability ``overlap``, by default
    ``2 / (e^local + 1)``; A of them are of the first kind, and so is D with probability
    ``e^local / (e^local + 1)``.
    """
    odds, factor = mp.exp(local), mp.exp(epsilon)
    overlap = 2 / (odds + 1) if overlap is None else overlap
    gain, loss = odds - factor, factor * odds - 1
    total = mp.zero
    for clones, mass in enumerate(binomial(users - 1, overlap / (1 - overlap))):
        excess = mp.zero
        # P is above Q only where more than half of the reports are of the first kind.
        for x in range(clones // 2 + 1, clones + 2):
            first, second = math.comb(clones, x - 1), math.comb(clones, x)
            excess += max(gain * first - loss * second, 0)
        total += mass * excess / (odds + 1) / mp.mpf(2) ** clones
    return total
