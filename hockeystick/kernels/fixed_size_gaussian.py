"""The Gaussian on a fixed-size sample: its loss at quadrature nodes, and bounds on that quadrature.

With ``x >= 0``, ``u = x + mu/2`` and ``a(x) = ln(1 - p + p exp(mu x))`` the loss is ``+a`` with
density ``phi(u) e^a`` and ``-a`` with density ``phi(u)``; the rest of the mass is an atom at 0.
The total being 1,

    M(z) - 1 = Int_0^inf F dx,  F = phi(u) (e^((1+z) a) - 1) (1 - e^(-z a))
                                  = 2 phi(u) e^(a/2) (cosh((z + 1/2) a) - cosh(a/2)),

of second order in ``a``: nothing of the size of ``a`` is formed and cancelled. The only
singularities are the zeros of ``e^a``, at ``|Im x| = pi / mu``. The quadrature is Gauss-Legendre on
panels; a panel's rule is given by ``offset = 1 + node`` in (0, 2) and ``weight``.
"""

import math

import numpy as np

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.sampled_gaussian import LOG_SQRT_2PI
from hockeystick.kernels.series import Array
from hockeystick.numerics import ULP

# Arcs, an even number, that the upper half of an ellipse is cut into to bound the integrand on it.
ARCS = 24
# No panel is shorter than the whole range over this.
FINEST = 2.0**-12
# The unproven sums take panels of this length, or this over mu.
ROUGH_PANEL = 2.5
# The cells of a normal: their number and width, and where they end.
CELLS, GAP, FARTHEST = 256, 2.0**-4, 8.0


@njit(cache=True)
def log_ratio(p: float, mu: float, x: float) -> float:
    """Return ``a(x)``."""
    t = mu * x
    if t > 30.0:
        return t + math.log(p + (1.0 - p) * math.exp(-t))
    return math.log1p(p * math.expm1(t))


@njit(cache=True)
def odds_of(p: float, mu: float, x: float) -> float:
    """Return ``s(x) = da/d(mu x)``, the chance of having been sampled given the output."""
    return p / (p + (1.0 - p) * math.exp(-mu * x))


@njit(cache=True)
def reach(p: float, mu: float, c: float, log_tolerance: float) -> float:
    """Return an x beyond which ``Int |F| dx`` is below tolerance for every ``0 <= Re z <= c``.

    ``|F| <= 4 phi(u) e^((1+c) a)``, whose logarithm falls at least as fast as ``u - (1+c) mu``. It
    is inf for a tolerance out of range.
    """
    steep = (1.0 + c) * mu
    beyond = 1.0
    while beyond < 200.0:
        x = max(steep - 0.5 * mu, 0.0) + beyond
        u = x + 0.5 * mu
        log_tail = math.log(4.0) - 0.5 * u * u - LOG_SQRT_2PI + (1.0 + c) * log_ratio(p, mu, x)
        log_tail += 16.0 * ULP * (u * u + steep * x) - math.log(u - steep)
        if log_tail < log_tolerance:
            return x
        beyond += 0.25
    return math.inf


@njit(cache=True)
def log_box_bound(
    p: float, mu: float, c: float, height: float, x1: float, x2: float, y1: float, y2: float
) -> float:
    """Bound ``ln|F|`` on ``x1 <= Re x <= x2``, ``y1 <= Im x <= y2 < pi/mu`` for every z in use.

    ``|e^v - 1| <= min(|v|, 2) max(1, e^(Re v))`` for either factor of F, and the two exponents add
    up to ``a = alpha + i beta``. On the box ``|r| = r(Re x) sqrt(1 - 4 s (1 - s) sin(theta/2)^2)``
    with ``theta = mu Im x``; ``beta`` grows with Re x, and with theta until ``cos theta`` is
    ``-s/(1-s)``.
    """
    nearest = 0.0
    if x1 + 0.5 * mu > 0.0:
        nearest = x1 + 0.5 * mu
    elif x2 + 0.5 * mu < 0.0:
        nearest = x2 + 0.5 * mu
    gauss = 0.5 * (y2 * y2 - nearest * nearest) - LOG_SQRT_2PI
    s1, s2 = odds_of(p, mu, x1), odds_of(p, mu, x2)
    q1, q2 = 4.0 * s1 * (1.0 - s1), 4.0 * s2 * (1.0 - s2)
    most = 1.0 if s1 < 0.5 < s2 else max(q1, q2)
    sine1, sine2 = math.sin(0.5 * mu * y1), math.sin(0.5 * mu * y2)
    alpha_high = log_ratio(p, mu, x2) + 0.5 * math.log1p(-min(q1, q2) * sine1 * sine1)
    alpha_low = log_ratio(p, mu, x1) + 0.5 * math.log1p(-most * sine2 * sine2)
    theta = mu * y2
    if s2 < 0.5:
        theta = min(theta, max(mu * y1, math.acos(-s2 / (1.0 - s2))))
    beta = math.atan2(s2 * math.sin(theta), 1.0 - s2 + s2 * math.cos(theta))
    size = max(abs(alpha_low), abs(alpha_high)) + beta
    factors = min(math.hypot(1.0 + c, height) * size, 2.0) * min(math.hypot(c, height) * size, 2.0)
    power = max(0.0, (1.0 + c) * alpha_high, -c * alpha_low)
    slack = 64.0 * ULP * (1.0 + abs(gauss) + (1.0 + c) * (mu * (abs(x1) + abs(x2)) + 1.0))
    slack += 8.0 * ULP * c * math.exp(-log_ratio(p, mu, x1))
    return gauss + math.log(factors + 1e-300) + power + height * beta + slack + 1e-9


@njit(cache=True)
def log_ellipse_bound(
    p: float, mu: float, c: float, height: float, middle: float, half: float, rho: float
) -> float:
    """Bound ``ln|F|`` on the Bernstein ellipse of a panel: on its boundary, arc by arc."""
    wide, tall = 0.5 * half * (rho + 1.0 / rho), 0.5 * half * (rho - 1.0 / rho)
    bound = -math.inf
    old_x, old_y = middle + wide, 0.0
    for k in range(1, ARCS + 1):
        angle = math.pi * k / ARCS
        new_x, new_y = middle + wide * math.cos(angle), tall * abs(math.sin(angle))
        # A little larger than the arc, for the round-off of its corners; the top is one of them.
        margin = 1e-12 * (abs(middle) + wide)
        low, high = max(min(old_y, new_y) - margin, 0.0), max(old_y, new_y) + margin
        box = log_box_bound(p, mu, c, height, new_x - margin, old_x + margin, low, high)
        bound = max(bound, box)
        old_x, old_y = new_x, new_y
    return bound


@njit(cache=True)
def log_panel_error(
    p: float, mu: float, c: float, height: float, middle: float, half: float, count: int
) -> float:
    """Bound ln of the error of Gauss-Legendre with ``count >= 2`` nodes on a panel.

    With ``|F| <= B`` on the Bernstein ellipse of parameter rho the Chebyshev coefficients are at
    most ``2 B rho^-k``; the even ones from ``k = 2 count`` on count, each by at most ``2 + 2/15``:
    ``(64/15) B rho^(-2 count) / (1 - rho^-2)`` (Trefethen 2013, theorem 19.3).
    """
    best = math.inf
    rho = 1.35
    while rho < 30.0:
        if 0.5 * half * (rho - 1.0 / rho) > 0.93 * math.pi / mu:
            break
        bound = log_ellipse_bound(p, mu, c, height, middle, half, rho)
        bound += math.log(half * 64.0 / 15.0) - 2.0 * count * math.log(rho)
        bound -= math.log1p(-1.0 / (rho * rho))
        if bound > best:
            break
        best = bound
        rho *= 1.25
    return best + 1e-9


@interruptible
@njit(cache=True)
def panels(
    p: float, mu: float, c: float, height: float, longest: float, count: int, log_tolerance: float
) -> tuple[Array, Array, float]:
    """Return start and half length of panels on ``[0, longest]``, and ln of the quadrature error.

    A panel is halved until its error is below its share of the tolerance, by length; one where the
    integral itself is below it is left out. No panels, and inf, where one would be too short.
    """
    starts, halves = [0.0], [0.0]
    todo = [(0.0, longest)]
    error = 0.0
    while len(todo) > 0:
        start, length = todo.pop()
        share = log_tolerance + math.log(length / longest) - 0.7
        whole = log_box_bound(p, mu, c, height, start, start + length, 0.0, 0.0) + math.log(length)
        if whole < share:
            error += math.exp(whole - log_tolerance)
            continue
        half = 0.5 * length
        log_error = log_panel_error(p, mu, c, height, start + half, half, count)
        if log_error < share:
            error += math.exp(log_error - log_tolerance)
            starts.append(start)
            halves.append(half)
        elif length < FINEST * longest:
            return np.zeros(0), np.zeros(0), math.inf
        else:
            todo.append((start + half, half))
            todo.append((start, half))
    log_sum = log_tolerance + math.log(error + 1e-300) + 1e-9
    return np.array(starts[1:]), np.array(halves[1:]), log_sum


@interruptible
@njit(cache=True)
def nodes(
    p: float, mu: float, starts: Array, halves: Array, offset: Array, weight: Array
) -> tuple[Array, Array, Array, Array]:
    """Return ``a``, ``ln(2 weight phi e^(a/2))`` and their errors, absolute ones, at the nodes.

    The errors allow for p and mu being the rounded values of exact parameters, and for the rule's
    numbers being rounded; ``starts`` and ``halves`` are exact.
    """
    size = starts.size * offset.size
    loss, log_weight = np.empty(size), np.empty(size)
    loss_error, weight_error = np.empty(size), np.empty(size)
    j = 0
    for i in range(starts.size):
        for k in range(offset.size):
            x = starts[i] + halves[i] * offset[k]
            u = x + 0.5 * mu
            a = log_ratio(p, mu, x)
            # d a / d t = odds; d a / d ln p = (r - 1) / r = pull.
            odds, pull = odds_of(p, mu, x), -math.expm1(-a)
            log_rule = math.log(2.0 * halves[i] * weight[k])
            error = ULP * (8.0 * odds * mu * x + 8.0 * pull + 8.0 * a)
            loss[j] = a
            log_weight[j] = log_rule - 0.5 * u * u - LOG_SQRT_2PI + 0.5 * a
            loss_error[j] = error
            weight_error[j] = ULP * (16.0 + 8.0 * abs(log_rule) + 4.0 * u * u + a) + 0.5 * error
            j += 1
    return loss, log_weight, loss_error, weight_error


@njit(cache=True)
def cumulant_sums(
    p: float, mu: float, c: float, longest: float, offset: Array, weight: Array
) -> tuple[float, float, float, float]:
    """Return ``shift`` and, times ``exp(-shift)``, ``M(c) - 1``, ``M'(c)`` and ``M''(c)``.

    Without proof, on panels of a fixed length.
    """
    count = math.ceil(longest / min(ROUGH_PANEL, 2.0 * ROUGH_PANEL / mu))
    half, shift = 0.5 * longest / count, 0.0
    for i in range(count + 1):
        x = 2.0 * half * i
        size = (1.0 + c) * log_ratio(p, mu, x) - 0.5 * (x + 0.5 * mu) ** 2
        shift = max(shift, size - 200.0)
    value = slope = curvature = 0.0
    for i in range(count):
        for k in range(offset.size):
            x = half * (2.0 * i + offset[k])
            u = x + 0.5 * mu
            a = log_ratio(p, mu, x)
            size = half * weight[k] * math.exp((1.0 + c) * a - 0.5 * u * u - LOG_SQRT_2PI - shift)
            back = math.exp(-(1.0 + 2.0 * c) * a)
            value += size * math.expm1(-(1.0 + c) * a) * math.expm1(-c * a)
            slope += size * a * (1.0 - back)
            curvature += size * a * a * (1.0 + back)
    return shift, value, slope, curvature


@njit(cache=True)
def normal(x: float) -> float:
    """Return the mass of N(0, 1) below x."""
    return 0.5 * math.erfc(-math.sqrt(0.5) * x)


@interruptible
@njit(cache=True)
def triangle_profile(rate: float, mu: float, own: float, other: float, epsilons: Array) -> Array:
    """Return upper bounds of the profile of one of ``Triangles`` at epsilons >= 0."""
    spread, lean = mu * math.sqrt(own), 0.5 * (1.0 + (1.0 - other) / own)
    # Some more noise where there is next to none left in Y.
    rest = mu * math.sqrt(max(1.0 - lean * lean * own, 1e-6))
    odds, weight = np.empty(CELLS + 1), np.full(CELLS + 1, 2.0**-50)
    for k in range(CELLS + 1):
        z = GAP * k - FARTHEST
        odds[k] = math.exp(spread * (z - 0.5 * spread))
        if k > 0:
            mass = normal(z) - normal(z - GAP)
            mean = normal(z - spread) - normal(z - GAP - spread)
            moved = (mean - mass * odds[k - 1]) / (odds[k] - odds[k - 1])
            weight[k - 1] += max(mass - moved, 0.0)
            weight[k] += max(moved, 0.0)
    # More than the mass beyond the cells, and what round-off moves from one end of all to another.
    found = np.full(epsilons.size, 2e-13)
    for j in range(epsilons.size):
        for k in range(CELLS + 1):
            left = 1.0 - (1.0 - rate) / rate * math.expm1(epsilons[j]) * odds[k]
            if left <= 0.0:
                break
            log_odds = epsilons[j] + lean * spread * (GAP * k - FARTHEST - 0.5 * lean * spread)
            place = (math.log(left) - log_odds) / rest + 0.5 * rest
            kept = left * normal(place) * (1.0 + 2.0**-42)
            found[j] += weight[k] * max(kept - math.exp(log_odds) * normal(place - rest), 0.0)
        found[j] *= rate * (1.0 + 2.0**-36)
    return found


def convex_bound(p: float, mu: float, c: float) -> tuple[float, float, float]:
    """Return ``ln(1 - p + p exp(c (c+1) mu^2/2))``, an upper bound of K, and derivatives.

    ``r^w <= 1 - p + p exp(w t)`` where ``r = 1 - p + p exp(t)``, for w outside (0, 1).
    """
    square = mu * mu
    inner = 0.5 * c * (c + 1.0) * square
    slope = (c + 0.5) * square
    grown = inner + math.log(p)
    if inner > 500.0 and grown > 40.0:
        return grown + math.log1p(math.exp(-grown)), slope, square
    if inner > 500.0:
        share = math.exp(grown) / (1.0 + math.exp(grown))
        return math.log1p(math.exp(grown)), share * slope, square + slope * slope
    share = p * math.exp(inner) / (1.0 + p * math.expm1(inner))
    curvature = share * (square + (1.0 - share) * slope * slope)
    return math.log1p(p * math.expm1(inner)), share * slope, curvature
