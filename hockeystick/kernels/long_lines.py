"""The moment generating function on a long line: losses gathered in cells, for Fourier transforms.

On ``z = c + i y``, ``0 <= y <= Y``, a loss in the cell ``|L - g spacing| <= spacing / 2`` has

    exp(i y L) = exp(i y g spacing) sum_k (i t)^k d^k / k!,   t = y / Y,   d = Y (L - g spacing),

and after K terms the rest is at most ``|t d|^K / K!``. Each k is one Fourier transform over the
cells: nodes and points of the line count once each, not once for each pair. Of the nodes in the
cell at 0 the terms of ``e2(z L) = e2(c L) + i y L (exp(c L) - 1) + exp(c L) (exp(i y L) - 1 - i y
L)`` are summed, which keeps the digits of small losses.

``M - 1`` is ``linear0 + i t linear1 + z linear2`` and the sum ``sum_k (i t)^k sum_g exp(i y g
spacing) cells[k, g]``, by Horner's rule. Its error is at most

    e0 + t e1 + t^2 e2 + |z| e3 + |z|^2 e4 + min(e5 + |z| e6, |z|^2 e7).

The last part is that of the weights, each of which counts as ``|e2(z L)| <= |z L|^2 max(1, exp(c
L)) / 2``, or as its three terms. A sum that is rounded errs each time by at most ``ULP / 2`` of
what it then is; the rows of a cell from 1 on are at most ``exp(d) - 1 <= 3.82`` times the first,
those from 2 on at most 1.9 times the third. A transform of N points, N a power of 2, has ``log2 N``
stages, each a product with a computed root of unity, at most ``2 ULP`` off, and a sum: an entry
errs by at most ``2.6 ULP log2(N)`` times the sum of all sizes.

References:
    Anderson and Dahleh 1996, "Rapid computation of the discrete Fourier transform".
"""

import math

import numpy as np

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.series import Array, weighted_e2
from hockeystick.numerics import ULP


@njit(cache=True)
def add_exactly(sums: Array, k: int, value: float) -> None:
    """Add to ``sums[0, k]``, and what is rounded off to ``sums[1, k]`` (Neumaier's sum)."""
    total = sums[0, k] + value
    if abs(sums[0, k]) >= abs(value):
        sums[1, k] += (sums[0, k] - total) + value
    else:
        sums[1, k] += (value - total) + sums[0, k]
    sums[0, k] = total


@njit(cache=True)
def add_powers(cells: Array, cell: int, size: float, d: float) -> float:
    """Add ``size d^k / k!`` to each row k from 2 on; return the size of the next one."""
    term = 0.5 * size * d * d
    for k in range(2, cells.shape[0]):
        cells[k, cell] += term
        term *= d / (k + 1.0)
    return abs(term)


@njit(cache=True)
def add_near(
    x: float, plain: float, logw: float, grown: float, d: float, cells: Array, linear: Array
) -> tuple[float, float, float]:
    """Add a node of the cell at 0; return its part of e0, e1 and e2, but for the transforms'."""
    weight, small = math.exp(logw), abs(plain) < 0.5
    value, rise = weighted_e2(logw, plain), weight * math.expm1(plain) if small else grown - weight
    add_exactly(linear, 0, value)
    add_exactly(linear, 1, rise * d)
    rest = add_powers(cells, 0, grown, d)
    rounding = ULP * (8.0 + abs(plain) + (0.0 if small else abs(logw)))
    flat = value if small else grown + weight * (1.0 + abs(plain))
    slope = abs(rise * d) if small else (grown + weight) * abs(d)
    # exp(d) - 1 - d <= d^2 for 0 <= d <= 1.79.
    return rounding * flat, rounding * slope, grown * d * d * rounding + ULP * cells[2, 0] + rest


@njit(cache=True)
def add_pull(x: float, logw: float, unsure: float, loss_error: float, linear: Array) -> float:
    """Add ``e2(-L)``, which counts times z; return its part of e3."""
    value = weighted_e2(logw, -x)
    add_exactly(linear, 2, value)
    weight, other = math.exp(logw), math.exp(logw - x)
    if abs(x) > 0.5:
        rounding = ULP * (2.0 + abs(logw) + abs(x)) * (other + weight * (1.0 + abs(x)))
        return value * unsure + rounding + (other + weight) * loss_error
    return value * (unsure + 16.0 * ULP) + weight * abs(math.expm1(-x)) * loss_error


@interruptible
@njit(cache=True)
def gather(
    loss: Array,
    log_weight: Array,
    loss_error: Array,
    weight_error: Array,
    c: float,
    highest: float,
    spacing: float,
    orders: int,
    size: int,
) -> tuple[Array, Array, Array]:
    """Gather nodes in cells, modulo their number; return them, what is linear, and the error.

    There are so many orders of the series, and so many cells.
    """
    cells = np.zeros((orders, size))
    linear, error = np.zeros((2, 3)), np.zeros(8)
    transform = 2.6 * ULP * math.log2(size)
    for j in range(loss.size):
        x, logw, plain = loss[j], log_weight[j], c * loss[j]
        direct = abs(plain) > 100.0
        weight = math.exp(logw)
        grown = math.exp(logw + plain) if direct else weight * math.exp(plain)
        own = ULP * (4.0 + abs(plain) + (abs(logw) if direct else 0.0))
        unsure = weight_error[j] + 2.0 * ULP
        error[3] += add_pull(x, logw, unsure, loss_error[j], linear)
        second = 0.5 * x * x * max(grown, weight) * unsure
        cell = math.floor(x / spacing + 0.5)
        d = highest * (x - cell * spacing)
        if cell == 0:
            flat, slope, rest = add_near(x, plain, logw, grown, d, cells, linear)
            error[0] += flat
            error[1] += slope
            error[2] += rest + grown * d * d * (transform + 24.0 * ULP)
            error[4] += second + max(grown, weight) * abs(x) * loss_error[j]
            continue
        k = cell % size
        cells[0, k] += grown
        cells[1, k] += grown * d
        error[2] += add_powers(cells, k, grown, d)
        add_exactly(linear, 0, -weight)
        add_exactly(linear, 2, -weight * x)
        error[0] += grown * (own + transform) + 2.0 * ULP * weight + 0.5 * ULP * cells[0, k]
        # Of the rows from 1 on; the spacing and the distance d are rounded as well.
        error[1] += grown * math.expm1(abs(d)) * (own + transform + 24.0 * ULP)
        error[1] += 2.0 * ULP * cells[0, k] + 4.0 * ULP * highest * abs(x) * grown
        error[3] += 3.0 * ULP * weight * abs(x) + (grown + weight) * loss_error[j]
        error[5] += (grown + weight) * unsure
        error[6] += weight * abs(x) * unsure
        error[7] += second
    return cells, linear[0] + linear[1], error
