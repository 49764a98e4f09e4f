"""Sums over the quadrature nodes of a loss: its moment generating function, without cancellation.

For a privacy loss ``L = ln dP/dQ`` with ``Q`` absolutely continuous with respect to ``P`` one has
``E_P[exp(-L)] = 1``, and therefore, with ``e2(x) = exp(x) - 1 - x``,

    M(z) - 1 = E_P[e2(z L) + z e2(-L)].

Both terms are of second order in ``L``: nothing of size ``L`` is formed and cancelled, so a loss of
size 1e-6 keeps its digits through 1e9 runs. All weights may carry a common factor ``exp(-shift)``,
which keeps ``M`` within the range of floats.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

ULP = 2.0**-52


@njit(cache=True)
def e2(x: float) -> float:
    """Return ``exp(x) - 1 - x`` to a few units in the last place."""
    if abs(x) > 0.5:
        return math.exp(x) - 1.0 - x
    total = 0.0
    for k in range(16, 2, -1):
        total = (total + 1.0) * x / k
    return 0.5 * x * x * (total + 1.0)


@njit(cache=True)
def weighted_e2(log_weight: float, x: float) -> float:
    """Return ``exp(log_weight) e2(x)``, also where ``exp(x)`` alone would overflow."""
    weight = math.exp(log_weight)
    if abs(x) > 0.5:
        return math.exp(log_weight + x) - weight * (1.0 + x)
    return weight * e2(x)


@njit(cache=True)
def cumulant_sums(loss: Array, log_weight: Array, c: float) -> tuple[float, float, float, float]:
    """Return ``shift`` and, times ``exp(-shift)``, ``M(c) - 1``, ``M'(c)`` and ``M''(c)``."""
    shift = 0.0
    for j in range(loss.size):
        shift = max(shift, log_weight[j] + c * loss[j])
    mean = 0.0
    value = 0.0
    slope = 0.0
    curvature = 0.0
    for j in range(loss.size):
        x = loss[j]
        logw = log_weight[j] - shift
        weight = math.exp(logw)
        tilted = math.exp(logw + c * x)
        second = weighted_e2(logw, -x)
        mean += second
        value += weighted_e2(logw, c * x) + c * second
        slope += x * (tilted - weight if abs(c * x) > 0.5 else weight * math.expm1(c * x))
        curvature += x * x * tilted
    return shift, value, slope + mean, curvature


@njit(cache=True)
def small_e2(re: float, im: float, size: float) -> tuple[float, float]:
    """Return ``e2(re + i im)`` by its series, for ``size = |re + i im| < 0.5``."""
    sr = 0.0
    si = 0.0
    for n in range(8 if size < 0.03 else 16, 2, -1):
        tr = (sr + 1.0) / n
        ti = si / n
        sr = tr * re - ti * im
        si = tr * im + ti * re
    sr += 1.0
    qr = 0.5 * (re * re - im * im)
    qi = re * im
    return sr * qr - si * qi, sr * qi + si * qr


@njit(cache=True)
def mgf_line(
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
    """
    real = np.zeros(count)
    imag = np.zeros(count)
    error = np.zeros(count)
    size = loss.size
    for j in range(size):
        x = loss[j]
        logw = log_weight[j]
        weight = math.exp(logw)
        plain = c * x
        grown = math.exp(logw + plain)
        second = weighted_e2(logw, -x)
        pull = math.exp(logw - x) + weight if abs(x) > 0.5 else abs(math.expm1(-x)) * weight
        relative = weight_error[j] + ULP * (size + 16.0)
        # Round-off in exp(logw + c x) beyond that in exp(logw).
        growth = relative + 2.0 * ULP * (abs(logw) + abs(plain))
        for k in range(count):
            y = step * k
            phase = y * x
            modulus = math.sqrt(c * c + y * y)
            length = modulus * abs(x)
            if length < 0.5:
                ar, ai = small_e2(plain, phase, length)
                ar *= weight
                ai *= weight
                bound = 0.65 * length * length * weight * (relative + 16.0 * ULP)
                change = 1.3 * length * weight
            else:
                ar = grown * math.cos(phase) - weight * (1.0 + plain)
                ai = grown * math.sin(phase) - weight * phase
                bound = grown * (growth + 4.0 * ULP * abs(phase))
                bound += weight * relative * (1.0 + length)
                change = grown + weight
            real[k] += ar + c * second
            imag[k] += ai + y * second
            error[k] += bound + modulus * (
                second * (relative + 16.0 * ULP) + loss_error[j] * (change + pull)
            )
    return real, imag, error
