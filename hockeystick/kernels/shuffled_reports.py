"""Binomial masses, and the masses of the stronger clones' pair in cells of the loss.

All that is added or multiplied is positive, so that every mass keeps a relative error of about two
units in the last place for each step of a recurrence and one for each term of a sum.
"""

import math

import numpy as np

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.series import Array

# Masses below this, relative to the mode, are omitted; so are those beyond this number of standard
# deviations of a fair binomial, where Hoeffding's inequality gives the same bound.
RAREST = 1e-140
DEPTH = 25.4


@njit(cache=True)
def binomial(trials: int, odds: float) -> tuple[int, Array]:
    """Return a first count and the masses of it and the following ones, next to each other.

    Counts with less than ``RAREST`` times the mass of the mode are omitted.
    """
    mode = min(int((trials + 1) * (odds / (1.0 + odds))), trials)
    below = 0
    value = 1.0
    for k in range(mode, 0, -1):
        if value < RAREST:
            break
        value *= k / ((trials - k + 1.0) * odds)
        below += 1
    above = 0
    value = 1.0
    for k in range(mode, trials):
        if value < RAREST:
            break
        value *= (trials - k) * odds / (k + 1.0)
        above += 1
    mass = np.ones(below + above + 1)
    for j in range(below - 1, -1, -1):
        k = mode - below + j + 1
        mass[j] = mass[j + 1] * (k / ((trials - k + 1.0) * odds))
    for j in range(below + 1, mass.size):
        k = mode - below + j - 1
        mass[j] = mass[j - 1] * ((trials - k) * odds / (k + 1.0))
    total = 0.0
    for j in range(mass.size):
        total += mass[j]
    for j in range(mass.size):
        mass[j] /= total
    return mode - below, mass


@interruptible
@njit(cache=True)
def clone_masses(
    totals: Array, common: Array, difference: Array, cuts: Array
) -> tuple[Array, Array, Array]:
    """Return the masses under P and Q of cells between cuts, and the number of terms of each.

    For x of t reports P has the mass ``b(x; t) (common + 2 difference x/t)``, and Q that of t - x;
    ``b(x; t) = binom(t, x) / 2^t``. The loss exceeds l where ``x / t`` exceeds
    ``(1 + (1 + common/difference) tanh(l/2)) / 2``; ``cuts`` are the values of ``tanh(l/2)``.
    """
    cells = cuts.size + 1
    p, q, terms = np.zeros(cells), np.zeros(cells), np.zeros(cells)
    deepest = int(0.5 * DEPTH * math.sqrt(totals.max())) + 4
    mass = np.empty(deepest + 2)
    for block in range(totals.size):
        t = totals[block]
        half = int(t) // 2
        top = min(int(t), half + int(0.5 * DEPTH * math.sqrt(t)) + 2)
        mass[top - half] = 1.0
        total = 0.0
        for x in range(top, half, -1):
            total += mass[x - half]
            mass[x - half - 1] = mass[x - half] * (x / (t - x + 1.0))
        even = 2 * half == int(t)
        total = 2.0 * total + (mass[0] if even else 0.0)
        ratio = 1.0 + common[block] / difference[block]
        high, low = cells - 1, 0
        first = half if even else half + 1
        for x in range(top, first - 1, -1):
            while high > 0 and 2.0 * x < t * (1.0 + ratio * cuts[high - 1]):
                high -= 1
            while low < cells - 1 and 2.0 * (t - x) >= t * (1.0 + ratio * cuts[low]):
                low += 1
            each = mass[x - half] / total
            more = each * (common[block] + difference[block] * (2.0 * x / t))
            less = each * (common[block] + difference[block] * (2.0 * (t - x) / t))
            p[high] += more
            q[high] += less
            terms[high] += 1.0
            if 2 * x != int(t):
                p[low] += less
                q[low] += more
                terms[low] += 1.0
    return p, q, terms
