"""Sums over the quadrature nodes of a loss: its moment generating function, without cancellation.

For a privacy loss ``L = ln dP/dQ`` with ``Q`` absolutely continuous with respect to ``P`` one has
``E_P[exp(-L)] = 1``, and therefore, with ``e2(x) = exp(x) - 1 - x``,

    M(z) - 1 = E_P[e2(z L) + z e2(-L)].

Both terms are of second order in ``L``: nothing of size ``L`` is formed and cancelled, so a loss of
size 1e-6 keeps its digits through 1e9 runs. Weights may share a factor that keeps M within floats.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.numerics import ULP

Array = NDArray[np.float64]

RECIPROCALS = np.array([1.0 / max(k, 1) for k in range(17)])
# Exponents up to this size are left unscaled.
COMFORTABLE = 200.0
# Nodes on a line between fresh starts of a recurrence.
BLOCK = 16
# Nodes of a loss that are summed before their sum is added to that of the others.
CHUNK = 32


@njit(cache=True)
def last_term(size: float) -> int:
    """Return the power up to which ``e2``'s series is summed: the rest is below 2^-55 of it."""
    return 8 if size < 0.02 else (11 if size < 0.12 else 16)


@njit(cache=True)
def e2(x: float) -> float:
    """Return ``exp(x) - 1 - x`` to a few units in the last place."""
    if abs(x) > 0.5:
        return math.exp(x) - 1.0 - x
    total = 0.0
    for k in range(last_term(abs(x)), 2, -1):
        total = (total + 1.0) * (x * RECIPROCALS[k])
    return 0.5 * x * x * (total + 1.0)


@njit(cache=True)
def weighted_e2(log_weight: float, x: float) -> float:
    """Return ``exp(log_weight) e2(x)``, also where ``exp(x)`` alone would overflow."""
    weight = math.exp(log_weight)
    if abs(x) > 0.5:
        return math.exp(log_weight + x) - weight * (1.0 + x)
    return weight * e2(x)


@njit(cache=True)
def rough_e2(x: float) -> float:
    """Return ``exp(x) - 1 - x`` to thirteen digits or so."""
    if abs(x) > 0.03:
        return math.expm1(x) - x
    rest = 1.0 + x * (1.0 / 7.0) * (1.0 + 0.125 * x)
    rest = 1.0 + 0.25 * x * (1.0 + 0.2 * x * (1.0 + x * (1.0 / 6.0) * rest))
    return 0.5 * x * x * (1.0 + x * (1.0 / 3.0) * rest)


@njit(cache=True)
def cumulant_sums(loss: Array, log_weight: Array, c: float) -> tuple[float, float, float, float]:
    """Return ``shift`` and, times ``exp(-shift)``, ``M(c) - 1``, ``M'(c)`` and ``M''(c)``.

    They have some thirteen digits and prove nothing.
    """
    shift = 0.0
    for j in range(loss.size):
        shift = max(shift, log_weight[j] + c * loss[j])
    mean = value = slope = curvature = 0.0
    for j in range(loss.size):
        x = loss[j]
        logw = log_weight[j] - shift
        weight = math.exp(logw)
        near = abs(x) < 0.5
        second = weight * rough_e2(-x) if near else math.exp(logw - x) - weight * (1.0 - x)
        mean += second
        if abs(c * x) < 0.5:
            grown = weight * math.expm1(c * x)
            tilted = weight + grown
            value += weight * rough_e2(c * x)
        else:
            tilted = math.exp(logw + c * x)
            grown = tilted - weight
            value += grown - weight * c * x
        value += c * second
        slope += x * grown
        curvature += x * x * tilted
    return shift, value, slope + mean, curvature


@njit(cache=True)
def small_e2(re: float, im: float, size: float) -> tuple[float, float]:
    """Return ``e2(re + i im)`` by its series, for ``size = |re + i im| < 0.5``."""
    sr = si = 0.0
    for n in range(last_term(size), 2, -1):
        tr = (sr + 1.0) * RECIPROCALS[n]
        ti = si * RECIPROCALS[n]
        sr = tr * re - ti * im
        si = tr * im + ti * re
    sr += 1.0
    qr = 0.5 * (re * re - im * im)
    qi = re * im
    return sr * qr - si * qi, sr * qi + si * qr


@njit(cache=True)
def e2_round_off(
    length: float, weight: float, grown: float, relative: float, growth: float
) -> tuple[float, float]:
    """Bound the round-off of ``weight e2(z L)``, and its derivative, where ``|z L| <= length``.

    ``grown`` is ``weight exp(c L)``; ``relative`` and ``growth`` are the errors of the two.
    """
    if length < 0.5:
        return 0.65 * length * length * weight * relative, 1.3 * length * weight
    bound = grown * (growth + 4.0 * ULP * length) + weight * relative * (1.0 + length)
    return bound, grown + weight


@njit(cache=True)
def first_of_block(
    plain: float, phase: float, folded: bool, rise: float, grown: float
) -> tuple[float, float, float, float]:
    """Return ``exp(x) - 1`` and ``e2(x)`` of ``x = plain + i phase``, in real and imaginary parts.

    ``rise`` is ``exp(plain) - 1`` and ``grown`` 1 more. Where that is folded into the weight, both
    are ``exp(i phase)``.
    """
    half, other = math.sin(0.5 * phase), math.cos(0.5 * phase)
    cosine, sine = 1.0 - 2.0 * half * half, 2.0 * half * other
    if folded:
        return cosine, sine, cosine, sine
    er, ei = rise * cosine - 2.0 * half * half, grown * sine
    size = math.sqrt(plain * plain + phase * phase)
    if size < 0.5:
        fr, fi = small_e2(plain, phase, size)
        return er, ei, fr, fi
    return er, ei, er - plain, ei - phase


@njit(cache=True)
def add_block(
    outer: float,
    turn: tuple[float, float, float, float],
    folded: bool,
    first: tuple[float, float, float, float],
    pull: tuple[float, Array, float],
    real: Array,
    imag: Array,
) -> None:
    """Add a node's terms along one block of a line, from its first e and f on."""
    dr, di, gr, gi = turn
    c, height, second = pull
    er, ei, fr, fi = first
    for i in range(height.size):
        real[i] += outer * fr + c * second
        imag[i] += outer * fi + height[i] * second
        tr = er * dr - ei * di
        ti = er * di + ei * dr
        if folded:
            er += tr
            ei += ti
            fr, fi = er, ei
        else:
            fr += gr + tr
            fi += gi + ti
            er += dr + tr
            ei += di + ti


@njit(cache=True)
def sum_line(
    loss: Array,
    log_weight: Array,
    loss_error: Array,
    weight_error: Array,
    c: float,
    step: float,
    count: int,
) -> tuple[Array, Array, Array]:
    """Return real and imaginary part of ``M(c + i k step) - 1``, k < count, and their round-off.

    ``loss_error`` is the absolute error of each loss and ``weight_error`` the relative error of
    each weight; the third result bounds the distance to the exact sum over the exact nodes.

    Along the line ``e = exp(z L) - 1`` and ``f = e2(z L)`` go on by ``f += f_d + e d`` and
    ``e += d + e d``, with d and f_d their values for the step: no cancellation, and no more than
    ``BLOCK`` steps before a fresh start, so that round-off grows by a known factor only. Nodes are
    summed by ``CHUNK``, and the chunks' sums then: a term takes part in few additions.

    A weight below ``exp(-700)`` may underflow where ``c L <= 100``: all such terms together are
    below 1e-250.
    """
    blocks = (count + BLOCK - 1) // BLOCK
    places = min(BLOCK, count)
    real, imag = np.zeros((blocks, places)), np.zeros((blocks, places))
    all_real, all_imag = np.zeros((blocks, places)), np.zeros((blocks, places))
    additions = CHUNK + loss.size // CHUNK + 2
    error = np.full(blocks, 1e-250 if log_weight.min() < -700.0 else 0.0)
    height = np.empty((blocks, places))
    for block in range(blocks):
        for place in range(places):
            height[block, place] = step * (block * BLOCK + place)
    for j in range(loss.size):
        x = loss[j]
        logw = log_weight[j]
        plain = c * x
        # Where the weight alone may underflow, exp(c L) takes it in from the start.
        fold = plain if plain > 300.0 or (plain > 100.0 and logw < -600.0) else 0.0
        weight = math.exp(logw)
        second = weighted_e2(logw, -x) if abs(x) > 0.5 else weight * e2(-x)
        pull = math.exp(logw - x) + weight if abs(x) > 0.5 else abs(math.expm1(-x)) * weight
        relative = weight_error[j] + ULP * (additions + 16.0 + 8.0 * BLOCK)
        growth = relative + 2.0 * ULP * (abs(logw) + abs(plain))
        grown = math.exp(logw + plain)
        for k in range(blocks):
            modulus = math.hypot(c, step * (min((k + 1) * BLOCK, count) - 1))
            bound, change = e2_round_off(modulus * abs(x), weight, grown, relative, growth)
            error[k] += bound + modulus * (second * relative + loss_error[j] * (change + pull))
        turn = first_of_block(0.0, step * x, False, 0.0, 1.0)
        outer = math.exp(logw + fold) if fold > 0.0 else weight
        # exp(c L) - 1 and exp(c L), where the latter is not folded in.
        rise, risen = (0.0, 0.0) if fold > 0.0 else (math.expm1(plain), math.exp(plain))
        for k in range(blocks):
            phase = height[k, 0] * x
            first = first_of_block(plain, phase, fold > 0.0, rise, risen)
            pulled = c, height[k], second
            add_block(outer, turn, fold > 0.0, first, pulled, real[k], imag[k])
        if (j + 1) % CHUNK == 0 or j + 1 == loss.size:
            all_real += real
            all_imag += imag
            real[:, :] = 0.0
            imag[:, :] = 0.0
    found_real, found_imag, found_error = np.empty(count), np.empty(count), np.empty(count)
    for k in range(count):
        block, place = k // BLOCK, k % BLOCK
        found_real[k] = all_real[block, place]
        found_imag[k] = all_imag[block, place]
        found_error[k] = error[block]
    return found_real, found_imag, found_error


mgf_line: Final = interruptible(sum_line)


@njit(cache=True)
def log_line(
    loss: Array,
    log_weight: Array,
    loss_error: Array,
    weight_error: Array,
    log_error: float,
    c: float,
    step: float,
    count: int,
) -> tuple[Array, Array, Array]:
    """Return the logarithms of ``mgf_line``, scaled to the range of floats.

    The sum over the nodes is M up to ``exp(log_error)``.
    """
    shift = max(0.0, (log_weight + c * loss).max() - COMFORTABLE)
    real, imag, error = sum_line(loss, log_weight - shift, loss_error, weight_error, c, step, count)
    return logs_of_line(real, imag, error + math.exp(log_error - shift), shift)


@njit(cache=True)
def logs_of_line(
    real: Array, imag: Array, error: Array, shift: float
) -> tuple[Array, Array, Array]:
    """Return ``ln|M|``, ``arg M`` and the error of both, for ``M - 1 = (real + i imag) e^shift``.

    ``real + i imag`` is known up to ``error``. What is out of range ends as an infinite error or no
    number. ``|ln(1 + e)| <= 1.001 e`` for ``e <= 1e-3``, and ``<= 2 e`` up to 1/2. Beyond that all
    that is known is ``|M| <= |value| + error``: with that as the size, a change by e^2 covers every
    value.
    """
    one = math.exp(-shift)
    log_real, log_imag, log_error = np.empty(real.size), np.empty(real.size), np.empty(real.size)
    for k in range(real.size):
        re, im = real[k], imag[k]
        modulus = math.hypot(one + re, im)
        unsure = not error[k] < 0.5 * modulus
        size = modulus + error[k] if unsure else modulus
        relative = 1.0 if unsure else error[k] / size
        if unsure or shift != 0.0 or modulus < 0.5:
            # Where 1 + real is exact and small, the square would lose it.
            log_real[k] = shift + math.log(size)
        else:
            log_real[k] = 0.5 * math.log1p(re * (2.0 + re) + im * im)
        log_imag[k] = math.atan2(im, one + re)
        # Where |M| is small, 1 + real is exact: only the errors that real and imag carry count.
        sensitive = 1.0
        if modulus >= 0.5 or shift != 0.0:
            sensitive = (abs(re) + im * im) / size / size if size > 0.0 else math.inf
        if shift != 0.0:
            sensitive += abs(shift) + (one / size if size > 0.0 else math.inf)
        round_off = 8.0 * ULP * (abs(log_real[k]) + abs(log_imag[k]) + sensitive)
        log_error[k] = (1.001 if relative < 1e-3 else 2.0) * relative + round_off
    return log_real, log_imag, log_error


@njit(cache=True)
def logs_at(
    loss: Array,
    log_weight: Array,
    loss_error: Array,
    weight_error: Array,
    log_error: float,
    orders: Array,
) -> tuple[Array, Array]:
    """Return ``ln M`` at several ``c >= 0``, and the error of each, as ``log_line``."""
    value, slack = np.empty(orders.size), np.empty(orders.size)
    for i in range(orders.size):
        one, _, error = log_line(
            loss, log_weight, loss_error, weight_error, log_error, orders[i], 0.0, 1
        )
        value[i], slack[i] = one[0], error[0]
    return value, slack


log_values: Final = interruptible(logs_of_line)
