"""Sums of clipped gradients with exact noise, for loops of any library that gives arrays."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.statistics.clipped import gradient_rows, noisy_clipped_sum

_NORM: Final = Domain(symbol="C", low=1e-24, high=math.inf, high_open=True, typical=(0.1, 10))
_NOISE: Final = Domain(symbol="z", low=0, high=2.0**21, typical=(0.5, 10))


def noisy_sum(
    gradients: Any, *, norm: float, noise_multiplier: float, bits: Bits = secret_bits
) -> NDArray[np.float64]:
    """Return the sum of clipped gradients plus ``N(0, (z C)^2)``, in exact arithmetic.

    Each row becomes integers m in units of ``2^-22 C`` with ``|m| <= 2^22``, and what is returned
    is a function of ``S + round(N)``, with S the sum of the rows and N of deviation at least
    ``z 2^22``.

    Guarantees:
        S has integer coordinates, so that ``S + round(N) = round(S + N)`` is post-processing of the
        Gaussian mechanism with noise multiplier z: the account of a plan with that multiplier
        holds, whatever floats come out. Integers and their squares are below ``2^53`` wherever they
        are used, so that floats compute them exactly; one row decides alone how it is rounded.

    Edge cases:
        No row gives pure noise. A row without a finite length counts as 0.

    Args:
        gradients: A row for each example that was drawn, of this example alone; at most ``2^30``.
        norm: The clipping norm C, at least 1e-24.
        noise_multiplier: That of the step z, in [0, 2^21].
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of a row's length, to be divided by the *expected* size of a batch.

    Raises:
        ParameterError: If the gradients are no rows of numbers, or a number is outside its domain.

    Example:
        >>> from hockeystick.release.noise.clipped_sum import noisy_sum
        >>> noisy_sum([[3.0, 4.0], [0.5, 0.0]], norm=1.0, noise_multiplier=0).round(3)
        array([1.1, 0.8])
    """
    clipped = _validate.real("norm", norm, _NORM)
    noise = _validate.real("noise_multiplier", noise_multiplier, _NOISE)
    rows = gradient_rows("gradients", gradients)
    return noisy_clipped_sum(rows, clipped, noise, bits)
