"""Clipping after each coordinate is shifted and scaled, as released gradients suggest: AdaClip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.statistics.clipped import gradient_rows, noisy_clipped_sum
from hockeystick.release.statistics.quantile_clipping import EXPECTED, NOISE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DECAY: Final = Domain(symbol="beta", low=0, high=1, typical=(0.9, 0.999))
_VARIANCE: Final = Domain(symbol="h", low=1e-300, high=1e300, typical=(1e-12, 1), whole=False)
_DIMENSION: Final = whole_numbers("d", 1, (10, 10**6))


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class CoordinateClipping:
    """DP-SGD's sum of gradients, shifted and scaled in each coordinate before it is clipped.

    With a and b > 0 of d entries, of which nothing but the steps before decides, and m the expected
    size of a batch, each step releases

        w = (sum clip((g_i - a) / b, 1) + N(0, z^2 I)) / m,    g = a + b w.

    Then, entry by entry, ``a`` moves to ``beta_1 a + (1 - beta_1) g``, the variance ``v`` to
    ``beta_2 v + (1 - beta_2) min(max((g - a)^2 - b^2 z^2/m^2, h_1), h_2)``, and
    ``b_k = sqrt(s_k sum_j s_j)`` with ``s = sqrt(v)``, which makes the noise least.

    Guarantees:
        Under add-remove and zero-out a step is ``Gaussian(z)`` of a batch: an example in it moves
        the sum by at most 1, whatever a and b are, and these are computed from what was released.
        It costs what a step of DP-SGD with z does, and nothing more. (Some libraries call AdaClip a
        norm that follows a quantile, which costs more: that is ``QuantileClipping``.)

    Args:
        dimension: The number d of entries of a gradient, an integer >= 1.
        noise_multiplier: z, in [0, 2^21].
        decays: beta_1 and beta_2, each in [0, 1].
        variances: h_1 and h_2, the least and the largest variance of an entry, both > 0; the first
            one is ``sqrt(h_1 h_2)``.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Pichapati, Suresh, Yu, Reddi and Kumar, "AdaCliP: Adaptive Clipping for Private SGD", 2019,
        algorithm 1.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> clipping = hs.release.CoordinateClipping(dimension=3, noise_multiplier=1)
        >>> for _ in range(100):
        ...     gradient, clipping = clipping.step(np.full((500, 3), [5, 1, 0]), expected=500)
        >>> print(clipping.mechanism)
        Gaussian (noise multiplier 1)
    """

    noise_multiplier: float
    decays: tuple[float, float]
    variances: tuple[float, float]
    center: NDArray[np.float64]
    variance: NDArray[np.float64]

    def __init__(
        self,
        dimension: int,
        noise_multiplier: float,
        decays: tuple[float, float] = (0.99, 0.9),
        variances: tuple[float, float] = (1e-8, 1.0),
    ) -> None:
        count = _validate.count("dimension", dimension, _DIMENSION)
        noise = _validate.real("noise_multiplier", noise_multiplier, NOISE)
        known = _pair("decays", decays, _DECAY)
        least, most = _pair("variances", variances, _VARIANCE)
        if not least <= most:
            raise ParameterError("variances", variances, "the least one first")
        object.__setattr__(self, "noise_multiplier", noise)
        object.__setattr__(self, "decays", known)
        object.__setattr__(self, "variances", (least, most))
        object.__setattr__(self, "center", np.zeros(count))
        object.__setattr__(self, "variance", np.full(count, math.sqrt(least) * math.sqrt(most)))

    @property
    def mechanism(self) -> Gaussian:
        """What a step is, of its batch."""
        return Gaussian(self.noise_multiplier)

    @property
    def scale(self) -> NDArray[np.float64]:
        """What each entry is divided by: b, which is proportional to ``v^(1/4)``."""
        deviation = np.sqrt(self.variance)
        return np.asarray(np.sqrt(deviation * deviation.sum()))

    def step(
        self, gradients: Any, *, expected: float, bits: Bits = secret_bits
    ) -> tuple[NDArray[np.float64], CoordinateClipping]:
        """Return the noisy mean gradient of a batch, and the clipping of the next step.

        Args:
            gradients: A row for each example that was drawn, of this example alone; of shape
                (batch, d). A row without a finite length counts as a.
            expected: The expected size m of a batch, at least 1e-24: public, never the size that
                was drawn.
            bits: The source of random 64-bit words.

        Raises:
            ParameterError: If an argument is outside its domain.
        """
        rows = gradient_rows("gradients", gradients)
        if rows.shape[1] != len(self.center):
            allowed = f"rows of {len(self.center)} numbers"
            raise ParameterError("gradients", f"an array of shape {rows.shape}", allowed)
        size = _validate.real("expected", expected, EXPECTED)
        scale = self.scale
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (rows - self.center) / scale
        noisy = noisy_clipped_sum(scaled, 1.0, self.noise_multiplier, bits)
        gradient = self.center + scale * (noisy / size)
        return gradient, self._after(gradient, scale * self.noise_multiplier / size)

    def _after(
        self, gradient: NDArray[np.float64], deviation: NDArray[np.float64]
    ) -> CoordinateClipping:
        """Return the clipping of the next step, by this one's gradient and its noise."""
        first, second = self.decays
        own = np.clip((gradient - self.center) ** 2 - deviation**2, *self.variances)
        found = _same_settings(self)
        object.__setattr__(found, "center", first * self.center + (1 - first) * gradient)
        object.__setattr__(found, "variance", second * self.variance + (1 - second) * own)
        return found


def _same_settings(clipping: CoordinateClipping) -> CoordinateClipping:
    """Return one of the same settings."""
    return CoordinateClipping(
        len(clipping.center), clipping.noise_multiplier, clipping.decays, clipping.variances
    )


def _pair(name: str, values: Any, domain: Domain) -> tuple[float, float]:
    """Return two numbers of a domain, or raise."""
    found = _validate.reals(name, values, domain)
    if len(found) != 2:
        raise ParameterError(name, values, "two numbers")
    return found[0], found[1]
