"""Bounds on what the tail contributes: the Poisson-subsampled Gaussian between smooth windows.

``J(z) = Int phi(u) r(u)^(1+z) W(u) V(u) du`` weighs the output u with ``W(u) = Phi((u - edge) /
width)``, and with ``V(u) = Phi((top - u) / top_width)`` where there is a top. The integrand is
analytic in the same strip as without them, and ``|Phi(x + iy)| <= exp(y^2 / 2) Phi(x)``. Only the
removing direction (w > 0) is treated: the losses of adding a record are bounded above.
"""

import math

from hockeystick.kernels.compiled import njit
from hockeystick.kernels.sampled_gaussian import (
    CELLS,
    LOG_SQRT_2PI,
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


@njit(cache=True)
def log_normal_cdf(x: float) -> float:
    """Return ``ln Phi(x)``; below -30 by its asymptotic series, to 1e-8 relative in Phi."""
    if x > -30.0:
        return math.log(0.5 * math.erfc(-x * math.sqrt(0.5)))
    square = 1.0 / (x * x)
    series = 1.0 - square * (1.0 - 3.0 * square * (1.0 - 5.0 * square))
    return -0.5 * x * x - math.log(-x) - LOG_SQRT_2PI + math.log(series)


@njit(cache=True)
def log_window_bound(
    p: float,
    mu: float,
    w: float,
    height: float,
    shift: float,
    edge: float,
    width: float,
    top: float,
    top_width: float,
    low: float,
    high: float,
) -> float:
    """Bound ``ln Int |phi r^(w + i v) W V|`` along ``Im u = shift``.

    For all ``|v| <= height`` where height is positive (the worst sign), and for all
    ``v >= -height`` turned the way that decays where it is negative: ``|r^(w + iv)| = |r|^w
    exp(-v arg r)`` and ``arg r`` lies in ``[0, mu shift]``. Cells contribute upper bounds; outside
    ``[low, high]`` the integrand falls faster than a Gaussian: ``high`` must lie above ``w mu``, or
    above ``top + top_width^2 w mu``, and ``low`` below 0.
    """
    theta = mu * shift
    least = (high - low) / CELLS
    peak, total = -math.inf, 0.0
    u = low
    while u < high:
        smooth = cell_width(mu, w, abs(height), shift, odds_of(p, mu, u), least)
        half = 0.5 * min(smooth, max(0.5 * width, 0.1 * abs(u - edge), least))
        if top < math.inf:
            half = min(half, 0.5 * max(0.5 * top_width, 0.1 * abs(u - top), least))
        log_r, angle, slope, gauss = cell_bounds(p, mu, shift, u + half, half)
        kept = log_normal_cdf((u + 2.0 * half - edge) / width)
        if top < math.inf:
            kept += log_normal_cdf((top - u) / top_width)
        turn = height * (angle + slope) if height > 0.0 else height * max(angle - slope, 0.0)
        term = gauss + kept + w * (log_r + slope) + turn + math.log(2.0 * half)
        peak, total = log_add(peak, total, term)
        u += 2.0 * half
    turned = height * (theta if height > 0.0 else angle_at(p, mu, shift, high))
    # Above the top V itself helps.
    past = max(high - top, 0.0) / top_width
    above = turned - 0.5 * high * high - 0.5 * past * past + w * log_ratio(p, mu, high)
    above -= math.log(high - w * mu + past / top_width)
    below = max(height, 0.0) * angle_at(p, mu, shift, low) - 0.5 * low * low - math.log(-low)
    inside = peak + math.log(total)
    largest = max(inside, above, below)
    sums = math.exp(inside - largest) + math.exp(above - largest) + math.exp(below - largest)
    spread = 0.5 * shift * shift * (1.0 + 1.0 / (width * width))
    if top < math.inf:
        spread += 0.5 * (shift / top_width) * (shift / top_width)
    return largest + math.log(sums) + spread - LOG_SQRT_2PI + 1e-9


@njit(cache=True)
def log_nodes_left_out(
    p: float,
    mu: float,
    w: float,
    top: float,
    top_width: float,
    low: float,
    high: float,
    step: float,
) -> float:
    """Bound the logarithm of the sum over the nodes outside ``[low, high]``, on the real line.

    A decreasing function that falls at least at a rate sums, beyond a point, to at most its value
    there times ``1 / rate + step``.
    """
    past = max(high - top, 0.0) / top_width
    above = -0.5 * high * high - 0.5 * past * past + w * log_ratio(p, mu, high)
    above += math.log(1.0 / (high - w * mu + past / top_width) + step)
    below = -0.5 * low * low + math.log(-1.0 / low + step)
    largest = max(above, below)
    return largest + math.log(math.exp(above - largest) + math.exp(below - largest)) - LOG_SQRT_2PI


@njit(cache=True)
def widest_window_step(
    p: float,
    mu: float,
    w: float,
    height: float,
    edge: float,
    width: float,
    top: float,
    top_width: float,
    low: float,
    high: float,
    log_tolerance: float,
) -> tuple[float, float]:
    """Return the widest nine-bit step proven to err less than the tolerance, and ln of its error.

    By the theorem of ``sampled_gaussian.widest_step``; 0 says that none will do.
    """
    shift = min(0.92 * math.pi / mu, 9.0)
    step = log_norm = 0.0
    used = shift
    for _ in range(16):
        bound = log_window_bound(p, mu, w, height, shift, edge, width, top, top_width, low, high)
        trial = step_within(bound - log_tolerance, shift)
        if trial > step:
            step, used, log_norm = trial, shift, bound
        elif trial < 0.8 * step:
            break
        shift *= 0.72
    return exact_step(step, used, log_norm)


@njit(cache=True)
def log_decay(
    p: float,
    mu: float,
    w: float,
    y: float,
    edge: float,
    width: float,
    top: float,
    top_width: float,
    low: float,
    high: float,
) -> float:
    """Bound ``ln |J(c + i v)|`` for every ``v >= y`` by the best of several shifted contours."""
    # About ``exp(shift^2 / 2 width^2 - y mu s shift)`` at the edge, s the odds there.
    best_about = width * width * y * mu * odds_of(p, mu, edge)
    shift, tries = 0.92 * math.pi / mu, 9
    while tries > 3 and shift > 5.0 * best_about:
        shift *= 0.68
        tries -= 1
    best = math.inf
    for _ in range(tries):
        bound = log_window_bound(p, mu, w, -y, shift, edge, width, top, top_width, low, high)
        if bound > best + 3.0:
            break
        best = min(best, bound)
        # Losses that large hardly happen, let alone count.
        if best < -1000.0:
            break
        shift *= 0.68
    return best


@njit(cache=True)
def bulk_part(
    loss: Array,
    log_weight: Array,
    loss_error: Array,
    weight_error: Array,
    tail: Array,
    bulk: Array,
    c: float,
) -> tuple[float, float]:
    """Return ``A(c) - 1 = E[(1 - W) (exp(c L) - 1)] - E[W]`` and a bound on its round-off."""
    total = error = 0.0
    for j in range(loss.size):
        x = c * loss[j]
        kept = log_weight[j] + bulk[j]
        gain = math.exp(kept + x) - math.exp(kept) if x > 0.5 else math.exp(kept) * math.expm1(x)
        lost = math.exp(log_weight[j] + tail[j])
        total += gain - lost
        relative = weight_error[j] + ULP * (loss.size + 16.0 + 2.0 * (abs(kept) + abs(x)))
        change = math.exp(kept + x) if x > 0.5 else math.exp(kept)
        error += (abs(gain) + lost) * relative + 2.0 * change * c * loss_error[j]
    return total, error
