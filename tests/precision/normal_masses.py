"""Twin of ``kernels.normal_masses``: masses under N(0, 1) by error functions and quadrature."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hockeystick.numerics.multiprecision import mp, mpf


def log_masses(at: Sequence[float]) -> list[mpf]:
    """Return ``ln(Phi(b) - Phi(a))`` for neighbouring edges a < b, also infinite ones.

    Computed on the side of the tail; the digits that the difference cancels are made up for by
    precision.
    """
    return [_log_mass(mp.mpf(low), mp.mpf(high)) for low, high in pairwise(at)]


def narrow(centre: mpf, half: mpf) -> mpf:
    """Return ``ln(Phi(m + a) - Phi(m - a))`` for centre m and half width a."""
    with mp.extraprec(4 * mp.prec):
        low, high = centre - half, centre + half
    return _log_mass(low, high)


def low_moments(square: mpf, half: mpf) -> mpf:
    """Return ``E[exp(-t^2/2)] - 1`` for t on (-a, a) with a density as ``cosh(b t/a)``, by b^2."""
    b = mp.sqrt(square)
    moment = mp.quad(lambda s: mp.expm1(-((half * s) ** 2) / 2) * mp.cosh(b * s), _panels(b))
    return moment / power_series(square, 0)


def high_moments(b: mpf, half: mpf) -> mpf:
    """Return the same by b itself."""
    return low_moments(b * b, half)


def power_series(square: mpf, n: int) -> mpf:
    """Return ``Int_0^1 s^n cosh(b s) ds`` by b^2."""
    b = mp.sqrt(square)
    return mp.quad(lambda s: s**n * mp.cosh(b * s), _panels(b))


def _panels(b: mpf) -> list[mpf]:
    """Return cuts of [0, 1] between which ``cosh(b s)`` grows by a few powers of e."""
    count = 1 + int(b / 8)
    return [mp.mpf(k) / count for k in range(count + 1)]


def _log_mass(low: mpf, high: mpf) -> mpf:
    if low + high < 0:
        low, high = -high, -low
    if not low < high:
        return -mp.inf
    lost = 4 * max(0, -mp.mag(high - low)) if mp.isfinite(high) else 0
    with mp.extraprec(40 + lost):
        mass = (mp.erfc(low / mp.sqrt(2)) - mp.erfc(high / mp.sqrt(2))) / 2
        value = mp.log(mass)
    return +value
