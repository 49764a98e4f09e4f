"""From sums over quadrature nodes to ``ln M`` on a line, with the error of both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.base import ContourValues

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array


def log_values(real: Array, imag: Array, error: Array, shift: float) -> ContourValues:
    """Return ``ln M`` for ``M - 1 = (real + i imag) exp(shift)``, known up to ``error exp(shift)``.

    What is out of range ends as an infinite error or no number.
    """
    modulus, log_real, log_imag = complex_log1p(real, imag, shift)
    # |ln(1 + e)| <= 1.001 e for e <= 1e-3, and <= 2 e up to 1/2. Beyond that all that is known
    # is |M| <= |value| + error: with that as the size, a change by e^2 covers every value.
    unsure = error >= 0.5 * modulus
    safe = np.where(unsure, modulus + error, modulus)
    relative = np.where(unsure, 1.0, error / safe)
    log_real = np.where(unsure, shift + np.log(safe), log_real)
    log_error = np.where(relative < 1e-3, 1.001, 2.0) * relative
    # Where |M| is small, 1 + real is exact: only the errors that real and imag carry count.
    exact = (modulus < 0.5) & (shift == 0.0)
    sensitive = np.where(exact, 1.0, (np.abs(real) + imag * imag) / safe / safe)
    round_off = 8.0 * ULP * (np.abs(log_real) + np.abs(log_imag) + sensitive)
    return ContourValues(log_real, log_imag, log_error + round_off)


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
