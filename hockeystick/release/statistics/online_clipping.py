"""Clipping norms and learning rates that are optimised as the training goes: OSO-DPSGD."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.joint_gaussian import JointGaussian
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.statistics.clipped import (
    gradient_rows,
    length_of,
    moved_length,
    noisy_clipped_sum,
)
from hockeystick.release.statistics.quantile_clipping import EXPECTED, NOISE, STEP_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RATE: Final = Domain(symbol="rho", low=1e-24, high=1e24, typical=(0.001, 10))


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class OnlineClipping:
    """DP-SGD's sum of gradients, with a clipping norm and a learning rate that descend too.

    Each step releases, of the same batch with m its expected size,

        g_t = (sum clip(g_i, C_t) + N(0, (z_g C_t)^2 I)) / m,
        q_t = (sum 1[|g_i| > C_t] g_i/|g_i| + N(0, z_q^2 I)) / m,

    q the derivative of the clipped sum by C, and then, with nothing but these,

        C_(t+1)   = C_t   exp(rho_c sign(g_t . q_(t-1))),
        rho_(t+1) = rho_t exp(rho_r sign(g_t . g_(t-1))).

    An example in the batch moves the first sum by at most C_t and the second by at most 1.

    Guarantees:
        Under add-remove and zero-out a step is ``mechanism``, ``JointGaussian((z_g, z_q))``, of a
        batch: both sums are of integers, each example's decided by it alone. The norm and the
        learning rate are computed from what is released: post-processing. A plan of noise
        multiplier nu covers the steps where ``z_g^-2 + z_q^-2 <= nu^-2``, as with
        ``hs.calibration.joint_noise``. Whoever trains draws the batch and counts it.

    Edge cases:
        The first step changes neither: there is no step before it.

    Args:
        norm: The first clipping norm C, from 1e-24 to 1e24.
        learning_rate: The first learning rate rho, from 1e-24 to 1e24.
        gradient_noise: z_g, the noise multiplier of the gradients' sum, in [0, 2^21].
        direction_noise: z_q, that of the sum of directions, in [0, 2^21].
        norm_rate: rho_c, in [0, 10].
        learning_rate_rate: rho_r, in [0, 10]; 0 keeps the learning rate.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Galli, "Sense and Sensitivity" (PhD thesis, Scuola Normale Superiore), algorithm 3 and
        proposition 1. Its line 13 adds noise of z_g to q in place of z_q; its equations 3.17 and
        3.18 noise the means, its algorithm the sums, as here.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> noise = hs.calibration.joint_noise(1.0, inflation=1.01)
        >>> clipping = hs.release.OnlineClipping(
        ...     norm=0.1,
        ...     learning_rate=0.5,
        ...     gradient_noise=noise.gradient,
        ...     direction_noise=noise.query,
        ...     norm_rate=0.05,
        ... )
        >>> for _ in range(3):
        ...     gradient, clipping = clipping.step(np.ones((4096, 2)), expected=4096)
        >>> round(clipping.norm, 4)
        0.1105
        >>> round(clipping.learning_rate, 6)
        0.502506
    """

    norm: float
    learning_rate: float
    gradient_noise: float
    direction_noise: float
    norm_rate: float
    learning_rate_rate: float
    _before: tuple[NDArray[np.float64], NDArray[np.float64]] | None = field(repr=False)

    def __init__(
        self,
        norm: float,
        learning_rate: float,
        gradient_noise: float,
        direction_noise: float,
        norm_rate: float = 2.5e-3,
        learning_rate_rate: float = 2.5e-3,
    ) -> None:
        set_to = object.__setattr__
        set_to(self, "norm", length_of("norm", norm))
        set_to(self, "learning_rate", _validate.real("learning_rate", learning_rate, _RATE))
        set_to(self, "gradient_noise", _validate.real("gradient_noise", gradient_noise, NOISE))
        set_to(self, "direction_noise", _validate.real("direction_noise", direction_noise, NOISE))
        set_to(self, "norm_rate", _validate.real("norm_rate", norm_rate, STEP_SIZE))
        rate = _validate.real("learning_rate_rate", learning_rate_rate, STEP_SIZE)
        set_to(self, "learning_rate_rate", rate)
        set_to(self, "_before", None)

    @property
    def mechanism(self) -> JointGaussian:
        """What a step is, of its batch."""
        return JointGaussian((self.gradient_noise, self.direction_noise))

    def step(
        self, gradients: Any, *, expected: float, bits: Bits = secret_bits
    ) -> tuple[NDArray[np.float64], OnlineClipping]:
        """Return the noisy mean gradient of a batch, and the clipping of the next step.

        Args:
            gradients: A row for each example that was drawn, of this example alone; of shape
                (batch, d), the d of the step before. A row without a finite length counts as 0.
            expected: The expected size m of a batch, at least 1e-24: public, never the size that
                was drawn.
            bits: The source of random 64-bit words.

        Raises:
            ParameterError: If an argument is outside its domain.
        """
        rows = gradient_rows("gradients", gradients)
        size = _validate.real("expected", expected, EXPECTED)
        if self._before is not None and rows.shape[1] != len(self._before[0]):
            allowed = f"rows of {len(self._before[0])} numbers, as in the step before"
            raise ParameterError("gradients", f"an array of shape {rows.shape}", allowed)
        directions = _directions(rows, self.norm)
        gradient = noisy_clipped_sum(rows, self.norm, self.gradient_noise, bits) / size
        direction = noisy_clipped_sum(directions, 1.0, self.direction_noise, bits) / size
        return gradient, self._after(gradient.copy(), direction)

    def _after(
        self, gradient: NDArray[np.float64], direction: NDArray[np.float64]
    ) -> OnlineClipping:
        """Return the clipping of the next step."""
        norm, rate = self.norm, self.learning_rate
        if self._before is not None:
            before, its_direction = self._before
            norm = moved_length(norm, self.norm_rate * _sign(gradient, its_direction))
            rate = moved_length(rate, self.learning_rate_rate * _sign(gradient, before))
        found = OnlineClipping(
            norm,
            rate,
            self.gradient_noise,
            self.direction_noise,
            self.norm_rate,
            self.learning_rate_rate,
        )
        object.__setattr__(found, "_before", (gradient, direction))
        return found


def _directions(rows: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """Return the directions of the rows that are clipped, and zeros for the others."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(rows, axis=1)
    clipped = np.isfinite(lengths) & (lengths > norm)
    unit = np.where(clipped, lengths, 1.0)[:, None]
    return np.where(clipped[:, None], rows, 0.0) / unit


def _sign(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the sign of an inner product, 0 included."""
    return float(np.sign(first @ second))
