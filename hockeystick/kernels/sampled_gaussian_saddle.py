"""Where the contour of a composition of Poisson-subsampled Gaussians goes: its saddle, its window.

The runs are given by arrays: rates, distances of the means, counts. What is found proves nothing.
"""

import math

from hockeystick.kernels.compiled import njit
from hockeystick.kernels.contour_sums import log_cks_factor
from hockeystick.kernels.sampled_gaussian import cgf_estimate, coarse_step, far_mode
from hockeystick.kernels.series import Array

# Newton's steps for ln c: how many, how long at most, and how short the last one.
STEPS = 40
LONGEST_STEP = 1.0
LAST_STEP = 1e-3
# The largest c; and the most nodes of an unproven K, of outputs up to about c mu + WIDTH.
FARTHEST = 1e8
MOST_ROUGH_NODES = 3000.0
WIDTH = 20.0
# A c that is so close in ln c to those where rare outputs count is one of them.
CLOSE = 0.02
# A window is compared with those by orders this much nearer to c.
NEARER = 0.7
COMPARISONS = 6


@njit(cache=True)
def total(
    p: Array, mu: Array, count: Array, removing: bool, c: float
) -> tuple[float, float, float]:
    """Return K of all runs and two derivatives, unproven; no number where one is out of reach."""
    value = first = second = 0.0
    for j in range(p.size):
        one, slope, curvature = cgf_estimate(p[j], mu[j], removing, c)
        value += count[j] * one
        first += count[j] * slope
        second += count[j] * curvature
    return value, first, second


@njit(cache=True)
def saddle_terms(k: tuple[float, float, float], c: float) -> tuple[float, float, float]:
    """Return the epsilon whose saddle is c, the estimate of ln delta there, and the curvature."""
    value, first, second = k
    epsilon = first - 1.0 / c - 1.0 / (1.0 + c)
    curvature = second + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c))
    log_integrand = value - epsilon * c - math.log(c) - math.log1p(c)
    return epsilon, log_integrand - 0.5 * math.log(2.0 * math.pi * curvature), curvature


@njit(cache=True)
def is_far(
    p: Array, mu: Array, count: Array, removing: bool, c: float, far: tuple[float, float, float]
) -> bool:
    """Return whether rare outputs count under a tilt by c, or c is too large: not for this route.

    ``far`` is the least ln of the odds of a hit, and the least ln of the mode's weight in all runs,
    which is told to a part of ``1 + slack c``.
    """
    least_log_odds, least_log_weight, slack = far
    if c > FARTHEST:
        return True
    for j in range(p.size):
        if c * mu[j] + WIDTH > MOST_ROUGH_NODES * coarse_step(p[j], mu[j], removing, c):
            return True
        log_odds, log_weight = far_mode(p[j], mu[j], removing, c)
        least = least_log_weight * (1.0 + slack * c) - math.log(count[j])
        if log_odds > least_log_odds and log_weight > least:
            return True
    return False


@njit(cache=True)
def saddle(
    p: Array,
    mu: Array,
    count: Array,
    removing: bool,
    goal: float,
    at_epsilon: bool,
    start: float,
    far: tuple[float, float, float],
) -> float:
    """Return the c whose epsilon, or else whose estimate of ln delta, is the goal; 0 for none.

    By Newton's rule for ln c, without the derivative of the estimate's last term. There is none
    where rare outputs count.
    """
    log_c, near = math.log(start), -math.inf
    for _ in range(STEPS):
        c = math.exp(log_c)
        if is_far(p, mu, count, removing, c, far):
            if log_c - near < CLOSE:
                return 0.0
            log_c = log_c - LONGEST_STEP if near == -math.inf else 0.5 * (log_c + near)
            continue
        near = log_c
        epsilon, log_delta, curvature = saddle_terms(total(p, mu, count, removing, c), c)
        if at_epsilon:
            step = (goal - epsilon) / (c * curvature)
        else:
            step = (log_delta - goal) / (c * c * curvature)
        if not abs(step) < math.inf:
            return 0.0
        log_c += min(max(step, -LONGEST_STEP), LONGEST_STEP)
        if abs(step) < LAST_STEP:
            return math.exp(log_c)
    return 0.0


@njit(cache=True)
def alias_window(
    p: Array,
    mu: Array,
    count: Array,
    removing: bool,
    c: float,
    order: float,
    epsilon: float,
    log_goal: float,
) -> float:
    """Return the window at which the aliases, by Chernoff's bound at an order, are at the goal."""
    if order == c:
        return math.inf
    value = total(p, mu, count, removing, order)[0] if order > 0.0 else 0.0
    excess = value - order * epsilon + log_cks_factor(order) - log_goal
    return excess / abs(order - c) if excess < math.inf else math.inf


@njit(cache=True)
def least_window(
    p: Array,
    mu: Array,
    count: Array,
    removing: bool,
    c: float,
    farthest: float,
    epsilon: float,
    log_goal: float,
    enough: float,
) -> tuple[float, float]:
    """Return the least window by orders between c and the farthest, and that order.

    Or the window of an order nearer to c that is as small as is enough.
    """
    distance, order = farthest - c, farthest
    window = alias_window(p, mu, count, removing, c, order, epsilon, log_goal)
    for _ in range(COMPARISONS):
        distance *= NEARER
        other = alias_window(p, mu, count, removing, c, c + distance, epsilon, log_goal)
        if not (other < window or other <= enough):
            break
        window, order = other, c + distance
    return window, order
