"""The Poisson-subsampled Gaussian without its far outputs: bounds on the quadrature of ``A``.

An output u is far with probability ``W(u) = Phi((u - edge) / width)``. The near ones, weighed with
``1 - W(u) = Phi((edge - u) / width)``, have the transform

    A(z) = E_P[(1 - W) exp(z L)] = 1 + E_P[(1 - W) (e2(z L) + z e2(-L))] - J_P - z (J_P - J_Q)

with ``e2(x) = exp(x) - 1 - x`` and the masses ``J_P = E_P[W]``, ``J_Q = E_Q[W]`` of the far
outputs. The mean on the right is summed over nodes; its integrand is that of
``kernels.sampled_gaussian`` times the window, and ``|Phi(x + iy)| <= exp(y^2 / 2) Phi(x)``.

For ``|arg r| <= mu |Im u| <= pi / 2`` one has ``|r| >= 1 - p``, so that in the adding direction
``|r|^w <= (1-p)^w`` for w < 0, beyond the range of u that is walked through as well as in it.
"""

import math

import numpy as np

from hockeystick.kernels import sampled_gaussian, series
from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.jumps import log_normal_cdf
from hockeystick.kernels.sampled_gaussian import (
    CELLS,
    LOG_SQRT_2PI,
    ROUGH_NODES,
    angle_at,
    cell_bounds,
    cell_width,
    exact_step,
    log_add,
    log_ratio,
    odds_of,
    step_within,
)
from hockeystick.kernels.series import Array
from hockeystick.numerics import ULP

# Cells of half a width below and above the far outputs that count.
CELLS_BELOW = 40
CELLS_ABOVE = 24


@interruptible
@njit(cache=True)
def windows(
    first: int, count: int, step: float, edge: float, width: float, side: float
) -> tuple[Array, Array]:
    """Return ``ln Phi(side (u - edge) / width)``, ``u = (first + j) step``, and its absolute error.

    ``ln W`` for the side 1, ``ln(1 - W)`` for -1.
    """
    log_window, error = np.empty(count), np.empty(count)
    for j in range(count):
        u = (first + j) * step
        x = side * (u - edge) / width
        log_window[j] = log_normal_cdf(x)
        # d ln Phi / dx is at most -x + 1 below 0, and falls like the density above.
        slope = 1.0 - x if x < 0.0 else math.exp(-0.5 * x * x)
        error[j] = ULP * (16.0 + 4.0 * slope * (abs(u) + abs(edge)) / width)
        if x <= -30.0:
            error[j] += 1e-8
    return log_window, error


@njit(cache=True)
def log_beyond(
    p: float,
    mu: float,
    w: float,
    modulus: float,
    height: float,
    shift: float,
    edge: float,
    width: float,
    high: float,
) -> float:
    """Bound the logarithm of ``Int |F(u + i shift)| du`` above ``high >= max(edge, mu)``.

    On a cell of u each factor is at most what it is at one of its ends: ``|a| <= 2 p e^t /
    cos(theta/2)``, ``|r|`` and ``arg r`` grow, the density and the window fall. Beyond the cells,
    where the window is at most ``exp(-x^2/2)``, ``x = (u - edge) / width``, the integrand falls at
    least at the rate ``u - (2 + max(w, 1)) mu + x / width``. Each cell counts as longer by a
    ``width``, so that sums over nodes no further apart are below the same bound.
    """
    cosine = math.cos(0.5 * mu * shift)
    square = width * width
    steep, falling = max(w, 1.0), -max(-w, 0.0) * math.log1p(-p)
    last = max(((2.0 + steep) * mu * square + edge) / (1.0 + square) + 8.0, high)
    peak, total = -math.inf, 0.0
    u = high
    while u < last:
        end = u + max(0.5 * width, 0.1 * (u - edge))
        term = (
            log_normal_cdf((edge - u) / width)
            - 0.5 * u * u
            + 2.0 * (mu * end - 0.5 * mu * mu)
            + steep * log_ratio(p, mu, end)
            + height * angle_at(p, mu, shift, end)
            + math.log(end - u + width)
        )
        peak, total = log_add(peak, total, term)
        u = end
    past = (u - edge) / width
    rate = u - (2.0 + steep) * mu + past / width
    term = (
        height * mu * shift
        - 0.5 * u * u
        - 0.5 * past * past
        + 2.0 * (mu * u - 0.5 * mu * mu)
        + steep * log_ratio(p, mu, u)
        + math.log(1.0 / rate + width)
    )
    peak, total = log_add(peak, total, term)
    scale = math.log(2.0 * p * p * (modulus * modulus + modulus)) - 2.0 * math.log(cosine)
    scale += 0.5 * shift * shift * (1.0 + 1.0 / square) - LOG_SQRT_2PI
    return peak + math.log(total) + scale + falling


@njit(cache=True)
def log_below(
    p: float,
    mu: float,
    w: float,
    modulus: float,
    height: float,
    shift: float,
    width: float,
    low: float,
) -> float:
    """Bound the logarithm of ``Int |F(u + i shift)| du`` below ``low <= -1``.

    There ``|a| <= 2 p / ((1-p) cos(theta/2))``, ``|r| <= 1``, ``|r|^w <= (1-p)^min(w, 0)`` and the
    density falls at least at the rate ``-low``; sums over nodes at most a width apart are below the
    same bound.
    """
    theta = mu * shift
    value = height * angle_at(p, mu, shift, low) - 0.5 * low * low
    value -= (2.0 + max(-w, 0.0)) * math.log1p(-p)
    scale = math.log(2.0 * p * p * (modulus * modulus + modulus))
    scale -= 2.0 * math.log(math.cos(0.5 * theta)) + LOG_SQRT_2PI
    scale += 0.5 * shift * shift * (1.0 + 1.0 / (width * width))
    return scale + value + math.log(width - 1.0 / low)


@njit(cache=True)
def rough_end(p: float, mu: float, w: float, edge: float, width: float) -> float:
    """Return where the near outputs about end: nine widths above what the window and r^w favour."""
    x = 0.0
    for _ in range(4):
        x = min(width * max(w, 0.0) * mu * odds_of(p, mu, edge + width * x), 1e3)
    return max(min(edge + width * (x + 9.0), (1.0 + max(w, 0.0)) * mu + 9.0), mu + 1.0)


@njit(cache=True)
def near_span(
    p: float, mu: float, w: float, modulus: float, edge: float, width: float, log_tolerance: float
) -> tuple[float, float, float]:
    """Return a range of ``u``, and ln of what the sum outside is proven to be below."""
    low, high = -8.0, max(rough_end(p, mu, w, edge, width), edge)
    below = log_below(p, mu, w, modulus, 0.0, 0.0, width, low)
    while below > log_tolerance and low > -100.0:
        low -= 0.5
        below = log_below(p, mu, w, modulus, 0.0, 0.0, width, low)
    above = log_beyond(p, mu, w, modulus, 0.0, 0.0, edge, width, high)
    for _ in range(40):
        if above <= log_tolerance:
            break
        high += max(width, 0.1 * (high - edge))
        above = log_beyond(p, mu, w, modulus, 0.0, 0.0, edge, width, high)
    return low, high, max(above, below) + 0.7


@njit(cache=True)
def log_near_strip_bound(
    p: float,
    mu: float,
    w: float,
    modulus: float,
    height: float,
    shift: float,
    edge: float,
    width: float,
    low: float,
    high: float,
) -> float:
    """Bound ``ln Int |F(u + i shift)| du`` over the real line, for every ``z`` in use.

    As ``sampled_gaussian.log_strip_bound``, with the window, which falls.
    """
    least = (high - low) / CELLS
    peak, total = -math.inf, 0.0
    u = low
    while u < high:
        smooth = cell_width(mu, w, height, shift, odds_of(p, mu, u), least)
        half = 0.5 * min(smooth, max(0.5 * width, 0.1 * abs(u - edge), least))
        log_r, angle, slope, gauss = cell_bounds(p, mu, shift, u + half, half)
        size = math.sqrt(log_r * log_r + angle * angle) + 2.0 * slope
        power = max(0.0, log_r + slope, w * log_r + abs(w) * slope)
        kept = log_normal_cdf((edge - u) / width)
        turn = height * (angle + slope)
        term = gauss + kept + 2.0 * math.log(size) + power + turn + math.log(half)
        peak, total = log_add(peak, total, term)
        u += 2.0 * half
    spread = 0.5 * shift * shift * (1.0 + 1.0 / (width * width))
    inside = peak + math.log(total) + math.log(modulus * modulus + modulus) + spread - LOG_SQRT_2PI
    above = log_beyond(p, mu, w, modulus, height, shift, edge, width, high)
    below = log_below(p, mu, w, modulus, height, shift, width, low)
    top = max(inside, above, below)
    sums = math.exp(inside - top) + math.exp(above - top) + math.exp(below - top)
    return top + math.log(sums) + 1e-7


@njit(cache=True)
def widest_near_step(
    p: float,
    mu: float,
    w: float,
    modulus: float,
    height: float,
    edge: float,
    width: float,
    low: float,
    high: float,
    log_tolerance: float,
) -> tuple[float, float]:
    """Return the widest nine-bit step proven to err less than the tolerance, and ln of its error.

    By the theorem of ``sampled_gaussian.widest_step``; 0 says that none will do.
    """
    shift = min((0.92 if w > 0.0 else 0.5) * math.pi / mu, 9.0)
    step = log_norm = 0.0
    used = shift
    for _ in range(16):
        bound = log_near_strip_bound(p, mu, w, modulus, height, shift, edge, width, low, high)
        # A step of at most a width is what the bounds beyond the nodes assume.
        trial = min(step_within(bound - log_tolerance, shift), width)
        if trial > step:
            step, used, log_norm = trial, shift, bound
        elif trial < 0.8 * step:
            break
        shift *= 0.72
    return exact_step(step, used, log_norm)


@njit(cache=True)
def near_cumulant_sums(
    p: float, mu: float, removing: bool, c: float, edge: float, width: float, step: float
) -> tuple[float, float, float, float]:
    """Return ``series.cumulant_sums`` over near outputs; the far masses are still to be taken off.

    The nodes are about as many as an estimate needs.
    """
    low, high = -9.0, rough_end(p, mu, 1.0 + c if removing else -c, edge, width)
    step = max(step, (high - low) / ROUGH_NODES)
    first = math.floor(low / step)
    count = math.ceil(high / step) - first + 1
    loss, log_weight = sampled_gaussian.rough_nodes(p, mu, removing, first, count, step)
    for j in range(count):
        log_weight[j] += log_normal_cdf((edge - (first + j) * step) / width)
    return series.cumulant_sums(loss, log_weight, c)


@njit(cache=True)
def log_far_power(p: float, mu: float, order: float, edge: float, width: float) -> float:
    """Bound ``ln E_Q[W exp(-order L)]`` from above, for ``order > 0``.

    On each cell of u both ``W``, which grows, and ``exp(-order L)``, which falls, are at most what
    they are at one of its ends, and the mass is at most its width times the density's largest
    value. Beyond the last cell ``W <= 1``. Before the first one ``exp(-L) <= 1 / (1 - p)`` and
    ``W <= exp(-(edge - u)^2 / 2 width^2)``, which makes a Gaussian of the density.
    """
    half = 0.5 * width
    square = 1.0 + width * width
    mean, deviation = edge / square, width / math.sqrt(square)
    start = min(mean, edge) - CELLS_BELOW * half
    peak = log_normal_cdf((start - mean) / deviation) + math.log(deviation)
    peak -= 0.5 * edge * edge / square + order * math.log1p(-p)
    total = 1.0
    cells = math.ceil((edge - start) / half) + CELLS_ABOVE
    for k in range(cells):
        u = start + k * half
        nearest = u if u > 0.0 else min(u + half, 0.0)
        log_mass = math.log(half) - LOG_SQRT_2PI - 0.5 * nearest * nearest
        term = log_normal_cdf((u + half - edge) / width) - order * log_ratio(p, mu, u) + log_mass
        peak, total = log_add(peak, total, term)
    end = start + cells * half
    last = log_normal_cdf(-end) - order * log_ratio(p, mu, end)
    peak, total = log_add(peak, total, last)
    found = peak + math.log(total)
    # The round-off of the exponents: of the loss, times the order, and of the squares.
    reach = max(abs(start), abs(end))
    size = order * (1.0 + mu * (reach + mu)) + reach * reach + (reach / width) * (reach / width)
    return found + 1e-7 + 16.0 * ULP * (size + abs(found))
