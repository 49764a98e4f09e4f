"""The sum of discrete Gaussian noise of several runs, by exact arithmetic on whole numbers."""

import math
from fractions import Fraction

from mpmath import mp

_BITS = 300
_BYTES = 40
_DEVIATIONS = 20


def masses_of_sum(sigma: float, runs: int) -> tuple[int, list[Fraction]]:
    """Return the least sum, and the probabilities from there on.

    The probabilities of one run are rounded to 300 bits and cut off at 20 sigma. Those of the sum
    are coefficients of a power, which one power of a whole number has as its digits.
    """
    # A sum's digit of so many bytes holds its probability.
    reach, width = math.ceil(_DEVIATIONS * sigma), runs * _BYTES
    with mp.workprec(_BITS + 64):
        square = 2 * mp.mpf(str(sigma)) ** 2
        one = [int(mp.exp(-(k * k) / square) * 2**_BITS) for k in range(-reach, reach + 1)]
    packed = int.from_bytes(b"".join(weight.to_bytes(width, "little") for weight in one), "little")
    whole = (packed**runs).to_bytes(width * (len(one) * runs + 1), "little")
    digits = (whole[width * k : width * (k + 1)] for k in range(2 * reach * runs + 1))
    total = sum(one) ** runs
    return -reach * runs, [Fraction(int.from_bytes(one, "little"), total) for one in digits]
