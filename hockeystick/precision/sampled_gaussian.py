"""Twin of ``kernels.sampled_gaussian``: the loss of the Poisson-subsampled Gaussian and its M."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision.profiles import exact


def log_ratio(p: mpf, mu: mpf, u: mpf) -> mpf:
    """Return ``a(u) = ln(1 - p + p exp(mu u - mu^2/2))``."""
    return mp.log1p(p * mp.expm1(mu * u - mu * mu / 2))


def odds_of(p: mpf, mu: mpf, u: mpf) -> mpf:
    """Return ``s(u) = p e^t / (1 - p + p e^t)`` with ``t = mu u - mu^2/2``."""
    grown = p * mp.exp(mu * u - mu * mu / 2)
    return grown / (1 - p + grown)


def angle_at(p: mpf, mu: mpf, shift: mpf, u: mpf) -> mpf:
    """Return ``arg r(u + i shift)``."""
    return mp.arg(1 - p + p * mp.exp(mu * mp.mpc(u, shift) - mu * mu / 2))


def nodes(
    rate: float | Fraction, mu: mpf, removing: bool, first: int, count: int, step: float
) -> tuple[list[mpf], list[mpf]]:
    """Return the loss and its weight at ``u = (first + j) step`` for ``j < count``."""
    p = exact(rate)
    loss, weight = [], []
    for j in range(first, first + count):
        u = j * mp.mpf(step)
        a = log_ratio(p, mu, u)
        density = step * mp.npdf(u)
        loss.append(a if removing else -a)
        weight.append(density * mp.exp(a) if removing else density)
    return loss, weight


def cumulant_sums(p: mpf, mu: mpf, removing: bool, c: mpf) -> tuple[mpf, mpf, mpf]:
    """Return ``M(c) - 1 = E[expm1(c L)]``, ``M' = E[L e^(cL)]`` and ``M'' = E[L^2 e^(cL)]``.

    By the trapezoid rule under ``phi``, or ``phi r`` for the removing direction; with a step that
    much shorter than ``pi / mu`` it errs by ``exp(-150)``, next to the integral.
    """
    step = 1 / (8 * (1 + mp.mpf(mu)))
    high = (2 + (1 + c if removing else 0)) * mu + 16
    value = first = second = mp.zero
    for j in range(int(-16 / step), int(high / step) + 1):
        a = log_ratio(p, mu, j * step)
        x = a if removing else -a
        weight = step * mp.npdf(j * step) * (mp.exp(a) if removing else 1)
        tilted = weight * mp.exp(c * x)
        value += weight * mp.expm1(c * x)
        first += x * tilted
        second += x * x * tilted
    return value, first, second


def cgf_estimates(p: mpf, mu: mpf, removing: bool, orders: Sequence[mpf]) -> list[mpf]:
    """Return ``K(c) = ln M(c)`` at several orders."""
    return [mp.log1p(cumulant_sums(p, mu, removing, c)[0]) for c in orders]
