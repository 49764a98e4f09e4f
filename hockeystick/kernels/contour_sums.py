"""Sums along a vertical contour: from ``K`` at its nodes to delta at any epsilon near its own."""

import math

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.series import Array
from hockeystick.numerics import ULP

Weights = NDArray[np.complex128]

# Exponentials beyond this are cut off: as an error they are infinite.
LARGEST_EXPONENT = 700.0


@njit(cache=True)
def log_cks_factor(c: float) -> float:
    """Return ``ln(c^c / (1+c)^(1+c))``; 0 at c = 0."""
    return -c * math.log1p(1.0 / c) - math.log1p(c) if c > 0.0 else 0.0


@interruptible
@njit(cache=True)
def deltas(
    line: tuple[float, float, float],
    aliases: Array,
    weight: Weights,
    weight_error: Array,
    real: Array,
    imag: Array,
    error: Array,
    epsilons: Array,
) -> tuple[Array, Array]:
    """Return, over ``exp(scale)``, delta's ends, estimate and derivative at each epsilon; scales.

    ``line`` is its real part, its step and the bound of the rest, over ``|M(c)|``; a row of
    ``aliases`` an order of Chernoff's bound and an upper bound of K there. ``real + i imag`` is K
    at the nodes, right to ``error``, and ``weight`` the factor of the exponential. The last result
    is ``exp`` of the error of ``scale``, by which bounds relative to the true ``|M(c)|`` grow.
    """
    c, step, truncation = line
    size, nodes = epsilons.size, real.size
    found, growths = np.empty((5, size)), np.empty(size)
    modulus, least = np.empty(nodes), np.empty(nodes)
    for k in range(nodes):
        modulus[k] = math.exp(real[k] - real[0])
        least[k] = error[k] + ULP * (32.0 + nodes + 4.0 * (abs(real[k]) + abs(imag[k])))
    for i in range(size):
        epsilon = epsilons[i]
        estimate = derivative = errors = 0.0
        for k in range(nodes):
            height = step * k
            phase = imag[k] - epsilon * height
            cosine, sine = modulus[k] * math.cos(phase), modulus[k] * math.sin(phase)
            re = cosine * weight[k].real - sine * weight[k].imag
            im = cosine * weight[k].imag + sine * weight[k].real
            round_off = least[k] + 4.0 * ULP * abs(epsilon) * math.sqrt(c * c + height * height)
            growth = math.expm1(min(round_off, LARGEST_EXPONENT))
            errors += math.hypot(re, im) * growth
            errors += modulus[k] * weight_error[k] * (1.0 + growth)
            estimate += re
            derivative -= re * c - im * height
        scale = real[0] - epsilon * c
        true_over_computed = math.exp(
            min(least[0] + 4.0 * ULP * abs(epsilon) * c, LARGEST_EXPONENT)
        )
        beyond = 0.0
        for j in range(aliases.shape[0]):
            order, upper = aliases[j, 0], aliases[j, 1]
            gap = abs(order - c) * (2.0 * math.pi / step)
            first = upper - order * epsilon + log_cks_factor(order) - gap - scale
            apart = -math.expm1(-gap)
            beyond += math.exp(min(first, LARGEST_EXPONENT)) / apart if apart > 0.0 else math.inf
        slack = errors + true_over_computed * truncation
        found[0, i] = scale
        found[1, i] = estimate - slack - true_over_computed * beyond * (1.0 + 1e-9)
        found[2, i] = estimate
        found[3, i] = estimate + slack
        found[4, i] = derivative
        growths[i] = true_over_computed
    return found, growths


@njit(cache=True)
def estimates(
    line: tuple[float, float], weight: Weights, real: Array, imag: Array, epsilons: Array
) -> Array:
    """Return the scale of ``deltas``, its estimate and its derivative, without their errors."""
    c, step = line
    modulus, found = np.empty(real.size), np.zeros((3, epsilons.size))
    for k in range(real.size):
        modulus[k] = math.exp(real[k] - real[0])
    for i in range(epsilons.size):
        found[0, i] = real[0] - epsilons[i] * c
        for k in range(real.size):
            height = step * k
            phase = imag[k] - epsilons[i] * height
            cosine, sine = modulus[k] * math.cos(phase), modulus[k] * math.sin(phase)
            re = cosine * weight[k].real - sine * weight[k].imag
            found[1, i] += re
            im = cosine * weight[k].imag + sine * weight[k].real
            found[2, i] -= re * c - im * height
    return found


@njit(cache=True)
def weights(c: float, step: float, size: int) -> Weights:
    """Return ``step / (pi z (1 + z))`` at ``z = c + i k step``, half of it at k = 0."""
    found = np.empty(size, dtype=np.complex128)
    for k in range(size):
        y = step * k
        real, imag = c * (1.0 + c) - y * y, y * (1.0 + 2.0 * c)
        square = real * real + imag * imag
        found[k] = complex(real, -imag) * (step / math.pi / square)
    found[0] *= 0.5
    return found
