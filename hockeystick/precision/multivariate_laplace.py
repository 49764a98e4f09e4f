"""Multivariate Laplace noise of scale 1 in n dimensions at distance e, to any precision.

The density is proportional to ``exp(-|x|)``; P is centred at u, Q at 0, and ``e = |u|``. In
prolate spheroidal coordinates with these foci the loss is ``l = |x| - |x - u| = e T``, and the sum
``|x| + |x - u|`` integrates out to Bessel functions: with ``a = e/2``, under P and under Q

    p(T) ~ exp(+-a T) (1 - T^2)^((n-3)/2) (bessel + 1 - T^2),
    bessel = ((n-1)/a) K_(n/2)(a) / K_(n/2-1)(a),

with the same constant. In ``t = artanh T`` the density is ``exp(psi(t))``,

    psi(t) = +-a tanh t - (n-1) ln cosh t + ln(bessel + 1/cosh^2 t),

which has one peak, and no singularity nearer to the real axis than ``pi/2``.

Integrals are Gauss sums over pieces. Where ``|psi(c + z) - psi(c)| <= G(|z|)``, a Taylor
polynomial of degree 2m - 1 shows that m nodes on ``[c - h, c + h]`` err by no more than the share

    2 exp(G(q h) + G(h)) q^(-2m) / (1 - 1/q)

of the integral. As ``|cosh(c + z)| >= e^-r cos(r) cosh c`` and ``|tanh(c + z)| <= 1`` for
``|z| <= r <= pi/4``, and ``|bessel + s| >= |s|`` where ``Re s >= 0``,

    G(r) = |d/dt (psi - ln(bessel + s))| r + s (2a + n - 1) r^2 / (2 e^(-2r) cos^2 r) + 2 r

with ``s = 1/cosh^2 c``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision.lines import gauss_legendre
from hockeystick.precision.profiles import exact, uncancelled

# The largest radius that the bound of the growth is used for: below pi/4.
REACH: Final = 0.75
_RATIO: Final = 3.0


def bessel_of(dimension: int, half: mpf) -> mpf:
    """Return ``((n-1)/a) K_(n/2)(a) / K_(n/2-1)(a)``, for n >= 2, to mpmath's precision.

    ``r_v = K_(v+1)/K_v = 2v/a + 1/r_(v-1)``, which forgets where it began: as ``r >= 1`` and
    ``r_v >= 2v/a`` it is known between two ends at any v, and the ends are followed from far enough
    below, or from the least v on, where r is known.
    """
    last = Fraction(dimension, 2) - 1
    steps = 64
    with mp.extraprec(20):
        while True:
            start = last - steps
            if start <= Fraction(1, 2):
                # K_(1/2)/K_(-1/2) is 1; of even dimensions it begins with K_1/K_0.
                odd = dimension % 2
                low = high = mp.one if odd else mp.besselk(1, half) / mp.besselk(0, half)
                start = Fraction(-odd, 2)
            else:
                low = max(mp.one, 2 * exact(start) / half)
                high = 2 * exact(start) / half + min(mp.one, half / (2 * exact(start - 1)))
            for k in range(1, int(last - start) + 1):
                order = 2 * exact(start + k) / half
                low, high = order + 1 / high, order + 1 / low
            if high - low <= low * mp.eps * 64:
                return (dimension - 1) / half * (low + high) / 2
            steps *= 2


def peak(dimension: int, half: float, bessel: float) -> float:
    """Return about where psi of P is largest: ``a/T = (n-1)/s + 2/(bessel + s)``, by bisection."""
    low, high = 0.0, 40.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        square = math.cosh(middle) ** -2
        rest = (dimension - 1) / square + 2.0 / (bessel + square)
        low, high = (middle, high) if half > rest * math.tanh(middle) else (low, middle)
    return low


def multivariate_laplace_delta(epsilon: mpf, distance: Fraction, dimension: int) -> mpf:
    """Return ``P(L > eps) - e^eps Q(L > eps)`` at any real epsilon, for n >= 2."""
    if epsilon < 0:
        mirrored = multivariate_laplace_delta(-epsilon, distance, dimension)
        return -mp.expm1(epsilon) + mp.exp(epsilon) * mirrored
    return _delta(epsilon, distance, dimension, mp.prec)


@lru_cache(maxsize=4096)
def _delta(epsilon: mpf, distance: Fraction, dimension: int, precision: int) -> mpf:
    """Return the profile at an epsilon >= 0, to a number of bits."""

    def difference() -> tuple[mpf, mpf]:
        p, q, total = _densities(distance, dimension, mp.prec)
        start = mp.atanh(epsilon / exact(distance))
        own = p.above(start)
        return own / total, (own - mp.exp(epsilon) * q.above(start)) / total

    with mp.workprec(precision):
        return mp.zero if epsilon >= exact(distance) else uncancelled(difference, extra=40)


@lru_cache(maxsize=64)
def _densities(
    distance: Fraction, dimension: int, precision: int
) -> tuple[_Density, _Density, mpf]:
    """Return P and Q, and the integral of ``exp(psi)``, to a number of bits."""
    half = exact(distance) / 2
    bessel = bessel_of(dimension, half)
    log_accuracy = precision * math.log(2.0)
    growth = log_accuracy / 2.3
    half_count = math.ceil((4.0 / 3.0 * growth + log_accuracy + 2.0) / (4.0 * math.log(_RATIO)))
    nodes = list(zip(*gauss_legendre(2 * half_count, precision), strict=True))
    p, q = (_Density(dimension, half, bessel, side, nodes, growth) for side in (1, -1))
    return p, q, p.above(mp.zero) + q.above(mp.zero)


class _Density(NamedTuple):
    """``exp(psi)`` of dimension n, with ``a = e/2`` and bessel, of P (side 1) or of Q (-1).

    A Gauss rule, in pairs (1 + node, weight), keeps all digits up to the logarithm of the growth.
    """

    dimension: int
    half: mpf
    bessel: mpf
    side: int
    nodes: list[tuple[mpf, mpf]]
    most_growth: float

    def at(self, t: mpf) -> mpf:
        """Return the density."""
        grown = mp.exp(t)
        fallen = 1 / grown
        inverse = 2 / (grown + fallen)
        slant = self.side * self.half * (grown - fallen) * inverse / 2
        rest = self.bessel + inverse * inverse
        return mp.exp(slant) * inverse ** (self.dimension - 1) * rest

    def growth(self, centre: float, radius: float) -> float:
        """Return G."""
        half, n = float(self.half), self.dimension
        square = math.cosh(centre) ** -2
        slope = abs(self.side * half * square - (n - 1) * math.tanh(centre))
        near = (math.exp(-radius) * math.cos(radius)) ** 2
        bend = square * (2.0 * half + n - 1) / (2.0 * near)
        return (slope + (bend * radius) + 2.0) * radius * (1.0 + 1e-9)

    def above(self, start: mpf) -> mpf:
        """Return the integral above a start >= 0, from the peak to either side."""
        top = peak(self.dimension, float(self.half), float(self.bessel)) if self.side > 0 else 0.0
        first = max(start, mp.mpf(top))
        total = self._upwards(first)
        return total if first == start else total + self._downwards(first, start, total)

    def _upwards(self, start: mpf) -> mpf:
        """Return the integral above a start at or above the peak."""
        at, total, half = start, mp.zero, REACH / _RATIO
        while True:
            last = self._last(at)
            if last is not None:
                return total + last
            half = self._half_width(at, half)
            total += self._piece(at + half, mp.mpf(half))
            at += 2 * half
            t = float(at)
            # (n-1) tanh t -+ a/cosh^2 t rises with t, and is less than the slope.
            slope = (self.dimension - 1) * math.tanh(t)
            slope -= max(self.side, 0) * float(self.half) * math.cosh(t) ** -2
            if slope > 1e-9 * self.dimension:
                left = self.at(at) / (slope * (1.0 - 1e-6))
                if left <= total * mp.eps:
                    return total

    def _downwards(self, start: mpf, end: mpf, known: mpf) -> mpf:
        """Return the integral below the peak and above an end, as far as it counts."""
        at, total, half = start, mp.zero, REACH / _RATIO
        while at > end and (at - end) * self.at(at) > (total + known) * mp.eps:
            half = self._half_width(at, -half)
            width = min(mp.mpf(half), (at - end) / 2)
            total += self._piece(at - width, width)
            at -= 2 * width
        return total

    def _half_width(self, at: mpf, half: float) -> float:
        """Return half the width of the next piece, up (or for a width < 0 down) from a point."""
        way = math.copysign(1.0, half)
        width = min(1.5 * abs(half), REACH / _RATIO)
        while self.growth(float(at) + way * width, _RATIO * width) > self.most_growth:
            width *= 0.8
        return width

    def _piece(self, centre: mpf, half: mpf) -> mpf:
        """Return the integral over one piece."""
        return half * mp.fsum(w * self.at(centre + half * (x - 1)) for x, w in self.nodes)

    def _last(self, at: mpf) -> mpf | None:
        """Return all that is left by one sum over ``y = pi/2 - arcsin T``, if that is good enough.

        There the density is ``exp(+-a cos y) sin^(n-2) y (bessel + sin^2 y)``, an entire function.
        For ``|z| <= Y = 2 H`` at most ``exp(a cosh Y) sinh^(n-2) Y (bessel + sinh^2 Y)``, with
        ``exp(-a cos Y)`` in place of the first factor under Q, and between 0 and H at least
        ``exp(a cos H)``, or ``exp(-a)``, times ``bessel (y sin(H)/H)^(n-2)``.
        """
        if at < 1.0:
            return None
        n, half, bessel = self.dimension, float(self.half), float(self.bessel)
        end = 2 * mp.atan(mp.exp(-at))
        h = float(end)
        steep = math.cosh(2.0 * h) - math.cos(h) if self.side > 0 else 1.0 - math.cos(2.0 * h)
        growth = half * steep + (n - 2) * math.log(math.sinh(2.0 * h) / math.sin(h))
        growth += math.log(n - 1) + math.log1p(math.sinh(2.0 * h) ** 2 / bessel)
        if growth * (1.0 + 1e-9) > 4.0 / 3.0 * self.most_growth:
            return None
        total = mp.zero
        for x, w in self.nodes:
            y = end / 2 * x
            square = mp.sin(y) ** 2
            term = mp.exp(self.side * self.half * mp.cos(y)) * (self.bessel + square)
            total += w * term * square ** (mp.mpf(n - 2) / 2)
        return end / 2 * total
