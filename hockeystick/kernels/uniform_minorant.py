"""Uniform minorant of the Poisson-subsampled Gaussian's tilted loss density, by its level sets.

A sum of uniform densities below it; each has a transform that decays like ``sinc``, which bounds
how fast ``|M|`` decays along a vertical line.
"""

import math

import numpy as np
from numba import njit

from hockeystick.kernels.interrupts import interruptible
from hockeystick.kernels.sampled_gaussian import LOG_SQRT_2PI, log_ratio, odds_of
from hockeystick.kernels.series import Array
from hockeystick.numerics import ULP


@njit(cache=True)
def log_density(p: float, mu: float, w: float, u: float) -> float:
    """Return ``ln(phi(u) r^w / (mu s(u)))``, the log density of ``a`` under the tilt, less ln M."""
    a = log_ratio(p, mu, u)
    return -0.5 * u * u + w * a - (mu * u - 0.5 * mu * mu + math.log(p * mu) - a) - LOG_SQRT_2PI


@njit(cache=True)
def density_slope(p: float, mu: float, w: float, u: float) -> float:
    """Return the derivative of ``log_density`` in ``u``."""
    return -u - mu + (w + 1.0) * mu * odds_of(p, mu, u)


@njit(cache=True)
def falling_root(p: float, mu: float, w: float, low: float, high: float) -> float:
    """Return where ``density_slope``, positive at ``low`` and negative at ``high``, crosses 0."""
    for _ in range(80):
        middle = 0.5 * (low + high)
        if density_slope(p, mu, w, middle) > 0.0:
            low = middle
        else:
            high = middle
        if high - low < 1e-9:
            break
    return 0.5 * (low + high)


@njit(cache=True)
def modes(p: float, mu: float, w: float) -> tuple[int, float, float, float]:
    """Return the number of modes of the tilted loss density (1 or 2), them, and the cut between.

    ``density_slope`` falls, or falls, rises and falls: a sigmoid less a line.
    """
    span = abs(w) * mu + 3.0 * mu + 4.0
    lean = (w + 1.0) * mu * mu
    if lean <= 4.0:
        return 1, falling_root(p, mu, w, -span, span), 0.0, 0.0
    root = math.sqrt(1.0 - 4.0 / lean)
    # s(u) = (1 -+ root)/2 where the slope turns; s = sigma(mu u - mu^2/2 + ln(p/(1-p))).
    centre = 0.5 * mu + math.log((1.0 - p) / p) / mu
    reach = 2.0 * math.atanh(root) / mu
    left, right = centre - reach, centre + reach
    if density_slope(p, mu, w, left) >= 0.0:
        return 1, falling_root(p, mu, w, right, max(span, right)), 0.0, 0.0
    if density_slope(p, mu, w, right) <= 0.0:
        return 1, falling_root(p, mu, w, min(-span, left), left), 0.0, 0.0
    low = falling_root(p, mu, w, min(-span, left), left)
    high = falling_root(p, mu, w, right, max(span, right))
    a, b = left, right
    for _ in range(80):
        middle = 0.5 * (a + b)
        if density_slope(p, mu, w, middle) < 0.0:
            a = middle
        else:
            b = middle
        if b - a < 1e-9:
            break
    return 2, low, high, 0.5 * (a + b)


@njit(cache=True)
def peel(
    p: float,
    mu: float,
    w: float,
    log_norm: float,
    mode: float,
    low: float,
    high: float,
    width: Array,
    mass: Array,
    used: int,
) -> tuple[int, float]:
    """Append the uniform layers of the density around one mode; return layers used and the peak.

    Walking outward from the mode, always to the higher neighbour, gives intervals on each of which
    the density is at least the level reached (it is quasi-concave between ``low`` and ``high``).
    """
    stride = 0.15
    peak = math.exp(log_density(p, mu, w, mode) - log_norm)
    level = peak
    left = right = mode
    loss_left = loss_right = log_ratio(p, mu, mode)
    while used < width.size:
        next_left = left - stride
        next_right = right + stride
        go_left = math.exp(log_density(p, mu, w, next_left) - log_norm) if next_left > low else 0.0
        go_right = (
            math.exp(log_density(p, mu, w, next_right) - log_norm) if next_right < high else 0.0
        )
        lower = max(go_left, go_right)
        width[used] = max(
            loss_right - loss_left - 8.0 * ULP * (abs(loss_left) + abs(loss_right)), 0.0
        )
        mass[used] = max(level - lower, 0.0) * width[used] * (1.0 - 1e-6)
        used += 1
        if lower <= 1e-9 * peak:
            break
        level = min(level, lower)
        if go_left >= go_right:
            left = next_left
            loss_left = log_ratio(p, mu, left)
        else:
            right = next_right
            loss_right = log_ratio(p, mu, right)
    return used, peak


@interruptible
@njit(cache=True)
def layers(
    p: float, mu: float, w: float, log_norm: float, error: float
) -> tuple[Array, Array, float]:
    """Return uniform layers (width, mass) below the tilted loss density, and its total variation.

    ``log_norm`` is an upper bound of ``ln M(c)``, at most ``error`` above it.
    """
    width = np.zeros(512)
    mass = np.zeros(512)
    found, first, second, cut = modes(p, mu, w)
    far = 1e300
    above = math.exp(error) * (1.0 + 1e-6)
    if found == 1:
        used, peak = peel(p, mu, w, log_norm, first, -far, far, width, mass, 0)
        return width[:used].copy(), mass[:used].copy(), 2.0 * peak * above
    used, peak = peel(p, mu, w, log_norm, first, -far, cut, width, mass, 0)
    used, other = peel(p, mu, w, log_norm, second, cut, far, width, mass, used)
    return width[:used].copy(), mass[:used].copy(), 2.0 * (peak + other) * above


@njit(cache=True)
def layer_exponent(width: Array, mass: Array, variation: float, y: float) -> float:
    """Return ``b(y) <= -ln|M(c + i v)| / M(c)`` for every ``v >= y``; it grows with ``y``.

    A uniform layer of width ``s`` has ``|psi(v)| = |sinc(v s/2)|``, at most the falling envelope
    used here; and ``|psi(v)| <= V / v`` for a density of total variation ``V``.
    """
    loss = 0.0
    for j in range(width.size):
        x = 0.5 * y * width[j]
        if x < 0.3:
            square = x * x
            loss += mass[j] * (square / 6.0 - square * square / 120.0)
        elif x < 2.55:
            loss += mass[j] * (1.0 - math.sin(x) / x)
        else:
            loss += mass[j] * (1.0 - min(0.2188, 1.0 / x))
    best = -math.log1p(-min(loss, 1.0 - 1e-9))
    return max(best, math.log(y / variation)) if y > variation else best
