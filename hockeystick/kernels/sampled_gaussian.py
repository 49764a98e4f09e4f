"""The Poisson-subsampled Gaussian: its loss at quadrature nodes, and the bounds on that quadrature.

In units of the noise the output is ``U ~ N(0, 1)`` without the record, and the likelihood ratio of
"with" to "without" is ``r(u) = 1 - p + p exp(mu u - mu^2/2)``. With ``a = ln r`` the loss is
``L = a`` under the density ``phi r`` (remove) and ``L = -a`` under ``phi`` (add): ``M(z)`` is
``Int phi r^w`` with ``w = 1 + z`` or ``-z``, singular at zeros of r alone: ``|Im u| = pi / mu``.
"""

import math
from typing import Final

import numpy as np

from hockeystick.kernels import series
from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.series import Array
from hockeystick.numerics import ULP

LOG_SQRT_2PI = 0.9189385332046727
# About how many cells at most a bound of an integral takes, and one that only guides a search.
CELLS = 4000
FEW_CELLS = 60
# The most nodes of a sum that is only an estimate, and ln of its relative accuracy.
ROUGH_NODES = 20_000
ROUGH = -36.0
# How many times finer than usual they are: at most, and where few of a tilt's outputs are hits.
NARROW = 20.0
NARROWEST = 1000.0
# Hits are rare where a hit is not the likelier at this many standard deviations.
HITS = 6.0
# Beyond this length in u, or in units of the noise where that is larger, there is no quadrature.
LONGEST = 2000.0


@njit(cache=True)
def log_ratio(p: float, mu: float, u: float) -> float:
    """Return ``a(u) = ln r(u)``."""
    t = mu * u - 0.5 * mu * mu
    if t > 30.0:
        return t + math.log(p + (1.0 - p) * math.exp(-t))
    return math.log1p(p * math.expm1(t))


@njit(cache=True)
def quadrature_nodes(
    p: float, mu: float, removing: bool, first: int, count: int, step: float
) -> tuple[Array, Array, Array, Array]:
    """Return loss, log weight, loss error and relative weight error at ``u = (first + j) step``.

    ``step`` must have so few bits that every ``u`` is exact. The errors allow for ``p`` and ``mu``
    being the rounded values of exact parameters.
    """
    loss, log_weight = np.empty(count), np.empty(count)
    loss_error, weight_error = np.empty(count), np.empty(count)
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


nodes: Final = interruptible(quadrature_nodes)


@njit(cache=True)
def rough_nodes(
    p: float, mu: float, removing: bool, first: int, count: int, step: float
) -> tuple[Array, Array]:
    """Return loss and log weight alone, at ``u = (first + j) step``."""
    loss, log_weight = np.empty(count), np.empty(count)
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
    t = mu * u - 0.5 * mu * mu
    if t > 0.0:
        return p / (p + (1.0 - p) * math.exp(-t))
    grown = p * math.exp(t)
    return grown / (1.0 - p + grown)


@njit(cache=True)
def below_rate(p: float, mu: float, w: float, low: float) -> float:
    """Return a lower bound of the slope of ``-u^2/2 + min(w, 0) ln r`` to the left of ``low``."""
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
def coarse_step(p: float, mu: float, removing: bool, c: float) -> float:
    """Return a step that resolves the tilted density; adding at a large c narrows it."""
    square = c * mu * mu
    narrowed = 1.0 if removing else math.sqrt(1.0 + 0.25 * square)
    # Where hits are rare they narrow it less.
    narrowed = min(narrowed, max(NARROW, math.sqrt(1.0 + 8.0 * p * square)))
    return min(0.5, 0.75 / mu) / min(narrowed, NARROWEST)


@njit(cache=True)
def rough_span(p: float, mu: float, removing: bool, c: float) -> tuple[float, float]:
    """Return the range of u for unproven cumulants, relative to ``M - 1``, which is about p^2."""
    return span(p, mu, 1.0 + c if removing else -c, c, ROUGH + 2.0 * math.log(p))


@njit(cache=True)
def within_reach(p: float, mu: float, removing: bool, c: float) -> bool:
    """Return whether M at c takes no more than a few thousand nodes."""
    low, high = rough_span(p, mu, removing, c)
    return high - low < LONGEST * max(1.0, 1.0 / mu)


@njit(cache=True)
def cgf_estimate(p: float, mu: float, removing: bool, c: float) -> tuple[float, float, float]:
    """Return K and two derivatives over few nodes: fast, unproven; no number for a long span.

    The step is widened where it would take too many nodes.
    """
    low, high = rough_span(p, mu, removing, c)
    if not high - low < LONGEST * max(1.0, 1.0 / mu):
        return math.nan, math.nan, math.nan
    step = max(coarse_step(p, mu, removing, c), (high - low) / ROUGH_NODES)
    first = math.floor(low / step)
    count = math.ceil(high / step) - first + 1
    loss, log_weight = rough_nodes(p, mu, removing, first, count, step)
    shift, value, slope, curvature = series.cumulant_sums(loss, log_weight, c)
    total = math.exp(-shift) + value
    slope /= total
    log_mgf = math.log1p(value) if shift == 0.0 else shift + math.log(total)
    return log_mgf, slope, max(curvature / total - slope * slope, 0.0)


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
    cells: int,
) -> float:
    """Bound ``ln Int |F(u + i shift)| du`` over the real line, for every ``z`` in use.

    ``F = phi(u) f`` is the integrand of ``M(z) - 1``, and ``|f| <= |a|^2/2 (|z|^2 + |z|) exp(v arg
    r) max(1, |r|, |r|^w)`` for every ``z`` with ``0 < Re z <= c``, ``|Im z| <= v = height`` and
    ``|z| <= modulus``, where ``w`` is the power at ``c``. Each cell contributes its width times an
    upper bound of the integrand in it, so the result holds whatever the cells; narrower ones are
    only sharper. There are about as many ``cells`` at most.
    """
    peak, total = -math.inf, 0.0
    u = low
    while u < high:
        half = 0.5 * cell_width(mu, w, height, shift, odds_of(p, mu, u), (high - low) / cells)
        log_r, angle, slope, gauss = cell_bounds(p, mu, shift, u + half, half)
        size = math.sqrt(log_r * log_r + angle * angle) + 2.0 * slope
        # The power of |r| is between that at c = 0 and that at the largest c; the turn is free.
        power = max(0.0, log_r + slope, w * log_r + abs(w) * slope)
        term = gauss + power + height * (angle + slope) + math.log(size * size * half)
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
    shift = used = min(0.92 * math.pi / mu, 9.0)
    step = 0.0
    for _ in range(12):
        bound = log_strip_bound(p, mu, w, modulus, height, shift, low, high, FEW_CELLS)
        trial = step_within(bound - log_tolerance, shift)
        if trial > step:
            step, used = trial, shift
        elif trial < 0.95 * step:
            break
        shift *= 0.72
    bound = log_strip_bound(p, mu, w, modulus, height, used, low, high, CELLS)
    return exact_step(step_within(bound - log_tolerance, used), used, bound)


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
def trapezoid_rule(
    p: float, mu: float, removing: bool, c_high: float, y_high: float, log_tolerance: float
) -> tuple[float, int, int, float]:
    """Return step, first node, number of nodes and ln of the error of the rule for M.

    It holds for ``0 < Re z <= c_high`` and ``|Im z| <= y_high``; a step of 0 says that none will
    do.
    """
    w = 1.0 + c_high if removing else -c_high
    modulus = math.hypot(c_high, y_high)
    low, high = span(p, mu, w, modulus, log_tolerance - 2.0)
    step, log_error = widest_step(p, mu, w, modulus, y_high, low, high, log_tolerance)
    if step == 0.0:
        return 0.0, 0, 0, math.inf
    first = math.floor(low / step)
    count = math.ceil(high / step) - first + 1
    log_tail = log_tails(p, mu, w, modulus, 0.0, 0.0, low, high)
    log_tail += math.log1p(step * (high - low))
    return step, first, count, max(log_error, log_tail) + 0.7


@njit(cache=True)
def far_mode(p: float, mu: float, removing: bool, c: float) -> tuple[float, float]:
    """Return ln of the odds of a hit at ``u = (c + 1/2) mu``, and of ``p^w E[e^(w t)]``.

    Adding has no such mode, but its transform turns by ``y mu`` for each unit of u where hits are
    likely, and y is about c: ``c mu`` stands for the odds, unless hits are that likely.
    """
    log_p = math.log(p)
    if not removing:
        rare = log_p + HITS * mu < 0.0
        return (math.log(c * mu), 0.0) if rare else (-math.inf, -math.inf)
    return log_p + c * mu * mu, (1.0 + c) * (log_p + 0.5 * c * mu * mu)
