"""From sums over quadrature nodes to ``ln M`` on a line, with the error of both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hockeystick.privacy_loss.core.base import ContourValues

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array


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
