"""The Poisson-subsampled Gaussian: its loss at quadrature nodes, and the bounds on that quadrature.

In units of the noise the output is ``U``; without the record ``U ~ N(0, 1)``, and the likelihood
ratio of "with" to "without" is ``r(u) = 1 - p + p exp(mu u - mu^2/2)``. With ``a = ln r`` the
loss of removing the record is ``L = a`` under the density ``phi r``, that of adding it is
``L = -a`` under ``phi``. Either way ``M(z) = Int phi(u) r(u)^w du`` with ``w = 1 + z`` (remove) or
``w = -z`` (add). The only singularities are the zeros of ``r``, at ``|Im u| = pi / mu``.
"""

import math

import numpy as np
from numba import njit

from hockeystick._kernels import series
from hockeystick._kernels.interrupts import interruptible
from hockeystick._kernels.series import ULP, Array

LOG_SQRT_2PI = 0.9189385332046727
# About how many cells at most a bound of an integral takes.
CELLS = 4000
# How many nodes at most a sum takes that only steers.
ROUGH_NODES = 20_000


@njit(cache=True)
def log_ratio(p: float, mu: float, u: float) -> float:
    """Return ``a(u) = ln r(u)``."""
    t = mu * u - 0.5 * mu * mu
    if t > 30.0:
        return t + math.log(p + (1.0 - p) * math.exp(-t))
    return math.log1p(p * math.expm1(t))


@interruptible
@njit(cache=True)
def nodes(
    p: float, mu: float, removing: bool, first: int, count: int, step: float
) -> tuple[Array, Array, Array, Array]:
    """Return loss, log weight, loss error and relative weight error at ``u = (first + j) step``.

    ``step`` must have so few bits that every ``u`` is exact. The errors allow for ``p`` and ``mu``
    being the rounded values of exact parameters.
    """
    loss = np.empty(count)
    log_weight = np.empty(count)
    loss_error = np.empty(count)
    weight_error = np.empty(count)
    log_step = math.log(step) - LOG_SQRT_2PI
    for j in range(count):
        u = (first + j) * step
        a = log_ratio(p, mu, u)
        # d a / d t = odds; d a / d ln p = (r - 1) / r = pull.
        odds = odds_of(p, mu, u)
        pull = abs(math.expm1(-a))
        error = ULP * (4.0 * odds * (abs(mu * u) + mu * mu) + 8.0 * pull + 4.0 * abs(a))
        loss[j] = a if removing else -a
        log_weight[j] = log_step - 0.5 * u * u + (a if removing else 0.0)
        loss_error[j] = error
        weight_error[j] = ULP * (16.0 + u * u + 2.0 * abs(a)) + (error if removing else 0.0)
    return loss, log_weight, loss_error, weight_error


@njit(cache=True)
def rough_nodes(
    p: float, mu: float, removing: bool, first: int, count: int, step: float
) -> tuple[Array, Array]:
    """Return loss and log weight alone, at ``u = (first + j) step``."""
    loss = np.empty(count)
    log_weight = np.empty(count)
    log_step = math.log(step) - LOG_SQRT_2PI
    for j in range(count):
        u = (first + j) * step
        a = log_ratio(p, mu, u)
        loss[j] = a if removing else -a
        log_weight[j] = log_step - 0.5 * u * u + (a if removing else 0.0)
    return loss, log_weight


@njit(cache=True)
def odds_of(p: float, mu: float, u: float) -> float:
    """Return ``s(u) = d ln r / d t``, the chance of having been sampled given the output."""
    return math.exp(math.log(p) + mu * u - 0.5 * mu * mu - log_ratio(p, mu, u))


@njit(cache=True)
def below_rate(p: float, mu: float, w: float, low: float) -> float:
    """Return how fast ``-u^2/2 + min(w, 0) ln r`` falls, at least, to the left of ``low``."""
    return -low + min(w, 0.0) * mu * odds_of(p, mu, low)


@njit(cache=True)
def cell_width(
    mu: float, w: float, height: float, shift: float, odds: float, least: float
) -> float:
    """Return a width of cell over which bounds of ``r^w`` are not much larger than its values.

    Cells narrower than ``least`` are widened to it: there are never too many to walk through.
    """
    turning = max(1.5 / (1.0 + height * mu * odds), 0.12 * shift)
    growing = 1.5 / (1.0 + abs(w) * mu * odds)
    if w < 0.0:
        # Where w < 0 makes r^w small, a bound some percent off in the exponent is good enough.
        growing = max(growing, 0.02 / mu)
    return min(1.0 / mu, max(min(growing, turning, 0.25), least))


@njit(cache=True)
def cell_bounds(
    p: float, mu: float, shift: float, middle: float, half: float
) -> tuple[float, float, float, float]:
    """Return what bounds an integrand on the cell ``|Re u - middle| <= half``, ``Im u = shift``.

    ``ln|r|`` and ``arg r`` at the middle, how far either may be from that within the cell, and the
    largest ``-u^2/2`` of the real parts in it.
    """
    theta = mu * shift
    t = mu * middle - 0.5 * mu * mu
    slope = half * mu * math.exp(half * mu) / math.cos(0.5 * theta)
    if t > 300.0:
        log_r = t + math.log(p)
        angle = theta
    else:
        grown = p * math.exp(t)
        re = 1.0 - p + grown * math.cos(theta)
        im = grown * math.sin(theta)
        log_r = 0.5 * math.log(re * re + im * im)
        angle = math.atan2(im, re)
        slope *= grown / (1.0 - p + grown)
    nearest = max(abs(middle) - half, 0.0)
    return log_r, angle, slope, -0.5 * nearest * nearest


@njit(cache=True)
def angle_at(p: float, mu: float, shift: float, u: float) -> float:
    """Return ``arg r(u + i shift)``, which grows with u from 0 to ``mu shift``."""
    theta = mu * shift
    t = mu * u - 0.5 * mu * mu
    if t > 300.0:
        return theta
    grown = p * math.exp(t)
    return math.atan2(grown * math.sin(theta), 1.0 - p + grown * math.cos(theta))


@njit(cache=True)
def log_add(peak: float, total: float, term: float) -> tuple[float, float]:
    """Return ``exp(peak) total + exp(term)`` in the same form, the peak being the largest term."""
    if term > peak:
        return term, total * math.exp(peak - term) + 1.0
    return peak, total + math.exp(term - peak)


@njit(cache=True)
def log_tails(
    p: float,
    mu: float,
    w: float,
    modulus: float,
    height: float,
    shift: float,
    low: float,
    high: float,
) -> float:
    """Bound the logarithm of ``Int |F(u + i shift)| du`` outside ``[low, high]``.

    Above, ``|a| <= 2 p e^t / cos(theta/2)`` and ``-u^2/2 + 2 t + max(w, 1) ln r`` falls at least as
    fast as ``high - (2 + max(w, 1)) mu``; below, ``|a| <= 2 p / ((1-p) cos(theta/2))`` and
    ``-u^2/2 + min(w, 0) ln r`` falls at least as fast as ``below_rate``.
    """
    theta = mu * shift
    cosine = math.cos(0.5 * theta)
    scale = (
        math.log(2.0 * p * p * (modulus * modulus + modulus))
        + 0.5 * shift * shift
        - (2.0 + max(-w, 0.0)) * math.log(cosine)
        - LOG_SQRT_2PI
    )
    steep = max(w, 1.0)
    above = (
        height * theta
        - 0.5 * high * high
        + 2.0 * (mu * high - 0.5 * mu * mu)
        + steep * log_ratio(p, mu, high)
        - math.log(high - (2.0 + steep) * mu)
    )
    below = (
        height * angle_at(p, mu, shift, low)
        - 0.5 * low * low
        + min(w, 0.0) * log_ratio(p, mu, low)
        - 2.0 * math.log1p(-p)
        - math.log(below_rate(p, mu, w, low))
    )
    top = max(above, below)
    return scale + top + math.log(math.exp(above - top) + math.exp(below - top))


@njit(cache=True)
def span(
    p: float, mu: float, w: float, modulus: float, log_tolerance: float
) -> tuple[float, float]:
    """Return the shortest range of ``u`` outside which the sum is proven below tolerance."""
    reach = 5.0
    while True:
        low = -reach
        while below_rate(p, mu, w, low) < reach:
            low *= 1.05
        high = (2.0 + max(w, 1.0)) * mu + reach
        tails = log_tails(p, mu, w, modulus, 0.0, 0.0, low, high)
        # The sum over nodes beyond the range is at most (1 + reach * step) times the integral.
        if tails + math.log1p(reach) < log_tolerance or reach > 200.0:
            return low, high
        reach += 0.25


@njit(cache=True)
def cumulant_sums(
    p: float, mu: float, removing: bool, c: float, step: float, log_tolerance: float, longest: float
) -> tuple[float, float, float, float]:
    """Return ``series.cumulant_sums`` over nodes of a given step; no number for too long a span.

    The step is widened where it would take too many nodes.
    """
    low, high = span(p, mu, 1.0 + c if removing else -c, c, log_tolerance)
    if not high - low < longest:
        return math.nan, math.nan, math.nan, math.nan
    step = max(step, (high - low) / ROUGH_NODES)
    first = math.floor(low / step)
    count = math.ceil(high / step) - first + 1
    loss, log_weight = rough_nodes(p, mu, removing, first, count, step)
    return series.cumulant_sums(loss, log_weight, c)


@njit(cache=True)
def log_mgfs(
    p: float, mu: float, removing: bool, orders: Array, step: float, log_tolerance: float
) -> Array:
    """Return ``K(c)`` at several orders, by the same nodes of a given step: fast and unproven."""
    low, high = math.inf, -math.inf
    for c in orders:
        start, end = span(p, mu, 1.0 + c if removing else -c, c, log_tolerance)
        low, high = min(low, start), max(high, end)
    step = max(step, (high - low) / ROUGH_NODES)
    first = math.floor(low / step)
    count = math.ceil(high / step) - first + 1
    loss, log_weight = rough_nodes(p, mu, removing, first, count, step)
    return series.log_mgfs(loss, log_weight, orders)


@njit(cache=True)
def log_strip_bound(
    p: float,
    mu: float,
    w: float,
    modulus: float,
    height: float,
    shift: float,
    low: float,
    high: float,
) -> float:
    """Bound ``ln Int |F(u + i shift)| du`` over the real line, for every ``z`` in use.

    ``F = phi(u) f`` is the integrand of ``M(z) - 1``, and ``|f| <= |a|^2/2 (|z|^2 + |z|) exp(v arg
    r) max(1, |r|, |r|^w)`` for every ``z`` with ``0 < Re z <= c``, ``|Im z| <= v = height`` and
    ``|z| <= modulus``, where ``w`` is the power at ``c``. Each cell contributes its width times an
    upper bound of the integrand in it, so the result holds whatever the cells; narrower ones are
    only sharper.
    """
    peak, total = -math.inf, 0.0
    u = low
    while u < high:
        half = 0.5 * cell_width(mu, w, height, shift, odds_of(p, mu, u), (high - low) / CELLS)
        log_r, angle, slope, gauss = cell_bounds(p, mu, shift, u + half, half)
        size = math.sqrt(log_r * log_r + angle * angle) + 2.0 * slope
        # The power of |r| is between that at c = 0 and that at the largest c; the turn is free.
        power = max(0.0, log_r + slope, w * log_r + abs(w) * slope)
        term = gauss + 2.0 * math.log(size) + power + height * (angle + slope) + math.log(half)
        peak, total = log_add(peak, total, term)
        u += 2.0 * half
    scale = math.log(modulus * modulus + modulus) + 0.5 * shift * shift - LOG_SQRT_2PI
    inside = peak + math.log(total) + scale
    outside = log_tails(p, mu, w, modulus, height, shift, low, high)
    return max(inside, outside) + math.log1p(math.exp(-abs(inside - outside))) + 1e-9


@njit(cache=True)
def widest_step(
    p: float,
    mu: float,
    w: float,
    modulus: float,
    height: float,
    low: float,
    high: float,
    log_tolerance: float,
) -> tuple[float, float]:
    """Return the widest trapezoid step proven to err less than the tolerance, and ln of its error.

    For an integrand analytic in ``|Im u| < d`` the trapezoid rule of step ``h`` errs by at most
    ``2 N(d) / (exp(2 pi d / h) - 1)`` with ``N(d)`` the larger integral of ``|F|`` along the two
    edges (Trefethen and Weideman 2014, theorem 5.1). The step keeps nine bits, so that the nodes
    are exact. A step of 0 says that none will do.
    """
    shift = min(0.92 * math.pi / mu, 9.0)
    step = log_norm = 0.0
    used = shift
    for _ in range(12):
        bound = log_strip_bound(p, mu, w, modulus, height, shift, low, high)
        trial = step_within(bound - log_tolerance, shift)
        if trial > step:
            step, used, log_norm = trial, shift, bound
        elif trial < 0.8 * step:
            break
        shift *= 0.72
    return exact_step(step, used, log_norm)


@njit(cache=True)
def step_within(log_excess: float, shift: float) -> float:
    """Return a step whose error is below tolerance where the bound exceeds it by so much."""
    return 2.0 * math.pi * shift / (max(log_excess, 0.0) + 1.4)


@njit(cache=True)
def exact_step(step: float, shift: float, log_norm: float) -> tuple[float, float]:
    """Return the step cut to nine bits and ln of its error; 0 and inf for one out of range."""
    if not 1e-6 < step < 1e6:
        return 0.0, math.inf
    unit = 2.0 ** (math.floor(math.log2(step)) - 8.0)
    step = math.floor(step / unit) * unit
    decay = 2.0 * math.pi * shift / step
    return step, 0.7 + log_norm - decay - math.log1p(-math.exp(-decay))


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
