"""High precision for `levy`: fixed point, Gauss-Legendre panels, spherical Bessel functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from mpmath import mp
from mpmath.libmp import MPZ, from_man_exp, to_fixed
from numpy.typing import NDArray

Fixed = NDArray[np.object_]
Real = Any  # an mpmath number: mpmath has no types of its own to name


def exact(value: float | Fraction) -> Real:
    """An exact number at the working precision."""
    ratio = Fraction(value)
    return mp.mpf(ratio.numerator) / ratio.denominator


def fix(values: list[Real], bits: int) -> Fixed:
    """Fixed-point integers round(v 2^bits) of real mpmath numbers."""
    out = np.empty(len(values), dtype=object)
    out[:] = [to_fixed(mp.mpf(v)._mpf_, bits) for v in values]
    return out


def unfix(value: Any, bits: int) -> Real:
    """The mpmath number value 2^-bits."""
    return mp.make_mpf(from_man_exp(value, -bits))


def complexes(re: Fixed, im: Fixed, bits: int) -> list[Real]:
    """Complex mpmath numbers from two fixed-point arrays."""
    return [mp.mpc(unfix(a, bits), unfix(b, bits)) for a, b in zip(re, im, strict=True)]


# ---- Legendre panels -----------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Gauss-Legendre nodes, and matrices from node values to coefficients and to half panels."""

    bits: int
    nodes: tuple[Real, ...]
    weights: tuple[Real, ...]
    series: Fixed
    halves: tuple[Fixed, Fixed]


def _legendre(n: int, x: Real) -> tuple[Real, Real]:
    """P_n(x) and its derivative."""
    below, here = mp.mpf(1), x
    for k in range(1, n):
        below, here = here, ((2 * k + 1) * x * here - k * below) / (k + 1)
    return here, n * (x * here - below) / (x * x - 1)


def _values(n: int, points: list[Real], bits: int) -> Fixed:
    """Matrix of P_k(point), k < n, in fixed point."""
    x = fix(points, bits)
    rows = [np.full(len(points), MPZ(1) << bits, dtype=object), x]
    for k in range(1, n - 1):
        rows.append(((2 * k + 1) * (x * rows[-1] >> bits) - k * rows[-2]) // (k + 1))
    return np.array(rows, dtype=object)


@lru_cache(maxsize=64)
def rule_of(n: int, dps: int) -> Rule:
    """The rule with n nodes at dps digits."""
    with mp.workdps(dps + 10):
        nodes, weights = [], []
        for start in np.polynomial.legendre.leggauss(n)[0]:
            x = mp.mpf(float(start))
            for _ in range(math.ceil(math.log2((dps + 10) / 14)) + 1):
                value, slope = _legendre(n, x)
                x -= value / slope
            slope = _legendre(n, x)[1]
            nodes.append(x)
            weights.append(2 / ((1 - x * x) * slope**2))
        bits = mp.prec
        at_nodes = _values(n, nodes, bits)
        scale = np.array([[2 * k + 1] for k in range(n)], dtype=object)
        series = (at_nodes * fix(weights, bits) >> bits) * scale // 2
        left, right = (
            (_values(n, [(x + side) / 2 for x in nodes], bits).T.dot(series)) >> bits
            for side in (-1, 1)
        )
    return Rule(bits, tuple(nodes), tuple(weights), series, (left, right))


def bessel(n: int, omega: Real, dps: int) -> list[Real]:
    """Spherical Bessel functions j_k(omega), k < n, by the stable direction of the recurrence."""
    if abs(omega) > n:
        j = [mp.sin(omega) / omega, mp.sin(omega) / omega**2 - mp.cos(omega) / omega]
        for k in range(1, n - 1):
            j.append((2 * k + 1) / omega * j[k] - j[k - 1])
        return j
    if omega == 0:
        return [mp.mpf(1)] + [mp.mpf(0)] * (n - 1)
    top = n + 20 + 2 * dps
    above, here = mp.mpf(0), mp.mpf(10) ** (-4 * dps)
    down = []
    for k in range(top, -1, -1):
        down.append(here)
        above, here = here, (2 * k + 1) / omega * here - above
    j = down[::-1]
    known = [mp.sin(omega) / omega, mp.sin(omega) / omega**2 - mp.cos(omega) / omega]
    pick = 0 if abs(j[0]) > abs(j[1]) else 1
    return [known[pick] / j[pick] * v for v in j[:n]]
