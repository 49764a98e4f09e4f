"""Masses of cells under N(0, 1) as logarithms, with proven errors, however narrow or far out.

A cell of width ``2 a <= 0.2`` around m has the mass

    2 a phi(m) sinh(m a)/(m a) E[exp(-t^2/2)],    t on (-a, a) with a density as cosh(m t),

and the last factor is an alternating series in the even moments of t, which fall faster than
``a^(2k)``. A wider one is a difference of scaled complementary error functions on the side of the
tail, or a sum of error functions where it holds 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from hockeystick.losses._spans import Edges

if TYPE_CHECKING:
    from hockeystick._kernels.series import Array

_ULP: Final = 2.0**-52
# Cells up to this width are taken by the series.
_NARROW: Final = 0.2
# What lies further out has less than exp(-10^15): it is 0.
_FARTHEST: Final = 1e8
_LOG_ROOT: Final = 0.5 * math.log(2.0 * math.pi)
# An error function of scipy, its argument's round-off included.
_SPECIAL: Final = 36.0 * _ULP
_SERIES_TERMS: Final = 9
# The tail beyond x >= 0 is at most so many times the density there.
_MILLS: Final = 1.26


def log_masses(edges: Edges) -> tuple[Array, Array]:
    """Return ``ln`` of the mass between neighbouring edges, and a bound on each one's error."""
    import numpy as np

    low, high = edges.at[:-1], edges.at[1:]
    value = np.full(low.size, -math.inf)
    error = np.zeros(low.size)
    with np.errstate(all="ignore"):
        outside = (low - edges.error[:-1] > _FARTHEST) | (high + edges.error[1:] < -_FARTHEST)
        inside = (high > low) & ~outside
        narrow = inside & (edges.width <= _NARROW)
        centre = np.abs(low[narrow] + 0.5 * edges.width[narrow])
        value[narrow], error[narrow] = _narrow(
            centre, 0.5 * edges.width[narrow], edges.error[:-1][narrow], edges.stretch[narrow]
        )
        wide = inside & ~narrow
        value[wide], error[wide] = _wide(
            low[wide], high[wide], edges.error[:-1][wide], edges.error[1:][wide]
        )
    # An edge pair that rounding has merged may still hold something.
    merged = ~inside & ~outside & (edges.error[:-1] + edges.error[1:] > 0.0)
    merged &= np.isfinite(low) & np.isfinite(high)
    error[merged] = math.inf
    error[np.isnan(error)] = math.inf
    return value, error


def _narrow(centre: Array, half: Array, shift: Array, stretch: Array) -> tuple[Array, Array]:
    """Return the masses of cells of half widths up to 0.1 by the series, and the errors."""
    import numpy as np

    b = centre * half
    terms = _number_of_terms(float(half.max(initial=0.0)))
    series = _mean_of_square_exponential(b, half, terms)
    small = np.where(b > 0.0, np.sinh(np.minimum(b, 1.0)) / np.where(b > 0.0, b, 1.0), 1.0)
    large = b + np.log(-np.expm1(-2.0 * b) / (2.0 * b))
    spread = np.where(b < 1.0, np.log(small), large)
    square = 0.5 * centre * centre
    log_width = np.log(2.0 * half)
    value = log_width - _LOG_ROOT - square + spread + np.log1p(series)
    moved = shift + half * stretch + _ULP * (centre + half)
    rest = 2.0 * (0.5 * half * half) ** (terms + 1) / math.factorial(terms + 1)
    round_off = _ULP * (2.0 * square + 2.0 * b + 2.0 * np.abs(log_width) + 16.0)
    error = moved * (centre + half + moved) + rest + round_off
    return value, np.where(stretch < 0.05, error + 1.1 * (1.0 + b) * stretch, math.inf)


def _number_of_terms(half: float) -> int:
    """Return how many terms leave a remainder below 1e-17: 1 to 6 for half widths up to 0.1."""
    terms = 1
    while (0.5 * half * half) ** (terms + 1) > 1e-17 * math.factorial(terms + 1):
        terms += 1
    return terms


def _mean_of_square_exponential(b: Array, half: Array, terms: int) -> Array:
    """Return ``E[exp(-t^2/2)] - 1`` over t on (-a, a) with a density as cosh(b t/a).

    It is ``sum_k (-a^2/2)^k / k! E[s^(2k)]``. Of ``s = t/a`` the moments are power series in
    ``b^2`` below 1, and follow ``E_n = 1 - n coth(b)/b + n (n-1)/b^2 E_(n-2)`` from there on: what
    that loses (up to 2n factors of n^2 ulp) is made up for by the weights ``(a^2/2)^k / k!``.
    """
    import numpy as np

    flat = b < 1.0
    total = np.zeros_like(b)
    weight = np.ones_like(b)
    steep = np.where(flat, 1.0, b)
    moment, turn = np.ones_like(b), 1.0 / (np.tanh(steep) * steep)
    square = np.where(flat, b * b, 0.0)
    mass = _power_series(square, 0)
    for k in range(1, terms + 1):
        n = 2 * k
        moment = 1.0 - n * turn + n * (n - 1) * moment / (steep * steep)
        weight = weight * (-0.5 * half * half) / k
        total += weight * np.where(flat, _power_series(square, n) / mass, moment)
    return total


def _power_series(square: Array, n: int) -> Array:
    """Return ``Int_0^1 s^n cosh(b s) ds = sum_j b^(2j) / ((2j)! (2j+n+1))`` for b up to 1."""
    import numpy as np

    total = np.zeros_like(square)
    for j in reversed(range(_SERIES_TERMS)):
        total = total * square + 1.0 / (math.factorial(2 * j) * (2 * j + n + 1))
    return total


def _wide(low: Array, high: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return the masses of cells wider than 0.2, and the errors."""
    import numpy as np

    value, error = np.empty_like(low), np.empty_like(low)
    right, left = low >= 0.0, high <= 0.0
    middle = ~(right | left)
    value[right], error[right] = _tail(low[right], high[right], first[right], second[right])
    value[left], error[left] = _tail(-high[left], -low[left], second[left], first[left])
    value[middle], error[middle] = _around(
        -low[middle], high[middle], first[middle], second[middle]
    )
    return value, error


def _tail(near: Array, far: Array, shift: Array, far_shift: Array) -> tuple[Array, Array]:
    """Return the masses of cells on the positive side.

    Moving the near edge by d changes the logarithm by at most the hazard rate, itself at most
    ``(near + d + 1) / (1 - r)``, times d; r is the share of the tail that lies beyond the far edge.
    """
    import numpy as np
    from scipy.special import erfcx

    root = math.sqrt(0.5)
    here = erfcx(root * near)
    gap = 0.5 * (far - near) * (far + near)
    beyond = np.where(np.isinf(far), 0.0, erfcx(root * far) * np.exp(-gap))
    rest = here - beyond
    kept = rest / here
    square = 0.5 * near * near
    value = np.log(0.5 * rest) - square
    round_off = 2.0 * _SPECIAL / kept + _ULP * (3.0 * square + 2.0 * np.abs(np.log(rest)) + 8.0)
    sure = shift <= 0.1 * np.minimum(1.0, far - near)
    moved = np.where(sure, 1.2 * (near + shift + 1.0) * shift / kept, math.inf)
    inner = np.maximum(far - far_shift, near)
    sliver = (
        0.8 * np.minimum(far_shift, _MILLS) * np.exp(-0.5 * (inner - near) * (inner + near)) / rest
    )
    sliver = np.where(np.isinf(far), 0.0, sliver)
    return value, round_off + moved + _of_share(sliver)


def _around(left: Array, right: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return the masses of cells from -left to right, which hold 0."""
    import numpy as np
    from scipy.special import erf

    root = math.sqrt(0.5)
    mass = 0.5 * (erf(root * left) + erf(root * right))
    slivers = np.zeros_like(mass)
    for edge, shift in ((left, first), (right, second)):
        inner = np.maximum(edge - shift, 0.0)
        sliver = 0.4 * np.minimum(shift, _MILLS) * np.exp(-0.5 * inner * inner)
        slivers += np.where(np.isinf(edge), 0.0, sliver)
    value = np.log(mass)
    return value, _SPECIAL + 2.0 * _ULP * (1.0 + np.abs(value)) + _of_share(slivers / mass)


def _of_share(share: Array) -> Array:
    """Return the error of a logarithm that a change of the mass by this share makes."""
    import numpy as np

    return np.where(share < 0.5, 1.4 * share, math.inf)


def gaussian_edges(edges: Edges, mu: float, side: float) -> Edges:
    """Return edges of the loss of N(mu, 1) against N(0, 1) as distances from one of the means.

    The loss l is at ``l/mu - mu/2`` from mu (``side`` 1) and at ``l/mu + mu/2`` from 0 (-1); mu is
    known to one unit in the last place.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        at = edges.at / mu - side * 0.5 * mu
        error = edges.error / mu + 3.0 * _ULP * (np.abs(edges.at) / mu + 0.5 * mu)
        error = np.where(np.isinf(edges.at), 0.0, error)
        return Edges(at, error, edges.width / mu, edges.stretch + 2.0 * _ULP)
