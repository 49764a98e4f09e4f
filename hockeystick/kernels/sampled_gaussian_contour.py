"""The contour of a composition of Poisson-subsampled Gaussians, chosen and summed in one call.

The runs are given by arrays: rates, distances of the means, counts. What is chosen (the saddle, the
window, the height) proves nothing; what is returned is proven as in ``accountants.contour``, by the
same functions of this room: the quadrature, its error on the strip, the minorant's decay.
"""

import math

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.contour_sums import LARGEST_EXPONENT, log_cks_factor
from hockeystick.kernels.sampled_gaussian import (
    cgf_estimate,
    coarse_step,
    far_mode,
    quadrature_nodes,
    trapezoid_rule,
)
from hockeystick.kernels.series import Array, log_line, logs_at
from hockeystick.kernels.uniform_minorant import EVERYWHERE, minorant, minorant_exponent
from hockeystick.numerics import ULP

# Rates, distances of the means, counts, and whether the record is removed.
Runs = tuple[Array, Array, Array, bool]
# The nodes of all runs, where each run's end, and ln of the error of each one's quadrature.
Quadratures = tuple[Array, NDArray[np.int64], Array]
# Minorants of the runs' densities: widths and masses, a row for each, variations, layers.
Decays = tuple[Array, Array, Array, NDArray[np.int64]]

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
def total(runs: Runs, c: float) -> tuple[float, float, float]:
    """Return K of all runs and two derivatives, unproven; no number where one is out of reach."""
    p, mu, count, removing = runs
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
def is_far(runs: Runs, c: float, far: tuple[float, float, float]) -> bool:
    """Return whether rare outputs count under a tilt by c, or c is too large: not for this route.

    ``far`` is the least ln of the odds of a hit, and the least ln of the mode's weight in all runs,
    which is told to a part of ``1 + slack c``.
    """
    p, mu, count, removing = runs
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
    runs: Runs, goal: float, at_epsilon: bool, start: float, far: tuple[float, float, float]
) -> float:
    """Return the c whose epsilon, or else whose estimate of ln delta, is the goal; 0 for none.

    By Newton's rule for ln c, without the derivative of the estimate's last term. There is none
    where rare outputs count.
    """
    log_c, near = math.log(start), -math.inf
    for _ in range(STEPS):
        c = math.exp(log_c)
        if is_far(runs, c, far):
            if log_c - near < CLOSE:
                return 0.0
            log_c = log_c - LONGEST_STEP if near == -math.inf else 0.5 * (log_c + near)
            continue
        near = log_c
        epsilon, log_delta, curvature = saddle_terms(total(runs, c), c)
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
def alias_window(runs: Runs, c: float, order: float, epsilon: float, log_goal: float) -> float:
    """Return the window at which the aliases, by Chernoff's bound at an order, are at the goal."""
    if order == c:
        return math.inf
    value = total(runs, order)[0] if order > 0.0 else 0.0
    excess = value - order * epsilon + log_cks_factor(order) - log_goal
    return excess / abs(order - c) if excess < math.inf else math.inf


@njit(cache=True)
def least_window(
    runs: Runs, c: float, farthest: float, epsilon: float, log_goal: float, enough: float
) -> tuple[float, float]:
    """Return the least window by orders between c and the farthest, and that order.

    Or the window of an order nearer to c that is as small as is enough.
    """
    distance, order = farthest - c, farthest
    window = alias_window(runs, c, order, epsilon, log_goal)
    for _ in range(COMPARISONS):
        distance *= NEARER
        other = alias_window(runs, c, c + distance, epsilon, log_goal)
        if not (other < window or other <= enough):
            break
        window, order = other, c + distance
    return window, order


# The orders above c are within this part of a Gaussian's best one: K mostly grows faster.
ABOVE = 0.5
# They end at such ln odds of a hit in the outputs around ``(c + 1/2) mu``, or at this part of a
# Gaussian's best order: where hits decide, quadratures need many nodes.
MOST_LOG_ODDS = 2.0
LEAST_ABOVE = 0.1
# Octaves of a bound of the truncation, and bisections of the height.
OCTAVES = 64
HALVINGS = 5
# A quadrature is first made for this multiple of the height that a Gaussian of the same variance
# needs, and made again where the line turns out to be longer.
FIRST_HEIGHT = 1.8
# The least window, over 1/c.
LEAST_WINDOW = 0.5
# A line of more nodes is compared with some to its left: at these multiples of c, at most so many,
# with at most this loss in ln of the precision, which counts as this share of ln of the nodes.
LONG_LINE = 150
LEFT = 0.87
LINES_LEFT = 5
MOST_PENALTY = 10.0
PENALTY = 0.2
# ln of the relative error of K below which round-off is larger.
LEAST_ERROR = -35.0
# A line has at least so many nodes, roughly.
FEWEST = 10.0
# Layers of a minorant.
LAYERS = 512


@njit(cache=True)
def log_truncation(decay: Decays, count: Array, y: float) -> float:
    """Bound ``ln((1/pi) Int_y^inf exp(-b(v)) / v^2 dv)``, octave by octave.

    The exponent b, the sum of the runs' exponents, increases, so that beyond the last octave the
    integral is at most that octave's.
    """
    width, mass, variation, layers = decay
    first = last = total = 0.0
    for octave in range(OCTAVES):
        exponent = 0.0
        for j in range(count.size):
            end = layers[j]
            one = minorant_exponent(width[j, :end], mass[j, :end], variation[j], y)
            exponent += count[j] * one
        last = -exponent - math.log(2.0 * math.pi * y)
        if octave == 0:
            first = last
        total += math.exp(last - first)
        if last < first - 4.0:
            break
        y *= 2.0
    return first + math.log(total + math.exp(last - first)) + 1e-12


@njit(cache=True)
def sufficient_height(
    decay: Decays, count: Array, start: float, longest: float, log_goal: float
) -> float:
    """Return a height from which on the truncation is at most the goal; inf beyond the longest."""
    low = high = start
    while log_truncation(decay, count, high) > log_goal:
        low, high = high, 2.0 * high
        if high > 2.0 * longest:
            return math.inf
    for _ in range(HALVINGS if high > low else 0):
        middle = math.sqrt(low * high)
        if log_truncation(decay, count, middle) > log_goal:
            low = middle
        else:
            high = middle
    return high


@njit(cache=True)
def quadratures(
    p: Array,
    mu: Array,
    removing: bool,
    c_high: float,
    y_high: float,
    log_tolerance: Array,
    most_nodes: float,
) -> Quadratures:
    """Return the nodes of all runs, where each run's end, and ln of each one's error.

    A row each has losses, log weights and the errors of both. No nodes say that a run has no rule,
    or that there would be more than allowed.
    """
    rules, ends, log_error = np.zeros((p.size, 2)), np.zeros(p.size, np.int64), np.zeros(p.size)
    last = 0
    for j in range(p.size):
        step, first, size, log_error[j] = trapezoid_rule(
            p[j], mu[j], removing, c_high, y_high, log_tolerance[j]
        )
        if step == 0.0 or last + size > most_nodes:
            return np.empty((4, 0)), ends, log_error
        rules[j, 0], rules[j, 1] = step, first
        last += size
        ends[j] = last
    nodes, start = np.empty((4, last)), 0
    for j in range(p.size):
        end = ends[j]
        loss, log_weight, loss_error, weight_error = quadrature_nodes(
            p[j], mu[j], removing, int(rules[j, 1]), end - start, rules[j, 0]
        )
        nodes[0, start:end], nodes[1, start:end] = loss, log_weight
        nodes[2, start:end], nodes[3, start:end] = loss_error, weight_error
        start = end
    return nodes, ends, log_error


@njit(cache=True)
def at_orders(quadrature: Quadratures, orders: Array) -> tuple[Array, Array]:
    """Return each run's K at several orders, a row for each run, and its errors."""
    nodes, ends, log_error = quadrature
    value, error = np.empty((ends.size, orders.size)), np.empty((ends.size, orders.size))
    start = 0
    for j in range(ends.size):
        part = nodes[:, start : ends[j]]
        value[j], error[j] = logs_at(part[0], part[1], part[2], part[3], log_error[j], orders)
        start = ends[j]
    return value, error


@njit(cache=True)
def minorants(p: Array, mu: Array, removing: bool, c: float, value: Array, error: Array) -> Decays:
    """Return the uniform minorants of the runs' densities, tilted by c: widths, masses, variations.

    ``value`` is each run's K at c, right to ``error``.
    """
    width, mass = np.zeros((p.size, LAYERS)), np.zeros((p.size, LAYERS))
    variation, layers = np.empty(p.size), np.empty(p.size, dtype=np.int64)
    w = 1.0 + c if removing else -c
    for j in range(p.size):
        one, share, variation[j] = minorant(
            p[j], mu[j], w, False, value[j] + error[j], 2.0 * error[j], EVERYWHERE
        )
        layers[j] = one.size
        width[j, : one.size] = one
        mass[j, : one.size] = share
    return width, mass, variation, layers


@njit(cache=True)
def composed_line(
    count: Array, quadrature: Quadratures, c: float, step: float, size: int
) -> tuple[Array, Array, Array]:
    """Return K of all runs along the line through c, and its error."""
    nodes, ends, log_error = quadrature
    real, imag, error = np.zeros(size), np.zeros(size), np.zeros(size)
    start = 0
    for j in range(count.size):
        part = nodes[:, start : ends[j]]
        one = log_line(part[0], part[1], part[2], part[3], log_error[j], c, step, size)
        real += count[j] * one[0]
        imag += count[j] * one[1]
        error += count[j] * one[2]
        start = ends[j]
    error += ULP * (count.size + 2.0) * (np.abs(real) + np.abs(imag))
    return real, imag, error


@njit(cache=True)
def highest_order(p: Array, mu: Array, removing: bool, c: float, reach: float) -> float:
    """Return the highest order of Chernoff's bound: beyond, K grows fast, or hits decide."""
    order = c + ABOVE * reach
    for j in range(p.size if removing else 0):
        order = min(order, (MOST_LOG_ODDS - math.log(p[j])) / (mu[j] * mu[j]))
    return max(order, c + LEAST_ABOVE * reach)


@njit(cache=True)
def line_through(
    runs: Runs, c: float, epsilon: float, log_delta: float, accuracy: float, most_work: float
) -> tuple[Array, int, Quadratures]:
    """Return the line through c, as ``contour`` does, its last node, and the quadratures for it.

    It ends at its first node where there is none, or none that takes no more work than allowed.
    """
    p, mu, count, removing = runs
    none = np.empty(0), 0, (np.empty((4, 0)), np.empty(0, np.int64), np.empty(0))
    k = total(runs, c)
    if not 0.0 < k[2] < math.inf:
        return none
    log_scale, log_goal = k[0] - epsilon * c - log_delta, log_delta - accuracy
    reach = math.sqrt(2.0 * max(log_scale + log_cks_factor(c) + accuracy, 1.0) / k[2])
    lowest, highest = max(c - reach, 0.0), highest_order(p, mu, removing, c, reach)
    down, below = least_window(runs, c, lowest, epsilon, log_goal, 0.0)
    up, above = least_window(runs, c, highest, epsilon, log_goal, down)
    step = 2.0 * math.pi / max(up, down, LEAST_WINDOW / c)
    log_margin = accuracy + 4.0 + math.log(p.size)
    log_margin += max(log_scale - math.log(c) - math.log1p(c), 0.0)
    log_tolerance = np.empty(p.size)
    for j in range(p.size):
        value = max(cgf_estimate(p[j], mu[j], removing, c)[0], 1e-300)
        log_tolerance[j] = value - log_margin - math.log(count[j])
        # More accurate than round-off it need not be.
        log_tolerance[j] = max(log_tolerance[j], min(math.log(value), value) + LEAST_ERROR)
    height = FIRST_HEIGHT * math.sqrt(2.0 * max(log_scale + accuracy, 1.0) / k[2])
    quadrature = quadratures(p, mu, removing, above, height, log_tolerance, most_work / FEWEST)
    nodes = quadrature[0].shape[1]
    if nodes == 0:
        return none
    cgf, cgf_error = at_orders(quadrature, np.array([c, above, below]))
    upper = np.zeros(3)
    for j in range(p.size):
        upper += count[j] * (cgf[j] + cgf_error[j])
    upper += ULP * (p.size + 4.0) * np.abs(upper)
    decay = minorants(p, mu, removing, c, cgf[:, 0], cgf_error[:, 0])
    start, longest = 2.0 / math.sqrt(saddle_terms(k, c)[2]), step * most_work / nodes
    needed = sufficient_height(decay, count, start, longest, -log_scale - accuracy)
    if not needed <= longest:
        return none
    last = math.ceil(needed / step)
    truncation = math.exp(min(log_truncation(decay, count, step * last), LARGEST_EXPONENT))
    if step * last > height:
        quadrature = quadratures(
            p, mu, removing, above, step * last, log_tolerance, most_work / last
        )
        nodes = quadrature[0].shape[1]
    if nodes == 0 or last * nodes > most_work:
        return none
    # At 0, where there may be an order below, K is 0.
    ends = upper[1], upper[2] if below > 0.0 else 0.0
    line = np.array([c, epsilon, log_delta, above, below, ends[0], ends[1], step, truncation])
    return line, last, quadrature


@interruptible
@njit(cache=True)
def contour(
    p: Array,
    mu: Array,
    count: Array,
    removing: bool,
    goal: float,
    at_epsilon: bool,
    start: float,
    accuracy: float,
    most_work: float,
    far: tuple[float, float, float],
) -> tuple[Array, Array, Array, Array]:
    """Return a line for an epsilon or ln delta, and K along it with its error.

    The first array is c, epsilon, ln delta, the orders above and below, the upper ends of K there,
    the step and the bound of the truncation, relative to ``|M(c)| exp(-c epsilon)``. All arrays are
    empty where no saddle is found, where rare outputs count, or where the sum takes more work than
    allowed: nodes of the line times nodes of the losses. ``start`` is where the search for c
    begins. The errors aimed for are ``exp(-accuracy)`` of delta each.

    Where the line through the saddle is long, one to its left may be far shorter, for few digits:
    next to the saddle there is an order beyond which a rare tail dominates.
    """
    nothing, runs = np.empty(0), (p, mu, count, removing)
    c = saddle(runs, goal, at_epsilon, start, far)
    if c == 0.0:
        return nothing, nothing, nothing, nothing
    k = total(runs, c)
    epsilon, log_delta, _ = saddle_terms(k, c)
    if at_epsilon:
        epsilon = goal
    else:
        log_delta = goal
    if not epsilon > 0.0:
        return nothing, nothing, nothing, nothing
    line, last, quadrature = line_through(runs, c, epsilon, log_delta, accuracy, most_work)
    least = math.log(last) if last > 0 else math.inf
    left = c
    for _ in range(LINES_LEFT if last == 0 or last > LONG_LINE else 0):
        left *= LEFT
        penalty = total(runs, left)[0] - epsilon * left
        penalty -= k[0] - epsilon * c + 2.0 * math.log(left / c)
        if penalty > MOST_PENALTY:
            break
        other, end, nodes = line_through(runs, left, epsilon, log_delta, accuracy, most_work)
        if end > 0 and math.log(end) + PENALTY * penalty < least:
            least = math.log(end) + PENALTY * penalty
            line, last, quadrature = other, end, nodes
        if 0 < end <= LONG_LINE:
            break
    if last == 0:
        return nothing, nothing, nothing, nothing
    real, imag, error = composed_line(count, quadrature, line[0], line[7], last + 1)
    return line, real, imag, error
