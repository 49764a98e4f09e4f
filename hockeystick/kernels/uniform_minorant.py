"""Uniform minorant of the subsampled Gaussian's tilted loss density, by its level sets.

A sum of uniform densities below it, whose transforms decay like ``sinc``, bounds how fast ``|M|``
decays along a vertical line. The sample is a Poisson sample, or one of ``fixed_size_gaussian``.
"""

import math
from typing import Final

import numpy as np

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.fixed_size_gaussian import log_ratio as fixed_size_log_ratio
from hockeystick.kernels.sampled_gaussian import LOG_SQRT_2PI, log_ratio, odds_of
from hockeystick.kernels.series import Array
from hockeystick.numerics import ULP

# Layers of the density are so wide in the noise.
STRIDE = 0.15
# Beyond all outputs.
EVERYWHERE = 1e300


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
def slope_root(p: float, mu: float, w: float, low: float, high: float) -> float:
    """Return where ``density_slope``, positive at ``low`` and negative at ``high``, crosses 0."""
    for _ in range(80):
        middle = 0.5 * (low + high)
        if density_slope(p, mu, w, middle) > 0.0:
            low = middle
        else:
            high = middle
        if abs(high - low) < 1e-9:
            break
    return 0.5 * (low + high)


@njit(cache=True)
def modes(p: float, mu: float, w: float) -> tuple[int, float, float, float]:
    """Return the number of modes of the tilted loss density (1 or 2), them, and the cut between.

    ``density_slope`` falls, or falls, rises and falls: a sigmoid less a line.
    """
    span = abs(w) * mu + 3.0 * mu + 4.0
    steepness = (w + 1.0) * mu * mu
    if steepness <= 4.0:
        return 1, slope_root(p, mu, w, -span, span), 0.0, 0.0
    root = math.sqrt(1.0 - 4.0 / steepness)
    # s(u) = (1 -+ root)/2 where the slope turns; s = sigma(mu u - mu^2/2 + ln(p/(1-p))).
    centre = 0.5 * mu + math.log((1.0 - p) / p) / mu
    reach = 2.0 * math.atanh(root) / mu
    left, right = centre - reach, centre + reach
    if density_slope(p, mu, w, left) >= 0.0:
        return 1, slope_root(p, mu, w, right, max(span, right)), 0.0, 0.0
    if density_slope(p, mu, w, right) <= 0.0:
        return 1, slope_root(p, mu, w, min(-span, left), left), 0.0, 0.0
    low = slope_root(p, mu, w, min(-span, left), left)
    high = slope_root(p, mu, w, right, max(span, right))
    return 2, low, high, slope_root(p, mu, w, right, left)


@njit(cache=True)
def signed_loss(p: float, mu: float, x: float) -> float:
    """Return ``a(x)`` of a fixed-size sample, or ``-a(-x)`` for x < 0."""
    a = fixed_size_log_ratio(p, mu, abs(x))
    return a if x >= 0.0 else -a


@njit(cache=True)
def signed_log_density(p: float, mu: float, c: float, x: float) -> float:
    """Return the log density of that loss under the tilt, less ``ln M``: of +a, or -a for x < 0."""
    w = -c if x < 0.0 else 1.0 + c
    x = abs(x)
    u = x + 0.5 * mu
    a = fixed_size_log_ratio(p, mu, x)
    return -0.5 * u * u + (w + 1.0) * a - mu * x - math.log(p * mu) - LOG_SQRT_2PI


@njit(cache=True)
def signed_modes(p: float, mu: float, c: float) -> tuple[int, float, float, float]:
    """Return how many modes (1 or 2) that density has in x, the modes, and the cut between.

    It grows up to x = 0, where it is continuous; beyond, it is the Poisson-sampled Gaussian's.
    """
    found, first, second, cut = modes(p, mu, 1.0 + c)
    first -= 0.5 * mu
    second -= 0.5 * mu
    cut -= 0.5 * mu
    if found == 1:
        return 1, max(first, 0.0), 0.0, 0.0
    if cut <= 0.0:
        return 1, max(second, 0.0), 0.0, 0.0
    return 2, max(first, 0.0), second, cut


@njit(cache=True)
def level_and_loss(
    p: float, mu: float, w: float, fixed_size: bool, log_norm: float, x: float
) -> tuple[float, float]:
    """Return the density at x, and the loss there."""
    if fixed_size:
        return math.exp(signed_log_density(p, mu, w, x) - log_norm), signed_loss(p, mu, x)
    return math.exp(log_density(p, mu, w, x) - log_norm), log_ratio(p, mu, x)


@njit(cache=True)
def level_set_width(low: float, high: float, fixed_size: bool) -> float:
    """Return how far two losses are apart, rounded down."""
    if fixed_size:
        return (high - low) * (1.0 - 1e-9)
    return max(high - low - 8.0 * ULP * (abs(low) + abs(high)), 0.0)


@njit(cache=True)
def level_sets_of_mode(
    p: float,
    mu: float,
    w: float,
    fixed_size: bool,
    log_norm: float,
    mode: float,
    low: float,
    high: float,
    width: Array,
    mass: Array,
    used: int,
) -> tuple[int, float]:
    """Append the level sets of the density around one mode; return their number and the peak.

    Walking outward from the mode, always to the higher neighbour, gives intervals on each of which
    the density is at least the level reached (it is quasi-concave between ``low`` and ``high``).
    """
    peak, loss = level_and_loss(p, mu, w, fixed_size, log_norm, mode)
    level, loss_left, loss_right = peak, loss, loss
    left, right = mode - STRIDE, mode + STRIDE
    go_left, next_left = level_and_loss(p, mu, w, fixed_size, log_norm, left)
    go_right, next_right = level_and_loss(p, mu, w, fixed_size, log_norm, right)
    while used < width.size:
        go_left = go_left if left > low else 0.0
        go_right = go_right if right < high else 0.0
        lower = max(go_left, go_right)
        width[used] = level_set_width(loss_left, loss_right, fixed_size)
        mass[used] = max(level - lower, 0.0) * width[used] * (1.0 - 1e-6)
        used += 1
        if lower <= 1e-9 * peak:
            break
        level = min(level, lower)
        if go_left >= go_right:
            loss_left = next_left
            left -= STRIDE
            go_left, next_left = level_and_loss(p, mu, w, fixed_size, log_norm, left)
        else:
            loss_right = next_right
            right += STRIDE
            go_right, next_right = level_and_loss(p, mu, w, fixed_size, log_norm, right)
    return used, peak


@njit(cache=True)
def minorant(
    p: float,
    mu: float,
    w: float,
    fixed_size: bool,
    log_norm: float,
    error: float,
    far: float = EVERYWHERE,
) -> tuple[Array, Array, float]:
    """Return a uniform minorant (widths, masses) of the tilted loss density, and its variation.

    ``log_norm`` is an upper bound of ``ln M(c)``, at most ``error`` above it. ``w`` is the power of
    r at c; of a fixed-size sample it is c itself. Only what lies below ``far`` counts.
    """
    width, mass = np.zeros(512), np.zeros(512)
    found, first, second, cut = signed_modes(p, mu, w) if fixed_size else modes(p, mu, w)
    above = math.exp(error) * (1.0 + 1e-6)
    end = min(cut, far) if found == 2 else far
    used, peak = level_sets_of_mode(
        p, mu, w, fixed_size, log_norm, min(first, end), -EVERYWHERE, end, width, mass, 0
    )
    if found == 2 and cut < far:
        used, other = level_sets_of_mode(
            p, mu, w, fixed_size, log_norm, min(second, far), cut, far, width, mass, used
        )
        peak += other
    return width[:used].copy(), mass[:used].copy(), 2.0 * peak * above


level_sets: Final = interruptible(minorant)


@njit(cache=True)
def minorant_exponent(width: Array, mass: Array, variation: float, y: float) -> float:
    """Return ``b(y) <= -ln(|M(c + i v)| / M(c))`` for every ``v >= y``; it grows with ``y``.

    A uniform density of width ``s`` has ``|psi(v)| = |sinc(v s/2)|``, at most the falling envelope
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
