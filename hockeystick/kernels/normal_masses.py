"""Masses of narrow cells under N(0, 1) as logarithms, with proven errors, however far out.

A cell of width ``2 a`` up to 0.2 around m has the mass

    2 a phi(m) sinh(m a)/(m a) E[exp(-t^2/2)],    t on (-a, a) with a density as cosh(m t),

and the last factor is an alternating series in the even moments of t, which fall faster than
``a^(2k)``.
"""

import math

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.sampled_gaussian import LOG_SQRT_2PI
from hockeystick.kernels.series import Array
from hockeystick.numerics import ULP

# Cells up to this width are taken by the series.
NARROW = 0.2
# What lies further out has less than exp(-10^15): it is 0.
FARTHEST = 1e8
# Edges that are known no better than this share of the width bound nothing.
SURE = 0.05
# Neglected in sums of about 1.
NEGLIGIBLE = 1e-18


@interruptible
@njit(cache=True)
def log_masses(
    at: Array, shift: Array, width: Array, width_error: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return ``ln`` of the mass between neighbouring edges, its error, and which cells are wide.

    ``shift`` bounds the error of each edge, ``width_error`` that of each width, relative. Wide
    cells, and those whose edges are uncertain by any amount, are left to others.
    """
    count = width.size
    value, error = np.empty(count), np.empty(count)
    wide = np.zeros(count, dtype=np.bool_)
    for j in range(count):
        low, high = at[j], at[j + 1]
        value[j], error[j] = -math.inf, 0.0
        if low - shift[j] > FARTHEST or high + shift[j + 1] < -FARTHEST:
            continue
        if not high > low:
            # Edges that rounding has merged may still hold something.
            if shift[j] + shift[j + 1] > 0.0 and math.isfinite(low) and math.isfinite(high):
                error[j] = math.inf
        elif width[j] <= NARROW:
            half = 0.5 * width[j]
            value[j], error[j] = narrow(abs(low + half), half, shift[j], width_error[j])
        else:
            wide[j] = True
    return value, error, wide


@njit(cache=True)
def narrow(centre: float, half: float, shift: float, width_error: float) -> tuple[float, float]:
    """Return the logarithm of the mass of one cell of half width up to 0.1, and its error."""
    b = centre * half
    terms = number_of_terms(half)
    if b < 1.0:
        flat = power_series(b * b, 0)
        log_factor = math.log(2.0 * half * flat * (1.0 + low_moments(b * b, half, flat, terms)))
    else:
        log_factor = b + math.log(-half * math.expm1(-2.0 * b) / b)
        log_factor += math.log1p(high_moments(b, half, terms))
    square = 0.5 * centre * centre
    moved = shift + half * width_error + ULP * (centre + half)
    rest = 2.0 * term_after(half, terms)
    round_off = ULP * (2.0 * square + 2.0 * b + 4.0 * abs(log_factor) + 24.0)
    error = moved * (centre + half + moved) + rest + round_off + 1.1 * (1.0 + b) * width_error
    return log_factor - LOG_SQRT_2PI - square, error if width_error < SURE else math.inf


@njit(cache=True)
def term_after(half: float, terms: int) -> float:
    """Return ``(a^2/2)^(n+1) / (n+1)!``, beyond which the series adds no more than twice that."""
    term = 1.0
    for k in range(1, terms + 2):
        term *= 0.5 * half * half / k
    return term


@njit(cache=True)
def number_of_terms(half: float) -> int:
    """Return the number of terms with a remainder below 1e-17: 1 to 6 for half widths up to 0.1."""
    terms = 1
    while term_after(half, terms) > 1e-17:
        terms += 1
    return terms


@njit(cache=True)
def low_moments(square: float, half: float, flat: float, terms: int) -> float:
    """Return ``E[exp(-t^2/2)] - 1 = sum_k (-a^2/2)^k / k! E[s^(2k)]`` where ``b^2`` is below 1.

    ``s = t/a`` has a density as cosh(b s), and its moments are power series in ``b^2``; ``flat``
    is the one of order 0.
    """
    total, weight = 0.0, 1.0
    for k in range(1, terms + 1):
        weight *= -0.5 * half * half / k
        total += weight * power_series(square, 2 * k)
    return total / flat


@njit(cache=True)
def high_moments(b: float, half: float, terms: int) -> float:
    """Return the same for b from 1 on.

    There ``E_n = 1 - n coth(b)/b + n (n-1)/b^2 E_(n-2)``: what that loses (up to 2n factors of n^2
    ulp) is made up for by the weights.
    """
    turn = 1.0 / (math.tanh(b) * b)
    total, weight, moment = 0.0, 1.0, 1.0
    for k in range(1, terms + 1):
        n = 2 * k
        moment = 1.0 - n * turn + n * (n - 1) * moment / (b * b)
        weight *= -0.5 * half * half / k
        total += weight * moment
    return total


@njit(cache=True)
def power_series(square: float, n: int) -> float:
    """Return ``Int_0^1 s^n cosh(b s) ds = sum_j b^(2j) / ((2j)! (2j+n+1))`` for ``b^2`` up to 1."""
    total, term, j = 0.0, 1.0, 0
    while term > NEGLIGIBLE:
        total += term / (2 * j + n + 1)
        j += 1
        term *= square / (2 * j * (2 * j - 1))
    return total
