"""What compiled kernels are held against, in mpmath: quantities by their definitions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from hockeystick.numerics.multiprecision import mp, mpc, mpf
from hockeystick.precision.lines import log_normal_cdf, log_ratio
from hockeystick.precision.profiles import exact


def e2(x: mpf) -> mpf:
    """Return ``exp(x) - 1 - x``, with the digits that it cancels made up for."""
    with mp.extraprec(1200):
        value = mp.expm1(x) - x
    return +value


def cumulant_sums(
    loss: Sequence[float], log_weight: Sequence[float], c: float
) -> tuple[mpf, mpf, mpf]:
    """Return ``M(c) - 1``, ``M'(c)`` and ``M''(c)``: ``E[e2(c L) + c e2(-L)]`` and derivatives."""
    value = first = second = mp.zero
    for one, log_mass in zip(loss, log_weight, strict=True):
        x, mass = mp.mpf(one), mp.exp(mp.mpf(log_mass))
        value += mass * (e2(c * x) + c * e2(-x))
        first += mass * (x * mp.expm1(c * x) + e2(-x))
        second += mass * x * x * mp.exp(c * x)
    return value, first, second


def mgf_line(
    loss: Sequence[mpf], weight: Sequence[mpf], c: float, step: float, count: int
) -> list[mpc]:
    """Return ``M(c + i k step) - 1 = E[e2(z L) + z e2(-L)]`` for ``k < count``."""
    points = [mp.mpc(c, mp.mpf(step) * k) for k in range(count)]
    pairs = list(zip(loss, weight, strict=True))
    return [mp.fsum(w * (mp.expm1(z * x) - z * x + z * e2(-x)) for x, w in pairs) for z in points]


def bulk_part(
    loss: Sequence[mpf], weight: Sequence[mpf], large: Sequence[mpf], small: Sequence[mpf], c: float
) -> mpf:
    """Return ``A(c) - 1 = E[(1 - W) (exp(c L) - 1)] - E[W]``."""
    terms = zip(loss, weight, large, small, strict=True)
    return mp.fsum(
        mass * (mp.exp(kept) * mp.expm1(c * x) - mp.exp(lost)) for x, mass, lost, kept in terms
    )


def windowed_integral(
    rate: float | Fraction, mu: mpf, w: mpc, edge: float, width: float, side: int
) -> mpc:
    """Return ``Int phi(u) r(u)^w Phi(side (u - edge) / width) du``: J with side 1, A with -1."""
    p = exact(rate)

    def log_integrand(u: mpf) -> mpc:
        window = log_normal_cdf(side * (u - edge) / width)
        return w * log_ratio(p, mu, u) - u * u / 2 + window

    high = max(mp.re(w) * mu, edge) + 15
    cuts = {mp.mpf(u) for u in range(-15, int(high) + 2)}
    cuts |= {edge + k * mp.mpf(width) for k in range(-12, 13, 3)}
    # Over the panels that count, scaled: the accuracy of ``quad`` is an absolute one.
    logs = {u: mp.re(log_integrand(u)) for u in sorted(cuts)}
    scale = max(logs.values())
    kept = [
        ends
        for ends in pairwise(logs)
        if max(map(logs.__getitem__, ends)) > scale - mp.log(2) * mp.prec - 6
    ]
    panels = (
        mp.quad(lambda u: mp.exp(log_integrand(u) - scale), ends, method="gauss-legendre")
        for ends in kept
    )
    return mp.exp(scale) * mp.fsum(panels) / mp.sqrt(2 * mp.pi)


def odds_of(p: mpf, mu: mpf, u: mpf) -> mpf:
    """Return ``s(u) = p e^t / (1 - p + p e^t)`` with ``t = mu u - mu^2/2``."""
    grown = p * mp.exp(mu * u - mu * mu / 2)
    return grown / (1 - p + grown)


def density_slope(p: mpf, mu: mpf, w: mpf, u: mpf) -> mpf:
    """Return the derivative of ``ln(phi(u) r^w / a'(u))`` in u, ``-u + w a' - a''/a'``.

    It is the density of the tilted loss of a sampled Gaussian, ``a(u) = ln(1 - p + p exp(mu u -
    mu^2/2))`` with ``a' = mu s(u)``.
    """
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


def recurrence(
    points: Sequence[mpf], centre: mpf, half: mpf, most: int
) -> tuple[list[mpf], list[mpf], int]:
    """Return the recurrence of the monic polynomials that are orthogonal on the points.

    Gram and Schmidt: each is ``u`` times the one before, less its projections on all before. The
    diagonal is ``<u f, f> / <f, f>``; beside it are the ratios of the squares ``<f, f>``, the first
    one 0. There are as many as different points, ``most`` at the most.
    """
    scaled = [(x - centre) / half for x in points]
    used = min(most, len(set(scaled)))
    found: list[list[mpf]] = [[mp.one] * len(scaled)]
    while len(found) < used:
        grown = [u * f for u, f in zip(scaled, found[-1], strict=True)]
        shares = [mp.fdot(grown, one) / mp.fdot(one, one) for one in found]
        found.append(
            [g - mp.fdot(shares, values) for g, *values in zip(grown, *found, strict=True)]
        )
    squares = [mp.fdot(one, one) for one in found]
    diagonal = [
        mp.fsum(u * f * f for u, f in zip(scaled, one, strict=True)) / square
        for one, square in zip(found, squares, strict=True)
    ]
    beside = [mp.zero, *(squares[k] / squares[k - 1] for k in range(1, used))]
    return diagonal, beside, used


def total_exponent(
    width: Sequence[mpf], mass: Sequence[mpf], ends: Sequence[int], runs: Sequence[mpf], y: mpf
) -> mpf:
    """Return the sum over groups of densities of ``runs`` times their exponent at height y."""
    groups = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    exponents = [minorant_exponent(width[one], mass[one], mp.inf, y) for one in groups]
    return mp.fdot(runs, exponents)


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


def run_excess(
    gain: Sequence[Sequence[mpf]],
    spans: Sequence[tuple[int, int, int, int]],
    weights: Sequence[tuple[mpf, mpf]],
    comparisons: int,
) -> list[mpf]:
    """Return Z at each point after so many comparisons, from 0; beyond the ends it is as there."""
    last = len(gain[0]) - 1
    excess = [mp.zero] * (last + 1)
    for _ in range(comparisons):
        new = list(excess)
        for (k, start, stop, offset), (low, high) in zip(spans, weights, strict=True):
            for j in range(start, stop):
                first, second = (min(max(j + offset + one, 0), last) for one in (0, 1))
                value = gain[k][j] + low * excess[first] + high * excess[second]
                new[j] = max(new[j], value)
        excess = new
    return excess


def shares(
    masses: tuple[Sequence[mpf], Sequence[mpf]],
    values: tuple[Sequence[mpf], Sequence[mpf]],
    edge: Sequence[mpf],
    product: bool,
) -> tuple[list[mpf], list[mpf]]:
    """Return what each cell between edges gives to its lower and upper edge, its mean kept."""
    lower, upper = [mp.zero] * (len(edge) - 1), [mp.zero] * (len(edge) - 1)
    for mass, value in _pairs(masses, values, product):
        n = min(max(bisect_right(edge, value) - 1, 0), len(edge) - 2)
        share = (value - edge[n]) / (edge[n + 1] - edge[n])
        lower[n] += mass * (1 - share)
        upper[n] += mass * share
    return lower, upper


def _pairs(
    masses: tuple[Sequence[mpf], Sequence[mpf]],
    values: tuple[Sequence[mpf], Sequence[mpf]],
    product: bool,
) -> Iterator[tuple[mpf, mpf]]:
    """Yield the mass and the value of each pair."""
    for p, x in zip(masses[0], values[0], strict=True):
        for q, y in zip(masses[1], values[1], strict=True):
            yield p * q, x * y if product else x + y
