"""Clipping norms that follow a noisy quantile of the gradients' lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.mechanisms.noise.joint_gaussian import JointGaussian
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.statistics.clipped import (
    gradient_rows,
    length_of,
    moved_length,
    noisy_clipped_sum,
    noisy_integers,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOISE: Final = Domain(symbol="z", low=0, high=2.0**21, typical=(0.5, 10))
EXPECTED: Final = Domain(symbol="m", low=1e-24, high=2.0**30, typical=(16, 4096), whole=False)
STEP_SIZE: Final = Domain(symbol="eta", low=0, high=10, typical=(0.001, 0.5))
_SHARE: Final = Domain(symbol="gamma", low=0, high=1, typical=(0.1, 0.9))


@final
@dataclass(frozen=True, slots=True, init=False)
class QuantileClipping:
    """DP-SGD's sum of gradients, with a clipping norm that follows a quantile of their lengths.

    Each step releases, of the same batch B with m its expected size,

        g = (sum clip(g_i, C) + N(0, (z C)^2 I)) / m,
        b = (sum (1[|g_i| <= C] - 1/2) + N(0, s^2)) / m + 1/2,

    and the next norm is ``C exp(-eta (b - gamma))``: computed from b, it costs nothing more. An
    example in the batch moves the first sum by at most C, and the second by exactly 1/2.

    Guarantees:
        Under add-remove and zero-out a step is ``mechanism``, ``JointGaussian((z, 2 s))``, of a
        batch, whatever norms came before: both sums are of integers, each example's decided by it
        alone. As with ``hs.calibration.clipping_noise``: a plan of noise multiplier nu covers the
        steps where ``z^-2 + (2 s)^-2 <= nu^-2``. Whoever trains draws the batch and counts it.

    Args:
        norm: The first clipping norm C, from 1e-24 to 1e24.
        quantile: The share gamma of gradients that is to stay unclipped, in [0, 1].
        gradient_noise: z, the noise multiplier of the gradients' sum, in [0, 2^21].
        bit_noise: s, the standard deviation of the noise on the sum of bits, in [0, 2^21].
        step_size: eta, how fast the norm follows, in [0, 10].

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
        Clipping", NeurIPS 2021, algorithm 1 and theorem 1.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> noise = hs.calibration.clipping_noise(1.0, bit_noise=5.0)
        >>> clipping = hs.release.QuantileClipping(
        ...     norm=1.0, quantile=0.5, gradient_noise=noise, bit_noise=5.0
        ... )
        >>> gradient, clipping = clipping.step(np.ones((64, 10)), expected=64)
        >>> gradient.shape, clipping.norm > 1.0
        ((10,), True)
        >>> step = hs.PoissonSubsampled(clipping.mechanism, rate=0.01)
        >>> plan = hs.DPSGD(rate=0.01, steps=100, noise_multiplier=1.0)
        >>> hs.epsilon(step**100, 1e-5).upper <= hs.epsilon(plan, 1e-5).upper * (1 + 1e-9)
        True
    """

    norm: float
    quantile: float
    gradient_noise: float
    bit_noise: float
    step_size: float

    def __init__(
        self,
        norm: float,
        quantile: float,
        gradient_noise: float,
        bit_noise: float,
        step_size: float = 0.2,
    ) -> None:
        noises = {"gradient_noise": gradient_noise, "bit_noise": bit_noise}
        object.__setattr__(self, "norm", length_of("norm", norm))
        object.__setattr__(self, "quantile", _validate.real("quantile", quantile, _SHARE))
        for name, noise in noises.items():
            object.__setattr__(self, name, _validate.real(name, noise, NOISE))
        object.__setattr__(self, "step_size", _validate.real("step_size", step_size, STEP_SIZE))

    @property
    def mechanism(self) -> JointGaussian:
        """What a step is, of its batch: the bits' sensitivity is 1/2."""
        return JointGaussian((self.gradient_noise, 2.0 * self.bit_noise))

    def step(
        self, gradients: Any, *, expected: float, bits: Bits = secret_bits
    ) -> tuple[NDArray[np.float64], QuantileClipping]:
        """Return the noisy mean gradient of a batch, and the clipping of the next step.

        Args:
            gradients: A row for each example that was drawn, of this example alone; of shape
                (batch, d), batch 0 included. A row without a finite length counts as 0, and as
                clipped.
            expected: The expected size m of a batch, at least 1e-24: public, never the size that
                was drawn.
            bits: The source of random 64-bit words.

        Raises:
            ParameterError: If an argument is outside its domain.
        """
        rows = gradient_rows("gradients", gradients)
        size = _validate.real("expected", expected, EXPECTED)
        noisy = noisy_clipped_sum(rows, self.norm, self.gradient_noise, bits)
        share = 0.5 + 0.5 * self._halves(rows, bits) / size
        norm = moved_length(self.norm, -self.step_size * (share - self.quantile))
        return noisy / size, replace(self, norm=norm)

    def _halves(self, rows: NDArray[np.float64], bits: Bits) -> float:
        """Return twice the noisy sum of bits: 1 for a gradient that stays, -1 for another."""
        with np.errstate(over="ignore", invalid="ignore"):
            within = np.linalg.norm(rows, axis=1) <= self.norm
        total = np.array([2 * int(within.sum()) - len(rows)], dtype=np.int64)
        return math.fsum(noisy_integers(total, 1, 2.0 * self.bit_noise, bits))
