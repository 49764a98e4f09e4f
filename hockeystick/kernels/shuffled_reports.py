"""Binomial masses, and the masses of the stronger clones' pair in cells of the loss.

All that is added or multiplied is positive, so that every mass keeps a relative error of about two
units in the last place for each step of a recurrence and one for each term of a sum.
"""

import math

import numpy as np

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.series import Array
from hockeystick.numerics import ULP

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
    below, above = [1.0], [1.0]
    for k in range(mode, 0, -1):
        if below[-1] < RAREST:
            break
        below.append(below[-1] * (k / ((trials - k + 1.0) * odds)))
    for k in range(mode, trials):
        if above[-1] < RAREST:
            break
        above.append(above[-1] * ((trials - k) * odds / (k + 1.0)))
    mass = np.array(below[:0:-1] + above)
    total = 0.0
    for each in mass:
        total += each
    return mode - len(below) + 1, mass / total


@njit(cache=True)
def up_to(likely: int, rare: int, odds: float, reach: float, last: int) -> tuple[Array, float]:
    """Return masses of ``Bin(likely, p) + Bin(rare, 1 - p)`` over that of ``last``, and an error.

    They begin ``reach`` below the mean. With ``odds = p/(1 - p)`` the generating function gives

        (x+1) z(x+1) = (odds (likely - x) + (rare - x)/odds) z(x) + (likely + rare - x + 1) z(x-1),

    positive terms before ``last``: each step turns ends of ``z(x)/z(x-1)``, at first those of n
    trials of either chance, into closer ones.
    """
    n, mean = likely + rare, (likely * odds + rare) / (1.0 + odds)
    first, start = int(max(mean - reach, 0.0)), int(max(mean - 1.5 * reach, 1.0))
    low, high = (n - start + 1.0) / (start * odds), (n - start + 1.0) * odds / start
    if start == 1:
        low = high = likely * odds + rare / odds
    mass, error = np.ones(last - first + 1), 0.0
    for x in range(start, last + 1):
        low, high = low * (1.0 - 8.0 * ULP), high * (1.0 + 8.0 * ULP)
        if x > first:
            mass[x - 1 - first] = 1.0 / math.sqrt(low * high)
            error += math.log(high / low) + 8.0 * ULP
        rise, fall, rest = (likely - x) * odds, (rare - x) / odds, n - x + 1.0
        unsure = 4.0 * ULP * (abs(rise) + abs(fall))
        least, most = max(rise + fall - unsure, 0.0), max(rise + fall + unsure, 0.0)
        low, high = (least + rest / high) / (x + 1.0), (most + rest / low) / (x + 1.0)
    for j in range(mass.size - 2, -1, -1):
        mass[j] *= mass[j + 1]
    return mass, error


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
    p, q, terms = np.zeros(cuts.size + 1), np.zeros(cuts.size + 1), np.zeros(cuts.size + 1)
    for block in range(totals.size):
        t = totals[block]
        half = int(t) // 2
        top = min(int(t), half + int(0.5 * DEPTH * math.sqrt(t)) + 2)
        mass, total = np.ones(top - half + 1), 0.0
        for x in range(top, half, -1):
            total += mass[x - half]
            mass[x - half - 1] = mass[x - half] * (x / (t - x + 1.0))
        total = 2.0 * total + (mass[0] if 2 * half == int(t) else 0.0)
        ratio = 1.0 + common[block] / difference[block]
        high = cuts.size
        for x in range(top, int(t) - top - 1, -1):
            while high > 0 and 2.0 * x < t * (1.0 + ratio * cuts[high - 1]):
                high -= 1
            each = mass[max(x, int(t) - x) - half] / total
            p[high] += each * (common[block] + difference[block] * (2.0 * x / t))
            q[high] += each * (common[block] + difference[block] * (2.0 * (t - x) / t))
            terms[high] += 1.0
    return p, q, terms
