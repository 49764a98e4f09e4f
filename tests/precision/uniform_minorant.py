"""Twin of ``kernels.uniform_minorant``: the tilted loss density and its level sets.

For the Poisson-subsampled Gaussian, ``a(u) = ln(1 - p + p exp(mu u - mu^2/2))`` has, under
``phi(u) r(u)^w / M``, the density ``f = phi r^w / (M a')`` at ``a(u)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision.sampled_gaussian import log_ratio, odds_of


def log_density(p: mpf, mu: mpf, w: mpf, u: mpf) -> mpf:
    """Return ``ln(phi(u) r^w / a'(u))`` with ``a' = mu s(u)``."""
    return mp.log(mp.npdf(u)) + w * log_ratio(p, mu, u) - mp.log(mu * odds_of(p, mu, u))


def density_slope(p: mpf, mu: mpf, w: mpf, u: mpf) -> mpf:
    """Return the derivative of ``log_density`` in u, ``-u + w a' - a''/a'``."""
    s = odds_of(p, mu, u)
    return -u + w * mu * s - mu * (1 - s)


def modes(p: mpf, mu: mpf, w: mpf) -> tuple[int, mpf, mpf, mpf]:
    """Return the number of modes (1 or 2), the modes, and the minimum between; 0 if none.

    Every change of sign of the derivative on a grid much finer than 1 and ``1 / mu``. Beyond
    ``|w + 1| mu + mu`` the derivative has the sign of -u.
    """
    end = (abs(w + 1) + 1) * mu + 1
    grid = mp.linspace(-end, end, 3 + int(8 * end * (1 + mu)))
    rises = [density_slope(p, mu, w, u) > 0 for u in grid]
    turns = [
        _crossing(p, mu, w, *ends)
        for ends, (before, after) in zip(pairwise(grid), pairwise(rises), strict=True)
        if before != after
    ]
    if len(turns) == 1:
        return 1, turns[0], mp.zero, mp.zero
    first, cut, second = turns
    return 2, first, second, cut


def level_sets(p: mpf, mu: mpf, w: mpf, log_norm: mpf, levels: Sequence[mpf]) -> list[list[mpf]]:
    """Return, for each mode and each level, the length of the set of losses above the level.

    Level-set decomposition: ``f(a) = Int_0^peak 1{f(a) >= level} d level``. The uniform
    densities of any minorant of f above some level are no wider than the level set.
    """
    found, first, second, cut = modes(p, mu, w)
    pieces = [(first, -mp.inf, mp.inf)]
    if found == 2:
        pieces = [(first, -mp.inf, cut), (second, cut, mp.inf)]
    return [
        [_length(p, mu, w, mp.log(level) + log_norm, *piece) for level in levels]
        for piece in pieces
    ]


def minorant_exponent(width: Sequence[mpf], mass: Sequence[mpf], variation: mpf, y: mpf) -> mpf:
    """Return ``-ln sup_(v >= y)`` of the bound of ``|M(c + i v)| / M(c)`` by a uniform minorant.

    A uniform density of width s has ``|psi(v)| = |sinc(v s/2)|``; a density of total variation V
    has ``|psi(v)| <= V / v``.
    """
    falls = [m * (1 - _sinc_beyond(y * s / 2)) for s, m in zip(width, mass, strict=True)]
    left = 1 - mp.fsum(falls)
    return -mp.log(min(left, variation / y) if y else left)


def _crossing(p: mpf, mu: mpf, w: mpf, low: mpf, high: mpf) -> mpf:
    return mp.findroot(lambda u: density_slope(p, mu, w, u), (low, high), solver="anderson")


def _length(p: mpf, mu: mpf, w: mpf, level: mpf, mode: mpf, low: mpf, high: mpf) -> mpf:
    """Return the length in ``a`` of the interval around a mode where the log density is higher."""
    if log_density(p, mu, w, mode) <= level:
        return mp.zero
    left, right = (_end(p, mu, w, level, mode, end) for end in (low, high))
    return log_ratio(p, mu, right) - log_ratio(p, mu, left)


def _end(p: mpf, mu: mpf, w: mpf, level: mpf, mode: mpf, cut: mpf) -> mpf:
    """Return where the log density falls to a level between a mode and a cut, or the cut."""
    step = mp.sign(cut - mode)
    far = cut if mp.isfinite(cut) else mode + step
    while log_density(p, mu, w, far) > level:
        if mp.isfinite(cut):
            return cut
        step *= 2
        far += step
    near = mode
    while abs(far - near) > 1e-12 * (1 + abs(far)):
        middle = (near + far) / 2
        near, far = (middle, far) if log_density(p, mu, w, middle) > level else (near, middle)
    return far


def _sinc_beyond(x: mpf) -> mpf:
    """Return the largest ``|sin(t) / t|`` of all t from x on: there, or at the next maximum."""
    arch = int(mp.floor(x / mp.pi))
    here = abs(mp.sinc(x))
    tops = [_top(k) for k in (arch, arch + 1) if k > 0]
    return max([here, *(abs(mp.sinc(top)) for top in tops if top >= x)])


def _top(k: int) -> mpf:
    """Return the maximum of ``|sinc|`` between k pi and (k + 1) pi, where ``tan t = t``."""
    return mp.findroot(
        lambda t: t * mp.cos(t) - mp.sin(t), (k + mp.mpf(1) / 2) * mp.pi - 1 / (k * mp.pi)
    )
