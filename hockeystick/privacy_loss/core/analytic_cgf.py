"""From sums over quadrature nodes to ``ln M`` on a line, with the error of both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.base import ContourValues

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Shorter lines, and fewer terms, are summed one by one.
_SHORT: Final = 64
_FEW_TERMS: Final = 50_000
# What a node and a point of a long line take, in terms of a short line's sum.
_PER_NODE: Final = 30
_PER_POINT: Final = 200
# ln of what the Taylor series leaves out at most, relative to a term.
_REST: Final = -39.0
# Second-order errors, and the bound's own round-off.
_OUTWARD: Final = 1.1
_UNDERFLOW: Final = 1e-250


def log_values(real: Array, imag: Array, error: Array, shift: float) -> ContourValues:
    """Return ``ln M`` for ``M - 1 = (real + i imag) exp(shift)``, known up to ``error exp(shift)``.

    What is out of range ends as an infinite error or no number.
    """
    from hockeystick.kernels import series

    x, y, slack = (np.ascontiguousarray(column) for column in (real, imag, error))
    return ContourValues(*series.log_values(x, y, slack, shift))


def complex_log1p(real: Array, imag: Array, shift: float) -> tuple[Array, Array, Array]:
    """Return ``|v| exp(-shift)``, ``ln|v|``, ``arg v``; ``v = 1 + (real + i imag) exp(shift)``."""
    one = math.exp(-shift)
    modulus = np.hypot(one + real, imag)
    with np.errstate(divide="ignore"):
        if shift == 0.0:
            square = real * (2.0 + real) + imag * imag
            near_one = 0.5 * np.log1p(np.maximum(square, -1.0))
            # Where 1 + real is exact and small, the square would lose it.
            log_modulus = np.where(modulus < 0.5, np.log(modulus), near_one)
        else:
            log_modulus = shift + np.log(modulus)
    return modulus, log_modulus, np.arctan2(imag, one + real)


def mgf_line(
    loss: Array,
    log_weight: Array,
    loss_error: Array,
    weight_error: Array,
    c: float,
    step: float,
    count: int,
) -> tuple[Array, Array, Array]:
    """Return what ``kernels.series.mgf_line`` returns, faster where the line is long."""
    from hockeystick.kernels import long_lines, series

    if count < _SHORT or count * loss.size < _FEW_TERMS:
        return series.mgf_line(loss, log_weight, loss_error, weight_error, c, step, count)
    size = 2 ** (2 * count - 1).bit_length()
    highest, spacing = step * (count - 1), 2.0 * math.pi / (size * step)
    orders = _order(0.5 * highest * spacing)
    cells, linear, bound = long_lines.gather(
        loss, log_weight, loss_error, weight_error, c, highest, spacing, orders, size
    )
    share = np.arange(count) / (count - 1.0)
    value = np.zeros(count, dtype=np.complex128)
    for row in cells[::-1]:
        value *= 1j * share
        value += np.fft.rfft(row)[:count].conj()
    y = highest * share
    real = value.real + linear[0] + c * linear[2]
    imag = value.imag + share * linear[1] + y * linear[2]
    modulus = np.hypot(c, y)
    error = bound[0] + share * (bound[1] + share * bound[2])
    error += modulus * (bound[3] + modulus * bound[4])
    error += np.minimum(bound[5] + modulus * bound[6], modulus * modulus * bound[7])
    underflow = _UNDERFLOW if log_weight.min() < -700.0 else 0.0
    return real, imag, _OUTWARD * error + underflow


def tilted_line(
    loss: Array,
    log_weight: Array,
    loss_error: Array,
    weight_error: Array,
    c: float,
    step: float,
    count: int,
) -> tuple[Array, Array, Array]:
    """Return ``E[exp(z L)]``, real and imaginary part, at ``z = c + i k step``, and its error.

    It is ``E[e2(z L) + z e2(-L)]``, and ``E[1] - z E[exp(-L) - 1]``.
    """
    real, imag, error = mgf_line(loss, log_weight, loss_error, weight_error, c, step, count)
    weight = np.exp(log_weight)
    pull = weight * np.expm1(-loss)
    relative = weight_error + ULP * (16.0 + loss.size + np.abs(log_weight))
    mass, slope = float(weight.sum()), float(pull.sum())
    mass_error = float((weight * relative).sum())
    slope_error = float((np.abs(pull) * relative + weight * np.exp(-loss) * loss_error).sum())
    y = step * np.arange(count)
    error = error + mass_error + np.hypot(c, y) * slope_error
    return real + mass - c * slope, imag - y * slope, error


def equivalent_terms(nodes: int, count: int) -> int:
    """Return how many terms of a short line's sum take as long as a line of so many points."""
    return min(nodes * count, _PER_NODE * nodes + _PER_POINT * count)


def _order(farthest: float) -> int:
    """Return how many terms of the exponential series are enough up to a distance."""
    order, log_rest = 2, 2.0 * math.log(farthest) - math.log(2.0)
    while log_rest > _REST:
        order += 1
        log_rest += math.log(farthest / order)
    return order
